"""What is read out of a lock: closures under markers and extras, and the wheel an interpreter takes."""

import pytest
from packaging.tags import Tag

from ci.lockfile import Artefact, Need, Package, best_wheel, closure, parse_lock, sessions

ROWS = """
[package.dev-dependencies]
tests = [{ name = "top", extra = ["more"] }]
lint = [{ name = "tool", marker = "sys_platform == 'win32'" }]

[[package]]
name = "top"
version = "1"
source = { registry = "wheelhouse" }
dependencies = [
    { name = "fork", version = "1", source = { registry = "wheelhouse" }, marker = "python_full_version < '3.12'" },
    { name = "fork", version = "2", source = { registry = "wheelhouse" }, marker = "python_full_version >= '3.12'" },
]

[package.optional-dependencies]
more = [{ name = "extra" }]
unused = [{ name = "never" }]

[[package]]
name = "extra"
version = "1"
source = { registry = "wheelhouse" }
dependencies = [{ name = "top" }]

[[package]]
name = "fork"
version = "1"
source = { registry = "wheelhouse" }

[[package]]
name = "fork"
version = "2"
source = { registry = "wheelhouse" }

[[package]]
name = "never"
version = "1"
source = { registry = "wheelhouse" }

[[package]]
name = "tool"
version = "1"
source = { registry = "wheelhouse" }
"""

LINUX = [Tag("cp311", "cp311", f"manylinux_2_{minor}_x86_64") for minor in (36, 28, 17)] + [Tag("py3", "none", "any")]


def environment(python: str, platform: str = "linux") -> dict[str, str]:
    return {"python_full_version": python, "python_version": python[:4], "sys_platform": platform, "extra": ""}


def names(packages: tuple[Package, ...]) -> list[str]:
    return [f"{package.name} {package.version}" for package in packages]


@pytest.mark.parametrize(
    ("group", "where", "expected"),
    [
        ("tests", environment("3.11.2"), ["extra 1", "fork 1", "top 1"]),
        ("tests", environment("3.13.0"), ["extra 1", "fork 2", "top 1"]),
        ("tests", None, ["extra 1", "fork 1", "fork 2", "top 1"]),
        ("lint", environment("3.13.0"), []),
        ("lint", environment("3.13.0", "win32"), ["tool 1"]),
    ],
)
def test_a_closure_follows_markers_versions_and_extras(lock_text, group, where, expected):
    lock = parse_lock(lock_text(ROWS))
    assert names(closure(lock, sessions(lock)[group], where)) == expected


def test_a_project_without_groups_is_one_session_of_its_dependencies(lock_text):
    lock = parse_lock(lock_text('dependencies = [{ name = "agent" }]\n'))
    assert sessions(lock) == {"": (Need("agent", None, (), ""),)}


def test_a_lock_of_another_version_is_refused():
    with pytest.raises(ValueError, match="version 2"):
        parse_lock("version = 2\n")


@pytest.mark.parametrize(
    ("wheels", "expected"),
    [
        (["p-1-cp311-cp311-manylinux_2_17_x86_64.whl", "p-1-py3-none-any.whl"], 0),
        (["p-1-py3-none-any.whl", "p-1-cp311-cp311-manylinux_2_28_x86_64.manylinux_2_17_x86_64.whl"], 1),
        (["p-1-py3-none-any.whl", "p-1-2-py3-none-any.whl"], 1),
        (["p-1-cp312-cp312-win_amd64.whl"], None),
        ([], None),
    ],
)
def test_the_best_wheel_is_the_one_an_installer_takes(wheels, expected):
    artefacts = (*(Artefact(name, "", True, False) for name in wheels), Artefact("p-1.tar.gz", "", False, False))
    package = Package("p", "1", ("registry", "wheelhouse"), artefacts, (), {}, {})
    assert best_wheel(package, LINUX) == (None if expected is None else artefacts[expected])
