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
    TextBlock,
    Tool,
    ToolCallBlock,
    ToolResultPart,
    chunks_from_json,
    to_json,
)

DIALECT = DIALECTS["anthropic-messages"]
ANSWER = Answer(id="msg_1", model="m")

CHUNKS = chunks_from_json(
    [
        {"type": "block-start", "index": 0, "blockType": "reasoning"},
        {"type": "reasoning-delta", "index": 0, "text": "hm"},
        {"type": "block-end", "index": 0, "block": {"type": "reasoning", "text": "hm", "signature": "sig"}},
        {"type": "block-start", "index": 1, "blockType": "reasoning"},
        {"type": "block-end", "index": 1, "block": {"type": "reasoning", "text": "", "redactedData": "abc"}},
        {"type": "block-start", "index": 2, "blockType": "text"},
        {"type": "text-delta", "index": 2, "text": "zwölf"},
        {"type": "block-end", "index": 2, "block": {"type": "text", "text": "zwölf"}},
        {"type": "block-start", "index": 3, "blockType": "tool-call"},
        {"type": "tool-call-delta", "index": 3, "id": "c", "name": "ls", "argumentsDelta": ""},
        {"type": "tool-call-delta", "index": 3, "id": "c", "name": "ls", "argumentsDelta": '{"a":1}'},
        {
            "type": "block-end",
            "index": 3,
            "block": {"type": "tool-call", "id": "c", "name": "ls", "arguments": '{"a":1}'},
        },
        {"type": "usage", "usage": {"inputTokens": 5, "outputTokens": 2, "cacheReadTokens": 3, "cacheWriteTokens": 0}},
        {"type": "finish", "reason": {"kind": "tool-calls"}},
    ]
)


def event(kind, members):
    return f'event: {kind}\ndata: {{"type":"{kind}",{members}}}\n\n'


def start(index, block):
    return event("content_block_start", f'"index":{index},"content_block":{block}')


def delta(index, block):
    return event("content_block_delta", f'"index":{index},"delta":{block}')


def stop(index):
    return event("content_block_stop", f'"index":{index}')


CACHE = '"cache_read_input_tokens":3,"cache_creation_input_tokens":0'
MESSAGE = '"id":"msg_1","type":"message","role":"assistant","model":"m"'
GOLDEN = [
    event(
        "message_start",
        f'"message":{{{MESSAGE},"content":[],"stop_reason":null,"stop_sequence":null,'
        f'"usage":{{"input_tokens":5,"output_tokens":0,{CACHE}}}}}',
    ),
    start(0, '{"type":"thinking","thinking":"","signature":""}'),
    delta(0, '{"type":"thinking_delta","thinking":"hm"}'),
    delta(0, '{"type":"signature_delta","signature":"sig"}'),
    stop(0),
    start(1, '{"type":"redacted_thinking","data":"abc"}'),
    stop(1),
    start(2, '{"type":"text","text":""}'),
    delta(2, '{"type":"text_delta","text":"zwölf"}'),
    stop(2),
    start(3, '{"type":"tool_use","id":"c","name":"ls","input":{}}'),
    delta(3, '{"type":"input_json_delta","partial_json":""}'),
    delta(3, '{"type":"input_json_delta","partial_json":"{\\"a\\":1}"}'),
    stop(3),
    event(
        "message_delta",
        f'"delta":{{"stop_reason":"tool_use","stop_sequence":null}},"usage":{{"input_tokens":5,"output_tokens":2,{CACHE}}}',
    ),
    'event: message_stop\ndata: {"type":"message_stop"}\n\n',
]


def test_the_bytes_of_a_stream():
    assert [data.decode() for data in DIALECT.encode_stream(CHUNKS, ANSWER)] == GOLDEN


def test_the_bytes_of_a_stream_are_read_back():
    wire = "".join(GOLDEN).encode()
    for size in (len(wire), 1, 6):
        assert tuple(decode(wire, size)) == CHUNKS
        assert tuple(decode(wire + b"event: ping\ndata: {}\n\ndata: garbage\n\ndata: tail", size)) == CHUNKS


def test_the_bytes_of_a_message():
    content = (
        '[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"redacted_thinking","data":"abc"},'
        '{"type":"text","text":"zwölf"},{"type":"tool_use","id":"c","name":"ls","input":{"a":1}}]'
    )
    assert DIALECT.encode_message(CHUNKS, ANSWER).decode() == (
        f'{{{MESSAGE},"content":{content},"stop_reason":"tool_use","stop_sequence":null,'
        f'"usage":{{"input_tokens":5,"output_tokens":2,{CACHE}}}}}'
    )


def test_blocks_told_by_turns_come_one_after_another():
    by_turns = chunks_from_json(
        [
            {"type": "block-start", "index": 0, "blockType": "text"},
            {"type": "text-delta", "index": 0, "text": "a"},
            {"type": "block-start", "index": 1, "blockType": "text"},
            {"type": "text-delta", "index": 1, "text": "x"},
            {"type": "text-delta", "index": 0, "text": "b"},
        ]
    )
    said = [json.loads(data.partition(b"data: ")[2]) for data in DIALECT.encode_stream(by_turns, ANSWER)]
    assert [(e["type"], e.get("index")) for e in said[1:]] == [
        ("content_block_start", 0),
        ("content_block_delta", 0),
        ("content_block_delta", 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        ("content_block_delta", 1),
    ]


def decode(wire, size):
    decoder = DIALECT.decoder()
    parts = [wire[at : at + size] for at in range(0, len(wire), size)]
    return [chunk for part in parts for chunk in decoder.feed(part)] + decoder.close()


def check_stream(bodies, expected):
    """Decode events whole, byte by byte, and with a tail that is no event yet."""
    wire = "".join(f"event: {body['type']}\ndata: {json.dumps(body)}\n\n" for body in bodies).encode()
    for size in (len(wire), 1):
        assert [to_json(chunk) for chunk in decode(wire, size)] == expected
    assert [to_json(chunk) for chunk in decode(wire + b"event: message_stop\ndata: {", 7)] == expected


def begin(**usage):
    return {"type": "message_start", "message": {"usage": usage}}


def begin_block(index, **block):
    return {"type": "content_block_start", "index": index, "content_block": block}


def end_message(reason, **usage):
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


STOP = {"type": "message_stop"}
FINISH = {"type": "finish", "reason": {"kind": "stop"}}


@pytest.mark.parametrize(
    ("bodies", "expected"),
    [
        ([begin()], []),
        ([begin(), {"type": "ping"}, {"type": "from_the_future"}, STOP], []),
        ([begin(), end_message("end_turn"), STOP, begin()], [FINISH]),
        # No message_stop, but a reason to stop.
        ([begin(), end_message("end_turn")], [FINISH]),
        ([begin(), end_message("pause_turn"), STOP], [{"type": "finish", "reason": {"kind": "pause_turn"}}]),
        # Counts at the start stand until the end replaces them.
        (
            [
                begin(input_tokens=5, output_tokens=1, cache_read_input_tokens=None),
                end_message("end_turn", output_tokens=9),
            ],
            [{"type": "usage", "usage": {"inputTokens": 5, "outputTokens": 9}}, FINISH],
        ),
        # What the client's tools have no part in is left out, and the numbers close up.
        (
            [
                begin_block(0, type="server_tool_use", id="s", name="web_search", input={}),
                {
                    "type": "content_block_delta",
                    "index": 0,
                    "delta": {"type": "input_json_delta", "partial_json": "{}"},
                },
                {"type": "content_block_stop", "index": 0},
                begin_block(1, type="text", text="at once", citations=None),
                {"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {}}},
                {"type": "content_block_stop", "index": 1},
            ],
            [
                {"type": "block-start", "index": 0, "blockType": "text"},
                {"type": "text-delta", "index": 0, "text": "at once"},
                {"type": "block-end", "index": 0, "block": {"type": "text", "text": "at once", "citations": None}},
            ],
        ),
        (
            [
                begin(),
                {"type": "error", "error": {"type": "overloaded_error", "message": "m"}},
                end_message("end_turn"),
                STOP,
            ],
            [{"type": "finish", "reason": {"kind": "error", "failure": {"message": "m", "code": "OVERLOADED"}}}],
        ),
    ],
)
def test_streams_as_providers_send_them(bodies, expected):
    check_stream(bodies, expected)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{", "event 1: not JSON"),
        ("[]", "event 1: must be an object, is list"),
        ('{"type":"message_start"}', r"event 1\.message: must be an object"),
        ('{"type":"content_block_start","content_block":[]}', r"event 1\.content_block: must be an object"),
        ('{"type":"content_block_start","content_block":{"type":"text","text":5}}', r"event 1\.content_block\.text"),
        ('{"type":"message_delta","delta":{"stop_reason":5}}', r"event 1\.delta\.stop_reason: must be a string"),
    ],
)
def test_a_malformed_event_is_named(body, message):
    with pytest.raises(DialectError, match=message):
        DIALECT.decoder().feed(f"event: x\ndata: {body}\n\n".encode())


@pytest.mark.parametrize("arguments", ["", "{}", '{"a":[1,2.5,"ü"]}', "{not json", '"text"', "[1]", "null"])
def test_arguments_that_are_no_object_still_arrive(arguments):
    block = {"type": "tool-call", "id": "c", "name": "ls", "arguments": arguments}
    chunks = chunks_from_json(
        [
            {"type": "block-start", "index": 0, "blockType": "tool-call"},
            {"type": "block-end", "index": 0, "block": block},
            FINISH,
        ]
    )
    said = DIALECT.decode_message(DIALECT.encode_message(chunks, ANSWER))
    assert to_json(said[-2])["block"] == block | {"arguments": arguments or "{}"}


# ── Requests ────────────────────────────────────────────────────────────────────────────────────────────────────────

RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "out"}
TEXT = {"type": "text", "text": "go"}


def result(*content, **members):
    return Message(role="tool", content=(ToolResultPart(call_id="c", content=content, **members),))


def user(*parts, **extra):
    return Message(role="user", content=parts, extra=extra)


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        ({"role": "user", "content": "go"}, (user(TextBlock(text="go")),)),
        ({"role": "user", "content": []}, (user(),)),
        ({"role": "system", "content": "late"}, (Message(role="system", content=(TextBlock(text="late"),)),)),
        (
            {"role": "user", "content": [RESULT, {**RESULT, "is_error": True}, TEXT], "own": 1},
            (
                Message(role="tool", content=result(TextBlock(text="out")).content, extra={"own": 1}),
                result(TextBlock(text="out"), is_error=True),
                user(TextBlock(text="go")),
            ),
        ),
        (
            {"role": "user", "content": [{**RESULT, "content": [TEXT, {"type": "tool_reference", "tool_name": "x"}]}]},
            (result(TextBlock(text="go"), OpaquePart(value={"type": "tool_reference", "tool_name": "x"})),),
        ),
        (
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
                    {"type": "image", "source": {"type": "url", "url": "https://e.invalid/a"}},
                    {"type": "image", "source": {"type": "file", "file_id": "f"}},
                    {"type": "document", "source": {}},
                ],
            },
            (
                user(
                    ImagePart(media_type="image/png", data="aGk="),
                    ImagePart(url="https://e.invalid/a"),
                    OpaquePart(value={"type": "image", "source": {"type": "file", "file_id": "f"}}),
                    OpaquePart(value={"type": "document", "source": {}}),
                ),
            ),
        ),
        (
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "sig"},
                    {"type": "redacted_thinking", "data": "abc"},
                    {"type": "tool_use", "id": "c", "name": "ls", "input": {"p": "ü"}},
                ],
            },
            (
                Message(
                    role="assistant",
                    content=(
                        ReasoningBlock(text="hm", signature="sig"),
                        ReasoningBlock(text="", extra={"redactedData": "abc"}),
                        ToolCallBlock(id="c", name="ls", arguments='{"p":"ü"}'),
                    ),
                ),
            ),
        ),
    ],
)
def test_messages_are_read_and_written_back(wire, expected):
    request = DIALECT.parse_request({"messages": [wire]})
    assert request.messages == expected
    assert DIALECT.render_request(request)["messages"] == [wire]


@pytest.mark.parametrize(
    "wires",
    [
        [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
        [{"role": "user", "content": "a"}, {"role": "user", "content": [RESULT]}],
        [{"role": "user", "content": [RESULT]}, {"role": "user", "content": []}],
        [{"role": "user", "content": [RESULT]}, {"role": "user", "content": "b", "own": 1}],
        [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}],
    ],
)
def test_messages_that_are_not_one_stay_apart(wires):
    request = DIALECT.parse_request({"messages": wires})
    assert DIALECT.render_request(request)["messages"] == wires


def test_the_header_and_its_spellings():
    mark = {"cache_control": {"type": "ephemeral"}}
    plain = DIALECT.parse_request({"system": "a", "messages": [], "max_tokens": 5})
    parts = DIALECT.parse_request({"system": [{"type": "text", "text": "a", **mark}], "messages": [], "max_tokens": 5})
    assert plain == parts
    assert plain.system == ("a",)
    assert plain.params == {"max_tokens": 5}
    assert DIALECT.render_request(plain) == {
        "max_tokens": 5,
        "system": [{"type": "text", "text": "a"}],
        "messages": [],
    }


def test_tools_of_the_provider_are_kept_whole():
    bash = {"type": "bash_20250124", "name": "bash", "own": 1}
    plain = {"name": "ls", "description": "list", "input_schema": {"type": "object"}, "own": 2}
    request = DIALECT.parse_request({"messages": [], "tools": [bash, {**plain, "type": "custom"}]})
    assert request.tools == (
        Tool(name="bash", extra=bash),
        Tool(name="ls", description="list", input_schema={"type": "object"}, extra={"own": 2}),
    )
    assert DIALECT.render_request(request)["tools"] == [bash, plain]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], r"^\$: must be an object, is list"),
        ({"messages": [{"role": "tool"}]}, r"^\$\.messages\[0\]\.role: 'tool' is none of user, assistant, system"),
        ({"messages": [{"role": "user", "content": [5]}]}, r"^\$\.messages\[0\]\.content\[0\]: must be an object"),
        (
            {"messages": [{"role": "user", "content": [{**RESULT, "content": 5}]}]},
            r"\.content\[0\]\.content: must be an array",
        ),
        ({"system": [{"text": 5}]}, r"^\$\.system\[0\]\.text: must be a string"),
    ],
)
def test_a_malformed_request_is_named(body, message):
    with pytest.raises(DialectError, match=message):
        DIALECT.parse_request(body)
