"""What the harness knows about a run, and the documents it wants normalised."""

import re
from datetime import date
from typing import Literal

from msgspec import Struct

from normalizer.lines import Json


class Declared(Struct, frozen=True, kw_only=True):
    """One ``[[normalize]]`` entry of ``agent.toml``: what varies in this agent alone, and why.

    ``path`` is a JSON pointer into a frame, event or row (``*`` stands for any one member), ``key`` the name of a
    member anywhere. ``pattern`` is a regular expression; its first group, else the whole match, becomes the token.
    Alone it searches all text; with ``path`` or ``key`` it limits the rule to values it matches whole.
    """

    token: str
    reason: str
    path: str | None = None
    key: str | None = None
    pattern: str | None = None

    def __post_init__(self) -> None:
        if self.path is None and self.key is None and self.pattern is None:
            raise ValueError(f"[[normalize]] {self.token}: nothing to find\nmend: give it path, key or pattern")
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", self.token):
            raise ValueError(
                f"[[normalize]] token {self.token!r} is no name\nmend: letters and digits, e.g. usedTokens"
            )
        if not self.reason.strip():
            raise ValueError(f"[[normalize]] {self.token}: no reason\nmend: say why this value varies")
        try:
            re.compile(self.pattern or "")
        except re.error as error:
            raise ValueError(f"[[normalize]] {self.token}: pattern: {error}\nmend: correct the expression") from None


class Context(Struct, frozen=True, cache_hash=True, kw_only=True):
    """The values of one run that are replaced because they are known, never because of their shape.

    ``cwd``, ``home``, ``tmp`` and ``agent`` (the agent's install root): absolute paths, each in every spelling that
    only the file system knows (resolved and unresolved, 8.3); the other spellings are derived. ``ports``: those the
    harness opened. ``dates``: the run's date, two when it crossed midnight.
    """

    cwd: tuple[str, ...] = ()
    home: tuple[str, ...] = ()
    tmp: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    dates: tuple[date, ...] = ()
    agent_version: str | None = None
    declared: tuple[Declared, ...] = ()


Kind = Literal["stdout", "client", "session", "requests", "text"]
"""``stdout``: frames the agent wrote. ``client``: frames it was sent. ``session``: header and events of a session log.
``requests``: rows of model requests. ``text``: one string."""


class Document(Struct, frozen=True):
    """One surface: its name for messages, its kind, and its JSON values (frames, events, rows; one string)."""

    name: str
    kind: Kind
    values: list[Json]


class Field(Struct, frozen=True):
    """One leaf: its value, where it stands, and the object or list that holds it."""

    value: Json
    path: tuple[str | int, ...]
    parent: Json
    document: Kind
    model: bool = False
    """Whether a model wrote it, so that replay will serve it again: only what can be expanded may become a token."""

    @property
    def key(self) -> str:
        """The nearest member name, in lower snake case: ``toolCallId`` and ``tool-call-id`` are ``tool_call_id``."""
        for part in reversed(self.path):
            if isinstance(part, str):
                return snake(part)
        return ""


def snake(name: str) -> str:
    """A member name in lower snake case."""
    known = _SNAKES.get(name)
    if known is None:
        known = _SNAKES[name] = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[-. ]+", "_", name).lower()
    return known


_SNAKES: dict[str, str] = {}
