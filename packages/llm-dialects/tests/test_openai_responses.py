"""OpenAI responses: the bytes of answers."""

import json

import pytest
from llm_dialects import DIALECTS, Answer, chunks_from_json

DIALECT = DIALECTS["openai-responses"]
ANSWER = Answer(id="resp_1", model="m", created=7)

CHUNKS = chunks_from_json(
    [
        {"type": "block-start", "index": 0, "blockType": "reasoning"},
        {"type": "reasoning-delta", "index": 0, "text": "hm"},
        {"type": "reasoning-delta", "index": 0, "text": "\n\n"},
        {"type": "reasoning-delta", "index": 0, "text": "so"},
        {"type": "block-end", "index": 0, "block": {"type": "reasoning", "text": "hm\n\nso", "signature": "sig"}},
        {"type": "block-start", "index": 1, "blockType": "text"},
        {"type": "text-delta", "index": 1, "text": "zwölf"},
        {"type": "block-end", "index": 1, "block": {"type": "text", "text": "zwölf", "phase": "commentary"}},
        {"type": "block-start", "index": 2, "blockType": "tool-call"},
        {"type": "tool-call-delta", "index": 2, "id": "c", "name": "ls", "argumentsDelta": "{"},
        {"type": "tool-call-delta", "index": 2, "id": "c", "name": "ls", "argumentsDelta": "}"},
        {"type": "block-end", "index": 2, "block": {"type": "tool-call", "id": "c", "name": "ls", "arguments": "{}"}},
        {
            "type": "usage",
            "usage": {
                "inputTokens": 5,
                "outputTokens": 4,
                "cacheReadTokens": 3,
                "cacheWriteTokens": 2,
                "reasoningTokens": 1,
            },
        },
        {"type": "finish", "reason": {"kind": "tool-calls"}},
    ]
)

REASONING = (
    '{"id":"rs_100","type":"reasoning","summary":[{"type":"summary_text","text":"hm"},'
    '{"type":"summary_text","text":"so"}],"encrypted_content":"sig"}'
)
TEXT = '{"type":"output_text","annotations":[],"logprobs":[],"text":"zwölf"}'
MESSAGE = (
    f'{{"id":"msg_101","type":"message","status":"completed","role":"assistant","content":[{TEXT}],'
    '"phase":"commentary"}'
)
CALL = '{"id":"fc_102","type":"function_call","status":"completed","arguments":"{}","call_id":"c","name":"ls"}'
USAGE = (
    '{"input_tokens":10,"input_tokens_details":{"cached_tokens":3,"cache_write_tokens":2},"output_tokens":4,'
    '"output_tokens_details":{"reasoning_tokens":1},"total_tokens":14}'
)


def response(status, output="", usage="null", error="null", details="null"):
    return (
        f'{{"id":"resp_1","object":"response","created_at":7,"status":"{status}","background":false,"error":{error},'
        f'"incomplete_details":{details},"instructions":null,"max_output_tokens":null,"model":"m","output":[{output}],'
        '"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":null,"summary":null},'
        '"store":false,"temperature":1.0,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],'
        f'"top_p":1.0,"truncation":"disabled","usage":{usage},"user":null,"metadata":{{}}}}'
    )


def part(index, kind, text):
    return f'"item_id":"rs_100","output_index":0,"summary_index":{index},"{kind}":{text}'


def summary(text):
    return f'{{"type":"summary_text","text":"{text}"}}'


IN_MESSAGE = '"item_id":"msg_101","output_index":1,"content_index":0'
IN_CALL = '"item_id":"fc_102","output_index":2'
WHOLE = response("completed", f"{REASONING},{MESSAGE},{CALL}", USAGE)
GOLDEN = [
    ("response.created", f'"response":{response("in_progress")}'),
    ("response.in_progress", f'"response":{response("in_progress")}'),
    ("response.output_item.added", '"output_index":0,"item":{"id":"rs_100","type":"reasoning","summary":[]}'),
    ("response.reasoning_summary_part.added", part(0, "part", summary(""))),
    ("response.reasoning_summary_text.delta", part(0, "delta", '"hm"')),
    ("response.reasoning_summary_text.done", part(0, "text", '"hm"')),
    ("response.reasoning_summary_part.done", part(0, "part", summary("hm"))),
    ("response.reasoning_summary_part.added", part(1, "part", summary(""))),
    ("response.reasoning_summary_text.delta", part(1, "delta", '"so"')),
    ("response.reasoning_summary_text.done", part(1, "text", '"so"')),
    ("response.reasoning_summary_part.done", part(1, "part", summary("so"))),
    ("response.output_item.done", f'"output_index":0,"item":{REASONING}'),
    (
        "response.output_item.added",
        '"output_index":1,"item":{"id":"msg_101","type":"message","status":"in_progress","role":"assistant",'
        '"content":[],"phase":"commentary"}',
    ),
    ("response.content_part.added", f'{IN_MESSAGE},"part":{TEXT.replace("zwölf", "")}'),
    ("response.output_text.delta", f'{IN_MESSAGE},"delta":"zwölf","logprobs":[]'),
    ("response.output_text.done", f'{IN_MESSAGE},"text":"zwölf","logprobs":[]'),
    ("response.content_part.done", f'{IN_MESSAGE},"part":{TEXT}'),
    ("response.output_item.done", f'"output_index":1,"item":{MESSAGE}'),
    (
        "response.output_item.added",
        '"output_index":2,"item":{"id":"fc_102","type":"function_call","status":"in_progress","arguments":"",'
        '"call_id":"c","name":"ls"}',
    ),
    ("response.function_call_arguments.delta", f'{IN_CALL},"delta":"{{"'),
    ("response.function_call_arguments.delta", f'{IN_CALL},"delta":"}}"'),
    ("response.function_call_arguments.done", f'{IN_CALL},"arguments":"{{}}"'),
    ("response.output_item.done", f'"output_index":2,"item":{CALL}'),
    ("response.completed", f'"response":{WHOLE}'),
]


def test_the_bytes_of_a_stream():
    expected = [
        f'event: {kind}\ndata: {{"type":"{kind}","sequence_number":{number},{rest}}}\n\n'
        for number, (kind, rest) in enumerate(GOLDEN)
    ]
    assert [data.decode() for data in DIALECT.encode_stream(CHUNKS, ANSWER)] == expected


def test_the_bytes_of_a_message():
    assert DIALECT.encode_message(CHUNKS, ANSWER).decode() == WHOLE


def test_a_stream_that_was_read_says_the_same():
    assert decode(b"".join(DIALECT.encode_stream(CHUNKS, ANSWER)), 11) == list(CHUNKS)


def test_half_a_surrogate_pair_goes_through():
    """Pieces that were cut inside a character, as JavaScript programs cut them."""
    chunks = chunks_from_json([START, {"type": "text-delta", "index": 0, "text": "\ud83d"}])
    assert decode(b"".join(DIALECT.encode_stream(chunks, ANSWER)), 1) == list(chunks)


START = {"type": "block-start", "index": 0, "blockType": "text"}
HI = {"type": "text-delta", "index": 0, "text": "hi"}
END = {"type": "block-end", "index": 0, "block": {"type": "text", "text": "hi"}}


def events_of(*chunks):
    wire = b"".join(DIALECT.encode_stream(chunks_from_json(chunks), ANSWER)).decode()
    return [json.loads(line.removeprefix("data: ")) for line in wire.splitlines() if line.startswith("data: ")]


def kinds_of(*chunks):
    """What is said after the response began: the kinds of events, each with its item."""
    events = events_of(*chunks)[2:]
    return [
        (event["type"].removeprefix("response."), event.get("output_index"))
        for event in events
        if "part" not in event["type"]
    ]


def test_an_item_ends_before_the_next_begins():
    """Whatever order the ends of blocks come in: clients read one item at a time."""
    other = [{**chunk, "index": 1} for chunk in (START, HI, END)]
    assert kinds_of(START, HI, *other[:2], END, other[2]) == [
        *[(kind, 0) for kind in ("output_item.added", "output_text.delta", "output_text.done", "output_item.done")],
        *[(kind, 1) for kind in ("output_item.added", "output_text.delta", "output_text.done", "output_item.done")],
    ]


def test_items_mix_where_their_deltas_do():
    other = [{**chunk, "index": 1} for chunk in (START, HI, END)]
    mixed = kinds_of(START, other[0], HI, other[1], END, other[2])
    assert [at for _, at in mixed] == [0, 1, 0, 1, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("max-tokens", "max_output_tokens"), ("content-filter", "content_filter"), ("steered", "steered")],
)
def test_an_answer_cut_short_is_incomplete_and_so_is_its_last_item(kind, reason):
    second = [{**chunk, "index": 1} for chunk in (START, HI)]
    events = events_of(START, HI, END, *second, {"type": "finish", "reason": {"kind": kind}})
    last = events[-1]
    assert last["type"] == "response.incomplete"
    assert (last["response"]["status"], last["response"]["incomplete_details"]) == ("incomplete", {"reason": reason})
    assert [item["status"] for item in last["response"]["output"]] == ["completed", "incomplete"]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == last["response"]["output"]


def test_an_error_comes_twice_as_the_provider_says_it():
    """Some clients read the one event, some the other; what was being told stays open."""
    failure = {"kind": "error", "failure": {"message": "slow down", "code": "RATE_LIMIT"}}
    *_, delta, error, failed = events_of(START, HI, {"type": "finish", "reason": failure})
    assert delta["type"] == "response.output_text.delta"
    words = {"message": "slow down", "type": "requests", "param": None, "code": "rate_limit_exceeded"}
    assert error == {"type": "error", "sequence_number": 5, "error": words}
    assert (failed["type"], failed["sequence_number"], failed["response"]["status"]) == ("response.failed", 6, "failed")
    assert failed["response"]["error"] == {"code": "rate_limit_exceeded", "message": "slow down"}
    assert failed["response"]["output"] == []


def test_an_error_without_a_code_is_told_by_its_type():
    failure = {"kind": "error", "failure": {"message": "m", "code": "SERVER_ERROR"}}
    assert events_of({"type": "finish", "reason": failure})[-1]["response"]["error"]["code"] == "server_error"


def test_items_are_named_after_their_answer():
    body = json.loads(DIALECT.encode_message(chunks_from_json([START, HI, END]), Answer(id="resp_abc", model="m")))
    assert body["output"][0]["id"] == "msg_abc00"


def decode(wire, size):
    decoder = DIALECT.decoder()
    parts = [wire[at : at + size] for at in range(0, len(wire), size)]
    return [chunk for part in parts for chunk in decoder.feed(part)] + decoder.close()
