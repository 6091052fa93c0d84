"""Server-sent events, as the HTML standard defines them: bytes in, events out, and the other way round."""

import re

from msgspec import Struct


class SseEvent(Struct, frozen=True):
    """One event; ``event`` is ``None`` where the stream names none, ``id`` the last one seen (the standard's rule)."""

    data: str
    event: str | None = None
    id: str | None = None


def encode_event(data: str, event: str | None = None, id: str | None = None) -> bytes:
    """Return the bytes of one event; ``data`` may have several lines."""
    named = [f"event: {event}"] if event is not None else []
    numbered = [f"id: {id}"] if id is not None else []
    lines = [*named, *numbered, *(f"data: {line}" for line in _LINE_END.split(data))]
    return ("\n".join(lines) + "\n\n").encode()


class SseDecoder:
    """Reads a stream in pieces cut anywhere, with LF, CRLF or CR line ends."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of the line that has no end yet
        self._after_cr = False  # the next LF belongs to a line end already seen
        self._at_start = True
        self._lines: list[bytes] = []  # of the event that has no end yet
        self._id: str | None = None

    def feed(self, data: bytes) -> list[SseEvent]:
        """Return the events that ``data`` completes."""
        if self._after_cr and data.startswith(b"\n"):
            data, self._after_cr = data[1:], False
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        if b"\n" not in data and b"\r" not in data:
            self._pieces.append(data)
            return []
        *lines, rest = _LINE_END_BYTES.split(b"".join(self._pieces) + data)
        self._pieces = [rest]
        return [event for line in lines if (event := self._line(line)) is not None]

    def close(self) -> bytes:
        """Return what the end of the stream cut off: an event without its empty line is not an event."""
        return b"\n".join([*self._lines, b"".join(self._pieces)])

    def _line(self, line: bytes) -> SseEvent | None:
        """Take one line; return the event it ends, if it does."""
        if self._at_start:
            line, self._at_start = line.removeprefix(b"\xef\xbb\xbf"), False
        if line:
            self._lines.append(line)
            return None
        lines, self._lines = self._lines, []
        return self._event(lines)

    def _event(self, lines: list[bytes]) -> SseEvent | None:
        data: list[str] = []
        event: str | None = None
        for line in lines:
            name, _, value = line.decode("utf-8", "replace").partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                data.append(value)
            elif name == "event":
                event = value or None
            elif name == "id" and "\0" not in value:
                self._id = value
        return SseEvent("\n".join(data), event, self._id) if data else None


_LINE_END = re.compile(r"\r\n|\r|\n")
_LINE_END_BYTES = re.compile(rb"\r\n|\r|\n")
