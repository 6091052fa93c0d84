"""Closed files: every mistake is a sentence with its line and the nearest right word."""

from typing import Literal

import pytest
from msgspec import Struct, field
from session_snapshot.errors import FixtureError
from session_snapshot.strict import known_keys, known_words, line_of, parse_json, parse_toml


class Inner(Struct, frozen=True, forbid_unknown_fields=True):
    colour: Literal["red", "green"] = "red"
    sizes: list[Literal["small", "large"]] = []


class Open(Struct, frozen=True, forbid_unknown_fields=True, tag_field="op", tag="open"):
    door: str


class Shut(Struct, frozen=True, forbid_unknown_fields=True, tag_field="op", tag="shut"):
    door: str


class Outer(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    inner: Inner = Inner()
    class_: int = field(default=0, name="class")
    steps: list[Open | Shut] = []


OR = ", or remove it"


def check_error(text: str, said: str, line: int | None, mend: str, parse=parse_toml) -> None:
    with pytest.raises(FixtureError) as caught:
        parse(text, "file.x", Outer)
    where, *_, last = str(caught.value).splitlines()
    assert said in where
    assert where.startswith(f"file.x:{line}: " if line else "file.x: ")
    assert last == f"mend: {mend}"


@pytest.mark.parametrize(
    ("text", "said", "line", "mend"),
    [
        ('name = "a"\nnmae = "b"\n', "'nmae'; the nearest known one is 'name'", 2, f"write \'name\'{OR}"),
        ('name = "a"\n[inner]\ncolor = "red"\n', "'color' in $.inner; the nearest", 3, f"write \'colour\'{OR}"),
        ('name = "a"\nclas = 1\n', "nearest known one is 'class'", 2, f"write \'class\'{OR}"),
        ('name = "a"\n# zz\nzz = 1\n', "key 'zz'", 3, "one of: class, colour, door, inner, name, op, sizes, steps"),
        ('name = "a"\n[inner]\ncolour = "gren"\n', "value 'gren' at $.inner.colour", 3, f"write \'green\'{OR}"),
        ('name = "a"\n[inner]\nsizes = ["smal"]\n', "nearest known one is 'small'", 3, f"write \'small\'{OR}"),
        ('name = "a"\n[[steps]]\nop = "opn"\ndoor = ""\n', "nearest known one is 'open'", 3, f"write \'open\'{OR}"),
        ("name = 1\n", "Expected `str`, got `int`", 1, "correct the value"),
        ("class = 1\n", "missing required field `name`", None, "add name"),
        ("name = \n", "not TOML", 1, "correct the file"),
    ],
)  # fmt: skip
def test_mistakes_in_toml(text: str, said: str, line: int | None, mend: str) -> None:
    check_error(text, said, line, mend)


@pytest.mark.parametrize(
    ("text", "said", "line", "mend"),
    [
        ('{"name": "a",\n "nam": 1}', "unknown key 'nam'", 2, f"write 'name'{OR}"),
        ('{"name": "a",\n oops}', "not JSON", 2, "correct the file"),
        ("[]", "Expected `object`, got `array`", None, "correct the value"),
    ],
)
def test_mistakes_in_json(text: str, said: str, line: int | None, mend: str) -> None:
    check_error(text, said, line, mend, parse_json)


def test_what_is_right_is_read() -> None:
    assert parse_toml('name = "a"\nclass = 3\n', "f", Outer) == Outer("a", class_=3)
    assert parse_json('{"name": "a", "steps": [{"op": "shut", "door": "b"}]}', "f", Outer).steps == [Shut("b")]


@pytest.mark.parametrize(
    ("text", "word", "line"),
    [("a\nword = 1", "word", 2), ("words\nmy-word\nword", "word", 3), ("# word\nword", "word", 2), ("a", "word", None)],
)
def test_line_of(text: str, word: str, line: int | None) -> None:
    assert line_of(text, word) == line


def test_what_is_known() -> None:
    assert known_keys(Outer) == {"name", "inner", "class", "steps", "colour", "sizes", "op", "door"}
    assert known_words(Outer) >= {"red", "green", "open", "shut"}
