"""Files beside the agent: waiting for one (woken by the system's own change notification), and writing one."""

from collections.abc import Callable
from pathlib import Path

from session_snapshot.errors import FixtureError
from session_snapshot.steps import SCRIPT

LOOK_AGAIN_MS = 500
"""A network file system may notify nobody: look again this often all the same."""


def inside(cwd: Path, path: str, where: str) -> Path:
    """The place of ``path`` under ``cwd``; ``where`` is the file that names it.

    Raises:
        FixtureError: it leads out of ``cwd``.
    """
    place = cwd / path
    if not place.resolve().is_relative_to(cwd.resolve()):
        raise FixtureError(f"{path!r} is not under the run's cwd", where, None, "name a path relative to it")
    return place


async def wait_for_file(cwd: Path, path: Path, contains: str) -> None:
    """Return once the file under ``cwd`` is there (and holds the text); the caller bounds the time."""
    await until_changed(cwd, lambda: holds(path, contains))


async def until_changed(folder: Path, true: Callable[[], bool]) -> None:
    """Return once ``true()`` holds; it is asked after every change below ``folder``. The caller bounds the time."""
    from watchfiles import awatch  # a waiting step only: the hot path does not pay for it

    async for _ in awatch(folder, rust_timeout=LOOK_AGAIN_MS, yield_on_timeout=True, debounce=50, step=10):
        if true():
            return


def holds(path: Path, contains: str) -> bool:
    """Whether the file exists and holds the text."""
    try:
        return contains.encode() in path.read_bytes()
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        return False


def write_file(path: Path, text: str) -> None:
    """Write a file and the folders above it.

    Raises:
        FixtureError: a folder stands in its place, or a file above it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise FixtureError(f"writeFile {path.name!r}: {error.strerror}", SCRIPT, None, "choose another path") from error


def remove_file(path: Path) -> None:
    """Remove a file.

    Raises:
        FixtureError: it is not there, or is no file.
    """
    try:
        path.unlink()
    except OSError as error:
        what = f"removeFile {path.name!r}: {error.strerror}"
        raise FixtureError(what, SCRIPT, None, "wait for it first (waitForFile)") from error
