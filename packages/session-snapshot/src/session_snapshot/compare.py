"""Hold actual surfaces against committed ones: byte for byte, and where they differ, say what changed in what
happened."""

import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, assert_never

from llm_replay import Difference, format_difference
from normalizer import canonical_lines

from session_snapshot.hunks import Hunk, hunks_of, texts_of
from session_snapshot.report import Failure, Surface

CONTEXT = 2
"""How many unchanged lines before the first difference are shown."""

SHOWN_CHARS = 160
MOST_DIFFERENCES = 20


def compare_lines(surface: Surface, name: str, expected: str | None, actual: str) -> list[Failure]:
    """Compare two JSON Lines texts; ``name`` is the committed file's, ``expected`` is ``None`` where it is missing."""
    if expected is None:
        what = f"{name} is missing"
        return [Failure(surface, what, "mend: record the scenario, or refresh it with --accept once you have read it")]
    if expected == actual:
        return []
    try:
        before, _ = rows(expected), rows(actual)
    except BadLine as error:
        return [Failure(surface, f"{name}:{error}", "mend: restore it from version control")]
    hunks = hunks_of(texts_of(name.rpartition("/")[2], expected, actual))
    if all(hunk.how == "bytes" for hunk in hunks):
        return [Failure(surface, f"{name} says the same in other bytes", byte_difference(expected, actual))]
    return [Failure(surface, headline(name, hunks), describe(before, sorted(hunks, key=line_of)))]


class BadLine(ValueError):
    """A line that is not JSON; the message begins with its number, counted from 1."""


def rows(text: str) -> list[Any]:
    """The values of JSON Lines.

    Raises:
        BadLine: a line is not JSON.
    """
    return [row(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def row(number: int, line: str) -> Any:
    """The value of one line."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadLine(f"{number}: not JSON ({error})") from error


def keyed_like(expected: str, actual: str) -> str:
    """``actual`` with the members of its objects in the order they have in ``expected``, as far as those are there.

    The order of members is no content of a request: serialisers change it with their version. Values never change.
    """
    try:
        before, after = rows(expected), rows(actual)
    except BadLine:
        return actual
    after[: len(before)] = [members_like(old, new) for old, new in zip(before, after, strict=False)]
    return canonical_lines(after)


def members_like(old: Any, new: Any) -> Any:
    """``new`` with its members in the order of ``old``."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = [*(name for name in old if name in new), *(name for name in new if name not in old)]
        return {name: members_like(old.get(name), new[name]) for name in names}
    if isinstance(old, list) and isinstance(new, list):
        return [*map(members_like, old, new), *new[len(old) :]]
    return new


def headline(name: str, hunks: Sequence[Hunk]) -> str:
    """How much differs, and from which line on."""
    line = min(map(line_of, hunks))
    count = len(hunks)
    return f"{name}:{line}: {count} difference{'s'[: count != 1]}, the first in line {line}"


def line_of(hunk: Hunk) -> int:
    """The line of a difference in the committed file, or where one would come to stand."""
    return hunk.old_line or hunk.new_line


def describe(before: Sequence[Any], hunks: Sequence[Hunk]) -> str:
    """The lines before the first difference, then every difference, fields named by path."""
    line = line_of(hunks[0])
    shown = [
        f"  line {n + 1}: {abridged(before[n])}" for n in range(max(line - 1 - CONTEXT, 0), min(line - 1, len(before)))
    ]
    for hunk in hunks[:MOST_DIFFERENCES]:
        shown += lines_of(hunk)
    if len(hunks) > MOST_DIFFERENCES:
        shown.append(f"... and {len(hunks) - MOST_DIFFERENCES} more (see the actual files)")
    return "\n".join(shown)


def lines_of(hunk: Hunk) -> Sequence[str]:
    """One difference: what became of which field of which row, the first row being 0, and both values."""
    match hunk.how:
        case "moved":
            return [f"moved /{hunk.old_line - 1} to /{hunk.new_line - 1}", f"    {abridged(hunk.actual)}"]
        case "bytes":
            return [f"the same in other bytes: /{hunk.old_line - 1}"]
        case "changed" | "added" | "removed":
            path = f"/{line_of(hunk) - 1}{hunk.path}"
            return format_difference(Difference(path, hunk.how, hunk.expected, hunk.actual))
    assert_never(hunk.how)


def abridged(value: Any) -> str:
    """A row on one short line."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"


def byte_difference(expected: str, actual: str) -> str:
    """The first line whose bytes differ."""
    pairs = zip_longest(expected.split("\n"), actual.split("\n"))
    number, before, after = next((n, old, new) for n, (old, new) in enumerate(pairs, 1) if old != new)
    letters = zip_longest(before or "", after or "")
    same = next((at for at, (old, new) in enumerate(letters) if old != new), 0)
    start = max(same - SHOWN_CHARS // 2, 0)
    return f"line {number}: {quoted(before, start)} became {quoted(after, start)}"


def quoted(line: str | None, start: int) -> str:
    """A piece of a line, blanks and all; ``None`` where there is no such line."""
    return "nothing" if line is None else "…"[: start > 0] + repr(line[start : start + SHOWN_CHARS])


def compare_trees(name: str, expected: Mapping[str, bytes], actual: Mapping[str, bytes]) -> list[Failure]:
    """Compare two folders; ``name`` says what ``expected`` is."""
    lines = [
        *(f"missing: {path}" for path in sorted(expected.keys() - actual.keys())),
        *(f"added:   {path} ({excerpt(actual[path])})" for path in sorted(actual.keys() - expected.keys())),
        *(
            f"changed: {path}: {excerpt(expected[path])} became {excerpt(actual[path])}"
            for path in sorted(expected.keys() & actual.keys())
            if expected[path] != actual[path]
        ),
    ]
    if not lines:
        return []
    count = len(lines)
    what = f"{count} file{'s'[: count != 1]} not as in {name}"
    return [Failure("workspace", what, "\n".join(lines))]


def excerpt(content: bytes) -> str:
    """The beginning of a file, as text where it is text."""
    shown = repr(content[:80].decode("utf-8", "backslashreplace"))
    return shown + (f" … {len(content)} bytes" if len(content) > 80 else "")
