import json

import pytest
from llm_dialects.entries import Chunks, entry_to_json
from llm_replay import FixtureError, Unfinished, derive_calls, derive_replay_script, derive_scripts, parse_log

OURS = {"type": "session", "format": "session-snapshot", "version": 1, "id": "s", "createdAt": 5}
OLD = {"type": "session", "version": 0, "id": "s", "createdAt": 5}
STOP = {"type": "finish", "reason": {"kind": "stop"}}
FAILED = {"type": "finish", "reason": {"kind": "error", "failure": {"message": "m", "code": "EMPTY_RESPONSE"}}}


def text(value):
    return {"type": "text-delta", "index": 0, "text": value}


def chunk(value, turn=1, step=1):
    return {"type": "assistant/chunk", "data": {"turn": turn, "step": step, "chunk": value}}


def of_call(number, value):
    return {"type": "assistant/chunk", "data": {"call": number, "chunk": value}}


def opened(number):
    return {"type": "llm/call", "data": {"call": number, "lane": 0}}


def event(type, **data):
    return {"type": type, "data": data}


def log(*events, header=OLD, **more):
    return parse_log("".join(json.dumps(row) + "\n" for row in [header | more, *events]), "session.jsonl")


def said(script):
    """The texts of each call, an unfinished one in brackets."""
    texts = [["".join(getattr(chunk, "text", "") for chunk in entry.chunks)] for entry in script]
    return [text if isinstance(entry, Unfinished) else text[0] for text, entry in zip(texts, script, strict=True)]


@pytest.mark.parametrize("header", [OLD, OURS], ids=["old", "ours"])
def test_several_calls_may_share_a_step_and_an_error_is_an_answer(header):
    events = [chunk(FAILED), chunk(text("b")), chunk(STOP), chunk(text("c"), step=2), chunk(STOP, step=2)]
    script = derive_replay_script(log(*events, header=header))
    assert said(script) == ["", "b", "c"]
    assert entry_to_json(script[0]) == {"kind": "chunks", "chunks": [FAILED]}


@pytest.mark.parametrize("after", [[], [chunk(text("b"), step=2), chunk(STOP, step=2)], [chunk(STOP, turn=2)]])
def test_a_call_without_a_finish_demands_an_override(after):
    broken = log(event("turn/start", turn=1), chunk(text("a")), *after)
    with pytest.raises(FixtureError, match="turn 1, step 1 ended without a finish") as caught:
        derive_replay_script(broken)
    assert caught.value.line == 3
    assert "replay.override.json" in str(caught.value).split("\n")[-1]
    assert said(derive_calls(broken))[0] == ["a"]


def test_a_retry_ends_a_thrown_stream_in_our_format_only():
    events = [chunk(text("a")), event("llm/retry", retry=1), chunk(text("b")), chunk(STOP)]
    assert said(derive_calls(log(*events, header=OURS))) == [["a"], "b"]
    assert said(derive_calls(log(*events))) == ["ab"]


def test_inherited_history_is_nobodys_call():
    events = [chunk(text("a")), chunk(STOP), event("session/end-seed"), chunk(text("b")), chunk(STOP)]
    assert said(derive_replay_script(log(*events, seedLength=3))) == ["b"]
    assert said(derive_replay_script(log(*events, seedLength=2))) == ["b"]
    assert said(derive_replay_script(log(*events, seedLength=0))) == ["a", "b"]
    assert derive_replay_script(log(*events, seedLength=9)) == ()


def test_the_seed_is_counted_in_events_not_in_rows():
    packed = {"type": "text-chunks", "data": {"turn": 1, "step": 1, "index": 0, "dt": [0, 0], "texts": ["a", "b", "c"]}}
    events = [packed, chunk(STOP), chunk(text("d")), chunk(STOP)]
    assert said(derive_replay_script(log(*events, seedLength=4))) == ["d"]


@pytest.mark.parametrize("length", [-1, "2", True, None, 1.5])
def test_a_seed_length_must_be_a_count(length):
    with pytest.raises(FixtureError, match="seedLength"):
        derive_replay_script(log(seedLength=length))


BLOCK = {"type": "text", "text": "sum"}
CALL_BLOCK = {"type": "tool-call", "id": "c", "name": "n", "arguments": "{}", "more": 1}


def test_a_marked_summary_is_a_call_at_its_place():
    usage = {"inputTokens": 2, "outputTokens": 1, "more": 3}
    marked = event("compaction/summary", llmStreamCall=True, rawOutput=[BLOCK, CALL_BLOCK], usage=usage)
    script = derive_replay_script(log(chunk(text("a")), chunk(STOP), marked, chunk(text("b")), chunk(STOP)))
    assert said(script) == ["a", "", "b"]
    assert entry_to_json(script[1])["chunks"] == [
        {"type": "block-start", "index": 0, "blockType": "text"},
        {"type": "block-end", "index": 0, "block": BLOCK},
        {"type": "block-start", "index": 1, "blockType": "tool-call"},
        {"type": "block-end", "index": 1, "block": CALL_BLOCK},
        {"type": "usage", "usage": usage},
        STOP,
    ]


def test_a_summary_that_no_model_made_is_no_call():
    events = [event("compaction/summary", rawOutput=[BLOCK]), event("compaction/summary", llmStreamCall=False)]
    assert derive_replay_script(log(*events)) == ()


def test_an_aux_call_is_a_call():
    aux = event("llm/aux", purpose="title", chunks=[text("T"), STOP])
    assert said(derive_replay_script(log(aux, chunk(text("a")), chunk(STOP), header=OURS))) == ["T", "a"]
    cut = event("llm/aux", purpose="title", chunks=[text("T")])
    assert said(derive_calls(log(cut, header=OURS))) == [["T"]]


def test_calls_of_a_foreign_log_may_overlap():
    events = [
        *(opened(0), of_call(0, text("a")), opened(1), opened(2), of_call(1, text("x"))),
        *(of_call(0, text("b")), of_call(1, STOP), of_call(0, STOP)),
    ]
    assert said(derive_calls(log(*events, header=OURS))) == ["ab", "x", [""]]


WRONG = {
    "summary without output": (event("compaction/summary", llmStreamCall=True), "rawOutput must be a list"),
    "aux without chunks": (event("llm/aux", purpose="title"), "needs a list of chunks"),
    "chunk of no call": (of_call(3, STOP), "call 3 was never opened"),
    "call without number": (event("llm/call", lane=0), "needs a call number"),
    "unknown chunk": (chunk({"type": "audio"}), "audio"),
    "chunk without its text": (chunk({"type": "text-delta", "index": 0}), "text"),
    "no chunk": (event("assistant/chunk", turn=1, step=1), "assistant/chunk"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_event_that_does_not_hold_what_it_must_is_refused(name):
    row, what = WRONG[name]
    with pytest.raises(FixtureError, match=what) as caught:
        derive_calls(log(row, header=OURS))
    assert caught.value.line == 2


def test_a_finished_call_says_no_more():
    with pytest.raises(FixtureError, match="already finished"):
        derive_calls(log(opened(0), of_call(0, STOP), of_call(0, text("a")), header=OURS))
    with pytest.raises(FixtureError, match="number of its own"):
        derive_calls(log(opened(0), opened(0), header=OURS))


def child(created_at, id):
    return log(header=OLD | {"createdAt": created_at, "id": id})


def test_children_come_by_birth_then_id_and_the_primary_first():
    children = [child(7, "b"), child(9, "a"), child(7, "a"), child(6, "z")]
    scripts = derive_scripts(child(8, "main"), children)
    assert [(script.created_at, script.recorded_id) for script in scripts] == [
        *((8, "main"), (6, "z"), (7, "a"), (7, "b"), (9, "a"))
    ]
    assert [script.primary for script in scripts] == [True, False, False, False, False]


def test_normalised_children_keep_their_order():
    children = [child(0, "{{sessionId:9}}"), child(0, "{{sessionId:10}}"), child("{{eventTime}}", "{{sessionId:2}}")]
    scripts = derive_scripts(child(0, "{{sessionId:1}}"), children)
    assert [script.recorded_id for script in scripts[1:]] == [f"{{{{sessionId:{n}}}}}" for n in (9, 10, 2)]


def test_an_empty_log_has_no_calls():
    assert derive_replay_script(log()) == ()
    assert isinstance(derive_replay_script(log(chunk(STOP)))[0], Chunks)
