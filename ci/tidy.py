"""The invariants of the repository as checks over sources; tests/test_tidy.py runs them on all of it.

Pure but for `repository_files` and `read`. A check takes a Source (and what it is held against) and yields faults, one
line each, `path:line: what`. The tables at the foot say what a rule knows; growing one is an architectural change.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ci.projects import ROOT


@dataclass(frozen=True, slots=True)
class Source:
    """A Python file: where it is, relative to the repository, and what is in it."""

    path: PurePosixPath
    text: str
    tree: ast.Module

    def at(self, node: ast.AST) -> str:
        """`path:line` of a node."""
        return f"{self.path}:{getattr(node, 'lineno', 1)}"

    @property
    def is_test(self) -> bool:
        """Whether it is a test or helps one."""
        return "tests" in self.path.parts or self.path.name == "conftest.py"


def source(path: str, text: str) -> Source:
    """A Source from its text."""
    return Source(PurePosixPath(path), text, ast.parse(text, path))


def repository_files(*patterns: str) -> list[Path]:
    """The files that git knows or would add, so that a fault shows before its commit."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, encoding="utf-8").stdout.split("\0")
    return [path for path in sorted({ROOT / name for name in names if name}) if path.is_file()]


def read(path: Path) -> Source:
    """The Python file at `path`."""
    return source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))


def imports(tree: ast.AST) -> Iterator[tuple[ast.stmt, str, tuple[str, ...]]]:
    """Each absolute import: its statement, the module, and the names taken from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node, node.module, tuple(alias.name for alias in node.names)


def declared(pyproject: str) -> set[str]:
    """The distributions that the text of a pyproject.toml declares, extras included."""
    project = tomllib.loads(pyproject)["project"]
    extras = project.get("optional-dependencies", {}).values()
    rows = chain(project.get("dependencies", ()), *extras)
    return {canonicalize_name(Requirement(row).name) for row in rows}


def undeclared_imports(
    module: Source, package: str, allowed: Set[str], owners: Mapping[str, list[str]]
) -> Iterator[str]:
    """Imports of anything but the standard library, the package itself and what it declares.

    `owners` maps an import name to the distributions that bring it (`importlib.metadata.packages_distributions()`).
    """
    for node, name, _ in imports(module.tree):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and canonicalize_name(top) != package:
            brought_by = {canonicalize_name(owner) for owner in owners.get(top, [top])}
            if not brought_by & allowed:
                yield f"{module.at(node)}: imports {top}, which packages/{package}/pyproject.toml does not declare"


def private_imports(module: Source, package: str, members: Set[str]) -> Iterator[str]:
    """Modules and names of another workspace package that begin with an underscore."""
    for node, name, names in imports(module.tree):
        other = canonicalize_name(name.partition(".")[0])
        if other in members and other != package:
            for part in (*name.split("."), *names):
                if part.startswith("_"):
                    yield f"{module.at(node)}: {part} is private to {other}"


def wrong_direction(package: str, allowed: Set[str], members: Set[str]) -> Iterator[str]:
    """Workspace packages among the declared ones that DIRECTION does not know."""
    for other in sorted((allowed & members) - DIRECTION.get(package, set())):
        yield f"packages/{package}/pyproject.toml:1: {package} may not depend on {other}"


def impurities(module: Source) -> Iterator[str]:
    """Imports and calls by which a pure module would reach a file, a clock, a socket or chance."""
    for node, name, names in imports(module.tree):
        reaches = name in IO_MODULES or name.partition(".")[0] in IO_MODULES
        if reaches or (name in PURE_NAMES and not (names and set(names) <= PURE_NAMES[name])):
            yield f"{module.at(node)}: a pure module imports {name}"
    for call in ast.walk(module.tree):
        if isinstance(call, ast.Call) and called(call) in IO_CALLS:
            yield f"{module.at(call)}: a pure module calls {called(call)}()"


def missing_docstring(module: Source) -> Iterator[str]:
    """A module that does not say what it is for."""
    if not ast.get_docstring(module.tree):
        yield f"{module.path}:1: no docstring"


def too_long(module: Source) -> Iterator[str]:
    """A module or function past the size at which it is two ideas."""
    limit = INIT_LINES if module.path.name == "__init__.py" else MODULE_LINES
    if (lines := module.text.count("\n")) > limit:
        yield f"{module.path}:1: {lines} lines, more than {limit}"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{module.at(node)}: {node.name} has {lines} lines, more than {FUNCTION_LINES}"


def sleeps(module: Source) -> Iterator[str]:
    """Calls that wait for time to pass; `sleep(0)` only lets others run."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and called(node) == "sleep" and not (node.args and _is_zero(node.args[0])):
            yield f"{module.at(node)}: a test sleeps; wait for what it waits for"


def fixed_ports(module: Source) -> Iterator[str]:
    """Servers and clients on a port that somebody wrote down."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and called(node) in PORT_CALLS:
            given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg in ("port", "address"))]
            given += [item for each in given if isinstance(each, ast.Tuple) for item in each.elts]
            for each in given:
                if isinstance(each, ast.Constant) and type(each.value) is int and each.value > 0:
                    yield f"{module.at(node)}: a test uses the fixed port {each.value}; ask for port 0"


def named_hosts(path: str, text: str) -> Iterator[str]:
    """Lines that name the host of a package index, or where an npm lock was resolved from."""
    for number, line in enumerate(text.splitlines(), 1):
        if INDEX_HOSTS.search(line) or RESOLVED.search(line):
            yield f"{path}:{number}: names the host of an index: {line.strip()[:100]}"


def called(node: ast.Call) -> str:
    """The last name of what is called: `sleep` in `time.sleep(1)`."""
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


INIT_LINES = 40
FUNCTION_LINES = 60
MODULE_LINES = 450
DOCUMENT_LINES = {"ARCHITECTURE.md": 200, "CONTRIBUTING.md": 80}

# Who may depend on whom; the leaves on nobody.
DIRECTION: Mapping[str, Set[str]] = {
    "normalizer": set(),
    "llm-dialects": set(),
    "llm-mock-server": {"llm-dialects"},
    "llm-replay": {"llm-dialects"},
    "fixture-guard": {"normalizer", "llm-replay"},
    "session-snapshot": {"normalizer", "llm-dialects", "llm-mock-server", "llm-replay", "fixture-guard"},
    "acp-agent": {"llm-dialects", "llm-replay"},
}

# Packages that take and return values, and their few modules that may do more.
PURE: Mapping[str, Set[str]] = {
    "normalizer": set(),
    "llm-dialects": set(),
    "llm-replay": {"files.py", "adapter.py"},
}
IO_MODULES = {
    *("asyncio", "atexit", "concurrent", "ctypes", "fileinput", "glob", "http", "httpcore", "httpx", "httptools"),
    *("io", "logging", "msvcrt", "multiprocessing", "os", "platform", "psutil", "random", "secrets", "select"),
    *("selectors", "shutil", "signal", "socket", "ssl", "subprocess", "sys", "tempfile", "time"),
    *("urllib.request", "uuid", "watchfiles"),
}
# What a pure module may take of modules that are none; a lock guards what is remembered, and reaches nothing.
PURE_NAMES = {"pathlib": {"PurePath", "PurePosixPath", "PureWindowsPath"}, "threading": {"Lock"}}
IO_CALLS = {"open", "input", "print", "now", "today", "utcnow"}

PORT_CALLS = {"serve", "bind", "connect", "start_server", "create_server", "open_connection", "create_connection"}

# Spelled in parts, since this file too is one that may not name them.
INDEX_HOSTS = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("registry", "npmjs", "org"),
            ("registry", "yarnpkg", "com"),
            ("deb", "debian", "org"),
        )
    )
)
RESOLVED = re.compile(r'"resolved"\s*:\s*"[a-z+]+:')
