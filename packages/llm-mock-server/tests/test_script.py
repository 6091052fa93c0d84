"""The format of scripts: what can be said, and that what cannot is named by its place and the nearest right word."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_dialects import Chunks, EntryError, Hang, Say, Throw, say_to_chunks
from llm_mock_server import read_script, read_upstream, script_from_json
from llm_mock_server.cursors import ByHeader, Shared
from llm_mock_server.script import Named, values_from_json


def read(*entries, **settings):
    return script_from_json({"entries": list(entries), **settings}, "s.json")


def said(text):
    return Chunks(chunks=say_to_chunks(Say(text=text), str))


def test_every_kind_of_entry():
    chunks = [{"type": "finish", "reason": {"kind": "stop"}}]
    script = read(
        "rate_limit",
        {"kind": "behaviour", "name": "success", "options": {"successText": "ok"}, "times": 3},
        {"kind": "say", "text": "hi", "when": {"model": "m"}},
        {"kind": "chunks", "chunks": chunks, "times": "any"},
        {"kind": "throw", "chunks": [], "message": "no", "code": "QUOTA"},
        {"kind": "hang"},
        "random",
    )
    assert [entry.label for entry in script.entries] == [
        "rate_limit", "success", "say", "chunks", "throw", "hang", "random",
    ]  # fmt: skip
    assert [entry.times for entry in script.entries] == [1, 3, 1, None, 1, 1, 1]
    assert script.entries[1].act.options.success_text == "ok"
    assert script.entries[2].when.model == "m"
    assert script.entries[2].act == said("hi")
    assert (script.seed, script.repeat_last, script.cursor, script.refuse_first) == (0, False, Shared(), False)


def test_every_setting():
    text = {
        "entries": ["connection_refused", "success"],
        "options": {"successText": "ok", "chunkSize": 3},
        "seed": 42,
        "weights": {"success": 1, "stall": 0.5},
        "repeatLast": True,
        "cursor": {"header": "X-Session"},
        "values": {"handle": "h", "count": 3},
    }
    script = read_script(json.dumps(text), "s.json")
    assert script.refuse_first
    (entry,) = script.entries
    assert (entry.where, entry.label, entry.act.options.chunk_size) == ("s.json: entries[1]", "success", 3)
    assert (script.seed, script.weights, script.repeat_last) == (42, {"success": 1, "stall": 0.5}, True)
    assert (script.cursor, script.values) == (ByHeader("x-session"), {"handle": "h", "count": 3})


def test_an_entrys_options_are_over_the_scripts():
    calls = [{"name": "a", "arguments": {}}, {"name": "b", "arguments": {}}]
    own = {"kind": "behaviour", "name": "tool_call_success", "options": {"toolName": "compress"}}
    script = read(own, "tool_call_success", options={"toolCalls": calls, "chunkSize": 3})
    one, several = (entry.act.options for entry in script.entries)
    assert (one.tool_name, one.tool_calls, one.chunk_size) == ("compress", (), 3)
    assert [call.name for call in several.tool_calls] == ["a", "b"]


def test_options_are_of_behaviours_only():
    assert read({"kind": "say", "text": "hi, you there"}, options={"chunkSize": 3}).entries[0].act == said(
        "hi, you there"
    )


def test_a_call_that_needs_an_id_is_written_out_when_it_is_said():
    calls = [{"name": "f", "arguments": {}, "id": "c1"}, {"name": "f", "arguments": {}}]
    both, one = (read({"kind": "say", "toolCalls": calls[:count]}).entries[0].act for count in (2, 1))
    assert isinstance(both, Say)
    assert isinstance(one, Chunks)


def test_placeholders_are_checked_before_their_values_are_known():
    options = {"toolArguments": '{"n":{{count}}}', "successText": "{{text}}"}
    (entry, text) = read(
        {"kind": "behaviour", "name": "success", "options": options}, {"kind": "say", "text": "{{{{"}
    ).entries
    assert isinstance(entry.act, Named)
    assert entry.filler is not None
    assert text.filler is not None


def test_a_refusal_may_be_an_object():
    assert read({"kind": "behaviour", "name": "connection_refused"}, "success").refuse_first


def say(**more):
    return {"kind": "say", **more}


def behave(name="success", **more):
    return {"kind": "behaviour", "name": name, **more}


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ([], "s.json: must be an object"),
        ({}, "s.json: the key 'entries' is missing"),
        ({"entries": {}}, "s.json: entries: must be an array"),
        ({"entry": []}, "s.json: unknown key 'entry'; the nearest known is 'entries'"),
        ({"entries": [], "repeat_last": True}, "s.json: unknown key 'repeat_last'; the nearest known is 'repeatLast'"),
        ({"entries": [], "repeatLast": 1}, "s.json: repeatLast: must be true or false"),
        ({"entries": [], "seed": -1}, "s.json: seed: must be a whole number from 0 to 4294967295"),
        ({"entries": [], "seed": "x"}, "s.json: seed: must be a whole number"),
        ({"entries": [], "cursor": "sesion"}, "s.json: cursor: no cursor is called 'sesion'"),
        ({"entries": [], "weights": {"succes": 1}}, "s.json: weights: no behaviour is called 'succes'"),
        ({"entries": [], "options": {"chunksize": 1}}, "s.json: options: no option is called 'chunksize'; the "),
        ({"entries": [], "values": {"a b": 1}}, "s.json: values: 'a b' cannot be the name of a placeholder"),
        ({"entries": [], "values": {"fromRequest:x": 1}}, "s.json: values: 'fromRequest:x' cannot be"),
        ({"entries": ["rate_limt"]}, "s.json: entries[0].name: no behaviour is called 'rate_limt'; the nearest known"),
        ({"entries": [7]}, "s.json: entries[0]: must be an object or the name of a behaviour, it is 7"),
        ({"entries": [["success"]]}, "s.json: entries[0]: must be an object or the name of a behaviour, it is an arr"),
        ({"entries": ["say"]}, "s.json: entries[0]: 'say' is no behaviour but a kind of entry"),
        ({"entries": ["\ud800"]}, "s.json: entries[0].name: no behaviour is called '\\ud800'; known are connection_re"),
        ({"entries": [{}]}, "s.json: entries[0].kind: must be a string"),
        ({"entries": [{"kind": "rate_limit"}]}, "s.json: entries[0].kind: no entry is of kind 'rate_limit'; the neare"),
        (
            {"entries": [{"kind": "thrwo"}]},
            "s.json: entries[0].kind: no entry is of kind 'thrwo'; the nearest known is",
        ),
        ({"entries": [behave(), say(txt="x")]}, "s.json: entries[1]: unknown key 'txt'; the nearest known is 'text'"),
        ({"entries": [say(text=7)]}, "s.json: entries[0].text: must be a string"),
        ({"entries": [say(wehn={})]}, "s.json: entries[0]: unknown key 'wehn'"),
        ({"entries": [say(when={"modle": "m"})]}, "s.json: entries[0].when: unknown key 'modle'"),
        ({"entries": [say(times=0)]}, 's.json: entries[0].times (or "any"): must be a whole number from 1'),
        ({"entries": [say(burst=1)]}, "s.json: entries[0].burst: must be true or false"),
        ({"entries": [say(times="some")]}, 's.json: entries[0].times (or "any"): must be a whole number'),
        ({"entries": [behave(7)]}, "s.json: entries[0].name: must be a string"),
        ({"entries": [behave(option={})]}, "s.json: entries[0]: unknown key 'option'; the nearest known is 'options'"),
        ({"entries": [behave(options=[])]}, "s.json: entries[0].options: must be an object"),
        (
            {"entries": [behave(options={"toolname": "x"})]},
            "s.json: entries[0].options: no option is called 'toolname'",
        ),
        (
            {"entries": [behave(options={"toolArguments": "{"})]},
            "s.json: entries[0].options.toolArguments: must be a J",
        ),
        (
            {"entries": [behave(options={"chunkDelayMs": -1})]},
            "s.json: entries[0].options.chunkDelayMs: must be a whole number from 0",
        ),
        ({"entries": ["connection_refused"]}, "s.json: entries[0]: 'connection_refused' must be followed"),
        ({"entries": [behave("connection_refused", times=2), "stall"]}, "s.json: entries[0]: unknown key 'times'"),
        ({"entries": ["stall", "connection_refused"]}, "s.json: entries[1]: 'connection_refused' may stand first only"),
        ({"entries": [say(when={"session": "a"})]}, "s.json: entries[0].when.session: all callers share one cursor"),
        ({"entries": [say(text="{{a}}", finish=[])]}, "s.json: entries[0].finish: "),
        ({"entries": [say(text="{{my name}}")]}, "s.json: entries[0]: {{my name}}: no placeholder begins like this"),
        ({"entries": [say(text="{{x")]}, "s.json: entries[0]: {{x: no placeholder begins like this"),
        ({"entries": [say(text="{{fromRequest:(}}")]}, "s.json: entries[0]: {{fromRequest:(}}: bad pattern"),
        ({"entries": [say(text="{{fromRequest:a")]}, "s.json: entries[0]: {{fromRequest:a: the placeholder has no end"),
        ({"entries": [], "options": {"successText": "{{x"}}, "s.json: options: {{x: no placeholder begins like this"),
        ({"entries": [say(usage="\ud800")]}, "s.json: entries[0].usage: holds half a surrogate pair"),
        ({"entries": [say(usage={"inputTokens": 1, "outputTokens": 1, "x": 1})]}, "s.json: entries[0].usage: unknown"),
        ({"entries": [say(usage={"outputTokens": 1})]}, "s.json: entries[0].usage: Object missing required field `inp"),
        ({"entries": [say(text={1})]}, "s.json: entries[0].text: must be JSON, it is no JSON but Python's set"),
        ({"entries": [], "values": {"x": float("nan")}}, "s.json: values.x: must be JSON, it is nan"),
        ({"entries": [], "values": {"x": 10**5000}}, "s.json: values.x: must be JSON, it is a number of very many dig"),
        ({"entries": [], 7: 1}, "s.json: a key must be a string, it is 7"),
    ],
)
def test_what_cannot_be_meant_is_named_by_its_place(script, words):
    with pytest.raises(EntryError) as caught:
        script_from_json(script, "s.json")
    assert str(caught.value).startswith(words)
    assert str(caught.value).splitlines()[-1].startswith("mend: ")


@pytest.mark.parametrize("text", [b"{", b"\xff", "", "[]"])
@pytest.mark.parametrize("reader", [read_script, read_upstream])
def test_a_script_that_is_none(reader, text):
    with pytest.raises(EntryError, match=r"^up\.json: "):
        reader(text, "up.json")


@pytest.mark.parametrize("reader", [read_script, read_upstream])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"entries": [], "entries": []}', "up.json: an object has the key 'entries' twice"),
        ('{"entries": [{"kind": "hang", "kind": "hang"}]}', "up.json: an object has the key 'kind' twice"),
        ('{"entries": [NaN]}', "up.json: not JSON: NaN is no number of JSON"),
        ("[" * 100_000, "up.json: nested too deeply"),
        ('{"entries": ' + "[" * 200 + "]" * 200 + "}", "up.json: nested deeper than 100 levels"),
        ("9" * 5000, "up.json: not JSON: "),
    ],
)
def test_a_text_that_is_json_to_python_only(reader, text, words):
    with pytest.raises(EntryError) as caught:
        reader(text, "up.json")
    assert str(caught.value).startswith(words)
    assert str(caught.value).splitlines()[-1].startswith("mend: ")


def test_a_failure_before_any_chunk_needs_none():
    throw = {"kind": "throw", "message": "{{why}}", "code": "AUTH"}
    assert read(throw).entries[0].act == Throw(chunks=(), message="x", code="AUTH")


WORDS = ["", "x", "\ud800", "\r\nX: y", "\0", "{{", "}}", "{{x}}", "{{fromRequest:(}}", "(", "[", "~", "say", "success"]
NUMBERS = [0, -1, 1.5, 2**70, 10**4000, 1e308, float("nan")]
KEYS = st.sampled_from(["kind", "name", "text", "entries", "when", "header", "usage", "chunks", "type", *WORDS])
LEAVES = st.none() | st.booleans() | st.sampled_from([*WORDS, *NUMBERS]) | st.integers() | st.text(max_size=5)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=8
)
CHUNKS = [
    {"type": "block-start", "index": 0, "blockType": "tool-call"},
    {"type": "tool-call-delta", "index": 0, "id": "c", "name": "f", "argumentsDelta": "{"},
    {"type": "block-end", "index": 0, "block": {"type": "text", "text": "x"}},
    {"type": "usage", "usage": {"inputTokens": 1, "outputTokens": 1, "reasoningTokens": 1}},
    {"type": "finish", "reason": {"kind": "error", "failure": {"message": "m", "code": "AUTH"}}, "replayState": [1]},
]
WHEN = {"model": "m", "path": "*", "header": {"x": "y"}, "body": {"/a": [1]}, "nth": 1, "text": "x", "session": "s"}
CALL = {"name": "f", "arguments": {"a": 1}, "id": "c"}
EVERYTHING = {
    "entries": [
        {"kind": "say", "text": "t", "reasoning": "r", "toolCalls": [CALL], "usage": CHUNKS[3]["usage"]}
        | {"finish": CHUNKS[4]["reason"], "chunkSize": 2, "times": 2, "burst": True, "when": WHEN},
        {
            "kind": "behaviour",
            "name": "success",
            "options": {"toolArguments": {"a": 1}, "toolCalls": [CALL], "requestId": "r", "chunkDelayMs": 0},
        },
        {"kind": "throw", "chunks": CHUNKS[:2], "message": "m", "code": "X", "status": 429, "accepted": True},
        {"kind": "chunks", "chunks": CHUNKS},
        {"kind": "hang", "readyFile": "f"},
        "random",
    ],
    "options": {"successText": "x"},
    "cursor": {"header": "x-s"},
    "repeatLast": True,
    "seed": 1,
    "weights": {"success": 1},
    "values": {"a": [1]},
}


def places(value, place=()):
    yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*place, key))


def replaced(value, place, new):
    if not place:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = replaced(value[place[0]], place[1:], new)
    return copy


@settings(deadline=None, max_examples=400)
@given(st.sampled_from(list(places(EVERYTHING))), VALUES)
def test_any_value_anywhere_is_read_or_refused_with_its_mend(place, value):
    assert script_from_json(EVERYTHING, "s.json").entries
    try:
        script_from_json(replaced(EVERYTHING, place, value), "s.json")
    except EntryError as error:
        assert str(error).startswith("s.json")
        assert str(error).splitlines()[-1].startswith("mend: ")


@settings(deadline=None)
@given(st.sampled_from(list(places(EVERYTHING))))
def test_no_place_is_too_deep(place):
    deep = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(EntryError, match="nested deeper than 100"):
        script_from_json(replaced(EVERYTHING, place, deep), "s.json")


def test_values_of_their_own():
    assert values_from_json({"sessionId:1": "s", "a-b_c": None}, "w") == {"sessionId:1": "s", "a-b_c": None}
    with pytest.raises(EntryError, match="w: must be an object"):
        values_from_json([], "w")


# ── upstream.json ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_upstream_is_entries_and_nothing_else():
    script = read_upstream('{"entries": [{"kind": "hang"}, {"kind": "say", "text": "hi"}]}', "up.json")
    assert [entry.act for entry in script.entries] == [Hang(), said("hi")]


@pytest.mark.parametrize(
    "text", ['{"entries": 1}', '{"entries": [], "seed": 1}', '{"entries": [1]}', '{"entries": ["success"]}']
)
def test_what_is_no_upstream(text):
    with pytest.raises(EntryError, match=r"^up\.json: "):
        read_upstream(text, "up.json")


def test_of_an_upstreams_braces_the_request_fills_its_own_and_no_others():
    said = ["{{name}} {{{{", "{{fromRequest:x}} {{name}}"]
    script = read_upstream(json.dumps({"entries": [{"kind": "say", "text": text} for text in said]}), "up.json")
    assert [entry.filler is None for entry in script.entries] == [True, False]
