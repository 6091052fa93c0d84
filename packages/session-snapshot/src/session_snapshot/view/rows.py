"""What the page of a run is made of: its rows, and how the rows of two files are held against each other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from llm_replay import Difference, diff_json
from msgspec import UNSET, Struct

from session_snapshot.report import Failure
from session_snapshot.rows import Row as FileRow
from session_snapshot.rows import align, moves, read_rows
from session_snapshot.view.text import Line, abridged, plain, pretty, pretty_both
from session_snapshot.visible import visible

State = Literal["", "same", "changed", "added", "removed"]
"""What a row is against its golden; ``""`` where nothing is compared."""

EDITOR, AGENT, FILES = "editor", "agent", "files"

MOST_TITLE = 120
MOST_DETAIL = 200_000
"""How many characters of one detail are kept: a page must open."""


class Detail(Struct, frozen=True):
    """Something that is shown when a row is opened."""

    heading: str
    lines: tuple[Line, ...]


class Row(Struct, frozen=True):
    """One thing that happened, in a lane. ``step`` counts from 0; -1 is after the last one.

    ``kind`` is what it is filtered by; ``source`` says where it comes from (a file and its line).
    """

    lane: str
    kind: str
    title: str
    step: int = -1
    state: State = ""
    source: str = ""
    differences: tuple[Difference, ...] = ()
    details: tuple[Detail, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether it is not as in its golden."""
        return self.state in DIFFERENT

    @property
    def text(self) -> str:
        """All that a search looks through."""
        parts = [visible(self.title), *(line.text for detail in self.details for line in detail.lines)]
        return "\n".join(parts)


DIFFERENT = frozenset({"changed", "added", "removed"})


class Lane(Struct, frozen=True):
    """A lane: the key its rows have, and its name."""

    key: str
    name: str


class Page(Struct, frozen=True):
    """All that a page says. ``ran`` tells a run from committed files that nothing was held against."""

    name: str
    description: str
    ran: bool
    failures: Sequence[Failure]
    facts: Sequence[tuple[str, str]]
    counts: Sequence[tuple[str, str]]
    expect: Sequence[tuple[str, bool]]
    lanes: Sequence[Lane]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    stderr: str = ""


# ── details ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def json_detail(heading: str, value: Any) -> Detail:
    """A JSON value."""
    return Detail(heading, bounded(pretty(value)))


def both_detail(heading: str, expected: Any, actual: Any) -> Detail:
    """A JSON value that differs from its golden."""
    return Detail(heading, bounded(pretty_both(expected, actual)))


def text_detail(heading: str, text: str) -> Detail:
    """A text."""
    return Detail(heading, bounded(plain(text)))


def bounded(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Lines up to so many characters in all."""
    kept: list[Line] = []
    room = MOST_DETAIL
    for line in lines:
        if len(line.text) > room:
            return (*kept, Line(line.mark, line.depth, abridged(line.text, room)), Line(" ", 0, "… more is not shown"))
        kept.append(line)
        room -= len(line.text) + 1
    return tuple(kept)


def title_of(*parts: str) -> str:
    """A title on one line."""
    return cut(" ".join(" ".join(part.split()) for part in parts if part))


def cut(text: str) -> str:
    """As much of a text as stands in a title."""
    return text if len(text) <= MOST_TITLE else f"{text[:MOST_TITLE]}…"


# ── rows of files against each other ────────────────────────────────────────────────────────────────────────────────


class Held(Struct, frozen=True):
    """One row of a file held against its golden; ``number`` is its line, from 1, in the file it is still in.

    ``at`` is its place among the actual rows, ``None`` for one that is gone; ``note`` says what else is to be known.
    """

    state: State
    number: int
    at: int | None
    expected: Any = None
    actual: Any = None
    differences: tuple[Difference, ...] = ()
    note: str = ""

    @property
    def source(self) -> str:
        """Its line, and what else is to be known, behind the name of its file."""
        return f":{self.number}" + (f", {self.note}" if self.note else "")

    @property
    def value(self) -> Any:
        """The row as it is, or was."""
        return self.expected if self.at is None else self.actual

    def detail(self, heading: str) -> Detail:
        """The row, with what changed in it marked."""
        if self.state == "changed":
            return both_detail(heading, self.expected, self.actual)
        return json_detail(heading, self.value)


def hold(expected: str, actual: str) -> list[Held]:
    """Hold the rows of a JSON Lines text against those of its golden, paired as the report of a run pairs them."""
    before, after = read_rows(expected), read_rows(actual)
    pairs = align(before, after)
    moved = moves(before, after, pairs)
    origins = {new: old for old, new in moved.items()}
    found = []
    for old, new in pairs:
        if new is None:
            assert old is not None
            there = moved.get(old)
            found.append(gone(shown(before[old]), old + 1, "" if there is None else f"moved to line {there + 1}"))
        elif old is None:
            origin = origins.get(new)
            found.append(fresh(shown(after[new]), new, "" if origin is None else f"moved from line {origin + 1}"))
        else:
            found.append(paired(before[old], after[new], new))
    return found


def paired(old: FileRow, new: FileRow, at: int) -> Held:
    """Two rows that belong together; where they say the same in other bytes, those differ."""
    held = against(shown(old), shown(new), at + 1, at)
    if held.differences or old.text == new.text:
        return held
    return Held("changed", at + 1, at, old.text, new.text, (Difference("", "changed", old.text, new.text),))


def fresh(value: Any, at: int, note: str = "") -> Held:
    """A row that the golden has not."""
    return Held("added", at + 1, at, None, value, (Difference("", "added", actual=value),), note)


def gone(value: Any, number: int, note: str = "") -> Held:
    """A row of the golden that is not there any more."""
    return Held("removed", number, None, value, None, (Difference("", "removed", expected=value),), note)


def against(expected: Any, actual: Any, number: int, at: int) -> Held:
    """Two rows that belong together."""
    differences = diff_json(expected, actual)
    return Held("changed" if differences else "same", number, at, expected, actual, differences)


def alone(text: str) -> list[Held]:
    """The rows of a file that nothing is held against."""
    return [Held("", at + 1, at, None, value) for at, value in enumerate(readable(text))]


def readable(text: str) -> list[Any]:
    """The values of the rows of a JSON Lines text."""
    return [shown(row) for row in read_rows(text)]


def shown(row: FileRow) -> Any:
    """A row's value; of one that is no JSON what it is."""
    return {"not JSON": row.text} if row.value is UNSET else row.value


# ── naming what a value is ──────────────────────────────────────────────────────────────────────────────────────────


def gist(value: Any, most: int = 4) -> str:
    """The few words of a JSON value that tell most of it."""
    return " · ".join(list(dict.fromkeys(telling(value, 0)))[:most])


def telling(value: Any, depth: int) -> Iterator[str]:
    """The texts under telling names, the outermost first."""
    if depth > DEEPEST:
        return
    match value:
        case dict():
            yield from (cut(value[name]) for name in TELLING if is_told(value.get(name)))
            for item in value.values():
                yield from telling(item, depth + 1)
        case list():
            for item in value[:BROADEST]:
                yield from telling(item, depth + 1)


def is_told(value: Any) -> bool:
    """Whether a member's value can stand in a title."""
    return isinstance(value, str) and bool(value.strip())


DEEPEST, BROADEST = 6, 8
TELLING = ("title", "status", "name", "text", "stopReason", "message", "command", "path", "outcome", "optionId", "kind")


def table(value: Any) -> Mapping[str, Any]:
    """A value that is an object; an empty one for any other."""
    return value if isinstance(value, dict) else {}
