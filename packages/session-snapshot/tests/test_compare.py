"""Surfaces against committed ones: equal is silent, everything else says what changed and where."""

import json

import pytest
from session_snapshot.compare import byte_difference, compare_lines, compare_trees, rows


def lines(*values: object) -> str:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


SAME = "x.jsonl says the same in other bytes"
AT_TWO = "x.jsonl:2: 1 difference, the first in line 2"
ONE, TWO, THREE = {"a": 1}, {"b": {"c": "the quick brown fox"}}, {"d": [1, 2]}


def test_equal_is_silent() -> None:
    assert compare_lines("stdout", "x.jsonl", lines(ONE, TWO), lines(ONE, TWO)) == []
    assert compare_lines("stdout", "x.jsonl", "", "") == []


@pytest.mark.parametrize(
    ("expected", "actual", "headline", "shown"),
    [
        (lines(ONE, TWO, THREE), lines(ONE, TWO | {"b": {"c": "the quick red fox"}}, THREE),
         AT_TWO, ["line 1: {\"a\":1}", "/1/b/c", "red"]),
        (lines(ONE, THREE), lines(ONE, TWO, THREE), AT_TWO, ["added /1", "fox"]),
        (lines(ONE, TWO, THREE), lines(ONE, THREE), AT_TWO, ["removed /1", "fox"]),
        ("", lines(ONE), "x.jsonl:1: 1 difference, the first in line 1", ["added /0"]),
        (lines(ONE), "", "x.jsonl:1: 1 difference, the first in line 1", ["removed /0"]),
        (lines(ONE), '{"a":  1}\n', SAME, ["line 1: '{\"a\": 1}' became '{\"a\":  1}'"]),
        ('{"a":1,"b":2}\n', '{"b":2,"a":1}\n', SAME, ["line 1: "]),
        ("{oops\n", lines(ONE), "x.jsonl:1: not JSON (Expecting property name", ["restore it"]),
    ],
)  # fmt: skip
def test_differences(expected: str, actual: str, headline: str, shown: list[str]) -> None:
    (failure,) = compare_lines("stdout", "x.jsonl", expected, actual)
    assert failure.what.startswith(headline)
    assert [part for part in shown if part not in failure.detail] == []


def test_missing() -> None:
    (failure,) = compare_lines("session", "session.jsonl", None, lines(ONE))
    assert failure.what == "session.jsonl is missing"


def test_many_differences_are_cut() -> None:
    (failure,) = compare_lines("stdout", "x", lines(*range(50)), lines(*map(str, range(50))))
    assert "50 differences" in failure.what or "100 differences" in failure.what
    assert "more (see the actual files)" in failure.detail


def test_rows_end_at_newlines_only() -> None:
    odd = {"a": "one\u2028two\x85three\x0cfour"}
    assert rows(lines(odd, ONE)) == [odd, ONE]


@pytest.mark.parametrize(
    ("expected", "actual", "said"),
    [
        ("a\nb\n", "a\nc\n", "line 2: 'b' became 'c'"),
        ("a\n", "a\n\n", "line 3: nothing became ''"),
        ("a\n", "a", "line 2: '' became nothing"),
        ("a\n", "a\r\n", "line 1: 'a' became 'a\\r'"),
    ],
)
def test_byte_difference(expected: str, actual: str, said: str) -> None:
    assert byte_difference(expected, actual) == said


@pytest.mark.parametrize(
    ("before", "after", "detail"),
    [
        ({"a": b"1"}, {"a": b"1"}, None),
        ({"a": b"1"}, {}, "missing: a"),
        ({}, {"a": b"\xff"}, "added:   a ('\\\\xff')"),
        ({"a": b"1"}, {"a": b"2" * 100}, f"changed: a: '1' became '{'2' * 80}' … 100 bytes"),
        ({"d/": b""}, {"d/f": b""}, "missing: d/\nadded:   d/f ('')"),
    ],
)
def test_trees(before: dict[str, bytes], after: dict[str, bytes], detail: str | None) -> None:
    assert [failure.detail for failure in compare_trees("the seed", before, after)] == ([detail] if detail else [])
