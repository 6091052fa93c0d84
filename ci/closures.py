"""The pinned closures: what each session installs, one small file each, so that a change of a lock can be read.

`ci/closures/<session>.toml` lists every package that a dependency group brings in on any platform; an agent with a lock
of its own has `ci/closures/<suite>.toml`. `nox -s lock` writes them, `nox -s purity` compares them.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ci.lockfile import Lock, Package, closure, sessions
from ci.projects import ROOT

# {"workspace": [names of members], "packages": {name: version, or versions where markers keep several apart}}
Closure = Mapping[str, Any]


def closures_folder(root: Path = ROOT) -> Path:
    """Where the pinned closures are."""
    return root / "ci" / "closures"


def closures_of(lock: Lock, suite: str = "") -> dict[str, Closure]:
    """File stem to closure; `suite` names the closure of a project that has no dependency groups."""
    return {name or suite: _table(closure(lock, needs)) for name, needs in sessions(lock).items()}


def _table(packages: Iterable[Package]) -> Closure:
    versions: dict[str, list[str]] = {}
    members: list[str] = []
    for package in packages:
        if package.is_local:
            members.append(package.name)
        else:
            versions.setdefault(package.name, []).append(package.version)
    return {
        "workspace": members,
        "packages": {name: found[0] if len(found) == 1 else found for name, found in versions.items()},
    }
