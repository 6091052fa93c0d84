"""Replay scenarios anew, keyless, and find what of their goldens is different now."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from llm_replay import Header
from msgspec import Struct

from session_snapshot.changes.drift import Change, changes_of, compared
from session_snapshot.fixtures import PROVENANCE, Committed, load_committed
from session_snapshot.headers import SYSTEM_FILE, TOOLS_FILE, format_system, format_tools
from session_snapshot.hunks import Texts, texts_of
from session_snapshot.provenance import Frames
from session_snapshot.replay import refuse_hollow, replay_loaded, surfaces_again
from session_snapshot.report import Report
from session_snapshot.run import Capture
from session_snapshot.runroot import run_root
from session_snapshot.suites import Loaded, Place, load

S = TypeVar("S")
T = TypeVar("T")
Say = Callable[[str], None]

MOST_AT_ONCE = 4


class Pending(Struct, frozen=True):
    """One scenario replayed: what it is now, held against what is committed. ``texts`` are by file name.

    ``live`` are the texts of its live headers, as their files would hold them, ``pin`` is that one of them which it
    pins, if it does.
    """

    loaded: Loaded
    committed: Committed
    report: Report
    capture: Capture
    texts: Mapping[str, Texts]
    changes: Sequence[Change]
    live: Sequence[Mapping[str, str]] = ()
    pin: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        """``suite/scenario``."""
        return self.report.name


def replay_all(places: Sequence[Place], say: Say) -> list[Pending]:
    """Replay all of them, some at a time; those that are for other platforms are left out, and said to be.

    Raises:
        FixtureError: the committed files of one are wrong.
    """
    return asyncio.run(replay_side_by_side(places, say))


async def replay_side_by_side(places: Sequence[Place], say: Say) -> list[Pending]:
    """Replay all of them."""
    done = 0

    async def replay(place: Place, base: Path) -> Pending | None:
        nonlocal done
        found = await replay_for_refresh(place, base)
        done += 1
        say(f"[{done}/{len(places)}] {place.full_name}: {summary(found, place)}")
        return found

    return [one for one in await side_by_side(places, replay) if one is not None]


async def side_by_side(subjects: Sequence[S], work: Callable[[S, Path], Awaitable[T]]) -> list[T]:
    """Do the same for each, some at a time, in one run root; what came of it, in their order.

    Raises:
        Exception: what the first that failed raised, when none runs any more.
    """
    slots = asyncio.Semaphore(min(os.cpu_count() or 1, MOST_AT_ONCE))

    async def one(subject: S, base: Path) -> T:
        async with slots:
            return await work(subject, base)

    with run_root() as base:
        outcomes = await asyncio.gather(*(one(subject, base) for subject in subjects), return_exceptions=True)
    return [the_value(outcome) for outcome in outcomes]


def the_value(outcome: T | BaseException) -> T:
    """What came of something; what it raised is raised."""
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def summary(one: Pending | None, place: Place) -> str:
    """One scenario in a few words."""
    if one is None:
        return f"skipped, platforms = {load(place).scenario.platforms}"
    count = len(one.changes) or len(one.report.failures)
    return f"{count} difference{'s'[: count != 1]}" if count else "unchanged"


async def replay_for_refresh(place: Place, base: Path) -> Pending | None:
    """Replay one scenario; ``None`` where it is for other platforms.

    One that is red is replayed again, each step until nothing more comes: the committed pace is not its own any more.
    """
    loaded = load(place)
    if loaded.scenario.platforms and sys.platform not in loaded.scenario.platforms:
        return None
    committed = load_committed(loaded)
    refuse_hollow(loaded.scenario, committed.recording, place)
    report, capture = await replay_loaded(loaded, committed, base)
    if not report.green:
        first = report
        report, capture = await replay_loaded(loaded, unpaced(committed), base)
        if report.green:
            report = msgspec.structs.replace(report, failures=first.failures)
    return pending(loaded, committed, report, capture)


def unpaced(committed: Committed) -> Committed:
    """The same, as if no frames had been counted yet."""
    old = committed.provenance
    return msgspec.structs.replace(
        committed, provenance=None if old is None else msgspec.structs.replace(old, frames=Frames())
    )


def pending(loaded: Loaded, committed: Committed, report: Report, capture: Capture) -> Pending:
    """What a replay shows."""
    if report.green:
        return Pending(loaded, committed, report, capture, {}, [])
    surfaces = surfaces_again(loaded, committed, capture)
    live = [texts_of_header(header) for header in surfaces.headers]
    pin = new_pin(loaded, live, surfaces.classes)
    texts: dict[str, Texts] = {}
    changes: list[Change] = []
    for surface, name, expected in committed.surfaces({key: str(text) for key, text in report.actual.items()}):
        actual = report.actual.get(name)
        texts[name] = compared(surface, name, expected, None if actual is None else str(actual))
        changes += changes_of(surface, texts[name])
    for name, text in pin.items():
        path = loaded.place.folder / name
        texts[name] = texts_of(name, path.read_text(encoding="utf-8") if path.is_file() else None, text)
        changes += changes_of("requests", texts[name])
    if not changes:
        texts[PROVENANCE] = pace_texts(committed, capture)
        changes += changes_of("stdout", texts[PROVENANCE])
    return Pending(loaded, committed, report, capture, texts, changes, live, pin)


def new_pin(loaded: Loaded, live: Sequence[Mapping[str, str]], classes: Sequence[str]) -> Mapping[str, str]:
    """The files of the pin as they would be now, where this scenario pins its class."""
    header = loaded.scenario.header
    own = (texts for texts, name in zip(live, classes, strict=False) if header.pin and name == header.class_)
    return next(own, {})


def texts_of_header(header: Header) -> dict[str, str]:
    """A header as the files of a pin hold it."""
    return {SYSTEM_FILE: format_system(header.system), TOOLS_FILE: format_tools(header.tools)}


def pace_texts(committed: Committed, capture: Capture) -> Texts:
    """How many frames belonged to each step, and how many do now."""
    old = committed.provenance.frames.steps if committed.provenance is not None else []
    texts = (json.dumps([dict(sorted(step.items())) for step in steps]) for steps in (old, capture.counts))
    return texts_of(PROVENANCE, *texts)
