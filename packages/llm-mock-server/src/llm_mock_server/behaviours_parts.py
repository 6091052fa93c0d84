"""What behaviours are made of: heads, the events of a stream, the message of an answer, beginnings of both. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from llm_dialects import Action, BlockEnd, Body, Finish, Head, Pause, StreamChunk, TextDelta, UsageChunk

from llm_mock_server.answer import NO_CACHE
from llm_mock_server.situation import Situation

Headers = tuple[tuple[str, str], ...]

JSON = "application/json"


def tell(situation: Situation, chunks: Sequence[StreamChunk]) -> Iterator[Action]:
    """Yield a whole answer as it should be: one ``Body`` per event of a stream, or one message."""
    if situation.streamed:
        yield stream_head(situation)
        yield from bodies(events(situation, chunks))
    else:
        yield from answered(situation, message(situation, chunks))


def answered(situation: Situation, body: bytes) -> Iterator[Action]:
    """Yield a response of 200 that is ``body``."""
    yield message_head(situation, len(body))
    yield Body(body)


def events(situation: Situation, chunks: Sequence[StreamChunk]) -> Iterator[bytes]:
    """Yield the events of a streamed answer; unfinished chunks make an unfinished stream."""
    return situation.dialect.encode_stream(chunks, situation.answer(chunks))


def message(situation: Situation, chunks: Sequence[StreamChunk]) -> bytes:
    """Return the body of an answer that is not streamed."""
    return situation.dialect.encode_message(chunks, situation.answer(chunks))


def opening(situation: Situation) -> Iterator[bytes]:
    """Yield what a stream says before its first word."""
    return events(situation, ())


def partial(situation: Situation) -> Iterator[bytes]:
    """Yield the events of an answer that breaks off after the partial text."""
    return events(situation, begun(situation.text(situation.options.partial_text)))


def half_message(situation: Situation) -> tuple[bytes, int]:
    """Return the first half of the partial text's message, and the length of the whole."""
    body = message(situation, situation.text(situation.options.partial_text))
    return body[: len(body) // 2], len(body)


def begun(chunks: Sequence[StreamChunk]) -> tuple[StreamChunk, ...]:
    """Return ``chunks`` without any end."""
    return tuple(takewhile(lambda chunk: not isinstance(chunk, (BlockEnd, UsageChunk, Finish)), chunks))


def first_told(situation: Situation, told: Sequence[bytes]) -> int:
    """Return which of the events ``told`` is the first to say text, by the dialect's own reader."""
    decoder = situation.dialect.decoder()
    return next(at for at, event in enumerate(told) if any(isinstance(c, TextDelta) for c in decoder.feed(event)))


def bodies(pieces: Iterable[bytes]) -> Iterator[Action]:
    """Yield one ``Body`` for each piece."""
    return (Body(piece) for piece in pieces)


def pause(milliseconds: int) -> Pause:
    """Return a pause; of no length it still lets others go first."""
    return Pause(milliseconds / 1000)


# ── Heads ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def answer_head(situation: Situation) -> Head:
    """Return the head of the success answer, streamed or whole, whatever follows it."""
    if situation.streamed:
        return stream_head(situation)
    return message_head(situation, len(message(situation, situation.text(situation.options.success_text))))


def stream_head(situation: Situation, *, content_type: str | None = None, headers: Headers = ()) -> Head:
    """Return the head of a stream, of the dialect's own type unless told otherwise."""
    own = content_type or situation.dialect.stream_type(situation.request)
    return Head(200, (("content-type", own), NO_CACHE, *request_id(situation), *headers))


def message_head(situation: Situation, length: int, *, content_type: str = JSON, headers: Headers = ()) -> Head:
    """Return the head of a message of ``length`` bytes."""
    known = (("content-type", content_type), ("content-length", str(length)))
    return Head(200, (*known, *request_id(situation), *headers))


def request_id(situation: Situation) -> Headers:
    """Return the header in which the provider names the request, if it has one."""
    name = REQUEST_ID.get(situation.dialect.name)
    return ((name, situation.options.request_id or f"req_{situation.token}"),) if name else ()


# dialect -> the header the official client reads a request's id from; Gemini's has none
REQUEST_ID = {
    "openai-chat": "x-request-id",
    "openai-responses": "x-request-id",
    "anthropic-messages": "request-id",
}
