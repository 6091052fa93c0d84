"""OpenAI responses: bodies as clients send them, read and written back."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_dialects import (
    DIALECTS,
    DialectError,
    ImagePart,
    Message,
    OpaquePart,
    ReasoningBlock,
    Record,
    Request,
    TextBlock,
    Tool,
    ToolCallBlock,
    ToolResultPart,
    strip_volatile,
)

DIALECT = DIALECTS["openai-responses"]


def user(content, **members):
    return {"type": "message", "role": "user", "content": content, **members}


def assistant(content, **members):
    return {"type": "message", "role": "assistant", "content": content, **members}


def said(*parts):
    return Message(role="assistant", content=parts)


GO = user("go")
GOING = Message(role="user", content=(TextBlock(text="go"),))
ANNOTATED = {"type": "output_text", "text": "so", "annotations": []}
CALL = {"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{ }"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "a.txt"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}


def check_items(items, messages, rendered=None):
    """Items of the input mean ``messages``, and are written back as they came or as ``rendered``."""
    request = DIALECT.parse_request({"input": [GO, *items]})
    assert request.messages == (GOING, *messages)
    assert DIALECT.render_request(request) == {"input": [GO, *(rendered or items)]}


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (GO, GOING),
        (user(""), Message(role="user", content=(TextBlock(text=""),))),
        (user([]), Message(role="user", content=())),
        (
            user("x", id="msg_1", status="completed"),
            Message(role="user", content=(TextBlock(text="x"),), extra={"itemId": "msg_1", "status": "completed"}),
        ),
        (
            user([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b", "x": 1}]),
            Message(role="user", content=(TextBlock(text="a"), TextBlock(text="b", extra={"x": 1}))),
        ),
        (
            user([{"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "low"}]),
            Message(role="user", content=(ImagePart(media_type="image/png", data="aGk=", extra={"detail": "low"}),)),
        ),
        (
            user(
                [
                    {"type": "input_image", "image_url": "https://e.invalid/a", "detail": "auto"},
                    {"type": "input_image", "file_id": "f", "detail": "auto"},
                    {"type": "input_file", "filename": "a.pdf", "file_data": "x"},
                    {"type": "input_image", "image_url": "https://e.invalid/a", "data": "x"},
                ]
            ),
            Message(
                role="user",
                content=(
                    ImagePart(url="https://e.invalid/a", extra={"detail": "auto"}),
                    OpaquePart(value={"type": "input_image", "file_id": "f", "detail": "auto"}),
                    OpaquePart(value={"type": "input_file", "filename": "a.pdf", "file_data": "x"}),
                    OpaquePart(value={"type": "input_image", "image_url": "https://e.invalid/a", "data": "x"}),
                ),
            ),
        ),
        (
            {"type": "message", "role": "system", "content": "late"},
            Message(role="system", content=(TextBlock(text="late"),)),
        ),
        (
            {"type": "message", "role": "developer", "content": "late"},
            Message(role="system", content=(TextBlock(text="late"),), extra={"wireRole": "developer"}),
        ),
        (OUTPUT, Message(role="tool", content=(ToolResultPart(call_id="c", content=(TextBlock(text="a.txt"),)),))),
        (
            OUTPUT | {"id": "fco_1", "output": [{"type": "input_text", "text": "a"}, {"type": "input_file"}]},
            Message(
                role="tool",
                content=(
                    ToolResultPart(
                        call_id="c", content=(TextBlock(text="a"), OpaquePart(value={"type": "input_file"}))
                    ),
                ),
                extra={"itemId": "fco_1"},
            ),
        ),
        (
            {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"},
            Message(
                role="tool",
                content=(ToolResultPart(call_id="c", content=(TextBlock(text="ok"),)),),
                extra={"itemType": "custom_tool_call_output"},
            ),
        ),
        (
            OUTPUT | {"role": "user"},
            Message(role="tool", content=(OpaquePart(value=OUTPUT | {"role": "user"}),)),
        ),
        (
            {"type": "local_shell_call_output", "id": "x", "output": "{}"},
            Message(
                role="tool",
                content=(OpaquePart(value={"type": "local_shell_call_output", "id": "x", "output": "{}"}),),
            ),
        ),
    ],
)
def test_items_beside_what_the_model_said(item, message):
    check_items([item], [message])


@pytest.mark.parametrize(
    ("item", "part"),
    [
        (assistant("so"), TextBlock(text="so")),
        (assistant([ANNOTATED]), TextBlock(text="so", extra={"annotations": []})),
        (
            assistant([ANNOTATED], id="msg_1", status="completed", phase="commentary"),
            TextBlock(
                text="so",
                extra={"itemId": "msg_1", "status": "completed", "phase": "commentary", "annotations": []},
            ),
        ),
        (
            THOUGHT | {"encrypted_content": "sig", "status": None},
            ReasoningBlock(text="hm", signature="sig", extra={"itemId": "rs_1", "status": None}),
        ),
        (
            THOUGHT | {"summary": [*THOUGHT["summary"], *THOUGHT["summary"]], "content": [{"type": "reasoning_text"}]},
            ReasoningBlock(text="hm\n\nhm", extra={"itemId": "rs_1", "content": [{"type": "reasoning_text"}]}),
        ),
        (THOUGHT | {"summary": []}, ReasoningBlock(text="", extra={"itemId": "rs_1"})),
        (CALL, ToolCallBlock(id="c", name="ls", arguments="{ }")),
        (
            CALL | {"id": "fc_1", "status": "completed", "namespace": "n"},
            ToolCallBlock(
                id="c",
                name="ls",
                arguments="{ }",
                extra={"itemId": "fc_1", "status": "completed", "namespace": "n"},
            ),
        ),
        (
            {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "patch", "input": "***"},
            ToolCallBlock(
                id="c", name="patch", arguments="***", extra={"itemType": "custom_tool_call", "itemId": "ctc_1"}
            ),
        ),
    ],
)
def test_what_the_model_said_is_read_and_written_back(item, part):
    check_items([item], [said(part)])


OPAQUE = [
    {"type": "item_reference", "id": "msg_1"},
    {"id": "msg_1"},
    {"type": None, "id": "msg_1"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}},
    {"type": "of_tomorrow", "output": [1]},
    {"type": 5},
    assistant([ANNOTATED, ANNOTATED]),
    assistant([{"type": "refusal", "refusal": "no"}]),
    assistant([ANNOTATED | {"of_tomorrow": 1}]),
    assistant([ANNOTATED], annotations=[1]),
    assistant([], id="msg_1"),
    THOUGHT | {"signature": "x"},
    CALL | {"type": "custom_tool_call", "input": "x"},
    THOUGHT | {"summary": [{"type": "of_tomorrow", "text": "hm"}]},
    THOUGHT | {"summary": [{"type": "summary_text", "text": "hm", "x": 1}]},
]


@pytest.mark.parametrize("item", OPAQUE, ids=json.dumps)
def test_what_is_not_understood_is_kept_whole(item):
    check_items([item], [said(OpaquePart(value=item))])


def test_what_the_model_said_at_once_is_one_message():
    """And calls that are answered one by one are as many."""
    second = CALL | {"call_id": "d"}
    thought = ReasoningBlock(text="hm", extra={"itemId": "rs_1"})
    calls = [ToolCallBlock(id=at, name="ls", arguments="{ }") for at in "cd"]
    results = [
        Message(role="tool", content=(ToolResultPart(call_id=at, content=(TextBlock(text="a.txt"),)),)) for at in "cd"
    ]
    outputs = [OUTPUT, OUTPUT | {"call_id": "d"}]
    check_items(
        [THOUGHT, assistant("so"), CALL, second, *outputs], [said(thought, TextBlock(text="so"), *calls), *results]
    )
    check_items(
        [CALL, outputs[0], second, outputs[1], assistant("so")],
        [said(calls[0]), results[0], said(calls[1]), results[1], said(TextBlock(text="so"))],
    )


@pytest.mark.parametrize(
    ("item", "rendered"),
    [
        ({"role": "user", "content": "go"}, GO),
        ({"role": "user", "content": [{"type": "input_text", "text": "go"}]}, GO),
        ({"role": "user", "content": None}, user([])),
        ({"role": "assistant", "content": [{"type": "output_text", "text": "so"}]}, assistant("so")),
        ({"role": "assistant", "content": []}, assistant([])),
        (THOUGHT | {"encrypted_content": None}, THOUGHT),
        (CALL | {"arguments": None}, CALL | {"arguments": ""}),
        (OUTPUT | {"output": [{"type": "input_text", "text": "a.txt"}]}, OUTPUT),
        (user([{"type": "input_text", "text": "go", "prompt_cache_breakpoint": {"mode": "explicit"}}]), GO),
    ],
)
def test_two_spellings_of_one_item_are_equal(item, rendered):
    one = DIALECT.parse_request({"input": [GO, item]})
    assert DIALECT.render_request(one)["input"][1] == rendered
    assert DIALECT.parse_request({"input": [GO, rendered]}) == one


def test_a_bare_string_is_what_the_user_said():
    request = DIALECT.parse_request({"model": "m", "input": "go", "previous_response_id": "resp_1", "tools": None})
    params = {"model": "m", "previous_response_id": "resp_1"}
    assert request == Request(system=(), tools=(), messages=(GOING,), params=params)
    assert DIALECT.render_request(request) == params | {"input": [GO]}


@pytest.mark.parametrize("body", [{}, {"input": None}, {"input": []}, {"instructions": None}])
def test_a_request_may_say_nothing(body):
    assert DIALECT.parse_request(body) == Request(system=(), tools=(), messages=(), params={})


def test_instructions_and_leading_messages_are_the_header():
    parts = [{"type": "input_text", "text": "b"}, {"type": "input_text", "text": "c"}]
    leading = [{"role": "system", "content": "a"}, {"role": "developer", "content": parts}]
    late = {"type": "message", "role": "system", "content": "late"}
    request = DIALECT.parse_request({"instructions": "first", "input": [*leading, GO, late]})
    assert request.system == ("first", "a", "b", "c")
    assert [message.role for message in request.messages] == ["user", "system"]
    body = DIALECT.render_request(request)
    assert body["instructions"] == "first"
    assert [item["content"] for item in body["input"]] == ["a", "b", "c", "go", "late"]
    assert DIALECT.parse_request(body) == request


def test_a_marked_system_message_is_no_header():
    marked = {"type": "message", "role": "developer", "content": "a", "id": "msg_1"}
    request = DIALECT.parse_request({"input": [marked, GO]})
    assert (request.system, len(request.messages)) == ((), 2)
    assert DIALECT.render_request(request)["input"] == [marked, GO]


def test_tools_that_are_no_functions_are_kept_whole():
    search = {"type": "web_search", "filters": {}}
    custom = {"type": "custom", "name": "patch", "format": {"type": "grammar"}}
    plain = {"type": "function", "name": "ls", "strict": True, "parameters": None}
    full = {"type": "function", "name": "pwd", "description": "where", "parameters": {"type": "object"}}
    request = DIALECT.parse_request({"input": [], "tools": [search, custom, plain, full]})
    assert request.tools == (
        Tool(name="web_search", extra=search),
        Tool(name="patch", extra=custom),
        Tool(name="ls", input_schema=None, extra={"strict": True}),
        Tool(name="pwd", description="where", input_schema={"type": "object"}),
    )
    assert DIALECT.render_request(request)["tools"] == [search, custom, plain, full]


def test_signatures_are_volatile():
    def unsigned(signature):
        items = [GO, THOUGHT, OPAQUE[3]]
        signed = [item | {"encrypted_content": signature} if item is not GO else item for item in items]
        return strip_volatile(DIALECT.parse_request({"input": signed}))

    assert unsigned("one") == unsigned("other")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], r"^\$: must be an object, is list"),
        ({"input": {}}, r"^\$\.input: must be an array, is dict"),
        ({"input": [1]}, r"^\$\.input\[0\]: must be an object"),
        ({"input": [{"role": "bot"}]}, r"^\$\.input\[0\]\.role: 'bot' is none of system, developer"),
        ({"input": [user(5)]}, r"^\$\.input\[0\]\.content: must be an array"),
        ({"input": [user([5])]}, r"^\$\.input\[0\]\.content\[0\]: must be an object"),
        ({"input": [assistant(5)]}, r"^\$\.input\[0\]\.content: must be an array"),
        ({"input": [assistant([5])]}, r"^\$\.input\[0\]\.content\[0\]: must be an object"),
        ({"input": [user([{"type": "input_image", "image_url": 5}])]}, r"\.content\[0\]\.image_url: must be a string"),
        ({"input": [CALL | {"call_id": 5}]}, r"^\$\.input\[0\]\.call_id: must be a string"),
        ({"input": [CALL | {"arguments": {}}]}, r"^\$\.input\[0\]\.arguments: must be a string"),
        ({"input": [OUTPUT | {"output": 5}]}, r"^\$\.input\[0\]\.output: must be an array"),
        (
            {"input": [THOUGHT | {"summary": [{"type": "summary_text", "text": 5}]}]},
            r"^\$\.input\[0\]\.summary\[0\]\.text: must be a string",
        ),
        ({"instructions": ["a"]}, r"^\$\.instructions: must be a string"),
        ({"tools": [{"type": "function", "name": 5}]}, r"^\$\.tools\[0\]\.name"),
    ],
)
def test_a_malformed_request_is_named(body, message):
    with pytest.raises(DialectError, match=message):
        DIALECT.parse_request(body)


@pytest.mark.parametrize(
    ("message", "what"),
    [
        (Message(role="user", content=(ToolResultPart(call_id="c", content=()),)), "ToolResultPart here"),
        (said(ImagePart(url="https://e.invalid/a")), "what a model said holds no ImagePart"),
    ],
)
def test_a_request_has_no_place_for_some_parts(message, what):
    with pytest.raises(ValueError, match=what):
        DIALECT.render_request(Request(system=(), tools=(), messages=(message,), params={}))


def test_what_other_dialects_say_has_a_place():
    """Thinking of a user, and a result of a tool that is no result."""
    stray = (
        Message(role="user", content=(ReasoningBlock(text="hm"), TextBlock(text="go"))),
        Message(role="tool", content=(TextBlock(text="x"),)),
    )
    body = DIALECT.render_request(Request(system=(), tools=(), messages=stray, params={}))
    assert body["input"] == [
        user([{"type": "input_text", "text": "hm"}, {"type": "input_text", "text": "go"}]),
        user("x"),
    ]


# Any item of the wire: known types with members that are right, odd, or missing.
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text("ab\n", max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("xyz"), inner, max_size=2)),
    max_leaves=3,
)
texts = st.text("ab\n", max_size=4)
TYPES = ["message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "item_reference", "new"]
content = st.one_of(
    texts,
    st.lists(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["input_text", "output_text", "refusal", "input_image", "new"])},
            optional={"text": texts, "annotations": values, "image_url": texts, "x": values},
        ),
        max_size=2,
    ),
)
summaries = st.lists(
    st.fixed_dictionaries({"type": st.just("summary_text"), "text": texts}, optional={"x": values}), max_size=2
)
items = st.fixed_dictionaries(
    {"type": st.sampled_from(TYPES), "role": st.sampled_from(["user", "assistant", "system", "developer"])},
    optional={
        "id": texts,
        "content": content,
        "output": content,
        "summary": summaries,
        "encrypted_content": texts,
        "call_id": texts,
        "name": texts,
        "arguments": texts,
        "input": texts,
        "status": values,
        "y": values,
    },
)


def check_members(record):
    """What is kept of the wire never goes by the name of a member of ours: JSON could not say both."""
    assert not record.extra.keys() & {*record.__struct_encode_fields__, record.__struct_config__.tag_field}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        for inner in value if isinstance(value, tuple) else ():
            if isinstance(inner, Record):
                check_members(inner)


@settings(deadline=None, max_examples=300)
@given(
    body=st.fixed_dictionaries({"input": st.lists(items, max_size=4)}, optional={"instructions": texts, "x": values})
)
def test_any_request_means_the_same_once_written_back(body):
    once = DIALECT.parse_request(body)
    assert DIALECT.parse_request(DIALECT.render_request(once)) == once
    check_members(once)
