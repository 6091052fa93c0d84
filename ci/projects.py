"""Where the locked projects are, and how uv is called: offline, with the interpreter that is there."""

import os
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# uv takes what the wheelhouse holds and nothing else: no network, no interpreter of its own.
UV_OFFLINE = {"UV_OFFLINE": "1", "UV_PYTHON_DOWNLOADS": "never"}

# What a machine may set to send uv elsewhere: an index of its own would make a valid lock look stale.
UV_ELSEWHERE = (
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_NO_INDEX",
    "UV_PROJECT",
    "UV_PROJECT_ENVIRONMENT",
    "UV_PYTHON",
)


def projects(root: Path = ROOT) -> tuple[Path, ...]:
    """The folders that hold a lock: the workspace root, then each suite whose agent has a closure of its own."""
    return (root, *sorted(path.parent for path in root.glob("snapshots/*/pyproject.toml")))


def wheelhouse(root: Path = ROOT) -> Path:
    """The one folder of artefacts, shared by all locks of the checkout."""
    return root / "wheelhouse"


def registry(project: Path, root: Path = ROOT) -> str:
    """How `project`'s files name the wheelhouse: a relative path with forward slashes."""
    depth = len(project.resolve().relative_to(root.resolve()).parts)
    return "../" * depth + "wheelhouse"


def offline(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """`environment` in which uv touches no network and reads no index but the wheelhouse."""
    return {name: value for name, value in environment.items() if name not in UV_ELSEWHERE} | UV_OFFLINE
