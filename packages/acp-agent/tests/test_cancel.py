"""Ends before the end: session/cancel, a closed pipe, signals. What ran is dead, what was said is kept."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from llm_dialects import DIALECTS

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX shells and signals")

HANG = {"kind": "hang"}
SAY = {"kind": "say", "text": "Still here."}


def bash(command, id="c1"):
    return {"kind": "say", "toolCalls": [{"name": "bash", "arguments": {"command": command}, "id": id}]}


SLEEP = "sleep 600 & echo $! > pid.tmp; mv pid.tmp pid; wait"


def wait_for_hang(agent):
    agent.wait_for(lambda frame: "agent_message_chunk" in json.dumps(frame))


def wait_for_pid(agent) -> int:
    """Wait until the command has written its child's pid; the file appears whole."""
    agent.wait_for(lambda frame: frame.get("params", {}).get("update", {}).get("status") == "in_progress")
    return int(appears(agent.cwd / "pid").read_text())


def appears(path):
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        os.sched_yield()
    return path


def gone(pid):
    """Whether a process is dead, or only waits for its parent; the kernel may still be at it."""
    deadline = time.monotonic() + 30
    while running(pid) and time.monotonic() < deadline:
        os.sched_yield()
    return not running(pid)


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def reason(events):
    return [event["data"]["reason"] for event in events if event["type"] == "turn/end"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_cancel_amid_the_stream_keeps_what_was_said(provider, spawn, read_log, dialect):
    server = provider([HANG, SAY])
    agent = spawn(server, dialect=dialect)
    session = agent.new_session()
    prompt = agent.start_prompt(session, "wait")
    wait_for_hang(agent)
    agent.send("session/cancel", {"sessionId": session})
    assert agent.answer_to(prompt)["result"] == {"stopReason": "cancelled"}
    server.wait(lambda: server.requests[0].outcome is not None)
    assert server.requests[0].outcome == "stalled"
    assert agent.prompt(session, "and now?") == {"stopReason": "end_turn"}
    assert agent.close() == 0
    _, events = read_log(session)
    assert reason(events) == [{"kind": "aborted", "by": "user"}, {"kind": "completed"}]
    message = next(event["data"] for event in events if event["type"] == "assistant/message")
    assert message["interrupted"] is True
    assert message["message"]["content"] == [{"type": "text", "text": "partial"}]
    assert b"partial" in server.requests[1].body


@posix
def test_cancel_during_bash_kills_the_whole_group(provider, spawn, read_log):
    later = {"name": "bash", "arguments": {"command": "touch later"}, "id": "c2"}
    first = bash(SLEEP)
    first["toolCalls"].append(later)
    server = provider([first, SAY])
    agent = spawn(server)
    session = agent.new_session()
    prompt = agent.start_prompt(session, "sleep")
    pid = wait_for_pid(agent)
    agent.send("session/cancel", {"sessionId": session})
    assert agent.answer_to(prompt)["result"] == {"stopReason": "cancelled"}
    assert gone(pid)
    assert agent.updates("tool_call_update")[-1]["status"] == "failed"
    assert not (agent.cwd / "later").exists()
    assert agent.prompt(session, "go on") == {"stopReason": "end_turn"}
    agent.close()
    _, events = read_log(session)
    results = [event["data"] for event in events if event["type"] == "tool/result"]
    assert [(data["callId"], data["error"]["code"]) for data in results] == [("c1", "CANCELLED"), ("c2", "NOT_STARTED")]
    roles = [message["role"] for message in json.loads(server.requests[1].body)["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]


def test_cancel_right_after_the_prompt(provider, spawn, read_log):
    agent = spawn(provider([SAY]))
    session = agent.new_session()
    lines = [
        {
            "id": 90,
            "method": "session/prompt",
            "params": {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]},
        },
        {"method": "session/cancel", "params": {"sessionId": session}},
    ]
    agent.send_raw(b"".join(json.dumps({"jsonrpc": "2.0"} | line).encode() + b"\n" for line in lines))
    assert agent.answer_to(90)["result"] == {"stopReason": "cancelled"}
    agent.close()
    _, events = read_log(session)
    assert reason(events) == [{"kind": "aborted", "by": "user"}]


def test_cancel_while_waiting_to_retry(provider, spawn, read_log):
    throw = {"kind": "throw", "chunks": [], "message": "busy", "code": "OVERLOADED"}
    server = provider([throw])
    agent = spawn(server, backoff_ms=600_000)
    session = agent.new_session()
    prompt = agent.start_prompt(session, "x")
    server.wait(lambda: bool(server.requests) and server.requests[0].outcome is not None)
    agent.send("session/cancel", {"sessionId": session})
    assert agent.answer_to(prompt)["result"] == {"stopReason": "cancelled"}


def test_cancel_of_nothing_is_nothing(provider, spawn):
    agent = spawn(provider([SAY]))
    session = agent.new_session()
    for params in ({"sessionId": session}, {"sessionId": "other"}, {}, []):
        agent.send("session/cancel", params)
    agent.send("session/cancel", 7)
    assert agent.prompt(session) == {"stopReason": "end_turn"}


def test_a_closed_pipe_during_a_stream(provider, spawn, read_log):
    agent = spawn(provider([HANG]))
    session = agent.new_session()
    prompt = agent.start_prompt(session, "wait")
    wait_for_hang(agent)
    assert agent.close() == 0
    assert agent.frames[-1] == {"jsonrpc": "2.0", "id": prompt, "result": {"stopReason": "cancelled"}}
    _, events = read_log(session)
    assert [event["type"] for event in events][-3:] == ["assistant/message", "step/end", "turn/end"]
    assert reason(events) == [{"kind": "interrupted"}]
    assert agent.stderr == ""


@posix
def test_a_closed_pipe_during_bash(provider, spawn, read_log):
    agent = spawn(provider([bash(SLEEP)]))
    session = agent.new_session()
    agent.start_prompt(session, "sleep")
    pid = wait_for_pid(agent)
    assert agent.close() == 0
    assert gone(pid)
    assert reason(read_log(session)[1]) == [{"kind": "interrupted"}]


@posix
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_everything_in_good_order(provider, spawn, read_log, number, code):
    agent = spawn(provider([bash(SLEEP)]))
    session = agent.new_session()
    agent.start_prompt(session, "sleep")
    pid = wait_for_pid(agent)
    agent.process.send_signal(number)
    assert agent.wait() == code
    assert gone(pid)
    assert reason(read_log(session)[1]) == [{"kind": "interrupted"}]
    assert agent.stderr == ""


@posix
def test_a_client_that_went_away_is_no_crash(provider, environment, cwd, read_log):
    server = provider([HANG])
    variables = environment | {"OPENAI_BASE_URL": server.base_url("openai-chat")}
    ours, theirs = os.pipe()
    agent = subprocess.Popen(
        [sys.executable, "-m", "acp_agent"], stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.PIPE, env=variables
    )
    os.close(theirs)

    def send(id, method, **params):
        agent.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n")
        agent.stdin.flush()

    send(1, "session/new", cwd=str(cwd), mcpServers=[])
    with os.fdopen(ours, "rb") as frames:
        session = json.loads(frames.readline())["result"]["sessionId"]
        send(2, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "wait"}])
        frames.readline()
    _, errors = agent.communicate(timeout=30)
    assert (agent.returncode, errors) == (0, b"")
    assert reason(read_log(session)[1]) == [{"kind": "interrupted"}]
