"""Which differences are pending, which were decided, and how: the walk of a review as a value; pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from session_snapshot.changes.drift import Change

Verdict = Literal["accepted", "rejected", "skipped"]
"""A rejected difference stays red because the agent is wrong, a skipped one because nobody has said yet."""


class Item(Struct, frozen=True):
    """One pending difference: of which scenario, and its place among the scenario's changes."""

    scenario: str
    at: int
    change: Change

    @property
    def id(self) -> str:
        """How the difference is called: ``suite/scenario#2``."""
        return f"{self.scenario}#{self.at + 1}"

    @property
    def acceptable(self) -> bool:
        """Whether it may be accepted: what the model said is the recording's."""
        return not self.change.hunk.model


class Walk(Struct, frozen=True):
    """All pending differences, scenario by scenario, and what was said of each so far."""

    items: Sequence[Item]
    verdicts: Mapping[int, Verdict] = {}

    def open(self) -> int | None:
        """The first item that nothing was said of yet."""
        return next(self.undecided(), None)

    def undecided(self) -> Iterator[int]:
        """The items that nothing was said of yet."""
        return (place for place in range(len(self.items)) if place not in self.verdicts)

    def of_kind(self, place: int) -> list[int]:
        """The undecided items of the same kind, in all scenarios."""
        kind = self.items[place].change.kind
        return [other for other in self.undecided() if self.items[other].change.kind == kind]

    def of_scenario(self, place: int) -> list[int]:
        """The undecided items of the same scenario."""
        scenario = self.items[place].scenario
        return [other for other in self.undecided() if self.items[other].scenario == scenario]

    def twins(self, place: int) -> list[int]:
        """The other undecided items that are one and the same change."""
        twin = self.items[place].change.twin
        return [other for other in self.undecided() if other != place and self.items[other].change.twin == twin]

    def decide(self, places: Iterable[int], verdict: Verdict) -> "Walk":
        """Say the same of several. What cannot be accepted stays undecided."""
        said = {place: verdict for place in places if verdict != "accepted" or self.items[place].acceptable}
        return replace(self, verdicts={**self.verdicts, **said})

    def accept_also(self, scenario: str, changes: Collection[int]) -> "Walk":
        """Accept these changes of a scenario, whatever was said of them before."""
        places = [n for n, item in enumerate(self.items) if item.scenario == scenario and item.at in changes]
        return self.decide(places, "accepted")

    def chosen(self, scenario: str) -> frozenset[int]:
        """The accepted changes of a scenario, by their places in it."""
        return frozenset(
            item.at
            for place, item in enumerate(self.items)
            if item.scenario == scenario and self.verdicts.get(place) == "accepted"
        )

    def finished(self) -> list[str]:
        """The scenarios of which everything was decided, in order."""
        unfinished = {self.items[place].scenario for place in self.undecided()}
        return [name for name in dict.fromkeys(item.scenario for item in self.items) if name not in unfinished]

    def with_verdict(self, verdict: Verdict | None) -> list[Change]:
        """The changes of which this was said; ``None``: nothing."""
        return [item.change for place, item in enumerate(self.items) if self.verdicts.get(place) == verdict]


def walk_of(changes: Mapping[str, Sequence[Change]]) -> Walk:
    """The walk through the changes of scenarios, by name."""
    return Walk([Item(name, at, change) for name, found in changes.items() for at, change in enumerate(found)])


def list_lines(walk: Walk) -> list[str]:
    """A line for each pending difference: id, kind, surface, phrase, place."""
    return [
        f"{item.id}  {item.change.kind}  {item.change.surface}  {item.change.phrase}"
        f"  ({item.change.file}:{item.change.line})"
        for item in walk.items
    ]
