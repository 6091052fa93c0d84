"""What `.tools/` was made from, and that each session of the noxfile is one a contributor can find."""

import ast
import re
import sys

import pytest

from ci import bootstrap

NOXFILE = bootstrap.ROOT / "noxfile.py"
EVERYDAY = ["lint", "tests", "purity", "guard", "snapshot", "snapshot_agents"]


def test_a_stamp_does_not_depend_on_line_ends():
    assert bootstrap.stamp_of(b"a\r\nb\r\n", (3, 11)) == bootstrap.stamp_of(b"a\nb\n", (3, 11))


@pytest.mark.parametrize(("pins", "python"), [(b"a==1\n", (3, 12)), (b"a==2\n", (3, 11))])
def test_other_pins_or_another_python_make_the_tools_anew(pins, python):
    assert bootstrap.stamp_of(pins, python) != bootstrap.stamp_of(b"a==1\n", (3, 11))


def test_tools_are_current_only_with_their_stamp_and_their_python(tmp_path):
    stamp = tmp_path / "stamp"
    assert not bootstrap.is_current(stamp, "x")
    stamp.write_text("x", encoding="utf-8")
    assert not bootstrap.is_current(stamp, "x"), "no interpreter"
    bootstrap.python_of(tmp_path).parent.mkdir()
    bootstrap.python_of(tmp_path).touch()
    assert bootstrap.is_current(stamp, "x")
    assert not bootstrap.is_current(stamp, "y")


def test_an_old_python_is_told_what_to_do(monkeypatch, capsys):
    monkeypatch.setattr(bootstrap, "OLDEST_PYTHON", (sys.version_info.major + 1,))
    assert bootstrap.main([]) == 1
    assert re.search(r"needs Python.*\nmend: make PYTHON=", capsys.readouterr().err)


def test_bootstrap_imports_the_standard_library_only():
    tree = ast.parse((bootstrap.ROOT / "ci" / "bootstrap.py").read_text(encoding="utf-8"))
    imported = {
        alias.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {(node.module or "").partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names


def test_each_session_says_in_one_line_what_it_does_and_make_knows_it():
    sessions = [node for node in ast.parse(NOXFILE.read_text(encoding="utf-8")).body if is_session(node)]
    assert [node.name for node in sessions if "default=False" not in ast.unparse(node.decorator_list[0])] == EVERYDAY
    for node in sessions:
        assert (ast.get_docstring(node) or "").count("\n") == 0, node.name
        assert ast.get_docstring(node), node.name
    targets = re.search(r"^\.PHONY: (.*)$", (bootstrap.ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert targets and {node.name for node in sessions} <= set(targets[1].split())


def is_session(node):
    return isinstance(node, ast.FunctionDef) and any("nox.session" in ast.unparse(one) for one in node.decorator_list)
