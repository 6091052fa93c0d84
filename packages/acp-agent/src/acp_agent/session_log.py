"""The session log: ``<root>/<session id>/session.jsonl``, a header line and one line per event.

An event is ``{"type", "seq", "time", "data"}``; ``seq`` counts from 0 without a gap, ``time`` is in milliseconds since
the epoch. Each event is handed to the operating system before ``append`` returns, whole or not at all: a full disk
raises ``OSError`` and leaves the log as it was.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

FILE_NAME = "session.jsonl"
Json = Any


class Event(Struct, frozen=True):
    """One line of a log after the header."""

    type: str
    seq: int
    time: int
    data: dict[str, Json]


class BrokenLog(ValueError):
    """A stored log that cannot be continued; the text names file and line."""


class SessionLog:
    """An open log: events go in at the end."""

    def __init__(self, path: Path, now_ms: Callable[[], int], next_seq: int = 0) -> None:
        self.path = path
        self._now_ms = now_ms
        self._next_seq = next_seq
        self._file = path.open("ab", buffering=0)

    def append(self, type: str, **data: Json) -> Event:
        """Write one event and return it."""
        event = Event(type, self._next_seq, self._now_ms(), data)
        self.write(event)
        self._next_seq += 1
        return event

    def close(self) -> None:
        """Release the file; may be called twice."""
        self._file.close()

    def write(self, value: Event | dict[str, Json]) -> None:
        """Write one line as it is, or restore the file's length and raise."""
        start = os.fstat(self._file.fileno()).st_size
        rest = memoryview(msgspec.json.encode(value) + b"\n")
        try:
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
        except OSError:
            self._file.truncate(start)
            raise


def create_log(root: Path, session_id: str, cwd: str, now_ms: Callable[[], int]) -> SessionLog:
    """Start the log of a new session: makes its folder and writes the header."""
    folder = root / session_id
    folder.mkdir(parents=True)
    log = SessionLog(folder / FILE_NAME, now_ms)
    header = {"type": "session", "format": "session-snapshot", "version": 1}
    log.write(header | {"id": session_id, "createdAt": now_ms(), "cwd": cwd})
    return log


def reopen_log(root: Path, session_id: str, now_ms: Callable[[], int]) -> tuple[SessionLog, list[Event]]:
    """Open a stored log to continue it, and return its events.

    A last line that a crash cut short is removed. Raises ``FileNotFoundError`` or ``BrokenLog``.
    """
    path = root / session_id / FILE_NAME
    raw = path.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    events = read_events(whole, str(path))
    if len(whole) < len(raw):
        os.truncate(path, len(whole))
    return SessionLog(path, now_ms, next_seq=len(events)), events


def read_events(raw: bytes, name: str) -> list[Event]:
    """Return the events of a log; ``name`` is for messages."""
    lines = raw.splitlines()
    if not lines:
        raise BrokenLog(f"{name}:1: no header line")
    events: list[Event] = []
    for number, line in enumerate(lines[1:], 2):
        try:
            event = msgspec.json.decode(line, type=Event)
        except msgspec.DecodeError as error:
            raise BrokenLog(f"{name}:{number}: {error}") from None
        if event.seq != len(events):
            raise BrokenLog(f"{name}:{number}: seq {event.seq} where {len(events)} was due")
        events.append(event)
    return events
