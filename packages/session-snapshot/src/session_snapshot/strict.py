"""Reading a committed TOML or JSON file into a closed type: an unknown key is an error naming the nearest known one."""

import json
import re
import tomllib
from collections.abc import Iterable
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec
from llm_dialects.words import nearest

from session_snapshot.errors import FixtureError
from session_snapshot.lines import Path, line_at, line_of, line_within, path_of

__all__ = ["convert", "line_of", "misspelt", "parse_json", "parse_toml"]

T = TypeVar("T")

UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>[^`]*)`")
BAD_WORD = re.compile(r"Invalid (?:enum )?value '(?P<word>[^']*)'")
MISSING = re.compile(r"Object missing required field `(?P<key>[^`]*)`")
AT = re.compile(r" - at `(?P<path>[^`]*)`$")


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
        raise explain(str(error), value, text, path, kind) from error


def explain(message: str, value: Any, text: str, path: str, kind: Any) -> FixtureError:
    """Turn a validation message into an error that names line, nearest known word and mend."""
    written = AT.search(message)
    at = path_of(written["path"]) if written else ()
    kinds = kinds_at(kind, value, at)
    if found := UNKNOWN.search(message):
        where = f" in {written['path']}" if written else ""
        line = line_within(text, at, found["key"])
        return misspelt(f"unknown key {found['key']!r}{where}", found["key"], keys_of(kinds), path, line)
    if found := BAD_WORD.search(message):
        where = f" at {written['path']}" if written else ""
        line = line_within(text, at, found["word"])
        return misspelt(f"unknown value {found['word']!r}{where}", found["word"], words_of(kinds), path, line)
    line = line_at(text, at)
    if found := MISSING.search(message):
        return FixtureError(message, path, line, f"add {found['key']}")
    return FixtureError(message, path, line, "correct the value")


def misspelt(what: str, word: str, known: Iterable[str], path: str, line: int | None) -> FixtureError:
    """An error for a word outside a closed set; ``what`` is its sentence up to the nearest right word."""
    known = sorted(set(known))
    near = nearest(word, known)
    hint = f"; the nearest known one is {near!r}" if near else ""
    mend = f"write {near!r}, or remove it" if near else f"one of: {', '.join(known)}"
    return FixtureError(what + hint, path, line, mend)


# ── the types at a path ─────────────────────────────────────────────────────────────────────────────────────────────


def kinds_at(kind: Any, value: Any, path: Path) -> list[Any]:
    """The types that ``kind`` allows at ``path``: several where a union does not tell which it is."""
    kinds = alternatives(kind, value)
    for part in path:
        value = value[part] if part in inside(value) else None
        kinds = [found for outer in kinds for inner in members(outer, part) for found in alternatives(inner, value)]
    return kinds


def inside(value: Any) -> Iterable[str | int]:
    """The names or indexes of what stands in a value."""
    return range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()


def alternatives(kind: Any, value: Any) -> list[Any]:
    """The members of a union, of tagged ones only that which ``value`` names; any other type alone."""
    if get_origin(kind) not in (Union, UnionType):
        return [kind]
    kinds = get_args(kind)
    tagged = [one for one in kinds if is_struct(one) and isinstance(value, dict) and tag_of(one) in value.items()]
    return tagged or list(kinds)


def members(kind: Any, part: str | int) -> list[Any]:
    """The type of what stands under a name or an index in a value of ``kind``; none where nothing may."""
    if is_struct(kind):
        name, tag = tag_of(kind)
        found = [field.type for field in msgspec.structs.fields(kind) if field.encode_name == part]
        return [cast(Any, Literal)[tag]] if name == part else found
    return list(get_args(kind)[-1:] if get_origin(kind) is dict else get_args(kind)[:1])


def keys_of(kinds: Iterable[Any]) -> set[str]:
    """Every key that a struct among ``kinds`` may hold."""
    structs = [kind for kind in kinds if is_struct(kind)]
    keys = {field.encode_name for struct in structs for field in msgspec.structs.fields(struct)}
    return keys | {name for name, _ in map(tag_of, structs) if name is not None}


def words_of(kinds: Iterable[Any]) -> set[str]:
    """Every string that a literal among ``kinds`` names."""
    literals = [kind for kind in kinds if get_origin(kind) is Literal]
    return {word for literal in literals for word in get_args(literal) if isinstance(word, str)}


def tag_of(struct: Any) -> tuple[str | None, Any]:
    """The member that tells a struct from the others of its union, and what it holds there."""
    config = struct.__struct_config__
    return config.tag_field, config.tag


def is_struct(kind: Any) -> bool:
    """Whether a type is a msgspec struct."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
