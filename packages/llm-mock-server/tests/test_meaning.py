"""What a script cannot mean, each named by its place with the nearest right word and the mend."""

import pytest
from llm_dialects import EntryError
from llm_dialects.errors import ERRORS
from llm_mock_server import read_upstream, script_from_json
from llm_mock_server.meaning import FINISHES
from llm_mock_server.script import compact

USAGE = {"inputTokens": 1, "outputTokens": 1}


def call(arguments):
    return {"toolCalls": [{"name": "f", "arguments": arguments}]}


def chunk(kind, **members):
    return {"kind": "chunks", "chunks": [{"type": kind} | members]}


def throw(code, **members):
    return {"kind": "throw", "message": "m", "code": code, "chunks": []} | members


def read(entry):
    return script_from_json({"entries": [{"kind": "say"} | entry]}, "s")


@pytest.mark.parametrize(
    ("entry", "what", "mend"),
    [
        ({"finish": "bogus"}, ".finish: no finish is of kind 'bogus'; known are stop, ", "write 'stop'"),
        ({"finish": "stpo"}, ".finish: no finish is of kind 'stpo'", "write 'stop', or let an entry of chunks"),
        ({"finish": ""}, ".finish: no finish is of kind ''", "write 'stop'"),
        ({"finish": "length"}, ".finish: no finish is of kind 'length'", "write 'max-tokens'"),
        ({"finish": {"kind": "tool_calls"}}, ".finish: no finish is of kind 'tool_calls'", "write 'tool-calls'"),
        (
            {"finish": {"kind": "error", "failure": {"message": "m", "code": "RATE"}}},
            ".finish.failure.code: no failure has the code 'RATE'",
            "write 'RATE_LIMIT'",
        ),
        ({"finish": {"kind": "stop", "why": 1}}, ".finish: unknown key 'why'", "write "),
        ({"usage": USAGE | {"inputTokens": -5}}, ".usage.inputTokens: must be a whole number from 0", "write such"),
        ({"usage": USAGE | {"cacheReadTokens": -1}}, ".usage.cacheReadTokens: must be a whole", "write such"),
        ({"usage": USAGE | {"reasoningTokns": 1}}, ".usage: unknown key", "write 'reasoningTokens'"),
        (call("{bad"), ".toolCalls[0].arguments: must be a JSON object, it is '{bad'", "write an object"),
        (call("[1]"), ".toolCalls[0].arguments: must be a JSON object, it is '[1]'", "write an object"),
        (call('{"n":{{fromRequest:x}}}'), ".toolCalls[0].arguments: must be a JSON object", "write an object"),
        (
            throw("BOGUS"),
            ".code: no failure has the code 'BOGUS'; known are INVALID_REQUEST, ",
            "write one of these, or say by",
        ),
        (throw("rate_limit"), ".code: no failure has the code 'rate_limit'", "write 'RATE_LIMIT', or say by"),
        (throw("\n", status=500), ".code: '\\n' is not a code", "write it with"),
        (throw("AUTH", status=200), ".status: must be an HTTP error status", 'write {"kind": "throw", "message"'),
        (chunk("text-delta", index=-1, text="x"), ".chunks[0].index: must be a whole number from 0", "write such"),
        (chunk("block-start", index=0, blockType="txt"), ".chunks[0].blockType: no block is of type", "write 'text'"),
        (chunk("usage", usage=USAGE | {"outputTokens": -1}), ".chunks[0].usage.outputTokens: must be", "write such"),
        (chunk("finish", reason={"kind": "\r\nX"}), ".chunks[0].reason.kind: '\\r\\nX' is not a word", "write it"),
        (chunk("finish", reason={"kind": ""}), ".chunks[0].reason.kind: must be a string that is not", "write a"),
        ({"kind": "hang", "readyFile": ""}, ".readyFile: must be a string that is not empty", "write a string"),
        ({"kind": "hang", "readyFile": "a\0"}, ".readyFile: 'a\\x00' is not the name of a file", "write it with"),
    ],
)
def test_what_no_provider_says_is_refused(entry, what, mend):
    with pytest.raises(EntryError) as caught:
        read(entry)
    first, last = str(caught.value).splitlines()
    assert first.startswith(f"s: entries[0]{what}")
    assert last.startswith(f"mend: {mend}")


@pytest.mark.parametrize(
    "entry",
    [
        *({"finish": kind} for kind in FINISHES),
        *(throw(row.code) for row in ERRORS),
        throw("MY_OWN", status=418),
        call(""),
        call('{"n": {{n}}}'),
        call("{{whole}}"),
        call({"a": "{{x}}"}),
        chunk("finish", reason={"kind": "end_turn"}),
        chunk("tool-call-delta", index=0, id="c", argumentsDelta="{bad"),
    ],
)
def test_what_a_provider_says_is_read(entry):
    assert len(read(entry).entries) == 1


@pytest.mark.parametrize(
    "entry",
    [{"kind": "say", "finish": "eos"}, {"kind": "say"} | call("{bad"), throw("OWN"), {"kind": "say", "text": "{{x"}],
)
def test_an_upstream_may_say_what_a_provider_once_said(entry):
    assert len(read_upstream(compact({"entries": [entry]}), "up.json").entries) == 1
