"""Text for the page of a run: JSON as lines, two values as lines that say what was and what is, changed words marked.

Nothing here trusts what it shows: characters that would hide or reorder text are spelled out.
"""

import json
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal

from llm_replay.difference import align, same_leaf
from msgspec import Struct

from session_snapshot.visible import visible

Mark = Literal[" ", "+", "-"]
"""What a line is: as in the golden, new, gone."""


class Line(Struct, frozen=True):
    """One line of a detail; ``depth`` is how far it is indented."""

    mark: Mark
    depth: int
    text: str


class Piece(Struct, frozen=True):
    """A part of a text: as in the other text, or not."""

    text: str
    changed: bool


# ── characters ──────────────────────────────────────────────────────────────────────────────────────────────────────


def abridged(text: str, most: int) -> str:
    """The beginning of a text, and how much of it is not shown."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more)"


# ── JSON as lines ───────────────────────────────────────────────────────────────────────────────────────────────────


def pretty(value: Any, mark: Mark = " ", depth: int = 0, head: str = "", tail: str = "") -> Iterator[Line]:
    """A JSON value as lines; ``head`` stands before it on its first line, ``tail`` behind it on its last."""
    match value:
        case dict() if value:
            yield Line(mark, depth, f"{head}{{")
            for at, (key, item) in enumerate(value.items(), 1):
                yield from pretty(item, mark, depth + 1, key_text(key), "," if at < len(value) else "")
            yield Line(mark, depth, f"}}{tail}")
        case list() if value:
            yield Line(mark, depth, f"{head}[")
            for at, item in enumerate(value, 1):
                yield from pretty(item, mark, depth + 1, "", "," if at < len(value) else "")
            yield Line(mark, depth, f"]{tail}")
        case str():
            yield from text_lines(value, mark, depth, head, tail)
        case _:
            yield Line(mark, depth, f"{head}{leaf_text(value)}{tail}")


def text_lines(text: str, mark: Mark, depth: int, head: str, tail: str) -> Iterator[Line]:
    """A string; one of several lines is shown as such, each line end as a sign of its own."""
    first, *rest = text.split("\n")
    parts = [first, *rest]
    shown = [leaf_text(part)[1:-1] for part in parts]
    for at, part in enumerate(shown):
        begin = f'{head}"' if at == 0 else ""
        end = f'"{tail}' if at == len(shown) - 1 else "↵"
        yield Line(mark, depth if at == 0 else depth + 1, f"{begin}{part}{end}")


def key_text(key: str) -> str:
    """A member's name as it stands before its value."""
    return f"{leaf_text(key)}: "


def leaf_text(value: Any) -> str:
    """A JSON value on one line."""
    return visible(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def pretty_both(expected: Any, actual: Any, depth: int = 0, head: str = "", tail: str = "") -> Iterator[Line]:
    """Two JSON values as lines: what they share once, a changed field as it was and as it is."""
    if isinstance(expected, dict) and isinstance(actual, dict) and expected and actual:
        yield Line(" ", depth, f"{head}{{")
        yield from both_members(expected, actual, depth + 1)
        yield Line(" ", depth, f"}}{tail}")
    elif isinstance(expected, list) and isinstance(actual, list) and expected and actual:
        yield Line(" ", depth, f"{head}[")
        yield from both_items(expected, actual, depth + 1)
        yield Line(" ", depth, f"]{tail}")
    elif same_leaf(expected, actual):
        yield from pretty(actual, " ", depth, head, tail)
    else:
        yield from pretty(expected, "-", depth, head, tail)
        yield from pretty(actual, "+", depth, head, tail)


def both_members(expected: dict[str, Any], actual: dict[str, Any], depth: int) -> Iterator[Line]:
    """The members of two objects, those that are gone first."""
    for key, value in expected.items():
        if key not in actual:
            yield from pretty(value, "-", depth, key_text(key), ",")
    for at, (key, value) in enumerate(actual.items(), 1):
        tail = "," if at < len(actual) else ""
        if key in expected:
            yield from pretty_both(expected[key], value, depth, key_text(key), tail)
        else:
            yield from pretty(value, "+", depth, key_text(key), tail)


def both_items(expected: Sequence[Any], actual: Sequence[Any], depth: int) -> Iterator[Line]:
    """The elements of two lists, aligned as differences are told."""
    for old, new in align(expected, actual):
        tail = "," if new is None or new < len(actual) - 1 else ""
        if new is None:
            assert old is not None
            yield from pretty(expected[old], "-", depth, "", tail)
        elif old is None:
            yield from pretty(actual[new], "+", depth, "", tail)
        else:
            yield from pretty_both(expected[old], actual[new], depth, "", tail)


def plain(text: str, mark: Mark = " ") -> Iterator[Line]:
    """A text as lines."""
    for line in text.splitlines():
        yield Line(mark, 0, visible(line))


# ── changed words ───────────────────────────────────────────────────────────────────────────────────────────────────

WORD = re.compile(r"\w+|\s+|[^\w\s]")
MOST_WORDS = 2000
"""Longer texts are marked from their first to their last difference: aligning words would cost more than it tells."""

CONTEXT = 120
"""How much of a part that did not change is shown on either side of one that did."""

LONGEST = 1500
"""How much of one part that did change is shown."""


def changed_words(expected: str, actual: str) -> tuple[list[Piece], list[Piece]]:
    """Both texts in pieces, what is not in the other one marked, long pieces abridged."""
    old, new = WORD.findall(expected), WORD.findall(actual)
    if max(len(old), len(new)) > MOST_WORDS:
        back = shared_end(old, new)
        blocks = [(0, 0, shared(old, new)), (len(old) - back, len(new) - back, back)]
    else:
        found = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        blocks = [(block.a, block.b, block.size) for block in found]
    blocks = [block for block in blocks if not is_gap(old, new, *block)]
    before = pieces(old, [(a, a + size) for a, _, size in blocks])
    after = pieces(new, [(b, b + size) for _, b, size in blocks])
    return shortened(before), shortened(after)


def is_gap(old: Sequence[str], new: Sequence[str], a: int, b: int, size: int) -> bool:
    """Whether a shared stretch is nothing but blanks between changed words: they are one change then."""
    at_an_end = (a == 0 and b == 0) or (a + size == len(old) and b + size == len(new))
    return not at_an_end and not "".join(old[a : a + size]).strip()


def shared(old: Sequence[str], new: Sequence[str]) -> int:
    """How many words both begin with."""
    pairs = zip(old, new, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(old), len(new)))


def shared_end(old: Sequence[str], new: Sequence[str]) -> int:
    """How many words both end with, beyond those that both begin with."""
    front = shared(old, new)
    return shared(old[front:][::-1], new[front:][::-1])


def pieces(words: Sequence[str], kept: Sequence[tuple[int, int]]) -> list[Piece]:
    """Words joined into pieces; ``kept`` are the stretches that the other text has too."""
    found: list[Piece] = []
    at = 0
    for start, end in [*kept, (len(words), len(words))]:
        found.append(Piece("".join(words[at:start]), True))
        found.append(Piece("".join(words[start:end]), False))
        at = end
    return [piece for piece in found if piece.text]


def shortened(found: Sequence[Piece]) -> list[Piece]:
    """Pieces with what is far from any change left out."""
    last = len(found) - 1
    return [
        Piece(abridged(piece.text, LONGEST), True)
        if piece.changed
        else Piece(near(piece.text, before=at > 0, after=at < last), False)
        for at, piece in enumerate(found)
    ]


def near(text: str, *, before: bool, after: bool) -> str:
    """An unchanged piece with changes ``before`` or ``after`` it: what stands next to them."""
    if len(text) <= 2 * CONTEXT:
        return text
    return f"{text[:CONTEXT] if before else ''}…{text[-CONTEXT:] if after else ''}"
