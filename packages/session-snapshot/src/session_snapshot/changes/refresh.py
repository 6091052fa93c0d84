"""Refresh, keyless: replay, say what is different now and of what kind, and write it only when told to.

It is all or nothing: where one scenario cannot be written as asked, none is.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from msgspec import Struct

from session_snapshot.changes.drift import KINDS, Kind, counted, group_lines
from session_snapshot.changes.goldens import Accepted, Files, NotWritten, chosen_files, prove, write
from session_snapshot.changes.pending import Pending, Say, replay_all, side_by_side
from session_snapshot.provenance import edit_notes
from session_snapshot.report import INTENT, Report, format_failures, format_report, grouped, menders
from session_snapshot.suites import Place


class Written(Struct, frozen=True):
    """What would be written for one scenario."""

    one: Pending
    accepted: Accepted
    files: Files

    @property
    def left(self) -> int:
        """How many differences stay red."""
        return len(self.one.changes) - len(self.accepted)


def refresh_all(places: Sequence[Place], snapshots: Path, kinds: AbstractSet[Kind], say: Say) -> int:
    """Show what changed, grouped, then scenario by scenario; write what is of these ``kinds``. 0: nothing is left to
    do."""
    replayed = replay_all(places, say)
    red = [one for one in replayed if not one.report.green]
    if not red:
        return seal([one for one in replayed if is_stale(one)], snapshots, accept=len(kinds) == len(KINDS), say=say)
    show(red, bool(kinds), say)
    refusals = refuse(red, whole=len(kinds) in (0, len(KINDS)))
    try:
        chosen = [] if refusals else choose(red, kinds)
        proved = asyncio.run(prove_all(chosen, say)) if chosen else []
    except NotWritten as error:
        refusals.append(str(error))
    for refusal in refusals:
        say(f"\nrefused: {refusal}")
    if refusals:
        if kinds:
            say("\nnothing was written, in no scenario")
        return 1
    if not kinds:
        say(f"\nnothing was written; {HOW}, then read the diff before you commit it")
        return 1
    return finish(red, proved, kinds, snapshots, say)


def seal(stale: Sequence[Pending], snapshots: Path, accept: bool, say: Say) -> int:
    """Write the provenance of green scenarios whose files were edited into what the agent does, or that have none."""
    if not stale:
        say("nothing changed")
        return 0
    try:
        files = [(one, chosen_files(one, frozenset())) for one in stale]
    except NotWritten as error:
        say(f"\nrefused: {error}")
        return 1
    for one, new in files:
        say(f"{one.name}: green, and provenance.toml does not tell of its files as they are")
        if accept:
            write(one, new, snapshots)
            say(f"{one.name}: provenance.toml rewritten")
    if not accept:
        say("\nnothing was written; add --accept to write it")
    return int(not accept)


def is_stale(one: Pending) -> bool:
    """Whether the provenance of a scenario is missing, or is of other files."""
    place, scenario = one.loaded.place, one.loaded.scenario
    return bool(edit_notes(one.committed.provenance, place.folder, scenario.recording))


HOW = "add --accept to write it, or --accept-kind KIND to write some"


def show(red: Sequence[Pending], writing: bool, say: Say) -> None:
    """What changed: a line per kind of change with its scenarios, then each scenario, then what they share."""
    say("")
    for line in group_lines({one.name: one.changes for one in red}):
        say(line)
    for one in red:
        say("\n" + (format_failures(one.report) if writing else format_report(one.report, "")))
    for text, names in grouped((f.group, one.name) for one in red for f in one.report.failures).items():
        say(f"\nin {', '.join(names)}: {text}")


def choose(red: Sequence[Pending], kinds: AbstractSet[Kind]) -> list[Written]:
    """What would be written.

    Raises:
        NotWritten: something cannot be.
    """
    chosen = []
    for one in red:
        accepted = frozenset(at for at, change in enumerate(one.changes) if change.kind in kinds)
        if accepted:
            chosen.append(Written(one, accepted, chosen_files(one, accepted)))
    return chosen


async def prove_all(chosen: Sequence[Written], say: Say) -> Sequence[Written]:
    """Replay every scenario with its new files.

    Raises:
        NotWritten: one does not hold.
    """

    async def proved(written: Written, base: Path) -> Written:
        await prove(written.one, written.files, written.accepted, base)
        say(f"{written.one.name}: replayed with the new files")
        return written

    return await side_by_side(chosen, proved)


def finish(
    red: Sequence[Pending], proved: Sequence[Written], kinds: AbstractSet[Kind], snapshots: Path, say: Say
) -> int:
    """Write what was proved; say what is left. 0: nothing is."""
    for written in proved:
        write(written.one, written.files, snapshots)
        left = f", {written.left} left" if written.left else ""
        say(f"{written.one.name}: {'rewritten' if not left else f'wrote {len(written.accepted)}{left}'}")
    if not proved:
        say(f"\nnothing was written: no difference is of kind {', '.join(sorted(kinds))}")
    names = {written.one.name for written in proved}
    rest = [change for one in red for at, change in enumerate(one.changes) if at not in accepted_in(one, proved)]
    if rest:
        say(f"left red: {counted(rest)}")
    others = {str(name) for one in red for name in menders(one.report)} - names - {one.name for one in red}
    if others:
        say(f"left red: what {', '.join(sorted(others))} pins")
    return int(bool(rest or others))


def accepted_in(one: Pending, proved: Iterable[Written]) -> Accepted:
    """What was accepted of a scenario."""
    return next((written.accepted for written in proved if written.one is one), frozenset())


# ── what no golden can mend ─────────────────────────────────────────────────────────────────────────────────────────


def refuse(red: Sequence[Pending], whole: bool) -> list[str]:
    """Why red scenarios cannot be mended by a refresh of just these, as sentences.

    ``whole``: all differences are to go, so that the pins of others must be among them.
    """
    by_name = {one.name: one for one in red}
    found = (unmendable(one) or unsteady(one) or (pinned_elsewhere(one, by_name) if whole else "") for one in red)
    return [refusal for refusal in found if refusal]


def unmendable(one: Pending) -> str:
    """Why no golden can mend a scenario; ``""`` where one can."""
    if None not in menders(one.report):
        return ""
    return f"{one.name} is red for {broken(one.report)}, which no golden can mend\nmend: {BY_HAND} -- {one.name}"


def broken(report: Report) -> str:
    """The surfaces of a report that a refresh cannot mend, each once."""
    surfaces = dict.fromkeys(f.surface for f in report.failures if f.surface in INTENT or f.mended_by is None)
    return " and ".join(surfaces)


def pinned_elsewhere(one: Pending, red: Mapping[str, Pending]) -> str:
    """Why a scenario needs another one's pin that is not written, or would not help; ``""`` where it does not."""
    others = {str(name) for name in menders(one.report) if name not in (None, one.name)}
    if missing := sorted(others - red.keys()):
        return (
            f"{one.name} is red for what {', '.join(missing)} pins; refresh that as well\n"
            f"mend: nox -s snapshot_refresh -- {' '.join([one.name, *missing])} --accept"
        )
    for name in sorted(others):
        if red[name].pin not in one.live:
            return (
                f"the header of {one.name} is neither what {name} pins nor what that would pin now\nmend: {OWN_CLASS}"
            )
    return ""


def unsteady(one: Pending) -> str:
    """Why a scenario that was red and then green is none that a golden could mend; ``""`` where it was not."""
    if one.changes or menders(one.report) != {one.name}:
        return ""
    if any(failure.group for failure in one.report.failures):
        return f"{one.name} has another header than the one it pins\nmend: {OWN_CLASS}"
    return (
        f"{one.name} was red, and a second replay was as committed: it differs from run to run\n"
        "mend: have the agent do the same each time, or declare what varies in agent.toml"
    )


BY_HAND = (
    "correct the agent; or, if it is right, scenario.toml and workspace.expected/ by hand, "
    "and other model calls by nox -s snapshot_record"
)
OWN_CLASS = "give it a class of its own ([header] in scenario.toml), or correct the agent"
