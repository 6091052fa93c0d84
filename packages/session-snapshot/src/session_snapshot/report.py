"""What a run is found to be: failures by surface, each with what to do, and the actual files beside the expected
ones."""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

Surface = Literal["stdout", "session", "requests", "workspace", "expect", "agent", "fixture", "wire", "consumed"]


class Failure(Struct, frozen=True):
    """One thing that is wrong. ``group`` is equal for failures that are one and the same across scenarios."""

    surface: Surface
    what: str
    detail: str = ""
    group: str = ""


class Report(Struct, frozen=True):
    """The outcome of one replay: green when there is no failure."""

    name: str
    failures: Sequence[Failure]
    actual: Mapping[str, str | bytes]
    stderr: str = ""
    notes: Sequence[str] = ()

    @property
    def green(self) -> bool:
        """Whether everything was as committed."""
        return not self.failures


INTENT = frozenset({"expect", "workspace", "agent", "wire", "consumed", "fixture"})
"""Surfaces no golden can mend: a refresh is refused while one of them is red."""

ACCEPT = "(shows the change; --accept writes it)"
STDERR_LINES = 40


def format_report(report: Report, actual_folder: str) -> str:
    """The failure text of one scenario: each surface once, then stderr, then the commands that go on from here."""
    parts = [f"{report.name}: {len(report.failures)} failure{'s'[: len(report.failures) != 1]}"]
    parts += [section(failure) for failure in report.failures]
    parts += [f"note: {note}" for note in report.notes]
    if report.stderr.strip():
        tail = report.stderr.strip().splitlines()[-STDERR_LINES:]
        parts.append("\n".join(["--- the agent's stderr (its end)", *(f"  {line}" for line in tail)]))
    parts.append("\n".join(commands(report, actual_folder)))
    return "\n\n".join(parts)


def section(failure: Failure) -> str:
    """One failure: a headline, its detail indented."""
    lines = [f"--- {failure.surface}: {failure.what}"]
    lines += [f"  {line}" for line in failure.detail.splitlines()]
    return "\n".join(lines)


def commands(report: Report, actual_folder: str) -> list[str]:
    """How to look closer, run it again, and take the change in where a golden can."""
    name = report.name
    session = "snapshot" if name.startswith("session/") else "snapshot_agents"
    lines = [f"actual files: {actual_folder}"] if actual_folder else []
    return [
        *lines,
        f"run again:    nox -s {session} -- {name}",
        *([] if broken(report) else [f"mend:         nox -s snapshot_refresh -- {name}   {ACCEPT}"]),
    ]


def broken(report: Report) -> bool:
    """Whether a run is red for what no golden can mend."""
    return any(failure.surface in INTENT for failure in report.failures)
