"""Recording from a model: a provider of its own, over plain sockets and TLS, given in ``agent.toml`` or on the command
line; and what is said where it fails."""

import json
import socket
import ssl
import threading
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
import trustme
from llm_dialects import DIALECTS
from llm_mock_server import HttpRequest, ScriptedProvider
from session_snapshot.errors import FixtureError, Refused
from session_snapshot.recording.faults import told_failure
from session_snapshot.recording.heard import Heard
from session_snapshot.told import DUMMY_KEY

LAST = [["respond", {"stopReason": "end_turn"}]]
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def proxies(monkeypatch):
    """The user's proxies lead nowhere: this machine is not reached through them."""
    for name in PROXIES:
        monkeypatch.setenv(name, NOWHERE)
        monkeypatch.setenv(name.lower(), NOWHERE)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)


def provenance(suite):
    return tomllib.loads((suite.turn / "provenance.toml").read_text(encoding="utf-8"))


# ── where it is taken from ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_provider_of_the_suite_with_the_real_key(scripted):
    with scripted.provider("hello from afar") as server:
        scripted.agent(f'[record]\nkey_env = "SCRIPTED_KEY"\nupstream_url = "{server.base_url("openai-chat")}"\n')
        scripted.record()
        (asked,) = server.requests
    assert dict(asked.headers)["authorization"] == f"Bearer {scripted.key}"
    assert provenance(scripted)["upstream"] == "model"
    assert provenance(scripted)["source"] == "http://localhost/v1"
    assert b"hello from afar" in scripted.tree()["scripted/turn/session.jsonl"]
    scripted.green()


def test_an_endpoint_of_the_command_line_wins(scripted):
    scripted.agent('[record]\nkey_env = "SCRIPTED_KEY"\nupstream_url = "https://api.example.com/v1"\n')
    with scripted.provider("hello from nearby") as server:
        done = scripted.command(
            "record", "turn", "--upstream", server.base_url("openai-chat"), SCRIPTED_KEY=scripted.key
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert provenance(scripted)["source"] == "http://localhost/v1"
    assert b"hello from nearby" in scripted.tree()["scripted/turn/session.jsonl"]
    scripted.green()


def test_a_server_on_this_machine_needs_no_key(scripted):
    """It is shown the dummy, which is no secret: the agent has it too."""
    with scripted.provider() as server:
        refused = scripted.command("record", "turn", "--upstream", "https://api.example.com/v1")
        assert refused.returncode == 2 and "SCRIPTED_KEY is not set" in refused.stderr and not server.requests
    scripted.edit("scenario.toml", '"live"', '"scripted"')
    scripted.key = DUMMY_KEY
    with scripted.provider("hello without a key") as server:
        done = scripted.command("record", "turn", "--upstream", server.base_url("openai-chat"))
    assert (done.returncode, done.stderr) == (0, "")
    assert b"hello without a key" in scripted.tree()["scripted/turn/session.jsonl"]


@contextmanager
def over_tls(port: int, context: ssl.SSLContext) -> Iterator[int]:
    """What takes TLS off before a server; its port."""
    with ExitStack() as opened:
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        taker = threading.Thread(target=take, args=(listener, port, context, opened))
        taker.start()
        yield listener.getsockname()[1]
        socket.create_connection(listener.getsockname()).close()  # one that says nothing ends it
        taker.join()


def take(listener: socket.socket, port: int, context: ssl.SSLContext, opened: ExitStack) -> None:
    """Take connections until one does not begin TLS at all."""
    while True:
        plain, _ = listener.accept()
        if not plain.recv(1, socket.MSG_PEEK):
            plain.close()
            return
        try:
            outer = opened.enter_context(context.wrap_socket(plain, server_side=True))
        except ssl.SSLError:
            plain.close()
            continue
        inner = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
        for pair in ((outer, inner), (inner, outer)):
            threading.Thread(target=pump, args=pair).start()


def pump(source: socket.socket, sink: socket.socket) -> None:
    """Pass on what comes, and its end."""
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("trusted", [True, False])
def test_over_tls_with_its_certificate_checked(scripted, trusted, tmp_path):
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    trust = {"SSL_CERT_FILE": str(tmp_path / "ca.pem")} if trusted else {}
    with scripted.provider("hello in private") as server, over_tls(int(server.url.rpartition(":")[2]), context) as port:
        url = f"https://localhost:{port}/v1"
        done = scripted.command("record", "turn", "--upstream", url, SCRIPTED_KEY=scripted.key, **trust)
        asked = len(server.requests)
    assert (done.returncode, asked) == ((0, 1) if trusted else (2, 0)), done.stdout + done.stderr
    if not trusted:
        assert f"{url}/chat/completions is not trusted: " in done.stderr
        assert "SSL_CERT_FILE=" in done.stderr.splitlines()[-1]


# ── what is no recording from a model ───────────────────────────────────────────────────────────────────────────────


def test_a_script_and_an_endpoint_contradict_each_other(scripted):
    scripted.unrecorded(
        Refused,
        "scripted/turn is scripted: --upstream asks a model",
        'mend: leave --upstream out, or set recording = "live"',
        upstream="http://127.0.0.1:1/v1",
    )


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (
            "localhost:8080/v1",
            ["--upstream: 'localhost:8080/v1' has no scheme", "mend: write http://localhost:8080/v1"],
        ),
        ("https://me:pass1234@x.example.com", ["with a user or a password", "mend: write https://x.example.com, and"]),
    ],
)
def test_a_url_that_is_none_is_refused_with_the_right_one(scripted, url, said):
    with scripted.provider():
        assert "pass1234" not in scripted.unrecorded(Refused, *said, upstream=url)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", ["agent.toml:8: [record] has no upstream_url", "give --upstream URL"]),
        (
            'upstream_url = "api.example.com/v1"',
            ["agent.toml:10: [record] upstream_url: ", "https://api.example.com/v1"],
        ),
    ],
)
def test_a_suite_that_names_no_provider(scripted, line, said):
    with scripted.provider():
        scripted.agent(f'[record]\nkey_env = "SCRIPTED_KEY"\n{line}\n')
        scripted.unrecorded(FixtureError, *said)


def test_a_live_recording_in_which_no_model_answered_is_none(scripted):
    with scripted.provider() as server:
        scripted.plan(session_prompt=[["say", "hello all by myself"], *LAST])
        scripted.unrecorded(
            FixtureError,
            'scenario.toml: recording = "live" says that a model answered, and in this run none did',
            'set recording = "scripted" and write upstream.json (without a model call: {"entries": []})',
            upstream=server.base_url("openai-chat"),
        )


# ── where the provider fails ────────────────────────────────────────────────────────────────────────────────────────

FAILURES = {
    401: ("AUTH", "set SCRIPTED_KEY to a key that http://127.0.0.1:"),
    403: ("PERMISSION", "set SCRIPTED_KEY to a key that may use this model"),
    404: ("NOT_FOUND", "see that the model's name and the path of http://127.0.0.1:"),
    429: ("RATE_LIMIT", "wait, or raise the account's limit"),
    500: ("SERVER_ERROR", "try once more"),
}


@pytest.mark.parametrize("status", FAILURES)
def test_a_provider_that_refuses(scripted, status):
    code, mend = FAILURES[status]
    throw = {"kind": "throw", "chunks": [], "code": code, "message": "not like this", "status": status}
    with scripted.provider(throw) as server:
        url = server.base_url("openai-chat")
        told = scripted.unrecorded(Refused, f"the provider failed at model call 0: HTTP {status}, ", upstream=url)
    assert "not like this" in told
    assert told.splitlines()[-1].startswith(f"mend: {mend}"), told
    assert told.splitlines()[-1].endswith(f", then nox -s snapshot_record -- scripted/turn --upstream {url}")
    check_kept(scripted, told, "not like this")


def check_kept(suite, told, text):
    """Where it is kept is said in the line before the one that mends; and what was answered is there."""
    where = told.splitlines()[-2]
    assert where == "kept: what the run brought is in .snapshot-staging/new--scripted--turn"
    kept = suite.root / where.rpartition(" ")[2] / "run" / "calls.jsonl"
    assert text in json.dumps(json.loads(kept.read_text(encoding="utf-8").splitlines()[-1])["answer"])


def test_a_provider_that_fails_in_the_second_call_loses_no_word_of_the_first(scripted):
    scripted.plan(session_prompt=[["hear"], ["call"], ["call"], ["say"], *LAST])
    throw = {"kind": "throw", "chunks": [], "code": "STREAM_CLOSED", "message": "gone"}
    with scripted.provider("hello, that was dear", throw) as server:
        told = scripted.unrecorded(
            Refused, "the provider failed at model call 1: STREAM_CLOSED", upstream=server.base_url("openai-chat")
        )
    check_kept(scripted, told, "")
    kept = (scripted.root / ".snapshot-staging/new--scripted--turn/run/calls.jsonl").read_text(encoding="utf-8")
    assert "that was dear" in kept.splitlines()[0]


def test_a_provider_that_is_not_there(scripted):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with scripted.provider():
        scripted.unrecorded(
            Refused,
            f"the provider failed at model call 0: http://127.0.0.1:{port}/v1/chat/completions was not reached",
            "mend: see that the URL is right and the server is up",
            upstream=f"http://127.0.0.1:{port}/v1",
        )


@pytest.mark.parametrize(
    ("dialect", "behaviour", "said", "mend"),
    [
        ("gemini", "auth_error", "HTTP 400, AUTH: API key not valid.", "mend: set SCRIPTED_KEY to a key that "),
        ("openai-chat", "quota_exceeded", "HTTP 429, QUOTA: You exceeded", "mend: wait, or raise the account's limit"),
        ("openai-chat", "malformed_json", "MALFORMED_ANSWER: event 2: ", "is an API of the agent's dialect"),
    ],
)
def test_what_mends_a_failure_goes_by_what_the_provider_means(dialect, behaviour, said, mend):
    provider = ScriptedProvider([behaviour])
    params = {"model": "m", "stream": True, "alt": "sse"} if dialect == "gemini" else {"model": "m", "stream": True}
    body = params | ({"contents": []} if dialect == "gemini" else {"messages": []})
    http = HttpRequest("POST", "/x", "", (), b"", dialect, body, 0)
    heard = Heard(DIALECTS[dialect], DIALECTS[dialect].parse_request(body))
    for action in provider(http):
        heard.take(action)
    heard.over()
    what, cure = told_failure(heard.entry(), "SCRIPTED_KEY", "http://x/v1")
    assert what.startswith(said) and mend in f"mend: {cure}"


def test_a_failure_that_the_scenario_does_not_name_is_refused_by_name(scripted):
    """Also where it is about another one: a wrong key is nothing that anybody wants recorded by accident."""
    throw = {"kind": "throw", "chunks": [], "code": "AUTH", "message": "no such key"}
    scripted.edit("scenario.toml", "[expect]", '[expect]\nerror_codes = ["RATE_LIMIT"]')
    scripted.edit("scenario.toml", 'recording = "scripted"', 'recording = "scripted"\noverridden = true')
    with scripted.provider(throw) as server:
        scripted.unrecorded(
            Refused,
            "the provider failed at model call 0: HTTP 401, AUTH: no such key",
            "mend: set SCRIPTED_KEY to a key that",
            upstream=server.base_url("openai-chat"),
        )


def test_a_scenario_about_failures_is_recorded_with_them(scripted):
    throw = {"kind": "throw", "chunks": [], "code": "RATE_LIMIT", "message": "slowly"}
    scripted.plan(session_prompt=[["hear"], ["call"], ["call"], ["say"], *LAST])
    scripted.edit("scenario.toml", "[expect]", '[expect]\nerror_codes = ["RATE_LIMIT"]')
    scripted.edit("scenario.toml", 'recording = "scripted"', 'recording = "scripted"\noverridden = true')
    with scripted.provider(throw, "hello at last") as server:
        scripted.record(upstream=server.base_url("openai-chat"))
    assert b'"code":"RATE_LIMIT"' in scripted.tree()["scripted/turn/replay.override.json"]
    scripted.green()


def test_what_could_not_be_kept_is_refused_before_a_model_is_asked(scripted):
    with scripted.provider("hello") as server:
        url = server.base_url("openai-chat")
        scripted.script("a script left over")
        scripted.unrecorded(FixtureError, "turn/upstream.json: it is there", "no model was asked", upstream=url)
        scripted.remove("upstream.json")
        scripted.edit("scenario.toml", "pin = true", "pin = false")
        said = ("no scenario of the suite pins the header class 'default', so no model was asked", "pin = true")
        scripted.unrecorded(FixtureError, *said, upstream=url)
        assert len(server.requests) == 0
