"""What a lock may hold: `nox -s purity` fails on anything that a hash, a folder and a pinned list do not vouch for.

Pure but for `main` and `read_subject`. Each rule takes a Subject and yields Findings; RULES at the foot lists them all.
What a rule forbids can be allowed by name, with the reason in a comment, in the project's pyproject.toml:

    [tool.lock-purity]
    prereleases = ["NAME"]     # may be locked at a pre-release
    families = ["PREFIX"]      # PREFIX and PREFIX-* must all have one version
"""

import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from packaging.version import Version

from ci.closures import Closure, closures_folder, closures_of
from ci.lockfile import Environment, Lock, Package, closure, parse_lock, sessions
from ci.projects import ROOT, projects, registry

RELOCK = "nox -s lock"
SHA256 = re.compile(r"sha256:[0-9a-f]{64}")
FILE_NAME = re.compile(r"[A-Za-z0-9][\w.+!-]*")
PIN = re.compile(r"^([a-z0-9-]+)==([^\s;\\]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Subject:
    """One lock and what it is held against."""

    path: str
    suite: str
    text: str
    lock: Lock
    registry: str
    prereleases: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    pinned: Mapping[str, Closure] | None = None
    tools: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of a lock and how it is mended."""

    where: str
    what: str
    mend: str = RELOCK

    def __str__(self) -> str:
        return f"{self.where}: {self.what}\n  mend: {self.mend}"


Rule = Callable[[Subject], Iterable[Finding]]


def main() -> int:
    """Check every lock of the checkout; exit 1 with the findings if there are any."""
    subjects = [read_subject(project, ROOT) for project in projects()]
    findings = [finding for subject in subjects for finding in check(subject)]
    findings += stray_closures({path.stem for path in closures_folder().glob("*.toml")}, subjects)
    for finding in findings:
        print(finding)
    packages = sum(len(subject.lock.packages) for subject in subjects)
    print(f"purity: {len(subjects)} locks, {packages} packages, {len(findings)} findings")
    return 1 if findings else 0


def read_subject(project: Path, root: Path) -> Subject:
    """The lock of `project` with its allowances and the closures pinned for it."""
    text = (project / "uv.lock").read_text(encoding="utf-8")
    allowed = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["tool"].get("lock-purity", {})
    lock = parse_lock(text)
    files = {name: closures_folder(root) / f"{name}.toml" for name in closures_of(lock, project.name)}
    pinned = {name: tomllib.loads(path.read_text(encoding="utf-8")) for name, path in files.items() if path.exists()}
    return Subject(
        path=(project / "uv.lock").relative_to(root).as_posix(),
        suite=project.name,
        text=text,
        lock=lock,
        registry=registry(project, root),
        prereleases=tuple(allowed.get("prereleases", ())),
        families=tuple(allowed.get("families", ())),
        pinned=pinned,
        tools=(root / "ci" / "tools.txt").read_text(encoding="utf-8") if project == root else None,
    )


def check(subject: Subject) -> list[Finding]:
    """All findings of all rules, in the order of RULES."""
    return [finding for rule in RULES for finding in rule(subject)]


def stray_closures(names: Iterable[str], subjects: Iterable[Subject]) -> Iterator[Finding]:
    """A pinned closure that belongs to no session."""
    known = {name for subject in subjects for name in closures_of(subject.lock, subject.suite)}
    for name in sorted(set(names) - known):
        yield Finding(f"ci/closures/{name}.toml", "no session and no suite of that name")


def names_no_host(subject: Subject) -> Iterator[Finding]:
    """Neither an index nor any other host: the lock must serve every mirror."""
    for number, line in enumerate(subject.text.splitlines(), 1):
        if "://" in line:
            yield Finding(f"{subject.path}:{number}", f"names a host: {line.strip()}")


def comes_from_the_wheelhouse(subject: Subject) -> Iterator[Finding]:
    """A package is in the wheelhouse or in the workspace; no VCS, no URL, no other folder."""
    for package in subject.lock.packages:
        kind, value = package.source
        if package.is_local:
            fine = not value.startswith(("/", "..")) and ":" not in value
        else:
            fine = package.source == ("registry", subject.registry)
        if not fine:
            mend = "depend on a released version of it, then nox -s lock"
            yield Finding(subject.path, f"{_named(package)} comes from {kind} {value!r}", mend)


def has_hashes(subject: Subject) -> Iterator[Finding]:
    """Every artefact is a file name with its sha256, and a package has at least one wheel."""
    for package in subject.lock.packages:
        for artefact in package.artefacts:
            if artefact.is_url or not FILE_NAME.fullmatch(artefact.name):
                yield Finding(subject.path, f"{_named(package)}: an artefact is no file name: {artefact.name!r}")
            if not SHA256.fullmatch(artefact.hash):
                yield Finding(subject.path, f"{_named(package)}: {artefact.name!r} has no sha256")
        if not package.is_local and not any(artefact.is_wheel for artefact in package.artefacts):
            yield Finding(subject.path, f"{_named(package)} has no wheel: it cannot be installed offline", "replace it")


def is_in_a_closure(subject: Subject) -> Iterator[Finding]:
    """A package that no session installs has no business in the lock."""
    starts = [need for needs in sessions(subject.lock).values() for need in needs]
    reached = {_named(package) for package in (subject.lock.root, *closure(subject.lock, starts))}
    for package in subject.lock.packages:
        if _named(package) not in reached:
            mend = f"add it to the dependency group of its session in pyproject.toml, then {RELOCK}"
            yield Finding(subject.path, f"{_named(package)} is in no session's closure", mend)


def has_one_version_anywhere(subject: Subject) -> Iterator[Finding]:
    """Two versions of a package may stand only where no environment installs both."""
    names = [package.name for package in subject.lock.packages]
    if len(set(names)) == len(names):
        return
    overlapping: dict[str, set[str]] = defaultdict(set)
    starts = [need for needs in sessions(subject.lock).values() for need in needs]
    for environment in ENVIRONMENTS:
        versions: dict[str, set[str]] = defaultdict(set)
        for package in closure(subject.lock, starts, environment):
            versions[package.name].add(package.version)
        for name, found in versions.items():
            if len(found) > 1:
                overlapping[name] |= found
    for name, found in sorted(overlapping.items()):
        mend = f"agree on one version in pyproject.toml, then {RELOCK}"
        yield Finding(subject.path, f"{name}: versions {', '.join(sorted(found))} meet in one environment", mend)


def is_released(subject: Subject) -> Iterator[Finding]:
    """No pre-release but the ones allowed by name, and no allowance that nothing needs."""
    found = {package.name: package for package in subject.lock.packages if _is_prerelease(package)}
    for name in sorted(found.keys() - set(subject.prereleases)):
        mend = "pin a release, or allow it by name: [tool.lock-purity] prereleases"
        yield Finding(subject.path, f"{_named(found[name])} is a pre-release", mend)
    for name in sorted(set(subject.prereleases) - found.keys()):
        yield Finding(subject.path, f"prereleases allows {name}, which is locked at none", "take it out")


def keeps_families_together(subject: Subject) -> Iterator[Finding]:
    """A declared family (one prefix) has one version: mixing release lines is how such closures break."""
    for family in subject.families:
        members = [p for p in subject.lock.packages if p.name == family or p.name.startswith(f"{family}-")]
        if len({package.version for package in members}) > 1:
            what = f"family {family} is mixed: {', '.join(map(_named, members))}"
            yield Finding(subject.path, what, f"pin them to one version in pyproject.toml, then {RELOCK}")
        if not members:
            yield Finding(subject.path, f"families names {family}, of which nothing is locked", "take it out")


def equals_the_pinned_closures(subject: Subject) -> Iterator[Finding]:
    """`ci/closures/` says what each session installs: a change of it must be seen in review."""
    if subject.pinned is None:
        return
    for name, actual in closures_of(subject.lock, subject.suite).items():
        pinned = subject.pinned.get(name)
        if pinned != actual:
            changes = "it is not pinned" if pinned is None else ", ".join(_changes(pinned, actual))
            yield Finding(f"ci/closures/{name}.toml", f"differs from {subject.path}: {changes}")


def pins_the_same_tools(subject: Subject) -> Iterator[Finding]:
    """`ci/tools.txt` is the lock's group `tools`, in the form pip reads."""
    if subject.tools is None:
        return
    locked = {(p.name, p.version) for p in closure(subject.lock, subject.lock.root.groups.get("tools", ()))}
    pinned = set(PIN.findall(subject.tools))
    for name, version in sorted(locked ^ pinned):
        side = "uv.lock" if (name, version) in locked else "ci/tools.txt"
        yield Finding("ci/tools.txt", f"{name} {version} is only in {side}")


def _named(package: Package) -> str:
    return f"{package.name} {package.version}"


def _is_prerelease(package: Package) -> bool:
    return bool(package.version) and Version(package.version).is_prerelease


def _changes(pinned: Closure, actual: Closure) -> Iterator[str]:
    before = dict(pinned.get("packages", {})) | dict.fromkeys(pinned.get("workspace", ()), "workspace")
    after = dict(actual["packages"]) | dict.fromkeys(actual["workspace"], "workspace")
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield f"{name} {before.get(name, 'absent')} -> {after.get(name, 'absent')}"


def _environment(system: tuple[str, str, str], python: str, machine: str, implementation: str) -> Environment:
    os_name, sys_platform, platform_system = system
    return {
        "os_name": os_name,
        "sys_platform": sys_platform,
        "platform_system": platform_system,
        "platform_machine": machine,
        "platform_release": "",
        "platform_version": "",
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_name": implementation.lower(),
        "implementation_version": f"{python}.0",
        "platform_python_implementation": implementation,
        "extra": "",
    }


# A grid of environments, enough to tell markers that exclude each other from markers that meet.
SYSTEMS = (("posix", "linux", "Linux"), ("posix", "darwin", "Darwin"), ("nt", "win32", "Windows"))
PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
MACHINES = ("x86_64", "aarch64", "arm64", "AMD64")
IMPLEMENTATIONS = ("CPython", "PyPy")
ENVIRONMENTS = tuple(_environment(*row) for row in product(SYSTEMS, PYTHONS, MACHINES, IMPLEMENTATIONS))

RULES: tuple[Rule, ...] = (
    names_no_host,
    comes_from_the_wheelhouse,
    has_hashes,
    is_in_a_closure,
    has_one_version_anywhere,
    is_released,
    keeps_families_together,
    equals_the_pinned_closures,
    pins_the_same_tools,
)


if __name__ == "__main__":
    sys.exit(main())
