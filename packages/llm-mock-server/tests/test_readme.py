"""The examples of the README run, and what it names is there."""

import re
from pathlib import Path
from typing import get_args

import pytest
from llm_dialects import StreamChunk
from llm_dialects.chunks import fields_of
from llm_mock_server.command import parse
from llm_mock_server.control import ROUTES
from llm_mock_server.meaning import CODES, FINISHES, USAGE

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


def row_of(word):
    (row,) = re.findall(rf"^\| `{word}` \| (.*) \|$", TEXT, re.MULTILINE)
    return re.findall(r"`([^`]+)`", row)


def test_it_has_the_words_of_a_script():
    assert [word for word in row_of("code") if word.isupper()] == list(CODES)
    assert tuple(word for word in row_of("finish") if word in FINISHES) == FINISHES
    assert set(row_of("usage")) == USAGE.keys()


def test_it_has_every_chunk_and_its_members():
    shown = {kind: members for kind, members in re.findall(r'`\{"type": "([a-z-]+)"(.*?)\}`', TEXT)}
    for kind in get_args(StreamChunk):
        fields = [field for field in fields_of(kind) if field.name != "extra"]
        optional = [field.encode_name for field in fields if not field.required]
        members = re.sub(r"\{.*\}", "", shown[kind.__struct_config__.tag])
        assert re.findall(r', "(\w+)"(?!\?)', members) == [f.encode_name for f in fields if f.required]
        assert re.findall(r', "(\w+)"\?', members) == optional


def test_it_shows_every_route_of_the_control_api():
    shown = re.findall(r"^curl (?:-X (\w+) )?\"?\$CONTROL(/\w*)", TEXT, re.MULTILINE)
    assert {(method or "GET", path) for method, path in shown} == ROUTES.keys()
