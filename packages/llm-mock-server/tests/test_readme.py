"""The examples of the README run, and what it names is there."""

import re
from pathlib import Path

import pytest
from llm_mock_server.command import parse
from llm_mock_server.control import ROUTES

TEXT = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
TESTS = [example for example in EXAMPLES if "def test_" in example]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number):
    exec(compile(EXAMPLES[number], f"README.md, example {number}", "exec"), {})


def test_there_are_examples():
    assert len(EXAMPLES) >= 5
    assert len(TESTS) == 1


def test_examples_that_are_tests_pass(pytester):
    pytester.makepyfile(*TESTS)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    result.assert_outcomes(passed=2)


def test_there_are_the_flags_it_names():
    flags = {flag.replace("-", "_") for flag in re.findall(r"(?<=[`\[( ])--([a-z-]+)", TEXT)} - {"help"}
    assert len(flags) > 10
    assert flags <= vars(parse(["--sequence", "success"])).keys()


def test_it_shows_every_route_of_the_control_api():
    shown = re.findall(r"^curl (?:-X (\w+) )?\"?\$CONTROL(/\w*)", TEXT, re.MULTILINE)
    assert {(method or "GET", path) for method, path in shown} == ROUTES.keys()
