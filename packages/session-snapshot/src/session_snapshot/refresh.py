"""Refresh, keyless: replay, say what is different now and of what kind, and write it only when told to.

It rewrites goldens and the non-model events of session logs. What the model said, overrides, ``[expect]`` and
``workspace.expected/`` are the author's or the provider's: never touched.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from llm_replay import derive_calls, parse_log
from llm_replay.files import OVERRIDE

from session_snapshot.drift import Change, changes_between, group_lines
from session_snapshot.errors import FixtureError
from session_snapshot.fixtures import PROVENANCE, Committed, is_log, load_committed, pins_of
from session_snapshot.headers import SYSTEM_FILE, TOOLS_FILE, format_system, format_tools
from session_snapshot.provenance import Provenance, format_provenance, lock_of, make_provenance
from session_snapshot.replay import refuse_hollow, replay_loaded, surfaces_again
from session_snapshot.report import INTENT, Report, format_failures, format_report, grouped, menders
from session_snapshot.run import Capture
from session_snapshot.runroot import run_root
from session_snapshot.staging import swap
from session_snapshot.suites import Loaded, Place, load

Say = Callable[[str], None]


class Refreshed(msgspec.Struct, frozen=True):
    """One scenario replayed for a refresh."""

    loaded: Loaded
    committed: Committed
    report: Report
    capture: Capture
    changes: Sequence[Change]


def refresh_all(places: Sequence[Place], snapshots: Path, accept: bool, say: Say) -> int:
    """Show what changed, grouped, then scenario by scenario; write it with ``accept``. 0: nothing is left to do."""
    refreshed = []
    for place in places:
        refreshed.append(asyncio.run(replay_for_refresh(place)))
        say(f"{place.full_name}: {summary(refreshed[-1])}")
    red = [one for one in refreshed if not one.report.green]
    if not red:
        say("nothing changed")
        return 0
    for line in group_lines({one.loaded.place.full_name: one.changes for one in red}):
        say(line)
    for one in red:
        say("\n" + (format_failures(one.report) if accept else format_report(one.report, "")))
    for text, names in grouped((f.group, one.report.name) for one in red for f in one.report.failures).items():
        say(f"\nin {', '.join(names)}: {text}")
    refusals = refuse({one.report.name: one.report for one in red})
    for refusal in refusals:
        say(f"\nrefused: {refusal}")
    if refusals:
        return 1
    if not accept:
        say("\nnothing was written; add --accept to write it, then read the diff before you commit it")
        return 1
    for one in red:
        write(one, snapshots)
        say(f"{one.loaded.place.full_name}: rewritten")
    return 0


def refuse(red: Mapping[str, Report]) -> list[str]:
    """Why red scenarios cannot be mended by a refresh of just these, as sentences."""
    refusals = []
    for name, report in red.items():
        if None in menders(report):
            refusals.append(
                f"{name} is red for {unmendable(report)}, which no golden can mend\nmend: {BY_HAND} -- {name}"
            )
        elif others := menders(report) - red.keys():
            pinning = sorted(map(str, others))
            refusals.append(
                f"{name} is red for what {', '.join(pinning)} pins; refresh that as well\n"
                f"mend: nox -s snapshot_refresh -- {' '.join([name, *pinning])} --accept"
            )
    return refusals


def unmendable(report: Report) -> str:
    """The surfaces of a report that a refresh cannot mend, each once."""
    surfaces = dict.fromkeys(f.surface for f in report.failures if f.surface in INTENT or f.mended_by is None)
    return " and ".join(surfaces)


BY_HAND = (
    "correct the agent; or, if it is right, scenario.toml and workspace.expected/ by hand, "
    "and other model calls by nox -s snapshot_record"
)


def summary(one: Refreshed) -> str:
    """One scenario in a few words."""
    count = len(one.changes) or len(one.report.failures)
    return f"{count} difference{'s'[: count != 1]}" if count else "unchanged"


async def replay_for_refresh(place: Place) -> Refreshed:
    """Replay one scenario."""
    loaded = load(place)
    committed = load_committed(loaded)
    refuse_hollow(loaded.scenario, committed.recording, place)
    with run_root() as base:
        report, capture = await replay_loaded(loaded, committed, base)
    changes = [
        change
        for surface, name, expected in committed.surfaces({key: str(text) for key, text in report.actual.items()})
        for change in changes_between(surface, expected or "", str(report.actual.get(name, "")))
    ]
    return Refreshed(loaded, committed, report, capture, changes)


def write(one: Refreshed, snapshots: Path) -> None:
    """Swap the new goldens in.

    Raises:
        FixtureError: a log would lose or change what the model said.
    """
    folder = one.loaded.place.folder
    files = {name: str(text).encode() for name, text in one.report.actual.items()}
    for name in filter(is_log, files):
        refuse_other_answers(one, name, files[name].decode())
    files |= pin_of(one)
    kept = {name: (folder / name).read_bytes() for name in (OVERRIDE,) if (folder / name).is_file()}
    old_pin = {name: (folder / name).read_bytes() for name in (SYSTEM_FILE, TOOLS_FILE) if (folder / name).is_file()}
    logs = {name: text.encode() for name, text in one.committed.texts.items()}
    provenance = new_provenance(one, logs | old_pin | kept | files)
    swap(snapshots, folder, files | {PROVENANCE: format_provenance(provenance).encode()}, [])
    pins_of.cache_clear()


def refuse_other_answers(one: Refreshed, name: str, text: str) -> None:
    """Refuse a log in which the model says anything else than it did."""
    before = derive_calls(parse_log(one.committed.texts[name], name)) if name in one.committed.texts else ()
    after = derive_calls(parse_log(text, name))
    if [entry.chunks for entry in before] != [entry.chunks for entry in after]:
        raise FixtureError(
            "the replay's log does not say what the model said",
            f"{one.loaded.place.full_name}/{name}",
            None,
            f"nox -s snapshot_record -- {one.loaded.place.full_name}",
        )


def pin_of(one: Refreshed) -> dict[str, bytes]:
    """The pin's new content, where this scenario pins its class and the header changed."""
    header = one.loaded.scenario.header
    if not header.pin or not one.capture.calls:
        return {}
    live = surfaces_again(one.loaded, one.committed, one.capture).headers[:1]
    return {
        name: text.encode()
        for header in live
        for name, text in ((SYSTEM_FILE, format_system(header.system)), (TOOLS_FILE, format_tools(header.tools)))
    }


def new_provenance(one: Refreshed, files: dict[str, bytes]) -> Provenance:
    """The old provenance, made by refresh now."""
    old = one.committed.provenance
    model = one.loaded.agent.model
    return make_provenance(
        "refresh",
        old.upstream if old else "none",
        one.capture.agent_info,
        old.model if old else "",
        old.dialect if old else (model.dialect if model else ""),
        lock_of(one.loaded),
        {name: content for name, content in files.items() if name != PROVENANCE},
        one.capture.counts,
        old.source if old else "",
    )
