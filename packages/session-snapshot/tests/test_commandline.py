"""From names and flags to pytest's arguments."""

from pathlib import Path

import pytest
from session_snapshot.commandline import ReplayFlags, pytest_arguments
from session_snapshot.suites import Place

PLACES = [Place("s", "a", Path("snapshots/s/a")), Place("s", "b", Path("snapshots/s/b"))]


@pytest.mark.parametrize(
    ("named", "flags", "holds", "lacks"),
    [
        (True, ReplayFlags(), ["no:xdist", "--snapshot-repeat=1"], ["-n", "--snapshot-load"]),
        (False, ReplayFlags(), ["-n", "auto"], ["no:xdist"]),
        (True, ReplayFlags(repeat=3), ["-n", "auto", "--snapshot-repeat=3"], ["no:xdist"]),
        (True, ReplayFlags(shuffle=0), ["--snapshot-shuffle=0", "auto"], []),
        (False, ReplayFlags(load=True), ["--snapshot-load"], []),
        (False, ReplayFlags(workers="0"), ["-n", "0"], ["auto"]),
    ],
)
def test_arguments(named: bool, flags: ReplayFlags, holds: list[str], lacks: list[str]) -> None:
    arguments = pytest_arguments(PLACES, named, flags)
    assert [one for one in holds if one not in arguments] == []
    assert [one for one in lacks if one in arguments] == []
    assert [Path(one) for one in arguments[-2:]] == [place.folder / "scenario.toml" for place in PLACES]
