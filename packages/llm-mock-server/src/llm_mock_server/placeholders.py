"""``{{name}}`` and ``{{fromRequest:<regex>}}`` in an entry, filled when it is served. Pure.

What a token means is ``llm_dialects.render``'s word; this module knows *where* a token stands. In the raw JSON text of
tool arguments what is filled in stays JSON: escaped inside of a string, a JSON value of its own outside.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import assert_never

from llm_dialects import Json, RenderError, Request, fill_from_request, substitute
from llm_dialects.render import FROM_REQUEST, check_from_request
from llm_dialects.wire import compact


class Place(Enum):
    """Where a token stands."""

    TEXT = "in text: filled as it is"
    STRING = "in a string of JSON text: filled with escapes"
    VALUE = "in JSON text, outside of strings: filled with a JSON value"
    WHOLE = "where JSON text begins: filled with the JSON value that it is"


Lookup = Callable[[str, Place], str]
"""Returns what is put in place of a token, braces and all; raises ``RenderError`` if it cannot be filled."""


def live_values(values: Mapping[str, Json], request: Request) -> Lookup:
    """Return the lookup in ``values``, as they are when it is asked, and in ``request``.

    A value that is no string is written as compact JSON.
    """

    def lookup(token: str, place: Place) -> str:
        if token.startswith(FROM_REQUEST):
            filled: str = fill_from_request(token, request, change=lambda found: written(found, place, found=True))
            return filled
        return substitute(token, lambda name: written(values[name], place, name=f"{{{{{name}}}}}: "))

    return lookup


def any_values(token: str, place: Place) -> str:
    """Fill every token with something, so that an entry can be checked before its values are known.

    Raises:
        RenderError: no request could fill it.
    """
    check_from_request(token)
    return "{}" if place is Place.WHOLE else written("x", place)


def has_placeholders(value: Json) -> bool:
    """Return whether ``fill`` may change ``value``."""
    return "{{" in compact(value)


def fill(entry: Json, lookup: Lookup) -> Json:
    """Return ``entry`` with all tokens filled and ``{{{{`` unescaped, in keys too.

    Raises:
        RenderError: a token cannot be filled, or ``{{`` stands where none begins.
    """
    return Filling(lookup).value(entry)


class Filling:
    """One entry on its way to being filled."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        # Where each stream of argument deltas has got to, by block index.
        self._deltas: dict[str, JsonText] = {}

    def value(self, value: Json, *, said: bool = False) -> Json:
        """Return ``value`` filled; ``said``: it is part of a tool's arguments, where no key has a meaning to us."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(key): self._member(value, key, said) for key in value}
            case list():
                return [self.value(item, said=said) for item in value]
            case _:
                return value

    def text(self, text: str) -> str:
        """Return ``text`` filled."""
        if "{{" not in text:
            return text
        return "".join(literal + (self._lookup(token, Place.TEXT) if token else "") for literal, token in pieces(text))

    def json_text(self, text: str, state: "JsonText") -> str:
        """Return ``text`` filled, which goes on where ``state`` is in a JSON text."""
        filled = []
        for literal, token in pieces(text):
            state.feed(literal)
            filled.append(literal + (self._lookup(token, state.place) if token else ""))
        return "".join(filled)

    def _member(self, owner: dict[str, Json], key: str, said: bool) -> Json:
        value = owner[key]
        if said or key not in RAW_JSON or not isinstance(value, str):
            return self.value(value, said=said or key in RAW_JSON)
        if key == "argumentsDelta":
            return self.json_text(value, self._deltas.setdefault(str(owner.get("index")), JsonText()))
        return self.json_text(value, JsonText())


class JsonText:
    """Knows whether the end of what it was fed is inside of a string."""

    def __init__(self) -> None:
        self._begun = False
        self._inside = False
        self._escaped = False

    @property
    def place(self) -> Place:
        """Where the next token would stand."""
        if self._inside:
            return Place.STRING
        return Place.VALUE if self._begun else Place.WHOLE

    def feed(self, text: str) -> None:
        """Go over ``text``."""
        self._begun = self._begun or bool(text.strip())
        for character in text:
            if self._escaped:
                self._escaped = False
            elif character == "\\":
                self._escaped = self._inside
            elif character == '"':
                self._inside = not self._inside


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield literal text, escapes undone, each with the token that follows it; the last one with none.

    Raises:
        RenderError: ``{{`` stands where no token begins.
    """
    at = 0
    for found in PIECE.finditer(text):
        literal, token = refuse_stray(text[at : found.start()]), found[0]
        at = found.end()
        if token == FROM_REQUEST:
            # It has no end; the lookup says so, and shows how it goes on.
            token = text[found.start() :]
        yield (literal + "{{", "") if token == ESCAPED else (literal, token)
    yield refuse_stray(text[at:]), ""


def refuse_stray(literal: str) -> str:
    """Return text between tokens, which must not hold what looks like the beginning of one."""
    _, braces, rest = literal.partition("{{")
    if braces:
        whole, end, _ = rest.partition("}}")
        looks = whole + end if len(whole) <= SHOWN else f"{whole[:SHOWN]}..."
        raise RenderError(f"{braces}{looks}: no placeholder begins like this")
    return literal


def written(value: Json, place: Place, *, found: bool = False, name: str = "") -> str:
    """Return ``value`` as it is written at ``place``; ``found``: a text that was found, which may itself be JSON.

    Raises:
        RenderError: a value of Python's that JSON does not have; the message begins with ``name``.
    """
    try:
        return _written(value, place, found)
    except (TypeError, ValueError, RecursionError) as error:
        raise RenderError(f"{name}a value of type {type(value).__name__} is no JSON: {error}") from None


def _written(value: Json, place: Place, found: bool) -> str:
    text = value if isinstance(value, str) else as_json(value)
    match place:
        case Place.TEXT:
            return text
        case Place.STRING:
            return as_json(text)[1:-1]
        case Place.VALUE | Place.WHOLE:
            return text if found and is_json(text) else as_json(value)
        case _:
            assert_never(place)


def as_json(value: Json) -> str:
    """Return a value as compact JSON; unlike ``compact``, refuse what is no number of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def is_json(text: str) -> bool:
    """Return whether ``text`` is one JSON value."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


ESCAPED = "{{{{"

SHOWN = 30
"""Characters that are shown of what looks like a placeholder and is none."""

# Members that hold JSON as raw text, in entries and in options.
RAW_JSON = frozenset({"arguments", "argumentsDelta", "toolArguments"})

# An escape; a placeholder the request fills, up to the end of a run of braces (or with no end); a name.
NAME = r"[A-Za-z][A-Za-z0-9_-]*(?::[^{}\s]+)?"
VALUE_NAME = re.compile(NAME)
PIECE = re.compile(r"\{\{\{\{|\{\{fromRequest:(?:[\s\S]*?\}{2,})?|\{\{" + NAME + r"\}\}")
