"""A pinned header: written, read, the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_dialects.requests import Request, Tool
from llm_replay import Header
from session_snapshot.errors import FixtureError
from session_snapshot.headers import NEXT_TEXT, format_system, format_tools, header_of, parse_header

TEXTS = st.text(min_size=1).filter(lambda text: NEXT_TEXT not in text)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.dictionaries(st.text(), inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=6,
)
TOOLS = st.builds(
    Tool,
    name=st.text(min_size=1),
    description=st.text(),
    input_schema=st.dictionaries(st.text(), JSON, max_size=3),
    extra=st.dictionaries(st.text().map("x-".__add__), JSON, max_size=2),
)


@given(st.lists(TEXTS, max_size=3), st.lists(TOOLS, max_size=3))
@settings(deadline=None, max_examples=60)
def test_round_trip(system: list[str], tools: list[Tool]) -> None:
    header = Header(system=tuple(system), tools=tuple(tools))
    assert parse_header(format_system(header.system), format_tools(header.tools), "header.tools.json") == header


def test_the_header_of_a_request() -> None:
    tool = Tool(name="t")
    assert header_of(Request(system=("s",), tools=(tool,), messages=(), params={})) == Header(("s",), (tool,))


@pytest.mark.parametrize("tools", ["{", "{}1", '[{"nam": "t"}]', "[1]"])
def test_what_is_no_list_of_tools(tools: str) -> None:
    with pytest.raises(FixtureError, match=r"x/header\.tools\.json: not a list of tools"):
        parse_header("s\n", tools, "x/header.tools.json")
