"""Behaviours of the connection: it is reset, ends, falls silent, leads elsewhere, or comes a byte at a time. Pure."""

import zlib
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from llm_dialects import Action, Body, Head, Reset, Stall

from llm_mock_server.behaviours_parts import (
    answer_head,
    answered,
    bodies,
    events,
    half_message,
    message,
    message_head,
    opening,
    partial,
    pause,
    request_id,
    stream_head,
    tell,
)
from llm_mock_server.situation import Situation

FOREIGN_TEXT = " – žluťoučký 漢字 🙂"
"""What ``trickle`` adds to a text of ASCII only, so that there are characters to split: of 2, 3 and 4 bytes."""


def connection_reset(situation: Situation) -> Iterator[Action]:  # noqa: ARG001 - the signature of every behaviour
    """Reset before the head."""
    yield Reset("rst")


def stream_disconnect(situation: Situation) -> Iterator[Action]:
    """Reset after the head."""
    yield answer_head(situation)
    yield pause(situation.options.disconnect_delay_ms)
    yield Reset("rst")


def stream_eof(situation: Situation) -> Iterator[Action]:
    """End properly before the first word: after what begins a stream, or a document."""
    if situation.streamed:
        yield stream_head(situation)
        yield from bodies(opening(situation))
    else:
        yield from answered(situation, message(situation, situation.text(situation.options.success_text))[:1])


def partial_eof(situation: Situation) -> Iterator[Action]:
    """End properly in the middle: without the stream's last events, or with half a document."""
    if situation.streamed:
        yield stream_head(situation)
        yield from bodies(partial(situation))
        return
    half, _ = half_message(situation)
    yield from answered(situation, half)


def partial_disconnect(situation: Situation) -> Iterator[Action]:
    """Reset in the middle."""
    if situation.streamed:
        yield stream_head(situation)
        yield from bodies(partial(situation))
    else:
        half, length = half_message(situation)
        yield message_head(situation, length)
        yield Body(half)
    yield pause(situation.options.disconnect_delay_ms)
    yield Reset("rst")


def stall(situation: Situation) -> Iterator[Action]:
    """Fall silent after the head."""
    yield answer_head(situation)
    yield Stall()


def slow_headers(situation: Situation) -> Iterator[Action]:
    """Answer after a silence."""
    yield pause(situation.options.headers_delay_ms)
    yield from tell(situation, situation.text(situation.options.success_text))


def trickle(situation: Situation) -> Iterator[Action]:
    """Answer a byte at a time."""
    said = situation.options.success_text
    head, *rest = tell(situation, situation.text(said + FOREIGN_TEXT if said.isascii() else said))
    yield head
    for action in rest:
        assert isinstance(action, Body)
        yield from (Body(action.data[at : at + 1]) for at in range(len(action.data)))


def gzip(situation: Situation) -> Iterator[Action]:
    """Answer compressed, each event readable at once; plainly where the client does not want it so."""
    chunks = situation.text(situation.options.success_text)
    encoded = (("content-encoding", "gzip"), ("vary", "accept-encoding"))
    if not situation.accepts_gzip:
        yield from tell(situation, chunks)
    elif situation.streamed:
        yield stream_head(situation, headers=encoded)
        yield from bodies(compressed(events(situation, chunks)))
    else:
        body = b"".join(compressed([message(situation, chunks)]))
        yield message_head(situation, len(body), headers=encoded)
        yield Body(body)


def compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield ``pieces`` as one gzip stream, flushed after each; the last piece is gzip's own end."""
    squeeze = zlib.compressobj(wbits=zlib.MAX_WBITS | GZIP)
    for piece in pieces:
        yield squeeze.compress(piece) + squeeze.flush(zlib.Z_SYNC_FLUSH)
    yield squeeze.flush()


def redirect(situation: Situation) -> Iterator[Action]:
    """Send the client elsewhere; its method and body go with it."""
    headers = (("location", location(situation)), ("content-length", "0"), *request_id(situation))
    yield Head(307, headers)


def location(situation: Situation) -> str:
    """Return where to: the option, else what was asked with a mark that shows in the journal.

    A mark that is a fragment leaves path and query as they were, where nobody knows them.
    """
    if situation.options.redirect_to is not None:
        return situation.options.redirect_to
    mark = f"redirected={quote(situation.token, safe='')}"
    if not situation.target:
        return f"#{mark}"
    # A reference that begins with two slashes would name a host.
    same = f"/.{situation.target}" if situation.target.startswith("//") else situation.target
    return f"{same}{'&' if '?' in same else '?'}{mark}"


GZIP = 16
"""What zlib adds to a window's size for gzip's own head and tail."""
