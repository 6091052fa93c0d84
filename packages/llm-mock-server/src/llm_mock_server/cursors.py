"""Whose turn it is: which run through a script a request belongs to, and how far that run has come. Pure.

Each *cursor* goes through all entries by itself, so that concurrent callers cannot take each other's. What a cursor is
told by, its key, is a function of the requests of its own caller: how callers interleave changes nothing. (There are
bounds, though, so that a server may run for long: whoever has not called for the longest time begins anew.)
"""

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import TypeVar, assert_never
from urllib.parse import unquote

from llm_dialects import Json, Request, plain, strip_volatile
from msgspec import Struct

from llm_mock_server.admission import HttpRequest
from llm_mock_server.dice import Dice, seed_for
from llm_mock_server.fields import a_header, a_truth, a_word, an_object, wrong
from llm_mock_server.redaction import key_of_header

K = TypeVar("K", bound=Hashable)

MAX_CURSORS = 10_000
"""Cursors of a script that are kept, each with what it has left of every entry."""

MAX_HISTORIES = 40_000
"""Requests that conversations are told apart by."""


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


class Cursors:
    """The cursors of a script, in the order in which they began.

    Args:
        begin: Makes the cursor of a key.
        limit: How many are kept: those used last.

    Attributes:
        dropped: How many are not kept any more.
    """

    def __init__(self, begin: Callable[[str], Cursor], limit: int = MAX_CURSORS) -> None:
        self.dropped = 0
        self._begin = begin
        self._limit = limit
        self._cursors: dict[str, tuple[int, Cursor]] = {}
        self._used: OrderedDict[str, None] = OrderedDict()
        self._begun = 0
        self._gone = 0

    def of(self, key: str) -> Cursor:
        """Return the cursor of ``key``."""
        known = self._cursors.get(key)
        if known is None:
            return self._add(key)
        self._used.move_to_end(key)
        return known[1]

    def __len__(self) -> int:
        return len(self._cursors)

    def __contains__(self, key: str) -> bool:
        return key in self._cursors

    def __iter__(self) -> Iterator[Cursor]:
        return (cursor for _, cursor in self._cursors.values())

    @property
    def served(self) -> int:
        """How many calls entries have answered, in dropped cursors too."""
        return self._gone + sum(cursor.answers for cursor in self)

    def page(self, first: int, limit: int | None) -> tuple[list[Cursor], int]:
        """Return up to ``limit`` cursors from the one that began as number ``first`` on, and where to go on."""
        later = ((number, cursor) for number, cursor in self._cursors.values() if number >= first)
        found = list(islice(later, limit))
        return [cursor for _, cursor in found], found[-1][0] + 1 if found else max(first, self._begun)

    def _add(self, key: str) -> Cursor:
        if len(self._cursors) >= self._limit:
            oldest, _ = self._used.popitem(last=False)
            self._gone += self._cursors.pop(oldest)[1].answers
            self.dropped += 1
        cursor = self._begin(key)
        self._cursors[key] = self._begun, cursor
        self._used[key] = None
        self._begun += 1
        return cursor


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
                return next((key_of_header(name, value) for key, value in http.headers if key == name), "")
            case BySegment():
                return key_of_header("", segment_of(http.prefix))
            case _:
                assert_never(self._rule)


class Lineages:
    """Tells conversations apart by what is asked.

    A request that extends or equals an earlier one belongs to its conversation, the longest such one where there are
    several. Requests of equal messages and another system prompt are different callers (one that invents a title, say);
    a longer one may have changed its system prompt. Any other request opens a conversation; its key is a digest of it.

    Held is one digest a request, whatever its length, and so many of them: those that came last.
    """

    def __init__(self, limit: int = MAX_HISTORIES) -> None:
        self._limit = limit
        self._under_header: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._histories: OrderedDict[str, str] = OrderedDict()

    def key_of(self, request: Request) -> str:
        """Return the key of the conversation that ``request`` belongs to; from now on that is known of it."""
        header, chain = digest(list(request.system)), list(history_digests(request))
        known = self._known(header, chain)
        key = digest([header, chain[-1]])[:12] if known is None else known
        self._keep(self._under_header, (header, chain[-1]), key)
        self._keep(self._histories, chain[-1], key)
        return key

    def _keep(self, known: OrderedDict[K, str], history: K, key: str) -> None:
        known.setdefault(history, key)
        known.move_to_end(history)
        if len(known) > self._limit:
            known.popitem(last=False)

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
