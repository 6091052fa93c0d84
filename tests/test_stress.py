"""The long runs (`nox -s stress`): hundreds of replays, shuffled, under load, each identical."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ci.projects import ROOT


@pytest.mark.stress
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_hundreds_of_replays_under_load_are_identical(seed: int) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    flags = ["--suite", "session", "--repeat", "40", "--shuffle", str(seed), "--load"]

    result = subprocess.run(
        [sys.executable, "-m", "session_snapshot", "replay", *flags],
        cwd=ROOT,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stdout
    assert "400 passed" in result.stdout
