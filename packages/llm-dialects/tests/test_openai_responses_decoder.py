"""OpenAI responses: streams and bodies as providers send them."""

import json

import pytest
from llm_dialects import DIALECTS, Answer, DialectError, fold, to_json

DIALECT = DIALECTS["openai-responses"]
ANSWER = Answer(id="resp_1", model="m", created=7)


def decode(wire, size):
    decoder = DIALECT.decoder()
    parts = [wire[at : at + size] for at in range(0, len(wire), size)]
    return [chunk for part in parts for chunk in decoder.feed(part)] + decoder.close()


def framed(bodies, *, named):
    texts = [body if isinstance(body, str) else json.dumps(body) for body in bodies]
    names = [f"event: {body['type']}\n" if named and isinstance(body, dict) else "" for body in bodies]
    return "".join(f"{name}data: {text}\n\n" for name, text in zip(names, texts, strict=True)).encode()


def check_stream(bodies, expected):
    """Decode events whole, byte by byte, with and without names, and with a tail after their end."""
    for named in (True, False):
        wire = framed(bodies, named=named)
        for size in (len(wire), 1):
            assert [brief(chunk) for chunk in decode(wire, size)] == expected
        assert [brief(chunk) for chunk in decode(wire + b'data: {"type":', 7)] == expected
    if bodies[-1] == "[DONE]" or bodies[-1]["type"] in LAST:
        assert [brief(chunk) for chunk in decode(wire + b"data: {}\n\ndata: garbage\n\n", 7)] == expected


LAST = {"response.completed", "response.incomplete", "response.failed", "error"}


def brief(chunk):
    return {key: value for key, value in to_json(chunk).items() if key != "type" or "index" not in to_json(chunk)}


def event(kind, **members):
    return {"type": kind if kind == "error" else f"response.{kind}", "sequence_number": 0, **members}


def of_item(kind, at=0, **members):
    return event(kind, output_index=at, item_id="i", **members)


def added(at=0, **item):
    return event("output_item.added", output_index=at, item={"id": "i", **item})


def done(at=0, **item):
    return event("output_item.done", output_index=at, item={"id": "i", **item})


def completed(**members):
    return event("completed", response={"id": "r", "status": "completed", "output": [], **members})


def text_part(text=""):
    return {"type": "output_text", "text": text, "annotations": []}


MESSAGE_ITEM = {"type": "message", "role": "assistant", "content": []}
BEGUN = {"index": 0, "blockType": "text"}
SAID = {"index": 0, "text": "hi"}
ENDED = {"index": 0, "block": {"type": "text", "text": "hi"}}
THINKING = {"index": 0, "blockType": "reasoning"}
CALLING = {"index": 0, "blockType": "tool-call"}
STOP = {"type": "finish", "reason": {"kind": "stop"}}
CALLED = {"type": "finish", "reason": {"kind": "tool-calls"}}
DELTA = of_item("output_text.delta", content_index=0, delta="hi", logprobs=[], obfuscation="x7")


def called(arguments, index=0, **names):
    names = {"id": "c", "name": "ls"} | names
    return {"index": index, **names, "argumentsDelta": arguments}


def call_end(arguments, index=0, **names):
    return {
        "index": index,
        "block": {"type": "tool-call", "id": "c", "name": "ls", "arguments": arguments, **names},
    }


def failed(code, message="m"):
    return {"type": "finish", "reason": {"kind": "error", "failure": {"message": message, "code": code}}}


@pytest.mark.parametrize(
    ("bodies", "expected"),
    [
        (["[DONE]"], []),
        ([event("created", response={}), event("queued", response={}), completed()], [STOP]),
        # As the provider sends it.
        (
            [
                added(**MESSAGE_ITEM, phase=None),
                of_item("content_part.added", content_index=0, part=text_part()),
                DELTA,
                of_item("output_text.done", content_index=0, text="hi"),
                of_item("content_part.done", content_index=0, part=text_part("hi")),
                done(**MESSAGE_ITEM | {"content": [text_part("hi")]}),
                completed(),
            ],
            [BEGUN, SAID, ENDED, STOP],
        ),
        # Nothing but deltas and the end; the end alone; the end of the item alone.
        ([DELTA, completed(), "[DONE]"], [BEGUN, SAID, ENDED, STOP]),
        ([done(**MESSAGE_ITEM | {"content": [text_part("hi")]}), completed()], [BEGUN, SAID, ENDED, STOP]),
        (
            [of_item("content_part.done", content_index=0, part=text_part("hi")), completed()],
            [BEGUN, SAID, ENDED, STOP],
        ),
        # What the deltas left out; what contradicts them is not believed.
        (
            [DELTA, done(**MESSAGE_ITEM | {"content": [text_part("hi all")]})],
            [BEGUN, SAID, {"index": 0, "text": " all"}, {"index": 0, "block": {"type": "text", "text": "hi all"}}],
        ),
        ([DELTA, done(**MESSAGE_ITEM | {"content": [text_part("ho")]})], [BEGUN, SAID, ENDED]),
        # Cut off: no end, no finish, and [DONE] is none.
        ([DELTA], [BEGUN, SAID]),
        ([DELTA, "[DONE]"], [BEGUN, SAID]),
        # A refusal is text, and an item may hold several.
        (
            [
                added(**MESSAGE_ITEM, phase="final_answer"),
                of_item("content_part.added", content_index=0, part={"type": "refusal", "refusal": ""}),
                of_item("refusal.delta", content_index=0, delta="hi"),
                of_item("refusal.done", content_index=0, refusal="hi"),
                of_item("content_part.done", content_index=0, part={"type": "refusal", "refusal": "hi"}),
                of_item("content_part.added", content_index=1, part=text_part()),
                of_item("output_text.delta", content_index=1, delta="ho"),
                done(**MESSAGE_ITEM | {"content": [{"type": "refusal", "refusal": "hi"}, text_part("ho")]}),
            ],
            [
                BEGUN,
                SAID,
                {"index": 0, "block": {"type": "text", "text": "hi", "phase": "final_answer"}},
                {"index": 1, "blockType": "text"},
                {"index": 1, "text": "ho"},
                {"index": 1, "block": {"type": "text", "text": "ho"}},
            ],
        ),
        # Hosted tools and whatever else is left out.
        (
            [
                added(type="web_search_call", status="in_progress"),
                of_item("web_search_call.searching"),
                done(type="web_search_call", status="completed"),
                of_item("content_part.added", 5, content_index=0, part={"type": "audio"}),
                of_item("output_text.annotation.added", annotation={}, annotation_index=0),
                event("rate_limits.updated"),
                completed(),
            ],
            [STOP],
        ),
    ],
)
def test_streams_as_providers_send_them(bodies, expected):
    check_stream(bodies, expected)


def of_summary(kind, at, **members):
    return of_item(f"reasoning_summary_{kind}", summary_index=at, **members)


def summary_part(text=""):
    return {"type": "summary_text", "text": text}


def test_thinking_in_parts_is_told_in_paragraphs():
    check_stream(
        [
            added(type="reasoning", summary=[], encrypted_content="half"),
            of_summary("part.added", 0, part=summary_part()),
            of_summary("text.delta", 0, delta="a"),
            of_summary("text.done", 0, text="a"),
            of_summary("part.done", 0, part=summary_part("a")),
            of_summary("part.added", 1, part=summary_part()),
            of_summary("text.delta", 1, delta="b"),
            done(type="reasoning", summary=[summary_part("a"), summary_part("b")], encrypted_content="sig"),
        ],
        [
            THINKING,
            {"index": 0, "text": "a"},
            {"index": 0, "text": "\n\n"},
            {"index": 0, "text": "b"},
            {"index": 0, "block": {"type": "reasoning", "text": "a\n\nb", "signature": "sig"}},
        ],
    )


def test_raw_thinking_is_read():
    check_stream(
        [
            added(type="reasoning", summary=[], content=[]),
            of_item("content_part.added", content_index=0, part={"type": "reasoning_text", "text": ""}),
            of_item("reasoning_text.delta", content_index=0, delta="h"),
            of_item("reasoning_text.delta", content_index=0, delta="m"),
            of_item("content_part.done", content_index=0, part={"type": "reasoning_text", "text": "hm"}),
            done(type="reasoning", summary=[], content=[{"type": "reasoning_text", "text": "hm"}]),
        ],
        [
            THINKING,
            {"index": 0, "text": "h"},
            {"index": 0, "text": "m"},
            {"index": 0, "block": {"type": "reasoning", "text": "hm"}},
        ],
    )
    check_stream(
        [done(type="reasoning", summary=[summary_part("a")], content=[{"type": "reasoning_text", "text": "b"}])],
        [THINKING, {"index": 0, "text": "a\n\nb"}, {"index": 0, "block": {"type": "reasoning", "text": "a\n\nb"}}],
    )


def test_thinking_that_is_only_signed():
    check_stream(
        [done(type="reasoning", summary=[], encrypted_content="sig")],
        [THINKING, {"index": 0, "block": {"type": "reasoning", "text": "", "signature": "sig"}}],
    )


def of_call(kind, at=0, **members):
    return of_item(f"function_call_arguments.{kind}", at, **members)


def call_item(arguments="", call_id="c", name="ls"):
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def test_parallel_calls_by_turns():
    check_stream(
        [
            added(0, **call_item(call_id="a")),
            added(1, **call_item(call_id="b", name="pwd")),
            of_call("delta", 0, delta="1"),
            of_call("delta", 1, delta="2"),
            of_call("delta", 0, delta="3"),
            of_call("done", 0, arguments="13"),
            done(1, **call_item("2", "b", "pwd")),
            done(0, **call_item("13", "a")),
            completed(),
        ],
        [
            CALLING,
            {"index": 1, "blockType": "tool-call"},
            called("1", id="a"),
            called("2", 1, id="b", name="pwd"),
            called("3", id="a"),
            call_end("2", 1, id="b", name="pwd"),
            call_end("13", id="a"),
            CALLED,
        ],
    )


def test_a_call_without_deltas():
    check_stream(
        [added(**call_item("{}")), done(**call_item("{}")), completed()],
        [CALLING, called("{}"), call_end("{}"), CALLED],
    )


def test_deltas_of_nothing_that_began_are_left_out():
    check_stream([of_call("delta", delta="x"), added(**MESSAGE_ITEM), of_call("delta", delta="x")], [])
    check_stream([added(**call_item()), DELTA, of_summary("text.delta", 0, delta="x")], [CALLING])


def test_a_custom_tool_takes_any_text():
    item = {"type": "custom_tool_call", "call_id": "c", "name": "ls"}
    bodies = [
        added(**item, input=""),
        of_item("custom_tool_call_input.delta", delta="*** Begin"),
        of_item("custom_tool_call_input.done", input="*** Begin"),
        done(**item, input="*** Begin", namespace="n"),
        completed(),
    ]
    end = call_end("*** Begin", itemType="custom_tool_call", namespace="n")
    check_stream(bodies, [CALLING, called("*** Begin"), end, CALLED])
    chunks = decode(framed(bodies, named=True), 99)
    again = b"".join(DIALECT.encode_stream(chunks, ANSWER))
    assert decode(again, 99) == chunks
    told = {"id": "ctc_100", "status": "completed"} | item | {"input": "*** Begin", "namespace": "n"}
    assert json.loads(DIALECT.encode_message(chunks, ANSWER))["output"] == [told]
    assert b"event: response.custom_tool_call_input.done" in again


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        ({"status": "completed"}, "stop"),
        ({}, "stop"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "max-tokens"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content-filter"),
        ({"status": "incomplete", "incomplete_details": {"reason": "steered"}}, "steered"),
        ({"status": "incomplete", "incomplete_details": None}, "incomplete"),
        ({"status": "cancelled"}, "cancelled"),
    ],
)
def test_why_an_answer_ended(response, kind):
    expected = [{"type": "finish", "reason": {"kind": kind}}]
    check_stream([event("incomplete", response=response)], expected)
    assert [brief(chunk) for chunk in DIALECT.decode_message(json.dumps(response).encode())] == expected


COUNTS = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (COUNTS, {"inputTokens": 9, "outputTokens": 2}),
        (
            COUNTS | {"input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 0}},
            {"inputTokens": 5, "outputTokens": 2, "cacheReadTokens": 4, "reasoningTokens": 0},
        ),
        (
            COUNTS | {"input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}},
            {"inputTokens": 2, "outputTokens": 2, "cacheReadTokens": 4, "cacheWriteTokens": 3},
        ),
        (
            COUNTS | {"input_tokens_details": {"cached_tokens": 20}, "output_tokens_details": None},
            {"inputTokens": 0, "outputTokens": 2, "cacheReadTokens": 20},
        ),
    ],
)
def test_usages_as_providers_send_them(usage, expected):
    check_stream([completed(usage=usage)], [{"type": "usage", "usage": expected}, STOP])


WORDS = {"type": "insufficient_quota", "code": "credit_balance_exhausted", "message": "m", "param": None}


@pytest.mark.parametrize(
    ("last", "code"),
    [
        # As documented, and as sent.
        (event("error", code="rate_limit_exceeded", message="m", param=None), "RATE_LIMIT"),
        (event("error", code=None, message="m", param=None), "SERVER_ERROR"),
        (event("error", code="server_error", message="m"), "SERVER_ERROR"),
        (event("error", error=WORDS), "QUOTA"),
        (event("error", error={"type": "invalid_request_error", "code": None, "message": "m"}), "INVALID_REQUEST"),
        (event("error", error="m"), "SERVER_ERROR"),
        # Some gateways send only this one.
        (
            event("failed", response={"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "m"}}),
            "RATE_LIMIT",
        ),
        (
            event("failed", response={"status": "failed", "error": {"code": "server_error", "message": "m"}}),
            "SERVER_ERROR",
        ),
    ],
)
def test_errors_as_providers_send_them(last, code):
    check_stream([DELTA, last], [BEGUN, SAID, failed(code)])


def test_a_failed_response_need_not_say_why():
    expected = failed("SERVER_ERROR", "The provider reported an error.")
    check_stream([event("failed", response={"status": "failed", "error": None})], [expected])
    (chunk,) = DIALECT.decode_message(b'{"status":"failed","error":null,"output":[]}')
    assert brief(chunk) == expected


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{", "event 1: not JSON"),
        ("[]", "event 1: must be an object, is list"),
        (event("completed"), r"event 1\.response: must be an object"),
        (event("output_item.added", item=5), r"event 1\.item: must be an object"),
        (done(type="message", content=[5]), r"event 1\.item\.content\[0\]: must be an object"),
        (done(type="message", content=[text_part(5)]), r"event 1\.item\.content\[0\]\.text: must be a string"),
        (done(type="reasoning", summary={}), r"event 1\.item\.summary: must be an array"),
        (done(type="reasoning", encrypted_content=5), r"event 1\.item\.encrypted_content: must be a string"),
        (done(type="function_call", arguments={}), r"event 1\.item\.arguments: must be a string"),
        (of_item("content_part.added", part=None), r"event 1\.part: must be an object"),
        (of_item("output_text.delta", delta=5), r"event 1\.delta: must be a string"),
        (of_item("output_text.delta", content_index="0"), r"event 1\.content_index: must be a whole number"),
        (completed(usage={"input_tokens": "5"}), r"event 1\.response\.usage\.input_tokens: must be a whole number"),
        (completed(incomplete_details=5), r"event 1\.response\.incomplete_details: must be an object"),
    ],
)
def test_a_malformed_event_is_named(body, message):
    text = body if isinstance(body, str) else json.dumps(body)
    with pytest.raises(DialectError, match=message):
        DIALECT.decoder().feed(f"data: {text}\n\n".encode())


def test_a_malformed_message_is_named():
    with pytest.raises(DialectError, match="body: not JSON"):
        DIALECT.decode_message(b"<html>")
    with pytest.raises(DialectError, match=r"\$\.output\[0\]\.call_id: must be a string"):
        DIALECT.decode_message(b'{"output":[{"type":"function_call","call_id":5}]}')


def test_a_whole_answer_with_items_of_all_kinds():
    items = [
        {"type": "reasoning", "summary": [summary_part("a"), summary_part("b")], "encrypted_content": "sig"},
        {"type": "web_search_call"},
        {"type": "message", "content": [text_part("hi"), {"type": "audio"}, text_part("ho")]},
        call_item("{}"),
    ]
    folded = fold(DIALECT.decode_message(json.dumps({"status": "completed", "output": items}).encode()))
    assert [to_json(block) for block in folded.blocks] == [
        {"type": "reasoning", "text": "a\n\nb", "signature": "sig"},
        {"type": "text", "text": "hi"},
        {"type": "text", "text": "ho"},
        {"type": "tool-call", "id": "c", "name": "ls", "arguments": "{}"},
    ]
    assert folded.finish.kind == "tool-calls"
