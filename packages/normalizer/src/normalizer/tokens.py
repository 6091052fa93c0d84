"""Tokens, and how text holds them: ``{{cwd}}``, ``{{sessionId:1}}``; a literal ``{{`` is stored as ``{{{{``.

A run of n braces reads from the left: every four are one literal ``{{``; of what is left, none is nothing, one is a
literal ``{``, two open a token, three are a literal ``{`` before a token. So stored text has exactly one reading.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

LITERAL = "{{"
ESCAPED = "{{{{"


class Token(Struct, frozen=True):
    """What stands in place of a volatile value; ``value`` is that value where equality must survive, else None."""

    kind: str
    value: str | None = None

    def text(self, number: int | None = None) -> str:
        """``{{kind}}``, or ``{{kind:number}}``."""
        return f"{{{{{self.kind}}}}}" if number is None else f"{{{{{self.kind}:{number}}}}}"


class Mark(Struct, frozen=True):
    """One token or one escape in stored text, from ``start`` to ``end`` (code points)."""

    start: int
    end: int
    token: bool


def escape(text: str) -> str:
    """Live text as it is stored: every ``{{`` doubled."""
    return text.replace(LITERAL, ESCAPED)


def unescape(text: str) -> str:
    """The inverse of `escape`; tokens stay as they are."""
    parts, done = [], 0
    for mark in marks(text):
        if not mark.token:
            parts += [text[done : mark.start], LITERAL]
            done = mark.end
    return "".join(parts) + text[done:]


def marks(text: str) -> Iterator[Mark]:
    """The tokens and escapes of stored text, from left to right."""
    for run in _BRACES.finditer(text):
        start, length = run.start(), run.end() - run.start()
        escapes, rest = divmod(length, 4)
        for index in range(escapes):
            yield Mark(start + 4 * index, start + 4 * index + 4, token=False)
        token = _TOKEN.match(text, run.end() - 2) if rest >= 2 else None
        if token:
            yield Mark(token.start(), token.end(), token=True)


def has_token(text: str) -> bool:
    """Whether stored text holds a token."""
    return LITERAL in text and any(mark.token for mark in marks(text))


def strip_numbers(text: str) -> str:
    """``{{sessionId:3}}`` becomes ``{{sessionId}}``: numbers are assigned last, so they are not compared early."""
    parts, done = [], 0
    for mark in marks(text):
        if mark.token:
            parts += [text[done : mark.start], _NUMBER.sub("}}", text[mark.start : mark.end])]
            done = mark.end
    return "".join(parts) + text[done:]


def numbers(text: str) -> Iterator[tuple[str, int]]:
    """``(kind, number)`` of every numbered token in stored text."""
    for mark in marks(text):
        found = _NUMBERED.fullmatch(text, mark.start, mark.end) if mark.token else None
        if found:
            yield found["kind"], int(found["number"])


_BRACES = re.compile(r"\{\{+")
_TOKEN = re.compile(r"\{\{[A-Za-z][A-Za-z0-9]*(?::[^{}]*)?\}\}")
_NUMBER = re.compile(r":[0-9]+\}\}$")
_NUMBERED = re.compile(r"\{\{(?P<kind>[A-Za-z][A-Za-z0-9]*):(?P<number>[0-9]+)\}\}")
