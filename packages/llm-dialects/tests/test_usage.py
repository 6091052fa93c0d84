import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_dialects import Say, Usage, honest_usage, say_to_chunks
from llm_dialects.entries import SaidCall
from llm_dialects.wire import compact, compact_length

# [{"role":"user","content":"ping"}] is 34 characters long, [{"name":"ls"}] 15.
CALL = SaidCall(name="x", arguments="{}")
BODY = {"model": "m", "messages": [{"role": "user", "content": "ping"}]}


@pytest.mark.parametrize(
    ("body", "say", "usage"),
    [
        (BODY, Say(text="pong!"), Usage(input_tokens=9, output_tokens=2)),
        (BODY | {"tools": [{"name": "ls"}]}, Say(text="four"), Usage(input_tokens=13, output_tokens=1)),
        ({"messages": ["ü"]}, Say(text="üüüü"), Usage(input_tokens=2, output_tokens=1)),
        ({"input": "hi"}, Say(reasoning="hm", text="so"), Usage(input_tokens=1, output_tokens=1)),
        ({"contents": []}, Say(tool_calls=(CALL,)), Usage(input_tokens=1, output_tokens=1)),
        (None, Say(), Usage(input_tokens=0, output_tokens=0)),
    ],
)
def test_four_characters_are_a_token(body, say, usage):
    assert honest_usage(body, say_to_chunks(say, lambda: "c")) == usage


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_the_length_of_compact_json_is_known_without_writing_it(value):
    assert compact_length(value) == len(compact(value))


@pytest.mark.parametrize("value", ["\ud83d", 2**70, {"\x00\x7f": '"\\\n\u2028'}])
def test_the_length_of_what_is_hard_to_write(value):
    assert compact_length(value) == len(compact(value))
