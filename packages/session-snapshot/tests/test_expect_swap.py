"""Intent against a golden that faithfully pins the wrong thing: every scenario, given another recording, must go red by
its ``[expect]``, whatever else does."""

import asyncio
import re
import shutil
from pathlib import Path

import msgspec
import pytest
from llm_replay.files import OVERRIDE, PRIMARY, REQUESTS
from session_snapshot.errors import FixtureError
from session_snapshot.fixtures import is_log, pins_of
from session_snapshot.replay import replay_scenario
from session_snapshot.runroot import run_root
from session_snapshot.scenario import Expect
from session_snapshot.suites import Place, find_places, load

SNAPSHOTS = Path(__file__).parents[3] / "snapshots"
DONOR = "text-turn"
SCENARIOS = [place.name for place in find_places(SNAPSHOTS) if place.suite == "session" and place.name != DONOR]


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pins_of.cache_clear()
    return Path(shutil.copytree(SNAPSHOTS / "session", tmp_path / "snapshots" / "session"))


def swap(suite: Path, name: str) -> Place:
    """Give a scenario the donor's recording, whole, so that only its intent can tell."""
    folder = suite / name
    for path in folder.iterdir():
        if is_log(path.name) or path.name in (OVERRIDE, REQUESTS):
            path.unlink()
    for file in (PRIMARY, REQUESTS):
        shutil.copy(suite / DONOR / file, folder)
    toml = folder / "scenario.toml"
    toml.write_text(toml.read_text(encoding="utf-8").replace("overridden = true\n", ""), encoding="utf-8")
    return Place("session", name, folder)


def breaches(place: Place) -> list[str]:
    """What ``[expect]`` says of it, before anything runs or after."""
    try:
        with run_root() as base:
            report = asyncio.run(replay_scenario(place, base))
    except FixtureError as error:
        what, of_expect, told = error.what.partition(" breaks its own [expect]: ")
        assert (what, bool(of_expect)) == ("the recording", True), error
        return told.split("; ")
    return [failure.what for failure in report.failures if failure.surface == "expect"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_another_recording_breaks_the_intent(suite: Path, name: str) -> None:
    place = swap(suite, name)
    found = breaches(place)
    keys = {re.match(r"(\w+): ", breach)[1] for breach in found}
    assert keys, "its [expect] would pass for a run that did nothing of what it is about"
    expect, default = load(place).scenario.expect, Expect()
    said = {key for key in msgspec.structs.asdict(expect) if getattr(expect, key) != getattr(default, key)}
    assert keys & said, f"{found} breaches no key that scenario.toml sets ({said})"


def test_its_own_recording_breaks_nothing(suite: Path) -> None:
    assert breaches(Place("session", DONOR, suite / DONOR)) == []
