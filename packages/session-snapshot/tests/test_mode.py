"""The mode switch, and what counts as CI."""

import pytest
from session_snapshot.errors import Refused
from session_snapshot.mode import Mode, demand, mode_from, under_ci


@pytest.mark.parametrize(
    ("value", "mode"),
    [(None, Mode.REPLAY), ("", Mode.REPLAY), *((mode.value, mode) for mode in Mode)],
)  # fmt: skip
def test_modes(value: str | None, mode: Mode) -> None:
    assert mode_from({} if value is None else {"SNAPSHOT_MODE": value}) is mode


@pytest.mark.parametrize("value", ["REPLAY", "rec", "1"])
def test_any_other_value_is_an_error(value: str) -> None:
    with pytest.raises(Refused, match="set it to one of replay, record, refresh"):
        mode_from({"SNAPSHOT_MODE": value})


@pytest.mark.parametrize("value", [None, "", "record"])
def test_a_switch_that_is_unset_or_agrees(value: str | None) -> None:
    demand(Mode.RECORD, {} if value is None else {"SNAPSHOT_MODE": value})


@pytest.mark.parametrize("value", ["replay", "refresh", "rec"])
def test_a_switch_that_contradicts_the_command(value: str) -> None:
    with pytest.raises(Refused, match=f"SNAPSHOT_MODE is '{value}'"):
        demand(Mode.RECORD, {"SNAPSHOT_MODE": value})


@pytest.mark.parametrize(
    ("value", "ci"),
    [(None, False), ("", False), ("false", False), ("FALSE", False), ("true", True), ("1", True), ("0", False)],
)
def test_ci(value: str | None, ci: bool) -> None:
    assert under_ci({} if value is None else {"CI": value}) is ci
