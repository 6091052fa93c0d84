"""Shell: the files of the suites and what is around them, read from this machine."""

import os
import socket
from pathlib import Path

from fixture_guard.surroundings import Surroundings

UNCOMMITTED = frozenset(
    (".snapshot-actual", ".snapshot-staging", ".git", ".venv", ".pytest_cache", "__pycache__", "node_modules")
)
SEEDS = frozenset(("workspace", "workspace.expected"))


def read_files(root: Path) -> dict[str, bytes]:
    """Return every file below ``root`` by its POSIX path relative to it, but for what is never committed.

    A workspace's seed is taken whole: there a folder named ``node_modules`` is part of the scenario.
    """
    files: dict[str, bytes] = {}
    for folder, folders, names in os.walk(root):
        here = Path(folder).relative_to(root)
        folders[:] = sorted(name for name in folders if name not in UNCOMMITTED or SEEDS & set(here.parts))
        for name in sorted(names):
            files[(here / name).as_posix()] = (root / here / name).read_bytes()
    return files


def surroundings() -> Surroundings:
    """Return this machine's environment, home and host name: none of their values belongs into a fixture."""
    return Surroundings(environment=dict(os.environ), home=str(Path.home()), hostname=socket.gethostname())


def suites_folder(path: Path) -> Path:
    """Return the folder whose children are suites, for a path that is it, a suite, or something inside a suite.

    A check needs whole suites (a header class is pinned by another scenario), so the guard always reads from here.
    """
    for folder in (path, *path.parents):
        if (folder / "agent.toml").is_file():
            return folder.parent
    return path
