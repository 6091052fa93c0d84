"""Whether logs, override and requests make one recording, and whether every override entry is needed."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from llm_replay import FixtureError, apply_override, demand_finished, derive_scripts, parse_override

from fixture_guard.checks.secrets import line_at
from fixture_guard.digest import OVERRIDE
from fixture_guard.finding import Finding
from fixture_guard.layout import Scenario, Tree
from fixture_guard.shapes import table, text

Lanes = tuple[tuple[Any, ...], ...]
"""The entries of every lane; an ``Unfinished`` where a log cannot say how a call ended."""


def check_playable(tree: Tree) -> Iterator[Finding]:
    """The recording cannot be played: a call without an end, an override that does not fit, calls nobody made."""
    for scenario in tree.told:
        try:
            lanes = patched(scenario, derived(scenario))
            for lane in lanes:
                demand_finished(lane)
        except FixtureError as error:
            yield fault(scenario, error)
            continue
        yield from uncalled(scenario, lanes)


def uncalled(scenario: Scenario, lanes: Lanes) -> Iterator[Finding]:
    """Report where ``requests.golden.jsonl`` holds another number of calls than the logs and the override."""
    recorded, asked = sum(map(len, lanes)), len(scenario.requests)
    if "requests.golden.jsonl" in scenario.files and recorded != asked:
        what = f"{asked} request(s), but the logs with the override hold {recorded} model call(s)"
        yield Finding(scenario.at("requests.golden.jsonl"), None, "UNPLAYABLE", what, scenario.record())


def check_overrides(tree: Tree) -> Iterator[Finding]:
    """An override entry that is what the logs say anyway."""
    for scenario in tree.told:
        try:
            before = derived(scenario)
            after = patched(scenario, before)
        except FixtureError:
            continue  # check_playable names it
        text = scenario.text(OVERRIDE)
        for at, line in useless_entries(text, before, after):
            what = f"the override of call {at} is what the log says anyway"
            mend = "take the entry out; without any, remove the file and overridden = true"
            yield Finding(scenario.at(OVERRIDE), line, "OVERRIDE", what, mend)


def useless_entries(text: str, before: Lanes, after: Lanes) -> Iterator[tuple[str, int]]:
    """Return the place and line of each override entry that changes nothing."""
    document = json.loads(text or "{}")
    if isinstance(document, list):
        if before[:1] == after[:1]:
            yield "every entry", 1
        return
    lines = [line_at(text, match.start()) for match in re.finditer(r'"at"\s*:', text)]
    for number, patch in enumerate(document.get("patches", ())):
        lane, at = patch.get("lane", 0), patch["at"]
        if at < len(before[lane]) and before[lane][at] == after[lane][at]:
            yield f"{at} of lane {lane}", lines[number] if number < len(lines) else 1


def derived(scenario: Scenario) -> Lanes:
    """Return what the logs say, as lanes: by the requests where they name their sources, else one lane per log.

    Raises:
        FixtureError: an event does not hold what it must.
    """
    primary, *children = (log.log for log in scenario.logs)
    scripts = {script.source: script.entries for script in derive_scripts(primary, children)}
    sources = [source_of(row.value) for row in scenario.requests]
    known = {(name, at) for name, entries in scripts.items() for at in range(len(entries))}
    named = [(lane, source) for lane, source in sources if source in known]
    if {source for _, source in named} != known or len(named) != len(known):
        return tuple(scripts.values())
    lanes: dict[int, list[Any]] = defaultdict(list)
    for lane, (name, at) in named:
        lanes[lane].append(scripts[name][at])
    return tuple(tuple(lanes[lane]) for lane in sorted(lanes))


def source_of(row: Any) -> tuple[int, tuple[str, int]]:
    """Return a request row's lane, and the file and index of the call that answers it."""
    name, _, at = text(table(row).get("source")).rpartition("#")
    lane = table(row).get("lane")
    return lane if isinstance(lane, int) else 0, (name, int(at) if at.isdecimal() else -1)


def patched(scenario: Scenario, lanes: Lanes) -> Lanes:
    """Return the lanes with the scenario's override laid over them.

    Raises:
        FixtureError: the override is malformed, or does not fit.
    """
    if OVERRIDE not in scenario.files:
        return lanes
    return apply_override(lanes, parse_override(scenario.text(OVERRIDE), scenario.at(OVERRIDE)))


def fault(scenario: Scenario, error: FixtureError) -> Finding:
    """Return a reader's error as a finding."""
    return Finding(error.path, error.line, "UNPLAYABLE", error.what, error.mend or scenario.record())
