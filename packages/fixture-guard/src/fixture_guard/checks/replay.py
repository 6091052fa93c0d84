"""Whether logs, override and requests make one recording, and whether every override entry is needed."""

import re
from collections.abc import Iterator

from llm_replay import (
    FixtureError,
    RecordedCall,
    Recording,
    Rows,
    Script,
    build_recording,
    derive_scripts,
    parse_override,
    parse_rows,
)

from fixture_guard.checks.secrets import line_at
from fixture_guard.digest import OVERRIDE
from fixture_guard.finding import Finding
from fixture_guard.layout import Scenario, Tree
from fixture_guard.shapes import read_json, table

REQUESTS = "requests.golden.jsonl"


def check_playable(tree: Tree) -> Iterator[Finding]:
    """The recording cannot be played: a call without an end, an override or requests that do not fit the logs."""
    for scenario in tree.told:
        try:
            read_recording(scenario, read_scripts(scenario))
        except FixtureError as error:
            path, mend = scenario.at(error.path), error.mend or scenario.record()
            yield Finding(path, error.line, "UNPLAYABLE", error.what, mend)


def check_overrides(tree: Tree) -> Iterator[Finding]:
    """An override entry that is what the logs say anyway."""
    for scenario in tree.told:
        if OVERRIDE not in scenario.files:
            continue
        try:
            scripts = read_scripts(scenario)
            recording = read_recording(scenario, scripts)
        except FixtureError:
            continue  # check_playable names it
        derived = {f"{script.source}#{at}": entry for script in scripts for at, entry in enumerate(script.entries)}
        same = {call.index for call in recording.calls if derived.get(call.source) == call.entry}
        for call, line in useless_entries(scenario.text(OVERRIDE), recording, same):
            what = f"the override of {call} is what the log says anyway"
            mend = "take it out; without any entry, remove the file and overridden = true"
            yield Finding(scenario.at(OVERRIDE), line, "OVERRIDE", what, mend)


def useless_entries(text: str, recording: Recording, same: set[int]) -> Iterator[tuple[str, int]]:
    """Return the place and the line of each override entry whose call is among those the log answers the same."""
    document = read_json(text)
    if isinstance(document, list):
        if {call.index for call in lane_calls(recording, 0)} <= same:
            yield "every call of lane 0", 1
        return
    lines = [line_at(text, match.start()) for match in re.finditer(r'"at"\s*:', text)]
    for number, patch in enumerate(table(document)["patches"]):
        lane, at = patch.get("lane", 0), patch["at"]
        if lane_calls(recording, lane)[at].index in same:
            yield f"call {at} of lane {lane}", lines[number] if number < len(lines) else 1


def lane_calls(recording: Recording, lane: int) -> list[RecordedCall]:
    """Return the calls of one lane, in order."""
    return [call for call in recording.calls if call.lane == lane]


def read_scripts(scenario: Scenario) -> tuple[Script, ...]:
    """Return what the logs of a scenario say.

    Raises:
        FixtureError: an event does not hold what it must; its path is relative to the scenario.
    """
    primary, *children = (log.log for log in scenario.logs)
    return derive_scripts(primary, children)


def read_recording(scenario: Scenario, scripts: tuple[Script, ...]) -> Recording:
    """Return the calls of a scenario, put together as replay does.

    Raises:
        FixtureError: the files do not fit together; its path is relative to the scenario.
    """
    has_rows, has_override = REQUESTS in scenario.files, OVERRIDE in scenario.files
    rows = Rows(parse_rows(scenario.text(REQUESTS), REQUESTS)) if has_rows else None
    return build_recording(scripts, rows, parse_override(scenario.text(OVERRIDE), OVERRIDE) if has_override else None)
