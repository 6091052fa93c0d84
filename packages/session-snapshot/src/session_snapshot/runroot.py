"""The folder all runs of one command live in, and the last broom: what a crash or Ctrl-C left behind ends with it."""

import contextlib
import os
import platform
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from session_snapshot.interrupts import cancelled_by_signals, undisturbed
from session_snapshot.leftovers import Leftovers
from session_snapshot.sandbox import remove_tree

PREFIX = "snaprun-"
PIDS = "pids"
OWNER = "owner"


def make_run_root() -> Path:
    """Make the folder; its name has a fixed length. What commands that were killed left behind goes first."""
    base = Path(tempfile.gettempdir())
    for stale in base.glob(f"{PREFIX}*"):
        if is_stale(stale):
            sweep(stale)
    with undisturbed():
        root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
        (root / PIDS).mkdir()
        (root / OWNER).write_text(this_command(), encoding="utf-8")
    return root


def this_command() -> str:
    """What tells this process from every other, of any machine: its number, its birth, its machine."""
    return f"{os.getpid()} {psutil.Process().create_time()} {machine()}"


def is_stale(root: Path) -> bool:
    """Whether the command that made a folder is no more; one that cannot be asked about is left alone."""
    try:
        pid, born, where = (root / OWNER).read_text(encoding="utf-8").split(" ", 2)
        return where == machine() and psutil.Process(int(pid)).create_time() != float(born)
    except psutil.NoSuchProcess:
        return True
    except (OSError, ValueError, psutil.Error):
        return False


def machine() -> str:
    """What process numbers are counted in: containers may share a temporary folder, and have numbers of their own."""
    namespace = Path("/proc/self/ns/pid")
    return f"{platform.node()} {namespace.readlink() if namespace.is_symlink() else ''}"


def sweep(root: Path) -> None:
    """Kill every agent of the folder that still runs, with all it started, and remove the folder.

    A Ctrl-C meanwhile has to wait: it would leave what is to be ended.
    """
    with undisturbed():
        leftovers = Leftovers(root)
        for pid in agents(root / PIDS):
            if not psutil.pid_exists(pid) or still_ours(pid, str(root)):
                leftovers.started(pid)
        leftovers.look()
        leftovers.kill_all()
        with contextlib.suppress(OSError):
            remove_tree(root)


def sweep_own() -> None:
    """Sweep the folders this process has made and not swept, and end its children first: they may start agents yet."""
    own = [root for root in Path(tempfile.gettempdir()).glob(f"{PREFIX}*") if is_own(root)]
    if own:
        end_children()
    for root in own:
        sweep(root)


def end_children() -> None:
    """End whatever this process started, and what that started; stopped first, it starts nothing more meanwhile."""
    this = psutil.Process()
    for child in this.children():
        with contextlib.suppress(psutil.Error):
            child.suspend()
    for child in this.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            child.kill()


def is_own(root: Path) -> bool:
    """Whether this process made a folder."""
    try:
        return (root / OWNER).read_text(encoding="utf-8") == this_command()
    except (OSError, ValueError):
        return False


def agents(registry: Path) -> list[int]:
    """The process numbers of every agent that was booted."""
    return sorted(int(entry.name) for entry in registry.glob("*")) if registry.is_dir() else []


def still_ours(pid: int, home: str) -> bool:
    """Whether a process number still is an agent whose home is (or lies below) ``home``, and no newcomer that got it.

    Of an agent that is gone the process group may live on: the system gives no number again that a group still has.
    """
    try:
        return Leftovers(Path(home)).is_home(psutil.Process(pid).environ())
    except psutil.Error:
        return False


@contextlib.contextmanager
def run_root() -> Iterator[Path]:
    """A run root for the length of a ``with`` block."""
    root = make_run_root()
    with cancelled_by_signals():
        try:
            yield root
        finally:
            sweep(root)
