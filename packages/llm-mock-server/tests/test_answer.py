"""Entries as actions, in every dialect, streamed and whole."""

import json

import msgspec
import pytest
from llm_dialects import (
    DIALECTS,
    Answer,
    BlockStart,
    Body,
    Chunks,
    Failure,
    Finish,
    FinishReason,
    Hang,
    Head,
    Pause,
    ProviderError,
    Reset,
    Stall,
    TextDelta,
    Throw,
    Wire,
)
from llm_mock_server.answer import entry_reply, failure_reply, in_a_burst

SAID = (BlockStart(index=0, block_type="text"), TextDelta(index=0, text="one"), TextDelta(index=0, text="two"))
DONE = (*SAID, Finish(reason=FinishReason(kind="stop")))
FAILED = (*SAID, Finish(reason=FinishReason(kind="error", failure=Failure(message="sorry", code="OVERLOADED"))))
ANSWER = Answer(id="a", model="m")


def reply(dialect, entry, *, stream, on_ready=None):
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": stream, "max_tokens": 9}
    request = DIALECTS[dialect].parse_request(body)
    return list(entry_reply(DIALECTS[dialect], request, entry, ANSWER, on_ready))


def shape(actions):
    """Actions without their bytes: statuses, then what follows, a body as the kind of its event or its error."""
    return [word(action) for action in actions]


def word(action):
    match action:
        case Head():
            return action.status
        case Body(data):
            return event_word(data.decode())
        case Reset(how):
            return how
        case Stall():
            return "stall"


def event_word(text):
    if "data: " not in text:
        return "error" if json.loads(text).get("error") else "message"
    data = text.partition("data: ")[2].strip()
    if data == "[DONE]":
        return "done"
    value = json.loads(data)
    if "error" in value:
        return "error"
    delta = value["choices"][0] if "choices" in value else value.get("delta", {})
    if isinstance(delta, str):
        return delta
    if "candidates" in value:
        delta = value["candidates"][0].get("content", {"parts": []})["parts"][:1]
        return delta[0]["text"] if delta else "event"
    return delta.get("text") or delta.get("delta", {}).get("content") or "event"


def throw(code, chunks=(), **members):
    return Throw(chunks=chunks, message="sorry", code=code, **members)


# entry, whole, streamed
ROWS = {
    "an answer": (Chunks(chunks=DONE), [200, "message"], [200, "one", "two"]),
    "an answer that ends in a failure": (Chunks(chunks=FAILED), [529, "error"], [200, "one", "two", "error"]),
    "a failure": (throw("RATE_LIMIT"), [429, "error"], [429, "error"]),
    "a failure of an own status": (throw("RATE_LIMIT", status=503), [503, "error"], [503, "error"]),
    "an unknown failure": (throw("STRANGE"), [500, "error"], [500, "error"]),
    "a lost connection": (throw("STREAM_CLOSED"), ["rst"], ["rst"]),
    "a late failure": (throw("RATE_LIMIT", SAID), [429, "error"], [200, "one", "two", "error"]),
    "a connection lost late": (throw("STREAM_CLOSED", SAID), ["rst"], [200, "one", "two", "fin"]),
    "an accepted failure": (throw("RATE_LIMIT", accepted=True), [429, "error"], [200, "error"]),
    "silence": (Hang(), ["stall"], [200, "partial", "stall"]),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ROWS)
def test_an_entry_as_actions(name, dialect):
    entry, whole, streamed = ROWS[name]
    assert shape(reply(dialect, entry, stream=False)) == whole
    told = shape(reply(dialect, entry, stream=True))
    # Dialects differ in what surrounds the words.
    assert [word for word in told if word not in ("event", "done")] == streamed


def test_the_head_of_a_stream():
    headers = (("content-type", "text/event-stream"), ("cache-control", "no-cache"))
    assert reply("openai-chat", Chunks(chunks=DONE), stream=True)[0] == Head(200, headers)


def test_a_message_has_a_known_length():
    head, body = reply("openai-chat", Chunks(chunks=DONE), stream=False)
    assert dict(head.headers) == {"content-type": "application/json", "content-length": str(len(body.data))}


def test_whoever_waits_for_silence_is_told_after_the_last_word():
    request = DIALECTS["openai-chat"].parse_request({"model": "m", "messages": [], "stream": True})
    seen = []
    actions = entry_reply(DIALECTS["openai-chat"], request, Hang(), ANSWER, lambda: seen.append("ready"))
    drawn = []
    for action in actions:
        drawn.append((word(action), list(seen)))
    assert drawn[-2:] == [("partial", []), ("stall", ["ready"])]


def test_further_headers_of_a_failure():
    head, _ = failure_reply(DIALECTS["openai-chat"], ProviderError("RATE_LIMIT", "slow down"), (("retry-after", "1"),))
    assert ("retry-after", "1") in head.headers


def test_a_burst_joins_what_nothing_happens_between():
    one, two = Body(b"1"), Body(b"2")
    assert list(in_a_burst([Head(200), one, two])) == [Head(200), Body(b"12")]
    assert list(in_a_burst([Head(200), one, Pause(1), one, two, Stall()])) == [
        *(Head(200), one, Pause(1), Body(b"12"), Stall())
    ]
    assert list(in_a_burst([Reset("rst")])) == [Reset("rst")]


# ── how a provider put it ───────────────────────────────────────────────────────────────────────────────────────────

HTML = Wire(dialect="openai-chat", status=502, headers=(("content-type", "text/html"),), body=b"<p>bad</p>")
BAD = Throw(chunks=(), message="bad", code="SERVER_ERROR", status=502)


def wired(entry, wire, *, dialect="openai-chat", stream=True):
    return reply(dialect, msgspec.structs.replace(entry, wire=wire), stream=stream)


@pytest.mark.parametrize("stream", [True, False])
def test_a_body_is_told_as_it_was_in_its_own_dialect(stream):
    head, body = wired(BAD, HTML, stream=stream)
    assert head == Head(502, (("content-length", "10"), ("content-type", "text/html")))
    assert body == Body(b"<p>bad</p>")


@pytest.mark.parametrize("stream", [True, False])
def test_a_body_is_told_in_no_other_dialect(stream):
    head, body = wired(BAD, HTML, dialect="anthropic-messages", stream=stream)
    assert (head.status, json.loads(body.data)["error"]["message"]) == (502, "bad")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_headers_are_laid_over_those_of_any_dialect(dialect):
    wire = Wire(headers=(("retry-after", "2"), ("content-type", "text/plain")))
    head, _ = wired(Throw(chunks=(), message="m", code="RATE_LIMIT"), wire, dialect=dialect)
    headers = dict(head.headers)
    assert (head.status, headers["retry-after"], headers["content-type"]) == (429, "2", "text/plain")
    assert "content-length" in headers


def test_a_header_may_be_taken_away():
    head, *_ = wired(Chunks(chunks=DONE), Wire(headers=(("content-type", ""),)))
    assert dict(head.headers) == {"cache-control": "no-cache"}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("entry", "end", "last"),
    [
        (Throw(chunks=SAID, message="m", code="STREAM_CLOSED"), "complete", None),
        (Throw(chunks=SAID, message="m", code="STREAM_CLOSED"), "reset", Reset("rst")),
        (Throw(chunks=SAID, message="m", code="STREAM_CLOSED"), "cut", Reset("fin")),
        (Chunks(chunks=DONE), "cut", Reset("fin")),
        (Chunks(chunks=DONE), "silence", Stall()),
        (Hang(), "reset", Reset("rst")),
    ],
)
def test_an_end_is_put_in_place_of_the_own_one(dialect, entry, end, last):
    own, told = reply(dialect, entry, stream=True), wired(entry, Wire(end=end), dialect=dialect)
    bodies = [action for action in own if isinstance(action, Body)]
    assert told == [own[0], *bodies, *([last] if last else [])]


def test_a_response_of_no_known_length_says_none():
    (head, body, reset) = wired(BAD, msgspec.structs.replace(HTML, end="cut"))
    assert (dict(head.headers), body.data, reset.how) == ({"content-type": "text/html"}, b"<p>bad</p>", "fin")


def test_the_events_of_a_body_are_told_one_by_one():
    wire = Wire(dialect="openai-chat", status=200, body=b"data: 1\n\ndata: 2\r\n\r\ndata: 3")
    assert [action.data for action in wired(Hang(chunks=()), wire) if isinstance(action, Body)] == [
        b"data: 1\n\n", b"data: 2\r\n\r\n", b"data: 3",
    ]  # fmt: skip


def test_a_response_begins_only_where_something_is_told_of_it():
    assert reply("openai-chat", Hang(chunks=()), stream=True) == [Stall()]
    empty = Wire(dialect="openai-chat", status=200, headers=(("content-type", "text/event-stream"),), body=b"")
    assert wired(Hang(chunks=()), empty) == [Head(200, (("content-type", "text/event-stream"),)), Stall()]


def test_a_hang_says_its_own_chunks():
    assert shape(reply("openai-chat", Hang(chunks=SAID), stream=True))[-1] == "stall"
    assert b"two" in reply("openai-chat", Hang(chunks=SAID), stream=True)[-2].data


@pytest.mark.parametrize(
    "wire",
    [Wire(headers=(("x-a", "b"),)), Wire(dialect="openai-chat", status=200, body=b"data: 1\n\n"), Wire(end="reset")],
)
@pytest.mark.parametrize("said", [SAID, ()])
def test_a_hang_is_ready_once_all_is_said_whatever_the_wire(wire, said):
    seen = []
    request = DIALECTS["openai-chat"].parse_request({"model": "m", "messages": [], "stream": True})
    entry = Hang(chunks=said, wire=wire)
    for action in entry_reply(DIALECTS["openai-chat"], request, entry, ANSWER, lambda: seen.append("ready")):
        seen.append(type(action).__name__)
    assert seen[-2:] == ["ready", "Reset" if wire.end == "reset" else "Stall"]
    assert seen.count("ready") == 1
