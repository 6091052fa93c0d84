"""The committed half of a scenario: what is compared, and what is refused before anything runs."""

import shutil
from pathlib import Path

import pytest
from llm_replay import Recording
from session_snapshot.errors import FixtureError
from session_snapshot.fixtures import Committed, is_log, load_committed, log_number, pins_of
from session_snapshot.suites import Place, load

SUITE = Path(__file__).parents[3] / "snapshots" / "session"


def committed(texts: dict[str, str], own_log: bool) -> Committed:
    return Committed(Recording(()), texts, {}, None, own_log)


@pytest.mark.parametrize(
    ("texts", "actual", "own_log", "compared"),
    [
        ({"stdout.golden.jsonl": "a"}, {}, True, [("stdout", "a")]),
        ({}, {}, False, [("stdout", None)]),
        ({"session.jsonl": "b"}, {"session.jsonl": ""}, False, [("stdout", None)]),
        (
            {"session.jsonl": "b"},
            {"session.jsonl": "", "session.1.jsonl": ""},
            True,
            [("stdout", None), ("session", None), ("session", "b")],
        ),
        (
            {"session.jsonl": "b", "session.1.jsonl": "c"},
            {"session.jsonl": ""},
            True,
            [("stdout", None), ("session", "c"), ("session", "b")],
        ),
        ({"requests.golden.jsonl": "r"}, {}, False, [("stdout", None), ("requests", "r")]),
        ({}, {"requests.golden.jsonl": "r"}, False, [("stdout", None), ("requests", None)]),
    ],
)
def test_what_is_compared_is_there_on_either_side(texts, actual, own_log, compared) -> None:
    found = committed(texts, own_log).surfaces(actual)
    assert [(surface, expected) for surface, _, expected in found] == compared


@pytest.mark.parametrize(
    ("name", "log", "number"),
    [("session.jsonl", True, 0), ("session.12.jsonl", True, 12), ("stdout.golden.jsonl", False, 0)],
)
def test_names(name: str, log: bool, number: int) -> None:
    assert (is_log(name), log_number(name) if log else 0) == (log, number)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SUITE, tmp_path / "session"))


def check_refused(suite: Path, name: str, said: str) -> None:
    pins_of.cache_clear()
    with pytest.raises(FixtureError) as caught:
        load_committed(load(Place("session", name, suite / name)))
    assert said in str(caught.value)
    assert "\nmend: " in str(caught.value)


def test_a_committed_scenario(suite: Path) -> None:
    pins_of.cache_clear()
    found = load_committed(load(Place("session", "multi-turn", suite / "multi-turn")))
    assert len(found.recording.calls) == 2
    assert found.pins.keys() == {"compaction", "default"}
    assert found.provenance is not None and found.provenance.made_by == "record"
    assert found.own_log


def test_what_is_refused(suite: Path) -> None:
    (suite / "multi-turn" / "session.jsonl").unlink()
    check_refused(suite, "multi-turn", "multi-turn/session.jsonl: there is no recording")
    shutil.copy(suite / "cancel" / "replay.override.json", suite / "workspace-edit")
    check_refused(suite, "workspace-edit", "the override is there, but scenario.toml does not say overridden = true")
    (suite / "cancel" / "replay.override.json").unlink()
    check_refused(suite, "cancel", "the override is declared and missing")
    (suite / "text-turn" / "header.system.md").unlink()
    check_refused(suite, "bash-tool-turn", "text-turn/header.system.md: the file is missing")


def test_a_wrong_pin(suite: Path) -> None:
    (suite / "text-turn" / "header.tools.json").write_text("{}")
    check_refused(suite, "text-turn", "header.tools.json: not a list of tools")
