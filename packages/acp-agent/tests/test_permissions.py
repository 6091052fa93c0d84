"""What needs the user's leave, what the user may say, and what comes of it."""

import pytest
from acp_agent.permissions import Allowed, Ask, Refused, judge
from acp_agent.tools import parse_call
from llm_dialects import ToolCallBlock

DONE = {"kind": "say", "text": "done"}


def tool(name, id="c1", **arguments):
    return {"kind": "say", "toolCalls": [{"name": name, "arguments": arguments, "id": id}]}


def escalated(command, id="c1"):
    return tool("bash", id, command=command, escalate=True, justification="it must reach out")


def codes(events):
    return [event["data"].get("error", {}).get("code") for event in events if event["type"] == "tool/result"]


OUTCOMES = [
    ("allow-once", "allow_once", None, True),
    ("allow-always", "allow_always", None, True),
    ("reject-once", "reject_once", "PERMISSION_DENIED", False),
    ("reject-always", "reject_always", "PERMISSION_DENIED", False),
]


@pytest.mark.parametrize(("option", "outcome", "code", "ran"), OUTCOMES)
def test_what_the_user_chooses(provider, spawn, read_log, option, outcome, code, ran):
    agent = spawn(provider([escalated("touch ran"), DONE]))
    session = agent.new_session()
    prompt = agent.start_prompt(session, "go")
    request = agent.answer_permission(option)
    assert agent.answer_to(prompt)["result"] == {"stopReason": "end_turn"}
    agent.close()
    assert (agent.cwd / "ran").exists() is ran
    assert request["params"]["sessionId"] == session
    assert request["params"]["toolCall"]["toolCallId"] == "c1"
    assert request["params"]["toolCall"]["title"] == "touch ran"
    kinds = [option["kind"] for option in request["params"]["options"]]
    assert kinds == ["allow_once", "allow_always", "reject_once", "reject_always"]
    _, events = read_log(session)
    asked, decided = [event["data"] for event in events if event["type"].startswith("approval/")]
    assert asked == {"id": asked["id"], "callId": "c1", "toolName": "bash", "reason": "it must reach out"}
    assert decided == {"id": asked["id"], "outcome": outcome}
    assert codes(events) == [code]


NOT_ANSWERS = [
    {"result": {"outcome": {"outcome": "cancelled"}}},
    {"result": {"outcome": {"outcome": "selected", "optionId": "allow-everything"}}},
    {"result": {"outcome": "yes"}},
    {"result": None},
    {"error": {"code": -32601, "message": "Method not found"}},
]


def test_no_decision_ends_the_turn_and_runs_nothing(provider, spawn, read_log):
    agent = spawn(provider([escalated("touch ran", f"c{at}") for at, _ in enumerate(NOT_ANSWERS)] + [DONE]))
    session = agent.new_session()
    for answer in NOT_ANSWERS:
        prompt = agent.start_prompt(session, "go")
        agent.answer_permission(answer)
        assert agent.answer_to(prompt)["result"] == {"stopReason": "cancelled"}, answer
    assert not (agent.cwd / "ran").exists()
    assert agent.prompt(session) == {"stopReason": "end_turn"}
    agent.close()
    _, events = read_log(session)
    decided = [event["data"]["outcome"] for event in events if event["type"] == "approval/decided"]
    ends = [event["data"]["reason"]["kind"] for event in events if event["type"] == "turn/end"]
    assert decided == ["cancelled"] * len(NOT_ANSWERS)
    assert ends == ["aborted"] * len(NOT_ANSWERS) + ["completed"]
    assert codes(events) == ["CANCELLED"] * len(NOT_ANSWERS)


def test_cancel_while_the_user_is_asked(provider, spawn, read_log):
    agent = spawn(provider([escalated("touch ran")]))
    session = agent.new_session()
    prompt = agent.start_prompt(session, "go")
    request = agent.wait_for(lambda frame: frame.get("method") == "session/request_permission")
    agent.send("session/cancel", {"sessionId": session})
    assert agent.answer_to(prompt)["result"] == {"stopReason": "cancelled"}
    agent.send_raw(b'{"jsonrpc":"2.0","id":%d,"result":{"outcome":{"outcome":"cancelled"}}}\n' % request["id"])
    agent.close()
    _, events = read_log(session)
    assert [event["data"]["outcome"] for event in events if event["type"] == "approval/decided"] == ["cancelled"]


@pytest.mark.parametrize(("option", "ran"), [("allow-always", True), ("reject-always", False)])
def test_always_is_remembered_for_the_session_only(provider, spawn, option, ran):
    agent = spawn(provider([escalated("touch a"), escalated("touch b", "c2"), DONE, escalated("touch c", "c3"), DONE]))
    session = agent.new_session()
    prompt = agent.start_prompt(session, "go")
    agent.answer_permission(option)
    assert agent.answer_to(prompt)["result"] == {"stopReason": "end_turn"}
    assert [(agent.cwd / name).exists() for name in "ab"] == [ran, ran]
    prompt = agent.start_prompt(agent.new_session(), "go")
    agent.answer_permission("reject-once")
    assert agent.answer_to(prompt)["result"] == {"stopReason": "end_turn"}
    assert not (agent.cwd / "c").exists()


def test_read_only_refuses_what_changes_something(provider, spawn, read_log):
    script = [
        tool("write_file", path="new", content="x"),
        tool("edit_file", "c2", path="old", old_text="a", new_text="b"),
        tool("bash", "c3", command="touch ran"),
        tool("read_file", "c4", path="old"),
        DONE,
        tool("write_file", "c5", path="new", content="x"),
        DONE,
    ]
    agent = spawn(provider(script))
    (agent.cwd / "old").write_text("a")
    session = agent.new_session()
    assert agent.call("session/set_mode", sessionId=session, modeId="read-only") == {}
    agent.prompt(session)
    assert [path.name for path in agent.cwd.iterdir()] == ["old"]
    assert agent.call("session/set_mode", sessionId=session, modeId="default") == {}
    agent.prompt(session)
    assert (agent.cwd / "new").exists()
    agent.close()
    assert codes(read_log(session)[1]) == ["READ_ONLY", "READ_ONLY", "READ_ONLY", None, None]


def call(name, **arguments):
    import json

    return parse_call(ToolCallBlock(id="c", name=name, arguments=json.dumps(arguments)), [name])


BASH = call("bash", command="x")
WRITE = call("write_file", path="x", content="")
READ = call("read_file", path="x")
ESCALATE = call("bash", command="x", escalate=True, justification="why")
UNJUSTIFIED = call("bash", command="x", escalate=True, justification=" ")

VERDICTS = [
    (BASH, "default", [], {}, Allowed()),
    (BASH, "default", ["bash"], {}, Ask("bash", "bash needs the user's leave")),
    (BASH, "default", ["bash"], {"bash": "allow_always"}, Allowed()),
    (BASH, "default", ["bash"], {"write": "allow_always"}, Ask("bash", "bash needs the user's leave")),
    (BASH, "read-only", [], {}, "READ_ONLY"),
    (WRITE, "default", ["write"], {}, Ask("write", "write_file needs the user's leave")),
    (WRITE, "default", ["write"], {"write": "reject_always"}, "PERMISSION_DENIED"),
    (READ, "read-only", ["write", "bash"], {}, Allowed()),
    (ESCALATE, "default", ["escalate"], {}, Ask("escalate", "why")),
    (ESCALATE, "read-only", ["escalate"], {}, Ask("escalate", "why")),
    (ESCALATE, "default", ["bash"], {"bash": "allow_always"}, "ESCALATION_DISABLED"),
    (UNJUSTIFIED, "default", ["escalate"], {}, "INVALID_ARGUMENTS"),
]


@pytest.mark.parametrize(("use", "mode", "ask", "remembered", "verdict"), VERDICTS)
def test_verdicts(use, mode, ask, remembered, verdict):
    judged = judge(use, mode, ask, remembered)
    assert (judged.code if isinstance(judged, Refused) else judged) == verdict
