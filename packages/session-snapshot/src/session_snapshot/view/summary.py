"""The head of a page: what the scenario is, how the run went, where the recording came from, how much there is."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from session_snapshot.provenance import Provenance
from session_snapshot.report import Failure, Report
from session_snapshot.suites import Loaded
from session_snapshot.view.model import lanes_of, rows_of
from session_snapshot.view.parts import Parts
from session_snapshot.view.rows import Page, Row


def page_of(loaded: Loaded, provenance: Provenance | None, parts: Parts, report: Report, ran: bool) -> Page:
    """The whole page; ``report`` is empty where nothing ran."""
    rows = rows_of(parts)
    return Page(
        name=loaded.place.full_name,
        description=loaded.scenario.description,
        ran=ran,
        failures=report.failures,
        facts=[("recording", loaded.scenario.recording), *facts_of(provenance)],
        counts=counts_of(rows, ran),
        expect=expectations(loaded, report.failures),
        lanes=lanes_of(parts),
        rows=rows,
        notes=report.notes,
        stderr=report.stderr,
    )


def facts_of(provenance: Provenance | None) -> list[tuple[str, str]]:
    """Who made the recording, with what."""
    if provenance is None:
        return [("provenance", "none")]
    agent = f"{provenance.agent.name} {provenance.agent.version}".strip()
    told = {
        "made by": f"{provenance.made_by} {provenance.made_on}".strip(),
        "answered by": provenance.upstream,
        "model": provenance.model,
        "dialect": provenance.dialect,
        "agent": agent,
        "platform": provenance.platform,
        "harness": provenance.harness,
    }
    return [(name, value) for name, value in told.items() if value]


def counts_of(rows: Sequence[Row], ran: bool) -> list[tuple[str, str]]:
    """How much of each there is."""
    kinds = Counter(GROUPS.get(row.kind, "frames") for row in rows)
    counts = [(name, str(kinds[name])) for name in dict.fromkeys([*GROUPS.values(), "frames"]) if kinds[name]]
    return [*counts, ("differing rows", str(sum(row.differs for row in rows)))] if ran else counts


GROUPS = {
    "step": "steps",
    "sent": "sent messages",
    "call": "model calls",
    "chunks": "chunk groups",
    "side request": "side requests",
    "log": "log events",
    "file": "files",
}
"""What rows are counted as; all other kinds are frames."""


def expectations(loaded: Loaded, failures: Sequence[Failure]) -> list[tuple[str, bool]]:
    """What the author expects, and whether it held."""
    told: Mapping[str, Any] = msgspec.to_builtins(loaded.scenario.expect)
    broken = [failure.what for failure in failures if failure.surface == "expect"]
    return [
        (f"{key} = {msgspec.json.encode(value).decode()}", not any(f": {key}: " in what for what in broken))
        for key, value in told.items()
    ]
