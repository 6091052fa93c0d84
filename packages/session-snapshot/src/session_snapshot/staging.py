"""Replace a scenario's machine-written files all together: staged, then swapped one by one under a journal.

A kill before the journal is complete leaves the old files; a kill after it is rolled forward by the next command. The
journal names the folder relative to where ``snapshots/`` lies, so that a checkout may move in between. Two processes
never move files at the same time: whoever swaps or recovers holds a lock, which the system takes from one that is
killed.
"""

import contextlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from session_snapshot.disk import writing
from session_snapshot.errors import Refused
from session_snapshot.interrupts import undisturbed
from session_snapshot.sandbox import remove_tree
from session_snapshot.suites import Place

STAGING = ".snapshot-staging"
JOURNAL = "journal.json"
LOCK = "swap.lock"

PATIENCE_SECONDS = 60.0
"""How long another command's swap is waited for, which takes some milliseconds: it may have been stopped."""

SPARE_BYTES = 1 << 20
"""How much room there must be before a model is asked: more than the recording of a long session takes."""

AGAIN = "give the command again"


def staging_root(snapshots: Path) -> Path:
    """Where staged files of a snapshots folder lie: beside it, on the same file system, git-ignored."""
    return snapshots.resolve().parent / STAGING


# ── one at a time ───────────────────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def scenario_lock(snapshots: Path, place: Place) -> Iterator[None]:
    """One recording at a time per scenario.

    Raises:
        Refused: another process records it.
    """
    name = f"{place.suite}--{place.name}.lock"
    with held(staging_root(snapshots) / name, 0, f"{place.full_name} is being recorded already"):
        yield


@contextlib.contextmanager
def held(path: Path, seconds: float, taken: str) -> Iterator[None]:
    """Hold a lock; wait so long for whoever else holds it.

    Raises:
        Refused: somebody still holds it (``taken`` says so), or its file cannot be written.
    """
    import filelock  # only where something is written

    with writing(path, AGAIN):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(path)
        try:
            lock.acquire(timeout=seconds)
        except filelock.Timeout:
            raise Refused(taken, "wait for the other command, or end it") from None
    try:
        yield
    finally:
        lock.release()


def swap_lock(root: Path) -> contextlib.AbstractContextManager[None]:
    """Hold what whoever moves files holds."""
    return held(root / LOCK, PATIENCE_SECONDS, f"another command is writing scenarios (it holds {root / LOCK})")


# ── the swap ────────────────────────────────────────────────────────────────────────────────────────────────────────


def swap(snapshots: Path, folder: Path, files: Mapping[str, bytes], remove: list[str]) -> None:
    """Put ``files`` (name -> bytes) into ``folder`` and remove the names in ``remove``, whole or not at all.

    Raises:
        Refused: the folder or the staging folder cannot be written, or the disk is full; nothing was changed then.
    """
    refuse_read_only(folder)
    root = staging_root(snapshots)
    staged = root / f"{folder.parent.name}--{folder.name}"
    with swap_lock(root):
        recover_all(root, snapshots)
        with writing(staged, AGAIN):
            remove_tree(staged)
            staged.mkdir(parents=True)
            for name, content in files.items():
                write_through(staged / name, content)
            where = folder.resolve().relative_to(root.parent).as_posix()
            journal = {"folder": where, "files": sorted(files), "remove": sorted(remove)}
            write_through(staged / "journal.part", json.dumps(journal).encode())
        with undisturbed():  # Ctrl-C waits these few milliseconds; a kill is what the journal is for
            (staged / "journal.part").replace(staged / JOURNAL)
            finish(staged / JOURNAL, snapshots)


def recover(snapshots: Path) -> list[str]:
    """Finish every swap that a kill interrupted; the folders that were finished.

    Raises:
        Refused: one cannot be finished.
    """
    root = staging_root(snapshots)
    if not journals(root):
        return []  # the rule: nothing is written, not even a lock
    with swap_lock(root):
        return recover_all(root, snapshots)


def recover_all(root: Path, snapshots: Path) -> list[str]:
    """Finish what lies under ``root``, whose lock is held."""
    return [finish(journal, snapshots) for journal in journals(root)]


def journals(root: Path) -> list[Path]:
    """The swaps that were begun and not finished."""
    return sorted(root.glob(f"*/{JOURNAL}"))


def finish(journal: Path, snapshots: Path) -> str:
    """Finish a swap whose journal is complete; the folder it was about.

    Raises:
        Refused: it cannot be; the journal stays, and the next command tries again.
    """
    try:
        return roll_forward(journal.parent)
    except (OSError, ValueError, KeyError) as error:
        raise Refused(
            f"an interrupted command left {journal}, and what it began cannot be finished: {error}",
            f"make {snapshots} writable, or remove {journal.parent} and restore the scenario from version control",
        ) from error


def refuse_read_only(folder: Path) -> None:
    """Refuse to begin what could not be finished."""
    if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
        raise Refused(f"{folder} cannot be written", "make the folder writable; nothing was changed")


def refuse_unwritable(snapshots: Path, folder: Path, then: str) -> None:
    """Refuse before a model is asked what could not be written afterwards; ``then`` is the command to give again.

    Raises:
        Refused: the scenario's folder or the staging folder is closed, or there is no room.
    """
    refuse_read_only(folder)
    probe = staging_root(snapshots) / f"{folder.parent.name}--{folder.name}.probe"
    with writing(probe, then, "no model was asked, and nothing was changed"):
        probe.parent.mkdir(parents=True, exist_ok=True)
        try:
            write_through(probe, bytes(SPARE_BYTES))
        finally:
            with contextlib.suppress(OSError):
                probe.unlink(missing_ok=True)


def roll_forward(staged: Path) -> str:
    """Do what a complete journal says, as often as it takes; the folder it was about."""
    journal = json.loads((staged / JOURNAL).read_text(encoding="utf-8"))
    folder = staged.parent.parent / journal["folder"]
    folder.mkdir(parents=True, exist_ok=True)
    for name in journal["files"]:
        with contextlib.suppress(FileNotFoundError):  # moved already, by whoever was killed
            move(staged / name, folder / name)
    for name in journal["remove"]:
        remove_file(folder / name)
    remove_tree(staged)
    return str(folder)


def move(source: Path, target: Path) -> None:
    """Put a file in another's place; Windows does not let one that is marked read-only be replaced."""
    try:
        source.replace(target)
    except PermissionError:
        lift_mark(target)
        source.replace(target)


def remove_file(path: Path) -> None:
    """Remove a file that may be gone already, or be marked read-only."""
    try:
        path.unlink(missing_ok=True)
    except PermissionError:
        lift_mark(path)
        path.unlink(missing_ok=True)


def lift_mark(path: Path) -> None:
    """Lift a file's read-only mark, if that is what it has; of a folder nothing is lifted."""
    if path.is_file():
        path.chmod(path.stat().st_mode | stat.S_IWUSR)


def write_through(path: Path, content: bytes) -> None:
    """Write a file and have the system put it on disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
