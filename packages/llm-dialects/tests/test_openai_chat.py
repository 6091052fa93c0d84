import json

import pytest
from llm_dialects import (
    DIALECTS,
    Answer,
    DialectError,
    ImagePart,
    Message,
    OpaquePart,
    ReasoningBlock,
    Request,
    TextBlock,
    Tool,
    ToolCallBlock,
    ToolResultPart,
    chunks_from_json,
    to_json,
)

DIALECT = DIALECTS["openai-chat"]
ANSWER = Answer(id="chatcmpl-1", model="m", created=7)
HEAD = '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":['

CHUNKS = chunks_from_json(
    [
        {"type": "block-start", "index": 0, "blockType": "text"},
        {"type": "text-delta", "index": 0, "text": "zwölf"},
        {"type": "block-start", "index": 1, "blockType": "tool-call"},
        {"type": "tool-call-delta", "index": 1, "id": "c", "name": "ls", "argumentsDelta": "{"},
        {"type": "tool-call-delta", "index": 1, "id": "c", "name": "ls", "argumentsDelta": "}"},
        {"type": "block-end", "index": 0, "block": {"type": "text", "text": "zwölf"}},
        {"type": "block-end", "index": 1, "block": {"type": "tool-call", "id": "c", "name": "ls", "arguments": "{}"}},
        {"type": "usage", "usage": {"inputTokens": 5, "outputTokens": 2, "cacheReadTokens": 3}},
        {"type": "finish", "reason": {"kind": "tool-calls"}},
    ]
)


def event(delta, finish="null"):
    choice = f'{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}'
    return f'data: {HEAD}{choice}],"usage":null}}\n\n'


USAGE = '{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":3}}'
GOLDEN = [
    event('{"role":"assistant","content":""}'),
    event('{"content":"zwölf"}'),
    event('{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"ls","arguments":"{"}}]}'),
    event('{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}'),
    event("{}", '"tool_calls"'),
    f'data: {HEAD}],"usage":{USAGE}}}\n\n',
    "data: [DONE]\n\n",
]


def test_the_bytes_of_a_stream():
    assert [data.decode() for data in DIALECT.encode_stream(CHUNKS, ANSWER)] == GOLDEN


def test_the_bytes_of_a_message():
    message = '{"role":"assistant","content":"zwölf","refusal":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"ls","arguments":"{}"}}]}'  # noqa: E501
    choice = f'{{"index":0,"message":{message},"logprobs":null,"finish_reason":"tool_calls"}}'
    assert DIALECT.encode_message(CHUNKS, ANSWER).decode() == (
        f'{{"id":"chatcmpl-1","object":"chat.completion","created":7,"model":"m","choices":[{choice}],"usage":{USAGE}}}'
    )


def test_half_a_surrogate_pair_goes_through():
    """Pieces that were cut inside a character, as JavaScript programs cut them."""
    chunks = chunks_from_json(
        [
            {"type": "block-start", "index": 0, "blockType": "text"},
            {"type": "text-delta", "index": 0, "text": "\ud83d"},
            {"type": "text-delta", "index": 0, "text": "\ude00"},
        ]
    )
    assert decode(b"".join(DIALECT.encode_stream(chunks, ANSWER)), 1) == list(chunks)


def decode(wire, size):
    decoder = DIALECT.decoder()
    parts = [wire[at : at + size] for at in range(0, len(wire), size)]
    return [chunk for part in parts for chunk in decoder.feed(part)] + decoder.close()


def check_stream(bodies, expected):
    """Decode events whole, byte by byte, and with a tail after their end."""
    wire = "".join(f"data: {body if isinstance(body, str) else json.dumps(body)}\n\n" for body in bodies).encode()
    for size in (len(wire), 1):
        assert [brief(chunk) for chunk in decode(wire, size)] == expected
    assert [brief(chunk) for chunk in decode(wire + b'data: {"choices":', 7)] == expected
    if bodies[-1] == "[DONE]":
        assert [brief(chunk) for chunk in decode(wire + b"data: {}\n\ndata: garbage\n\n", 7)] == expected


def brief(chunk):
    return {key: value for key, value in to_json(chunk).items() if key != "type" or "index" not in to_json(chunk)}


def said(delta, finish=None, **members):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **members}


def call(index, arguments, **members):
    return {
        "tool_calls": [
            {"index": index, "function": {"arguments": arguments, **members}}
            | {k: v for k, v in members.items() if k == "id"}
        ]
    }


START = {"index": 0, "blockType": "text"}
HI = {"index": 0, "text": "hi"}
END = {"index": 0, "block": {"type": "text", "text": "hi"}}
STOP = {"type": "finish", "reason": {"kind": "stop"}}
COUNTS = {"prompt_tokens": 5, "completion_tokens": 2}


@pytest.mark.parametrize(
    ("bodies", "expected"),
    [
        (["[DONE]"], []),
        (
            [said({"role": "assistant", "content": ""}), said({"content": "hi"}), said({}, "stop"), "[DONE]"],
            [START, HI, END, STOP],
        ),
        # No [DONE], and everything in one event.
        ([said({"content": "hi"}, "stop")], [START, HI, END, STOP]),
        # Cut off: no end, no finish.
        ([said({"content": "hi"})], [START, HI]),
        # [DONE] without a reason to stop: blocks end, but the answer is not finished.
        ([said({"content": "hi"}), "[DONE]"], [START, HI, END]),
        # Nulls everywhere, another choice, usage beside the finish, an unknown finish.
        (
            [
                said({"content": None, "tool_calls": None, "refusal": None, "reasoning_content": None}, usage=None),
                {"choices": [{"index": 1, "delta": {"content": "other"}}]},
                said({"content": "hi"}, "eos", usage=COUNTS),
                "[DONE]",
            ],
            [
                START,
                HI,
                END,
                {"type": "usage", "usage": {"inputTokens": 5, "outputTokens": 2}},
                {"type": "finish", "reason": {"kind": "eos"}},
            ],
        ),
        # A refusal is text.
        ([said({"refusal": "hi"}, "stop")], [START, HI, END, STOP]),
        # What comes after an error is not read.
        (
            [
                said({"content": "hi"}),
                {"error": {"message": "m", "type": "server_error", "code": None}},
                said({"content": "x"}),
            ],
            [
                START,
                HI,
                {"type": "finish", "reason": {"kind": "error", "failure": {"message": "m", "code": "SERVER_ERROR"}}},
            ],
        ),
    ],
)
def test_streams_as_providers_send_them(bodies, expected):
    check_stream(bodies, expected)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_both_names_of_thinking_are_read(name):
    check_stream(
        [said({name: "hm"})],
        [{"index": 0, "blockType": "reasoning"}, {"index": 0, "text": "hm"}],
    )


def test_parallel_calls_by_turns():
    check_stream(
        [
            said(call(0, "", id="a", name="ls")),
            said(call(1, "{", id="b", name="pwd")),
            said(call(0, "1")),
            said(call(1, "}")),
        ],
        [
            {"index": 0, "blockType": "tool-call"},
            {"index": 0, "id": "a", "name": "ls", "argumentsDelta": ""},
            {"index": 1, "blockType": "tool-call"},
            {"index": 1, "id": "b", "name": "pwd", "argumentsDelta": "{"},
            {"index": 0, "id": "a", "name": "ls", "argumentsDelta": "1"},
            {"index": 1, "id": "b", "name": "pwd", "argumentsDelta": "}"},
        ],
    )


def test_calls_that_are_all_numbered_zero_are_told_apart_by_id():
    check_stream(
        [said(call(0, "1", id="a", name="ls")), said(call(0, "2", id="b", name="ls")), said(call(0, "3", id="b"))],
        [
            {"index": 0, "blockType": "tool-call"},
            {"index": 0, "id": "a", "name": "ls", "argumentsDelta": "1"},
            {"index": 1, "blockType": "tool-call"},
            {"index": 1, "id": "b", "name": "ls", "argumentsDelta": "2"},
            {"index": 1, "id": "b", "name": "ls", "argumentsDelta": "3"},
        ],
    )


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (COUNTS, {"inputTokens": 5, "outputTokens": 2}),
        (
            COUNTS | {"prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 1},
            {"inputTokens": 1, "outputTokens": 2, "cacheReadTokens": 4},
        ),
        (
            COUNTS
            | {"prompt_tokens_details": {"cached_tokens": 9}, "completion_tokens_details": {"reasoning_tokens": 0}},
            {"inputTokens": 0, "outputTokens": 2, "cacheReadTokens": 9, "reasoningTokens": 0},
        ),
        ({"prompt_tokens": 5, "prompt_tokens_details": None}, {"inputTokens": 5, "outputTokens": 0}),
    ],
)
def test_usages_as_providers_send_them(usage, expected):
    check_stream([{"choices": [], "usage": usage}, "[DONE]"], [{"type": "usage", "usage": expected}])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{", "event 1: not JSON"),
        ("[]", "event 1: must be an object, is list"),
        ('{"choices":5}', r"event 1\.choices: must be an array, is int"),
        ('{"choices":[5]}', r"event 1\.choices\[0\]: must be an object"),
        ('{"choices":[{"delta":{"content":[1]}}]}', r"event 1\.choices\[0\]\.delta\.content: must be a string"),
        (
            '{"choices":[{"delta":{"tool_calls":[5]}}]}',
            r"event 1\.choices\[0\]\.delta\.tool_calls\[0\]: must be an object",
        ),
        ('{"usage":{"prompt_tokens":"5"}}', r"event 1\.usage\.prompt_tokens: must be a whole number"),
    ],
)
def test_a_malformed_event_is_named(body, message):
    with pytest.raises(DialectError, match=message):
        DIALECT.decoder().feed(f"data: {body}\n\n".encode())


def test_a_malformed_message_is_named():
    with pytest.raises(DialectError, match="body: not JSON"):
        DIALECT.decode_message(b"<html>")
    with pytest.raises(DialectError, match=r"\$\.choices\[0\]\.message\.tool_calls\[0\]\.function: must be an object"):
        DIALECT.decode_message(b'{"choices":[{"message":{"tool_calls":[{}]}}]}')


# ── Requests ────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_message(wire, expected, rendered=None):
    request = DIALECT.parse_request({"messages": [{"role": "user", "content": "go"}, wire]})
    assert request.messages[1] == expected
    assert DIALECT.render_request(request)["messages"][1] == (rendered or wire)


USER = {"role": "user", "content": "go"}
CALL = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{ }"}}
CUSTOM = {"id": "c", "type": "custom", "custom": {"name": "x", "input": "y"}}


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        (USER, Message(role="user", content=(TextBlock(text="go"),))),
        ({"role": "user", "content": ""}, Message(role="user", content=(TextBlock(text=""),))),
        (
            {"role": "user", "content": "x", "name": "n"},
            Message(role="user", content=(TextBlock(text="x"),), extra={"name": "n"}),
        ),
        (
            {"role": "developer", "content": "x"},
            Message(role="system", content=(TextBlock(text="x"),), extra={"wireRole": "developer"}),
        ),
        ({"role": "assistant", "content": None}, Message(role="assistant", content=())),
        (
            {"role": "assistant", "content": "so", "reasoning_content": "hm", "tool_calls": [CALL, CUSTOM]},
            Message(
                role="assistant",
                content=(
                    ReasoningBlock(text="hm"),
                    TextBlock(text="so"),
                    ToolCallBlock(id="c", name="ls", arguments="{ }"),
                    OpaquePart(value=CUSTOM),
                ),
            ),
        ),
        (
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}}],
            },
            Message(role="user", content=(ImagePart(media_type="image/png", data="aGk=", extra={"detail": "low"}),)),
        ),
        (
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "https://e.invalid/a"}},
                    {"type": "file", "file": {}},
                ],
            },
            Message(
                role="user",
                content=(ImagePart(url="https://e.invalid/a"), OpaquePart(value={"type": "file", "file": {}})),
            ),
        ),
        (
            {
                "role": "tool",
                "tool_call_id": "c",
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            },
            Message(
                role="tool", content=(ToolResultPart(call_id="c", content=(TextBlock(text="a"), TextBlock(text="b"))),)
            ),
        ),
    ],
)
def test_messages_are_read_and_written_back(wire, expected):
    check_message(wire, expected)


@pytest.mark.parametrize(
    ("wire", "rendered"),
    [
        ({"role": "user", "content": [{"type": "text", "text": "go"}]}, USER),
        ({"role": "user", "content": [{"type": "text", "text": "go", "cache_control": {"type": "ephemeral"}}]}, USER),
        ({"role": "user", "content": None}, {"role": "user", "content": []}),
        (
            {"role": "assistant", "content": "x", "reasoning": "hm", "tool_calls": None},
            {"role": "assistant", "content": "x", "reasoning_content": "hm"},
        ),
    ],
)
def test_two_spellings_of_one_message_are_equal(wire, rendered):
    one = DIALECT.parse_request({"messages": [USER, wire]})
    assert DIALECT.render_request(one)["messages"][1] == rendered
    assert DIALECT.parse_request({"messages": [USER, rendered]}) == one


def test_only_leading_system_messages_are_the_header():
    parts = [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]
    request = DIALECT.parse_request(
        {
            "messages": [
                {"role": "system", "content": "a"},
                {"role": "developer", "content": parts},
                USER,
                {"role": "system", "content": "late"},
            ]
        }
    )
    assert request.system == ("a", "b", "c")
    assert [message.role for message in request.messages] == ["user", "system"]


def test_tools_that_are_no_functions_are_kept_whole():
    search = {"type": "web_search", "filters": {}}
    marked = {"type": "function", "function": {"name": "x"}, "own": 1}
    plain = {"type": "function", "function": {"name": "ls", "strict": True}}
    request = DIALECT.parse_request({"messages": [], "tools": [search, marked, plain]})
    assert request.tools == (
        Tool(name="web_search", extra=search),
        Tool(name="x", extra=marked),
        Tool(name="ls", extra={"strict": True}),
    )
    assert DIALECT.render_request(request)["tools"] == [search, marked, plain]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], r"^\$: must be an object, is list"),
        ({"messages": {}}, r"^\$\.messages: must be an array, is dict"),
        ({"messages": [1]}, r"^\$\.messages\[0\]: must be an object"),
        ({"messages": [{"role": "bot"}]}, r"^\$\.messages\[0\]\.role: 'bot' is none of system, developer"),
        ({"messages": [{"role": "user", "content": 5}]}, r"^\$\.messages\[0\]\.content: must be an array"),
        ({"messages": [{"role": "user", "content": [5]}]}, r"^\$\.messages\[0\]\.content\[0\]: must be an object"),
        ({"messages": [{"role": "tool", "tool_call_id": 5}]}, r"^\$\.messages\[0\]\.tool_call_id: must be a string"),
        (
            {"messages": [], "tools": [{"type": "function", "function": {"name": 5}}]},
            r"^\$\.tools\[0\]\.function\.name",
        ),
    ],
)
def test_a_malformed_request_is_named(body, message):
    with pytest.raises(DialectError, match=message):
        DIALECT.parse_request(body)


def test_a_request_has_no_place_for_a_result_elsewhere():
    stray = Request(
        system=(),
        tools=(),
        messages=(Message(role="user", content=(ToolResultPart(call_id="c", content=()),)),),
        params={},
    )
    with pytest.raises(ValueError, match="holds no ToolResultPart here"):
        DIALECT.render_request(stray)
