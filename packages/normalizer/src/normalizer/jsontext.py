"""JSON inside a string: where its leaves and names stand, so that they can be replaced and nothing else moves."""

import json
import re
from collections.abc import Iterator

from msgspec import Struct

from normalizer.lines import Json


class Part(Struct, frozen=True):
    """A leaf or a member name of a JSON text. ``offsets[i]`` is where code point ``i`` of a string's value begins."""

    start: int
    end: int
    value: Json
    path: tuple[str | int, ...]
    parent: Json
    name: bool
    offsets: list[int]


def parse_container(text: str) -> Json | None:
    """The object or list that a string holds, or None if it holds none."""
    if len(text) < 2 or text[0] not in "{[ \n\t\r" or text.strip()[-1:] not in ("}", "]"):
        return None
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def parts(text: str, root: Json) -> Iterator[Part]:
    """The leaves and names of ``text``, which reads as ``root``, in the order they are written."""
    stack: list[list[Json]] = []
    for match in _LEXEME.finditer(text):
        lexeme = match.group()
        if lexeme in "{[":
            holder = _child(stack) if stack else root
            stack.append([holder, 0 if lexeme == "[" else None])
        elif lexeme in "}]":
            stack.pop()
        elif lexeme == ",":
            frame = stack[-1]
            frame[1] = frame[1] + 1 if isinstance(frame[0], list) else None
        elif lexeme != ":":
            yield _part(match, stack)


def escape_text(text: str) -> str:
    """Text as it stands inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _object(pairs: list[tuple[str, Json]]) -> Json:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name twice: no path names its members")
    return dict(pairs)


def _part(match: re.Match[str], stack: list[list[Json]]) -> Part:
    frame, value = stack[-1], json.loads(match.group())
    name = frame[1] is None
    if name:
        frame[1] = value
    path = tuple(key for _, key in stack if key is not None)
    return Part(match.start(), match.end(), value, path, frame[0], name, _offsets(match, value))


def _child(stack: list[list[Json]]) -> Json:
    holder, key = stack[-1]
    return holder[key]


def _offsets(match: re.Match[str], value: Json) -> list[int]:
    if not isinstance(value, str):
        return []
    start, raw = match.start() + 1, match.group()[1:-1]
    if "\\" not in raw:
        return list(range(start, start + len(raw) + 1))
    return [start + unit.start() for unit in _UNIT.finditer(raw)] + [match.end() - 1]


_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_UNIT = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL)
