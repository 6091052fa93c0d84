"""Replace a scenario's machine-written files all together: staged, then swapped one by one under a journal.

A kill before the journal is complete leaves the old files; a kill after it is rolled forward by the next command. The
journal names the folder relative to where ``snapshots/`` lies, so that a checkout may move in between.
"""

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from session_snapshot.errors import Refused
from session_snapshot.interrupts import undisturbed
from session_snapshot.sandbox import remove_tree

STAGING = ".snapshot-staging"
JOURNAL = "journal.json"


def staging_root(snapshots: Path) -> Path:
    """Where staged files of a snapshots folder lie: beside it, on the same file system, git-ignored."""
    return snapshots.resolve().parent / STAGING


def swap(snapshots: Path, folder: Path, files: Mapping[str, bytes], remove: list[str]) -> None:
    """Put ``files`` (name -> bytes) into ``folder`` and remove the names in ``remove``, whole or not at all.

    Raises:
        Refused: the folder cannot be written; nothing was begun then.
    """
    refuse_read_only(folder)
    staged = staging_root(snapshots) / f"{folder.parent.name}--{folder.name}"
    remove_tree(staged)
    staged.mkdir(parents=True)
    for name, content in files.items():
        write_through(staged / name, content)
    where = folder.resolve().relative_to(staged.parent.parent).as_posix()
    journal = {"folder": where, "files": sorted(files), "remove": sorted(remove)}
    with undisturbed():  # Ctrl-C waits these few milliseconds; a kill is what the journal is for
        write_through(staged / "journal.part", json.dumps(journal).encode())
        (staged / "journal.part").replace(staged / JOURNAL)
        roll_forward(staged)


def recover(snapshots: Path) -> list[str]:
    """Finish every swap that a kill interrupted; the folders that were finished.

    Raises:
        Refused: one cannot be finished.
    """
    root = staging_root(snapshots)
    finished = []
    for journal in sorted(root.glob(f"*/{JOURNAL}")):
        try:
            finished.append(roll_forward(journal.parent))
        except (OSError, ValueError, KeyError) as error:
            raise Refused(
                f"an interrupted command left {journal}, and what it began cannot be finished: {error}",
                f"make {snapshots} writable, or remove {journal.parent} and restore the scenario from version control",
            ) from error
    return finished


def refuse_read_only(folder: Path) -> None:
    """Refuse to begin what could not be finished."""
    if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
        raise Refused(f"{folder} cannot be written", "make the folder writable; nothing was changed")


def roll_forward(staged: Path) -> str:
    """Do what a complete journal says, as often as it takes; the folder it was about."""
    journal = json.loads((staged / JOURNAL).read_text(encoding="utf-8"))
    folder = staged.parent.parent / journal["folder"]
    folder.mkdir(parents=True, exist_ok=True)
    for name in journal["files"]:
        with contextlib.suppress(FileNotFoundError):  # moved already, by whoever was killed
            (staged / name).replace(folder / name)
    for name in journal["remove"]:
        (folder / name).unlink(missing_ok=True)
    remove_tree(staged)
    return str(folder)


def write_through(path: Path, content: bytes) -> None:
    """Write a file and have the system put it on disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
