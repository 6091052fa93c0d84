"""The player decides what the model says next: it binds each live request to a recorded call, and proves all consumed.

Requests arrive from several conversations at once, in an order that need not be the recorded one; ``binding`` tells
which recorded call each one is. A recording without requests (a historical one) binds by session instead: a new session
key takes the next script, and each session its script's calls in order.
"""

from collections.abc import Iterable

from llm_dialects import Json, Request
from msgspec import Struct

from llm_replay.binding import Binder, Bound
from llm_replay.calls import RecordedCall, Recording
from llm_replay.difference import Difference, Same, diff_json, same_leaf
from llm_replay.history import Print, kept
from llm_replay.tree import Canon


class Served(Struct, frozen=True):
    """The request is bound to ``call``, whose entry answers it. ``differences`` tell what of it has drifted.

    ``rank`` is how it was recognised, 1 (equal) to 6; a drift can go with any rank.
    """

    call: RecordedCall
    differences: tuple[Difference, ...]
    rank: int


class Repeated(Struct, frozen=True):
    """The request asks again what live request ``of`` (counted from 0) asked, and nobody recorded that it does.

    The answer is that of ``call`` once more; nothing is consumed.
    """

    call: RecordedCall
    of: int


class Unrecorded(Struct, frozen=True):
    """Nobody recorded such a call. ``nearest`` is the most similar one, ``differences`` are those from it."""

    nearest: RecordedCall | None
    differences: tuple[Difference, ...]


Outcome = Served | Repeated | Unrecorded


class Player:
    """Answers live requests from a recording."""

    def __init__(
        self,
        recording: Recording,
        canon: Canon = lambda request: request,
        same: Same = same_leaf,
    ) -> None:
        """Take the recording. ``canon`` puts tokens in place of a live request's volatile values.

        ``same`` tells, for ``differences``, whether a recorded leaf and a live one are equal.
        """
        self._calls = recording.calls
        self._canon = canon
        self._same = same
        self._asked = 0
        self._bound: list[tuple[int, int]] = []
        historical = any(call.request is None for call in recording.calls)
        self._sessions = _Sessions(recording.calls) if historical else None
        self._binder = Binder(() if historical else recording.calls)

    @property
    def served(self) -> int:
        """How many recorded calls are consumed."""
        return len(self._bound)

    @property
    def bound(self) -> tuple[tuple[int, int], ...]:
        """Pairs of live order (counted from 0 over all requests) and call index, as they were bound."""
        return tuple(self._bound)

    def unconsumed(self) -> tuple[RecordedCall, ...]:
        """Return the recorded calls that no live request was bound to, in recorded order."""
        consumed = {call for _, call in self._bound}
        return tuple(call for call in self._calls if call.index not in consumed)

    def ask(self, request: Request, session_key: str | None = None) -> Outcome:
        """Bind ``request``. ``session_key`` is what the client calls its conversation towards the provider, if it does.

        The same requests in the same order always bind alike.
        """
        order, self._asked = self._asked, self._asked + 1
        if self._sessions is not None:
            return self._next_of_session(self._sessions, session_key, order)
        live = Print(self._canon(request))
        before = self._binder.asked_before(live)
        bound = self._binder.bind(order, live, session_key)
        if bound is not None:
            self._bound.append((order, bound.call))
            return Served(self._calls[bound.call], self._drift(bound), bound.rank)
        if before is not None:
            return Repeated(self._calls[before.call], before.order)
        return self._unrecorded(live)

    def _next_of_session(self, sessions: "_Sessions", session_key: str | None, order: int) -> Outcome:
        call = sessions.next(session_key)
        if call is None:
            return Unrecorded(sessions.last(session_key), ())
        self._bound.append((order, call.index))
        return Served(call, (), 1)

    def _unrecorded(self, live: Print) -> Unrecorded:
        nearest = self._binder.nearest(live)
        if nearest is None:
            return Unrecorded(None, ())
        recorded = self._binder.prints[nearest.index]
        return Unrecorded(nearest, self._differences(recorded, live, recorded.messages, live.messages))

    def _drift(self, bound: Bound) -> tuple[Difference, ...]:
        """Return what differs, leaving out what was different in the parent already: each drift is told once."""
        recorded = self._binder.prints[bound.call]
        if bound.grown_from is None:
            return self._differences(recorded, bound.live, recorded.messages, bound.live.messages)
        above, live_above = bound.grown_from
        old, new = _news(above, recorded, live_above, bound.live)
        return self._differences(recorded, bound.live, old, new)

    def _differences(self, recorded: Print, live: Print, old: list[Json], new: list[Json]) -> tuple[Difference, ...]:
        known = ("system", "tools", "params") if recorded.headed and live.headed else ("params",)
        expected = {**{key: recorded.json[key] for key in known}, "messages": old}
        actual = {**{key: live.json[key] for key in known}, "messages": new}
        return diff_json(expected, actual, same=self._same)


def _news(above: Print, below: Print, live_above: Print, live: Print) -> tuple[list[Json], list[Json]]:
    """Return the messages of the recorded and the live request, ``None`` in place of what is news in neither.

    No news is a message that stands in the request above, unchanged; indexes are those of the live request.
    """
    keep, live_keep = kept(above, below), kept(live_above, live)
    if keep != live_keep:
        inherited: list[Json] = [None] * live_keep
        return inherited + below.messages[keep:], inherited + live.messages[live_keep:]
    same = [above.exact[at] == below.exact[at] and live_above.exact[at] == live.exact[at] for at in range(keep)]
    return _blank(below.messages, same), _blank(live.messages, same)


def _blank(messages: list[Json], same: list[bool]) -> list[Json]:
    kept_ones = (None if equal else message for equal, message in zip(same, messages, strict=False))
    return [*kept_ones, *messages[len(same) :]]


class _Sessions:
    """Binds by session and order of first call: what can be done without recorded requests."""

    def __init__(self, calls: Iterable[RecordedCall]) -> None:
        self._scripts: dict[int, list[RecordedCall]] = {}
        for call in calls:
            self._scripts.setdefault(call.lane, []).append(call)
        self._unclaimed = sorted(self._scripts)
        self._claimed: dict[str | None, int] = {}
        self._consumed: dict[int, int] = {}

    def next(self, key: str | None) -> RecordedCall | None:
        """Return the next call of the session; ``None`` if its script is over, or there is none for it."""
        if key not in self._claimed:
            if not self._unclaimed:
                return None
            self._claimed[key] = self._unclaimed.pop(0)
        lane = self._claimed[key]
        at = self._consumed.get(lane, 0)
        if at == len(self._scripts[lane]):
            return None
        self._consumed[lane] = at + 1
        return self._scripts[lane][at]

    def last(self, key: str | None) -> RecordedCall | None:
        """Return the last call of the session's script."""
        return self._scripts[self._claimed[key]][-1] if key in self._claimed else None
