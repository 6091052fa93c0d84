"""The invariants of the repository hold, and each check is seen to fail on the fault it is for."""

from importlib.metadata import packages_distributions

import pytest

from ci import tidy
from ci.projects import ROOT
from ci.tidy import read, repository_files, source

PACKAGES = {path.parent.name for path in ROOT.glob("packages/*/pyproject.toml")}
MODULES = [read(path) for path in repository_files("*.py")]
PYPROJECTS = {name: (ROOT / "packages" / name / "pyproject.toml").read_text(encoding="utf-8") for name in PACKAGES}


def report(faults):
    found = list(faults)
    assert not found, "\n" + "\n".join(found)


def modules_of(package):
    return [module for module in MODULES if module.path.parts[:3] == ("packages", package, "src")]


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_a_package_imports_only_what_it_declares(package):
    allowed, owners = tidy.declared(PYPROJECTS[package]), packages_distributions()
    report(fault for each in modules_of(package) for fault in tidy.undeclared_imports(each, package, allowed, owners))


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_a_package_uses_only_what_is_public_of_another(package):
    report(fault for each in modules_of(package) for fault in tidy.private_imports(each, package, PACKAGES))


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_dependencies_point_one_way(package):
    report(tidy.wrong_direction(package, tidy.declared(PYPROJECTS[package]), PACKAGES))


@pytest.mark.parametrize("package", sorted(tidy.PURE))
def test_a_pure_package_reaches_nothing(package):
    pure = [each for each in modules_of(package) if each.path.name not in tidy.PURE[package]]
    assert pure
    report(fault for each in pure for fault in tidy.impurities(each))


def test_every_module_says_what_it_is_for():
    report(fault for each in MODULES if not each.is_test for fault in tidy.missing_docstring(each))


def test_no_module_and_no_function_is_too_long():
    report(fault for each in MODULES for fault in tidy.too_long(each))


@pytest.mark.parametrize(("name", "limit"), tidy.DOCUMENT_LINES.items())
def test_a_document_stays_one_that_is_read(name, limit):
    if (ROOT / name).exists():
        assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= limit


def test_tests_do_not_sleep():
    report(fault for each in MODULES if each.is_test for fault in tidy.sleeps(each))


def test_tests_use_no_fixed_port():
    report(fault for each in MODULES if each.is_test for fault in tidy.fixed_ports(each))


def test_no_file_names_the_host_of_an_index():
    for path in repository_files():
        text = path.read_bytes().decode("utf-8", errors="replace")
        report(tidy.named_hosts(path.relative_to(ROOT).as_posix(), text))


# In parts: this file, too, may name none.
HOST = ".".join(("registry", "npmjs", "org"))
RESOLVED = ": ".join(('"resolved"', '"https://mirror/x.tgz"'))
LONG = "def f():\n" + "    x = 1\n" * 60
OWNERS = {"yaml": ["PyYAML"], "msgspec": ["msgspec"]}


def undeclared(module):
    return tidy.undeclared_imports(module, "llm-replay", {"msgspec", "llm-dialects"}, OWNERS)


def private(module):
    return tidy.private_imports(module, "llm-replay", {"llm-replay", "llm-dialects"})


@pytest.mark.parametrize(
    ("check", "text", "faults"),
    [
        (undeclared, "import yaml\n", ["imports yaml"]),
        (undeclared, "def f():\n    from normalizer import x\n", ["imports normalizer"]),
        (undeclared, "import os\nimport msgspec.json\nimport llm_dialects\nfrom llm_replay import y\n", []),
        (private, "from llm_dialects._wire import x\n", ["_wire is private to llm-dialects"]),
        (private, "from llm_dialects import _x, y\n", ["_x is private"]),
        (private, "from llm_dialects.wire import x\nfrom llm_replay._mine import y\nimport _thread\n", []),
        (tidy.impurities, "import os.path\n", ["imports os.path"]),
        (tidy.impurities, "from urllib.request import urlopen\n", ["imports urllib.request"]),
        (tidy.impurities, "from pathlib import Path, PurePath\n", ["imports pathlib"]),
        (tidy.impurities, "import pathlib\n", ["imports pathlib"]),
        (tidy.impurities, "from pathlib import PurePath\nfrom urllib.parse import quote\nimport json\n", []),
        (tidy.impurities, "def f(d):\n    return d.now(), open('x')\n", ["calls now()", "calls open()"]),
        (tidy.missing_docstring, "x = 1\n", ["no docstring"]),
        (tidy.too_long, LONG, ["f has 61 lines"]),
        (tidy.too_long, LONG.removesuffix("    x = 1\n"), []),
        (tidy.too_long, "\n" * 451, ["451 lines"]),
        (tidy.sleeps, "import time\ntime.sleep(1)\nsleep(x)\n", ["a test sleeps", "a test sleeps"]),
        (tidy.sleeps, "async def f():\n    await asyncio.sleep(0)\n", []),
        (tidy.fixed_ports, "serve(r, port=8080)\ns.bind(('', 80))\n", ["fixed port 8080", "fixed port 80"]),
        (tidy.fixed_ports, "open_connection('h', 8080)\n", ["fixed port 8080"]),
        (tidy.fixed_ports, "serve(r, port=0)\nserve(r, timeout=5)\nContext(port=8080)\nconnect(server.port)\n", []),
    ],
)
def test_a_check_finds_its_faults_and_no_others(check, text, faults):
    found = list(check(source("packages/x/src/x/a.py", text)))
    assert len(found) == len(faults), found
    assert all(fault in line for fault, line in zip(faults, found, strict=True)), found


def test_an_init_is_short():
    assert list(tidy.too_long(source("packages/x/src/x/__init__.py", "\n" * 41)))


def test_a_dependency_against_the_direction_is_found():
    (fault,) = tidy.wrong_direction("normalizer", {"msgspec", "llm-dialects"}, {"normalizer", "llm-dialects"})
    assert "normalizer may not depend on llm-dialects" in fault


@pytest.mark.parametrize("line", [f'index = "https://{HOST}/"', RESOLVED])
def test_a_named_host_is_found_with_its_line(line):
    (fault,) = tidy.named_hosts("x.toml", f"\n{line}\n")
    assert fault.startswith("x.toml:2: ")
