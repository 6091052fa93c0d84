"""A recording: the calls of one run, what each asked and what answers it, put together from the committed files."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from llm_dialects import Entry
from msgspec import Struct

from llm_replay.calls import Header, RecordedCall, Recording
from llm_replay.derive import Script, Unfinished, demand_finished
from llm_replay.errors import FixtureError
from llm_replay.override import Override, Replacement, apply_override
from llm_replay.request_rows import RequestRow, rows_to_requests

MEND = "record the scenario again, or restore the file from version control"


class Rows(Struct, frozen=True):
    """The request rows of a scenario, with their file's name and the headers that are at hand.

    ``headers`` is ``None`` where nobody knows them; requests then have no system texts and no tools.
    """

    rows: tuple[RequestRow, ...]
    name: str = "requests.golden.jsonl"
    headers: Mapping[str, Header] | None = None


def build_recording(scripts: Sequence[Script], rows: Rows | None = None, override: Override | None = None) -> Recording:
    """Put the calls together: in the order of ``rows``; without rows, script by script (a script is a lane then).

    Raises:
        FixtureError: rows, scripts and override do not fit together, or no answer is known for a call.
    """
    return _by_script(scripts, override) if rows is None else _by_rows(scripts, rows, override)


def _by_script(scripts: Sequence[Script], override: Override | None) -> Recording:
    lanes: Sequence[Sequence[Entry | Unfinished]] = [script.entries for script in scripts]
    if override is not None:
        lanes = apply_override(lanes, override)
    calls: list[RecordedCall] = []
    for lane, (script, entries) in enumerate(zip(scripts, lanes, strict=True)):
        for at, entry in enumerate(demand_finished(entries)):
            parent = len(calls) - 1 if at else None
            calls.append(RecordedCall(len(calls), lane, parent, None, entry, f"{script.source}#{at}"))
    return Recording(calls=tuple(calls))


def _by_rows(scripts: Sequence[Script], rows: Rows, override: Override | None) -> Recording:
    headers = rows.headers if rows.headers is not None else {row.header: Header() for row in rows.rows}
    requests = rows_to_requests(rows.rows, headers, rows.name)
    entries = _entries_of_rows(scripts, rows, override)
    headed = rows.headers is not None
    calls = (
        RecordedCall(row.call, row.lane, row.parent, request, entry, row.source, row.header, headed)
        for row, request, entry in zip(rows.rows, requests, entries, strict=True)
    )
    return Recording(calls=tuple(calls))


class _ToPatch(Struct, frozen=True):
    """The answer of a row whose source is the override: the override must put an entry in its place."""

    row: RequestRow


def _entries_of_rows(scripts: Sequence[Script], rows: Rows, override: Override | None) -> tuple[Entry, ...]:
    """Return the answer to each row. Every entry of a script and of an override answers exactly one."""
    sources = {f"{script.source}#{at}": entry for script in scripts for at, entry in enumerate(script.entries)}
    lanes = _lanes(rows)
    found = [_named(row, sources, rows.name, override) for row in rows.rows]
    _check_all_named(sources, scripts, rows, override)
    answers = [[found[row.call] for row in lane] for lane in lanes]
    patched = apply_override(answers, override) if override is not None and lanes else answers
    entries: dict[int, Entry | Unfinished] = {}
    for lane, lane_entries in zip(lanes, patched, strict=True):
        _check_lane(lane, lane_entries, rows, override)
        entries |= {row.call: _answer(entry, rows.name) for row, entry in zip(lane, lane_entries, strict=True)}
    return demand_finished(entries[call] for call in range(len(found)))


def _lanes(rows: Rows) -> list[list[RequestRow]]:
    """Return the rows of each lane; lanes are numbered by their first call."""
    lanes: list[list[RequestRow]] = []
    for row in rows.rows:
        if not 0 <= row.lane <= len(lanes):
            raise FixtureError(
                f"lane {row.lane} where {len(lanes)} would be the next new one", rows.name, row.line, MEND
            )
        if row.lane == len(lanes):
            lanes.append([])
        lanes[row.lane].append(row)
    return lanes


def _named(
    row: RequestRow, sources: dict[str, Entry | Unfinished], name: str, override: Override | None
) -> Entry | Unfinished | _ToPatch:
    """Take the entry that ``row`` names out of ``sources``."""
    if override is not None and row.source.startswith(f"{PurePath(override.name).name}#"):
        return _ToPatch(row)
    if row.source not in sources:
        raise FixtureError(f"source {row.source!r} is no recorded answer, or answers twice", name, row.line, MEND)
    return sources.pop(row.source)


def _check_all_named(
    left: Mapping[str, object], scripts: Sequence[Script], rows: Rows, override: Override | None
) -> None:
    """Check that every derived entry is named; of a script that is replaced, none need be."""
    replaced = f"{scripts[0].source}#" if scripts and isinstance(override, Replacement) else None
    for source in left:
        if replaced is None or not source.startswith(replaced):
            raise FixtureError(f"no row names the recorded answer {source!r}", rows.name, mend=MEND)


def _check_lane(lane: Sequence[RequestRow], entries: Sequence[object], rows: Rows, override: Override | None) -> None:
    if len(entries) != len(lane):
        name = rows.name if override is None else override.name
        what = f"lane {lane[0].lane} has {len(entries)} answers and {rows.name} {len(lane)} calls"
        raise FixtureError(what, name, mend=MEND)


def _answer(entry: Entry | Unfinished | _ToPatch, name: str) -> Entry | Unfinished:
    if isinstance(entry, _ToPatch):
        what = f"source {entry.row.source!r} names the override, which has no entry for this call"
        raise FixtureError(what, name, entry.row.line, "add the patch, or record the scenario again")
    return entry
