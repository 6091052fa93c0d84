"""Entries as actions, in every dialect, streamed and whole."""

import json

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
