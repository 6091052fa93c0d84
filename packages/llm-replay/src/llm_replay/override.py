"""``replay.override.json``: what a log cannot hold (failures, hangs, another answer), laid over the derived script.

A bare array of entries replaces the script of lane 0. ``{"patches": [{"at", "entry", "lane"?}]}`` keeps what was
derived and swaps single calls, counted from 0 within their lane (0 where none is named); ``at`` equal to the lane's
length appends.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from llm_dialects import Entry, EntryError, Json, entry_from_json
from msgspec import Struct

from llm_replay.errors import FixtureError
from llm_replay.lines import decode

MEND = "correct the entry; the kinds are chunks, throw and hang"
SAFE_INTEGER = 2**53 - 1


class Replacement(Struct, frozen=True):
    """All of lane 0, replaced."""

    entries: tuple[Entry, ...]
    name: str


class Patch(Struct, frozen=True):
    """One call, swapped or appended."""

    at: int
    entry: Entry
    lane: int = 0


class Patches(Struct, frozen=True):
    """Single calls, swapped or appended; ``at`` and ``lane`` together occur once."""

    patches: tuple[Patch, ...]
    name: str


Override = Replacement | Patches


def parse_override(text: str, name: str) -> Override:
    """Read an override document.

    Raises:
        FixtureError: not JSON, an unknown or missing key, a value of the wrong kind, a duplicate patch.
    """
    try:
        value = decode(text)
    except ValueError as error:
        raise FixtureError(f"not JSON ({error})", name, mend=MEND) from None
    try:
        return _read(value, name)
    except EntryError as error:
        raise FixtureError(f"invalid override: {error}", name, mend=MEND) from None


T = TypeVar("T")


def apply_override(lanes: Sequence[Sequence[T]], override: Override) -> tuple[tuple[T | Entry, ...], ...]:
    """Return ``lanes`` with ``override`` laid over them.

    Raises:
        FixtureError: a patch is beyond the end of its lane, or its lane does not exist.
    """
    if isinstance(override, Replacement):
        return (override.entries, *(tuple(lane) for lane in lanes[1:]))
    result: list[list[T | Entry]] = [list(lane) for lane in lanes]
    for patch in sorted(override.patches, key=lambda patch: (patch.lane, patch.at)):
        _apply(result, patch, override.name)
    return tuple(tuple(lane) for lane in result)


def _apply(lanes: list[list[T | Entry]], patch: Patch, name: str) -> None:
    if patch.lane >= len(lanes):
        what = f"a patch names lane {patch.lane}, the recording has {len(lanes)}"
        raise FixtureError(what, name, mend="name a recorded lane; they count from 0")
    lane = lanes[patch.lane]
    if patch.at > len(lane):
        what = f"a patch is at call {patch.at} of lane {patch.lane}, which has {len(lane)} calls"
        raise FixtureError(what, name, mend=f"use an index up to {len(lane)}, which appends")
    lane[patch.at : patch.at + 1] = [patch.entry]


def _read(value: Json, name: str) -> Override:
    if isinstance(value, list):
        entries = tuple(entry_from_json(entry, f"entries[{at}]") for at, entry in enumerate(value))
        return Replacement(entries=entries, name=name)
    if not isinstance(value, dict) or set(value) != {"patches"} or not isinstance(value["patches"], list):
        raise EntryError('document: must be an array of entries, or an object of one key: {"patches": [...]}')
    patches = tuple(_patch(patch, f"patches[{at}]") for at, patch in enumerate(value["patches"]))
    _refuse_duplicates(patches)
    return Patches(patches=patches, name=name)


def _patch(value: Json, where: str) -> Patch:
    if not isinstance(value, dict) or not {"at", "entry"} <= set(value) <= {"at", "entry", "lane"}:
        raise EntryError(f"{where}: must be an object with at, entry and perhaps lane, and no other key")
    return Patch(
        at=_index(value["at"], f"{where}.at"),
        entry=entry_from_json(value["entry"], f"{where}.entry"),
        lane=_index(value.get("lane", 0), f"{where}.lane"),
    )


def _index(value: Json, where: str) -> int:
    if type(value) is not int or not 0 <= value <= SAFE_INTEGER:
        raise EntryError(f"{where}: must be a whole number from 0, is {value!r}")
    return value


def _refuse_duplicates(patches: Iterable[Patch]) -> None:
    seen: set[tuple[int, int]] = set()
    for at, patch in enumerate(patches):
        if (patch.lane, patch.at) in seen:
            raise EntryError(f"patches[{at}]: call {patch.at} of lane {patch.lane} is patched twice")
        seen.add((patch.lane, patch.at))
