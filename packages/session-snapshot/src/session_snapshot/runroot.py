"""The folder all runs of one command live in, and the last broom: what a crash or Ctrl-C left behind ends with it."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from session_snapshot.leftovers import Leftovers
from session_snapshot.sandbox import remove_tree

PIDS = "pids"


def make_run_root() -> Path:
    """Make the folder; its name has a fixed length."""
    root = Path(tempfile.mkdtemp(prefix="snaprun-"))
    (root / PIDS).mkdir()
    return root


def sweep(root: Path) -> None:
    """Kill every agent of the folder that still runs, with all it started, and remove the folder."""
    for entry in sorted((root / PIDS).glob("*")) if (root / PIDS).is_dir() else []:
        home = entry.read_text(encoding="utf-8")
        leftovers = Leftovers(Path(home))
        if still_ours(int(entry.name), home):
            leftovers.started(int(entry.name))
            leftovers.look()
        leftovers.kill_all()
    with contextlib.suppress(OSError):
        remove_tree(root)


def still_ours(pid: int, home: str) -> bool:
    """Whether a process number still is the agent it was, and not a newcomer that got the number."""
    try:
        environment = psutil.Process(pid).environ()
    except psutil.Error:
        return False
    return home in (environment.get("HOME"), environment.get("USERPROFILE"))


@contextlib.contextmanager
def run_root() -> Iterator[Path]:
    """A run root for the length of a ``with`` block."""
    root = make_run_root()
    try:
        yield root
    finally:
        sweep(root)
