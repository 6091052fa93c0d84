"""What a script entry looks like on the wire: chunks, failures and silence become actions in a dialect. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import assert_never

from llm_dialects import (
    Action,
    Answer,
    Body,
    Chunks,
    Dialect,
    Entry,
    Hang,
    Head,
    ProviderError,
    Request,
    Reset,
    Stall,
    StreamChunk,
    Throw,
    Wire,
    failure_in,
    is_streamed,
    status_of,
)
from llm_dialects.dialect import EVENT_STREAM
from llm_dialects.errors import finish_of
from llm_dialects.telling import End
from msgspec import UNSET, UnsetType

NO_CACHE = ("cache-control", "no-cache")

EVENTS_HEAD = Head(200, (("content-type", EVENT_STREAM), NO_CACHE))
"""The head of a stream of server-sent events: nearly every one, so it is made once."""


EVENT_END = re.compile(rb"(?<=\n\n)|(?<=\r\n\r\n)")

ENDS: Mapping[End, tuple[Action, ...]] = {
    "complete": (),
    "cut": (Reset("fin"),),
    "reset": (Reset("rst"),),
    "silence": (Stall(),),
}


class Unanswerable(Exception):
    """What a responder raises where it has no answer, and words of its own that say why.

    The client is told ``failure``; the exception is kept in ``failures`` as any other.
    """

    def __init__(self, failure: ProviderError) -> None:
        super().__init__(failure.message)
        self.failure = failure


def entry_reply(
    dialect: Dialect, request: Request, entry: Entry, answer: Answer, on_ready: Callable[[], None] | None = None
) -> Iterator[Action]:
    """Return the actions that answer ``request`` with ``entry``, streamed or whole as the request asks.

    ``on_ready`` is called once a ``Hang`` has said all it will say, before the silence.
    """
    if isinstance(entry.wire, UnsetType):
        return meant_reply(dialect, request, entry, answer, on_ready)
    own = meant_reply(dialect, request, entry, answer, None)
    return told_as(dialect, own, entry.wire, on_ready if isinstance(entry, Hang) else None)


def meant_reply(
    dialect: Dialect, request: Request, entry: Entry, answer: Answer, on_ready: Callable[[], None] | None
) -> Iterator[Action]:
    """Return the actions that tell what ``entry`` means, in the dialect's own way."""
    match entry:
        case Chunks():
            return chunks_reply(dialect, request, entry.chunks, answer)
        case Throw():
            return throw_reply(dialect, request, entry, answer)
        case Hang():
            return hang_reply(dialect, request, entry, answer, on_ready)
        case _:
            assert_never(entry)


def chunks_reply(dialect: Dialect, request: Request, chunks: Sequence[StreamChunk], answer: Answer) -> Iterator[Action]:
    """Return an answer: one ``Body`` per event of a stream, or one message.

    A failure that the chunks finish with is an error event of the stream; a message has no place for it and becomes an
    HTTP error.
    """
    if is_streamed(request):
        return stream_prefix(dialect, chunks, answer)
    failure = failure_in(chunks)
    if failure is not None:
        return iter(failure_reply(dialect, failure))
    return iter(whole(200, dialect.encode_message(chunks, answer)))


def throw_reply(dialect: Dialect, request: Request, entry: Throw, answer: Answer) -> Iterator[Action]:
    """Yield a failure: an HTTP error, or what was said before it and then the dialect's error event.

    A connection that is lost in the middle ends without the stream's end and not with a reset, which may overtake
    what was said before it.
    """
    error = ProviderError(entry.code, entry.message, None if entry.status is UNSET else entry.status)
    begun = bool(entry.chunks) or entry.accepted is True
    if not begun or not is_streamed(request):
        yield from failure_reply(dialect, error)
        return
    lost = status_of(error) is None
    yield from stream_prefix(dialect, entry.chunks if lost else (*entry.chunks, finish_of(error)), answer)
    if lost:
        yield Reset("fin")


def hang_reply(
    dialect: Dialect, request: Request, entry: Hang, answer: Answer, on_ready: Callable[[], None] | None
) -> Iterator[Action]:
    """Yield the beginning of an answer and then silence; a message that is not streamed does not even begin."""
    if is_streamed(request) and entry.chunks:
        yield from stream_prefix(dialect, entry.chunks, answer)
    if on_ready is not None:
        on_ready()
    yield Stall()


def told_as(
    dialect: Dialect, reply: Iterable[Action], wire: Wire, on_ready: Callable[[], None] | None = None
) -> Iterator[Action]:
    """Yield ``reply`` with what its provider put otherwise; status and body only where this is its dialect.

    ``on_ready`` is called once all is said but the end.
    """
    own = wire.dialect == dialect.name
    status = wire.status if own and isinstance(wire.status, int) else None
    body = wire.body if own and isinstance(wire.body, bytes) else None
    begun, end = False, ENDS["complete"]
    for action in reply:
        if isinstance(action, Head):
            begun = True
            yield relabelled(action, wire, status, body)
        elif isinstance(action, (Stall, Reset)):
            end = (action,)
        elif body is None or not isinstance(action, Body):
            yield action
    if status is not None and not begun:
        yield relabelled(Head(status), wire, status, body)
    yield from map(Body, pieces_of(body or b""))
    if on_ready is not None:
        on_ready()
    yield from end if isinstance(wire.end, UnsetType) else ENDS[wire.end]


def relabelled(head: Head, wire: Wire, status: int | None, body: bytes | None) -> Head:
    """Return ``head`` with the status and the headers of ``wire``, and the length of ``body`` if it is known."""
    given = dict(wire.headers)
    kept = {name: value for name, value in head.headers if name not in given}
    if wire.end in ("cut", "reset", "silence"):
        kept.pop("content-length", None)
    elif body is not None and "content-length" in kept:
        kept["content-length"] = str(len(body))
    told = tuple((name, value) for name, value in given.items() if value)
    return Head(head.status if status is None else status, (*kept.items(), *told))


def pieces_of(body: bytes) -> list[bytes]:
    """Return ``body`` cut behind each empty line: the events of a stream, or all of it."""
    return [piece for piece in EVENT_END.split(body) if piece]


def failure_reply(
    dialect: Dialect, error: ProviderError, headers: tuple[tuple[str, str], ...] = ()
) -> tuple[Action, ...]:
    """Return an HTTP error in the dialect's words, or a reset where the code has no status."""
    status = status_of(error)
    return (Reset("rst"),) if status is None else whole(status, dialect.error_body(error), headers)


def whole(status: int, body: bytes, headers: tuple[tuple[str, str], ...] = ()) -> tuple[Action, ...]:
    """Return a JSON response of known length."""
    length = ("content-length", str(len(body)))
    return Head(status, (("content-type", "application/json"), length, *headers)), Body(body)


def stream_prefix(dialect: Dialect, chunks: Sequence[StreamChunk], answer: Answer) -> Iterator[Action]:
    """Yield the head of a stream and its events."""
    yield stream_head(answer)
    for event in dialect.encode_stream(chunks, answer):
        yield Body(event)


def in_a_burst(actions: Iterable[Action]) -> Iterator[Action]:
    """Yield ``actions``, those bodies as one between which nothing happens: a stream that leaves in one write."""
    pieces: list[bytes] = []
    for action in actions:
        if isinstance(action, Body):
            pieces.append(action.data)
            continue
        if pieces:
            yield Body(b"".join(pieces))
            pieces = []
        yield action
    if pieces:
        yield Body(b"".join(pieces))


def stream_head(answer: Answer) -> Head:
    """Return the head of a streamed answer."""
    if answer.stream_type == EVENT_STREAM:
        return EVENTS_HEAD
    return Head(200, (("content-type", answer.stream_type), NO_CACHE))
