"""Small readers of JSON that a person wrote: a fault is named by its place, a wrong word by the nearest one. Pure."""

import re
from collections.abc import Iterable

from llm_dialects import EntryError, Json
from llm_dialects.words import nearest


def an_object(value: Json, where: str, known: Iterable[str] | None = None) -> dict[str, Json]:
    """Return ``value``, which must be an object, of ``known`` keys only where they are given."""
    if not isinstance(value, dict):
        raise EntryError(f"{where}: must be an object")
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
    near = nearest(word, known, likeness=0)
    others = f", known are {', '.join(known)}" if len(known) <= LISTED else ""
    raise EntryError(f"{where}: {what} {word!r}; the nearest known is {near!r}{others}\nmend: write {near!r}")


def a_list(value: Json, where: str) -> list[Json]:
    """Return ``value``, which must be an array."""
    if not isinstance(value, list):
        raise EntryError(f"{where}: must be an array")
    checked: list[Json] = value
    return checked


def a_text(value: Json, where: str) -> str:
    """Return ``value``, which must be a string that says something."""
    if not isinstance(value, str) or not value:
        raise EntryError(f"{where}: must be a string that is not empty")
    return value


def a_truth(value: Json, where: str) -> bool:
    """Return ``value``, which must be true or false."""
    if not isinstance(value, bool):
        raise EntryError(f"{where}: must be true or false")
    return value


def a_count(value: Json, where: str, least: int = 1, most: int = 2**53) -> int:
    """Return ``value``, which must be a whole number from ``least`` to ``most``."""
    if type(value) is int and least <= value <= most:
        return value
    told = f", it is {value}" if type(value) is int else ""
    raise EntryError(f"{where}: must be a whole number from {least} to {most}{told}")


def a_regex(value: Json, where: str) -> re.Pattern[str]:
    """Return ``value``, which must be a regular expression, compiled."""
    try:
        return re.compile(a_text(value, where))
    except re.error as error:
        raise EntryError(f"{where}: {value!r} is no regular expression: {error}") from None


LISTED = 12
"""Known words that are listed beside the nearest; of more, nobody reads a list."""
