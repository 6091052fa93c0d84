"""Ctrl-C in the middle of a parallel `nox -s snapshot`: no process of a run and no folder of one is left."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from watchfiles import watch

from ci import bootstrap
from ci.projects import ROOT

if sys.platform == "win32":
    pytest.skip("posix only: a console's Ctrl-C cannot be sent to a group of our own", allow_module_level=True)


@pytest.fixture
def terminal() -> Iterator[None]:
    """What a test starts hears Ctrl-C, as from a terminal; this test run itself may be a background job, which does
    not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def nox(tmp_path: Path, terminal: None) -> Iterator[subprocess.Popen[str]]:
    """A long `nox -s snapshot` in a process group of its own, its temporary files below ``tmp_path``."""
    if not bootstrap.TOOLS.is_dir():
        pytest.skip("there is no .tools/ here: run the tests by nox, or python ci/bootstrap.py -l once")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV"))}
    process = subprocess.Popen(
        [sys.executable, "ci/bootstrap.py", "-s", "snapshot", "--", "--repeat", "200", "--workers", "2"],
        cwd=ROOT,
        env=environment | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def agents_below(folder: Path) -> list[str]:
    """The processes whose home lies below a folder, in words."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME", "").startswith(str(folder)):
                found.append(f"{process.pid}: {' '.join(process.cmdline())}")
        except psutil.Error:
            continue
    return found


def wait_for_agents(folder: Path, process: subprocess.Popen[str]) -> None:
    """Return once agents run below the folder; the file system tells when to look."""
    for _ in watch(folder, rust_timeout=500, yield_on_timeout=True):
        assert process.poll() is None, process.communicate()[0]
        if agents_below(folder):
            return


@pytest.mark.parametrize("to", ["the whole group, as a terminal does", "nox alone"])
def test_an_interrupt_leaves_nothing_behind(nox: subprocess.Popen[str], tmp_path: Path, to: str) -> None:
    wait_for_agents(tmp_path, nox)

    if to == "nox alone":
        os.kill(nox.pid, signal.SIGINT)
    else:
        os.killpg(nox.pid, signal.SIGINT)
    output, _ = nox.communicate(timeout=100)

    assert nox.returncode != 0
    assert "passed" not in output.splitlines()[-1]
    assert agents_below(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("snap")] == [], output
