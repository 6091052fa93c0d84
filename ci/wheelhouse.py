"""Fill `wheelhouse/` with what a lock needs on this interpreter; everything after that is offline.

    python -m ci.wheelhouse [PROJECT ...]      (default: the workspace itself)

pip fetches, from whatever index it is configured for, exactly the wheels that the lock names, by hash and without
dependencies. Files that lie there already count wherever they came from: a folder copied to an air-gapped machine is
a filled one. A stamp per lock digest and platform makes the next calls cost nothing.
"""

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from filelock import FileLock
from packaging.markers import default_environment
from packaging.tags import Tag, sys_tags

from ci.lockfile import Environment, Lock, Package, best_wheel, closure, parse_lock, sessions
from ci.projects import ROOT, wheelhouse

# More than this is a sign that the index is down, not slow; pip's own default waits half a minute to say so.
RETRIES = 2


class WheelhouseError(Exception):
    """The wheelhouse cannot be filled; the message ends with what mends it."""


def main(args: Sequence[str]) -> int:
    """Fill the wheelhouse for the locks of the projects named."""
    try:
        for name in args or ["."]:
            fill(ROOT / name, wheelhouse())
    except WheelhouseError as error:
        print(f"wheelhouse: {error}", file=sys.stderr)
        return 1
    return 0


def fill(project: Path, folder: Path) -> None:
    """Put into `folder` every wheel that the lock of `project` needs here. Safe to call from several processes."""
    lock_text = (project / "uv.lock").read_text(encoding="utf-8")
    tags = list(sys_tags())
    stamp = folder / ".filled" / stamp_name(lock_text, tags)
    if is_filled(stamp, folder):
        return
    stamp.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        if is_filled(stamp, folder):
            return
        wanted = wanted_wheels(parse_lock(lock_text), tags, environment_here())
        missing = {name: pin for name, pin in wanted.items() if not has_hash(folder / name, pin)}
        if missing:
            print(f"wheelhouse: fetching {len(missing)} of {len(wanted)} wheels for {tags[0]}, once", flush=True)
            download(missing, folder)
        stamp.write_text("\n".join(wanted), encoding="utf-8")


def wanted_wheels(lock: Lock, tags: Sequence[Tag], environment: Environment) -> dict[str, str]:
    """File name to `NAME==VERSION --hash=...` of every wheel that any session of the lock installs here."""
    starts = [need for needs in sessions(lock).values() for need in needs]
    packages = [package for package in closure(lock, starts, environment) if not package.is_local]
    return dict(_wanted(package, tags) for package in packages)


def _wanted(package: Package, tags: Sequence[Tag]) -> tuple[str, str]:
    wheel = best_wheel(package, tags)
    if wheel is None:
        raise WheelhouseError(
            f"{package.name} {package.version} has no wheel for {tags[0]}\n"
            "mend: run with a Python it has wheels for (make PYTHON=...), or lock another version: nox -s lock"
        )
    return wheel.name, f"{package.name}=={package.version} --hash={wheel.hash}"


def stamp_name(lock_text: str, tags: Sequence[Tag]) -> str:
    """One name per lock and platform: readable by its best tag, told apart by all of them (C library, OS release)."""
    return f"{tags[0]}-{_digest(lock_text)}-{_digest(' '.join(map(str, tags)))}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_filled(stamp: Path, folder: Path) -> bool:
    """Whether the stamp is there and so is every file it lists."""
    return stamp.exists() and all((folder / name).exists() for name in stamp.read_text(encoding="utf-8").splitlines())


def has_hash(file: Path, pin: str) -> bool:
    """Whether `file` is what `pin` (`... --hash=sha256:HEX`) says."""
    return file.exists() and hashlib.sha256(file.read_bytes()).hexdigest() == pin.rpartition(":")[2]


def environment_here() -> Environment:
    """The marker environment of this interpreter."""
    return {name: str(value) for name, value in default_environment().items()}


def download(missing: Mapping[str, str], folder: Path) -> None:
    """Let pip fetch the pins into `folder`; how far it is goes to the terminal, and so do its complaints."""
    with tempfile.TemporaryDirectory() as scratch:
        requirements = Path(scratch) / "requirements.txt"
        requirements.write_text("\n".join(missing.values()) + "\n", encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--retries", str(RETRIES)]
        pip += ["--no-deps", "--require-hashes", "--only-binary=:all:", "--dest", str(folder), "-r", str(requirements)]
        status = call_counting(pip, len(missing))
    absent = [name for name, pin in missing.items() if not has_hash(folder / name, pin)]
    if status or absent:
        raise WheelhouseError(
            f"{len(absent)} wheels are missing and pip could not fetch them (exit {status}; its message is above):"
            f" {', '.join(sorted(absent)[:5])}{', ...' if len(absent) > 5 else ''}\n"
            "mend: connect to a package index, or point pip at one (PIP_INDEX_URL, PIP_FIND_LINKS), and run this "
            "again; or copy a filled wheelhouse/ here"
        )


def call_counting(pip: Sequence[str], total: int) -> int:
    """Run pip; a line at each quarter of what it saves instead of its own hundred lines. Its exit status."""
    marks = {total * quarter // 4: quarter * 25 for quarter in (1, 2, 3, 4)}
    saved = 0
    with subprocess.Popen(pip, stdout=subprocess.PIPE, encoding="utf-8", errors="replace") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("Saved "):
                saved += 1
                if saved in marks:
                    print(f"wheelhouse: {saved} of {total} ({marks[saved]} %)", flush=True)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
