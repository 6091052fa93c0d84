"""Small readers of JSON from outside; each names the JSON path of what is wrong."""

from collections.abc import Iterator, Mapping

from llm_dialects.chunks import Json
from llm_dialects.dialect import DialectError
from llm_dialects.wire import decode_json


def parse(data: bytes | str, what: str) -> Json:
    """Return the JSON value of ``data``; ``what`` names it in the error."""
    try:
        return decode_json(data)
    except ValueError as error:
        raise DialectError(f"{what}: not JSON: {error}") from None


def as_object(value: Json, path: str) -> dict[str, Json]:
    """Return ``value``, which must be an object."""
    _check(value, dict, "an object", path)
    checked: dict[str, Json] = value
    return checked


def as_list(value: Json, path: str) -> list[Json]:
    """Return ``value``, which must be an array; ``null`` is an empty one."""
    _check(value, (list, type(None)), "an array", path)
    return value or []


def as_text(value: Json, path: str) -> str:
    """Return ``value``, which must be a string; ``null`` is an empty one."""
    _check(value, (str, type(None)), "a string", path)
    return value or ""


def as_count(value: Json, path: str) -> int:
    """Return ``value``, which must be a whole number; ``null`` is none."""
    _check(value, (int, type(None)), "a whole number", path)
    return value or 0


def objects(value: Json, path: str) -> Iterator[tuple[dict[str, Json], str]]:
    """Yield the objects of the array ``value``, each with its path."""
    for at, item in enumerate(as_list(value, path)):
        yield as_object(item, f"{path}[{at}]"), f"{path}[{at}]"


def others(value: Mapping[str, Json], *known: str) -> dict[str, Json]:
    """Return the members of ``value`` besides the ``known`` ones. Cache marks mean nothing to the answer: left out."""
    return {key: item for key, item in value.items() if key not in known and key not in CACHE_MARKS}


def _check(value: Json, kinds: type | tuple[type, ...], words: str, path: str) -> None:
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise DialectError(f"{path}: must be {words}, is {type(value).__name__}")


# Anthropic's, and OpenAI responses'.
CACHE_MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})
