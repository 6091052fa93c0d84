"""What a `uv.lock` says: packages, their artefacts, and which of them an environment needs.

Pure: text in, frozen values out. Knows no index, no folder and no interpreter; a marker environment and the wheel tags
come in as arguments. The format is uv's lock version 1.
"""

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from packaging.markers import Marker
from packaging.tags import Tag
from packaging.utils import parse_wheel_filename

# A marker environment, as packaging.markers.default_environment() gives it.
Environment = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Artefact:
    """One file that a package can be installed from; `name` is what the lock calls it (a path or a URL)."""

    name: str
    hash: str
    is_wheel: bool
    is_url: bool


@dataclass(frozen=True, slots=True)
class Need:
    """An edge: some package, perhaps one version of it, with extras, where `marker` holds."""

    name: str
    version: str | None
    extras: tuple[str, ...]
    marker: str


@dataclass(frozen=True, slots=True)
class Package:
    """A locked package; `source` is the key of uv's source table (`registry`, `editable`, `git`...) and its value."""

    name: str
    version: str
    source: tuple[str, str]
    artefacts: tuple[Artefact, ...]
    needs: tuple[Need, ...]
    extras: Mapping[str, tuple[Need, ...]]
    groups: Mapping[str, tuple[Need, ...]]

    @property
    def is_local(self) -> bool:
        """Whether it is part of the workspace rather than of the wheelhouse."""
        return self.source[0] in ("virtual", "editable")


@dataclass(frozen=True, slots=True)
class Lock:
    """A whole lock; several packages may share a name where markers keep their versions apart."""

    packages: tuple[Package, ...]

    @property
    def root(self) -> Package:
        """The project that the lock belongs to."""
        return next(package for package in self.packages if package.source[1] == ".")


def parse_lock(text: str) -> Lock:
    """The lock in `text`; raises ValueError for what is no version 1 uv lock."""
    table = tomllib.loads(text)
    if table.get("version") != 1:
        raise ValueError(f"uv.lock version {table.get('version')!r}: this reads version 1")
    return Lock(tuple(_package(row) for row in table.get("package", ())))


def sessions(lock: Lock) -> dict[str, tuple[Need, ...]]:
    """What starts each closure: a dependency group; for a project without groups its dependencies, named ``""``."""
    return dict(lock.root.groups) or {"": lock.root.needs}


def closure(lock: Lock, starts: Iterable[Need], environment: Environment | None = None) -> tuple[Package, ...]:
    """All packages reached from `starts` in `environment`, or in any environment when that is None; sorted."""
    by_name: dict[str, list[Package]] = defaultdict(list)
    for package in lock.packages:
        by_name[package.name].append(package)
    found: dict[tuple[str, str], Package] = {}
    seen: set[Need] = set()
    todo = list(starts)
    while todo:
        need = todo.pop()
        if need in seen or not _holds(need.marker, environment):
            continue
        seen.add(need)
        for package in by_name[need.name]:
            if need.version in (None, package.version):
                found[package.name, package.version] = package
                todo += package.needs
                todo += [inner for extra in need.extras for inner in package.extras.get(extra, ())]
    return tuple(found[key] for key in sorted(found))


def best_wheel(package: Package, tags: Sequence[Tag]) -> Artefact | None:
    """The wheel an installer takes for an interpreter with `tags` (best first), or None where none fits."""
    ranks = _ranks(tuple(tags))
    fitting = []
    for wheel in package.artefacts:
        if wheel.is_wheel:
            _, _, build, wheel_tags = parse_wheel_filename(wheel.name)
            rank = min((ranks[tag] for tag in wheel_tags if tag in ranks), default=None)
            if rank is not None:
                fitting.append((-rank, build, wheel))
    return max(fitting, key=lambda row: row[:2])[2] if fitting else None


@cache
def _ranks(tags: tuple[Tag, ...]) -> dict[Tag, int]:
    return {tag: rank for rank, tag in enumerate(tags)}


def _holds(marker: str, environment: Environment | None) -> bool:
    return not marker or environment is None or _marker(marker).evaluate(dict(environment))


@cache
def _marker(text: str) -> Marker:
    return Marker(text)


def _package(row: Mapping[str, Any]) -> Package:
    return Package(
        name=row["name"],
        version=row.get("version", ""),
        source=next(iter(row["source"].items())),
        artefacts=tuple(_artefacts(row)),
        needs=_needs(row.get("dependencies", ())),
        extras={name: _needs(needs) for name, needs in row.get("optional-dependencies", {}).items()},
        groups={name: _needs(needs) for name, needs in row.get("dev-dependencies", {}).items()},
    )


def _artefacts(row: Mapping[str, Any]) -> Iterator[Artefact]:
    for wheel in row.get("wheels", ()):
        yield _artefact(wheel, is_wheel=True)
    if "sdist" in row:
        yield _artefact(row["sdist"], is_wheel=False)


def _artefact(row: Mapping[str, Any], *, is_wheel: bool) -> Artefact:
    name = row.get("path") or row.get("url") or row.get("filename") or ""
    return Artefact(name, row.get("hash", ""), is_wheel, is_url="url" in row)


def _needs(rows: Iterable[Mapping[str, Any]]) -> tuple[Need, ...]:
    return tuple(
        Need(row["name"], row.get("version"), tuple(row.get("extra", ())), row.get("marker", "")) for row in rows
    )
