"""In CI a skipped test is a failed test: a check that did not run must not look like one that passed.

CI is where `CI` is set and not `false`. The only skips allowed there are of tests made for another operating system;
their reason starts with one of ALLOWED. Everywhere else a skip is a skip, and its reason is in the summary.
"""

import os
from collections.abc import Generator
from typing import Any

import pytest

# The workspace tests this very file, and the harness its plugin, by running pytest on small suites.
pytest_plugins = ["pytester"]

ALLOWED = ("windows only:", "posix only:", "linux only:", "macos only:")


def is_ci() -> bool:
    """Whether this run is one of CI."""
    return os.environ.get("CI", "false").lower() not in ("", "0", "false")


def refuse_skip(report: Any) -> None:
    """Turn the report of a forbidden skip into one of a failure."""
    if report.skipped and not hasattr(report, "wasxfail") and isinstance(report.longrepr, tuple):
        path, line, reason = report.longrepr
        if not reason.removeprefix("Skipped: ").startswith(ALLOWED):
            report.outcome = "failed"
            report.longrepr = f"{path}:{line}: {reason}\nmend: a skip fails in CI: give it what it misses"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """A test that skips."""
    report = yield
    if is_ci():
        refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    """A module that skips itself while it is collected."""
    report = yield
    if is_ci():
        refuse_skip(report)
    return report
