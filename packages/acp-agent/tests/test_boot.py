"""What it costs to start: told by what is imported, which is the same on every machine."""

import re
import subprocess
import sys

from acp_agent import __version__

HEAVY = {
    *("acp", "openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2", "httptools", "h11", "anyio", "mcp"),
    *("pydantic", "click", "rich", "requests", "urllib3", "certifi", "truststore", "importlib.metadata", "http.client"),
    *("urllib.request", "email", "unittest", "multiprocessing", "sqlite3", "difflib", "llm_replay"),
    *("acp_agent.model_http", "acp_agent.reply_http", "acp_agent.model_replay"),
}

BUDGET = 260
"""Modules imported up to the ``initialize`` answer, the standard library's own start-up included."""


def imported(environment, cwd):
    """Return the names of all modules imported by an agent that answers ``initialize`` and then ends."""
    agent = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "acp_agent"],
        input=b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n',
        capture_output=True,
        env={name: value for name, value in environment.items() if not name.startswith("COVERAGE_")},
        cwd=cwd,
        check=True,
    )
    assert b'"protocolVersion":1' in agent.stdout
    return re.findall(r"^import time:.*\| +(\S+)$", agent.stderr.decode(), re.M)


def test_starting_imports_nothing_heavy(environment, cwd):
    modules = imported(environment, cwd)
    assert "acp_agent.agent" in modules
    assert not sorted(HEAVY & set(modules))
    assert len(modules) <= BUDGET, f"{len(modules)} modules: {' '.join(sorted(modules))}"


def test_the_version_is_told_without_serving(environment):
    words = [sys.executable, "-m", "acp_agent", "--version"]
    told = subprocess.run(words, capture_output=True, env=environment, check=True, text=True)
    assert told.stdout == f"acp-agent {__version__}\n"
