"""What the page of a run is made of: its rows, and how the rows of two files are held against each other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from llm_replay import Difference, diff_json
from llm_replay.difference import align
from msgspec import Struct

from session_snapshot.compare import BadLine
from session_snapshot.compare import rows as parsed
from session_snapshot.report import Failure
from session_snapshot.view_text import Line, abridged, plain, pretty, pretty_both, visible

State = Literal["", "same", "changed", "added", "removed"]
"""What a row is against its golden; ``""`` where nothing is compared."""

EDITOR, AGENT, FILES = "editor", "agent", "files"

MOST_TITLE = 160
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
    return abridged(" ".join(" ".join(part.split()) for part in parts if part), MOST_TITLE)


# ── rows of files against each other ────────────────────────────────────────────────────────────────────────────────


class Held(Struct, frozen=True):
    """One row of a file held against its golden; ``number`` is its line, from 1, in the file it is still in.

    ``at`` is its place among the actual rows, ``None`` for one that is gone.
    """

    state: State
    number: int
    at: int | None
    expected: Any = None
    actual: Any = None
    differences: tuple[Difference, ...] = ()

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
    """Hold the rows of a JSON Lines text against those of its golden, in the order of the former."""
    before, after = readable(expected), readable(actual)
    return [held(before, after, old, new) for old, new in align(before, after)]


def held(before: Sequence[Any], after: Sequence[Any], old: int | None, new: int | None) -> Held:
    """One pair of :func:`hold`."""
    if new is None:
        assert old is not None
        return gone(before[old], old + 1)
    if old is None:
        return fresh(after[new], new)
    return against(before[old], after[new], new + 1, new)


def fresh(value: Any, at: int) -> Held:
    """A row that the golden has not."""
    return Held("added", at + 1, at, None, value, (Difference("", "added", actual=value),))


def gone(value: Any, number: int) -> Held:
    """A row of the golden that is not there any more."""
    return Held("removed", number, None, value, None, (Difference("", "removed", expected=value),))


def against(expected: Any, actual: Any, number: int, at: int) -> Held:
    """Two rows that belong together."""
    differences = diff_json(expected, actual)
    return Held("changed" if differences else "same", number, at, expected, actual, differences)


def alone(text: str) -> list[Held]:
    """The rows of a file that nothing is held against."""
    return [Held("", at + 1, at, None, value) for at, value in enumerate(readable(text))]


def readable(text: str) -> list[Any]:
    """The rows of a JSON Lines text; a file that is none is one row that says so."""
    try:
        return parsed(text)
    except BadLine as error:
        return [{"unreadable": str(error)}]


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
            yield from (abridged(value[name], MOST_TITLE) for name in TELLING if is_told(value.get(name)))
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
