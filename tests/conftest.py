"""Small locks to test the plumbing on."""

import hashlib
import textwrap
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

HEAD = """
version = 1
revision = 5
requires-python = ">=3.11"

[[package]]
name = "project"
version = "0"
source = { virtual = "." }
"""


@pytest.fixture
def lock_text() -> Callable[[str], str]:
    """The text of a lock: a project, then the rows given (whatever follows its source, then other packages)."""
    return lambda rows: HEAD + textwrap.dedent(rows)


@pytest.fixture
def make_wheel() -> Callable[[Path, str, str], tuple[str, str]]:
    """Write a real, empty wheel into a folder; gives its file name and its sha256."""

    def make(folder: Path, name: str, version: str) -> tuple[str, str]:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}-{version}-py3-none-any.whl"
        info = f"{name}-{version}.dist-info"
        with ZipFile(path, "w") as archive:
            archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", "")
        return path.name, hashlib.sha256(path.read_bytes()).hexdigest()

    return make
