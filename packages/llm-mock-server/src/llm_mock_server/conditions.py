"""Which requests a script entry is for: ``{"model": "gpt-*", "text": "compress"}`` and what else can be asked. Pure."""

import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from llm_dialects import Json, Request, TextBlock
from llm_dialects.wire import compact
from msgspec import Struct

from llm_mock_server.admission import HttpRequest
from llm_mock_server.fields import a_count, a_header, a_regex, a_text, an_object, shown, wrong


class Asked(Struct, frozen=True):
    """A model call as conditions see it.

    Attributes:
        session: Key of the cursor it takes its entry from.
        nth: Which call of that cursor it is, from 1.
    """

    http: HttpRequest
    request: Request
    session: str = ""
    nth: int = 1


class When(Struct, frozen=True, kw_only=True):
    """The conditions of an entry: all that are given must hold.

    Attributes:
        model: A glob (``*``, ``?``, ``[ab]``) over the model's whole name.
        path: A glob over the whole path.
        header: Names in lower case with a regex that is searched in the header's value.
        body: JSON pointers into the request body, with the value that must stand there.
        nth: Which call of its cursor it must be, from 1.
        text: A regex that is searched in the text of the last user message.
        session: The key of the cursor.
    """

    model: str | None = None
    path: str | None = None
    header: tuple[tuple[str, re.Pattern[str]], ...] = ()
    body: tuple[tuple[str, Json], ...] = ()
    nth: int | None = None
    text: re.Pattern[str] | None = None
    session: str | None = None


ALWAYS = When()
"""No conditions."""


def when_from_json(value: Json, where: str) -> When:
    """Read the conditions of an entry; ``where`` is their place, for messages.

    Raises:
        EntryError: an unknown condition (the nearest known one is named), or one that cannot be meant.
    """
    conditions = an_object(value, where, READERS)
    if not conditions:
        return ALWAYS
    return When(**{name: READERS[name](said, f"{where}.{name}") for name, said in conditions.items()})


def holds(when: When, asked: Asked) -> str | None:
    """Return ``None`` if all conditions hold, else why the first that does not fails."""
    return None if when is ALWAYS else next(failures(when, asked), None)


def failures(when: When, asked: Asked) -> Iterator[str]:
    """Yield why each condition that does not hold fails."""
    model, path = str(asked.request.params.get("model", "")), asked.http.path
    if when.model is not None and not fnmatchcase(model, when.model):
        yield f"model: {model!r} is not {when.model!r}"
    if when.path is not None and not fnmatchcase(path, when.path):
        yield f"path: {path!r} is not {when.path!r}"
    for name, pattern in when.header:
        yield from header_failure(name, pattern, asked.http)
    for pointer, expected in when.body:
        yield from body_failure(pointer, expected, asked.http.json)
    if when.nth is not None and asked.nth != when.nth:
        yield f"nth: this is call {asked.nth} of its cursor, not {when.nth}"
    if when.text is not None:
        yield from text_failure(when.text, last_user_text(asked.request))
    if when.session is not None and asked.session != when.session:
        yield f"session: {asked.session!r} is not {when.session!r}"


def header_failure(name: str, pattern: re.Pattern[str], http: HttpRequest) -> Iterator[str]:
    """Yield why the header does not match. The value is not shown: it may be a secret."""
    values = [value for key, value in http.headers if key == name]
    if not values:
        yield f"header: there is no {name!r}"
    elif not any(pattern.search(value) for value in values):
        yield f"header: {name!r} does not match {pattern.pattern!r}"


def body_failure(pointer: str, expected: Json, body: Json) -> Iterator[str]:
    """Yield why what stands at ``pointer`` is not ``expected``."""
    try:
        found = at_pointer(body, pointer)
    except LookupError:
        yield f"body: there is nothing at {pointer!r}"
        return
    if not same_json(found, expected):
        yield f"body: {pointer!r} is {shortened(compact(found))}, not {shortened(compact(expected))}"


def text_failure(pattern: re.Pattern[str], text: str | None) -> Iterator[str]:
    """Yield why the last user message does not match."""
    if text is None:
        yield "text: there is no user message"
    elif not pattern.search(text):
        yield f"text: {shortened(repr(text))} does not match {pattern.pattern!r}"


def last_user_text(request: Request) -> str | None:
    """Return the text of the last user message, its parts joined by newlines; None where there is no such message."""
    for message in reversed(request.messages):
        if message.role == "user":
            return "\n".join(part.text for part in message.content if isinstance(part, TextBlock))
    return None


def at_pointer(value: Json, pointer: str) -> Json:
    """Return what stands at a JSON pointer (RFC 6901).

    Raises:
        LookupError: nothing stands there.
    """
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        match value:
            case dict():
                value = value[name]
            case list() if re.fullmatch(r"0|[1-9]\d*", name, re.ASCII):
                value = value[int(name)]
            case _:
                raise LookupError(pointer)
    return value


def same_json(a: Json, b: Json) -> bool:
    """Return whether two JSON values are equal; unlike in Python, ``true`` is not 1."""
    match a, b:
        case dict(), dict():
            return a.keys() == b.keys() and all(same_json(a[key], b[key]) for key in a)
        case list(), list():
            return len(a) == len(b) and all(map(same_json, a, b))
        case _:
            return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def shortened(text: str) -> str:
    """Return ``text``, its middle left out where it is long."""
    return text if len(text) <= LONG else f"{text[: LONG // 2]}...{text[-LONG // 2 :]}"


# ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_headers(value: Json, where: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Read ``{name: regex}``."""
    named = an_object(value, where)
    return tuple((a_header(name, where), a_regex(said, f"{where}.{name}")) for name, said in named.items())


def read_pointers(value: Json, where: str) -> tuple[tuple[str, Json], ...]:
    """Read ``{pointer: value}``."""
    for pointer in an_object(value, where):
        if not re.fullmatch(r"(/([^~/]|~[01])*)*", pointer):
            right = "/" + re.sub(r"~(?![01])", "~0", pointer.removeprefix("/"))
            raise wrong(where, f"{shown(pointer)} is no JSON pointer", f"write {right!r}")
    return tuple(value.items())


LONG = 80

READERS: dict[str, Callable[[Json, str], Any]] = {
    "model": a_text,
    "path": a_text,
    "header": read_headers,
    "body": read_pointers,
    "nth": a_count,
    "text": a_regex,
    "session": a_text,
}
