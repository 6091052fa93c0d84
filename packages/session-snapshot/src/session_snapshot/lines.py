"""Where a value stands: the line of a JSON path in the text of a TOML or JSON file.

Readers of both formats keep no positions. JSON is walked exactly; TOML is read line by line, which finds tables and
keys, and for what stands inside an inline table or a list the nearest key above it.
"""

import json
import re
from collections.abc import Iterator

Path = tuple[str | int, ...]
"""Member names and list indexes from the top of a file down; ``()`` is the whole file."""

PART = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<index>\d+|\.\.\.)\]")


def path_of(written: str) -> Path:
    """A JSON path as msgspec writes it: ``$.normalize[0].token``; ``[...]``, any member of a table, is ``"..."``."""
    found = PART.finditer(written.removeprefix("$"))
    return tuple(part["name"] or (int(part["index"]) if part["index"].isdigit() else "...") for part in found)


def line_of(text: str, word: str, first: int = 1) -> int | None:
    """The first line of ``text``, from line ``first`` on, that holds ``word`` as a whole word; counted from 1."""
    pattern = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
    for number, line in enumerate(text.splitlines(), 1):
        if number >= first and pattern.search(line.split("#")[0]):
            return number
    return None


def line_at(text: str, path: Path) -> int:
    """The line on which the value at ``path`` begins, or the nearest thing above it that can be found."""
    return json_line(text, path) if text.lstrip().startswith("{") else toml_line(text, path)


def line_within(text: str, path: Path, word: str) -> int | None:
    """The line of ``word`` in the value at ``path``, or anywhere in the file where that does not hold it."""
    return line_of(text, word, line_at(text, path)) or line_of(text, word)


def line_with(text: str, piece: str) -> int | None:
    """The first line of ``text`` that holds ``piece`` anywhere."""
    start = text.find(piece)
    return text.count("\n", 0, start) + 1 if start >= 0 else None


# ── TOML ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def toml_line(text: str, path: Path) -> int:
    """The line of the longest part of ``path`` that has a line of its own: a table's heading or a key."""
    lines = dict(reversed([*toml_places(text)]))
    return next((lines[path[:size]] for size in range(len(path), 0, -1) if path[:size] in lines), 1)


TABLE = re.compile(r"\s*(?P<open>\[\[?)\s*(?P<name>[\w.\"' -]+?)\s*\]")
KEY = re.compile(r"\s*(?P<name>[\w.\"'-]+)\s*=")
LONG = re.compile(r'"""|\'\'\'')


def toml_places(text: str) -> Iterator[tuple[Path, int]]:
    """Every table and key with its line. A list of tables counts its entries."""
    table: Path = ()
    counts: dict[Path, int] = {}
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if not inside and (heading := TABLE.match(line)):
            table = entered(names_in(heading["name"]), heading["open"] == "[[", counts)
            yield from ((table[:size], number) for size in (len(table), len(table) - 1) if size)
        elif not inside and (key := KEY.match(line)):
            yield table + names_in(key["name"]), number
        inside ^= len(LONG.findall(line)) % 2 == 1


def entered(names: Path, is_list: bool, counts: dict[Path, int]) -> Path:
    """The path of a heading's table; ``counts`` has how many entries each list of tables has so far."""
    path: Path = ()
    for name in names[:-1]:
        path += (name,)
        path += (counts[path] - 1,) if path in counts else ()
    path += names[-1:]
    if is_list:
        counts[path] = counts.get(path, 0) + 1
        path += (counts[path] - 1,)
    return path


def names_in(dotted: str) -> Path:
    """The names of a dotted key."""
    return tuple(name.strip().strip("\"'") for name in dotted.split("."))


# ── JSON ────────────────────────────────────────────────────────────────────────────────────────────────────────────

BLANK = re.compile(r"[\s,:]*")
DECODER = json.JSONDecoder()


def json_line(text: str, path: Path) -> int:
    """The line on which the value at ``path`` begins; of what is not there, that which would hold it."""
    start = after_blanks(text, 0)
    for part in path:
        found = dict(children(text, start)).get(part)
        if found is None:
            break
        start = found
    return text.count("\n", 0, start) + 1


def children(text: str, start: int) -> Iterator[tuple[str | int, int]]:
    """The members of the object or list that begins at ``start``, by name or index, and where their values begin."""
    closing = {"{": "}", "[": "]"}.get(text[start])
    at, index = after_blanks(text, start + 1), 0
    while closing is not None and text[at] != closing:
        name: str | int = index
        if closing == "}":
            name, at = DECODER.raw_decode(text, at)
            at = after_blanks(text, at)
        yield name, at
        _, at = DECODER.raw_decode(text, at)
        at, index = after_blanks(text, at), index + 1


def after_blanks(text: str, start: int) -> int:
    """The next place that is no white space and no separator."""
    found = BLANK.match(text, start)
    assert found is not None
    return found.end()
