"""Replay one scenario and hold everything that came out against what is committed."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest
from llm_dialects.requests import Request
from llm_replay import Player, RecordedCall, Recording, Repeated, Unrecorded, format_difference
from msgspec import Struct

from session_snapshot import adapter
from session_snapshot.claims import claims_of
from session_snapshot.compare import compare_lines, compare_trees, keyed_like
from session_snapshot.dialects import retold
from session_snapshot.drive import Driver
from session_snapshot.errors import FixtureError
from session_snapshot.evidence import intent_breaches
from session_snapshot.expect import check_expect, facts_of_entries
from session_snapshot.fixtures import Committed, is_log, load_committed
from session_snapshot.invariants import Breach, check_wire
from session_snapshot.known import RunIds, context_of, fixed_tokens
from session_snapshot.lines import line_at
from session_snapshot.model import ReplayModel, canon_of
from session_snapshot.protocols import PROTOCOLS
from session_snapshot.provenance import edit_notes, pace_of
from session_snapshot.report import Failure, Report
from session_snapshot.retelling import Retelling, request_notes
from session_snapshot.run import Capture, MakeExtra, nothing_extra, run_scenario
from session_snapshot.sandbox import Sandbox, capture_tree, remove_tree
from session_snapshot.scenario import Scenario
from session_snapshot.suites import Loaded, Place, load, read, short
from session_snapshot.surfaces import Surfaces, place_live, sent_calls, surfaces_of
from session_snapshot.tokens import LiveTokens
from session_snapshot.told import Extra, install_root

ACTUAL = ".snapshot-actual"

Canon = Callable[[Request], Request]
"""Puts tokens in place of a live request's volatile values."""


class Seen(Struct, frozen=True):
    """A replay that is over: what was held against what, and what came of it."""

    loaded: Loaded
    committed: Committed
    capture: Capture
    report: Report


async def replay_scenario(place: Place, base: Path, dialect: str = "") -> Report:
    """The report of :func:`replay_seen`."""
    return (await replay_seen(place, base, dialect)).report


async def replay_seen(place: Place, base: Path, dialect: str = "") -> Seen:
    """Replay a scenario in a sandbox under ``base``; with ``dialect`` the agent speaks that one, and is told in it.

    Raises:
        FixtureError: the committed files are wrong, so that nothing can be replayed.
    """
    loaded = load(place)
    skip_elsewhere(loaded.scenario, dialect)
    committed = load_committed(loaded)
    refuse_hollow(loaded.scenario, committed.recording, place)
    notes: list[str] = []
    edits = edit_notes(committed.provenance, committed.folder, loaded.scenario.recording)
    if dialect:
        loaded, committed, notes = retold(loaded, committed, dialect)
    report, capture = await replay_loaded(loaded, committed, base)
    if dialect:
        report = msgspec.structs.replace(report, flags=f" --dialect {dialect}")
    retelling = committed.retelling
    report = report if retelling is None else as_retold(report, retelling, capture, notes)
    report = msgspec.structs.replace(report, notes=[*edits, *report.notes])
    return Seen(loaded, committed, capture, report)


async def replay_loaded(loaded: Loaded, committed: Committed, base: Path) -> tuple[Report, Capture]:
    """Replay what was loaded; the report, and the raw capture for whoever records."""
    replay = on_the_wire if committed.wire else in_the_agent
    capture, account = await replay(loaded, committed, base)
    surfaces = surfaces_again(loaded, committed, capture)
    breaches = wire_breaches(loaded, capture) if committed.wire else []
    failures = [*agent_failures(capture), *verdict(loaded, committed, capture, surfaces, account, breaches)]
    stderr = capture.stderr if failures else ""
    used = sorted(allowed_checks(loaded) & {breach.check for breach in breaches})
    left = capture.after if any(failure.surface == "workspace" for failure in failures) else {}
    report = Report(loaded.place.full_name, failures, surfaces.files, stderr, allowances=used, workspace=left)
    return report, capture


def as_retold(report: Report, retelling: Retelling, capture: Capture, notes: Sequence[str]) -> Report:
    """The report of a replay in another dialect: what was not compared is noted; refresh, which replays in the
    recorded one, mends nothing of it."""
    failures = [msgspec.structs.replace(failure, mended_by=None) for failure in report.failures]
    asked = request_notes([call.request for call in capture.calls], retelling.spoken, retelling)
    return msgspec.structs.replace(report, failures=failures, notes=[*notes, *asked, *capture.notes])


class Calls(Struct, frozen=True):
    """What is wrong about model calls: those nobody recorded, and recorded ones nobody made."""

    strange: Sequence[Failure]
    missing: Sequence[Failure]


async def on_the_wire(
    loaded: Loaded, committed: Committed, base: Path, make_extra: MakeExtra = nothing_extra
) -> tuple[Capture, Calls]:
    """Run with the recording served over HTTP."""
    models: list[ReplayModel] = []

    def make_model(box: Sandbox, driver: Driver) -> ReplayModel:
        ids = RunIds(context_of(loaded.agent, box, install_root(loaded), (), None), driver.frames)
        player = Player(committed.recording, canonical(committed, canon_of(ids.canon)))
        header = loaded.agent.model.session_header if loaded.agent.model else ""
        tokens = LiveTokens(fixed_tokens(box, install_root(loaded)), ids.seen)
        trace, from_wire = driver.connection.trace, made_at_wire(loaded, committed)
        spoken = committed.retelling.spoken if committed.retelling else ""
        models.append(ReplayModel(player, tokens, box.cwd, header, trace=trace, from_wire=from_wire, spoken=spoken))
        return models[0]

    capture = await run_scenario(loaded, base, make_model, pace_of(committed.provenance), make_extra)
    strange = [*foreign(models[0]), *unrecorded(models[0])]
    return capture, Calls(strange, [*unconsumed(models[0].player.unconsumed())])


def made_at_wire(loaded: Loaded, committed: Committed) -> bool:
    """Whether the recording holds all that was told at this wire: a machine made it, in the dialect it is told in."""
    return loaded.scenario.recording != "authored" and committed.retelling is None


def canonical(committed: Committed, canon: Canon) -> Canon:
    """``canon`` of a request as the dialect of the recording can say it too."""
    retelling = committed.retelling
    return canon if retelling is None else lambda request: canon(retelling.request(request))


async def in_the_agent(loaded: Loaded, committed: Committed, base: Path) -> tuple[Capture, Calls]:
    """Run with the recording told again in the agent's own process; a call on the wire is one nobody recorded."""

    def make_extra(box: Sandbox) -> Extra:
        return adapter.prepare(loaded, committed.folder, box, fixed_tokens(box, install_root(loaded)))

    nothing = msgspec.structs.replace(committed, recording=Recording(()))
    capture, wire = await on_the_wire(loaded, nothing, base, make_extra)
    account = adapter.read_account(capture.account)
    if isinstance(account, Failure):
        return capture, Calls([*wire.strange, account], [])
    calls = adapter.calls_of(account, committed.recording.calls)
    told = msgspec.structs.replace(capture, calls=calls)
    return told, Calls([*wire.strange, *adapter.strange(account)], [*adapter.missing(account)])


def surfaces_again(loaded: Loaded, committed: Committed, capture: Capture) -> Surfaces:
    """The surfaces of a replay's capture."""
    if not committed.wire:
        return surfaces_of(loaded, capture, [], committed.pins, [pin.header for pin in committed.pins.values()])
    calls = capture.calls
    if committed.retelling is not None:
        common = committed.retelling.request
        calls = [msgspec.structs.replace(call, request=common(call.request)) for call in calls]
    surfaces = surfaces_of(loaded, capture, place_live(calls, committed.recording.calls), committed.pins)
    return surfaces if committed.retelling is None else folded(surfaces, committed, committed.retelling)


def folded(surfaces: Surfaces, committed: Committed, retelling: Retelling) -> Surfaces:
    """The surfaces with their logs in the form that is compared across dialects."""
    files = {
        name: retelling.log(text, name) if is_log(name) and committed.own_log else text
        for name, text in surfaces.files.items()
    }
    return msgspec.structs.replace(surfaces, files=files)


def verdict(
    loaded: Loaded,
    committed: Committed,
    capture: Capture,
    surfaces: Surfaces,
    calls: Calls,
    breaches: Sequence[Breach],
) -> Iterable[Failure]:
    """Every failure of a run that came to its end, the most telling first."""
    yield from calls.strange
    yield from intent(loaded, capture)
    yield from headers(surfaces)
    for surface, name, expected in committed.surfaces(surfaces.files):
        path = f"{short(loaded.place.folder)}/{name}"
        actual = surfaces.files.get(name, "")
        if surface == "requests" and expected:
            actual = keyed_like(expected, actual)
        yield from compare_lines(surface, path, expected, actual)
    yield from workspace(loaded, capture)
    yield from wire(loaded, breaches)
    yield from calls.missing
    if committed.retelling is None:  # else an answer may be told in other pieces, and make other frames
        yield from missed_waits(capture)


def skip_elsewhere(scenario: Scenario, dialect: str) -> None:
    """Skip a scenario that names other platforms, or in which no dialect is spoken."""
    if scenario.platforms and sys.platform not in scenario.platforms:
        pytest.skip(f"platforms = {scenario.platforms}, this is {sys.platform}")
    if dialect and scenario.seam == "adapter":
        pytest.skip('seam = "adapter": the model is in the agent itself, and no dialect is spoken')


def refuse_hollow(scenario: Scenario, recording: Recording, place: Place) -> None:
    """Refuse a recording that breaks its own ``[expect]``, before anything runs.

    Raises:
        FixtureError: it does.
    """
    breaches = check_expect(scenario.expect, facts_of_entries(call.entry for call in recording.calls))
    if breaches:
        raise FixtureError(
            "the recording breaks its own [expect]: " + "; ".join(breaches),
            *expectation(place, breaches[0]),
            f"nox -s snapshot_record -- {place.full_name}, or correct [expect] in scenario.toml",
        )


def expectation(place: Place, breach: str) -> tuple[str, int]:
    """The file and the line of the key of ``[expect]`` that a breach begins with."""
    text, path = read(place.folder / "scenario.toml")
    return path, line_at(text, ("expect", breach.partition(":")[0]))


# ── failures by what they are about ─────────────────────────────────────────────────────────────────────────────────


def agent_failures(capture: Capture) -> Iterable[Failure]:
    """What the agent did that no agent may do, and what of the script or the recording could not be performed."""
    for fault in capture.faults:
        what, _, detail = str(fault).partition("\n")
        yield Failure("fixture" if isinstance(fault, FixtureError) else "agent", what, detail)


def foreign(model: ReplayModel) -> Iterable[Failure]:
    """Model calls in another dialect than the agent was told to speak."""
    for number, dialect in model.foreign[:1]:
        what = f"model call {number} came in {dialect}, and the agent was told to speak {model.spoken}"
        mend = f"mend: correct [dialects.{model.spoken}] in agent.toml: it is to make the agent speak that"
        yield Failure("agent", what, mend, mended_by=None)


def unrecorded(model: ReplayModel) -> Iterable[Failure]:
    """Model calls that nothing recorded answers."""
    for number, outcome in model.unrecorded:
        match outcome:
            case Repeated(call=call):
                what = f"model call {number} repeats the one that recorded call {call.index} answered"
                yield Failure("requests", what, REPEATED, mended_by=None)
            case Unrecorded(nearest=None):
                what = f"model call {number} is not in the recording, which has none left"
                yield Failure("requests", what, mended_by=None)
            case Unrecorded(nearest=nearest, differences=differences):
                assert nearest is not None
                near = f"the nearest is call {nearest.index} (lane {nearest.lane})"
                what = f"model call {number} is not in the recording; {near}"
                detail = "\n".join(line for d in differences for line in format_difference(d))
                yield Failure("requests", what, detail, mended_by=None)


REPEATED = "nobody recorded the repeat; the same answer was given again"


def intent(loaded: Loaded, capture: Capture) -> Iterable[Failure]:
    """Breaches of ``[expect]``."""
    for breach in intent_breaches(loaded, capture):
        path, line = expectation(loaded.place, breach)
        mend = "mend: correct the agent; if the intent itself changed, edit scenario.toml by hand"
        yield Failure("expect", f"{path}:{line}: {breach}", mend)


def headers(surfaces: Surfaces) -> Iterable[Failure]:
    """Live headers that are not the class pin's; said once for all scenarios of a class."""
    for drift in surfaces.drifts:
        files = " and ".join(f"{drift.folder}/{name}" for name in drift.files)
        what = f"the header of class {drift.header_class!r} is not as {files} pin{'s'[: len(drift.files) == 1]} it"
        pinning = "/".join(Path(drift.folder).parts[-2:])
        yield Failure("requests", what, "(the difference is shown once, at the end)", f"{what}\n{drift.text}", pinning)


def workspace(loaded: Loaded, capture: Capture) -> Iterable[Failure]:
    """The tree the agent left, against the one a person wrote down, else against the one before."""
    folder = loaded.place.folder
    if loaded.scenario.workspace.final:
        name = f"{short(folder)}/workspace.expected/"
        expected, mend = (
            capture_tree(folder / "workspace.expected", []),
            f"if the new tree is right, edit {name} by hand",
        )
    else:
        name = f"{short(folder)}/workspace/"
        expected, mend = capture.before, f"if the change is right, {WRITE_DOWN}"
    for failure in compare_trees(name, expected, capture.after):
        yield msgspec.structs.replace(failure, detail=f"{failure.detail}\nmend: correct the agent; {mend}")


WRITE_DOWN = "say [workspace] final = true in scenario.toml and write the new tree down in workspace.expected/"


def wire_breaches(loaded: Loaded, capture: Capture) -> list[Breach]:
    """Every wire invariant that a run broke."""
    claims = claims_of(capture, PROTOCOLS[loaded.agent.protocol])
    return check_wire(sent_calls(capture.calls), loaded.scenario.expect.compactions, claims)


def wire(loaded: Loaded, breaches: Sequence[Breach]) -> Iterable[Failure]:
    """Wire invariants broken and not declared."""
    for breach in breaches:
        if breach.check not in allowed_checks(loaded):
            where = "" if breach.call is None else f"model call {breach.call}: "
            yield Failure("wire", f"{breach.check}: {where}{breach.what}")


def allowed_checks(loaded: Loaded) -> set[str]:
    """The wire invariants this agent is declared to break."""
    return {entry.check for entry in loaded.agent.wire.allow}


def unconsumed(calls: Sequence[RecordedCall]) -> Iterable[Failure]:
    """Recorded calls that the agent never made."""
    for call in calls:
        what = f"recorded call {call.index} (lane {call.lane}, {call.source}) was never asked for"
        yield Failure("consumed", what, "mend: record the scenario again if the agent rightly makes fewer calls")


def missed_waits(capture: Capture) -> Iterable[Failure]:
    """Frames that were expected before the next step and did not come in time: red, the stdout surface says which."""
    for note in capture.notes:
        yield Failure("stdout", note, "the frames are missing, or came after the next step had begun")


# ── actual files ────────────────────────────────────────────────────────────────────────────────────────────────────


def keep_tree(folder: Path, tree: Mapping[str, bytes]) -> None:
    """Write the files an agent left; a name that ends in a slash is an empty folder."""
    for name, content in tree.items():
        path = folder / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_bytes(content)


def keep_actual(report: Report, name: str) -> str:
    """Write the actual files of a red run where the command runs; the folder, or ``""`` for a green one.

    ``name`` is ``suite/scenario``, with the number of the run where there are several: they run at the same time.
    Where they cannot be written, what comes back says so instead: a red run is told all the same.
    """
    folder = Path(ACTUAL) / name
    try:
        remove_tree(folder)
        if report.green:
            return ""
        folder.mkdir(parents=True)
        for file, content in report.actual.items():
            (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)
        keep_tree(folder / "workspace", report.workspace)
    except OSError as error:
        return "" if report.green else f"could not be kept in {folder.as_posix()}: {error.strerror} (remove {ACTUAL})"
    return folder.as_posix()
