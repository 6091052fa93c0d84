"""Closed files: every mistake is a sentence with its line and the nearest right word."""

from typing import Literal

import pytest
from msgspec import Struct, field
from session_snapshot.errors import FixtureError
from session_snapshot.strict import line_of, parse_json, parse_toml


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
    stages: dict[str, Literal["one", "two"] | None] = {}


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
        ('name = "a"\n# zz\nzz = 1\n', "key 'zz'", 3, "one of: class, inner, name, stages, steps"),
        ('name = "a"\n[inner]\ncolour = "gren"\n', "value 'gren' at $.inner.colour", 3, f"write \'green\'{OR}"),
        ('name = "a"\n[inner]\nsizes = ["smal"]\n', "nearest known one is 'small'", 3, f"write \'small\'{OR}"),
        ('name = "a"\n[[steps]]\nop = "opn"\ndoor = ""\n', "nearest known one is 'open'", 3, f"write \'open\'{OR}"),
        ("name = 1\n", "Expected `str`, got `int`", 1, "correct the value"),
        ('name = "a"\n[inner]\nsizes = [\n"large",\n"gren"]\n', "at $.inner.sizes[1]", 5, "one of: large, small"),
        ('name = "a"\n[inner]\ncolour = "larg"\n', "value 'larg' at $.inner.colour", 3, "one of: green, red"),
        ('name = "a"\n[inner]\nnam = 1\n', "unknown key 'nam' in $.inner", 3, "one of: colour, sizes"),
        ('name = "a"\n[stages]\nx = "red"\n', "value 'red' at $.stages[...]", 3, "one of: one, two"),
        ('name = "a"\n[[steps]]\nop = "open"\ndoor = ""\n[[steps]]\nop = "shut"\ndor = ""\n', "in $.steps[1]; the", 7,
         f"write 'door'{OR}"),
        ('name = "a"\n[[steps]]\nop = "open"\ndoor = ""\n\n[[steps]]\nop = "shut"\n', "field `door` - at `$.steps[1]`",
         6, "add door"),
        ("\nclass = 1\n", "missing required field `name`", 1, "add name"),
        ("name = \n", "not TOML", 1, "correct the file"),
    ],
)  # fmt: skip
def test_mistakes_in_toml(text: str, said: str, line: int | None, mend: str) -> None:
    check_error(text, said, line, mend)


@pytest.mark.parametrize(
    ("text", "said", "line", "mend"),
    [
        ('{"name": "a", "steps": [\n{"op": "open", "door": "{[,"},\n{"op": "shut"}]}', "field `door`", 3, "add door"),
        ('{"name": "a", "steps": [\n{"op": "open", "door": "shu"},\n{"op": "shu"}]}', "'shu'", 3, f"write 'shut'{OR}"),
        ('{"name": "a", "steps": [\n{"op": "shut", "door": ""},\n{"door": ""}]}', "field `op`", 3, "add op"),
        ('{"name": "a",\n "nam": 1}', "unknown key 'nam'", 2, f"write 'name'{OR}"),
        ('{"name": "a",\n oops}', "not JSON", 2, "correct the file"),
        ("[]", "Expected `object`, got `array`", 1, "correct the value"),
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
