"""The form of a file: UTF-8, LF, a final newline, canonical JSON lines, JSON that says everything once."""

import json
from collections.abc import Iterator
from typing import Any

from llm_replay import format_fixture
from normalizer import canonical_line

from fixture_guard.checks.files import FOLDERS, SUITE_FILES, is_session
from fixture_guard.finding import Finding
from fixture_guard.layout import Scenario, Tree
from fixture_guard.shapes import read_json, refuse

BOM = b"\xef\xbb\xbf"


def check_encoding(tree: Tree) -> Iterator[Finding]:
    """Bytes that are not UTF-8, or a byte-order mark."""
    for path, data in text_files(tree):
        if data.startswith(BOM):
            yield Finding(path, 1, "ENCODING", "begins with a byte-order mark", "save it as UTF-8 without one")
        try:
            data.decode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            what = f"byte {error.start} (0x{data[error.start]:02x}) is not UTF-8"
            yield Finding(path, line, "ENCODING", what, "save it as UTF-8, or record anew")


def check_newlines(tree: Tree) -> Iterator[Finding]:
    """A carriage return, or no LF at the end."""
    for path, data in text_files(tree):
        if b"\r" in data:
            line = data.count(b"\n", 0, data.index(b"\r")) + 1
            yield Finding(
                path, line, "NEWLINE", "holds a carriage return", "save it with LF, and set `-text` for it in git"
            )
        if data and not data.endswith(b"\n"):
            yield Finding(path, data.count(b"\n") + 1, "NEWLINE", "does not end in a newline", "add the final newline")


def check_canonical(tree: Tree) -> Iterator[Finding]:
    """A line of a JSON-lines file that is not the one canonical spelling of its value."""
    for scenario in tree.scenarios:
        logs = {log.name: log.log for log in scenario.logs}
        for name in scenario.files:
            if name in logs:
                expected = format_fixture(logs[name])
                yield from compare_lines(scenario, name, expected, "the canonical form of a session log")
            elif name.endswith(".golden.jsonl"):
                yield from canonical_lines(scenario, name)


def canonical_lines(scenario: Scenario, name: str) -> Iterator[Finding]:
    """Compare every line with the canonical spelling of what it holds; report the first of each kind of fault."""
    for number, line in enumerate(scenario.text(name).removesuffix("\n").split("\n") if scenario.text(name) else (), 1):
        try:
            value = read_json(line)
        except ValueError as error:
            yield Finding(scenario.at(name), number, "CANONICAL", f"not JSON: {error}", scenario.refresh())
            return
        if canonical_line(value).rstrip("\n") != line:
            what = "not the canonical spelling (compact, UTF-8 unescaped, no key twice)"
            yield Finding(scenario.at(name), number, "CANONICAL", what, scenario.refresh())
            return


def compare_lines(scenario: Scenario, name: str, expected: str, form: str) -> Iterator[Finding]:
    """Report the first line that is not the expected one."""
    actual = scenario.text(name)
    pairs = enumerate(zip_lines(actual, expected), 1)
    line = next((number for number, (is_, should) in pairs if is_ != should), None)
    if line is not None:
        yield Finding(scenario.at(name), line, "CANONICAL", f"not {form}", scenario.refresh())


def zip_lines(actual: str, expected: str) -> Iterator[tuple[str | None, str | None]]:
    """Pair the lines of two texts; a missing one is ``None``. What stands after the last LF is not a line."""
    left, right = actual.removesuffix("\n").split("\n"), expected.removesuffix("\n").split("\n")
    for index in range(max(len(left), len(right))):
        yield tuple(lines[index] if index < len(lines) else None for lines in (left, right))  # type: ignore[misc]


def check_json(tree: Tree) -> Iterator[Finding]:
    """A JSON file of a scenario that is not JSON, or that gives one key twice (the last would win in silence)."""
    for path, data in text_files(tree):
        if not path.endswith(".json"):
            continue
        try:
            json.loads(data, object_pairs_hook=unique_keys, parse_constant=refuse)
        except json.JSONDecodeError as error:
            yield Finding(path, error.lineno, "JSON", f"not JSON: {error.msg}", "mend the syntax")
        except UnicodeDecodeError:
            continue  # the encoding check names the byte
        except ValueError as error:
            yield Finding(path, None, "JSON", str(error), "say it once")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from its pairs, refusing a key that comes twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} is given twice in one object")
    return found


def text_files(tree: Tree) -> Iterator[tuple[str, bytes]]:
    """Return the files that must be text: all of a scenario's but its workspaces, and those a suite is made of."""
    for suite in tree.suites:
        yield from ((f"{suite.path}/{name}", data) for name, data in suite.files.items() if name in SUITE_FILES)
        for folder, files in suite.folders.items():
            yield from (
                (f"{suite.path}/{folder}/{name}", data)
                for name, data in files.items()
                if not name.startswith(FOLDERS) and (name.endswith(TEXT) or is_session(name))
            )


TEXT = (".toml", ".json", ".jsonl", ".md")
