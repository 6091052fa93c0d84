"""A new folder of files, put in its place whole or not at all: staged beside ``snapshots/``, then renamed."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from session_snapshot.disk import writing
from session_snapshot.errors import Refused
from session_snapshot.interrupts import undisturbed
from session_snapshot.sandbox import remove_tree
from session_snapshot.staging import staging_root

AGAIN = "give the command again"
PREFIX = "init-"


@contextlib.contextmanager
def staging(snapshots: Path) -> Iterator[Path]:
    """A folder to stage files in, which is gone afterwards."""
    root = staging_root(snapshots)
    with writing(root, AGAIN):
        root.mkdir(parents=True, exist_ok=True)
        for stale in filter(is_stale, root.glob(f"{PREFIX}*")):
            remove_tree(stale)
        staged = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=root))
    try:
        yield staged
    finally:
        remove_tree(staged)
        with contextlib.suppress(OSError):  # somebody else stages something
            root.rmdir()


def is_stale(staged: Path) -> bool:
    """Whether a staged folder is left of a command that was killed."""
    pid = staged.name.removeprefix(PREFIX).partition("-")[0]
    return pid.isdigit() and not psutil.pid_exists(int(pid))


@contextlib.contextmanager
def there(folder: Path) -> Iterator[None]:
    """A folder that is there (files are found relative to it), and is gone afterwards if nothing came into it."""
    with writing(folder, AGAIN):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for empty in (folder, folder.parent):
            with contextlib.suppress(OSError):
                empty.rmdir()


def stage(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts by relative path into a folder.

    Raises:
        Refused: they cannot be.
    """
    with writing(folder, AGAIN):
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8", newline="")


def put(staged: Path, target: Path) -> None:
    """Put a staged folder in its place.

    A folder that is there (an agent may lie in its suite) gets what it lacks, files last: ``agent.toml`` is what makes
    a suite.

    Raises:
        Refused: it cannot be written, or what is to be put there is there already.
    """
    with undisturbed(), writing(target, AGAIN):
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):  # not there, or not empty
            target.rmdir()
        if not target.exists():
            staged.rename(target)
            return
        for entry in sorted(staged.iterdir(), key=Path.is_file):
            if (target / entry.name).exists():
                raise Refused(f"{target / entry.name} is there already", "choose another name")
            entry.rename(target / entry.name)
