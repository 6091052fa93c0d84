"""Small readers of JSON that a person wrote: a fault is named by its place, a wrong word by the nearest one, and each
fault ends with what mends it. Pure.
"""

import re
import warnings
from collections.abc import Iterable

from llm_dialects import EntryError, Json
from llm_dialects.words import nearest


def wrong(where: str, what: str, mend: str) -> EntryError:
    """Return the error that says what is wrong at ``where``, and what to do about it."""
    return EntryError(f"{where}: {what}\nmend: {mend}")


def shown(value: object) -> str:
    """Return what a wrong value is, in a few words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() if value.bit_length() > LONG:
            return "a number of very many digits"
        case dict():
            return "an object"
        case list():
            return "an array"
        case str() | int() | float():
            text = repr(value)
            return text if len(text) <= LONG else f"{text[:LONG]}..."
        case _:
            return f"no JSON but Python's {type(value).__name__}"


def an_object(value: Json, where: str, known: Iterable[str] | None = None) -> dict[str, Json]:
    """Return ``value``, which must be an object, of ``known`` keys only where they are given."""
    if not isinstance(value, dict):
        raise wrong(where, f"must be an object, it is {shown(value)}", "write {...}")
    checked: dict[str, Json] = value
    if known is not None:
        names = tuple(known)
        for key in checked:
            a_word(key, names, where, "unknown key")
    return checked


def a_word(word: str, known: tuple[str, ...], where: str, what: str) -> str:
    """Return ``word``, which must be one of ``known``; ``what`` says what a wrong one is."""
    if word in known:
        return word
    near = nearest(word, known, LIKE)
    if not near:
        raise wrong(where, f"{what} {shown(word)}; known are {', '.join(known)}", "write one of these")
    others = f", known are {', '.join(known)}" if len(known) <= LISTED else ""
    raise wrong(where, f"{what} {shown(word)}; the nearest known is {near!r}{others}", f"write {near!r}")


def a_list(value: Json, where: str) -> list[Json]:
    """Return ``value``, which must be an array."""
    if not isinstance(value, list):
        raise wrong(where, f"must be an array, it is {shown(value)}", "write [...]")
    checked: list[Json] = value
    return checked


def a_text(value: Json, where: str) -> str:
    """Return ``value``, which must be a string that says something."""
    if not isinstance(value, str) or not value:
        raise wrong(where, f"must be a string that is not empty, it is {shown(value)}", "write a string that says it")
    return value


def a_truth(value: Json, where: str) -> bool:
    """Return ``value``, which must be true or false."""
    if not isinstance(value, bool):
        raise wrong(where, f"must be true or false, it is {shown(value)}", "write true or false, without quotes")
    return value


def a_count(value: Json, where: str, least: int = 1, most: int = 2**53) -> int:
    """Return ``value``, which must be a whole number from ``least`` to ``most``."""
    if type(value) is int and least <= value <= most:
        return value
    must = f"must be a whole number from {least} to {most}, it is {shown(value)}"
    raise wrong(where, must, "write such a number, without quotes")


def a_regex(value: Json, where: str) -> re.Pattern[str]:
    """Return ``value``, which must be a regular expression, compiled."""
    text = a_text(value, where)
    try:
        with warnings.catch_warnings(action="ignore"):  # of what a later Python may read otherwise
            return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        mend = "correct the pattern, or put a \\ before what is meant as it stands"
        raise wrong(where, f"{shown(value)} is no regular expression: {error}", mend) from None


def a_header(value: Json, where: str) -> str:
    """Return ``value``, which must be the name of a header, in lower case."""
    name = a_text(value, where).lower()
    if not HEADER.fullmatch(name):
        what = f"{shown(value)} cannot be the name of a header: no request could have it"
        raise wrong(where, what, "write the name alone, letters, digits and -, e.g. 'x-session'")
    return name


LONG = 80
"""Characters of a wrong value that are shown; bits of a number."""

LISTED = 12
"""Known words that are listed beside the nearest; of more, nobody reads a list."""

LIKE = 0.4
"""How like a known word must be to be the nearest: with less, it is none."""

HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
"""A token of RFC 9110, in lower case."""
