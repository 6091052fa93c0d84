"""Canonical JSON lines."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from normalizer import LineError, canonical_line, canonical_lines, parse_lines

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"b": 1, "a": [True, None]}, '{"b":1,"a":[true,null]}'),
        ("é\u2028\n", '"é\u2028\\n"'),
        ("\ud800", '"\\ud800"'),
        (0.0022500000000000003, "0.0022500000000000003"),
    ],
)
def test_a_line_is_compact_and_keeps_the_order_of_keys(value: object, line: str) -> None:
    assert canonical_line(value) == line
    assert json.loads(line) == value


@given(st.lists(JSON, max_size=4))
def test_lines_come_back(values: list[object]) -> None:
    text = canonical_lines(values)
    assert text.encode("utf-8").count(b"\n") == len(values)
    assert parse_lines(text, "x.jsonl") == values


@pytest.mark.parametrize(
    ("text", "where"),
    [("{}\n{", "x.jsonl:2"), ("{}\n\n", "x.jsonl:2"), ("{}\nnope\n", "x.jsonl:2"), ("NaN\n", "x.jsonl:1")],
)
def test_a_bad_line_is_named(text: str, where: str) -> None:
    with pytest.raises(LineError, match=where) as caught:
        parse_lines(text, "x.jsonl")
    assert str(caught.value).splitlines()[-1].startswith("mend: ")
