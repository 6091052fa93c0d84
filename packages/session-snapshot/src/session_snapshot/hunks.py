"""The differences between a committed text and a new one as values that can be taken in one by one; pure.

Taking in all of them gives the new text to the letter, none the old one, and any others a text whose rows are whole:
of a row that is taken in by half, the fields. The same walk finds the differences and applies them, so that a number
always means the same one.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal

from llm_replay.difference import align as align_elements
from llm_replay.files import PRIMARY
from msgspec import UNSET, Struct, UnsetType
from normalizer import canonical_line

from session_snapshot.rows import Pair, Row, align, is_model_row, moves, read_rows

How = Literal["changed", "added", "removed", "moved", "bytes"]

WHOLE_TEXTS = {"header.system.md": "the system prompt"}
PACE = "the pace"
WHOLE_VALUES = {"header.tools.json": "the tools", "provenance.toml": PACE}
"""Files that are one row, by name, and what that row is called."""

HISTORY = ("lane", "parent", "source", "keep", "append", "rewritten")
"""Members of a request's row that only mean something together: where one but ``append`` changes, they are one."""


class Hunk(Struct, frozen=True):
    """One difference.

    ``row`` is what the row is; ``path`` a JSON pointer to a field in it, ``""`` for the whole row. ``old_line`` and
    ``new_line`` are the row's lines in both texts, counted from 1, 0 where it has none. ``bytes``: the same value,
    written otherwise. ``model``: these are the model's own words, which no refresh may change.
    """

    how: How
    row: str
    path: str
    expected: Any
    actual: Any
    old_line: int
    new_line: int
    model: bool = False


class Texts(Struct, frozen=True):
    """A committed text and a new one of one file, ``None`` where there is no such file, and their rows, paired."""

    name: str
    expected: str | None
    actual: str | None
    old: tuple[Row, ...]
    new: tuple[Row, ...]
    pairs: tuple[Pair, ...]
    moved: dict[int, int]


def texts_of(name: str, expected: str | None, actual: str | None) -> Texts:
    """Read and pair both texts of the file ``name``."""
    old, new = rows_of(name, expected or ""), rows_of(name, actual or "")
    pairs = tuple(align(old, new))
    return Texts(name, expected, actual, old, new, pairs, moves(old, new, pairs))


def rows_of(name: str, text: str) -> tuple[Row, ...]:
    """The rows of a file; some files are one."""
    if name in WHOLE_TEXTS:
        return (Row(text, text),) if text else ()
    if name in WHOLE_VALUES:
        return (Row(text, json.loads(text)),) if text else ()
    return read_rows(text)


def hunks_of(texts: Texts) -> list[Hunk]:
    """Every difference: rows that moved, then the others in the order of the text."""
    found: list[Hunk] = []

    def note(hunk: Hunk) -> bool:
        found.append(hunk)
        return False

    merge(texts, note)
    return found


def apply(texts: Texts, accepted: AbstractSet[int]) -> str | None:
    """The committed text with these of its hunks (by place in :func:`hunks_of`) taken in; ``None``: no file."""
    count = -1

    def take(_hunk: Hunk) -> bool:
        nonlocal count
        count += 1
        return count in accepted

    return merge(texts, take)


def unchanged_fields(texts: Texts) -> Iterator[Any]:
    """Every leaf that is the same in both texts."""
    kept: list[Any] = []
    for i, j in [*texts.pairs, *texts.moved.items()]:
        if i is not None and j is not None:
            weave(texts.old[i].value, texts.new[j].value, lambda _: False, keep=kept.append)
    yield from kept


# ── whole files ─────────────────────────────────────────────────────────────────────────────────────────────────────

Take = Callable[[Hunk], bool]
"""Says of one difference whether it is taken in. It is asked about each, always in the same order."""


def merge(texts: Texts, take: Take) -> str | None:
    """The text with what ``take`` takes."""
    if texts.expected is None or texts.actual is None:
        return whole(texts, take)
    lines = list(merged(texts, take))
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines[:-1]) + "".join(lines[-1:])


def whole(texts: Texts, take: Take) -> str | None:
    """A file that is there on one side only is taken in or not."""
    if texts.expected == texts.actual:
        return texts.expected
    how: How = "added" if texts.expected is None else "removed"
    rows = [row.value if row.value is not UNSET else row.text for row in texts.new or texts.old]
    expected, actual = (UNSET, rows) if how == "added" else (rows, UNSET)
    said = how == "removed" and texts.name == PRIMARY  # it is the replay source, be it empty
    hunk = Hunk(how, f"the file {texts.name}", "", expected, actual, int(how == "removed"), int(how == "added"), said)
    return texts.actual if take(hunk) else texts.expected


def merged(texts: Texts, take: Take) -> Iterator[str]:
    """The lines of the text."""
    to = {j: i for i, j in texts.moved.items()}
    moved = {i: move(texts, i, j, take) for i, j in texts.moved.items()}
    for i, j in texts.pairs:
        if i is not None and j is not None:
            yield row_text(texts, i, j, take)
        elif i is not None and i in moved:
            yield from [] if moved[i].taken else [moved[i].text]
        elif j is not None and j in to:
            yield from [moved[to[j]].text] if moved[to[j]].taken else []
        elif i is not None and not take(whole_row(texts, "removed", i, None)):
            yield texts.old[i].text
        elif i is None and j is not None and take(whole_row(texts, "added", None, j)):
            yield texts.new[j].text


class Move(Struct, frozen=True):
    """A row that moved: whether that is taken in, and its text wherever it stands."""

    taken: bool
    text: str


def move(texts: Texts, i: int, j: int, take: Take) -> Move:
    """Ask about a row that moved."""
    return Move(take(whole_row(texts, "moved", i, j)), row_text(texts, i, j, take))


def whole_row(texts: Texts, how: How, i: int | None, j: int | None) -> Hunk:
    """The hunk of a row that came, went or moved."""
    row = texts.old[i] if i is not None else texts.new[j or 0]
    old = UNSET if i is None else shown(texts.old[i])
    new = UNSET if j is None else shown(texts.new[j])
    return Hunk(how, called(texts, row), "", old, new, line_of(i), line_of(j), is_model(texts, row))


def shown(row: Row) -> Any:
    """A row's value; its text where it has none."""
    return row.text if row.value is UNSET else row.value


def called(texts: Texts, row: Row) -> str:
    """What a row is."""
    return WHOLE_TEXTS.get(texts.name) or WHOLE_VALUES.get(texts.name) or row.name


def line_of(place: int | None) -> int:
    """A place as a line; 0 for none."""
    return 0 if place is None else place + 1


def is_model(texts: Texts, row: Row) -> bool:
    """Whether a row is the model's words."""
    return texts.name.startswith("session") and is_model_row(row.value)


# ── one row ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Leaf(Struct, frozen=True):
    """A difference inside a row: ``path`` is a pointer into the new value, of a ``removed`` one into the old."""

    how: How
    path: str
    expected: Any | UnsetType = UNSET
    actual: Any | UnsetType = UNSET


def row_text(texts: Texts, i: int, j: int, take: Take) -> str:
    """One row that is in both texts."""
    old, new = texts.old[i], texts.new[j]
    if old.text == new.text:
        return old.text
    answers: list[bool] = []

    def choose(leaf: Leaf) -> bool:
        model = is_model(texts, old) or is_said(old.value, leaf.path)
        row = called(texts, old)
        hunk = Hunk(leaf.how, row, leaf.path, leaf.expected, leaf.actual, line_of(i), line_of(j), model)
        answers.append(take(hunk))
        return answers[-1]

    value = (weave_request if is_request(texts, old, new) else weave)(old.value, new.value, choose)
    if not answers:
        choose(Leaf("bytes", "", old.text, new.text))
    if not any(answers):
        return old.text
    return new.text if all(answers) else written(texts.name, value)


def is_request(texts: Texts, old: Row, new: Row) -> bool:
    """Whether both rows are model requests."""
    return texts.name.startswith("requests") and isinstance(old.value, dict) and isinstance(new.value, dict)


def is_said(row: Any, path: str) -> bool:
    """Whether a field of a row that is the agent's is what the model said."""
    kind = str(row.get("type")) if isinstance(row, dict) else ""
    return any(path.startswith(said) for said in SAID.get(kind, ()))


def written(name: str, value: Any) -> str:
    """A value as its file has it."""
    if name in WHOLE_TEXTS:
        return str(value)
    if name in WHOLE_VALUES:
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return canonical_line(value) + "\n"


Choose = Callable[[Leaf], bool]
Keep = Callable[[Any], object]


def weave(old: Any, new: Any, choose: Choose, path: str = "", keep: Keep = lambda _: None) -> Any:
    """The old value with the leaves of the new one that ``choose`` takes; ``keep`` is told every leaf that is in both.

    Members stand as in the new value where all of them are taken, else as in the old one.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        return weave_members(old, new, choose, path, keep)
    if isinstance(old, list) and isinstance(new, list):
        return list(weave_elements(old, new, choose, path, keep))
    if type(old) is type(new) and old == new:
        keep(old)
        return old
    return new if choose(Leaf("changed", path, old, new)) else old


def weave_members(old: dict[str, Any], new: dict[str, Any], choose: Choose, path: str, keep: Keep) -> dict[str, Any]:
    """The members of two objects."""
    found: dict[str, Any] = {}
    for key, value in old.items():
        here = f"{path}/{pointer(key)}"
        if key in new:
            found[key] = weave(value, new[key], choose, here, keep)
        elif not choose(Leaf("removed", here, value)):
            found[key] = value
    for key, value in new.items():
        if key not in old and choose(Leaf("added", f"{path}/{pointer(key)}", UNSET, value)):
            found[key] = value
    return {key: found[key] for key in new} if found.keys() == new.keys() else found


def weave_elements(old: list[Any], new: list[Any], choose: Choose, path: str, keep: Keep) -> Iterator[Any]:
    """The elements of two lists."""
    for i, j in align_elements(old, new):
        if i is not None and j is not None:
            yield weave(old[i], new[j], choose, f"{path}/{j}", keep)
        elif i is not None:
            if not choose(Leaf("removed", f"{path}/{i}", old[i])):
                yield old[i]
        elif j is not None and choose(Leaf("added", f"{path}/{j}", UNSET, new[j])):
            yield new[j]


def weave_request(old: dict[str, Any], new: dict[str, Any], choose: Choose) -> dict[str, Any]:
    """The row of a request. A history that is told from another place on is one difference, whatever is in it."""
    if all(old.get(key) == new.get(key) for key in HISTORY if key != "append"):
        found: dict[str, Any] = weave(old, new, choose)
        return found
    before, after = part(old, HISTORY), part(new, HISTORY)
    history = after if choose(Leaf("changed", "", before, after)) else before
    rest = weave(without(old, HISTORY), without(new, HISTORY), choose) | history
    return {key: rest[key] for key in dict.fromkeys([*ROW, *rest]) if key in rest}


def part(row: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Some members of an object."""
    return {name: row[name] for name in names if name in row}


def without(row: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """An object without some members."""
    return {name: value for name, value in row.items() if name not in names}


def pointer(key: str) -> str:
    """A member's name as a JSON pointer has it."""
    return key.replace("~", "~0").replace("/", "~1")


ROW = ("call", "lane", "parent", "source", "header", "params", "keep", "append", "rewritten")
SAID = {"llm/aux": ("/data/chunks",), "compaction/summary": ("/data/rawOutput", "/data/usage")}
"""Fields of the agent's own events that are what the model said."""
