"""The model's side of a run: what the agent asks is held against the recording, and nothing it asks goes unseen."""

import json

import pytest
from session_snapshot.invariants import CHECKS

LAST = [["respond", {"stopReason": "end_turn"}]]
TURN = [["hear"], ["call"], ["say"], *LAST]
ASK = [["hear", "Be brief."], ["hear"], ["call"]]
TOLD = [*ASK, ["results", "one"], ["call"], ["results", "two"]]
CALLS = ["call_7Hq2vXz", "call_9Rw4bTc"]


@pytest.fixture
def tools(suite):
    """A turn of three model calls: two ask for a tool, the third answers."""
    brief = '{"role":"user","content":[{"type":"text","text":"Be brief."}]}'
    suite.log(*map(suite.tool_answer, range(2), CALLS), suite.text_answer(2, "hello there world"))
    suite.edit("requests.golden.jsonl", '"append":[', f'"append":[{brief},')
    suite.append("requests.golden.jsonl", row(suite, 1, *tool_turn(1, "one")) + row(suite, 2, *tool_turn(2, "two")))
    suite.plan(session_prompt=turn_with())
    return suite


def tool_turn(number, text):
    """The messages that a tool call brings into the history."""
    call = {"type": "tool-call", "id": f"{{{{toolCallId:{number}}}}}", "name": "touch", "arguments": "{}"}
    result = {"type": "tool-result", "callId": call["id"], "content": [{"type": "text", "text": text}]}
    return {"role": "assistant", "content": [call]}, {"role": "tool", "content": [result]}


def turn_with(*acts, again=("call",)):
    """The three calls, with acts before the last."""
    return [*TOLD, *acts, list(again), ["say"], *LAST]


def row(suite, call, *append):
    head = {"call": call, "lane": 0, "parent": call - 1, "source": f"session.jsonl#{call}", "header": "default"}
    return suite.rows(head | {"params": {"model": "fake-model", "stream": True}, "append": list(append)})


def surfaces(report):
    return {failure.surface for failure in report.failures}


def test_three_calls_are_green(tools):
    tools.green()


# ── more calls, fewer calls ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_recording_longer_than_the_run(tools):
    tools.plan(session_prompt=[*TOLD, ["say", "hello there world"], *LAST])
    tools.red("consumed", "recorded call 2 (lane 0, session.jsonl#2) was never asked for", "mend: record")


def test_a_recording_shorter_than_the_run(suite):
    suite.plan(session_prompt=[["hear"], ["call"], ["say"], ["hear", "And now?"], ["call"], *LAST])
    suite.red("requests", "model call 1 is not in the recording; the nearest is call 0", "And now?")


def test_an_agent_that_swallows_the_error_of_an_unrecorded_call_cannot_hide_it(suite):
    swallow = [["hear"], ["call"], ["say"], ["hear", "A title for this?"], ["call"], *LAST]
    suite.plan(session_prompt=swallow)
    report = suite.red("requests", "model call 1 is not in the recording")
    assert surfaces(report) == {"requests"}, "all that an editor sees is as recorded"


def test_an_unrecorded_call_names_the_nearest_recorded_one(tools):
    tools.plan(session_prompt=[*TOLD, ["call"], ["say"], ["drop-last"], ["hear", "So?"], ["call"], *LAST])
    tools.red(
        "requests", "model call 3 is not in the recording; the nearest is call 2 (lane 0)", "added /messages/6", "So?"
    )


def test_a_call_made_twice_is_a_repeat_even_where_the_answer_is_the_same(suite):
    suite.plan(session_prompt=[["hear"], ["call"], ["drop-last"], ["call"], ["say"], *LAST])
    suite.red("requests", "model call 1 repeats the one that recorded call 0 answered", "nobody recorded the repeat")


# ── what the request says ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_drifted_request_is_served_and_shown_field_by_field(tools):
    tools.plan(session_prompt=[*ASK, ["results", "won"], *TOLD[4:], ["call"], ["say"], *LAST])
    report = tools.red(
        "requests", "requests.golden.jsonl:2: 1 difference", "/1/append/1/content/0/content/0/text", "won"
    )
    assert surfaces(report) == {"requests"}, "the drifted call was served: everything else is as recorded"


@pytest.mark.parametrize(
    ("changes", "drop", "said"),
    [
        ({"temperature": 0.7}, [], ["added /0/params/temperature", "0.7"]),
        ({"model": "other-model"}, [], ["/0/params/model", "fake", "other"]),
        ({"max_tokens": 5}, [], ["added /0/params/max_tokens"]),
        ({}, ["stream"], ["/0/params/stream"]),
        ({"system": "You are a pest."}, [], ["/system", "pest"]),
        ({"tools": []}, [], ["/tools/0", "touch"]),
        ({}, ["tools"], ["/tools/0"]),
    ],
)
def test_drift_is_red(suite, changes, drop, said):
    suite.plan(session_prompt=[["hear"], ["call", changes, drop], ["say", "hello there world"], *LAST])
    suite.red("requests", *said)


@pytest.mark.parametrize(
    ("text", "changed"),
    [("Say hello. Please.", "Please"), ("Say  hello.", "Say"), ("say hello.", "say")],
)
def test_text_that_holds_the_recorded_one_is_red_too(suite, text, changed):
    suite.plan(session_prompt=[["hear", text], *TURN[1:]])
    suite.red("requests", "/0/append/0/content/0/text", changed)


def test_added_history_is_red(suite):
    suite.plan(session_prompt=[["hear", "Be brief."], *TURN])
    suite.red("requests", "added /0/append/0", "Be brief.")


def test_another_order_of_keys_is_green(suite):
    suite.plan(session_prompt=[["hear"], ["call", {"tools": None, "stream": True}, ["tools"]], ["say"], *LAST])
    suite.edit("header.tools.json", (suite.turn / "header.tools.json").read_text(encoding="utf-8"), "[]\n")
    suite.green()


def test_the_day_and_the_place_of_a_run_are_no_drift(suite):
    suite.plan(session_prompt=[["hear", "On <date> in <cwd>: say hello."], *TURN[1:]])
    suite.edit("requests.golden.jsonl", "Say hello.", "On {{date}} in {{cwd}}: say hello.")
    suite.green()


OTHER_TOOLS = [{"type": "function", "function": {"name": "touch", "description": "Touch it.", "parameters": {}}}]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"system": "You are a pest."}, "snapshots/scripted/turn/header.system.md pins it\n"),
        ({"tools": OTHER_TOOLS}, "not as snapshots/scripted/turn/header.tools.json pins it\n"),
        (
            {"system": "x", "tools": OTHER_TOOLS},
            "turn/header.system.md and snapshots/scripted/turn/header.tools.json pin it\n",
        ),
    ],
)
def test_a_header_that_drifts_names_the_files_of_its_pin(suite, change, said):
    suite.plan(session_prompt=[["hear"], ["call", change], ["say"], *LAST])
    report = suite.red("requests", "the header of class 'default' is not as snapshots/scripted/turn/", said)
    assert surfaces(report) == {"requests"}


# ── what no recording can allow ─────────────────────────────────────────────────────────────────────────────────────

BRIEF, SUMMARY = ({"role": "user", "content": text} for text in ("Be brief.", "A summary."))
TOUCH = {"type": "function", "function": {"name": "touch", "description": "Touch it.", "parameters": {}}}
TOOLS_LAST, COUNTED = ["call", {}, [], ["tools"]], ["call", {"stream_options": {"include_usage": True}}]


def each(call, acts):
    """The acts with every model call made like this one."""
    return [call if act == ["call"] else act for act in acts]


MUTANTS = {
    "tool-results": [*TOLD[:-1], ["call"], ["say"], *LAST],
    "append-only": turn_with(["forget", 2, [BRIEF, SUMMARY]]),
    "leading-message": turn_with(again=("call", {"system": "You are a pest."})),
    "envelope": turn_with(again=("call", {"temperature": 1})),
    "tools": each(TOOLS_LAST, turn_with(again=("call", {"tools": [TOUCH]}, [], ["tools"]))),
    "usage": [*each(COUNTED, turn_with())[:-1], ["respond-usage", 1]],
    "context": each(COUNTED, turn_with(["update-usage", 9])),
}
"""An agent for each wire invariant that breaks it and nothing else."""


def count(suite):
    """Have answers counted whose recording holds no usage: a person wrote it, so that no provider told none."""
    suite.edit("scenario.toml", 'recording = "scripted"', 'recording = "authored"')


def broken(report):
    """The wire invariants that a run broke."""
    return {failure.what.partition(":")[0] for failure in report.failures if failure.surface == "wire"}


def test_every_wire_invariant_has_a_mutant():
    assert list(MUTANTS) == list(CHECKS)


@pytest.mark.parametrize("check", MUTANTS)
def test_each_wire_invariant_sees_its_mutant_and_no_other_does(tools, check):
    count(tools)
    tools.plan(session_prompt=MUTANTS[check])
    assert broken(tools.red("wire", f"{check}: ")) == {check}
    tools.agent(f'[wire]\nallow = [{{check = "{check}", reason = "it is known"}}]\n')
    report = tools.replay()
    assert not [failure for failure in report.failures if failure.what.startswith(f"{check}: ")]


# ── what the agent says it cost ─────────────────────────────────────────────────────────────────────────────────────

LOGGED = '[persistence]\nformat = "session-snapshot"\nlog = "{{home}}/log/*.jsonl"\n'
SESSION = {
    "type": "session",
    "format": "session-snapshot",
    "version": 1,
    "id": "{{session}}",
    "createdAt": 1,
    "cwd": "/",
}


def logs(**usage):
    """An act: write a log in which an answer cost this."""
    data = {"turn": 1, "step": 2, "message": {"role": "assistant", "content": []}, "usage": usage}
    return ["log", [SESSION, {"type": "assistant/message", "seq": 0, "time": 1, "data": data}]]


@pytest.mark.parametrize(
    ("acts", "said"),
    [
        ([["respond-usage"]], None),
        ([["update-usage"], *LAST], None),
        ([["update-usage", -3], *LAST], None),
        ([logs(inputTokens="{{input}}", outputTokens="{{output}}"), *LAST], None),
        ([["respond-usage", -1]], "usage: stdout line 4 says 59 in, 5 out, 64 in all; it was told 60 in, 5 out"),
        ([["update-usage", 1], *LAST], "context: stdout line 4 says 66; it was told 60 in, 5 out"),
        (
            [logs(inputTokens="{{input}}", outputTokens=9), *LAST],
            "usage: session.jsonl: assistant/message (turn 1, step 2) says 60 in, 9 out; it was told 60 in, 5 out",
        ),
    ],
)
def test_what_an_agent_says_of_usage_is_what_it_was_told(suite, acts, said):
    count(suite)
    suite.agent(LOGGED)
    suite.plan(session_prompt=[["hear"], COUNTED, ["say"], *acts])
    report = suite.replay()
    wire = [failure.what for failure in report.failures if failure.surface == "wire"]
    assert wire == ([] if said is None else [said])


def test_an_agent_that_was_told_nothing_knows_nothing(suite):
    suite.plan(session_prompt=[*TURN[:3], ["respond-usage", 7]])
    suite.red("wire", "usage: stdout line 4 says 7 in, 0 out, 7 in all; it was told none")


def test_recorded_usage_is_told_as_it_was_recorded(suite):
    usage = suite.rows({"type": "assistant/chunk", "data": {"call": 0, "chunk": {"type": "usage", "usage": USAGE}}})
    finish = '{"type":"assistant/chunk","data":{"call":0,"chunk":{"type":"finish"'
    suite.edit("session.jsonl", finish, usage + finish)
    assert heard(suite) == {"inputTokens": 412, "outputTokens": 9, "totalTokens": 421}


USAGE = {"inputTokens": 400, "outputTokens": 9, "cacheReadTokens": 12}


def test_where_none_was_recorded_none_is_told(suite):
    suite.plan(session_prompt=[["hear"], COUNTED, ["say"], ["respond-usage"]])
    suite.red("wire", "usage: stdout line 4 says 0 in, 0 out, 0 in all; it was told none")


def test_where_none_is_written_four_characters_are_a_token(suite):
    messages = [{"role": "system", "content": "You are a test."}, {"role": "user", "content": "Say hello."}]
    prompt = quarter(compact(messages)) + quarter(compact([NAMED | {"function": TOUCH_TOOL}]))
    answer = quarter("hello there world")
    count(suite)
    assert heard(suite) == {"inputTokens": prompt, "outputTokens": answer, "totalTokens": prompt + answer}


NAMED = {"type": "function"}
TOUCH_TOOL = {
    "name": "touch",
    "description": "Touch a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def quarter(text):
    return -(-len(text) // 4)


def heard(suite):
    """The usage of which the agent says that it was told it."""
    suite.plan(session_prompt=[["hear"], COUNTED, ["say"], ["respond-usage"]])
    report, capture = suite.capture()
    assert broken(report) == set()
    return capture.frames[-1].value["result"]["usage"]


def test_a_declared_compaction_may_rewrite_the_history(tools):
    tools.plan(session_prompt=MUTANTS["append-only"])
    tools.red("expect", "compactions: expected 0, there were 1")
    tools.edit("scenario.toml", "[expect]", "[expect]\ncompactions = 1")
    assert not surfaces(tools.replay()) & {"wire", "expect"}


# ── what is no model call ───────────────────────────────────────────────────────────────────────────────────────────


def test_side_requests_are_answered_any_number_of_times(suite):
    suite.plan(start=[["http", "GET", "/models"]] * 3, session_prompt=[["http", "HEAD", "/"], *TURN])
    suite.green()


def test_a_look_for_what_is_not_there_is_no_fault(suite):
    suite.plan(start=[["http", "GET", "/nothing/here"]])
    suite.green()


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (["POST", "/embeddings", "{}"], "POST /v1/embeddings, answered with 404"),
        (["POST", "/chat/completions", "{"], "POST /v1/chat/completions, answered with 400"),
        (["POST", "/chat/completions", '{"messages": 1}'], "POST /v1/chat/completions, answered with 400: "),
        (["GET", "/chat/completions"], "GET /v1/chat/completions, answered with 405"),
    ],
)
def test_a_request_no_provider_would_take_is_red_although_the_agent_swallows_it(suite, request_, said):
    suite.plan(session_prompt=[["http", *request_], *TURN])
    report = suite.red("agent", "the agent sent its model's endpoint a request that is none", said, "mend: ")
    assert surfaces(report) == {"agent"}


# ── the harness may not be fooled by a green wire ───────────────────────────────────────────────────────────────────


def test_one_changed_word_of_a_golden_is_pointed_at(suite):
    suite.edit("stdout.golden.jsonl", "hello there world", "hello their world")
    report = suite.red(
        "stdout", "turn/stdout.golden.jsonl:3: 1 difference", "their", "there", "/2/params/update/content/text"
    )
    assert surfaces(report) == {"stdout"}


def test_a_changed_word_of_the_recording_reaches_the_agent(suite):
    suite.edit("session.jsonl", "there", "their", times=2)
    suite.red("stdout", "- hello [-there-] world", "+ hello {+their+} world")


def test_intent_is_held_against_the_run_itself(suite):
    suite.plan(session_prompt=[["hear"], ["call"], ["say", "bye"], *LAST])
    suite.red(
        "expect",
        "snapshots/scripted/turn/scenario.toml:13: answer_contains: 'hello' is not in",
        "mend: correct the agent",
    )


def test_a_changed_file_is_red(suite):
    suite.write("workspace/notes.txt", "one\n")
    suite.plan(session_prompt=[["write", "notes.txt", "two\n"], ["write", "made/new.txt", "x"], *TURN])
    suite.red(
        "workspace",
        "2 files not as in snapshots/scripted/turn/workspace/",
        "made/new.txt",
        "mend: correct the agent; if the change is right, say [workspace] final = true",
    )
    suite.red("workspace", "changed: notes.txt: 'one\\n' became 'two\\n'")
    suite.edit("scenario.toml", "[limits]", "[workspace]\nfinal = true\n[limits]")
    suite.write("workspace.expected/notes.txt", "two\n")
    suite.write("workspace.expected/made/new.txt", "y")
    suite.red(
        "workspace",
        "1 file not as in snapshots/scripted/turn/workspace.expected/",
        "changed: made/new.txt: 'y' became 'x'",
        "mend: correct the agent; if the new tree is right, edit snapshots/scripted/turn/workspace.expected/ by hand",
    )
    suite.write("workspace.expected/made/new.txt", "x")
    suite.green()


def test_declared_state_folders_are_not_the_workspace(suite):
    suite.plan(session_prompt=[["write", ".scripted/cache.txt", "x"], *TURN])
    suite.red("workspace", "added:   .scripted/cache.txt")
    suite.agent('[persistence]\nstate = [".scripted"]\n')
    suite.green()
