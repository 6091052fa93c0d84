"""When a step is settled: by counts of kinds, never by content."""

import pytest
from session_snapshot.pacing import Pace, describe, missing


@pytest.mark.parametrize(
    ("expected", "seen", "gaps"),
    [
        ({}, {"response": 1}, {}),
        ({"response": 1}, {}, {"response": 1}),
        ({"response": 1, "plan": 3}, {"plan": 1, "response": 1}, {"plan": 2}),
        ({"plan": 1}, {"plan": 5}, {}),
    ],
)
def test_missing(expected: dict[str, int], seen: dict[str, int], gaps: dict[str, int]) -> None:
    assert missing(expected, seen) == gaps


def test_expected() -> None:
    pace = Pace([{"response": 1}])
    assert (pace.expected(0), pace.expected(1), Pace().expected(0)) == ({"response": 1}, {}, {})


def test_describe() -> None:
    assert describe({"usage_update": 1, "plan": 2}) == "2 plan, 1 usage_update"
