"""The root conftest.py: in CI a skip fails, wherever it happens, unless it is another system's test."""

from pathlib import Path

import pytest

CONFTEST = (Path(__file__).parent.parent / "conftest.py").read_text(encoding="utf-8")
TESTS = """
    import pytest

    @pytest.mark.skip(reason="{reason}")
    def test_by_mark(): ...

    def test_by_call():
        pytest.skip("{reason}")

    @pytest.fixture
    def needy():
        pytest.skip("{reason}")

    def test_by_fixture(needy): ...

    @pytest.mark.xfail(strict=True, reason="known")
    def test_known(): assert False
"""
MODULE = "import pytest\npytest.skip('{reason}', allow_module_level=True)\ndef test_never(): ...\n"


@pytest.mark.parametrize(
    ("ci", "reason", "outcome"),
    [
        ("true", "SNAPSHOT_CASES is not set", {"failed": 1, "errors": 2, "xfailed": 1}),
        ("true", "windows only: job objects", {"skipped": 3, "xfailed": 1}),
        ("false", "SNAPSHOT_CASES is not set", {"skipped": 3, "xfailed": 1}),
        ("", "SNAPSHOT_CASES is not set", {"skipped": 3, "xfailed": 1}),
    ],
)
def test_a_skipped_test(pytester, monkeypatch, ci, reason, outcome):
    monkeypatch.setenv("CI", ci)
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS.format(reason=reason))
    result = pytester.runpytest_subprocess("-p", "no:session-snapshot")
    result.assert_outcomes(**outcome)
    if "failed" in outcome:
        result.stdout.fnmatch_lines(["*.py:*: *SNAPSHOT_CASES is not set*", "mend: a skip fails in CI*"])


@pytest.mark.parametrize(("ci", "outcome"), [("true", {"errors": 1}), ("false", {"skipped": 1})])
def test_a_module_that_skips_itself(pytester, monkeypatch, ci, outcome):
    monkeypatch.setenv("CI", ci)
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(MODULE.format(reason="no library"))
    pytester.runpytest_subprocess("-p", "no:session-snapshot").assert_outcomes(**outcome)
