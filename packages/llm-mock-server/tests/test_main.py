"""The command as a process."""

import contextlib
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
    if script is not None:
        (folder / "upstream.json").write_text(json.dumps(script), encoding="utf-8")
        arguments = ("--script", "upstream.json", *arguments)
    process = subprocess.Popen(
        [sys.executable, "-m", "llm_mock_server", *arguments],
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


SIGNAL_WHILE_LOADING = """
import os, sys

class Loading:
    def find_spec(name, *_):
        if name == "llm_mock_server":
            os.kill(os.getpid(), int(sys.argv[1]))

sys.meta_path.insert(0, Loading)
from llm_mock_server_command import main
sys.exit(main())
"""


def read_event(process):
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return json.loads(line)


def url_of(process):
    return read_event(process)["baseURL"].removesuffix("/v1")


def test_events_come_one_a_line_and_the_base_url_first(tmp_path, dial, post):
    with command(tmp_path) as process:
        ready = read_event(process)
        assert list(ready) == ["type", "baseURL", "dialect", "baseURLs", "seed", "controlURL"]
        assert ready["baseURLs"]["anthropic-messages"] == ready["baseURL"].removesuffix("/v1")
        assert (ready["seed"], ready["controlURL"]) == (None, None)
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
        assert result == {
            "type": "result",
            "number": 0,
            "call": 0,
            "label": "say",
            "cursor": None,
            "status": 200,
            "outcome": "completed",
            "bodiesSent": 1,
            "error": None,
        }


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
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_while_connections_are_refused(tmp_path, dial, number, status):
    arguments = ("--sequence", "connection_refused,success", "--listen-delay-ms", "2147483647")
    with command(tmp_path, *arguments, script=None) as process:
        unavailable = read_event(process)
        assert list(unavailable)[:2] == ["type", "baseURL"]
        assert (unavailable["type"], unavailable["listenDelayMs"]) == ("unavailable", 2147483647)
        with pytest.raises(ConnectionRefusedError):
            dial(unavailable["baseURL"].removesuffix("/v1"))
        process.send_signal(number)
        assert process.wait(20) == status
        assert (process.stdout.read(), process.stderr.read()) == ("", "")


@pytest.mark.parametrize("delay", ["0", "2147483647"])
def test_connections_are_refused_until_the_time_is_over_or_the_control_api_says_so(tmp_path, dial, post, delay):
    arguments = ("--sequence", "connection_refused,success", "--control-port", "0", "--listen-delay-ms", delay)
    with command(tmp_path, *arguments, script=None) as process:
        unavailable = read_event(process)
        if delay != "0":
            control = dial(unavailable["controlURL"])
            control.send(b"POST /listen HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert control.read_whole()[1]["listening"] is True
        ready = read_event(process)
        assert ready["type"] == "ready"
        assert ready["baseURL"] == unavailable["baseURL"]
        client = dial(ready["baseURL"].removesuffix("/v1"))
        client.send(post(b'{"model": "m", "messages": []}'))
        assert client.read_whole()[0].startswith("HTTP/1.1 200 ")


@no_signals
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_before_it_is_loaded(number, status):
    command = [sys.executable, "-c", SIGNAL_WHILE_LOADING, str(int(number))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (status, "", "")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no shell to close them")
@pytest.mark.parametrize("arguments", ["--sequence nope", "--chunk-size x", "--bogus", "--sequence success 1>&-"])
def test_what_cannot_be_said_has_its_status_still(arguments):
    command = ["sh", "-c", f'exec "$0" -m llm_mock_server {arguments} 2>&-', sys.executable]
    assert subprocess.run(command, stdout=subprocess.PIPE, timeout=20, check=False).returncode == 2


def test_random_says_its_seed_and_what_was_drawn(tmp_path, dial, post):
    """And draws the same again from the same seed."""
    drawn = []
    for _ in range(2):
        seed = ("--seed", str(drawn[0])) if drawn else ()
        arguments = ("--sequence", "random", "--repeat-last", "--random-weights", "rate_limit=1,server_error=1")
        with command(tmp_path, *arguments, *seed, script=None) as made:
            ready = read_event(made)
            client = dial(ready["baseURL"].removesuffix("/v1"))
            client.send(post() * 20)
            events = [read_event(made) for _ in range(40)]
            drawn += [ready["seed"], [event["label"] for event in events if event["type"] == "result"]]
    assert drawn[:2] == drawn[2:]
    assert set(drawn[1]) == {"rate_limit", "server_error"}


def test_the_control_api_stands_beside(tmp_path, dial, post):
    with command(tmp_path, "--control-port", "0", "--journal-limit", "1") as process:
        ready = read_event(process)
        client, control = dial(ready["baseURL"].removesuffix("/v1")), dial(ready["controlURL"])
        script = b'{"entries": ["rate_limit", "success"]}'
        control.send(b"PUT /script HTTP/1.1\r\nHost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n%b" % (len(script), script))
        assert control.read_whole()[1]["remaining"] == 2
        for _ in range(2):
            client.send(post(b'{"model": "m", "messages": []}'))
            client.read_whole()
        results = [event for _ in range(4) if (event := read_event(process))["type"] == "result"]
        assert [(event["label"], event.get("dropped")) for event in results] == [("rate_limit", None), ("success", 1)]


def test_it_ends_with_whoever_reads_its_events(tmp_path, dial, post):
    with command(tmp_path) as process:
        client = dial(url_of(process))
        process.stdout.close()
        with contextlib.suppress(ConnectionError):  # where the platform does not tell, the next event does
            client.send(post(b"", "/v1/models", "GET"))
        assert process.wait(20) == 0
        assert process.stderr.read() == ""


def test_it_serves_on_when_nobody_reads_its_events(tmp_path, dial, post):
    """A pipe holds 64 KiB at most: far fewer than these."""
    with command(tmp_path) as process:
        client = dial(url_of(process))
        for _ in range(20):
            client.send(post(b"", "/v1/models", "GET") * 50)
            for _ in range(50):
                client.read_whole()


@pytest.mark.parametrize(
    ("arguments", "script", "words"),
    [
        ((), {"entries": [{"kind": "sing"}]}, "upstream.json: entries[0]"),
        ((), [], "upstream.json: must be an object"),
        (("--script", "missing.json"), SCRIPT, "missing.json"),
        (("--script", "."), SCRIPT, "Is a directory"),
        (("--host", "192.0.2.1"), SCRIPT, "'192.0.2.1' can be reached from other machines"),
        (("--host", "192.0.2.1", "--allow-remote"), SCRIPT, "192.0.2.1"),
        (("--host", "x" * 70), SCRIPT, "there is no host 'xxx"),
        (("--chunk-size", "0"), SCRIPT, "--chunk-size: must be a whole number from 1"),
        (("--sequence", "success"), SCRIPT, "either --sequence or --script"),
    ],
)
def test_what_cannot_be_served_is_said_with_the_mend(tmp_path, arguments, script, words):
    with command(tmp_path, *arguments, script=script) as process:
        assert process.wait(20) == 2
        complaint = process.stderr.read()
        assert words in complaint
        assert complaint.splitlines()[-1].startswith("mend: ")
        assert process.stdout.read() == ""


@pytest.mark.parametrize("flag", ["--port", "--control-port"])
@pytest.mark.parametrize("sequence", ["success", "connection_refused,success"])
def test_a_port_in_use_is_said(tmp_path, flag, sequence):
    with command(tmp_path, "--sequence", sequence, script=None) as first:
        port = url_of(first).rpartition(":")[2]
        with command(tmp_path, "--sequence", sequence, flag, port, script=None) as second:
            assert second.wait(20) == 2
            said = second.stderr.read().splitlines()
            assert (len(said), said[1].partition(" ")[0]) == (2, "mend:")
            assert f"127.0.0.1 port {port}" in said[0]


def test_a_host_that_others_can_reach_is_warned_of(tmp_path, dial, post):
    with command(tmp_path, "--host", "0.0.0.0", "--allow-remote") as process:
        assert url_of(process).startswith("http://127.0.0.1:")
        process.kill()
        (said,) = process.stderr.read().splitlines()
        assert said.startswith("llm-mock-server: warning: '0.0.0.0' can be reached from other machines")
