"""The command as a process."""

import json
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

SCRIPT = {"entries": [{"kind": "say", "text": "hi"}, {"kind": "hang", "readyFile": "ready"}]}

no_signals = pytest.mark.skipif(sys.platform == "win32", reason="a process there cannot be sent these signals")


@contextmanager
def command(folder, *arguments, script=SCRIPT):
    (folder / "upstream.json").write_text(json.dumps(script), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "llm_mock_server", "--script", "upstream.json", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def read_event(process):
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return json.loads(line)


def url_of(process):
    return read_event(process)["baseURL"].removesuffix("/v1")


def test_events_come_one_a_line_and_the_base_url_first(tmp_path, dial, post):
    with command(tmp_path) as process:
        ready = read_event(process)
        assert next(iter(ready.items())) == ("type", "ready")
        assert ready["baseURL"].startswith("http://127.0.0.1:")
        assert ready["baseURL"].endswith("/v1")
        client = dial(ready["baseURL"].removesuffix("/v1"))
        client.send(post(b'{"model": "m", "messages": []}', headers=("authorization: Bearer sk-secret",)))
        assert client.read_whole()[1]["choices"][0]["message"]["content"] == "hi"
        assert read_event(process) == {
            "type": "request",
            "number": 0,
            "call": 0,
            "kind": "call",
            "dialect": "openai-chat",
            "method": "POST",
            "path": "/v1/chat/completions",
        }
        result = read_event(process)
        assert result.pop("bytesSent") > 100
        assert result == {"type": "result", "number": 0, "status": 200, "outcome": "completed", "error": None}


def test_a_hang_writes_its_file_when_it_has_fallen_silent(tmp_path, dial, post):
    with command(tmp_path, script={"entries": SCRIPT["entries"][1:]}) as process:
        client = dial(url_of(process))
        client.send(post())
        assert "text/event-stream" in client.read_head()
        assert "partial" in client.read_until(b'partial"},"logprobs":null,"finish_reason":null}]}\n\n\r\n')
        assert read_event(process)["type"] == "request"
        client.close()
        assert read_event(process)["outcome"] == "stalled"
        assert (tmp_path / "ready").exists()


@pytest.mark.parametrize(("dialect", "end"), [("openai-chat", "/v1"), ("anthropic-messages", "")])
def test_the_base_url_is_that_of_the_dialect(tmp_path, dialect, end):
    with command(tmp_path, "--dialect", dialect) as process:
        ready = read_event(process)
        assert ready["dialect"] == dialect
        assert ready["baseURL"].partition("://")[2].partition("/")[2] == end.removeprefix("/")


def test_a_key_is_asked_for(tmp_path, dial, post):
    with command(tmp_path, "--api-key", "sesame") as process:
        client = dial(url_of(process))
        client.send(post())
        assert client.read_whole()[0].startswith("HTTP/1.1 401 ")
        assert read_event(process)["kind"] == "rejected"


@no_signals
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_even_with_a_client_that_hangs(tmp_path, dial, post, number, status):
    with command(tmp_path, script={"entries": SCRIPT["entries"][1:]}) as process:
        client = dial(url_of(process))
        client.send(post())
        client.read_head()
        process.send_signal(number)
        assert process.wait(20) == status
        assert process.stderr.read() == ""
        assert [json.loads(line)["type"] for line in process.stdout] == ["request", "result"]


@no_signals
def test_serving_goes_on_when_nobody_reads_the_events(tmp_path, dial, post):
    with command(tmp_path) as process:
        client = dial(url_of(process))
        process.stdout.close()
        for _ in range(2):
            client.send(post(b"", "/v1/models", "GET"))
            assert client.read_whole()[0].startswith("HTTP/1.1 200 ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("arguments", "script", "words"),
    [
        ((), {"entries": [{"kind": "sing"}]}, "upstream.json: entries[0]"),
        ((), [], "upstream.json: must be an object"),
        (("--script", "missing.json"), SCRIPT, "missing.json"),
        (("--host", "192.0.2.1"), SCRIPT, "192.0.2.1"),
    ],
)
def test_what_cannot_be_served_is_said_with_the_mend(tmp_path, arguments, script, words):
    with command(tmp_path, *arguments, script=script) as process:
        assert process.wait(20) == 2
        complaint = process.stderr.read()
        assert words in complaint
        assert complaint.splitlines()[-1].startswith("mend: ")
        assert process.stdout.read() == ""


def test_a_port_in_use_is_said(tmp_path, dial):
    with command(tmp_path) as first:
        port = url_of(first).rpartition(":")[2]
        with command(tmp_path, "--port", port) as second:
            assert second.wait(20) == 2
            assert "mend: " in second.stderr.read()
