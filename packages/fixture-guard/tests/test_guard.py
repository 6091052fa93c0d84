"""The table, what it is for, and what a suite's author may allow."""

from pathlib import Path

import pytest
from fixture_guard import CHECKS, check, checks_table

TESTS = Path(__file__).parent


def test_the_readme_holds_the_table():
    assert checks_table() in (TESTS.parent / "README.md").read_text()


@pytest.mark.parametrize("code", sorted({entry.code for entry in CHECKS} | {"ALLOW"}))
def test_every_check_has_an_example_that_fails(code):
    here = Path(__file__).name
    texts = (path.read_text() for path in TESTS.glob("test_*.py") if path.name not in (here, "test_history.py"))
    assert any(f' {code}"' in text or f'"{code}"' in text for text in texts)


def test_every_check_is_in_the_table():
    checks = {
        f"{path.stem}.{line.split('(')[0].removeprefix('def ')}"
        for path in (TESTS.parent / "src/fixture_guard/checks").glob("*.py")
        for line in path.read_text().splitlines()
        if line.startswith("def check_")
    }
    table = (TESTS.parent / "src/fixture_guard/guard.py").read_text()
    assert [name for name in sorted(checks) if name not in table] == []


def test_findings_below_a_folder_only(build):
    files = build({"s/one/extra.txt": "", "s/spare/note.txt": ""})
    assert [finding.path for finding in check(files, under="s/one")] == ["s/one/extra.txt"]
    assert len(check(files, under="s")) == 2
    assert check(files, under="s/on") == ()
