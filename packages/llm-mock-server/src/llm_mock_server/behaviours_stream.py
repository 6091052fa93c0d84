"""Behaviours of how an answer is told: not JSON, of a wrong shape, mislabelled, twice, with comments, failing. Pure."""

from collections.abc import Callable, Iterator
from itertools import chain

from llm_dialects import Action, Body, Json, encode_event
from llm_dialects.dialect import EVENT_STREAM
from llm_dialects.errors import finish_of
from llm_dialects.wire import decode_json, encode_json

from llm_mock_server.behaviours_parts import (
    JSON,
    answered,
    begun,
    bodies,
    events,
    first_told,
    message,
    message_head,
    stream_head,
    tell,
)
from llm_mock_server.behaviours_status import failure_of, server_error
from llm_mock_server.situation import Situation


def malformed_json(situation: Situation) -> Iterator[Action]:
    """Answer with an event, or a message, that is not JSON."""
    return spoiled(situation, lambda text, _: text[:1] + b"," + text[1:])


def malformed_event(situation: Situation) -> Iterator[Action]:
    """Answer with an event, or a message, that is JSON of a wrong shape."""
    return spoiled(situation, misshapen)


def wrong_content_type(situation: Situation) -> Iterator[Action]:
    """Answer as one should, under a wrong content type."""
    chunks = situation.text(situation.options.success_text)
    if situation.streamed:
        own = situation.dialect.stream_type(situation.request)
        yield stream_head(situation, content_type=JSON if own != JSON else EVENT_STREAM)
        yield from bodies(events(situation, chunks))
    else:
        body = message(situation, chunks)
        yield message_head(situation, len(body), content_type="text/plain")
        yield Body(body)


def mid_stream_error(situation: Situation) -> Iterator[Action]:
    """Say the partial text, then fail in the dialect's own event; a message can only be an HTTP error."""
    if not situation.streamed:
        yield from server_error(situation)
        return
    said = begun(situation.text(situation.options.partial_text))
    yield stream_head(situation)
    yield from bodies(events(situation, (*said, finish_of(failure_of(situation, "server_error")))))


def duplicate_event(situation: Situation) -> Iterator[Action]:
    """Answer with the first event of the text told twice; a message has the text that this adds up to."""
    said = situation.options.success_text
    if not situation.streamed:
        return tell(situation, situation.text(said[: situation.options.chunk_size] + said))
    told = list(events(situation, situation.text(said)))
    at = first_told(situation, told)
    return chain([stream_head(situation)], bodies([*told[: at + 1], *told[at:]]))


def keepalive_comments(situation: Situation) -> Iterator[Action]:
    """Answer with what keeps a connection alive before each event, or before the message."""
    chunks = situation.text(situation.options.success_text)
    told = list(events(situation, chunks))
    if situation.streamed:
        alive = keepalive(situation)
        yield stream_head(situation)
        yield from bodies(piece for event in told for piece in (*alive, event))
    else:
        body = message(situation, chunks)
        yield message_head(situation, len(body) + len(told))
        yield from bodies([*(b"\n" for _ in told), body])


# ── Parts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def spoiled(situation: Situation, spoil: Callable[[bytes, str], bytes]) -> Iterator[Action]:
    """Yield an answer whose first event of text is spoiled, or whose message is; the rest is as it should be.

    ``spoil`` gets the JSON object and the name of a member that the shape needs.
    """
    chunks = situation.text(situation.options.success_text)
    streamed, whole = NEEDED.get(situation.dialect.name, ("", ""))
    if not situation.streamed:
        yield from answered(situation, spoil(message(situation, chunks), whole))
        return
    told = list(events(situation, chunks))
    at = first_told(situation, told)
    start, end = told[at].index(b"{"), told[at].rindex(b"}") + 1
    told[at] = told[at][:start] + spoil(told[at][start:end], streamed) + told[at][end:]
    yield stream_head(situation)
    yield from bodies(told)


def misshapen(text: bytes, member: str) -> bytes:
    """Return the JSON object ``text`` with a 7 where a list, an object or a string belongs."""
    value: dict[str, Json] = decode_json(text)
    return encode_json(value | {member: 7})


def keepalive(situation: Situation) -> tuple[bytes, ...]:
    """Return what keeps a stream of the dialect alive."""
    if situation.dialect.stream_type(situation.request) == JSON:
        return (b"\n",)
    return KEEPALIVE.get(situation.dialect.name, (COMMENT,))


COMMENT = b": keep-alive\n\n"

# dialect -> what its provider sends to keep a stream alive, where that is not a comment alone
KEEPALIVE: dict[str, tuple[bytes, ...]] = {
    "anthropic-messages": (COMMENT, encode_event('{"type":"ping"}', event="ping")),
}

# dialect -> a member that the first event of a text needs, and one that a message needs
NEEDED: dict[str, tuple[str, str]] = {
    "openai-chat": ("choices", "choices"),
    "openai-responses": ("delta", "output"),
    "anthropic-messages": ("delta", "content"),
    "gemini": ("candidates", "candidates"),
}
