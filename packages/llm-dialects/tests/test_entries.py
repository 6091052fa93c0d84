from itertools import count

import pytest
from llm_dialects.chunks import to_json
from llm_dialects.entries import (
    Chunks,
    EntryError,
    Hang,
    Say,
    entry_from_json,
    entry_to_json,
    say_to_chunks,
    upstream_from_json,
)

START = {"type": "block-start", "index": 0, "blockType": "text"}
DELTA = {"type": "text-delta", "index": 0, "text": "PONG"}


@pytest.mark.parametrize(
    "value",
    [
        {"kind": "chunks", "chunks": []},
        {"kind": "chunks", "chunks": [START, {**DELTA, "unknown": {"kept": [1]}}]},
        {"kind": "throw", "chunks": [], "message": "no", "code": "AUTH"},
        {"kind": "throw", "chunks": [START], "message": "no", "code": "X", "status": 418, "accepted": True},
        {"kind": "hang"},
        {"kind": "hang", "readyFile": "ready"},
        {"kind": "hang", "chunks": [], "readyFile": "ready"},
        {"kind": "hang", "chunks": [START, DELTA]},
        {"kind": "hang", "wire": {"dialect": "gemini", "status": 200, "headers": {"content-type": "x/y"}, "body": ""}},
        {"kind": "chunks", "chunks": [], "wire": {"headers": {"content-type": "application/json"}}},
        {"kind": "throw", "chunks": [], "message": "no", "code": "X", "wire": {"headers": {"retry-after": "2"}}},
        {"kind": "throw", "chunks": [START], "message": "no", "code": "X", "wire": {"end": "complete"}},
        {"kind": "throw", "chunks": [], "message": "no", "code": "X", "accepted": False, "wire": {"end": "reset"}},
        {"kind": "chunks", "chunks": [], "wire": {"dialect": "openai-chat", "body": "a\r\n\u0000"}},
        {"kind": "chunks", "chunks": [], "wire": {"dialect": "openai-chat", "bodyBase64": "/w=="}},
    ],
)
def test_an_entry_read_and_written_is_the_same(value):
    assert entry_to_json(entry_from_json(value, "here")) == value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "here: must be an object"),
        ({}, "here.kind: None is none of chunks, throw, hang"),
        ({"kind": ["chunks"]}, "here.kind: ['chunks'] is none of chunks, throw, hang"),
        ({"kind": "say"}, "here.kind: 'say' is none of chunks, throw, hang"),
        ({"kind": "chunks"}, "here: the key 'chunks' is missing"),
        ({"kind": "chunks", "chunks": {}}, "here.chunks: must be an array"),
        ({"kind": "chunks", "chunks": [], "at": 1}, "here: unknown key 'at'; known are chunks, kind, wire"),
        ({"kind": "chunks", "chunks": [START, 5]}, "here.chunks[1]: Expected `object`, got `int`"),
        ({"kind": "chunks", "chunks": [{"type": "nope"}]}, "here.chunks[0]: Invalid value 'nope' - at `$.type`"),
        ({"kind": "throw", "chunks": [], "message": "m"}, "here: the key 'code' is missing"),
        ({"kind": "throw", "chunks": [], "message": "", "code": "X"}, "here.message: must not be empty"),
        ({"kind": "throw", "chunks": [], "message": "m", "code": 5}, "here.code: must be a string"),
        (
            {"kind": "throw", "chunks": [], "message": "m", "code": "X", "status": True},
            "here.status: must be a whole number",
        ),
        (
            {"kind": "throw", "chunks": [], "message": "m", "code": "X", "status": 200},
            "here.status: must be an HTTP error status, 400 to 599",
        ),
        ({"kind": "hang", "readyFile": None}, "here.readyFile: must be a string"),
        ({"kind": "hang", "chunks": None}, "here.chunks: must be an array"),
        ({"kind": "hang", "wire": {}}, "here.wire: must be an object that says something"),
        ({"kind": "hang", "wire": []}, "here.wire: must be an object that says something"),
        (
            {"kind": "hang", "wire": {"header": {}}},
            "here.wire: unknown key 'header'; known are dialect, status, headers, body, bodyBase64, end",
        ),
        (
            {"kind": "hang", "wire": {"end": "resett"}},
            "here.wire.end: 'resett' is none of complete, cut, reset, silence\nmend: write 'reset'",
        ),
        ({"kind": "hang", "wire": {"end": 5}}, "here.wire.end: 5 is none of complete, cut, reset, silence"),
        (
            {"kind": "hang", "wire": {"dialect": "openai", "body": ""}},
            "here.wire.dialect: 'openai' is none of openai-chat, openai-responses, anthropic-messages, gemini\n"
            "mend: write 'openai-chat'",
        ),
        (
            {"kind": "hang", "wire": {"body": "x"}},
            "here.wire: a status or a body is of one dialect: the key 'dialect' is missing",
        ),
        ({"kind": "hang", "wire": {"dialect": "gemini", "body": 5}}, "here.wire.body: must be text"),
        ({"kind": "hang", "wire": {"dialect": "gemini", "body": "\ud800"}}, "here.wire.body: must be text"),
        ({"kind": "hang", "wire": {"dialect": "gemini", "bodyBase64": "x"}}, "here.wire.bodyBase64: must be base64"),
        ({"kind": "hang", "wire": {"dialect": "gemini", "bodyBase64": "ü"}}, "here.wire.bodyBase64: must be base64"),
        ({"kind": "hang", "wire": {"dialect": "gemini", "body": "", "bodyBase64": ""}}, "here.wire: has two bodies"),
        (
            {"kind": "hang", "wire": {"dialect": "gemini", "status": 199}},
            "here.wire.status: must be an HTTP status, 200 to 599",
        ),
        (
            {"kind": "hang", "wire": {"dialect": "gemini", "status": True}},
            "here.wire.status: must be an HTTP status, 200 to 599",
        ),
        ({"kind": "hang", "wire": {"headers": []}}, "here.wire.headers: must be an object"),
        (
            {"kind": "hang", "wire": {"headers": {"Retry-After": "2"}}},
            "here.wire.headers: 'Retry-After' is no header that can be given, in lower case",
        ),
        (
            {"kind": "hang", "wire": {"headers": {"content-length": "2"}}},
            "here.wire.headers: 'content-length' is no header that can be given, in lower case",
        ),
        (
            {"kind": "hang", "wire": {"headers": {"retry-after": "2\r\nx: y"}}},
            "here.wire.headers.retry-after: must be printable ASCII",
        ),
    ],
)
def test_a_wrong_entry_is_refused_with_its_place(value, message):
    with pytest.raises(EntryError) as raised:
        entry_from_json(value, "here")
    assert str(raised.value) == message


def check_say(value, expected):
    numbers = count(1)
    (say,) = upstream_from_json({"entries": [{"kind": "say", **value}]}, "upstream.json")
    assert isinstance(say, Say)
    assert [brief(to_json(c)) for c in say_to_chunks(say, lambda: f"call-{next(numbers)}")] == expected


def brief(chunk):
    words = [str(value) for key, value in chunk.items() if key not in {"type", "index"}]
    return " ".join([chunk["type"], *([str(chunk["index"])] if "index" in chunk else []), *words])


def test_said_text_is_cut_into_eight_code_points():
    check_say(
        {"text": "ZWÖLF ZEICHEN", "usage": {"inputTokens": 3, "outputTokens": 4}},
        [
            "block-start 0 text",
            "text-delta 0 ZWÖLF ZE",
            "text-delta 0 ICHEN",
            "block-end 0 {'type': 'text', 'text': 'ZWÖLF ZEICHEN'}",
            "usage {'inputTokens': 3, 'outputTokens': 4}",
            "finish {'kind': 'stop'}",
        ],
    )


def test_said_blocks_start_in_order_and_end_together():
    check_say(
        {
            "reasoning": "hm",
            "text": "so",
            "toolCalls": [{"name": "ls", "arguments": {"p": "ü"}}, {"name": "x", "arguments": "", "id": "mine"}],
            "chunkSize": 5,
        },
        [
            "block-start 0 reasoning",
            "reasoning-delta 0 hm",
            "block-start 1 text",
            "text-delta 1 so",
            "block-start 2 tool-call",
            'tool-call-delta 2 call-1 ls {"p":',
            'tool-call-delta 2 call-1 ls "ü"}',
            "block-start 3 tool-call",
            "tool-call-delta 3 mine x ",
            "block-end 0 {'type': 'reasoning', 'text': 'hm'}",
            "block-end 1 {'type': 'text', 'text': 'so'}",
            "block-end 2 {'type': 'tool-call', 'id': 'call-1', 'name': 'ls', 'arguments': '{\"p\":\"ü\"}'}",
            "block-end 3 {'type': 'tool-call', 'id': 'mine', 'name': 'x', 'arguments': ''}",
            "finish {'kind': 'tool-calls'}",
        ],
    )


@pytest.mark.parametrize("finish", ["max-tokens", {"kind": "max-tokens"}])
def test_a_said_finish_may_be_a_bare_kind(finish):
    check_say({"finish": finish}, ["finish {'kind': 'max-tokens'}"])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], 'up: must be an object of one key: {"entries": [...]}'),
        ({"entries": [{"kind": "hang"}, {"kind": "say", "txt": ""}]}, "up: entries[1]: unknown key 'txt'; known are "),
        ({"entries": [{"kind": "say", "chunkSize": 0}]}, "up: entries[0].chunkSize: must be at least 1"),
        ({"entries": [{"kind": "say", "toolCalls": [5]}]}, "up: entries[0].toolCalls[0]: must be an object"),
        (
            {"entries": [{"kind": "say", "toolCalls": [{"name": "x", "arguments": 5}]}]},
            "up: entries[0].toolCalls[0].arguments: must be an object, or a string of raw JSON text",
        ),
        ({"entries": [{"kind": "say", "usage": {}}]}, "up: entries[0].usage: Object missing required field"),
        (
            {"entries": [{"kind": "say", "finish": 5}]},
            'up: entries[0].finish: must be a kind, e.g. "stop", or an object',
        ),
        ({"entries": [{"kind": "say", "usage": "\ud800"}]}, "up: entries[0].usage: holds half a surrogate pair"),
        ({"entries": [{"kind": "chunks", "chunks": ["\ud800"]}]}, "up: entries[0].chunks[0]: holds half a surrogate"),
        ({"entries": [{"kind": "chunks", "chunks": [{"type": "\ud800"}]}]}, "up: entries[0].chunks[0]: holds half"),
    ],
)
def test_a_wrong_upstream_is_refused_with_its_place(value, message):
    with pytest.raises(EntryError) as raised:
        upstream_from_json(value, "up")
    assert str(raised.value).startswith(message)


def test_upstream_entries_keep_their_order():
    entries = [{"kind": "hang"}, {"kind": "chunks", "chunks": []}]
    assert upstream_from_json({"entries": entries}, "up") == (Hang(), Chunks(chunks=()))


def test_a_hang_says_partial_first():
    assert [brief(to_json(chunk)) for chunk in Hang().chunks] == ["block-start 0 text", "text-delta 0 partial"]


def test_a_member_called_extra_is_kept():
    value = {"kind": "chunks", "chunks": [{**DELTA, "extra": {"a": 1}, "other": 2}]}
    assert entry_to_json(entry_from_json(value, "here")) == value
