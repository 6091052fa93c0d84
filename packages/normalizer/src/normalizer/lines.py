"""Canonical JSON lines: one compact JSON value per line, keys in the order given, UTF-8, LF, a final newline."""

import json
from collections.abc import Iterable
from typing import Any

Json = Any
"""A JSON value: ``None``, ``bool``, ``int``, ``float``, ``str``, ``list[Json]`` or ``dict[str, Json]``."""


class LineError(ValueError):
    """A line that is not JSON; the message holds ``name:line``."""


def canonical_line(value: Json) -> str:
    """One value as one line, without the newline."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(_SURROGATES)


def canonical_lines(values: Iterable[Json]) -> str:
    """Values as the text of a ``.jsonl`` file."""
    return "".join(canonical_line(value) + "\n" for value in values)


def parse_lines(text: str, name: str) -> list[Json]:
    """The values of a ``.jsonl`` text. An empty or broken line and a missing final newline are errors."""
    if text and not text.endswith("\n"):
        raise LineError(f"{name}:{text.count(chr(10)) + 1}: the last line has no newline\nmend: end the file with one")
    return [_parse(line, name, number) for number, line in enumerate(text.split("\n")[:-1], 1)]


def _parse(line: str, name: str, number: int) -> Json:
    try:
        return json.loads(line, parse_constant=_refuse)
    except ValueError as error:
        raise LineError(f"{name}:{number}: not JSON: {error}\nmend: one JSON value per line, no empty line") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


# A lone surrogate cannot be written as UTF-8.
_SURROGATES = {code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)}
