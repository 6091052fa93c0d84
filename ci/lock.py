"""Make the locks: host-free, so that one lock serves any mirror and none.

    python -m ci.lock [PROJECT ...] [--upgrade] [--upgrade-package NAME]      (default: all projects; `nox -s lock`)

uv locks a scratch copy that does not know the wheelhouse, against whatever index the machine is configured for; then
every URL of the result becomes a file name, and the registry the folder `wheelhouse/`. The result is accepted only if
uv, offline, finds it current. `ci/tools.txt` and `ci/closures/` are derived from the locks.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

import tomli_w
from uv import find_uv_bin

from ci.closures import closures_folder, closures_of
from ci.lockfile import parse_lock
from ci.projects import ROOT, UV_OFFLINE, offline, projects, registry

INDEX_TABLE = re.compile(r"^\[\[tool\.uv\.index\]\]\n(?:(?!\[).*\n)*", re.MULTILINE)
REGISTRY = re.compile(r'registry = "[^"]*"')
ARTEFACT = re.compile(r'\{ (?:url|path) = "(?:[^"]*/)?([^/"#]+)(?:#[^"]*)?", hash = ')

CLOSURE_HEAD = "# Written by `nox -s lock`: what this session installs, on any platform.\n"
TOOLS_HEAD = "# Written by `nox -s lock` from the group `tools`: what ci/bootstrap.py installs into .tools/.\n"


class LockError(Exception):
    """A lock could not be made; that project's files are as they were."""


def main(args: Sequence[str]) -> int:
    """Make the locks of the projects named, then everything derived from locks."""
    parser = argparse.ArgumentParser(prog="nox -s lock --", description="Make the host-free locks.")
    parser.add_argument("project", nargs="*", help="a folder with a pyproject.toml (default: all)")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions allowed")
    parser.add_argument("--upgrade-package", metavar="NAME", action="append", default=[], help="only of this package")
    options = parser.parse_args(args)
    upgrade = ["--upgrade"] * options.upgrade + [f"--upgrade-package={name}" for name in options.upgrade_package]
    try:
        for project in [ROOT / name for name in options.project] or projects():
            print(f"lock: {project.relative_to(ROOT).as_posix()}", flush=True)
            relock(project, ROOT, upgrade)
        write_closures(ROOT)
        write_tools(ROOT)
    except LockError as error:
        print(f"lock: {error}", file=sys.stderr)
        return 1
    return 0


def relock(project: Path, root: Path, options: Sequence[str] = ()) -> None:
    """Write `project/uv.lock`; versions already locked stay unless `options` of `uv lock` say otherwise."""
    if not (project / "pyproject.toml").is_file():
        raise LockError(
            f"{project}/pyproject.toml is missing\n"
            "mend: write it as snapshots/agentao has it ([project] and [tool.uv] package = false)"
        )
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        copy = copy_project(project, root, scratch)
        hide_wheelhouse(copy / "pyproject.toml")
        uv(["lock", *options], copy, online(os.environ))
        text = host_free((copy / "uv.lock").read_text(encoding="utf-8"), registry(project, root))
        shutil.copy(project / "pyproject.toml", copy)
        write(copy / "uv.lock", text)
        (scratch / "wheelhouse").mkdir()
        verify(copy)
    write(project / "uv.lock", text)


def copy_project(project: Path, root: Path, scratch: Path) -> Path:
    """Copy what locking reads (the lock and the project files of its members) to the same place under `scratch`."""
    for source in (project / "uv.lock", project / "pyproject.toml", *project.glob("packages/*/pyproject.toml")):
        if source.exists():
            target = scratch / source.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    return scratch / project.relative_to(root)


def hide_wheelhouse(pyproject: Path) -> None:
    """Take the index tables out, so that uv asks the index of the machine."""
    write(pyproject, INDEX_TABLE.sub("", pyproject.read_text(encoding="utf-8")))


def host_free(text: str, registry_path: str) -> str:
    """The lock with the registry a folder and each artefact a file name in it; raises LockError if a URL is left."""
    text = REGISTRY.sub(f'registry = "{registry_path}"', text)
    text = ARTEFACT.sub(lambda match: f'{{ path = "{unquote(match[1])}", hash = ', text)
    for number, line in enumerate(text.splitlines(), 1):
        if "://" in line:
            raise LockError(
                f"uv.lock:{number}: a source that no folder of files can hold: {line.strip()}\n"
                "mend: depend on a released version of that package"
            )
    return text


def online(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` in which uv reaches the index that pip is configured for."""
    result = {name: value for name, value in environment.items() if name not in UV_OFFLINE}
    result["UV_PYTHON_DOWNLOADS"] = "never"
    index = environment.get("PIP_INDEX_URL") or pip_index()
    if index and "UV_INDEX_URL" not in result:
        result.setdefault("UV_DEFAULT_INDEX", index)
    return result


def pip_index() -> str:
    """The index in pip's configuration files, or an empty string."""
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    ).stdout.strip()


def verify(project: Path) -> None:
    """Raise LockError unless uv, offline and with an empty wheelhouse, takes the lock as it is."""
    uv(["lock", "--check"], project, offline())
    uv(["sync", "--locked", "--dry-run", "--all-groups"], project, offline())


def uv(command: Sequence[str], project: Path, environment: Mapping[str, str]) -> str:
    """What uv printed on stdout; raises LockError with what it said when it fails."""
    call = [find_uv_bin(), *command, "--project", str(project), "--python", sys.executable]
    done = subprocess.run(
        call, env=environment, cwd=project, capture_output=True, text=True, encoding="utf-8", check=False
    )
    if done.returncode:
        raise LockError(
            f"`uv {' '.join(command)}` failed:\n{done.stderr.strip()}\nmend: correct pyproject.toml, then nox -s lock"
        )
    return done.stdout


def write_closures(root: Path) -> None:
    """Write `ci/closures/` anew from the locks that stand."""
    folder = closures_folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.toml"):
        stale.unlink()
    for project in projects(root):
        lock = parse_lock((project / "uv.lock").read_text(encoding="utf-8"))
        for name, closure in closures_of(lock, project.name).items():
            write(folder / f"{name}.toml", CLOSURE_HEAD + tomli_w.dumps(closure))


def write_tools(root: Path) -> None:
    """Write `ci/tools.txt`, the one part of the lock that pip alone installs."""
    (root / "wheelhouse").mkdir(exist_ok=True)
    export = [
        "export",
        "--locked",
        "--only-group",
        "tools",
        "--no-header",
        "--no-annotate",
        "--format",
        "requirements.txt",
    ]
    write(root / "ci" / "tools.txt", TOOLS_HEAD + uv(export, root, offline()))


def write(path: Path, text: str) -> None:
    """Write text with LF, as it is committed."""
    path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
