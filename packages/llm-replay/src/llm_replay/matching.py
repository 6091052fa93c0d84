"""How well a live request fits a recorded call.

Ranks, best first: (1) the request is equal; (2) its messages are; (3) it grew out of the live request that was bound to
the call's parent, by the same messages; (4) it grew out of it by others; (5) both open a conversation; (6) the
histories begin alike. *Equal* leaves out what the agent received from the model, for agents send that back rewritten:
it only decides between calls of one rank. The growth of a live request is measured against a *live* request: so a
drift further up, carried along by every later request of the lane, costs a lane nothing.
"""

from collections.abc import Sequence

from msgspec import Struct

from llm_replay.history import Print, agreement, common_front, continues, kept

EQUAL, SAME_MESSAGES, SAME_GROWTH, OTHER_GROWTH, OPENING, SIMILAR = range(1, 7)
NOTHING_NEW = 7

ALIKE = 0.5
"""The share of common words from which on two openings of different header are taken for the same one."""


class Recorded(Struct, frozen=True):
    """A recorded call to be matched.

    ``grown_from`` are the recorded request of its nearest ancestor that is bound, and the live request bound to that;
    ``direct`` tells that nothing else lies between the two.
    """

    print: Print
    opening: bool
    grown_from: tuple[Print, Print] | None = None
    direct: bool = True
    same_key: bool = False
    same_class: bool = False


class Fit(Struct, frozen=True, order=True):
    """How well a request fits; less is better. What follows the rank decides between calls of one rank."""

    rank: int
    other_key: bool
    unequal: int
    other_conversation: bool
    indirect: bool
    other_end: bool
    other_class: bool
    other_header: int
    unlike: float
    other_length: bool


class Growth(Struct, frozen=True):
    """How a request differs from one it grew out of: how much of it is kept (all?), and from where it goes on."""

    keep: int
    whole: bool

    @classmethod
    def between(cls, above: Print, below: Print) -> "Growth":
        """Measure the growth from ``above`` to ``below``."""
        keep = kept(above, below)
        return cls(keep=keep, whole=keep == len(above.roles))


def fit(live: Print, recorded: Recorded, elsewhere: bool) -> Fit | None:
    """Return how well ``live`` fits ``recorded``; ``None`` if it cannot be the same call.

    ``elsewhere`` tells that ``live`` goes on from a conversation of which ``recorded`` is no part.
    """
    growths = _growths(live, recorded)
    rank = _rank(live, recorded, growths, elsewhere)
    if rank is None:
        return None
    if rank == OPENING:
        growths = None
    likeness = _likeness(live, recorded, growths) if rank > SAME_GROWTH else 0
    if rank == OPENING and not _is_same_opening(live, recorded, likeness):
        return None
    return Fit(
        rank=rank,
        other_key=not recorded.same_key,
        unequal=-_evidence(live, recorded, growths),
        other_conversation=growths is None or not growths[1].whole,
        indirect=not recorded.direct,
        other_end=live.loose[-1:] != recorded.print.loose[-1:],
        other_class=not recorded.same_class,
        other_header=live.header_differences(recorded.print),
        unlike=-likeness,
        other_length=len(live.roles) != len(recorded.print.roles),
    )


def _growths(live: Print, recorded: Recorded) -> tuple[Growth, Growth] | None:
    """Return how the recorded and how the live request grew out of what is bound above them."""
    if recorded.grown_from is None:
        return None
    above, live_above = recorded.grown_from
    return Growth.between(above, recorded.print), Growth.between(live_above, live)


def _rank(live: Print, recorded: Recorded, growths: tuple[Growth, Growth] | None, elsewhere: bool) -> int | None:
    if live.loose == recorded.print.loose:
        if live.same_header(recorded.print):
            return EQUAL
        return SAME_MESSAGES if _may_drift(live, recorded) else None
    if elsewhere:
        return None
    rank = None if growths is None else _rank_of_growth(live, recorded, growths)
    if rank is not None:
        return None if rank == NOTHING_NEW else rank
    if not live.same_tooling(recorded.print):
        return None
    if recorded.opening:
        return OPENING
    return SIMILAR if _is_similar(live, recorded, growths) else None


def _rank_of_growth(live: Print, recorded: Recorded, growths: tuple[Growth, Growth]) -> int | None:
    """Return the rank of a request that grew as the recorded one did; ``NOTHING_NEW`` if it did not grow at all."""
    before, now = growths
    old, new = recorded.print.loose[before.keep :], live.loose[now.keep :]
    if now.whole and old and not new:
        return NOTHING_NEW
    if before.whole is not now.whole:
        return None
    if old == new:
        return SAME_GROWTH
    return OTHER_GROWTH if before.whole and live.same_tooling(recorded.print) else None


def _may_drift(live: Print, recorded: Recorded) -> bool:
    """Tell whether a request with other tools, system texts or params may stand for the recorded one.

    An opening with tools and one without are two calls (an answer and a title for it), not one that drifted.
    """
    return live.same_tooling(recorded.print) or "assistant" in live.roles


def _is_same_opening(live: Print, recorded: Recorded, likeness: float) -> bool:
    same_end = live.loose[-1:] == recorded.print.loose[-1:]
    return same_end or recorded.same_class or live.same_kind(recorded.print) or likeness >= ALIKE


def _is_similar(live: Print, recorded: Recorded, growths: tuple[Growth, Growth] | None) -> bool:
    """Tell whether the histories begin alike, or both were rewritten from the same one."""
    if growths is not None and recorded.direct and not growths[0].whole and not growths[1].whole:
        return True
    return common_front(live.loose, recorded.print.loose) > 0


def _evidence(live: Print, recorded: Recorded, growths: tuple[Growth, Growth] | None) -> int:
    """Return how much agrees of what the model said, too: with the live request above, then with the recorded one."""
    if growths is None or recorded.grown_from is None:
        return agreement(live, 0, recorded.print, 0)
    before, now = growths
    inherited = agreement(live, 0, recorded.grown_from[1], 0, now.keep)
    return inherited + agreement(live, now.keep, recorded.print, before.keep)


def _likeness(live: Print, recorded: Recorded, growths: tuple[Growth, Growth] | None) -> float:
    """Return the share of words that what is new in both requests has in common."""
    before, now = (growths[0].keep, growths[1].keep) if growths else (0, 0)
    old, new = recorded.print.words(before), live.words(now)
    return len(old & new) / (len(old | new) or 1)


def conversations(live: Print, bound: Sequence[Print]) -> list[int]:
    """Return which of the ``bound`` live requests ``live`` goes on from: the longest of those it continues.

    Where twins share a history but for the answers, those it continues word for word are meant.
    """
    found = [at for at, above in enumerate(bound) if continues(above, live)]
    longest = max((len(bound[at].roles) for at in found), default=0)
    found = [at for at in found if len(bound[at].roles) == longest]
    return [at for at in found if bound[at].exact == live.exact[:longest]] or found
