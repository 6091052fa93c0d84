"""The seam inside the agent: the same goldens as over the wire, and everything that is wrong about it is red."""

import asyncio
import json
import os
import shutil
from pathlib import Path

import msgspec
import pytest
from llm_replay.files import REQUESTS
from session_snapshot.adapter import Account, expand_file, read_account, sessions_root
from session_snapshot.errors import FixtureError
from session_snapshot.fixtures import STDOUT, pins_of
from session_snapshot.replay import replay_scenario
from session_snapshot.report import Failure, Report
from session_snapshot.runroot import run_root
from session_snapshot.sandbox import make_sandbox
from session_snapshot.suites import Place, load

SUITE = Path(__file__).parents[3] / "snapshots" / "session"
NAMES = sorted(path.parent.name for path in SUITE.glob("*/scenario.toml"))


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Our agent's suite, every scenario of it over the adapter."""
    folder = Path(shutil.copytree(SUITE, tmp_path / "snapshots" / "session"))
    for path in folder.glob("*/scenario.toml"):
        path.write_text('seam = "adapter"\n' + path.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    pins_of.cache_clear()
    return folder


def replay(suite: Path, name: str) -> Report:
    with run_root() as base:
        return asyncio.run(replay_scenario(Place("session", name, suite / name), base))


def said(report: Report) -> list[tuple[str, str]]:
    return [(failure.surface, failure.what) for failure in report.failures]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8", newline="")


@pytest.mark.parametrize("name", NAMES)
def test_the_goldens_are_those_of_the_wire(suite: Path, name: str) -> None:
    report = replay(suite, name)
    assert said(report) == []
    for file in (STDOUT, "session.jsonl"):
        assert str(report.actual[file]).encode() == (SUITE / name / file).read_bytes()
    assert REQUESTS not in report.actual


def test_an_agent_that_writes_no_account_is_red(suite: Path) -> None:
    """It was not told to swap its provider: it asks the wire, where nothing is recorded."""
    edit(suite / "agent.toml", 'arguments = ["--overlay", "{{home}}/replay.toml"]', "arguments = []")
    failures = said(replay(suite, "text-turn"))
    assert ("consumed", "the agent wrote no account of what it replayed") in failures
    assert ("requests", "model call 0 is not in the recording, which has none left") in failures


def test_a_drifted_request_is_red_and_answered(suite: Path) -> None:
    edit(suite / "text-turn" / REQUESTS, "the word PONG", "the word PING")
    report = replay(suite, "text-turn")
    (failure,) = report.failures
    assert (failure.surface, failure.what) == ("requests", "the request of session.jsonl#0 is not as recorded")
    assert "PING" in failure.detail and "PONG" in failure.detail


def test_a_call_that_is_never_made_is_red(suite: Path) -> None:
    steps = json.loads((suite / "multi-turn" / "input.json").read_text())
    steps["steps"].pop()
    (suite / "multi-turn" / "input.json").write_text(json.dumps(steps))
    (suite / "multi-turn" / "provenance.toml").unlink()
    failures = said(replay(suite, "multi-turn"))
    assert ("consumed", "recorded call session.jsonl#1 was never asked for") in failures
    assert ("expect", "snapshots/session/multi-turn/scenario.toml:9: model_calls: expected 2, there are 1") in failures


def test_a_call_that_nobody_recorded_is_red(suite: Path) -> None:
    steps = json.loads((suite / "text-turn" / "input.json").read_text())
    steps["steps"].append({"op": "promptExpectError", "text": "And more?"})
    (suite / "text-turn" / "input.json").write_text(json.dumps(steps))
    (suite / "text-turn" / "provenance.toml").unlink()
    surfaces = {surface for surface, what in said(replay(suite, "text-turn")) if "not in the recording" in what}
    assert surfaces == {"requests"}


def test_a_changed_system_prompt_shows_in_the_log(suite: Path) -> None:
    edit(suite / "text-turn" / "header.system.md", "Be brief.", "Be long.")
    assert [surface for surface, _ in said(replay(suite, "text-turn"))] == ["session"]


def test_what_cannot_be_replayed_this_way_is_refused(suite: Path) -> None:
    edit(
        suite / "cancel" / "input.json", ', "waitForUpdate": {"kind": "agent_message_chunk", "contains": "partial"}', ""
    )
    with pytest.raises(FixtureError, match=r"cancel/input\.json: promptAndCancel waits for a model call"):
        replay(suite, "cancel")
    text = (suite / "agent.toml").read_text(encoding="utf-8")
    (suite / "agent.toml").write_text(text[: text.index("[adapter]")])
    with pytest.raises(FixtureError, match=r"session/agent\.toml: seam = \"adapter\""):
        replay(suite, "text-turn")


KNOWN = {"cwd": "C:\\w", "date": "2026-01-02", "home": "/h{{x"}


@pytest.mark.parametrize(
    ("name", "stored", "copied"),
    [
        ("session.jsonl", '{"a":"{{cwd}} {{date}}"}', '{"a":"C:\\\\w 2026-01-02"}'),
        ("session.jsonl", '{"arguments":"{{cwd}}"}', '{"arguments":"C:\\\\\\\\w"}'),
        ("session.jsonl", '{"type":"tool-call-chunks","data":{"args":["{","{{cwd}}"]}}',
         '{"type":"tool-call-chunks","data":{"args":["{","C:\\\\\\\\w"]}}'),
        ("session.jsonl", '{"a":"{{sessionId:1}} {{{{cwd}} {{other}}"}', '{"a":"{{sessionId:1}} {{{{cwd}} {{other}}"}'),
        ("session.jsonl", '{"a":"{{home}}"}', '{"a":"/h{{{{x"}'),
        ("session.jsonl", '{"a":1}\n{"b":"\u2028"}', '{"a":1}\n{"b":"\u2028"}'),
        (REQUESTS, '{"a":"{{cwd}} {{date}} {{home}}"}', '{"a":"{{cwd}} 2026-01-02 {{home}}"}'),
        ("replay.override.json", '[\n {"a":"{{cwd}}"}\n]', '[{"a":"C:\\\\w"}]'),
    ],
)  # fmt: skip
def test_the_copy_has_the_tokens_expanded_that_only_the_harness_knows(name: str, stored: str, copied: str) -> None:
    assert expand_file(name, stored + "\n", KNOWN) == copied + "\n"


def test_what_the_agent_writes_is_read_or_named() -> None:
    whole = Account(["session.jsonl#0"], [], [], [], [])
    assert read_account(msgspec.json.encode(whole)) == whole
    for data in (None, b"", b"{", b"{}", b'{"consumed": 1}'):
        assert isinstance(read_account(data), Failure)


@pytest.mark.parametrize(
    ("pattern", "root"),
    [
        ("{{home}}/.a/sessions/*/session.jsonl", ".a/sessions"),
        ("{{home}}/.a/log-*.jsonl", ".a"),
        ("{{home}}/.a/**/x.jsonl", ".a"),
    ],
)
def test_where_an_agents_logs_land(suite: Path, tmp_path: Path, pattern: str, root: str) -> None:
    loaded = load(Place("session", "text-turn", suite / "text-turn"))
    persistence = msgspec.structs.replace(loaded.agent.persistence, log=pattern)
    agent = msgspec.structs.replace(loaded.agent, persistence=persistence)
    box = make_sandbox(tmp_path, False, None)
    found = sessions_root(msgspec.structs.replace(loaded, agent=agent), box)
    assert os.path.normpath(found) == str(box.home / root)
