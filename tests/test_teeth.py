"""The committed suite can fail: one changed word in a golden, one in the agent's system prompt."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci.projects import ROOT

MUTANT = """\
import sys
import acp_agent.prompt as prompt
prompt.SYSTEM = prompt.SYSTEM.replace("You are a coding agent.", "You are a writing agent.")
import acp_agent.__main__ as agent
sys.exit(agent.main())
"""


@pytest.fixture
def snapshots(tmp_path: Path) -> Path:
    """A copy of suite ``session`` that a test may spoil."""
    shutil.copytree(ROOT / "snapshots" / "session", tmp_path / "snapshots" / "session")
    return tmp_path / "snapshots"


def replay(snapshots: Path) -> tuple[int, str, set[str]]:
    """Replay the suite: exit code, output, and the names of the red scenarios."""
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    result = subprocess.run(
        [sys.executable, "-m", "session_snapshot", "replay", "--workers", "2"],
        cwd=snapshots.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    red = {line.rsplit("::", 1)[1].split(" ")[0] for line in result.stdout.splitlines() if line.startswith("FAILED ")}
    return result.returncode, result.stdout, red


def scenarios(snapshots: Path) -> list[Path]:
    """All scenarios of the suite."""
    return list(snapshots.glob("session/*/scenario.toml"))


def with_calls(snapshots: Path) -> set[str]:
    """The scenarios that ask a model."""
    return {f"session/{path.parent.name}" for path in snapshots.glob("session/*/requests.golden.jsonl")}


def test_one_word_in_a_golden_makes_exactly_that_scenario_red_and_is_pointed_at(snapshots: Path) -> None:
    golden = snapshots / "session" / "multi-turn" / "stdout.golden.jsonl"
    text = golden.read_text(encoding="utf-8")
    golden.write_text(text.replace("The code word is MARIGOLD.", "The code word is LAVENDER."), encoding="utf-8")

    code, output, red = replay(snapshots)

    assert (code, red) == (1, {"session/multi-turn"})
    assert "[-LAVENDER-]" in output
    assert "{+MARIGOLD+}" in output
    assert f"{len(scenarios(snapshots)) - 1} passed" in output


def test_one_word_of_the_system_prompt_makes_every_scenario_that_asks_red_and_is_shown_once(snapshots: Path) -> None:
    (snapshots.parent / "mutant.py").write_text(MUTANT, encoding="utf-8")
    agent = snapshots / "session" / "agent.toml"
    text = agent.read_text(encoding="utf-8")
    command = f'command = ["python", {str(snapshots.parent / "mutant.py")!r}]'
    agent.write_text(text.replace('command = ["acp-agent"]', command), encoding="utf-8")

    code, output, red = replay(snapshots)

    assert (code, red) == (1, with_calls(snapshots))
    assert output.count("[-coding-]") == 1
    assert output.count("{+writing+}") == 1
    assert f"one change, {len(red)} scenarios" in output


def test_the_committed_suite_is_green_as_it_is(snapshots: Path) -> None:
    code, output, red = replay(snapshots)

    assert (code, red) == (0, set())
    assert f"{len(scenarios(snapshots))} passed" in output
