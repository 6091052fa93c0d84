"""When the next step may begin.

A recording keeps how many frames of each kind belong to each step; replay waits for the response and for those counts,
never looking at content, so that a late notification cannot move between steps.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

LATER_SHARE = 0.25
"""How much of the bound (``[limits] settle_seconds``) is left after one miss: such a run is red already."""

Counts = Mapping[str, int]


class Pace(Struct, frozen=True):
    """The counts of every step as recorded, by step index; ``None`` where nothing was recorded."""

    steps: Sequence[Counts] | None = None

    def expected(self, step: int) -> Counts:
        """The counts of one step; a script that grew since has none."""
        return self.steps[step] if self.steps is not None and step < len(self.steps) else {}


def missing(expected: Counts, seen: Counts) -> dict[str, int]:
    """How many frames of each kind are still to come."""
    return {kind: count - seen.get(kind, 0) for kind, count in expected.items() if seen.get(kind, 0) < count}


def describe(gaps: Counts) -> str:
    """Missing counts in words: ``2 tool_call_update, 1 usage_update``."""
    return ", ".join(f"{count} {kind}" for kind, count in sorted(gaps.items()))
