"""JSON Lines, read with the place of a fault and written compactly."""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec
from llm_dialects import Json

from llm_replay.errors import FixtureError

LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def read_objects(text: str, name: str, mend: str) -> Iterator[tuple[int, dict[str, Json]]]:
    """Yield line number (from 1) and object of every line of ``text`` that is not blank.

    Only LF ends a line: U+2028 and its like are ordinary characters of a JSON string.

    Raises:
        FixtureError: a line is not JSON, or not an object.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, _object(line, name, number, mend)


def decode(text: str) -> Json:
    """Return the value of the JSON ``text``.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        # A stream cut between the halves of a character leaves half an escape behind, which only this reader admits.
        return json.loads(text, parse_constant=_refuse_constant)


def encode(value: Json) -> str:
    """Return ``value`` as compact JSON on one line, members in the order they have."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return LONE_SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def canonical(value: Json) -> str:
    """Return a text that is equal for equal values: ``encode`` with the members of every object sorted."""
    try:
        return msgspec.json.encode(value, order="sorted").decode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), sort_keys=True)


def encode_lines(values: list[Any]) -> str:
    """Return one line per value, each ended by LF."""
    return "".join(f"{encode(value)}\n" for value in values)


def _object(line: str, name: str, number: int, mend: str) -> dict[str, Json]:
    try:
        value = decode(line)
    except ValueError as error:
        raise FixtureError(f"not JSON ({error})", name, number, mend) from None
    if not isinstance(value, dict):
        raise FixtureError(f"must be a JSON object, is {type(value).__name__}", name, number, mend)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
