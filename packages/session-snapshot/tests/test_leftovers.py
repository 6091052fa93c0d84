"""Real processes: what belongs to a run is found and ended, what does not is left alone."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from session_snapshot.leftovers import Leftovers, describe, kill_group, runs
from session_snapshot.runroot import PIDS, make_run_root, run_root, still_ours, sweep

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="posix only: sessions, groups and signals")

SLEEP = "import time; print('up', flush=True); time.sleep(600)"
PARENT = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {SLEEP!r}], start_new_session=True, env={{"PATH": ""}},
                         stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
time.sleep(600)
"""


class Started:
    """Processes of a test, each ended with it."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[str]] = []
        self.children: list[psutil.Process] = []

    def start(self, code: str, home: Path | None, own_group: bool = True) -> subprocess.Popen[str]:
        """Start Python with ``code``; it has printed a line when this returns."""
        env = {"PATH": os.environ["PATH"]} | ({"HOME": str(home)} if home else {})
        process = subprocess.Popen(
            [sys.executable, "-c", code], env=env, start_new_session=own_group, stdout=subprocess.PIPE, text=True
        )
        self.processes.append(process)
        assert process.stdout is not None
        process.first_line = process.stdout.readline().strip()  # type: ignore[attr-defined]
        if code == PARENT:
            self.children.append(psutil.Process(int(process.first_line)))  # type: ignore[attr-defined]
        return process


@pytest.fixture
def started() -> Iterator[Started]:
    made = Started()
    yield made
    for child in made.children:  # what a failing test leaves
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    for process in made.processes:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def alive(pid: int) -> bool:
    try:
        return runs(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def test_found_by_the_home_in_the_environment(tmp_path: Path, started: Started) -> None:
    mine, other = started.start(SLEEP, tmp_path), started.start(SLEEP, tmp_path.parent)
    leftovers = Leftovers(tmp_path)
    assert [process.pid for process in leftovers.alive()] == [mine.pid]
    (told,) = leftovers.left_behind()
    assert told.startswith(f"pid {mine.pid}: ") and "time.sleep" in told
    assert mine.wait(10) == -signal.SIGKILL
    assert alive(other.pid)
    assert leftovers.left_behind() == []


def test_found_by_parenthood_although_it_left_group_and_environment(tmp_path: Path, started: Started) -> None:
    agent = started.start(PARENT, tmp_path)
    child = int(agent.first_line)  # type: ignore[attr-defined]
    leftovers = Leftovers(tmp_path)
    leftovers.started(agent.pid)
    leftovers.look()
    agent.kill()
    agent.wait()
    assert [process.pid for process in leftovers.alive()] == [child]
    assert len(leftovers.left_behind()) == 1
    assert not alive(child)


def test_found_by_the_process_group(started: Started, tmp_path: Path) -> None:
    agent = started.start(f"import subprocess,sys; subprocess.Popen([sys.executable,'-c',{SLEEP!r}], env={{}})", None)
    leftovers = Leftovers(tmp_path)
    leftovers.started(agent.pid)
    assert len(leftovers.left_behind()) == 1


def test_the_agent_itself_is_not_left_behind_but_is_killed(tmp_path: Path, started: Started) -> None:
    agent = started.start(SLEEP, tmp_path)
    leftovers = Leftovers(tmp_path)
    leftovers.started(agent.pid)
    assert leftovers.left_behind() == []
    assert alive(agent.pid)
    leftovers.kill_all()
    assert agent.wait(10) == -signal.SIGKILL


def test_a_child_that_is_about_to_go_is_given_the_time(tmp_path: Path, started: Started) -> None:
    going = started.start(SLEEP, tmp_path)
    leftovers = Leftovers(tmp_path)
    assert len(leftovers.alive()) == 1
    going.terminate()
    assert leftovers.left_behind() == []


def test_a_defunct_process_does_not_run(started: Started, tmp_path: Path) -> None:
    process = started.start("print('up')", tmp_path)
    with contextlib.suppress(subprocess.TimeoutExpired):
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE
    assert not runs(psutil.Process(process.pid))


def test_what_is_gone_is_fine(tmp_path: Path, started: Started) -> None:
    process = started.start("print('up')", tmp_path)
    handle = psutil.Process(process.pid)
    process.wait()
    kill_group(process.pid)
    assert describe(handle) == f"pid {process.pid}"
    leftovers = Leftovers(tmp_path)
    leftovers.started(process.pid)
    leftovers.look()
    leftovers.kill_all()


def test_the_last_broom(tmp_path: Path, started: Started) -> None:
    """What a crash left: an agent and what it started are ended by their registry, and the folder goes."""
    with run_root() as root:
        home = root / "snap-x" / "home"
        home.mkdir(parents=True)
        agent, helper = started.start(PARENT, home), started.start(SLEEP, home)
        Leftovers(home, root / PIDS).started(agent.pid)
        assert still_ours(agent.pid, str(home))
    assert not root.exists()
    assert (agent.wait(10), helper.wait(10)) == (-signal.SIGKILL, -signal.SIGKILL)
    assert not alive(int(agent.first_line))  # type: ignore[attr-defined]


def test_the_broom_spares_a_newcomer_with_an_old_number(started: Started) -> None:
    root = make_run_root()
    newcomer = started.start(SLEEP, Path("elsewhere"))
    (root / PIDS / str(newcomer.pid)).write_text(str(root / "snap-x" / "home"))
    sweep(root)
    assert alive(newcomer.pid) and not root.exists()
    assert not still_ours(2**22 + 1, "x")
