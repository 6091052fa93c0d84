"""Pair the rows of two JSON Lines texts, so that one inserted row is one difference and not a change of every later
one; pure.

Rows that keep their order whatever else happens (what the model said, responses, model calls) are tied first, where
both texts have the same ones. Between those the pairing is the one whose pairs are most alike in sum; only rows of one
name make a pair. What is left over on both sides and says the same has moved.
"""

import json
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from msgspec import UNSET, Struct
from normalizer import leaves, strip_numbers

Pair = tuple[int | None, int | None]
"""A row of the expected text and one of the actual one, from 0; ``None`` where a row has no counterpart."""

LINE = re.compile(r"[^\n]*\n|[^\n]+")
WORDS = re.compile(r"\w+")
INDEX = re.compile(r"/\d+(?=/|$)")

MODEL_ROWS = frozenset({"assistant/chunk", "text-chunks", "reasoning-chunks", "tool-call-chunks", "llm/call"})
"""The rows of a session log that are the model's words, and so the recording's alone."""

EQUAL, SAME = 4.0, 3.0
"""What a pair is worth: equal to the letter; equal but for the numbers of tokens. Others are worth 1 at most."""

DEAR = 40_000
"""Beyond so many pairs rows are tied by what they say, and those between by place: the table would cost too much."""


class Row(Struct, frozen=True):
    """One line: its text, line end and all, and its value, unset where the line is no JSON."""

    text: str
    value: Any

    @property
    def name(self) -> str:
        """What the row is, in a word; see :func:`name_of`."""
        return "line" if self.value is UNSET else name_of(self.value)


def read_rows(text: str) -> tuple[Row, ...]:
    """The lines of a text. Only a line feed ends one."""
    return tuple(Row(line, value_of(line)) for line in LINE.findall(text))


def value_of(line: str) -> Any:
    """The value of a line; unset where it is no JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return UNSET


def name_of(row: Any) -> str:
    """What a row is, in a word: an event's type, an update's kind, a method, ``response``."""
    if not isinstance(row, dict):
        return "row"
    name = row.get("type") or table(table(row.get("params")).get("update")).get("sessionUpdate") or row.get("method")
    return f"event {name!r}" if name else ("response" if "id" in row else f"call {row.get('call')}")


def table(value: Any) -> dict[str, Any]:
    """A value that is an object; an empty one for any other."""
    return value if isinstance(value, dict) else {}


def is_model_row(value: Any) -> bool:
    """Whether a row of a session log is what the model said, and nothing else."""
    return isinstance(value, dict) and value.get("type") in MODEL_ROWS


def shared_words(one: str, other: str) -> float:
    """The share of words two texts have in common."""
    left, right = set(WORDS.findall(one)), set(WORDS.findall(other))
    return len(left & right) / max(len(left | right), 1)


# ── pairing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def align(old: Sequence[Row], new: Sequence[Row]) -> list[Pair]:
    """The pairing, in an order that keeps both texts' order; every row is in it once."""
    left, right = anchors(old), anchors(new)
    if [name for name, _ in left] != [name for name, _ in right]:
        return list(between(old, new, (0, 0), (len(old), len(new))))
    pairs: list[Pair] = []
    start = (0, 0)
    for (_, i), (_, j) in zip(left, right, strict=True):
        pairs += [*between(old, new, start, (i, j)), (i, j)]
        start = (i + 1, j + 1)
    return [*pairs, *between(old, new, start, (len(old), len(new)))]


def anchors(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """The rows that keep their order, each with what it is."""
    found = ((anchor(row), at) for at, row in enumerate(rows))
    return [(name, at) for name, at in found if name]


def anchor(row: Row) -> str:
    """What a row that keeps its order is; ``""`` for any other."""
    value = table(row.value)
    if is_model_row(value):
        return row.text.rstrip()
    is_named = row.name == "response" or (row.name.startswith("call ") and "append" in value)
    return f"{row.name} {value.get('id')}" if is_named else ""


def between(old: Sequence[Row], new: Sequence[Row], start: tuple[int, int], end: tuple[int, int]) -> Iterator[Pair]:
    """Pair what stands between two places of both texts."""
    (a, c), (b, d) = start, end
    while a < b and c < d and old[a].text == new[c].text:
        yield a, c
        a, c = a + 1, c + 1
    back = 0
    while a < b - back and c < d - back and old[b - back - 1].text == new[d - back - 1].text:
        back += 1
    yield from middle(old, new, range(a, b - back), range(c, d - back))
    yield from zip(range(b - back, b), range(d - back, d), strict=True)


def middle(old: Sequence[Row], new: Sequence[Row], left: range, right: range) -> Iterator[Pair]:
    """Pair rows of which neither the first nor the last two are equal."""
    if len(left) * len(right) <= DEAR:
        yield from most_alike([Looks(old[i]) for i in left], [Looks(new[j]) for j in right], left, right)
        return
    matcher = SequenceMatcher(None, [bare(old[i]) for i in left], [bare(new[j]) for j in right], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from zip(left[a:b], right[c:d], strict=True)
        elif (b - a) * (d - c) <= DEAR:
            yield from middle(old, new, left[a:b], right[c:d])
        else:
            yield from by_place(old, new, left[a:b], right[c:d])


def by_place(old: Sequence[Row], new: Sequence[Row], left: range, right: range) -> Iterator[Pair]:
    """Pair rows that stand at the same place and have one name."""
    for i, j in zip(left, right, strict=False):
        yield from [(i, j)] if old[i].name == new[j].name else [(i, None), (None, j)]
    yield from ((i, None) for i in left[len(right) :])
    yield from ((None, j) for j in right[len(left) :])


def bare(row: Row) -> str:
    """A row without the numbers of its tokens."""
    return strip_numbers(row.text)


class Looks:
    """What of a row is compared with others."""

    def __init__(self, row: Row) -> None:
        """Look at a row once; what is costly is looked at when it is needed."""
        self.row = row
        self.name = row.name
        self.bare = bare(row)
        self._fields: dict[str, list[Any]] | None = None

    @property
    def fields(self) -> dict[str, list[Any]]:
        """The leaves by path, places in lists left out."""
        if self._fields is None:
            self._fields = {}
            for path, leaf in leaves(self.row.value):
                self._fields.setdefault("/".join(str(part) for part in path if isinstance(part, str)), []).append(leaf)
        return self._fields


def most_alike(old: Sequence[Looks], new: Sequence[Looks], left: range, right: range) -> list[Pair]:
    """The pairing whose pairs are worth most in sum (the classic table, walked from its end)."""
    worth = [[value(one, other) for other in new] for one in old]
    score = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, line in enumerate(worth):
        for j, pair in enumerate(line):
            score[i + 1][j + 1] = max(score[i][j] + pair, score[i][j + 1], score[i + 1][j])
    pairs: list[Pair] = []
    i, j = len(old), len(new)
    while i or j:
        if j and score[i][j] == score[i][j - 1]:
            j -= 1
            pairs.append((None, right[j]))
        elif i and score[i][j] == score[i - 1][j]:
            i -= 1
            pairs.append((left[i], None))
        else:
            i, j = i - 1, j - 1
            pairs.append((left[i], right[j]))
    return pairs[::-1]


def value(old: Looks, new: Looks) -> float:
    """What a pair is worth; 0 for what is no pair."""
    if old.row.text == new.row.text:
        return EQUAL
    if old.name != new.name or UNSET in (old.row.value, new.row.value):
        return 0.0
    return SAME if old.bare == new.bare else likeness(old.fields, new.fields)


def likeness(old: dict[str, list[Any]], new: dict[str, list[Any]]) -> float:
    """How alike the leaves of two rows are, above 0 to 1."""
    shared = sum(alike(a, b) for path in old.keys() & new.keys() for a, b in zip(old[path], new[path], strict=False))
    most = max(sum(map(len, old.values())), sum(map(len, new.values())))
    return (shared + 0.1) / (most + 0.1)


def alike(old: Any, new: Any) -> float:
    """How alike two leaves are, 0 to 1."""
    if type(old) is type(new) and old == new:
        return 1.0
    return shared_words(old, new) if isinstance(old, str) and isinstance(new, str) else 0.0


def moves(old: Sequence[Row], new: Sequence[Row], pairs: Sequence[Pair]) -> dict[int, int]:
    """The rows without a counterpart that stand elsewhere: expected place -> actual place."""
    gone = [i for i, j in pairs if i is not None and j is None]
    come = [j for i, j in pairs if j is not None and i is None]
    found: dict[int, int] = {}
    for same in (lambda row: row.text, bare):
        free: dict[str, list[int]] = {}
        for j in come:
            if j not in found.values():
                free.setdefault(same(new[j]), []).append(j)
        for i in gone:
            if i not in found and (there := free.get(same(old[i]))) and old[i].value is not UNSET:
                found[i] = there.pop(0)
    return found
