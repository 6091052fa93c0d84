"""Where an agent's program comes from, and what is said when it is not there."""

import asyncio
import sys
from pathlib import Path

import pytest
from session_snapshot.errors import AgentError
from session_snapshot.fixtures import load_committed
from session_snapshot.replay import replay_loaded
from session_snapshot.runroot import run_root
from session_snapshot.suites import Loaded, load, place_of
from session_snapshot.told import refuse_missing_program

AGENT = """\
import json, sys
for line in sys.stdin:
    call = json.loads(line)
    print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": {"protocolVersion": 1}}), flush=True)
"""


def suite_of(tmp_path: Path, kind: str, command: list[str]) -> Loaded:
    """A suite whose agent is a file of its own folder."""
    scenario = tmp_path / "snapshots" / "own" / "hello"
    scenario.mkdir(parents=True)
    words = ", ".join(f"'{word}'" for word in command)
    (scenario.parent / "agent.toml").write_text(f'command = [{words}]\n[install]\nkind = "{kind}"\n')
    (scenario.parent / "agent.py").write_text(AGENT)
    (scenario / "scenario.toml").write_text(
        'description = "d"\nrecording = "authored"\n[expect]\nmodel_calls = 0\n', encoding="utf-8"
    )
    (scenario / "input.json").write_text('{"steps": [{"op": "initialize"}]}\n')
    (scenario / "session.jsonl").write_text('{"type":"session","format":"session-snapshot","version":1}\n')
    (scenario / "stdout.golden.jsonl").write_text('{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}\n')
    return load(place_of(scenario / "scenario.toml"))


def test_an_agent_in_the_suite_is_named_by_its_folder(tmp_path: Path) -> None:
    loaded = suite_of(tmp_path, "none", [sys.executable, "{{agent}}/agent.py"])

    with run_root() as base:
        report, _ = asyncio.run(replay_loaded(loaded, load_committed(loaded), base))

    assert [failure.what for failure in report.failures] == []


@pytest.mark.parametrize(
    ("kind", "program", "told"),
    [
        ("none", "no-such-program", "was not found\nmend: put it on the PATH"),
        ("uv", "no-such-program", "was not found\nmend: nox -s snapshot_agents"),
        ("workspace", "no-such-program", "was not found\nmend: make the program part of this environment"),
        ("none", "{folder}", "is a folder"),
        ("none", "{folder}/agent.py", "is not executable\nmend: chmod"),
    ],
)
def test_a_program_that_cannot_be_run_is_told_by_what_it_is(tmp_path: Path, kind: str, program: str, told: str) -> None:
    if "executable" in told and sys.platform == "win32":
        pytest.skip("posix only: on Windows a file needs no mark to be run")
    loaded = suite_of(tmp_path, kind, ["agent"])

    with pytest.raises(AgentError) as caught:
        refuse_missing_program(loaded, program.format(folder=loaded.place.suite_folder), "/usr/bin")

    assert told in str(caught.value)
