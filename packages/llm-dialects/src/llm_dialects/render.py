"""Tokens in text: ``{{cwd}}``, ``{{sessionId:1}}`` and ``{{fromRequest:<regex>}}``.

A literal ``{{`` in stored text is written ``{{{{``, so that text and tokens can never be taken for one another.
"""

import re
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from llm_dialects.chunks import Json, plain
from llm_dialects.requests import Request


class RenderError(ValueError):
    """A token that cannot be filled; the message holds the token."""


def escape(text: str) -> str:
    """Return ``text`` as it is stored: each literal ``{{`` doubled."""
    return text.replace("{{", "{{{{")


def unescape(text: str) -> str:
    """Return stored ``text`` that holds no tokens as it was; the inverse of ``escape``."""
    return text.replace("{{{{", "{{")


def substitute(text: str, lookup: Callable[[str], str]) -> str:
    """Return stored ``text`` with tokens filled and escapes undone.

    ``lookup`` is given what stands between the braces, e.g. ``sessionId:1``, and raises ``RenderError`` (or
    ``KeyError``) if it knows nothing of it.
    """
    return TOKEN.sub(lambda found: "{{" if found["name"] is None else _looked_up(lookup, found["name"]), text)


def expand(value: Json, lookup: Callable[[str], str]) -> Json:
    """Return ``value`` with ``substitute`` done in each of its strings, keys included."""
    return map_strings(value, lambda text: substitute(text, lookup) if "{{" in text else text)


def map_strings(value: Json, change: Callable[[str], str]) -> Json:
    """Return ``value`` with ``change`` done to each of its strings, keys included."""
    match value:
        case str():
            return change(value)
        case dict():
            return {change(key): map_strings(item, change) for key, item in value.items()}
        case list() | tuple():
            return [map_strings(item, change) for item in value]
        case _:
            return value


def strings(value: Json) -> Iterator[str]:
    """Yield the string leaves of ``value`` in order, keys left out."""
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from strings(item)
        case list() | tuple():
            for item in value:
                yield from strings(item)


# ── Placeholders that the live request fills ────────────────────────────────────────────────────────────────────────


def fill_from_request(value: Json, request: Request, *, change: Callable[[str], str] = str) -> Json:
    """Return ``value`` with every ``{{fromRequest:<regex>}}`` filled from the messages of ``request``.

    The regex is searched in all string leaves of the messages, joined by newlines. The last match wins; of it group 1
    if there is one, else the whole. In a run of closing braces the last two end the placeholder, so that a pattern
    may end in ``{3}``. ``change`` is done to what is filled in: ``escape`` if ``expand`` comes after.

    Raises:
        RenderError: no match, a bad pattern, or a placeholder without an end.
    """
    if not any(FROM_REQUEST in text for text in strings(value)):
        return value
    corpus = "\n".join(strings([plain(message) for message in request.messages]))
    return map_strings(value, lambda text: _fill(text, lambda pattern: change(_last_match(pattern, corpus))))


def check_from_request(text: str) -> None:
    """Refuse a ``{{fromRequest:<regex>}}`` in ``text`` that no request could fill.

    Raises:
        RenderError: a bad pattern, or a placeholder without an end.
    """
    _fill(text, lambda pattern: _compiled(pattern).pattern)


def _fill(text: str, find: Callable[[str], str]) -> str:
    """Return ``text`` with each placeholder replaced by what ``find`` returns for its pattern."""
    done: list[str] = []
    while FROM_REQUEST in text:
        before, _, rest = text.partition(FROM_REQUEST)
        end = re.search(r"\}{2,}", rest)
        if end is None:
            raise RenderError(f"{FROM_REQUEST}{rest}: the placeholder has no end")
        done += [before, find(rest[: end.end() - 2])]
        text = rest[end.end() :]
    return "".join([*done, text])


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings(action="ignore"):  # of what a later Python may read otherwise
            # Named groups are written as in JavaScript, where these placeholders come from.
            return re.compile(re.sub(r"\(\?<(?![=!])", "(?P<", pattern))
    except (re.error, OverflowError, RecursionError) as error:
        raise RenderError(f"{FROM_REQUEST}{pattern}}}}}: bad pattern: {error}") from None


def _last_match(pattern: str, corpus: str) -> str:
    regex = _compiled(pattern)
    found: re.Match[str] | None = None
    for found in regex.finditer(corpus):  # noqa: B007 - the last one is wanted
        pass
    if found is None:
        raise RenderError(f"{FROM_REQUEST}{pattern}}}}}: nothing in the request's messages matches")
    group: Any = found[1] if regex.groups else None
    return found[0] if group is None else str(group)


def _looked_up(lookup: Callable[[str], str], name: str) -> str:
    try:
        return lookup(name)
    except KeyError:
        raise RenderError(f"{{{{{name}}}}}: nothing is known by this name") from None


FROM_REQUEST = "{{fromRequest:"

# An escaped "{{", or a token. Left to right, an odd brace before a token stays what it is.
TOKEN = re.compile(r"\{\{\{\{|\{\{(?P<name>[A-Za-z][A-Za-z0-9_-]*(?::[^{}\s]+)?)\}\}")
