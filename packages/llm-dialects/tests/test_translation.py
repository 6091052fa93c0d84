"""One conversation in two dialects: what is compared of requests, and what arrives of answers."""

import itertools
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_dialects import (
    DIALECTS,
    Message,
    ProviderError,
    ReasoningBlock,
    Request,
    TextBlock,
    Tool,
    ToolCallBlock,
    ToolResultPart,
    chunks_from_json,
)
from llm_dialects.translation import (
    SPELLINGS,
    UNSHARED,
    arrives,
    common_params,
    common_request,
    comparable,
    failure_arrives,
    left_out,
    paths_of,
)

PAIRS = list(itertools.permutations(DIALECTS, 2))

texts = st.text("abc ü\n", min_size=1, max_size=6)
arguments = st.dictionaries(st.sampled_from("xyz"), st.one_of(texts, st.integers(0, 9)), max_size=2).map(json.dumps)


@st.composite
def conversations(draw):
    """What an agent has in its memory: prompts, answers with thinking, text and calls, and a result for every call."""
    messages = []
    for number in range(draw(st.integers(0, 3))):
        messages.append(Message(role="user", content=(TextBlock(text=draw(texts)),)))
        said = [ReasoningBlock(text=draw(texts))] if draw(st.booleans()) else []
        said += [TextBlock(text=draw(texts))] if draw(st.booleans()) else []
        calls = [
            ToolCallBlock(id=f"call-{number}-{at}", name="run", arguments=draw(arguments))
            for at in range(draw(st.integers(0, 2)))
        ]
        if said or calls:
            messages.append(Message(role="assistant", content=(*said, *calls)))
        for call in calls:
            content = (TextBlock(text=draw(texts)),)
            result = ToolResultPart(call_id=call.id, content=content, is_error=draw(st.booleans()))
            messages.append(Message(role="tool", content=(result,)))
    messages.append(Message(role="user", content=(TextBlock(text=draw(texts)),)))
    tool = Tool(name="run", description="Run.", input_schema={"type": "object"})
    return Request(system=("You are.",), tools=(tool,), messages=tuple(messages), params={})


def asked_in(name, request):
    """What a server reads when an agent asks this in a dialect."""
    return DIALECTS[name].parse_request(DIALECTS[name].render_request(request))


@pytest.mark.parametrize(("spoken", "recorded"), PAIRS)
@settings(deadline=None, max_examples=40)
@given(request=conversations())
def test_a_conversation_is_the_same_in_whichever_dialect_it_was_told(spoken, recorded, request):
    live, old = (common_request(asked_in(name, request), (spoken, recorded)) for name in (spoken, recorded))
    assert live == old
    assert common_request(old, (spoken, recorded)) == old


@pytest.mark.parametrize(("spoken", "recorded"), PAIRS)
@settings(deadline=None, max_examples=20)
@given(request=conversations(), text=texts, data=st.data())
def test_another_word_anywhere_is_seen(spoken, recorded, request, text, data):
    """Prompts and results are what the agent says; a changed one must not get lost on the way."""
    at = data.draw(st.integers(0, len(request.messages) - 1))
    (*parts, last) = request.messages[at].content
    changed = {
        TextBlock: lambda: TextBlock(text=last.text + text),
        ReasoningBlock: lambda: ReasoningBlock(text=last.text + text),
        ToolCallBlock: lambda: msgspec.structs.replace(last, name="walk"),
        ToolResultPart: lambda: msgspec.structs.replace(last, content=(TextBlock(text=last.content[0].text + text),)),
    }[type(last)]()
    messages = list(request.messages)
    messages[at] = msgspec.structs.replace(messages[at], content=(*parts, changed))
    other = msgspec.structs.replace(request, messages=tuple(messages))
    pair = (spoken, recorded)
    assert common_request(asked_in(spoken, other), pair) != common_request(asked_in(recorded, request), pair)


@pytest.mark.parametrize(
    ("dialect", "other", "params", "common"),
    [
        (
            "openai-chat",
            "gemini",
            {"model": "m", "max_tokens": 5, "stream": True, "stream_options": {"include_usage": True}, "user": "u"},
            {"max_tokens": 5, "model": "m", "stream": True},
        ),
        (
            "gemini",
            "openai-chat",
            {"model": "m", "stream": True, "alt": "sse", "generationConfig": {"maxOutputTokens": 5, "topK": 3}},
            {"max_tokens": 5, "model": "m", "stream": True},
        ),
        ("openai-chat", "openai-responses", {"max_completion_tokens": 5, "n": 2}, {"max_tokens": 5}),
        ("openai-responses", "openai-chat", {"reasoning": {"effort": "low"}}, {"reasoning_effort": "low"}),
        ("openai-chat", "openai-responses", {"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
        ("openai-chat", "anthropic-messages", {"reasoning_effort": "low", "seed": 1}, {}),
        ("anthropic-messages", "gemini", {"top_k": 3, "stop_sequences": ["a"]}, {"stop": ["a"], "top_k": 3}),
        ("gemini", "anthropic-messages", {"generationConfig": {"topK": 3, "topP": 1}}, {"top_k": 3, "top_p": 1}),
        ("openai-chat", "gemini", {"nobody_knows": 1}, {"nobody_knows": 1}),
        ("gemini", "openai-chat", {"generationConfig": {"nobodyKnows": 1}}, {"generationConfig.nobodyKnows": 1}),
    ],
)  # fmt: skip
def test_parameters_go_by_neutral_names(dialect, other, params, common):
    assert list(common_params(params, (other, dialect)).items()) == list(common.items())
    assert common_params(params, (dialect, other)) == common


def test_what_is_left_out_is_named():
    params = {"stream_options": {}, "seed": 1, "max_tokens": 5, "generationConfig": {}}
    assert left_out(paths_of(params, "openai-chat"), "openai-chat", ("gemini", "openai-chat")) == ["stream_options"]
    assert left_out(["seed"], "openai-chat", ("anthropic-messages", "openai-chat")) == ["seed"]
    told = {"generationConfig": {"topK": 1, "maxOutputTokens": 1}}
    assert left_out(paths_of(told, "gemini"), "gemini", ("gemini", "openai-chat")) == ["generationConfig.topK"]


def test_the_tables_name_every_dialect_and_no_path_twice():
    assert UNSHARED.keys() == DIALECTS.keys()
    for name in DIALECTS:
        spelled = [path for row in SPELLINGS.values() for path in row.get(name, ())]
        assert len(spelled) == len(set(spelled))
        assert not set(spelled) & UNSHARED[name]
    assert {name for row in SPELLINGS.values() for name in row} <= DIALECTS.keys()
    assert all(len(row) > 1 for row in SPELLINGS.values()), "one dialect's own parameter stands in UNSHARED"


def test_what_a_dialect_cannot_say_at_all():
    """A result that the assistant says: some of the dialects have a place for it."""
    odd = Message(role="assistant", content=(ToolResultPart(call_id="1", content=()),))
    request = Request(system=(), tools=(), messages=(odd,), params={})
    with pytest.raises(ValueError, match="holds no ToolResultPart"):
        common_request(request, ("openai-chat", "gemini"))


CALL = [
    {"type": "block-start", "index": 0, "blockType": "tool-call"},
    {"type": "tool-call-delta", "index": 0, "id": "c", "name": "run", "argumentsDelta": '{"a": 1}'},
    {
        "type": "block-end",
        "index": 0,
        "block": {"type": "tool-call", "id": "c", "name": "run", "arguments": '{"a": 1}'},
    },
    {"type": "usage", "usage": {"inputTokens": 3, "outputTokens": 2}},
    {"type": "finish", "reason": {"kind": "tool-calls"}},
]


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("streamed", [True, False])
def test_an_answer_arrives(name, streamed):
    chunks = chunks_from_json(CALL)
    assert arrives(chunks, name, streamed) == comparable(chunks)


@pytest.mark.parametrize(
    ("name", "kept"),
    [("openai-chat", True), ("openai-responses", False), ("anthropic-messages", True), ("gemini", False)],
)
def test_a_finish_that_a_dialect_has_no_word_for_is_seen(name, kept):
    """Calls that end as a plain stop: two dialects tell by the calls themselves."""
    chunks = chunks_from_json([*CALL[:-1], {"type": "finish", "reason": {"kind": "stop"}}])
    assert (arrives(chunks, name) == comparable(chunks)) is kept


@pytest.mark.parametrize("name", DIALECTS)
def test_a_failure_arrives_by_its_code(name):
    error = ProviderError("RATE_LIMIT", "slow down", None)
    assert failure_arrives(error, name).code == "RATE_LIMIT"
    lost = ProviderError("STREAM_CLOSED", "gone", None)
    assert failure_arrives(lost, name) == lost
