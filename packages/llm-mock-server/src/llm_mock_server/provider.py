"""A scripted stand-in for a provider: a responder that takes the entries of a script, one for each model call."""

from collections.abc import Callable, Mapping, Sequence

from llm_dialects import (
    DIALECTS,
    Chunks,
    Dialect,
    Entry,
    EntryError,
    Hang,
    Json,
    ProviderError,
    RenderError,
    Reply,
    Say,
    StreamChunk,
    Usage,
    answer_to,
    honest_usage,
    say_to_chunks,
)
from msgspec import Struct

from llm_mock_server.admission import HttpRequest
from llm_mock_server.answer import entry_reply, failure_reply, in_a_burst
from llm_mock_server.behaviours import RANDOM, behave
from llm_mock_server.conditions import Asked, failures, holds, last_user_text
from llm_mock_server.cursors import Cursor, Cursors, Keys
from llm_mock_server.ready import Root, refuse_unwritable, write_ready
from llm_mock_server.script import Act, Named, Script, script_from_json
from llm_mock_server.situation import Situation, accepts_gzip, target_of, usage_of
from llm_mock_server.wellformed import check_call

CREATED = 1_767_225_600
"""When every scripted answer was made, in Unix seconds: the same script says the same bytes (2026-01-01)."""

MAX_REFUSED = 100

UsageCounter = Callable[[Json, Sequence[StreamChunk]], Usage]
"""Counts the tokens of a request body and the chunks that answer it, where the chunks do not say."""


class Refusal(Struct, frozen=True):
    """A call that was answered in the server's own name, since the script had nothing for it.

    Attributes:
        label: ``exhausted``, ``unfilled`` or ``invalid``, as in the journal.
        call: The words that name the call.
        said: Its last user message, where it has one.
        why: What the client was told, the mend in its last line.
    """

    label: str
    call: str
    said: str | None
    why: str


class ScriptedProvider:
    """A responder that answers each model call with the first entry left that is for it, in the dialect it is asked in.

    Everything it says is a function of the script, the live ``values`` and the requests of one cursor: ids count up,
    the time stands still, usage that an entry lacks is counted from the request. A request the dialect cannot read
    takes no entry; neither does one whose entry has a placeholder that nothing fills.

    Args:
        script: A script, or its entries as JSON.
        where: Name of the script in messages, where only entries are given.
        on_hang: Called when a ``Hang`` falls silent, after its ready file has been written.
        ready_root: The folder that ready files are named from, the process's own where it is ""; ``None``: they are
            somebody else's to write.
        values: What ``{{name}}`` is filled with at first.
        usage: Counts tokens where an entry does not say them.

    Attributes:
        values: What ``{{name}}`` is filled with; to be changed at any time, from any thread.
        refused: The first ``MAX_REFUSED`` calls that took no entry, since the beginning or the last ``reset``.

    Raises:
        EntryError: an entry is wrong.
    """

    def __init__(
        self,
        script: Script | Sequence[Json],
        *,
        where: str = "upstream.json",
        dialects: Mapping[str, Dialect] = DIALECTS,
        on_hang: Callable[[Hang], None] | None = None,
        ready_root: Root | None = "",
        values: Mapping[str, Json] | None = None,
        usage: UsageCounter = honest_usage,
    ) -> None:
        self.values: dict[str, Json] = dict(values or {})
        self.refused: list[Refusal] = []
        self._first_values = dict(self.values)
        self._where = where
        self._dialects = dialects
        self._on_hang = on_hang
        self._ready_root = ready_root
        self._usage = usage
        self.load(script)

    def load(self, script: Script | Sequence[Json]) -> None:
        """Begin ``script`` in place of the present one; ``values`` stay.

        Raises:
            EntryError: an entry is wrong. The present script goes on then.
        """
        if not isinstance(script, Script):
            script = script_from_json({"entries": list(script)}, self._where)
        self.script = script
        self._begin()

    def reset(self) -> None:
        """Begin the script anew, with the values of the beginning."""
        self.values.clear()
        self.values.update(self._first_values)
        self.refused.clear()
        self._begin()

    @property
    def served(self) -> int:
        """How many calls an entry has answered."""
        return self._cursors.served

    @property
    def dropped_cursors(self) -> int:
        """How many cursors there are no more: of those that had not been used for the longest time."""
        return self._cursors.dropped

    @property
    def remaining(self) -> int:
        """How many answers are left, of every cursor that has begun; of one, where none has."""
        begun = sum(left or 0 for cursor in self._cursors for left in cursor.left)
        return begun + sum(
            entry.times or 0
            for entry in self.script.entries
            if (not self._cursors if entry.when.session is None else entry.when.session not in self._cursors)
        )

    def state(self, first: int = 0, limit: int | None = None) -> dict[str, Json]:
        """Return how far the script has come, as JSON, with up to ``limit`` cursors from number ``first`` on in the
        order in which they began; ``next`` is the number of the one after them.
        """
        cursors, following = self._cursors.page(first, limit)
        return {
            "script": self.script.where,
            "entries": [entry.label for entry in self.script.entries],
            "served": self.served,
            "remaining": self.remaining,
            "values": dict(self.values),
            "cursors": [cursor.to_json() for cursor in cursors],
            "next": following,
            "droppedCursors": self.dropped_cursors,
        }

    def __call__(self, http: HttpRequest) -> Reply:
        """Answer one model call."""
        dialect = self._dialects[http.dialect]
        check_call(dialect.name, http.json)
        request = dialect.parse_request(http.json)
        cursor = self._cursors.of(self._keys.key_of(http, request))
        asked = Asked(http, request, cursor.key, cursor.calls + 1)
        at = self._next(cursor, asked)
        if at is None:
            cursor.calls += 1
            return self._refuse(dialect, asked, "exhausted", self._exhausted(cursor, asked))
        entry = self.script.entries[at]
        try:
            act = entry.act if entry.filler is None else entry.filled({**self.script.values, **self.values}, request)
        except RenderError as error:
            return self._refuse(dialect, asked, "unfilled", unfilled(entry.where, error))
        except EntryError as error:
            return self._refuse(dialect, asked, "invalid", invalid(error))
        if isinstance(act, Hang) and self._ready_root is not None:
            asked.http.note(entry.label, asked.session or None)
            refuse_unwritable(act, self._ready_root, entry.where)
        cursor.take(at)
        reply = self._perform(act, entry.label, dialect, asked, cursor)
        return in_a_burst(reply) if entry.burst else reply

    def _begin(self) -> None:
        self._cursors = Cursors(self._new_cursor)
        self._keys = Keys(self.script.cursor)

    def _new_cursor(self, key: str) -> Cursor:
        """Return a cursor for ``key``; entries for other sessions are none of its."""
        times = (0 if e.when.session not in (None, key) else e.times for e in self.script.entries)
        return Cursor(key, tuple(times), self.script.seed, self.script.weights)

    def _next(self, cursor: Cursor, asked: Asked) -> int | None:
        """Return the entry for this call, None where there is none."""
        fitting = (at for at in cursor.open if holds(self.script.entries[at].when, asked) is None)
        return next(fitting, cursor.last if self.script.repeat_last else None)

    def _perform(self, act: Act, label: str, dialect: Dialect, asked: Asked, cursor: Cursor) -> Reply:
        """Return the actions of an entry."""
        if isinstance(act, Named) and act.name == RANDOM:
            label = cursor.dice.throw()
            act = Named(label, act.options)
        asked.http.note(label, cursor.key or None)
        if isinstance(act, Named):
            return behave(act.name, self._situation(act, dialect, asked, cursor))
        entry = Chunks(chunks=say_to_chunks(act, cursor.new_id)) if isinstance(act, Say) else act
        usage = usage_of(entry.chunks, lambda chunks: self._usage(asked.http.json, chunks))
        answer = answer_to(dialect, asked.request, token=token_of(cursor), created=CREATED, usage=usage)
        return entry_reply(dialect, asked.request, entry, answer, lambda: self._fallen_silent(entry))

    def _situation(self, act: Named, dialect: Dialect, asked: Asked, cursor: Cursor) -> Situation:
        return Situation(
            dialect=dialect,
            request=asked.request,
            options=act.options,
            token=token_of(cursor),
            created=CREATED,
            count=lambda chunks: self._usage(asked.http.json, chunks),
            new_id=cursor.new_acted_id,
            target=target_of(asked.http.path, asked.http.query),
            accepts_gzip=accepts_gzip(asked.http.headers),
        )

    def _fallen_silent(self, entry: Entry) -> None:
        if not isinstance(entry, Hang):
            return
        if self._ready_root is not None:
            write_ready(entry, self._ready_root)
        if self._on_hang is not None:
            self._on_hang(entry)

    def _refuse(self, dialect: Dialect, asked: Asked, label: str, error: ProviderError) -> Reply:
        """Answer a call that takes no entry."""
        asked.http.note(label, asked.session or None)
        if len(self.refused) < MAX_REFUSED:
            self.refused.append(Refusal(label, described(asked), last_user_text(asked.request), error.message))
        return failure_reply(dialect, error)

    def _exhausted(self, cursor: Cursor, asked: Asked) -> ProviderError:
        where, size = self.script.where, len(self.script.entries)
        message = f"{where}: {described(asked)} has no entry, the script holds {size}{self._nearest(cursor, asked)}"
        return ProviderError("MOCK_SCRIPT_EXHAUSTED", f"{message}\nmend: add an entry to {where}", 500)

    def _nearest(self, cursor: Cursor, asked: Asked) -> str:
        """Return the words on the entry that is left and of which the fewest conditions fail, if one is left."""
        left = [(self.script.entries[at], tuple(failures(self.script.entries[at].when, asked))) for at in cursor.open]
        if not left:
            return ""
        entry, why = min(left, key=lambda pair: len(pair[1]))
        return f"; the nearest that is left, {entry.where} ({entry.label}), is for other calls: {'; '.join(why)}"


def token_of(cursor: Cursor) -> str:
    """Return what makes the ids of the answer that a cursor gives now."""
    return f"mock{cursor.mark}{cursor.answers}"


def described(asked: Asked) -> str:
    """Return the words that name a call."""
    http, request = asked.http, asked.request
    model = request.params.get("model")
    words = f"model call {http.number} ({http.method} {http.path}, model {model}, {len(request.messages)} messages)"
    return f"{words} of cursor {asked.session!r}" if asked.session else words


def unfilled(where: str, error: RenderError) -> ProviderError:
    """Return the failure of a call whose entry has a placeholder that nothing fills."""
    mend = "set the value (values) before the call, let the pattern match, or write {{{{ for literal braces"
    return ProviderError("MOCK_PLACEHOLDER_UNFILLED", f"{where}: {error}\nmend: {mend}", 500)


def invalid(error: EntryError) -> ProviderError:
    """Return the failure of a call whose entry is none with what fills it."""
    what = str(error).partition("\nmend: ")[0]
    message = f"{what}, once its placeholders are filled\nmend: set other values, or correct the entry"
    return ProviderError("MOCK_ENTRY_INVALID", message, 500)
