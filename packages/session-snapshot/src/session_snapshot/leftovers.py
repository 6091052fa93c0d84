"""Which processes belong to a run, and their end.

A run's processes are found by what only they have: the sandbox's home in their environment, their parent, their process
group. A process that left all three (a daemon with a cleaned environment) is not ours to find.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

GRACE_SECONDS = 1.0
"""How long a process may outlive the agent before it counts as left behind (defunct children go within that)."""

LOOK_SECONDS = 0.01
"""How often a process that is going is looked at."""

KILL_ROUNDS = 5
"""How often what still runs is killed: a process may start another while the list is made."""


class Leftovers:
    """The processes of one run. ``registry`` is a folder that keeps their numbers for whoever cleans up after a
    crash."""

    def __init__(self, home: Path, registry: Path | None = None) -> None:
        """``home`` is the sandbox's home folder, unique to the run, or a folder above the homes of several."""
        self.home = str(home)
        self.registry = registry
        self.roots: list[int] = []
        self.seen: dict[int, psutil.Process] = {}

    def started(self, pid: int) -> None:
        """Note an agent that was booted."""
        self.roots.append(pid)
        if self.registry is not None:
            (self.registry / str(pid)).write_text(self.home, encoding="utf-8")

    def look(self) -> None:
        """Note the agent's children as they are now; later they may have lost their parent."""
        for pid in self.roots:
            with contextlib.suppress(psutil.Error):
                for child in psutil.Process(pid).children(recursive=True):
                    self.seen[child.pid] = child

    def alive(self) -> list[psutil.Process]:
        """Every process of the run that still runs, but for the agents themselves."""
        found = {child.pid: child for child in self.seen.values() if child.is_running()}
        for process in psutil.process_iter():
            if process.pid != os.getpid() and process.pid not in self.roots and self.belongs(process):
                found[process.pid] = process
        return [process for process in found.values() if runs(process)]

    def belongs(self, process: psutil.Process) -> bool:
        """Whether a process has the run's home (or one below it) in its environment, or sits in an agent's group."""
        try:
            if sys.platform != "win32" and os.getpgid(process.pid) in self.roots:
                return True
            return self.is_home(process.environ())
        except (psutil.Error, OSError):
            return False

    def is_home(self, environment: Mapping[str, str]) -> bool:
        """Whether an environment's home is the run's, or lies below it."""
        homes = [environment.get(name, "") for name in ("HOME", "USERPROFILE")]
        return any(home == self.home or home.startswith(self.home + os.sep) for home in homes)

    def left_behind(self) -> list[str]:
        """End whatever outlived the agent, and say what it was: ``"pid 123: sleep 1000"``."""
        names = [describe(process) for process in outliving(self.alive(), GRACE_SECONDS)]
        if names:
            self.kill_all()
        return names

    def kill_all(self) -> None:
        """Kill the agents and every process of the run; look again, since one may have started another meanwhile."""
        for pid in self.roots:
            kill_group(pid)
        for _ in range(KILL_ROUNDS):
            doomed = self.alive()
            if not doomed:
                return
            for process in doomed:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            outliving(doomed, GRACE_SECONDS)


def outliving(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those that still run after so long; returns as soon as none does.

    They are nobody's children here, so that no system tells of their end, and a defunct one may never be reaped.
    """
    end = time.monotonic() + seconds
    while (running := [process for process in processes if runs(process)]) and time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
    return running


def kill_group(pid: int) -> None:
    """Kill a process group; one that is gone is fine."""
    if sys.platform != "win32":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def runs(process: psutil.Process) -> bool:
    """Whether a process is alive and not defunct."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def describe(process: psutil.Process) -> str:
    """A process in words; its command line may be gone already."""
    try:
        return f"pid {process.pid}: {' '.join(process.cmdline()) or process.name()}"
    except psutil.Error:
        return f"pid {process.pid}"
