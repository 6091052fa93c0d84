"""What a provider does besides the faults that have a name: it comes up late, mislabels, says when to come again."""

import gzip
import itertools
import json

import pytest
import watchfiles
from llm_dialects import DIALECTS, Body, Head, ProviderError, Say, answer_to, say_to_chunks

WELL = {"kind": "say", "text": "Well again."}


def events_of(read_log, session, type):
    return [event["data"] for event in read_log(session)[1] if event["type"] == type]


def codes(read_log, session):
    return [data["failure"]["code"] for data in events_of(read_log, session, "llm/retry")]


# ── Down, then up ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_provider_that_comes_up_between_two_retries_is_found(provider, spawn, read_log, tmp_path):
    """Nobody sleeps: the agent's own log says when it has been refused, and the provider begins to listen then."""
    server = provider([WELL], listen=False)
    agent = spawn(server, backoff_ms=100, overlay="model.retries = 8")
    session = agent.new_session()
    prompt = agent.start_prompt(session, "Anybody there?")
    wait_for_line(tmp_path / "state" / "sessions" / session / "session.jsonl", b'"llm/retry"')
    server.start_listening()
    assert agent.answer_to(prompt)["result"] == {"stopReason": "end_turn"}
    agent.close()
    assert [request.label for request in server.requests] == ["say"]
    retries = events_of(read_log, session, "llm/retry")
    assert {data["failure"]["code"] for data in retries} == {"STREAM_CLOSED"}
    assert [data["delayMs"] for data in retries] == [100 * 2**n for n in range(len(retries))]


def wait_for_line(path, piece):
    """Wait until the file holds ``piece``; told of changes by the system, with a look now and then all the same."""
    changes = watchfiles.watch(path.parent, rust_timeout=500, yield_on_timeout=True, debounce=20, step=10)
    assert any(piece in path.read_bytes() for _ in itertools.islice(changes, 60))


# ── Silence ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_head_that_does_not_come_is_given_up_and_asked_for_again(provider, spawn, read_log):
    late = {"kind": "behaviour", "name": "slow_headers", "options": {"headersDelayMs": 2**31 - 1}}
    server = provider([late, WELL])
    agent = spawn(server, overlay="model.silence_seconds = 1.0")
    session = agent.new_session()
    assert agent.prompt(session) == {"stopReason": "end_turn"}
    agent.close()
    assert [request.label for request in server.requests] == ["slow_headers", "say"]
    assert codes(read_log, session) == ["TIMEOUT"]


def test_silence_amid_the_answer_is_reported_and_what_was_said_is_kept(provider, spawn, read_log):
    server = provider([{"kind": "hang"}, WELL])
    agent = spawn(server, overlay="model.silence_seconds = 1.0")
    session = agent.new_session()
    assert agent.prompt(session)["data"] == {"code": "TIMEOUT"}
    assert agent.prompt(session) == {"stopReason": "end_turn"}
    agent.close()
    assert codes(read_log, session) == []
    kept, _ = events_of(read_log, session, "assistant/message")
    assert (kept["interrupted"], kept["message"]["content"]) == (True, [{"type": "text", "text": "partial"}])


def test_retries_of_silence_end(provider, spawn, read_log):
    server = provider([{"kind": "behaviour", "name": "stall", "times": "any"}])
    agent = spawn(server, overlay="model.silence_seconds = 0.1\nmodel.retries = 3")
    session = agent.new_session()
    assert agent.prompt(session)["data"] == {"code": "TIMEOUT"}
    agent.close()
    assert (len(server.requests), codes(read_log, session)) == (4, ["TIMEOUT"] * 3)


# ── Answers that are none ───────────────────────────────────────────────────────────────────────────────────────────


def streamed(*pieces, type="text/event-stream", **headers):
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return [Head(200, (("content-type", type), *named)), *(Body(piece) for piece in pieces)]


@pytest.mark.parametrize("name", DIALECTS)
def test_an_error_event_before_the_first_word_is_retried(provider, spawn, read_log, name):
    dialect = DIALECTS[name]
    failing = iter([streamed(dialect.error_event(ProviderError("OVERLOADED", "busy")))])
    well = say_to_chunks(Say(text="Well again."), str)

    def respond(http):
        answer = answer_to(dialect, dialect.parse_request(http.json), token="1", created=0)
        return next(failing, None) or streamed(*dialect.encode_stream(well, answer))

    agent = spawn(provider(respond), dialect=name)
    session = agent.new_session()
    assert agent.prompt(session) == {"stopReason": "end_turn"}
    agent.close()
    assert codes(read_log, session) == ["OVERLOADED"]
    (kept,) = events_of(read_log, session, "assistant/message")
    assert kept["message"]["content"] == [{"type": "text", "text": "Well again."}]


HOLLOW = [
    ("max-tokens", {"stopReason": "max_tokens"}),
    ("content-filter", {"stopReason": "refusal"}),
]


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(("finish", "answer"), HOLLOW)
def test_an_answer_cut_off_before_its_first_word_says_so_and_leaves_no_message(
    provider, spawn, read_log, name, finish, answer
):
    hollow = {"kind": "chunks", "chunks": [{"type": "finish", "reason": {"kind": finish}}]}
    server = provider([hollow, WELL])
    agent = spawn(server, dialect=name)
    session = agent.new_session()
    assert agent.prompt(session) == answer
    assert agent.prompt(session) == {"stopReason": "end_turn"}
    agent.close()
    assert codes(read_log, session) == []
    assert len(events_of(read_log, session, "assistant/message")) == 1


def test_an_empty_answer_after_a_tool_call_is_asked_for_again(provider, spawn, read_log):
    call = {
        "kind": "say",
        "toolCalls": [{"name": "write_file", "arguments": {"path": "a", "content": "b"}, "id": "c1"}],
    }
    server = provider([call, "empty", WELL])
    agent = spawn(server)
    session = agent.new_session()
    assert agent.prompt(session) == {"stopReason": "end_turn"}
    agent.close()
    assert [request.label for request in server.requests] == ["say", "empty", "say"]
    assert codes(read_log, session) == ["SERVER_ERROR"]
    assert len(events_of(read_log, session, "tool/result")) == 1


STREAM = b'data: {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
REFUSED = json.dumps({"error": {"message": "no such key", "type": "invalid_request_error"}}).encode()

# reply, code, and words that the message must hold
ODD = [
    (streamed(b"<h1>Sign in</h1>", type="text/html"), "STREAM_CLOSED", "text/html"),
    (streamed(b"\x8b\x00garbage", content_encoding="br"), "SERVER_ERROR", "'br'"),
    (streamed(b"data: plain\n\n", content_encoding="gzip"), "SERVER_ERROR", "gzip"),
    (streamed(gzip.compress(STREAM)[:30], content_encoding="gzip"), "STREAM_CLOSED", "before the answer was complete"),
    (
        [Head(401, (("content-encoding", "gzip"),)), Body(gzip.compress(REFUSED))],
        "AUTH",
        "no such key",
    ),
    (
        [Head(308, (("location", "https://elsewhere.example/v2"), ("content-length", "0")))],
        "INVALID_REQUEST",
        "https://elsewhere.example/v2 (HTTP 308); set base_url",
    ),
]


def test_a_reply_that_is_no_answer_is_told_for_what_it_is(provider, spawn):
    replies = iter([*(reply for reply, _, _ in ODD), streamed(gzip.compress(STREAM), content_encoding="gzip")])
    agent = spawn(provider(lambda _: next(replies)), overlay="model.retries = 0")
    session = agent.new_session()
    for _, code, words in ODD:
        error = agent.prompt(session)
        assert error["data"] == {"code": code}
        assert words in error["message"]
    assert agent.prompt(session) == {"stopReason": "end_turn"}
    agent.close()
    assert agent.stderr == ""


# ── When to come again ──────────────────────────────────────────────────────────────────────────────────────────────


def detailed(delay):
    """Return an error that says only in its details when to come again, as Google's."""
    return json.dumps({"error": {"code": 503, "details": [{"@type": "any/google.rpc.RetryInfo", "retryDelay": delay}]}})


DATE = ("date", "Thu, 01 Jan 2026 00:00:10 GMT")

# headers, the bound, backoff, the delay, and the body
WAITS = [
    ([("retry-after", "1")], 3, 0, 3),
    ([("retry-after-ms", "2")], 60_000, 0, 2),
    ([("retry-after-ms", "2"), ("retry-after", "3600")], 60_000, 0, 2),
    ([("retry-after-ms", "2")], 60_000, 4, 4),
    ([("retry-after", "0")], 60_000, 1, 1),
    ([("retry-after", "Thu, 01 Jan 2026 00:00:11 GMT"), DATE], 5, 0, 5),
    ([("retry-after", "Thu, 01 Jan 2026 00:00:09 GMT"), DATE], 5, 0, 0),
    ([("retry-after", "soon")], 5, 0, 0),
    ([], 5, 0, 0),
    ([], 60_000, 0, 2, detailed("0.002s")),
    ([], 60_000, 0, 1, detailed("0.001499999s")),
    ([], 5, 0, 5, detailed("99s")),
    ([], 5, 0, 0, detailed("-1s")),
    ([], 5, 0, 0, json.dumps({"error": {"message": '"retryDelay": "1s"'}})),
    ([("retry-after-ms", "2")], 60_000, 0, 2, detailed("99s")),
    ([("retry-after", "soon")], 5, 0, 0, detailed("99s")),
]


@pytest.mark.parametrize(
    ("headers", "most", "backoff", "delay", "body"), [row if len(row) == 5 else (*row, "") for row in WAITS]
)
def test_a_provider_is_waited_for_as_long_as_it_asks_within_bounds(
    provider, spawn, read_log, headers, most, backoff, delay, body
):
    refused = [Head(503, (*headers, ("content-length", str(len(body))))), Body(body.encode())]
    replies = iter([refused, streamed(STREAM)])
    agent = spawn(provider(lambda _: next(replies)), backoff_ms=backoff, overlay=f"model.retry_after_max_ms = {most}")
    session = agent.new_session()
    assert agent.prompt(session) == {"stopReason": "end_turn"}
    agent.close()
    assert [data["delayMs"] for data in events_of(read_log, session, "llm/retry")] == [delay]
