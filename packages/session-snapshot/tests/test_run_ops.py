"""Every op of a script, performed against an agent that runs: what it sends, or what it waits for."""

import sys
from collections.abc import Callable
from typing import get_args

import pytest
from msgspec import Struct
from session_snapshot.fixtures import load_committed
from session_snapshot.run import Capture
from session_snapshot.steps import Step
from session_snapshot.suites import load
from session_snapshot.trace import Sent

LAST = [["respond", {"stopReason": "end_turn"}]]
TURN = [["hear"], ["call"], ["say"], *LAST]
OPENING = [{"op": "initialize"}, {"op": "newSession"}]
PROMPT = {"op": "prompt", "text": "Say hello."}
BEHIND = PROMPT | {"background": True}
GO = {"op": "sendRaw", "text": '{"jsonrpc":"2.0","method":"go"}'}
END = {"op": "waitForTurnEnd"}
DONE = [["respond", {}]]
CLOSE, CLOSED = {"op": "closeSession"}, [["say", "closed"], *DONE]
LOGGED = '[persistence]\nformat = "session-snapshot"\nlog = "{{home}}/log/*.jsonl"\n'
HEADER = {"type": "session", "format": "session-snapshot", "version": 1, "id": "{{session}}", "createdAt": 1, "cwd": ""}
CHILD = HEADER | {"id": "child-1", "parentSession": "{{session}}", "createdAt": 2}


def rows(header, *kinds, **data):
    """A session log with these events."""
    events = [{"type": kind, "seq": seq, "time": 5, "data": data} for seq, kind in enumerate(kinds)]
    return [header, *events]


class Row(Struct):
    """How an op is shown to work: a script with it, the agent's plan, and what must be seen of the run.

    ``sends`` are the method and the parameters of the op's own message (the session's id left out); ``before`` and
    ``after`` texts of frames, the first of which must come before the second.
    """

    steps: list
    plan: dict = {}
    sends: tuple = ()
    order: tuple = ()
    seen: Callable[[Capture], bool] = lambda _: True
    log: bool = False


def sends(method, *steps, **params):
    """A row of an op that sends one request, which the agent answers with nothing."""
    return Row([*OPENING, *steps], {method.replace("/", "_", 1): DONE}, (method, params))


def waits(*steps, acts=(), **more):
    """A row of a wait: the agent does ``acts`` after a while, and serves first whatever comes before that.

    A wait that did not wait would have it hear ``go`` first, and say so before its turn is over.
    """
    plan = {"session_prompt": [["hear"], ["pause", 0.25], *acts, ["await-line"], *LAST], "go": [["say", "gone"]]}
    return Row([*OPENING, BEHIND, *steps, GO, END], plan, order=("stopReason", "gone"), **more)


SERVERS, BLOCK = [{"name": "x", "command": "x", "args": [], "env": []}], {"type": "text", "text": "Say hello."}
OPS = {
    "initialize": Row([OPENING[0]], sends=("initialize", {"protocolVersion": 1, "clientCapabilities": {}})),
    "authenticate": sends("authenticate", {"op": "authenticate", "methodId": "key"}, methodId="key"),
    "newSession": Row(
        [OPENING[0], OPENING[1] | {"mcpServers": SERVERS, "additionalDirectories": ["{{cwd}}/sub"]}],
        sends=("session/new", {"cwd": "{{cwd}}", "mcpServers": SERVERS, "additionalDirectories": ["{{cwd}}/sub"]}),
    ),
    "newSessionExpectError": Row(
        [OPENING[0], {"op": "newSessionExpectError", "cwd": "/nowhere", "code": -32602}],
        {"session_new": [["refuse", -32602, "no"]]},
        ("session/new", {"cwd": "/nowhere", "mcpServers": []}),
    ),
    "loadSession": sends("session/load", {"op": "loadSession"}, cwd="{{cwd}}", mcpServers=[]),
    "resumeSession": sends(
        "session/resume", {"op": "resumeSession", "mcpServers": SERVERS}, cwd="{{cwd}}", mcpServers=SERVERS
    ),
    "closeSession": sends("session/close", {"op": "closeSession"}),
    "setMode": sends("session/set_mode", {"op": "setMode", "modeId": "plan"}, modeId="plan"),
    "setModel": sends("session/set_model", {"op": "setModel", "modelId": "big"}, modelId="big"),
    "setConfigOption": sends(
        "session/set_config_option", {"op": "setConfigOption", "configId": "a", "value": "b"}, configId="a", value="b"
    ),
    "prompt": Row([*OPENING, PROMPT], sends=("session/prompt", {"prompt": [BLOCK]})),
    "promptContent": Row(
        [*OPENING, {"op": "promptContent", "content": [BLOCK]}], sends=("session/prompt", {"prompt": [BLOCK]})
    ),
    "promptExpectError": Row(
        [*OPENING, {"op": "promptExpectError", "text": "Say hello.", "code": -1}],
        {"session_prompt": [["refuse", -1, "no"]]},
        ("session/prompt", {"prompt": [BLOCK]}),
    ),
    "promptAndCancel": Row(
        [*OPENING, {"op": "promptAndCancel", "text": "Say hello.", "waitForFile": {"path": "now"}}],
        {"session_prompt": [["write", "now", ""], ["await-line"], *LAST], "session_cancel": [["say", "cancelled"]]},
        ("session/cancel", {}),
        ("stopReason", "cancelled"),
    ),
    "promptAndWaitForAgentMessage": Row(
        [*OPENING, {"op": "promptAndWaitForAgentMessage", "text": "Say hello.", "waitForText": "background"}, CLOSE],
        {"session_prompt": [*TURN, ["pause", 0.25], ["say", "background"]], "session_close": CLOSED},
        ("session/prompt", {"prompt": [BLOCK]}),
        ("background", "closed"),
    ),
    "cancel": Row(
        [*OPENING, BEHIND, {"op": "cancel", "waitForFile": {"path": "now"}}, END],
        {"session_prompt": [["write", "now", ""], ["await-line"], *LAST], "session_cancel": [["say", "cancelled"]]},
        ("session/cancel", {}),
        ("stopReason", "cancelled"),
    ),
    "waitForFile": waits({"op": "waitForFile", "path": "sub/now", "contains": "x"}, acts=[["write", "sub/now", "x"]]),
    "waitForTurnStart": waits({"op": "waitForTurnStart"}, acts=[["update", "plan", {"entries": []}]]),
    "waitForTurnEnd": Row(
        [*OPENING, BEHIND, END, CLOSE],
        {"session_prompt": [["pause", 0.25], *LAST], "session_close": CLOSED},
        order=("stopReason", "closed"),
    ),
    "waitForUpdate": waits({"op": "waitForUpdate", "kind": "plan"}, acts=[["update", "plan", {"entries": []}]]),
    "waitForEvent": waits(
        {"op": "waitForEvent", "type": "user/message", "contains": "here"},
        {"op": "waitForEvent", "type": "turn/end"},
        acts=[["log", rows(HEADER, "turn/start", "user/message", "turn/end", text="I am here")]],
        log=True,
    ),
    "waitForSubagentTurnEnd": waits(
        {"op": "waitForSubagentTurnEnd", "child": 1, "minimumTurn": 2},
        acts=[
            ["log", rows(HEADER, "turn/start")],
            ["log", rows(CHILD, "turn/start", "turn/end", "turn/start", "turn/end"), "child.jsonl"],
        ],
        log=True,
    ),
    "writeFile": Row(
        [*OPENING, {"op": "writeFile", "path": "new.txt", "text": "in {{cwd}}"}],
        seen=lambda capture: capture.after == {"new.txt": f"in {capture.box.cwd}".encode()},
    ),
    "removeFile": Row(
        [*OPENING, {"op": "removeFile", "path": "made"}],
        {"session_new": [["write", "made", ""], ["open"]]},
        seen=lambda capture: capture.after == {},
    ),
    "sendRaw": Row(
        [*OPENING, GO | {"replies": 1}, CLOSE],
        {"go": [["pause", 0.25], ["say", "gone"]], "session_close": CLOSED},
        order=("gone", "closed"),
    ),
    "restart": Row(
        [*OPENING, {"op": "restart"}, OPENING[0]], {"eof": [["say", "over"]]}, order=("over", "agentCapabilities")
    ),
    "kill": Row(
        [*OPENING, {"op": "kill"}, {"op": "restart"}, OPENING[0]],
        {"eof": [["write", "end-of-stdin", ""]]},
        seen=lambda capture: len(boots(capture)) == 2,
    ),
}
"""One row for each op of a script."""


def boots(capture):
    """The frames that answer ``initialize``."""
    return [frame for frame in capture.frames if "agentCapabilities" in str(frame.value)]


def messages(capture):
    """The method and the parameters of what was sent, without session ids, places in tokens."""
    sent = [moment.value for moment in capture.moments if isinstance(moment, Sent) and isinstance(moment.value, dict)]
    return [(value["method"], plain(value["params"], str(capture.box.cwd))) for value in sent if "method" in value]


def plain(value, cwd):
    match value:
        case dict():
            kept = {key: item for key, item in value.items() if key not in ("sessionId", "clientInfo")}
            return {key: plain(item, cwd) for key, item in kept.items()}
        case list():
            return [plain(item, cwd) for item in value]
        case str():
            return value.replace(cwd, "{{cwd}}")
        case _:
            return value


def performed(suite, row):
    """The capture of a row's run, in which nothing was wrong with agent or script."""
    if sys.platform == "win32" and "pause" in str(row.plan):
        pytest.skip("posix only: the scripted agent waits for its pipe with select")
    suite.plan(**row.plan)
    suite.steps(*row.steps)
    suite.counts(*({} for _ in row.steps))  # nothing but the ops themselves holds a step up
    suite.agent(LOGGED if row.log else "")
    report, capture = suite.capture()
    wrong = [failure for failure in report.failures if failure.surface in ("agent", "fixture")]
    assert wrong == []
    return capture


@pytest.mark.parametrize("op", OPS)
def test_op(suite, op):
    row = OPS[op]
    capture = performed(suite, row)
    assert op in {step["op"] for step in row.steps}
    assert not row.sends or row.sends in messages(capture)
    frames = [str(frame.value) for frame in capture.frames]
    first, *second = ([at for at, text in enumerate(frames) if part in text] for part in row.order or ("jsonrpc",))
    assert all(first[0] < places[-1] for places in second), frames
    assert row.seen(capture)


def test_no_op_is_without_a_row():
    assert sorted(OPS) == sorted(kind.__struct_config__.tag for kind in get_args(Step))


# ── waiting for the agent's own log ─────────────────────────────────────────────────────────────────────────────────


def waiting(suite, step, *acts, seconds=0.6):
    """A suite whose agent does these acts in a turn that does not end, while the script performs ``step``."""
    suite.agent(LOGGED)
    suite.edit("scenario.toml", "step_seconds = 20", f"step_seconds = {seconds}")
    suite.plan(session_prompt=[["hear"], *acts, ["await-line"], *LAST])
    suite.steps(*OPENING, BEHIND, step, END)
    return suite


@pytest.mark.parametrize(
    ("step", "acts", "said"),
    [
        (
            {"type": "turn/end"},
            [["log", rows(HEADER, "turn/start", "user/message", "user/message")]],
            "an event 'turn/end' in the session's log (it holds turn/start, 2 user/message; 0 taken by earlier waits)",
        ),
        (
            {"type": "turn/end", "contains": "max"},
            [["log", rows(HEADER, "turn/end", reason={"kind": "completed"})]],
            "an event 'turn/end' like 'max' in the session's log (it holds turn/end; 0 taken by earlier waits)",
        ),
        ({"type": "turn/end"}, [], "(it holds nothing; 0 taken"),
        ({"type": "turn/end"}, [["log", rows(HEADER | {"id": "other"}, "turn/end")]], "(it holds nothing; 0 taken"),
    ],
)
def test_an_event_that_never_comes(suite, step, acts, said):
    waiting(suite, {"op": "waitForEvent"} | step, *acts)
    suite.red("agent", "step 4 (waitForEvent) was not done within 0.6 s: it waited for an event", said, "mend: ")


@pytest.mark.parametrize(
    ("step", "acts", "said"),
    [
        ({}, [], "turn 1 of sub-agent 1 (the session has 0 sub-agents)"),
        ({"child": 2}, [["log", rows(CHILD, "turn/end"), "child.jsonl"]], "sub-agent 2 (the session has 1 sub-agents)"),
        (
            {},
            [["log", rows(CHILD, "turn/start", "turn/end", "turn/start"), "child.jsonl"]],
            "turn 1 of sub-agent 1 (its log holds 2 turn/start, turn/end)",
        ),
        (
            {"minimumTurn": 2},
            [["log", rows(CHILD, "turn/start", "turn/end"), "child.jsonl"]],
            "turn 2 of sub-agent 1 (its log holds turn/start, turn/end)",
        ),
        (
            {},
            [["log", rows(CHILD | {"seedLength": 2}, "turn/start", "turn/end"), "child.jsonl"]],
            "turn 1 of sub-agent 1 (its log holds turn/start, turn/end)",
        ),
        (
            {},
            [["log", rows(CHILD | {"parentSession": "nobody"}, "turn/end"), "child.jsonl"]],
            "(the session has 0 sub-agents)",
        ),
    ],
)
def test_a_sub_agent_that_never_ends_its_turn(suite, step, acts, said):
    waiting(suite, {"op": "waitForSubagentTurnEnd"} | step, *acts)
    suite.red("agent", "step 4 (waitForSubagentTurnEnd) was not done within 0.6 s: it waited for the end of turn", said)


def test_a_sub_agent_of_a_sub_agent_counts(suite):
    grandchild = CHILD | {"id": "child-2", "parentSession": "child-1", "createdAt": 3}
    acts = [["log", rows(CHILD, "turn/start"), "a.jsonl"], ["log", rows(grandchild, "turn/end"), "b.jsonl"]]
    waiting(suite, {"op": "waitForSubagentTurnEnd", "child": 2}, *acts, seconds=20)
    suite.steps(*OPENING, BEHIND, {"op": "waitForSubagentTurnEnd", "child": 2}, GO, END)
    report, _ = suite.capture()
    assert [failure.what for failure in report.failures if failure.surface == "agent"] == []


def test_an_event_is_taken_once(suite):
    step = {"op": "waitForEvent", "type": "turn/end"}
    waiting(suite, step, ["log", rows(HEADER, "turn/end")])
    suite.steps(*OPENING, BEHIND, step, step, END)
    suite.red("agent", "step 5 (waitForEvent) was not done", "(it holds turn/end; 1 taken by earlier waits)")


def test_a_wrong_log_ends_the_wait_at_once(suite):
    waiting(suite, {"op": "waitForEvent", "type": "turn/end"}, ["log", [HEADER, "nonsense"]], seconds=20)
    suite.red("agent", "the agent's session log is wrong", "session.jsonl:2")


def test_an_agent_that_dies_meanwhile_is_told_with_what_it_had_logged(suite):
    acts = [["log", rows(HEADER, "turn/start")], ["exit", 3]]
    waiting(suite, {"op": "waitForEvent", "type": "turn/end"}, *acts, seconds=20)
    said = "exited (code 3) while the harness waited for an event 'turn/end' in the session's log (it holds turn/start;"
    suite.red("agent", said)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"op": "waitForEvent", "type": "turn/end"}, "input.json:6: waitForEvent reads the agent's own session log"),
        ({"op": "waitForSubagentTurnEnd"}, "input.json:6: waitForSubagentTurnEnd reads the agent's own session log"),
        ({"op": "waitForEvent", "type": "turn/ends"}, "unknown value 'turn/ends' at $.steps[3].type"),
        ({"op": "waitForEvent", "type": "turn/ends"}, "the nearest known one is 'turn/end'"),
        ({"op": "waitForSubagentTurnEnd", "child": 0}, "input.json:6: Expected `int` >= 1 - at `$.steps[3].child`"),
    ],
)
def test_what_cannot_be_waited_for_is_refused_before_anything_runs(suite, step, said):
    suite.steps(*OPENING, PROMPT, step)
    done = suite.command("replay", "turn")
    assert done.returncode == 1
    assert said in done.stdout
    assert "mend: " in done.stdout and "Traceback" not in done.stdout


def test_loading_refuses_it_too(suite):
    """Nothing that was loaded holds a wait nobody could end."""
    suite.agent(LOGGED)
    suite.steps(*OPENING, {"op": "waitForEvent", "type": "turn/end"})
    assert load_committed(load(suite.place)).own_log
