"""Which recorded call a live request is.

A live request is matched against every recorded call that none is bound to yet (``matching`` says how well they fit).
A request that was asked before, word for word, is the recorded repeat of that call, its twin in another conversation,
or nothing that was recorded: it never takes the place of a call that only looks like it.
"""

from collections.abc import Iterable, Iterator, Sequence

from llm_dialects import entry_to_json
from msgspec import Struct

from llm_replay.calls import RecordedCall
from llm_replay.history import Print, common_front
from llm_replay.lines import canonical
from llm_replay.matching import OPENING, SAME_GROWTH, Fit, Recorded, conversations, fit


class Bound(Struct, frozen=True):
    """A live request and the call it is bound to; ``order`` counts live requests, bound or not.

    ``grown_from`` are the recorded and the live request that it was seen to have grown out of, if any.
    """

    order: int
    call: int
    live: Print
    session_key: str | None
    rank: int
    grown_from: tuple[Print, Print] | None = None


class Binder:
    """Knows the recorded calls, all of which have requests, and what is bound to them."""

    def __init__(self, calls: Sequence[RecordedCall]) -> None:
        """Take the calls of a recording."""
        self.bound: list[Bound] = []
        self.prints = [print_of(call) for call in calls]
        self._calls = calls
        self._twin_of = _twins(calls, self.prints)
        self._is_opening: list[bool] = []
        for call in calls:
            self._is_opening.append(self._opens(call))
        self._open = [call.index for call in calls]
        self._bound_to_twins: dict[int, list[Bound]] = {}
        self._class_of: dict[tuple[str, str], str] = {}

    def bind(self, order: int, live: Print, session_key: str | None) -> Bound | None:
        """Bind ``live`` to the recorded call that it is, or to none."""
        found = self._find(live, session_key)
        if found is None:
            return None
        rank, call, grown_from = found
        bound = Bound(order, call, live, session_key, rank, grown_from)
        self._open.remove(call)
        self._class_of[live.header[:2]] = self._calls[call].header
        self.bound.append(bound)
        self._bound_to_twins.setdefault(self._twin_of[call], []).append(bound)
        return bound

    def asked_before(self, live: Print) -> Bound | None:
        """Return the last bound request that is the same as ``live``, word for word."""
        return next((bound for bound in reversed(self.bound) if bound.live.same(live)), None)

    def nearest(self, live: Print) -> RecordedCall | None:
        """Return the recorded call, bound or not, that is most like ``live``."""
        return max(self._calls, key=lambda call: _nearness(live, self.prints[call.index]), default=None)

    def _find(self, live: Print, session_key: str | None) -> tuple[int, int, tuple[Print, Print] | None] | None:
        """Return rank and index of the best call, and what it has grown out of."""
        before = self.asked_before(live)
        candidates = [call for call in self._open if before is None or self._repeats(call, live, before)]
        equal = [call for call in candidates if self._is_equal(call, live)]
        best = min(self._fits(live, session_key, equal or candidates), key=lambda found: found[:2], default=None)
        if best is not None:
            return best[0].rank, best[1], None if best[0].rank == OPENING else best[2].grown_from
        return (before.rank, candidates[0], before.grown_from) if before is not None and candidates else None

    def _is_equal(self, call: int, live: Print) -> bool:
        return self.prints[call].loose == live.loose and self.prints[call].same_header(live)

    def _repeats(self, call: int, live: Print, before: Bound) -> bool:
        """Tell whether ``call`` is recorded as what is asked now, or as what it was bound to when first asked."""
        return self.prints[call].same(live) or self.prints[call].same(self.prints[before.call])

    def _fits(
        self, live: Print, session_key: str | None, candidates: Iterable[int]
    ) -> Iterator[tuple[Fit, int, Recorded]]:
        """Yield how well each candidate fits, those that cannot be it left out. Ties go to the recorded order."""
        others = [bound.live for bound in self.bound]
        # The same messages under another header: an agent that asks again, not one that goes on.
        again = any(other.exact == live.exact for other in others)
        goes_on_from = {self._twin_of[self.bound[at].call] for at in conversations(live, others)}
        for call in candidates:
            elsewhere = bool(goes_on_from) and not self._descends(call, goes_on_from)
            for recorded in self._recorded(call, live, session_key):
                found = fit(live, recorded, elsewhere)
                if found is not None and (found.rank <= SAME_GROWTH or not again):
                    yield found, call, recorded

    def _recorded(self, call: int, live: Print, session_key: str | None) -> Iterator[Recorded]:
        """Yield ``call`` as it is to be matched: once for each live request that it may have grown out of."""
        same_class = self._class_of.get(live.header[:2]) == self._calls[call].header
        opening = self._is_opening[call]
        between: list[int] = []
        for ancestor in self._ancestors(call):
            for bound in self._bound_to_twins.get(self._twin_of[ancestor], ()):
                grown_from, direct = (self.prints[ancestor], bound.live), self._is_direct(call, ancestor, between)
                same_key = session_key is not None and bound.session_key == session_key
                yield Recorded(self.prints[call], opening, grown_from, direct, same_key, same_class)
            if self._twin_of[ancestor] in self._bound_to_twins and not self._asks_the_same(ancestor, call):
                return
            between.append(ancestor)
        yield Recorded(self.prints[call], opening, same_class=same_class)

    def _is_direct(self, call: int, ancestor: int, between: Iterable[int]) -> bool:
        """Tell whether nothing lies between; what is recorded as asked again leaves no gap, if it happens or not."""
        return all(self._asks_the_same(other, ancestor) or self._asks_the_same(other, call) for other in between)

    def _asks_the_same(self, one: int, other: int) -> bool:
        return self.prints[one].loose == self.prints[other].loose

    def _opens(self, call: RecordedCall) -> bool:
        """Tell whether ``call`` opens a conversation. What is recorded as an opening asked again may be a twin's."""
        parent = call.parent
        return parent is None or (self._is_opening[parent] and self._asks_the_same(parent, call.index))

    def _descends(self, call: int, twins: set[int]) -> bool:
        return any(self._twin_of[ancestor] in twins for ancestor in self._ancestors(call))

    def _ancestors(self, call: int) -> Iterator[int]:
        parent = self._calls[call].parent
        while parent is not None:
            yield parent
            parent = self._calls[parent].parent


def print_of(call: RecordedCall) -> Print:
    """Return the print of a recorded call's request."""
    assert call.request is not None, "a call without a request is bound by its session"
    return Print(call.request, headed=call.headed)


def _twins(calls: Sequence[RecordedCall], prints: Sequence[Print]) -> list[int]:
    """Return for each call the first one that asks the same and is answered the same: either may be the other."""
    first: dict[tuple[object, ...], int] = {}
    keys = (
        (*print.exact, print.header, canonical(entry_to_json(call.entry)))
        for call, print in zip(calls, prints, strict=True)
    )
    return [first.setdefault(key, at) for at, key in enumerate(keys)]


def _nearness(live: Print, recorded: Print) -> tuple[int, bool, float, bool, int]:
    common = common_front(live.loose, recorded.loose)
    same_end = live.loose[-1:] == recorded.loose[-1:]
    old, new = recorded.words(0), live.words(0)
    alike = len(old & new) / (len(old | new) or 1)
    return common, same_end, alike, live.same_kind(recorded), -abs(len(live.roles) - len(recorded.roles))
