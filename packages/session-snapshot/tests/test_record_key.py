"""The key of a recording: where it is read from, and that it shows nowhere, in no form, whatever goes wrong."""

import base64
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest
from session_snapshot.errors import AgentError, Refused
from session_snapshot.recording.key import candidates, from_dotenv
from session_snapshot.recording.record import withheld
from session_snapshot.recording.secrets import BLANK, find_key

LAST = [["respond", {"stopReason": "end_turn"}]]
TURN = [["hear"], ["call"], ["say"], *LAST]

# ── where it is read from ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout, a folder in it where one works, and a ``.env`` above it that is nobody's business."""
    (tmp_path / ".env").write_text("KEY=not-of-this-checkout\n")
    root = tmp_path / "checkout"
    (root / "a" / "b").mkdir(parents=True)
    (root / ".git").mkdir()
    monkeypatch.chdir(root / "a" / "b")
    return root


@pytest.mark.parametrize(
    ("files", "value"),
    [
        ({}, ""),
        ({"a/b/.env": "KEY=here\n"}, "here"),
        ({"a/.env": "KEY=above\n"}, "above"),
        ({".env": "KEY=root\n"}, "root"),
        ({"a/b/.env": "KEY=here\n", ".env": "KEY=root\n"}, "here"),
        ({"a/b/.env": "OTHER=x\n", ".env": "KEY=root\n"}, "root"),
        ({"a/b/.env": "KEY=\n", "a/.env": "KEY\n", ".env": "KEY=root\n"}, "root"),
        ({".env": "# KEY=no\nexport KEY='quoted # value'  # a remark\n"}, "quoted # value"),
        ({".env": "\ufeffKEY=marked\r\nOTHER=x\r\n"}, "marked"),
        ({".env": "this is no assignment\nKEY=behind-it\n"}, "behind-it"),
    ],
)
def test_the_nearest_file_that_sets_it_up_to_the_root_of_the_checkout(checkout, files, value):
    for name, text in files.items():
        (checkout / name).write_text(text, encoding="utf-8", newline="")
    assert from_dotenv("KEY", checkout / "a" / "b") == value


def test_outside_of_a_checkout_only_the_folder_itself(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / ".env").write_text("KEY=above\n")
    assert [path.parent for path in candidates(tmp_path / "a")] == [tmp_path / "a"]
    assert from_dotenv("KEY", tmp_path / "a") == ""
    assert from_dotenv("KEY", tmp_path) == "above"


@pytest.mark.parametrize("content", [b"KEY=\xff\xfe\n", None], ids=["not UTF-8", "a folder"])
def test_one_that_cannot_be_read(checkout, content):
    if content is None:
        (checkout / "a" / "b" / ".env").mkdir()
        assert from_dotenv("KEY", checkout / "a" / "b") == ""
        return
    (checkout / "a" / "b" / ".env").write_bytes(content)
    with pytest.raises(Refused, match=r"\.env cannot be read: it is not UTF-8\nmend: "):
        from_dotenv("KEY", checkout / "a" / "b")


def test_the_command_reads_it_and_the_environment_wins(scripted):
    (scripted.root / ".env").write_text(f"SCRIPTED_KEY='{scripted.key}'\n")
    assert scripted.command("record", "turn").returncode == 0
    done = scripted.command("record", "turn", SCRIPTED_KEY="short")
    assert "SCRIPTED_KEY has 5 characters, which is no key" in done.stderr


def test_without_one_it_is_said_where_it_was_looked_for(scripted):
    (scripted.root / ".env").write_text("OTHER_KEY=x\n")
    done = scripted.command("record", "turn")
    assert done.returncode == 2
    assert f"SCRIPTED_KEY is not set, and in no .env ({scripted.root.resolve() / '.env'})" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("mend: SCRIPTED_KEY=... nox -s snapshot_record -- scripted/turn")


READS = """
import sys
opened = []
def watch(event, arguments):
    if event == "open" and str(arguments[0]).endswith(".env"):
        opened.append(arguments[0])
sys.addaudithook(watch)
from session_snapshot.__main__ import main
try:
    main()
finally:
    print("opened", len(opened), "dotenv" in sys.modules)
"""


@pytest.mark.parametrize(
    ("arguments", "reads"),
    [
        (["replay", "-n", "0"], False),
        (["refresh", "--all"], False),
        (["record", "turn"], True),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_only_record_reads_it(scripted, arguments, reads):
    """Every file that is opened is seen: a hook of the interpreter hears of each."""
    (scripted.root / ".env").write_text(f"SCRIPTED_KEY='{scripted.key}'\n")
    command = [sys.executable, "-c", READS, *arguments]
    done = subprocess.run(
        command, cwd=scripted.root, env=scripted.environment(), capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == f"opened {int(reads)} {reads}"


# ── where it must not be ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("input.json", '{"steps": [\n{"op": "initialize"},\n{"op": "prompt", "text": "I am %s"}]}', 3),
        ("workspace/notes/.env", "A=1\nKEY=%s\n", 2),
        ("workspace/data.bin", "\x00\x01%s", 1),
        ("workspace.expected/a.txt", "%s", 1),
        ("upstream.json", '{"entries": [\n{"kind": "say", "text": "hello %s"}]}', 2),
        ("../agent.toml", None, 11),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["raw", "base64"])
def test_a_key_in_what_a_person_wrote_is_refused_before_anything_is_sent(scripted, name, text, line, form):
    told = json.dumps(scripted.key)[1:-1] if form == "raw" else base64.b64encode(scripted.key.encode()).decode()
    if text is None:
        scripted.agent(f'[env]\nLEAK = "{told}"\n')
    else:
        scripted.write(name, text % told)
    marks = scripted.root / "marks"
    scripted.plan(start=[["mark", str(marks)]])
    where = "scripted/agent.toml" if text is None else f"scripted/turn/{name}"
    scripted.unrecorded(Refused, f"the real key shows in snapshots/{where}:{line}; nothing was sent")
    assert not marks.exists()


FORMS = {
    "raw": str,
    "json": json.dumps,
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 behind": lambda key: base64.b64encode(f"user:{key}".encode()).decode(),
    "url": lambda key: quote(key, safe=""),
    "beginning": lambda key: key[:24],
    "end": lambda key: key[-14:],
    "masked": lambda key: f"{key[:8]}****{key[-4:]}",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_key_that_the_model_says_in_any_form_is_refused_and_never_shown(scripted, form):
    with scripted.provider(f"hello, your key is {form(scripted.key)}.") as server:
        said = scripted.unrecorded(
            AgentError,
            "the real key shows in the provider's answer to model call 0",
            "nothing of it was written",
            "revoke this one",
            upstream=server.base_url("openai-chat"),
        )
    assert not find_key(said, scripted.key)
    check_kept_without(scripted, BLANK)


def check_kept_without(suite, *texts):
    """What is kept holds the key in no form, and these texts."""
    kept = suite.root / ".snapshot-staging" / "new--scripted--turn"
    files = {path: path.read_bytes() for path in kept.rglob("*") if path.is_file()}
    assert {"calls.jsonl", "stdout.jsonl", "stderr.txt", "why.txt"} <= {path.name for path in files}
    assert not [path for path, content in files.items() if find_key(content, suite.key)]
    whole = b"".join(files.values()).decode()
    assert [text for text in texts if text not in whole] == []


@pytest.mark.parametrize(
    ("acts", "where"),
    [
        ([["write", "leak.txt", "<key>"]], "leak.txt in the agent's folder"),
        ([["stderr", "<key>"]], "the agent's stderr"),
        ([["update", "x", {"text": "<key>"}]], "the agent's stdout"),
        ([["hear"], ["call", {"user": "<key>"}]], "the agent's request POST /"),
        ([["http", "GET", "/models?key=<key>"]], "the headers of the agent's request GET "),
    ],
)
def test_the_key_anywhere_near_the_agent_is_refused(scripted, acts, where):
    scripted.plan(session_prompt=json.loads(json.dumps([*acts, *TURN]).replace("<key>", scripted.key[-16:])))
    scripted.script("hello", "hello")
    scripted.unrecorded(AgentError, where, "nothing of it was written", "find where it took the key from")
    check_kept_without(scripted)


def test_the_key_that_the_agent_finds_for_itself(scripted):
    """An agent that looks where no environment tells it: the harness's own variables, by way of the system."""
    scripted.plan(eof=[["write", "found.txt", scripted.key]])
    scripted.unrecorded(AgentError, "the real key shows in found.txt in the agent's folder", "revoke the key")


@contextmanager
def answering(*answers: bytes) -> Iterator[str]:
    """A server that answers each connection with the next of these bytes, whatever it is asked; its base URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            for data in answers:
                connection, _ = listener.accept()
                with connection:
                    head = b""
                    while b"\r\n\r\n" not in head:
                        head += connection.recv(65536)
                    connection.sendall(data)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


def error_answer(status: str, body: object) -> bytes:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n"
    return f"{head}connection: close\r\n\r\n".encode() + data


@pytest.mark.parametrize("form", [str, lambda key: f"{key[:8]}{'*' * 12}{key[-4:]}"], ids=["whole", "masked"])
@pytest.mark.parametrize("agent", ["shows it", "dies of it"])
def test_a_provider_that_echoes_the_key_does_not_get_it_printed_or_kept(scripted, form, agent):
    message = f"Incorrect API key provided: {form(scripted.key)}."
    end = [["say"], *LAST] if agent == "shows it" else [["exit", 1]]
    told = scripted.root / "told.txt"
    scripted.plan(session_prompt=[["hear"], ["call"], ["write-answer", str(told)], *end])
    with scripted.provider(), answering(error_answer("401 Unauthorized", {"error": {"message": message}})) as url:
        done = record_command(scripted, url)
    assert done.returncode == 2
    output = done.stdout + done.stderr
    assert "the provider failed at model call 0: HTTP 401" in output
    assert f"Incorrect API key provided: {BLANK}" in output
    assert "mend: set SCRIPTED_KEY to a key that http://127.0.0.1:" in output
    assert not find_key(output, scripted.key)
    check_kept_without(scripted, f"Incorrect API key provided: {BLANK}")
    assert f"Incorrect API key provided: {BLANK}" in told.read_text(encoding="utf-8"), "the agent itself was told it"


def record_command(suite, url):
    return suite.command("record", "turn", "--upstream", url, SCRIPTED_KEY=suite.key)


def test_no_error_shows_the_key_not_even_of_a_defect(scripted):
    for error in (Refused('a sk-real-+/"quoted"-0123456789abcdef b', "x"), ValueError(f"bad {scripted.key!r}")):
        with pytest.raises(Refused, match=r"\[the key\]") as caught, withheld(scripted.key):
            raise error
        assert not find_key(str(caught.value), scripted.key) and caught.value.__suppress_context__
    with pytest.raises(ValueError, match=r"^harmless$"), withheld(scripted.key):
        raise ValueError("harmless")


def test_a_failure_amid_a_stream_that_tells_the_key(scripted):
    """It is passed on as it comes; what is said of it shows no key, nor does what is kept."""
    events = f"data: {json.dumps({'error': {'message': f'no {scripted.key}', 'code': scripted.key}})}\n\n"
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    with scripted.provider(), answering(f"{head}{events}".encode()) as url:
        done = record_command(scripted, url)
    output = done.stdout + done.stderr
    assert done.returncode == 2 and "Traceback" not in output
    assert f"scripted/turn: model call 0 failed ({BLANK})" in done.stdout
    assert f"the provider failed at model call 0: {BLANK}: no {BLANK}" in done.stderr
    assert not find_key(output, scripted.key)
    check_kept_without(scripted, f"no {BLANK}")
