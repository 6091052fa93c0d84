"""The script that a session log holds: what the model answered, one entry per model call, in the order of the log.

A call is the run of ``assistant/chunk`` events of one turn and step up to its ``finish``; several calls may share a
turn and step (retries), and a ``finish`` that reports an error is an answer like any other. ``compaction/summary``
events marked ``llmStreamCall`` and ``llm/aux`` events are calls too. In the log of a foreign agent ``llm/call`` opens a
call and its chunks name it, so that calls may overlap. A call that never finished was thrown or cut off: no log can say
how, so it is ``Unfinished`` until an override stands in for it.
"""

from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import TypeVar

import msgspec
from llm_dialects import (
    Chunks,
    Entry,
    Finish,
    Json,
    StreamChunk,
    chunk_from_json,
    chunks_from_json,
)
from msgspec import Struct

from llm_replay.errors import FixtureError
from llm_replay.session_log import MEND, Event, SessionLog

T = TypeVar("T")

OVERRIDE_MEND = "say in replay.override.json how it ended (throw or hang), and set overridden = true in scenario.toml"


class Unfinished(Struct, frozen=True):
    """A call that the log begins and does not finish; ``where`` says which, ``line`` where it begins."""

    chunks: tuple[StreamChunk, ...]
    where: str
    file: str
    line: int

    def refusal(self) -> FixtureError:
        """Return the error that asks for an override."""
        what = f"the model call of {self.where} ended without a finish chunk (a thrown or cut stream)"
        return FixtureError(what, self.file, self.line, OVERRIDE_MEND)


class Script(Struct, frozen=True):
    """The calls of one log file. ``source`` is the file's name; child logs have ``primary`` false."""

    source: str
    entries: tuple[Entry | Unfinished, ...]
    recorded_id: str = ""
    created_at: float = 0
    primary: bool = True


def derive_replay_script(log: SessionLog) -> tuple[Entry, ...]:
    """Return one entry per model call of ``log``.

    Raises:
        FixtureError: a call is unfinished, or an event does not hold what it must.
    """
    return demand_finished(derive_calls(log))


def derive_calls(log: SessionLog) -> tuple[Entry | Unfinished, ...]:
    """Return one entry per model call of ``log``, unfinished ones as such.

    Events before the header's ``seedLength`` were inherited from the parent session and are nobody's call here.
    """
    grouping = _Grouping(log)
    for event in log.events[_seed_length(log) :]:
        grouping.take(event)
    return tuple(call.entry() for call in grouping.calls)


def demand_finished(entries: Iterable[Entry | Unfinished]) -> tuple[Entry, ...]:
    """Return ``entries`` after checking that an answer is known for each.

    Raises:
        FixtureError: one is unfinished.
    """
    finished: list[Entry] = []
    for entry in entries:
        if isinstance(entry, Unfinished):
            raise entry.refusal()
        finished.append(entry)
    return tuple(finished)


def derive_scripts(primary: SessionLog, children: Iterable[SessionLog] = ()) -> tuple[Script, ...]:
    """Return the scripts of a scenario's logs: the primary first, children by ``createdAt``, then ``id``.

    A normalised log has a time and an id that say nothing; such logs keep the order in which they come.
    """
    return (_script(primary, True), *(_script(child, False) for child in sorted(children, key=_birth)))


def _script(log: SessionLog, primary: bool) -> Script:
    return Script(
        source=PurePath(log.name).name,
        entries=derive_calls(log),
        recorded_id=str(log.header.get("id", "")),
        created_at=_birth(log)[0],
        primary=primary,
    )


def _birth(log: SessionLog) -> tuple[float, str]:
    created_at, recorded_id = log.header.get("createdAt"), log.header.get("id")
    return (created_at if isinstance(created_at, (int, float)) else 0), _real_id(recorded_id)


def _real_id(value: Json) -> str:
    """Return an id to sort by; a token (``{{sessionId:10}}``) is none, its number would sort as text."""
    return value if isinstance(value, str) and not value.startswith("{{") else ""


def _seed_length(log: SessionLog) -> int:
    length = log.header.get("seedLength", 0)
    if type(length) is not int or length < 0:
        raise FixtureError(f"seedLength must be a whole number, is {length!r}", log.name, 1, MEND)
    return length


class _Call:
    """A call in the making: its chunks may still be coming."""

    def __init__(self, where: str, file: str, line: int, chunks: Iterable[StreamChunk] = ()) -> None:
        self.where = where
        self.file = file
        self.line = line
        self.chunks = list(chunks)

    @property
    def finished(self) -> bool:
        return bool(self.chunks) and isinstance(self.chunks[-1], Finish)

    def entry(self) -> Entry | Unfinished:
        if self.finished:
            return Chunks(chunks=tuple(self.chunks))
        return Unfinished(tuple(self.chunks), self.where, self.file, self.line)


class _Grouping:
    """Sorts the chunks of one log into calls; a call stands where it begins."""

    def __init__(self, log: SessionLog) -> None:
        self.calls: list[_Call] = []
        self._log = log
        self._of_step: _Call | None = None
        self._by_number: dict[int, _Call] = {}

    def take(self, event: Event) -> None:
        """Take the next event of the log; those that tell of no call are passed over."""
        match event.type:
            case "assistant/chunk":
                call = self._numbered(event) if "call" in event.data else self._in_step(event)
                call.chunks.append(self._decode(event, chunk_from_json, event.data.get("chunk")))
            case "llm/call":
                number = self._new_number(event)
                self._by_number[number] = self._begin(f"call {number}", event)
            case "llm/retry" if not self._log.historical:
                # The historical rule does not look at retries: what it derives, chunk for chunk, is the point there.
                self._of_step = None
            case "llm/aux":
                self._begin("llm/aux", event, self._decode(event, _aux_chunks, event.data))
            case "compaction/summary" if event.data.get("llmStreamCall") is True:
                self._begin("compaction/summary", event, self._decode(event, _summary_chunks, event.data))

    def _begin(self, where: str, event: Event, chunks: Iterable[StreamChunk] = ()) -> _Call:
        call = _Call(where, self._log.name, event.line, chunks)
        self.calls.append(call)
        return call

    def _in_step(self, event: Event) -> _Call:
        """Return the open call of the event's turn and step, begun now where there is none."""
        where = f"turn {event.data.get('turn')}, step {event.data.get('step')}"
        if self._of_step is None or self._of_step.finished or self._of_step.where != where:
            self._of_step = self._begin(where, event)
        return self._of_step

    def _numbered(self, event: Event) -> _Call:
        """Return the call that the event names."""
        number = event.data["call"]
        call = self._by_number.get(number) if type(number) is int else None
        if call is None or call.finished:
            state = "has already finished" if call else "was never opened by llm/call"
            raise self._wrong(event, f"call {number!r} {state}")
        return call

    def _new_number(self, event: Event) -> int:
        number = event.data.get("call")
        if type(number) is not int or number in self._by_number:
            raise self._wrong(event, f"needs a call number of its own, has {number!r}")
        return number

    def _decode(self, event: Event, read: Callable[[Json], T], value: Json) -> T:
        try:
            return read(value)
        except (msgspec.ValidationError, KeyError, TypeError) as error:
            raise self._wrong(event, str(error)) from None

    def _wrong(self, event: Event, what: str) -> FixtureError:
        return FixtureError(f"{event.type}: {what}", self._log.name, event.line, MEND)


def _aux_chunks(data: Json) -> tuple[StreamChunk, ...]:
    """Return the chunks of an ``llm/aux`` event: ``{"purpose": ..., "chunks": [...]}``."""
    if not isinstance(data.get("chunks"), list):
        raise TypeError("needs a list of chunks")
    return chunks_from_json(data["chunks"])


def _summary_chunks(data: Json) -> tuple[StreamChunk, ...]:
    """Return what the summariser's stream must have said; the log keeps only its blocks and usage."""
    if not isinstance(data.get("rawOutput"), list):
        raise TypeError("llmStreamCall is set, so rawOutput must be a list of blocks")
    chunks: list[Json] = []
    for index, block in enumerate(data["rawOutput"]):
        chunks += [
            {"type": "block-start", "index": index, "blockType": block["type"]},
            {"type": "block-end", "index": index, "block": block},
        ]
    if "usage" in data:
        chunks.append({"type": "usage", "usage": data["usage"]})
    return chunks_from_json([*chunks, {"type": "finish", "reason": {"kind": "stop"}}])
