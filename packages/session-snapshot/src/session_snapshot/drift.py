"""What kind of change a difference is, and which scenarios share it: read before any single diff."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from llm_replay import Difference, diff_json
from msgspec import UNSET, Struct

from session_snapshot.compare import rows
from session_snapshot.report import Surface

Kind = Literal["clock", "identity", "order", "additive", "wording", "semantic"]

CLOCK = re.compile(r"/(time|createdAt|updatedAt|dt|duration\w*|\w*Ms|\w*_ms)(/|$)")
TOKEN = re.compile(r"\{\{[A-Za-z]\w*(:[^{}]*)?\}\}")
WORDS = re.compile(r"\w+")
WORDING_SHARE = 0.5
"""Two texts that share at least this much of their words are one text, reworded."""


class Change(Struct, frozen=True):
    """One difference: in which surface, of which kind, and what it is in a phrase that is equal across scenarios."""

    surface: Surface
    kind: Kind
    phrase: str


def changes_between(surface: Surface, expected: str, actual: str) -> list[Change]:
    """Every difference between two JSON Lines texts, classified."""
    before, after = rows(expected), rows(actual)
    differences = diff_json(before, after)
    if differences and sorted(map(repr, before)) == sorted(map(repr, after)):
        return [Change(surface, "order", "the same rows in another order")]
    return [Change(surface, kind_of(difference), phrase_of(difference)) for difference in differences]


def kind_of(difference: Difference) -> Kind:
    """The kind of one difference."""
    if CLOCK.search(difference.path):
        return "clock"
    if difference.kind == "added" and difference.path.count("/") == 1:
        return "additive"
    if isinstance(difference.expected, str) and isinstance(difference.actual, str):
        if TOKEN.sub("", difference.expected) == TOKEN.sub("", difference.actual):
            return "identity"
        return "wording" if shared_words(difference.expected, difference.actual) >= WORDING_SHARE else "semantic"
    return "semantic"


def shared_words(one: str, other: str) -> float:
    """The share of words two texts have in common."""
    left, right = set(WORDS.findall(one)), set(WORDS.findall(other))
    return len(left & right) / max(len(left | right), 1)


def phrase_of(difference: Difference) -> str:
    """A difference without its line number: ``event "usage_update" added``, ``/params/update/title changed``."""
    _, _, field = difference.path[1:].partition("/")
    if field:
        return f"/{field} {difference.kind}"
    row = difference.actual if difference.actual is not UNSET else difference.expected
    return f"{name_of(row)} {difference.kind}"


def name_of(row: Any) -> str:
    """What a row is, in a word: an event's type, an update's kind, a method, ``response``."""
    if not isinstance(row, dict):
        return "row"
    name = row.get("type") or table(table(row.get("params")).get("update")).get("sessionUpdate") or row.get("method")
    return f"event {name!r}" if name else ("response" if "id" in row else f"call {row.get('call')}")


def table(value: Any) -> dict[str, Any]:
    """A value that is an object; an empty one for any other."""
    return value if isinstance(value, dict) else {}


def group_lines(changes: Mapping[str, Sequence[Change]]) -> list[str]:
    """One line per change with how many scenarios share it, the most shared first."""
    groups: dict[Change, list[str]] = {}
    for name, found in changes.items():
        for change in dict.fromkeys(found):
            groups.setdefault(change, []).append(name)
    ranked = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0].kind, group[0].phrase))
    return [f"{change.kind}: {change.surface}: {change.phrase}, {in_words(names)}" for change, names in ranked]


def in_words(names: Sequence[str]) -> str:
    """``in 3 scenarios: a, b, c``; ``in a``."""
    return f"in {names[0]}" if len(names) == 1 else f"in {len(names)} scenarios: {', '.join(names)}"
