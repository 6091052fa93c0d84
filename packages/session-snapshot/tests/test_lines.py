"""The line of a JSON path, in TOML as a person writes it and in JSON however it is laid out."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_snapshot.lines import json_line, line_at, path_of

TOML = '''\
name = "a"

[model]
dialect = "d"
[[model.files]]
path = "p"
text = """
[install]
kind = "no key of this file"
"""
[[model.files]]
path = "q"
  [install]
  kind = "uv"
[wire]
allow = [
  { check = "x" },
]
'''


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("$", ()),
        ("$.stop", ("stop",)),
        ("$.normalize[0].token", ("normalize", 0, "token")),
        ("$.frames.steps[12][...]", ("frames", "steps", 12, "...")),
    ],
)
def test_a_path_as_it_is_written(written: str, path: tuple[str | int, ...]) -> None:
    assert path_of(written) == path


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 1),
        (("name",), 1),
        (("model",), 3),
        (("model", "dialect"), 4),
        (("model", "files"), 5),
        (("model", "files", 0, "text"), 7),
        (("model", "files", 1), 11),
        (("model", "files", 1, "path"), 12),
        (("install", "kind"), 14),
        (("install", "package"), 13),
        (("wire", "allow", 0, "check"), 16),
        (("nothing",), 1),
    ],
)
def test_lines_in_toml(path: tuple[str | int, ...], line: int) -> None:
    assert line_at(TOML, path) == line


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.dictionaries(st.text(max_size=5), inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.data())
@settings(deadline=None, max_examples=80)
def test_lines_in_json(value: object, data: st.DataObject) -> None:
    """A marker anywhere in a document is found on the line it stands on."""
    path: tuple[str | int, ...] = ()
    whole = [value]
    holder, part = whole, 0
    while isinstance(holder[part], dict | list) and holder[part]:
        holder = holder[part]
        part = data.draw(st.sampled_from([*holder] if isinstance(holder, dict) else range(len(holder))))
        path += (part,)
    holder[part] = "here it is"
    text = json.dumps(whole[0], indent=data.draw(st.sampled_from([1, 4])))
    lines = [number for number, line in enumerate(text.split("\n"), 1) if "here it is" in line]
    assert lines == [json_line(text, path)]
