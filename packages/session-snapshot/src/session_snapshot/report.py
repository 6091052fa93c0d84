"""What a run is found to be: failures by surface, each with what to do, and the actual files beside the expected
ones."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from session_snapshot.visible import visible

Surface = Literal["stdout", "session", "requests", "workspace", "expect", "agent", "fixture", "wire", "consumed"]


class Failure(Struct, frozen=True):
    """One thing that is wrong. ``group`` is equal for failures that are one and the same across scenarios.

    ``mended_by`` is the scenario whose refresh mends it: ``""`` the own one's, ``None`` nobody's.
    """

    surface: Surface
    what: str
    detail: str = ""
    group: str = ""
    mended_by: str | None = ""


class Report(Struct, frozen=True):
    """The outcome of one replay: green when there is no failure. ``allowances`` are the declared breaches it needed.

    ``notes`` say what was not compared; ``flags`` are those that the command needs to do the same again. ``workspace``
    are the files the agent left, where they are not as expected.
    """

    name: str
    failures: Sequence[Failure]
    actual: Mapping[str, str | bytes]
    stderr: str = ""
    notes: Sequence[str] = ()
    allowances: Sequence[str] = ()
    flags: str = ""
    workspace: Mapping[str, bytes] = {}

    @property
    def green(self) -> bool:
        """Whether everything was as committed."""
        return not self.failures


INTENT = frozenset({"expect", "workspace", "agent", "wire", "consumed", "fixture"})
"""Surfaces no golden can mend: a refresh is refused while one of them is red."""

ACCEPT = "(shows the change; --accept writes it)"
REVIEW = "(one difference after the other, at a terminal)"
STDERR_LINES = 40


def format_report(report: Report, actual_folder: str, page: str = "") -> str:
    """The failure text of one scenario: what is wrong, then the commands that go on from here.

    ``page`` is the file that shows the run.
    """
    return format_failures(report) + "\n\n" + "\n".join(commands(report, actual_folder, page))


def format_failures(report: Report) -> str:
    """What is wrong with one scenario: each surface once, then stderr."""
    parts = [f"{report.name}: {len(report.failures)} failure{'s'[: len(report.failures) != 1]}"]
    parts += [section(failure) for failure in report.failures]
    parts += [f"note: {note}" for note in report.notes]
    if report.stderr.strip():
        tail = report.stderr.strip().splitlines()[-STDERR_LINES:]
        parts.append("\n".join(["--- the agent's stderr (its end)", *(f"  {line}" for line in tail)]))
    return visible("\n\n".join(parts))


def section(failure: Failure) -> str:
    """One failure: a headline, its detail indented."""
    lines = [f"--- {failure.surface}: {failure.what}"]
    lines += [f"  {line}" for line in failure.detail.splitlines()]
    return "\n".join(lines)


def commands(report: Report, actual_folder: str, page: str = "") -> list[str]:
    """How to look closer, run it again, and take the change in where a golden can."""
    name = report.name
    lines = [f"actual files: {actual_folder}"] if actual_folder else []
    lines += [f"view:         {page}"] if page else []
    return [
        *lines,
        f"run again:    nox -s {session_of(name)} -- {name}{report.flags}",
        *([] if None in menders(report) else mending_commands(menders(report))),
    ]


def session_of(name: str) -> str:
    """The nox session that replays a suite or a scenario."""
    return "snapshot" if name.partition("/")[0] == "session" else "snapshot_agents"


def mending_commands(names: set[str | None]) -> list[str]:
    """How to take a change in: looking at each difference, or the refresh of these scenarios."""
    told = " ".join(sorted(map(str, names)))
    return [
        f"review:       nox -s snapshot_review -- {told}   {REVIEW}",
        f"mend:         nox -s snapshot_refresh -- {told}   {ACCEPT}",
    ]


def menders(report: Report) -> set[str | None]:
    """The scenarios whose refresh would mend a run; ``None`` is among them where none can."""
    return {None if f.surface in INTENT or f.mended_by is None else f.mended_by or report.name for f in report.failures}


def grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """What is one and the same across scenarios, with their names: from pairs of ``group`` and name."""
    groups: dict[str, list[str]] = {}
    for text, name in pairs:
        if text and name not in groups.setdefault(text, []):
            groups[text].append(name)
    return {text: sorted(names) for text, names in groups.items()}
