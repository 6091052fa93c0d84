"""A recording told in another dialect: what is compared, what is noted, what cannot be told."""

import json

import msgspec
import pytest
from llm_dialects import DIALECTS, Hang, ProviderError, Request, TextBlock, Throw, chunks_from_json
from llm_dialects.entries import Chunks
from llm_dialects.requests import Message, ToolResultPart
from llm_dialects.telling import Wire
from llm_replay import RecordedCall
from session_snapshot.retelling import (
    Retelling,
    answer_notes,
    request_notes,
    said,
    uncounted,
    untold,
)

HEADER = {"type": "session", "format": "session-snapshot", "version": 1, "id": "s", "createdAt": 0, "cwd": "c"}
STREAMED = {"model": "m", "stream": True}
TOLD = Retelling("openai-chat", "gemini")


def request(*messages, **params):
    return Request(system=("s",), tools=(), messages=messages, params=params)


def recorded(entry, params=STREAMED):
    return RecordedCall(0, 0, None, request(**params), entry, "session.jsonl#0", "default")


def answer(*blocks, finish="stop", usage=None, ends=True):
    """An answer of whole blocks."""
    chunks = []
    for index, block in enumerate(blocks):
        chunks.append({"type": "block-start", "index": index, "blockType": block["type"]})
        told = {"arguments": "argumentsDelta", "text": "text"}["arguments" if block["type"] == "tool-call" else "text"]
        more = {"id": block["id"], "name": block["name"]} if block["type"] == "tool-call" else {}
        text = block.get("arguments", block.get("text"))
        chunks.append({"type": f"{block['type']}-delta", "index": index, **more, told: text})
        chunks += [{"type": "block-end", "index": index, "block": block}] if ends else []
    chunks += [{"type": "usage", "usage": usage}] if usage else []
    chunks += [{"type": "finish", "reason": {"kind": finish}}] if finish else []
    return chunks_from_json(chunks)


def text(words="hello"):
    return {"type": "text", "text": words}


def call(arguments="{}"):
    return {"type": "tool-call", "id": "c", "name": "run", "arguments": arguments}


# ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "entry",
    [
        Chunks(chunks=answer(text())),
        Chunks(chunks=answer({"type": "reasoning", "text": "hm"}, text(), call('{"a": 1}'), finish="tool-calls")),
        Chunks(chunks=answer({"type": "reasoning", "text": "hm", "signature": "signed"}, text())),
        Throw(chunks=(), message="slow down", code="RATE_LIMIT"),
        Throw(chunks=answer(text(), finish=None, ends=False), message="gone", code="STREAM_CLOSED"),
        Throw(chunks=answer(text(), finish=None, ends=False), message="busy", code="OVERLOADED"),
        Hang(),
        Hang(chunks=()),
    ],
    ids=["text", "thinking and a call", "signed", "refused", "broken off", "failed midway", "silence", "nothing"],
)
def test_what_every_dialect_can_tell(dialect, entry):
    assert [lost.why for lost in untold([recorded(entry)], dialect)] == []


@pytest.mark.parametrize(
    ("dialect", "chunks", "params", "why"),
    [
        ("openai-chat", answer(text("a"), text("b")), STREAMED, "two blocks of text or of thinking (they become one)"),
        ("gemini", answer(call("no object"), finish="tool-calls"), STREAMED, "a tool call that are no JSON object"),
        ("gemini", answer(call(), finish="stop"), STREAMED, "a plain stop beside tool calls"),
        ("openai-chat", answer(call(), text(), finish="tool-calls"), {"model": "m"}, "the order of text"),
    ],
)  # fmt: skip
def test_what_a_dialect_cannot_tell_is_named(dialect, chunks, params, why):
    (lost,) = untold([recorded(Chunks(chunks=chunks), params)], dialect)
    assert why in lost.why
    assert lost.call.source == "session.jsonl#0"


def test_a_failure_that_a_dialect_takes_for_another(monkeypatch):
    """Every code travels today."""
    words = DIALECTS["gemini"].error_body
    deaf = msgspec.structs.replace(DIALECTS["gemini"], error_body=lambda _: words(ProviderError("QUOTA", "m", None)))
    monkeypatch.setitem(DIALECTS, "gemini", deaf)
    entry = Throw(chunks=(), message="m", code="RATE_LIMIT")
    assert [lost.why for lost in untold([recorded(entry)], "gemini")] == ["the failure RATE_LIMIT"]


def test_what_is_said_of_an_entry():
    begun = answer(text(), finish=None, ends=False)
    assert said(Throw(chunks=(), message="m", code="RATE_LIMIT")) == ()
    assert said(Throw(chunks=begun, message="m", code="STREAM_CLOSED")) == begun
    (finish,) = said(Throw(chunks=(), message="m", code="RATE_LIMIT", accepted=True))
    assert finish.reason.kind == "error"


@pytest.mark.parametrize(
    ("dialect", "usage", "lost"),
    [
        ("gemini", {"inputTokens": 3, "outputTokens": 2, "cacheWriteTokens": 1}, True),
        ("gemini", {"inputTokens": 3, "outputTokens": 2, "cacheReadTokens": 1}, False),
        ("openai-responses", {"inputTokens": 3, "outputTokens": 2}, False),
        ("anthropic-messages", {"inputTokens": 0, "outputTokens": 0}, True),
        ("anthropic-messages", None, False),
    ],
)
def test_token_counts_that_do_not_arrive(dialect, usage, lost):
    assert uncounted([recorded(Chunks(chunks=answer(text(), usage=usage)))], dialect) is lost


# ── notes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_notes_name_what_is_not_said_once():
    spaced = recorded(Chunks(chunks=answer(call('{"a": 1}'), finish="tool-calls")))
    assert answer_notes([spaced, spaced], "gemini") == ["gemini cannot say how the arguments of a tool call are spaced"]
    assert answer_notes([spaced], "openai-chat") == []


def test_notes_name_whose_words_are_not_told():
    page = Wire(dialect="openai-chat", status=502, body=b"<html>")
    entry = Throw(chunks=(), message="bad gateway", code="SERVER_ERROR", wire=page)
    assert answer_notes([recorded(entry)], "gemini") == [
        "gemini tells in its own words what the provider put into openai-chat's"
    ]
    assert answer_notes([recorded(entry)], "openai-chat") == []
    later = Throw(chunks=(), message="m", code="RATE_LIMIT", wire=Wire(headers=(("retry-after", "1"),)))
    assert answer_notes([recorded(later)], "gemini") == []


def test_notes_name_what_of_requests_is_not_compared():
    result = Message(role="tool", content=(ToolResultPart(call_id="c", content=(TextBlock(text="t"),), is_error=True),))
    asked = [request(result, alt="sse", model="m"), request(result, alt="sse", generationConfig={"topK": 1})]
    assert request_notes(asked, "gemini", TOLD) == [
        "requests are compared without alt, which gemini alone says",
        "requests are compared without messages/*/content/*/isError, which gemini alone says",
        "requests are compared without generationConfig.topK, which gemini alone says",
    ]
    assert request_notes([request(stream_options={})], "openai-chat", TOLD) == [
        "requests are compared without stream_options, which openai-chat alone says"
    ]
    assert request_notes([request(model="m")], "openai-chat", TOLD) == []


def test_a_request_that_cannot_be_said_stays_as_it_is():
    odd = request(Message(role="assistant", content=(ToolResultPart(call_id="1", content=()),)))
    assert Retelling("gemini", "openai-chat").request(odd) == odd


# ── session logs ────────────────────────────────────────────────────────────────────────────────────────────────────


def log(*events):
    rows = [HEADER, *({"type": kind, "data": data} for kind, data in events)]
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def chunk(value, **key):
    return ("assistant/chunk", {**key, "chunk": value})


def delta(words, **key):
    return chunk({"type": "text-delta", "index": 0, "text": words}, **key)


START = {"type": "block-start", "index": 0, "blockType": "text"}
END = {"type": "block-end", "index": 0, "block": {"type": "text", "text": "ab"}}
FINISH = {"type": "finish", "reason": {"kind": "stop"}}


def compared(*events, retelling=TOLD):
    return [json.loads(line) for line in retelling.log(log(*events), "session.jsonl").splitlines()]


def test_an_answer_in_pieces_is_its_blocks_however_it_was_cut():
    whole = [chunk(START, turn=1), delta("ab", turn=1), chunk(END, turn=1), chunk(FINISH, turn=1)]
    pieces = [chunk(START, turn=1), delta("a", turn=1), delta("b", turn=1), chunk(END, turn=1), chunk(FINISH, turn=1)]
    assert compared(*whole) == compared(*pieces)
    assert compared(*whole)[1] == {
        "type": "assistant/answer",
        "data": {"turn": 1, "blocks": [{"type": "text", "text": "ab"}], "usage": None, "finish": {"kind": "stop"}},
    }
    assert compared(*whole) != compared(chunk(START, turn=1), delta("ac", turn=1), chunk(FINISH, turn=1))


def test_answers_are_told_apart_by_what_they_belong_to_and_by_what_parts_them():
    one, two = [chunk(START, call=0), delta("ab", call=0)], [chunk(START, call=1), delta("cd", call=1)]
    by_turns = [one[0], two[0], one[1], two[1]]
    assert compared(*by_turns) == compared(*one, *two)
    again = [("llm/retry", {"retry": 1})]
    types = [row["type"] for row in compared(*one, *again, *one)]
    assert types == ["session", "assistant/answer", "llm/retry", "assistant/answer"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("request/header", {"header": {"config": {"dialect": "gemini", "model": "m"}}}),
         ("request/header", {"header": {"config": {"dialect": "openai-chat", "model": "m"}}})),
        (("assistant/message", {"message": {"content": [{"type": "reasoning", "text": "t", "signature": "x"}]}}),
         ("assistant/message", {"message": {"content": [{"type": "reasoning", "text": "t"}]}})),
        (("assistant/message", {"usage": {"inputTokens": 1, "cacheReadTokens": 0}}),
         ("assistant/message", {"usage": {"inputTokens": 1}})),
        (("tool/call", {"arguments": '{"a": [1, 2]}'}), ("tool/call", {"arguments": '{"a":[1,2]}'})),
    ],
)  # fmt: skip
def test_what_differs_by_dialect_is_not_compared(one, other):
    assert compared(one) == compared(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("request/header", {"header": {"config": {"model": "m"}}}), ("request/header", {"header": {"config": {}}})),
        (("tool/result", {"details": {"signature": "x"}}), ("tool/result", {"details": {}})),
        (("tool/result", {"details": {"dialect": "x"}}), ("tool/result", {"details": {}})),
        (("assistant/message", {"usage": {"inputTokens": 1}}), ("assistant/message", {"usage": {"inputTokens": 2}})),
        (("tool/call", {"arguments": "no"}), ("tool/call", {"arguments": "n o"})),
        (("turn/end", {"count": 0}), ("turn/end", {})),
    ],
)
def test_everything_else_is(one, other):
    assert compared(one) != compared(other)


def test_counts_that_do_not_arrive_are_not_compared():
    one, other = (("assistant/message", {"usage": {"inputTokens": count}, "turn": 1}) for count in (1, 2))
    deaf = Retelling("openai-chat", "gemini", counts=False)
    assert compared(one, retelling=deaf) == compared(other, retelling=deaf)
    assert compared(one, retelling=deaf)[1] == {"type": "assistant/message", "data": {"turn": 1}}
