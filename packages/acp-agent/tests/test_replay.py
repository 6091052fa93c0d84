"""The replay seam: the log of one run, told again in the next, without any provider."""

import json

import pytest

SCRIPT = [
    {
        "kind": "say",
        "text": "Running.",
        "toolCalls": [{"name": "bash", "arguments": {"command": "echo hi"}, "id": "c1"}],
    },
    {"kind": "say", "text": "It said hi."},
]
REPLAY = 'model.seam = "replay"'


@pytest.fixture
def recorded(provider, spawn, tmp_path):
    """Run once against a provider; return the log's path and what the client was told."""
    agent = spawn(provider(SCRIPT))
    session = agent.new_session()
    agent.prompt(session, "Run it.")
    agent.close()
    return tmp_path / "state" / "sessions" / session / "session.jsonl", agent.updates("agent_message_chunk")


def texts(updates):
    return [update["content"]["text"] for update in updates]


def replay(spawn, log, report, **variables):
    return spawn(overlay=REPLAY, variables={"SNAPSHOT_FILE": str(log), "SNAPSHOT_REPORT": str(report)} | variables)


def test_a_log_is_told_again(recorded, spawn, tmp_path):
    log, told = recorded
    report = tmp_path / "report.json"
    agent = replay(spawn, log, report)
    assert agent.prompt(agent.new_session(), "Run it.") == {"stopReason": "end_turn"}
    assert agent.close() == 0
    assert texts(agent.updates("agent_message_chunk")) == texts(told)
    account = json.loads(report.read_text())
    assert len(account["consumed"]) == 2
    assert not any(account[name] for name in ("unconsumed", "unrecorded"))


def test_a_report_is_written_even_if_nothing_was_asked(recorded, spawn, tmp_path):
    report = tmp_path / "report.json"
    assert replay(spawn, recorded[0], report).close() == 0
    assert len(json.loads(report.read_text())["unconsumed"]) == 2


def test_a_call_nobody_recorded_fails_the_prompt(recorded, spawn, tmp_path):
    agent = replay(spawn, recorded[0], tmp_path / "report.json")
    session = agent.new_session()
    assert agent.prompt(session, "Run it.") == {"stopReason": "end_turn"}
    assert agent.prompt(session, "More.")["data"] == {"code": "UNRECORDED_CALL"}


def test_failures_and_silence_are_replayed(recorded, spawn, tmp_path, read_log):
    override = tmp_path / "override.json"
    throw = {"kind": "throw", "chunks": [], "message": "slow down", "code": "RATE_LIMIT", "status": 429}
    override.write_text(json.dumps([throw, {"kind": "hang", "readyFile": "ready"}]))
    agent = replay(spawn, recorded[0], tmp_path / "report.json", SNAPSHOT_OVERRIDE=str(override))
    session = agent.new_session()
    prompt = agent.start_prompt(session, "Run it.")
    agent.wait_for(lambda frame: frame.get("method") == "session/update")
    agent.send("session/cancel", {"sessionId": session})
    assert agent.answer_to(prompt)["result"] == {"stopReason": "cancelled"}
    assert agent.close() == 0
    _, events = read_log(session)
    assert [event["data"]["failure"]["status"] for event in events if event["type"] == "llm/retry"] == [429]


def test_a_missing_recording_is_a_sentence(spawn, tmp_path):
    for variables in ({}, {"SNAPSHOT_FILE": str(tmp_path / "nowhere.jsonl")}):
        agent = spawn(overlay=REPLAY, variables=variables, greet=False)
        assert agent.wait() == 2
        assert "mend: " in agent.stderr
        assert "Traceback" not in agent.stderr
