"""Files beside the agent: waiting for one (woken by the system's own change notification), and writing one."""

from pathlib import Path

from session_snapshot.steps import FilePattern

LOOK_AGAIN_MS = 500
"""A network file system may notify nobody: look again this often all the same."""


async def wait_for_file(cwd: Path, pattern: FilePattern) -> None:
    """Return once the file is there (and holds the text); the caller bounds the time."""
    path = cwd / pattern.path
    if holds(path, pattern.contains):
        return
    from watchfiles import awatch  # a waiting step only: the hot path does not pay for it

    async for _ in awatch(cwd, rust_timeout=LOOK_AGAIN_MS, yield_on_timeout=True, debounce=50, step=10):
        if holds(path, pattern.contains):
            return


def holds(path: Path, contains: str) -> bool:
    """Whether the file exists and holds the text."""
    try:
        return contains.encode() in path.read_bytes()
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        return False


def write_file(path: Path, text: str) -> None:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
