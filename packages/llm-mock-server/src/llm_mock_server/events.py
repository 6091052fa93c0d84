"""What the command says while it runs: JSON Lines on its stdout.

A thread writes them. Whoever started the command may read its first line and never look again: the pipe fills, and a
server that waited for it would stop answering. What does not fit is counted and said later. When the reader is gone
the command is told.
"""

import asyncio
import os
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import msgspec
from llm_dialects import Json
from llm_dialects.wire import encode_json
from msgspec import Struct

from llm_mock_server.journal import CapturedRequest
from llm_mock_server.redaction import redact_url

REST = 0.002
"""Seconds between two writes. Waking the thread for every line would cost a busy server more than its answers do."""


class EventWriter:
    """Writes events to a file descriptor, in order, without ever making its caller wait.

    Args:
        descriptor: Where to write; None writes nothing.
        limit: How many events may wait to be written.
    """

    def __init__(self, descriptor: int | None, limit: int = 10_000) -> None:
        self._descriptor = descriptor
        self._limit = limit
        self._lines: deque[bytes] = deque()
        self._wake = threading.Semaphore(0)
        self._asleep = True  # the thread waits to be woken
        self._closing = False
        self._writing = descriptor is not None
        self._skipped = 0
        self._on_gone: Callable[[], object] = bool
        self._thread = threading.Thread(target=self._run, name="llm-mock-server events", daemon=True)
        if descriptor is not None:
            self._thread.start()

    def emit(self, kind: str, members: dict[str, Json]) -> None:
        """Write one event."""
        self.write(line_of(kind, members))

    def write(self, line: bytes) -> None:
        """Write one event, as a line."""
        if not self._writing:
            return
        if len(self._lines) >= self._limit:
            self._skipped += 1
            return
        if self._skipped:
            self._lines.append(line_of("skipped", {"events": self._skipped}))
            self._skipped = 0
        self._lines.append(line)
        if self._asleep:
            self._rouse()

    def watch(self, on_gone: Callable[[], object]) -> None:
        """Have ``on_gone`` called in the running loop once nobody can read any more what is written."""
        loop = asyncio.get_running_loop()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(on_gone)

        self._on_gone = tell
        if self._descriptor is None:
            return
        if not self._thread.is_alive():
            tell()
        elif sys.platform != "win32" and stat.S_ISFIFO(os.fstat(self._descriptor).st_mode):
            # The writing end of a pipe is readable when the other end is gone: seen before there is a next event.
            loop.add_reader(self._descriptor, self._gone, loop)

    def close(self, patience: float = 1.0) -> None:
        """Write what waits, unless nobody reads it for ``patience`` seconds."""
        if self._thread.is_alive():
            self._closing = True
            self._rouse()
            self._thread.join(patience)

    def _gone(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.remove_reader(self._descriptor or 0)
        self._on_gone()

    def _run(self) -> None:
        with suppress(OSError):
            while self._lines or not self._closing:
                self._wake.acquire()
                while waiting := len(self._lines):
                    write_all(self._descriptor or 0, b"".join([self._lines.popleft() for _ in range(waiting)]))
                    time.sleep(REST)
                self._asleep = True
                if self._lines:  # since the last look, by one who did not yet see it asleep
                    self._rouse()
            self._writing = False
            return
        self._writing = False
        self._on_gone()

    def _rouse(self) -> None:
        self._asleep = False
        self._wake.release()


def write_all(descriptor: int, data: bytes) -> None:
    """Write ``data``, in as many pieces as it takes."""
    while data:
        data = data[os.write(descriptor, data) :]


def line_of(kind: str, members: dict[str, Json]) -> bytes:
    """Return an event as a line."""
    return encode_json({"type": kind} | members) + b"\n"


def stdout_descriptor() -> int | None:
    """Return where stdout goes, None where the command was started without one."""
    return None if sys.stdout is None else sys.stdout.fileno()


def request_event(captured: CapturedRequest) -> bytes:
    """Return the line that is said when a request begins; no headers and no bodies: they hold secrets."""
    path = redact_url(captured.path) if "@" in captured.path else captured.path
    return event_line(Began(captured.number, captured.call, captured.kind, captured.dialect, captured.method, path))


def result_event(captured: CapturedRequest, dropped: int, dropped_cursors: int = 0) -> bytes:
    """Return the line that is said when it has ended; ``dropped``: how many entries the journal does not hold now,
    ``dropped_cursors``: how many cursors the script has not any more.
    """
    ended = Ended(
        captured.number,
        captured.call,
        captured.label,
        captured.cursor,
        captured.status,
        captured.outcome,
        captured.bodies_sent,
        captured.bytes_sent,
        captured.error_text,
        dropped,
        dropped_cursors,
    )
    return event_line(ended)


class Began(Struct, tag_field="type", tag="request"):
    """A request has begun."""

    number: int
    call: int | None
    kind: str
    dialect: str
    method: str
    path: str


class Ended(Struct, tag_field="type", tag="result", rename="camel", omit_defaults=True):
    """A request has ended."""

    number: int
    call: int | None
    label: str | None
    cursor: str | None
    status: int | None
    outcome: str | None
    bodies_sent: int
    bytes_sent: int
    error: str | None
    dropped: int = 0
    dropped_cursors: int = 0


def event_line(event: Began | Ended) -> bytes:
    """Return an event as a line. There are two with every request: a struct is written in a third of a dict's time."""
    try:
        return _encoder.encode(event) + b"\n"
    except UnicodeEncodeError:
        return encode_json(msgspec.to_builtins(event)) + b"\n"


_encoder = msgspec.json.Encoder()
