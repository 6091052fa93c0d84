"""The folder an agent runs in: temporary cwd, home and temp, wiped after every run; and the environment it may see.

Only the parent folder's name varies, at a fixed length; cwd, home and temp have constant names and places in it,
because agents put paths into titles and prompts and count tokens of them.
"""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

PREFIX = "snap-"
NOWHERE = "http://127.0.0.1:9"
"""The discard port: a proxy that leads nowhere."""

NO_PROXY = "127.0.0.1,localhost,::1"

NEEDED_ON_WINDOWS = (
    "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
    "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMDATA",
)  # fmt: skip
"""What a Windows program cannot start without; nothing in it tells who runs it."""


class Sandbox(Struct, frozen=True):
    """The folders of one run, all under ``root``."""

    root: Path
    cwd: Path
    home: Path
    tmp: Path


def make_sandbox(base: Path, cwd_in_home: bool, seed: Path | None) -> Sandbox:
    """Make the folders of one run under ``base`` and copy the seed (``workspace/``) into its cwd."""
    root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
    home = root / "home"
    box = Sandbox(root, (home if cwd_in_home else root) / "work", home, root / "tmp")
    for folder in (box.home, box.cwd, box.tmp):
        folder.mkdir(parents=True, exist_ok=True)
    if seed is not None and seed.is_dir():
        shutil.copytree(seed, box.cwd, symlinks=True, dirs_exist_ok=True)
        make_writable(box.cwd)
    return box


def environment(box: Sandbox, path_first: list[Path], extra: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of an agent: an allowlist, never what happens to be set.

    ``path_first`` are folders put before the machine's PATH (the agent's own programs).
    """
    path = os.pathsep.join([*(str(folder) for folder in path_first), os.environ.get("PATH", os.defpath)])
    values = {"PATH": path, "TZ": "UTC", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}
    values |= homes(box) | proxies()
    if sys.platform == "win32":
        values |= {name: os.environ[name] for name in NEEDED_ON_WINDOWS if name in os.environ}
    return values | dict(extra)


def homes(box: Sandbox) -> dict[str, str]:
    """Every variable that says where a user's files are, pointed into the sandbox."""
    home = box.home
    values = {
        "HOME": home,
        "XDG_CONFIG_HOME": home / ".config",
        "XDG_DATA_HOME": home / ".local" / "share",
        "XDG_STATE_HOME": home / ".local" / "state",
        "XDG_CACHE_HOME": home / ".cache",
        "TMPDIR": box.tmp,
        "TMP": box.tmp,
        "TEMP": box.tmp,
    }
    if sys.platform == "win32":
        roaming = home / "AppData" / "Roaming"
        values |= {"USERPROFILE": home, "APPDATA": roaming, "LOCALAPPDATA": home / "AppData" / "Local"}
    return {name: str(folder) for name, folder in values.items()}


def proxies() -> dict[str, str]:
    """Proxies that lead nowhere, so that a request past loopback fails at once instead of leaving the machine."""
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    values = {name: NOWHERE for name in names} | {"NO_PROXY": NO_PROXY}
    return values | {name.lower(): value for name, value in values.items()}


def make_writable(folder: Path) -> None:
    """Lift the read-only marks of a seed that came from a read-only checkout: the agent works on a copy of its own."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | stat.S_IWUSR)


def spellings(folder: Path) -> tuple[str, ...]:
    """The folder as given and as the system resolves it (macOS ``/private``, Windows short names)."""
    return tuple(dict.fromkeys((str(folder), str(folder.resolve()))))


def remove_tree(folder: Path) -> None:
    """Remove a folder and all in it, read-only files too; a folder that is gone is fine."""
    if folder.exists():
        shutil.rmtree(folder, onerror=make_writable_and_retry)


def make_writable_and_retry(function: Callable[[str], Any], path: str, _: Any) -> None:
    """Lift a read-only mark and try once more; what is gone by then is fine."""
    try:
        parent = Path(path).parent
        parent.chmod(parent.stat().st_mode | stat.S_IRWXU)
        os.chmod(path, stat.S_IRWXU)  # noqa: PTH101 - a path that may be a link to nowhere
        function(path)
    except FileNotFoundError:
        return


Tree = dict[str, bytes]
"""A folder's content: relative POSIX path -> bytes. A symbolic link is ``b"-> target"``, an empty folder's name ends in
``/``; a device, pipe or socket is not read."""


def capture_tree(folder: Path, ignore: list[str]) -> Tree:
    """Read a folder whole, but for the top-level entries named in ``ignore`` (globs)."""
    tree: Tree = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if any(Path(relative.parts[0]).match(pattern) for pattern in ignore):
            continue
        name = relative.as_posix()
        if path.is_symlink():
            tree[name] = b"-> " + os.fsencode(path.readlink())
        elif path.is_file():
            tree[name] = path.read_bytes()
        elif not path.is_dir():
            tree[name] = b"-> a device, pipe or socket"
        elif not any(path.iterdir()):
            tree[name + "/"] = b""
    return tree
