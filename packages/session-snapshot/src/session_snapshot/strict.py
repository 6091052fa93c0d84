"""Reading a committed TOML or JSON file into a closed type: an unknown key is an error naming the nearest known one."""

import difflib
import json
import re
import tomllib
from collections.abc import Iterable
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec

from session_snapshot.errors import FixtureError

T = TypeVar("T")

UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>[^`]*)`(?: - at `(?P<at>[^`]*)`)?")
BAD_WORD = re.compile(r"Invalid (?:enum )?value '(?P<word>[^']*)'(?: - at `(?P<at>[^`]*)`)?")
MISSING = re.compile(r"Object missing required field `(?P<key>[^`]*)`")


def parse_toml(text: str, path: str, kind: type[T]) -> T:
    """Return the value of a TOML file as ``kind``.

    Raises:
        FixtureError: not TOML, an unknown key (nearest known one named), a missing key or one of the wrong type.
    """
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        raise FixtureError(
            f"not TOML: {error}", path, int(line.group(1)) if line else None, "correct the file"
        ) from error
    return convert(value, text, path, kind)


def parse_json(text: str, path: str, kind: type[T]) -> T:
    """Return the value of a JSON file as ``kind``; raises like :func:`parse_toml`."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise FixtureError(f"not JSON: {error.msg}", path, error.lineno, "correct the file") from error
    return convert(value, text, path, kind)


def convert(value: Any, text: str, path: str, kind: type[T]) -> T:
    """Turn plain ``value`` into ``kind``, every failure into a sentence with its line in ``text``."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise explain(str(error), text, path, kind) from error


def explain(message: str, text: str, path: str, kind: Any) -> FixtureError:
    """Turn a validation message into an error that names line, nearest known word and mend."""
    if found := UNKNOWN.search(message):
        where = f" in {found['at']}" if found["at"] else ""
        return misspelt("key", found["key"], known_keys(kind), where, text, path)
    if found := BAD_WORD.search(message):
        return misspelt("value", found["word"], known_words(kind), f" at {found['at']}", text, path)
    if found := MISSING.search(message):
        return FixtureError(message, path, None, f"add {found['key']}")
    at = re.search(r"`\$\.?([^`]*)`", message)
    key = re.findall(r"[A-Za-z_]+", at.group(1))[-1:] if at else []
    return FixtureError(message, path, line_of(text, key[0]) if key else None, "correct the value")


def misspelt(what: str, word: str, known: Iterable[str], where: str, text: str, path: str) -> FixtureError:
    """An error for a word outside a closed set."""
    known = sorted(set(known))
    close = difflib.get_close_matches(word, known, 1)
    nearest = f"; the nearest known one is {close[0]!r}" if close else ""
    mend = f"write {close[0]!r}, or remove it" if close else f"one of: {', '.join(known)}"
    return FixtureError(f"unknown {what} {word!r}{where}{nearest}", path, line_of(text, word), mend)


def line_of(text: str, word: str) -> int | None:
    """The first line of ``text`` that holds ``word`` as a whole word, counted from 1."""
    pattern = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
    for number, line in enumerate(text.splitlines(), 1):
        if pattern.search(line.split("#")[0]):
            return number
    return None


def known_keys(kind: Any) -> set[str]:
    """Every key any struct reachable from ``kind`` may hold."""
    structs = structs_of(kind, set())
    tags = {struct.__struct_config__.tag_field for struct in structs}
    keys = {field.encode_name for struct in structs for field in msgspec.structs.fields(struct)}
    return keys | {tag for tag in tags if tag is not None}


def known_words(kind: Any) -> set[str]:
    """Every tag of any struct reachable from ``kind``, and every word of a literal."""
    structs = structs_of(kind, set())
    tags = {struct.__struct_config__.tag for struct in structs}
    fields = [field.type for struct in structs for field in msgspec.structs.fields(struct)]
    return {tag for tag in tags if isinstance(tag, str)}.union(*map(literals_in, fields))


def literals_in(kind: Any) -> set[str]:
    """Every string a type's literals name."""
    parts = get_args(kind)
    if get_origin(kind) is Literal:
        return {part for part in parts if isinstance(part, str)}
    return set().union(*map(literals_in, parts))


def structs_of(kind: Any, seen: set[type[msgspec.Struct]]) -> set[type[msgspec.Struct]]:
    """Every msgspec struct reachable from ``kind``."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind not in seen:
            seen.add(kind)
            for field in msgspec.structs.fields(kind):
                structs_of(field.type, seen)
    else:
        for part in getattr(kind, "__args__", ()):
            structs_of(part, seen)
    return seen
