"""The pytest plugin of llm-mock-server: the fixture ``llm_mock_server``.

A package of its own, and what it needs is imported by the first test that asks for it: pytest loads every plugin that
is installed for every run, whether or not it uses any.
"""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from llm_mock_server.testing import Start

FAILED = pytest.StashKey[bool]()


@pytest.fixture
def llm_mock_server(request: pytest.FixtureRequest) -> Iterator["Start"]:
    """Start servers that play a script: ``llm_mock_server("rate_limit", {"kind": "say", "text": "hi"})``.

    They end with the test, which fails if its script was not played to the end, or something in a server raised.
    """
    from llm_mock_server.testing import Servers

    servers = Servers()
    try:
        yield servers.start
    finally:
        faults = servers.close()
    if faults and not request.node.stash.get(FAILED, False):  # one that failed already says why itself
        pytest.fail("\n".join(faults), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember that a test has failed."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or not report.passed
    return report
