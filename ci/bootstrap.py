"""Make `.tools/` (the pinned nox and uv) with nothing but Python, then run nox from it.

`python ci/bootstrap.py -s snapshot` does on any system what `make snapshot` does. Standard library only: this is the
one script that runs before anything is installed. The pins and their hashes are `ci/tools.txt`; pip fetches them from
whatever index it is configured for. `.tools/` is remade when the pins or the Python version change.
"""

import hashlib
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
PINS = ROOT / "ci" / "tools.txt"
OLDEST_PYTHON = (3, 11)


def main(args: Sequence[str]) -> int:
    """Make the tools if they are not there, then become nox with `args`."""
    if sys.version_info < OLDEST_PYTHON:
        return fail("this needs Python 3.11 or newer", "make PYTHON=python3.12 test  (any Python that is new enough)")
    stamp = TOOLS / "stamp"
    wanted = stamp_of(PINS.read_bytes(), sys.version_info[:2])
    if not is_current(stamp, wanted):
        print(f"bootstrap: making {TOOLS.name}/ from ci/{PINS.name}", flush=True)
        failure = make_tools(TOOLS)
        if failure is not None:
            return fail(*failure)
        stamp.write_text(wanted, encoding="utf-8")
    return become([str(python_of(TOOLS)), "-m", "nox", "--noxfile", str(ROOT / "noxfile.py"), *args])


def stamp_of(pins: bytes, python: Sequence[int]) -> str:
    """What `.tools/` was made from: the digest of the pins (line ends aside) and the Python version."""
    digest = hashlib.sha256(pins.replace(b"\r\n", b"\n")).hexdigest()
    return f"{digest} python{'.'.join(map(str, python))}\n"


def is_current(stamp: Path, wanted: str) -> bool:
    """Whether the tools beside `stamp` were made from `wanted` and their Python is still there."""
    return stamp.exists() and stamp.read_text(encoding="utf-8") == wanted and python_of(stamp.parent).exists()


def python_of(folder: Path) -> Path:
    """The interpreter of a virtual environment, on this system."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def make_tools(folder: Path) -> tuple[str, str] | None:
    """Make the environment and install the pins into it; what failed and its mend, or None."""
    try:
        venv.create(folder, clear=True, with_pip=True, symlinks=os.name != "nt")
    except (subprocess.CalledProcessError, OSError) as error:
        return f"Python could not make a virtual environment: {error}", "install Python's venv module (python3-venv)"
    pip = [str(python_of(folder)), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    if subprocess.call([*pip, "--require-hashes", "--only-binary=:all:", "-r", str(PINS)]):
        return (
            f"pip could not install the pins of ci/{PINS.name} (its own message is above)",
            "connect to a package index, or point pip at one (PIP_INDEX_URL, PIP_FIND_LINKS), and run this again",
        )
    return None


def become(command: list[str]) -> int:
    """Replace this process, so that Ctrl-C reaches nox and nothing waits in between."""
    if os.name != "nt":
        os.execv(command[0], command)
    # Windows has no exec. Ctrl-C goes to every process of the console; this one only has to outlive nox.
    with subprocess.Popen(command) as child:
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:
                continue


def fail(what: str, mend: str) -> int:
    """Say what went wrong and how to mend it."""
    print(f"bootstrap: {what}\nmend: {mend}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
