"""A new suite for the workspace's own agent, from its command line to a scenario that replays in another dialect."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from ci.projects import ROOT

SEARCHED = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def snapshot(folder: Path, *arguments: str, **variables: str) -> str:
    """Run ``session-snapshot``, which is to go well; its output."""
    inherited = {key: value for key, value in os.environ.items() if key not in ("CI", "SNAPSHOT_MODE")}
    done = subprocess.run(
        [sys.executable, "-m", "session_snapshot", *arguments],
        cwd=folder,
        env=inherited | {"PATH": SEARCHED} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_from_a_command_line_to_a_scenario(tmp_path: Path) -> None:
    said = snapshot(tmp_path, "init", "mine", "--command", "acp-agent", "--yes")
    lines = {line.strip().partition(":")[0]: line.partition(":")[2].strip() for line in said.splitlines()}
    assert lines["agent"].startswith("acp-agent ") and lines["protocol"] == "ACP version 1"
    assert "loadSession" in lines["can"] and lines["modes"].startswith("[default], ")
    golden = tmp_path / "snapshots" / "mine" / "handshake" / "stdout.golden.jsonl"
    assert golden.read_bytes() == (ROOT / "snapshots/session/handshake/stdout.golden.jsonl").read_bytes()
    snapshot(tmp_path, "init", "mine/pong", "--prompt", "Reply with the word PONG.", "--answer", "PONG")
    snapshot(tmp_path, "record", "mine/pong", OPENAI_API_KEY="any-word-of-8")
    assert "2 passed" in snapshot(tmp_path, "replay", "mine")
    guard = shutil.which("fixture-guard", path=SEARCHED)
    assert guard is not None
    done = subprocess.run([guard, "snapshots"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "0 findings" in done.stdout + done.stderr) == (0, True), done.stdout
