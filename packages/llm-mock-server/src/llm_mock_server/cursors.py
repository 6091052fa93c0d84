"""Whose turn it is: which run through a script a request belongs to, and how far that run has come. Pure.

Each *cursor* goes through all entries by itself, so that concurrent callers cannot take each other's. What a cursor is
told by, its key, is a function of the requests of its own caller: how callers interleave changes nothing.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import assert_never
from urllib.parse import unquote

from llm_dialects import Json, Request, plain, strip_volatile
from msgspec import Struct

from llm_mock_server.admission import HttpRequest
from llm_mock_server.dice import Dice, seed_for
from llm_mock_server.fields import a_header, a_truth, a_word, an_object, wrong


class Shared(Struct, frozen=True):
    """All callers take from one cursor, in the order in which they come."""


class ByLineage(Struct, frozen=True):
    """Each conversation has its own (``Lineages``)."""


class ByHeader(Struct, frozen=True):
    """Each value of the header ``name`` (in lower case) has its own; so have the requests without it."""

    name: str


class BySegment(Struct, frozen=True):
    """Each first segment of the base URL's path has its own: ``http://127.0.0.1:PORT/alice/v1``."""


CursorRule = Shared | ByLineage | ByHeader | BySegment


def cursor_from_json(value: Json, where: str) -> CursorRule:
    """Read ``"shared"``, ``"lineage"``, ``{"header": NAME}`` or ``{"segment": true}``.

    Raises:
        EntryError: it is none of these.
    """
    if isinstance(value, str):
        return WORDS[a_word(value, tuple(WORDS), where, "no cursor is called")]
    rule = an_object(value, where, ("header", "segment"))
    if len(rule) != 1:
        raise wrong(where, "must have one key", 'write {"header": NAME} or {"segment": true}')
    if "header" in rule:
        return ByHeader(a_header(rule["header"], f"{where}.header"))
    if not a_truth(rule["segment"], f"{where}.segment"):
        raise wrong(f"{where}.segment", "must be true", 'write {"segment": true}, or "shared" for a cursor of all')
    return BySegment()


class Cursor:
    """One run through the entries of a script.

    Attributes:
        calls: How many calls it has had, those that no entry was left for included.
        answers: How many of them an entry answered.
        left: How often each entry can still be taken; ``None``: without end.
        last: The entry taken last.
        dice: What ``random`` is decided by: the script's seed, mixed with the key where there is one.
    """

    __slots__ = ("_acted", "_first", "_ids", "answers", "calls", "dice", "key", "last", "left")

    def __init__(self, key: str, times: Sequence[int | None], seed: int, weights: Mapping[str, float]) -> None:
        self.key = key
        self.calls = 0
        self.answers = 0
        self.left = list(times)
        self.last: int | None = None
        self._first = 0
        self._ids = 0
        self._acted = 0
        self.dice = Dice(seed_for(seed, key) if key else seed, weights)

    @property
    def open(self) -> Iterator[int]:
        """The entries that can still be taken, in order."""
        return (at for at in range(self._first, len(self.left)) if self.left[at] != 0)

    def take(self, at: int) -> None:
        """Count the entry ``at`` as taken by the present call, even if it is used up and said again."""
        self.calls += 1
        self.answers += 1
        self.last = at
        left = self.left[at]
        if left:
            self.left[at] = left - 1
        # A long script is not searched from its beginning each time.
        while self._first < len(self.left) and self.left[self._first] == 0:
            self._first += 1

    def new_id(self) -> str:
        """Return a new id for a tool call."""
        self._ids += 1
        return f"call_mock_{self.mark}{self._ids}"

    def new_acted_id(self) -> str:
        """Return a new id for a tool call of a behaviour."""
        self._acted += 1
        return f"mock-call-{self.mark}{self._acted}"

    @property
    def mark(self) -> str:
        """What tells this cursor's ids from those of others; nothing where there is no key."""
        return f"{digest(self.key)[:6]}_" if self.key else ""

    def to_json(self) -> dict[str, Json]:
        """Return how far it has come."""
        return {
            "key": self.key,
            "calls": self.calls,
            "answers": self.answers,
            "left": list(self.left),
            "last": self.last,
        }


class Keys:
    """Tells requests' cursors by a rule."""

    def __init__(self, rule: CursorRule) -> None:
        self._rule = rule
        self._lineages = Lineages()

    def key_of(self, http: HttpRequest, request: Request) -> str:
        """Return the key of the cursor that ``http`` belongs to."""
        match self._rule:
            case Shared():
                return ""
            case ByLineage():
                return self._lineages.key_of(request)
            case ByHeader(name):
                return next((value for key, value in http.headers if key == name), "")
            case BySegment():
                return segment_of(http.prefix)
            case _:
                assert_never(self._rule)


class Lineages:
    """Tells conversations apart by what is asked.

    A request that extends or equals an earlier one belongs to its conversation, the longest such one where there are
    several. Requests of equal messages and another system prompt are different callers (one that invents a title, say);
    a longer one may have changed its system prompt. Any other request opens a conversation; its key is a digest of it.

    Held is one digest a request, whatever its length, so that a server may run for long.
    """

    def __init__(self) -> None:
        self._under_header: dict[tuple[str, str], str] = {}
        self._histories: dict[str, str] = {}

    def key_of(self, request: Request) -> str:
        """Return the key of the conversation that ``request`` belongs to; from now on that is known of it."""
        header, chain = digest(list(request.system)), list(history_digests(request))
        known = self._known(header, chain)
        key = digest([header, chain[-1]])[:12] if known is None else known
        self._under_header.setdefault((header, chain[-1]), key)
        self._histories.setdefault(chain[-1], key)
        return key

    def _known(self, header: str, chain: Sequence[str]) -> str | None:
        same_header = (self._under_header.get((header, history)) for history in reversed(chain))
        any_header = (self._histories.get(history) for history in reversed(chain[:-1]))
        return next((key for found in (same_header, any_header) for key in found if key is not None), None)


def history_digests(request: Request) -> Iterator[str]:
    """Yield a digest of the first 0, 1, 2 ... messages: equal where ``lineage.common_prefix`` is as long."""
    so_far = digest("")
    yield so_far
    for message in strip_volatile(request).messages:
        so_far = digest([so_far, plain(message)])
        yield so_far


def segment_of(prefix: str) -> str:
    """Return the first segment of what stands before an endpoint, unless it belongs to the endpoint (``/v1``)."""
    first = unquote(prefix.lstrip("/").partition("/")[0])
    return "" if VERSION.fullmatch(first) else first


def digest(value: Json) -> str:
    """Return what tells JSON values apart; the order of members is not looked at."""
    return blake2b(json.dumps(value, sort_keys=True).encode("ascii"), digest_size=16).hexdigest()


VERSION = re.compile(r"v\d+\w*|models")
WORDS: dict[str, CursorRule] = {"shared": Shared(), "lineage": ByLineage()}
