import json

import pytest
from llm_dialects import DIALECTS, Answer, DialectError, Finish, Loss, chunks_from_json, fold, limits, to_json

DIALECT = DIALECTS["gemini"]
ANSWER = Answer(id="r1", model="m")
ARRAY = Answer(id="r1", model="m", stream_type="application/json")

CHUNKS = chunks_from_json(
    [
        {"type": "block-start", "index": 0, "blockType": "reasoning"},
        {"type": "reasoning-delta", "index": 0, "text": "hm"},
        {"type": "block-end", "index": 0, "block": {"type": "reasoning", "text": "hm", "signature": "c2ln"}},
        {"type": "block-start", "index": 1, "blockType": "text"},
        {"type": "text-delta", "index": 1, "text": "zwö"},
        {"type": "text-delta", "index": 1, "text": "lf"},
        {"type": "block-end", "index": 1, "block": {"type": "text", "text": "zwölf"}},
        {"type": "block-start", "index": 2, "blockType": "tool-call"},
        {"type": "tool-call-delta", "index": 2, "id": "c", "name": "ls", "argumentsDelta": '{"a":1}'},
        {
            "type": "block-end",
            "index": 2,
            "block": {"type": "tool-call", "id": "c", "name": "ls", "arguments": '{"a":1}', "thoughtSignature": "YWJj"},
        },
        {"type": "block-start", "index": 3, "blockType": "tool-call"},
        {"type": "tool-call-delta", "index": 3, "id": "function-call-1", "name": "pwd", "argumentsDelta": ""},
        {
            "type": "block-end",
            "index": 3,
            "block": {"type": "tool-call", "id": "function-call-1", "name": "pwd", "arguments": ""},
        },
        {"type": "usage", "usage": {"inputTokens": 5, "outputTokens": 9, "cacheReadTokens": 3, "reasoningTokens": 7}},
        {"type": "finish", "reason": {"kind": "tool-calls"}},
    ]
)
USAGE = (
    '"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":2,"totalTokenCount":17,'
    '"cachedContentTokenCount":3,"thoughtsTokenCount":7}'
)
SO_FAR = '"usageMetadata":{"promptTokenCount":8,"totalTokenCount":8}'
WHO = '"modelVersion":"m","responseId":"r1"'
PARTS = [
    '{"text":"hm","thought":true,"thoughtSignature":"c2ln"}',
    '{"text":"zwö"}',
    '{"text":"lf"}',
    '{"functionCall":{"id":"c","name":"ls","args":{"a":1}},"thoughtSignature":"YWJj"}',
    '{"functionCall":{"name":"pwd"}}',
]


def candidate(parts, finish=""):
    return f'"candidates":[{{"content":{{"parts":[{parts}],"role":"model"}},{finish}"index":0}}]'


GOLDEN = [
    *(f"{{{candidate(part)},{SO_FAR},{WHO}}}" for part in PARTS[:-1]),
    f'{{{candidate(PARTS[-1], """"finishReason":"STOP",""")},{USAGE},{WHO}}}',
]


def test_the_bytes_of_a_stream():
    assert [data.decode() for data in DIALECT.encode_stream(CHUNKS, ANSWER)] == [f"data: {body}\n\n" for body in GOLDEN]


def test_the_bytes_of_an_array():
    first, *rest = GOLDEN
    expected = [f"[{first}", *(f",\n{body}" for body in rest[:-1]), f",\n{rest[-1]}]"]
    assert [data.decode() for data in DIALECT.encode_stream(CHUNKS, ARRAY)] == expected
    assert json.loads("".join(expected)) == [json.loads(body) for body in GOLDEN]


def test_an_unfinished_array_stays_open():
    wire = b"".join(DIALECT.encode_stream(CHUNKS[:5], ARRAY))
    bare = [{key: value for key, value in json.loads(body).items() if key != "usageMetadata"} for body in GOLDEN[:2]]
    assert bare == json.loads(wire + b"]")
    assert list(DIALECT.encode_stream((), ARRAY)) == []


@pytest.mark.parametrize("answer", [ANSWER, ARRAY], ids=["events", "array"])
def test_the_bytes_of_a_stream_are_read_back(answer):
    wire = b"".join(DIALECT.encode_stream(CHUNKS, answer))
    tail = b'data: {"candidates"' if answer is ANSWER else b"garbage"
    for size in (len(wire), 1, 6):
        assert tuple(decode(wire, size)) == CHUNKS
        assert tuple(decode(wire + tail, size)) == CHUNKS
    assert limits("gemini", CHUNKS) == ()


def test_the_bytes_of_a_message():
    parts = [PARTS[0], '{"text":"zwölf"}', *PARTS[3:]]
    whole = f'{{{candidate(",".join(parts), """"finishReason":"STOP",""")},{USAGE},{WHO}}}'
    wire = DIALECT.encode_message(CHUNKS, ANSWER)
    assert wire.decode() == whole
    assert fold(DIALECT.decode_message(wire)) == fold(CHUNKS)


def decode(wire, size):
    decoder = DIALECT.decoder()
    parts = [wire[at : at + size] for at in range(0, len(wire), size)]
    return [chunk for part in parts for chunk in decoder.feed(part)] + decoder.close()


def check_stream(bodies, expected):
    """Decode events in both framings, whole, byte by byte, and with a tail that is no event yet."""
    events = "".join(f"data: {json.dumps(body)}\r\n\r\n" for body in bodies).encode()
    array = json.dumps(bodies, indent=2).encode()
    for wire in (
        events,
        b"\n" + events,
        b"\xef\xbb\xbf" + events,
        array,
        b"\xef\xbb\xbf" + array,
        b" " + array,
        array[:-1],
    ):
        for size in (len(wire), 1):
            assert [to_json(chunk) for chunk in decode(wire, size)] == expected
    assert [to_json(chunk) for chunk in decode(events + b'data: {"error": {}}\n', 7)] == expected
    assert [to_json(chunk) for chunk in decode(array[:-1] + b', {"error": {', 7)] == expected


def said(*parts, finish=None, **members):
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}], **members}


def text(index, whole, *pieces, kind="text", **extra):
    delta = {"text": "text-delta", "reasoning": "reasoning-delta"}[kind]
    return [
        {"type": "block-start", "index": index, "blockType": kind},
        *({"type": delta, "index": index, "text": piece} for piece in pieces),
        {"type": "block-end", "index": index, "block": {"type": kind, "text": whole, **extra}},
    ]


def call(index, call_id, name, arguments):
    head = {"id": call_id, "name": name}
    return [
        {"type": "block-start", "index": index, "blockType": "tool-call"},
        {"type": "tool-call-delta", "index": index, **head, "argumentsDelta": arguments},
        {"type": "block-end", "index": index, "block": {"type": "tool-call", **head, "arguments": arguments}},
    ]


def finish(kind, **members):
    return {"type": "finish", "reason": {"kind": kind, **members}}


def usage(**counts):
    return {"type": "usage", "usage": counts}


@pytest.mark.parametrize(
    ("bodies", "expected"),
    [
        ([said({"text": "a"})], text(0, "", "a")[:2]),
        ([said(finish="STOP")], [finish("stop")]),
        ([{"candidates": [{"finishReason": "STOP", "index": 0}]}], [finish("stop")]),
        # The first models said STOP with every event; an empty text says nothing.
        (
            [said({"text": "a"}, finish="STOP"), said({"text": "b"}, {"text": ""}, finish="STOP")],
            [*text(0, "ab", "a", "b"), finish("stop")],
        ),
        # A change of kind ends a block, and so does a signature, even one that comes with no text.
        (
            [
                said({"text": "h", "thought": True}),
                said({"text": "m", "thought": True}, {"text": "a"}),
                said({"text": "", "thoughtSignature": "c2ln"}),
                said({"text": "b", "thoughtSignature": "YWJj"}, {"text": "c"}, finish="STOP"),
            ],
            [
                *text(0, "hm", "h", "m", kind="reasoning"),
                *text(1, "a", "a", thoughtSignature="c2ln"),
                *text(2, "b", "b", thoughtSignature="YWJj"),
                *text(3, "c", "c"),
                finish("stop"),
            ],
        ),
        ([said({"thoughtSignature": "c2ln"}, finish="STOP")], [*text(0, "", thoughtSignature="c2ln"), finish("stop")]),
        # Calls without an id get one by their place; both spellings are read.
        (
            [
                said({"functionCall": {"name": "a", "args": {"p": 1.5}}}, {"functionCall": {"id": "x", "name": "b"}}),
                said({"function_call": {"name": "a", "args": {}}}, finish="STOP"),
            ],
            [
                *call(0, "function-call-0", "a", '{"p":1.5}'),
                *call(1, "x", "b", ""),
                *call(2, "function-call-2", "a", "{}"),
                finish("tool-calls"),
            ],
        ),
        # What the client's functions have no part in is left out.
        (
            [
                said({"text": "a"}, {"executableCode": {"code": "1"}}, {"inlineData": {"data": "aGk="}}, {"text": "b"}),
                {"candidates": [{"index": 1, "content": {"parts": [{"text": "other"}]}}, {"index": 0}]},
                said(finish="MALFORMED_FUNCTION_CALL"),
            ],
            [*text(0, "ab", "a", "b"), finish("MALFORMED_FUNCTION_CALL")],
        ),
        # Counts of every event; the last ones count. The prompt holds what was cached, the candidates no thoughts.
        (
            [
                said({"text": "a"}, usageMetadata={"promptTokenCount": 9, "totalTokenCount": 9}),
                said(
                    finish="MAX_TOKENS",
                    usageMetadata={
                        "promptTokenCount": 9,
                        "cachedContentTokenCount": 4,
                        "toolUsePromptTokenCount": 2,
                        "candidatesTokenCount": 3,
                        "thoughtsTokenCount": 5,
                        "totalTokenCount": 19,
                    },
                ),
            ],
            [
                *text(0, "a", "a"),
                usage(inputTokens=7, outputTokens=8, cacheReadTokens=4, reasoningTokens=5),
                finish("max-tokens"),
            ],
        ),
        ([said(finish="SAFETY"), {"usageMetadata": {}}], [finish("content-filter")]),
        (
            [{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 4}}],
            [usage(inputTokens=4, outputTokens=0), finish("content-filter", blockReason="PROHIBITED_CONTENT")],
        ),
        (
            [
                said({"text": "a"}),
                {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}},
                said({"text": "never read"}, finish="STOP"),
            ],
            [
                *text(0, "", "a")[:2],
                finish("error", failure={"message": "The model is overloaded.", "code": "OVERLOADED"}),
            ],
        ),
    ],
)
def test_streams_as_providers_send_them(bodies, expected):
    check_stream(bodies, expected)
    read = chunks_from_json(expected)
    if expected[-1]["type"] == "finish" and expected[-1]["reason"]["kind"] != "error":
        again = b"".join(DIALECT.encode_stream(read, ANSWER))
        assert tuple(decode(again, 4096)) == read
        assert limits("gemini", read) == ()


def test_a_refused_prompt_is_told_as_one():
    chunks = chunks_from_json([finish("content-filter", blockReason="OTHER")])
    (event,) = DIALECT.encode_stream(chunks, ANSWER)
    assert json.loads(event.removeprefix(b"data: ")) == {
        "promptFeedback": {"blockReason": "OTHER"},
        "modelVersion": "m",
        "responseId": "r1",
    }
    assert limits("gemini", chunks) == ()


@pytest.mark.parametrize("arguments", ["{not json", '"text"', "[1]", "null"])
@pytest.mark.parametrize(("kind", "word"), [("tool-calls", "MALFORMED_FUNCTION_CALL"), ("max-tokens", "MAX_TOKENS")])
def test_arguments_that_are_no_object_are_the_models_fault(arguments, kind, word):
    chunks = chunks_from_json([*text(0, "so", "so"), *call(1, "c", "ls", arguments), finish(kind)])
    for body in (list(DIALECT.encode_stream(chunks, ANSWER))[-1][6:], DIALECT.encode_message(chunks, ANSWER)):
        (told,) = json.loads(body)["candidates"]
        assert told["content"]["parts"] == [{"text": "so"}]
        assert told["finishReason"] == word
        assert told.get("finishMessage", f"Malformed function call: ls({arguments})").endswith(f"ls({arguments})")


def test_a_call_is_told_when_all_of_it_is_there():
    chunks = chunks_from_json(
        [
            {"type": "block-start", "index": 0, "blockType": "tool-call"},
            {"type": "tool-call-delta", "index": 0, "id": "c", "name": "ls", "argumentsDelta": "{}"},
        ]
    )
    assert list(DIALECT.encode_stream(chunks, ANSWER)) == []
    follows = chunks_from_json([{"type": "block-start", "index": 1, "blockType": "text"}])
    assert len(list(DIALECT.encode_stream((*chunks, *follows), ANSWER))) == 1


def test_an_error_amid_events_is_bare_json():
    failure = {"kind": "error", "failure": {"message": "no {luck}", "code": "UNAVAILABLE"}}
    chunks = (*CHUNKS[:5], *chunks_from_json([{"type": "finish", "reason": failure}]))
    *_, said_last, error = DIALECT.encode_stream(chunks, ANSWER)
    assert said_last.startswith(b"data: {")
    assert error.startswith(b'{\n  "error": {\n    "code": 503,\n')
    events = b"".join(DIALECT.encode_stream(chunks, ANSWER))
    for wire in (events, events.removesuffix(b"\n"), events + b"\n", events.replace(b"\n", b"\r\n"), compacted(events)):
        for size in (len(wire), 1, 6):
            assert decode(wire, size)[-1] == chunks[-1]
    assert not [chunk for chunk in decode(events[:-3], 1) if isinstance(chunk, Finish)]


def compacted(events):
    told, _, error = events.rpartition(b"\n\n{")
    return told + b"\n\n" + json.dumps(json.loads(b"{" + error)).encode()


def test_an_error_in_an_array_ends_it():
    error = finish("error", failure={"message": "m", "code": "UNAVAILABLE"})
    for begun in ([], text(0, "", "a")[:2]):
        chunks = chunks_from_json([*begun, error])
        wire = b"".join(DIALECT.encode_stream(chunks, ARRAY))
        assert json.loads(wire)[-1] == {"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}}
        assert tuple(decode(wire, 3)) == chunks


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (b"data: {\n\n", "event 1: not JSON"),
        (b"data: []\n\n", "event 1: must be an object, is list"),
        (b"[{}, 7]", "event 2: must be an object, begins with '7'"),
        (b'[{"a" 7}]', "event 1: not JSON"),
        (b'[{"candidates":{}}]', r"event 1\.candidates: must be an array"),
        (b'[{"candidates":[{"content":[]}, 7]}]', r"event 1\.candidates\[1\]: must be an object"),
        (b'[{"candidates":[{"content":{"parts":[7]}}]}]', r"\.candidates\[0\]\.content\.parts\[0\]: must be an object"),
        (b'[{"candidates":[{"content":{"parts":[{"text":7}]}}]}]', r"\.parts\[0\]\.text: must be a string"),
        (b'[{"candidates":[{"content":{"parts":[{"functionCall":7}]}}]}]', r"\[0\]\.functionCall: must be an object"),
        (b'[{"usageMetadata":{"promptTokenCount":"7"}}]', r"usageMetadata\.promptTokenCount: must be a whole number"),
    ],
)
def test_a_malformed_event_is_named(wire, message):
    with pytest.raises(DialectError, match=message):
        DIALECT.decoder().feed(wire)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("{}", [finish("stop")]),
        ('{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}', [*text(0, "a", "a"), finish("stop")]),
        ('[{"error":{"code":404,"message":"m","status":"NOT_FOUND"}}]', None),
    ],
)
def test_messages_as_providers_send_them(body, expected):
    told = [to_json(chunk) for chunk in DIALECT.decode_message(body.encode())]
    assert told == (expected or [finish("error", failure={"message": "m", "code": "NOT_FOUND"})])


BEGUN = text(0, "", "a")[:2]
SILENT = "an end of a block that the wire does not tell, or one left open"
PIECES = "the arguments of a tool call in pieces, or no piece"
DONE = finish("tool-calls")
FAILED = finish("error", failure={"message": "m", "code": "AUTH"})


@pytest.mark.parametrize(
    ("chunks", "found"),
    [
        ([*call(0, "c", "ls", "")[::2], DONE], [PIECES]),
        ([*call(0, "c", "ls", ""), DONE], []),
        (BEGUN, []),
        ([*BEGUN, FAILED], []),
        (text(0, "a", "a"), [SILENT]),
        ([*text(0, "a", "a"), FAILED], [SILENT]),
        (text(0, "a", "a", thoughtSignature="c2ln"), []),
        ([*BEGUN, *call(1, "c", "ls", "{}")], [SILENT]),
        ([*BEGUN, *call(1, "c", "ls", "{}"), FAILED], [SILENT]),
    ],
)
def test_what_changes_when_it_is_told(chunks, found):
    read = chunks_from_json(chunks)
    told = [limit.what for limit in limits("gemini", read) if limit.loss in (Loss.CUT, Loss.MEANING)]
    assert told == found
    assert (tuple(decode(b"".join(DIALECT.encode_stream(read, ANSWER)), 4096)) == read) is not bool(found)
