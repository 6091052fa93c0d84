"""What differs between two JSON values, field by field, and how to show it.

Lists are aligned, so that one inserted element is one ``added`` and not a change of everything after it. Objects are
compared by member, whatever their order; ``true`` is not ``1``.
"""

from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal

from llm_dialects import Json
from msgspec import UNSET, Struct, UnsetType

from llm_replay.lines import canonical, encode

Same = Callable[[Json, Json], bool]
"""Tells whether two values that are not both objects or both lists count as equal."""


class Difference(Struct, frozen=True):
    """One difference.

    ``path`` is a JSON pointer into ``actual``; only the last step of a ``removed`` one is into ``expected``.
    """

    path: str
    kind: Literal["changed", "added", "removed"]
    expected: Json | UnsetType = UNSET
    actual: Json | UnsetType = UNSET


def same_leaf(expected: Json, actual: Json) -> bool:
    """Tell whether two leaves are the same JSON value."""
    return bool(expected == actual) and isinstance(expected, bool) is isinstance(actual, bool)


def diff_json(expected: Json, actual: Json, *, same: Same = same_leaf, path: str = "") -> tuple[Difference, ...]:
    """Return the differences, in the order of ``actual``. ``path`` is put before every path."""
    return tuple(_diff(expected, actual, same, path))


def format_difference(difference: Difference) -> tuple[str, ...]:
    """Return lines that show a difference; a changed text is shown around its changed words only."""
    head = f"{difference.kind} {difference.path or '(all of it)'}"
    expected, actual = difference.expected, difference.actual
    if isinstance(expected, str) and isinstance(actual, str):
        old, new = mark_words(expected, actual)
        return (head, f"  - {old}", f"  + {new}")
    old_line = () if expected is UNSET else (f"  - {_short(encode(expected))}",)
    new_line = () if actual is UNSET else (f"  + {_short(encode(actual))}",)
    return (head, *old_line, *new_line)


def mark_words(expected: str, actual: str) -> tuple[str, str]:
    """Return both texts with what they share elided and the words that differ marked: ``[-old-]`` and ``{+new+}``."""
    start = _shared(expected, actual)
    end = _shared(expected[start:][::-1], actual[start:][::-1])
    start, end = _to_word(expected, actual, start), -_to_word(expected[::-1], actual[::-1], end)
    before, after = _context_before(expected[:start]), _context_after(expected[len(expected) + end :])
    old, new = expected[start : len(expected) + end], actual[start : len(actual) + end]
    return f"{before}[-{_visible(old)}-]{after}", f"{before}{{+{_visible(new)}+}}{after}"


# ── Comparing ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _diff(expected: Json, actual: Json, same: Same, path: str) -> Iterator[Difference]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        yield from _diff_objects(expected, actual, same, path)
    elif isinstance(expected, list) and isinstance(actual, list):
        yield from _diff_lists(expected, actual, same, path)
    elif not same(expected, actual):
        yield Difference(path, "changed", expected, actual)


def _diff_objects(expected: dict[str, Json], actual: dict[str, Json], same: Same, path: str) -> Iterator[Difference]:
    for key, value in expected.items():
        if key not in actual:
            yield Difference(f"{path}/{_pointer(key)}", "removed", expected=value)
    for key, value in actual.items():
        here = f"{path}/{_pointer(key)}"
        if key in expected:
            yield from _diff(expected[key], value, same, here)
        else:
            yield Difference(here, "added", actual=value)


def _diff_lists(expected: list[Json], actual: list[Json], same: Same, path: str) -> Iterator[Difference]:
    for old, new in align(expected, actual):
        if old is None:
            yield Difference(f"{path}/{new}", "added", actual=actual[new or 0])
        elif new is None:
            yield Difference(f"{path}/{old}", "removed", expected=expected[old])
        else:
            yield from _diff(expected[old], actual[new], same, f"{path}/{new}")


Pair = tuple[int | None, int | None]
"""An index into ``expected`` and one into ``actual``; ``None`` where the element has no counterpart."""


def align(expected: Sequence[Json], actual: Sequence[Json]) -> Iterator[Pair]:
    """Pair the elements of two lists: equal ones first, then, between those, the ones most alike."""
    old, new = [canonical(value) for value in expected], [canonical(value) for value in actual]
    front = _shared_front(old, new)
    back = _shared_front(old[front:][::-1], new[front:][::-1])
    yield from ((at, at) for at in range(front))
    middle = old[front : len(old) - back], new[front : len(new) - back]
    yield from ((_at(front, i), _at(front, j)) for i, j in _align_middle(expected[front:], actual[front:], *middle))
    yield from zip(range(len(old) - back, len(old)), range(len(new) - back, len(new)), strict=True)


def _align_middle(
    expected: Sequence[Json], actual: Sequence[Json], old: Sequence[str], new: Sequence[str]
) -> Iterator[Pair]:
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from zip(range(a, b), range(c, d), strict=True)
        elif (b - a) * (d - c) > DEAR:
            yield from _by_place(range(a, b), range(c, d))
        else:
            yield from ((_at(a, i), _at(c, j)) for i, j in _most_alike(expected[a:b], actual[c:d]))


def _shared_front(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = zip(old, new, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(old), len(new)))


def _by_place(old: range, new: range) -> Iterator[Pair]:
    shared = min(len(old), len(new))
    yield from zip(old, new, strict=False)
    yield from ((i, None) for i in old[shared:])
    yield from ((None, j) for j in new[shared:])


def _most_alike(old: Sequence[Json], new: Sequence[Json]) -> list[Pair]:
    """Return the pairing, in order, whose pairs are most alike in sum (the classic table, walked from its end)."""
    score = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, left in enumerate(old, 1):
        for j, right in enumerate(new, 1):
            score[i][j] = max(score[i - 1][j - 1] + likeness(left, right), score[i - 1][j], score[i][j - 1])
    pairs: list[Pair] = []
    i, j = len(old), len(new)
    while i or j:
        if j and score[i][j] == score[i][j - 1]:
            j -= 1
            pairs.append((None, j))
        elif i and score[i][j] == score[i - 1][j]:
            i -= 1
            pairs.append((i, None))
        else:
            i, j = i - 1, j - 1
            pairs.append((i, j))
    return pairs[::-1]


def likeness(old: Json, new: Json) -> float:
    """Return how alike two values are, 0 to 1; 0 means that one cannot be called a changed form of the other."""
    if isinstance(old, dict) and isinstance(new, dict):
        if any(key in old and key in new and old[key] != new[key] for key in NAMING):
            return 0.0
        return _share(sum(key in new and new[key] == value for key, value in old.items()), len(old), len(new))
    if isinstance(old, str) and isinstance(new, str):
        start = _shared(old, new)
        return _share(start + _shared(old[start:][::-1], new[start:][::-1]), len(old), len(new))
    return 0.5 if type(old) is type(new) else 0.0


def _share(equal: int, old: int, new: int) -> float:
    """Return the share that is equal, never 0: the two are of one kind at least."""
    return (equal + 0.1) / (max(old, new) + 0.1)


def _at(start: int, index: int | None) -> int | None:
    return None if index is None else start + index


def _pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


# ── Showing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _shared(one: str, other: str) -> int:
    """Return the length of the common beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _to_word(one: str, other: str, length: int) -> int:
    """Shorten a common beginning to where a word ends, unless the whole of a text would be lost to one long word."""
    shortened = length
    while shortened and _inside_word(one, shortened) | _inside_word(other, shortened):
        shortened -= 1
    return shortened if length - shortened <= LONGEST_WORD else length


def _inside_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()


def _context_before(text: str) -> str:
    shown = _visible(text[-CONTEXT:])
    return f"…{shown}" if len(text) > CONTEXT else shown


def _context_after(text: str) -> str:
    shown = _visible(text[:CONTEXT])
    return f"{shown}…" if len(text) > CONTEXT else shown


def _visible(text: str) -> str:
    """Return ``text`` on one line, as it would stand in JSON."""
    return _short(encode(text)[1:-1])


def _short(text: str) -> str:
    if len(text) <= LONGEST_SHOWN:
        return text
    half = LONGEST_SHOWN // 2
    return f"{text[:half]}… ({len(text) - 2 * half} more) …{text[-half:]}"


CONTEXT = 40
LONGEST_WORD = 40
LONGEST_SHOWN = 400
# Beyond so many pairs elements are paired by place: the table would cost more than it tells.
DEAR = 10_000
# Members that say what a thing is: where they differ, it is another thing.
NAMING = ("type", "role", "method", "sessionUpdate", "toolCallId")
