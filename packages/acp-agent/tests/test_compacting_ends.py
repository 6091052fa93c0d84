"""A compaction that fails, or is cut short, or was done before the agent was started again."""

import json
import shutil

import pytest
from llm_dialects import DIALECTS, TextBlock

LONG = " ".join(f"The heron on post {n} watches the water." for n in range(60))
"""About 2400 characters, 600 tokens."""

SUMMARY = "The user told of sixty herons on posts. They wait for a question."


def say(text="", **members):
    return {"kind": "say", "text": text} | members


def read(path, id="c1"):
    return say(toolCalls=[{"name": "read_file", "arguments": {"path": path}, "id": id}])


REFUSED = {"kind": "throw", "chunks": [], "message": "prompt is too long", "code": "CONTEXT_WINDOW_EXCEEDED"}
USED = {"inputTokens": 1000, "outputTokens": 100, "cacheReadTokens": 2000}


def asked(server, number):
    """The neutral request of a call."""
    captured = server.requests[number]
    return DIALECTS[captured.dialect].parse_request(captured.json)


def texts(message):
    return [part.text for part in message.content if isinstance(part, TextBlock)]


def said(request):
    """All text of a request, one message a line."""
    return ["\n".join(texts(message)) for message in request.messages]


def of(events, type):
    return [event["data"] for event in events if event["type"] == type]


def compactions(events):
    return [event["type"].partition("/")[2] for event in events if event["type"].startswith("compaction/")]


def check_untouched(server, number):
    """The history is as if there had been no compaction."""
    assert LONG in said(asked(server, number))[0]
    assert "<summary>" not in "".join(said(asked(server, number)))


# ── A summary that fails ────────────────────────────────────────────────────────────────────────────────────────────

THROW = {"kind": "throw", "chunks": [], "message": "Incorrect API key provided.", "code": "AUTH"}
FAILED = {
    "refused": (THROW, "AUTH: Incorrect API key provided."),
    "itself too long": (REFUSED, "CONTEXT_WINDOW_EXCEEDED: prompt is too long"),
    "empty": (say(""), "SERVER_ERROR: the provider's answer is empty"),
    "blank": (say(" \n "), "NO_SUMMARY: the model wrote none"),
    "a tool call": (read("x"), "NO_SUMMARY: the model wrote none (its answer finished with 'tool-calls')"),
    "filtered": (say("Herons", finish="content-filter"), "NO_SUMMARY: the model wrote none"),
    "as long as before": (say(LONG), "SUMMARY_TOO_LONG: the summary is no shorter"),
    "cut off": ({"kind": "behaviour", "name": "partial_eof"}, "STREAM_CLOSED: "),
}


@pytest.mark.parametrize("reason", ["overflow", "threshold"])
@pytest.mark.parametrize("name", FAILED)
def test_a_failed_summary_leaves_the_history_and_ends_the_turn(provider, spawn, read_log, name, reason):
    answer, what = FAILED[name]
    refusals = [REFUSED] if reason == "overflow" else []
    server = provider([say("NOTED", usage=USED), *refusals, answer, say("Still here.")])
    threshold = 0 if reason == "overflow" else 3000
    agent = spawn(server, overlay=f"compaction.threshold_tokens = {threshold}\nmodel.retries = 0")
    session = agent.new_session()
    agent.prompt(session, LONG)
    error = agent.prompt(session, "What birds?")
    assert error["data"] == {"code": "COMPACTION_FAILED"}
    assert f"making a summary of it failed: {what}" in error["message"]
    agent.close()
    _, events = read_log(session)
    (end,) = of(events, "compaction/end")
    assert f"{end['error']['code']}: {end['error']['message']}".startswith(what)
    assert "message" not in end
    assert of(events, "turn/end")[-1]["reason"]["code"] == "COMPACTION_FAILED"
    again = spawn(server)
    again.call("session/load", sessionId=session, cwd=str(again.cwd), mcpServers=[])
    assert again.prompt(session, "And now?") == {"stopReason": "end_turn"}
    check_untouched(server, -1)


def test_a_summary_is_asked_for_again_like_any_answer(provider, spawn, read_log):
    limit = {"kind": "throw", "chunks": [], "message": "slow down", "code": "RATE_LIMIT"}
    server = provider([say("NOTED"), REFUSED, limit, say(SUMMARY), say("Herons.")])
    agent = spawn(server)
    session = agent.new_session()
    agent.prompt(session, LONG)
    assert agent.prompt(session, "What birds?") == {"stopReason": "end_turn"}
    agent.close()
    assert [data["failure"]["code"] for data in of(read_log(session)[1], "llm/retry")] == ["RATE_LIMIT"]


def test_a_summary_without_its_end_is_better_than_none(provider, spawn):
    server = provider([say("NOTED"), REFUSED, say(SUMMARY, finish="max-tokens"), say("Herons.")])
    agent = spawn(server)
    session = agent.new_session()
    agent.prompt(session, LONG)
    assert agent.prompt(session, "What birds?") == {"stopReason": "end_turn"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_cancel_amid_a_compaction(provider, spawn, read_log, dialect):
    server = provider([say("NOTED"), REFUSED, {"kind": "hang"}, say("Still here.")])
    agent = spawn(server, dialect=dialect)
    session = agent.new_session()
    agent.prompt(session, LONG)
    prompt = agent.start_prompt(session, "What birds?")
    server.wait(lambda: len(server.requests) == 3)
    agent.send("session/cancel", {"sessionId": session})
    assert agent.answer_to(prompt)["result"] == {"stopReason": "cancelled"}
    server.wait(lambda: server.requests[2].outcome is not None)
    assert agent.prompt(session, "And now?") == {"stopReason": "end_turn"}
    assert agent.close() == 0
    check_untouched(server, 3)
    assert "What birds?" in said(asked(server, 3))[2]
    _, events = read_log(session)
    assert compactions(events) == ["start", "end"]
    assert of(events, "compaction/end")[0]["error"]["code"] == "CANCELLED"
    assert of(events, "turn/end")[1]["reason"] == {"kind": "aborted", "by": "user"}


# ── Afterwards ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_loaded_session_goes_on_from_the_summary(provider, spawn, read_log):
    server = provider([say("NOTED"), REFUSED, say(SUMMARY), say("Herons."), say("Sixty."), say("Sixty.")])
    first = spawn(server)
    session = first.new_session()
    first.prompt(session, LONG)
    first.prompt(session, "What birds?")
    first.prompt(session, "How many?")
    first.close()
    second = spawn(server)
    second.call("session/load", sessionId=session, cwd=str(second.cwd), mcpServers=[])
    shown = [update["content"]["text"] for update in second.updates("user_message_chunk")]
    assert shown == [LONG, "What birds?", "How many?"]
    assert second.prompt(session, "Sure?") == {"stopReason": "end_turn"}
    second.close()
    before, after = said(asked(server, 4)), said(asked(server, 5))
    assert after == [*before, "Sixty.", "Sure?"]
    assert SUMMARY in before[0]


def test_an_empty_prompt_does_not_shift_what_was_replaced(provider, spawn):
    server = provider([say("NOTED"), say("Yes?"), REFUSED, say(SUMMARY), say("Herons."), say("Sixty.")])
    first = spawn(server)
    session = first.new_session()
    first.prompt(session, LONG)
    first.call("session/prompt", sessionId=session, prompt=[])
    assert first.prompt(session, "What birds?") == {"stopReason": "end_turn"}
    first.close()
    second = spawn(server)
    second.call("session/load", sessionId=session, cwd=str(second.cwd), mcpServers=[])
    assert second.prompt(session, "How many?") == {"stopReason": "end_turn"}
    second.close()
    assert said(asked(server, 5))[1:] == ["What birds?", "Herons.", "How many?"]


def test_a_crash_amid_a_compaction_leaves_the_old_history(provider, spawn, read_log):
    server = provider([say("NOTED"), REFUSED, {"kind": "hang"}, say("Still here.")])
    first = spawn(server)
    session = first.new_session()
    first.prompt(session, LONG)
    first.start_prompt(session, "What birds?")
    server.wait(lambda: len(server.requests) == 3)
    first.kill()
    second = spawn(server)
    second.call("session/load", sessionId=session, cwd=str(second.cwd), mcpServers=[])
    assert second.prompt(session, "And now?") == {"stopReason": "end_turn"}
    second.close()
    check_untouched(server, 3)
    _, events = read_log(session)
    assert compactions(events) == ["start", "end"]
    assert of(events, "compaction/end")[0]["error"]["code"] == "INTERRUPTED"
    ends = [event["type"] for event in events if event["type"].endswith("/end")]
    assert ends[2:5] == ["compaction/end", "step/end", "turn/end"]


@pytest.mark.parametrize("cut", ["llm/aux", "compaction/summary", "compaction/end"])
def test_a_log_that_ends_before_the_end_of_a_compaction_is_the_old_history(provider, spawn, read_log, tmp_path, cut):
    """The disk may hold any prefix of the log."""
    server = provider([say("NOTED"), REFUSED, say(SUMMARY), say("Herons."), say("Still here.")])
    first = spawn(server)
    session = first.new_session()
    first.prompt(session, LONG)
    first.prompt(session, "What birds?")
    first.close()
    path = tmp_path / "state" / "sessions" / session / "session.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if f'"type":"{cut}"'.encode() in line)
    path.write_bytes(b"".join(lines[:at]))
    second = spawn(server)
    second.call("session/load", sessionId=session, cwd=str(second.cwd), mcpServers=[])
    assert second.prompt(session, "And now?") == {"stopReason": "end_turn"}
    second.close()
    check_untouched(server, 4)
    assert of(read_log(session)[1], "compaction/end")[0]["error"]["code"] == "INTERRUPTED"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_replay_seam_tells_a_compaction_again(provider, spawn, read_log, tmp_path, dialect):
    server = provider([say("NOTED"), REFUSED, say(SUMMARY, chunkSize=5), say("Herons.")])
    agent = spawn(server, dialect=dialect)
    session = agent.new_session()
    agent.prompt(session, LONG)
    agent.prompt(session, "What birds?")
    agent.close()
    recorded, override = tmp_path / "recorded.jsonl", tmp_path / "override.json"
    shutil.copy(tmp_path / "state" / "sessions" / session / "session.jsonl", recorded)
    answers = [{"kind": "chunks", "chunks": chunks} for chunks in answers_in(read_log(session)[1])]
    override.write_text(json.dumps([answers[0], REFUSED, *answers[1:]]))
    report = tmp_path / "report.json"
    variables = {"SNAPSHOT_FILE": recorded, "SNAPSHOT_OVERRIDE": override, "SNAPSHOT_REPORT": report}
    told = {name: str(path) for name, path in variables.items()}
    again = spawn(dialect=dialect, overlay='model.seam = "replay"', variables=told)
    replayed = again.new_session()
    again.prompt(replayed, LONG)
    assert again.prompt(replayed, "What birds?") == {"stopReason": "end_turn"}
    assert again.close() == 0
    account = json.loads(report.read_text())
    assert (len(account["consumed"]), account["unconsumed"], account["unrecorded"]) == (4, [], [])
    assert stripped(read_log(replayed)[1]) == stripped(read_log(session)[1])


def answers_in(events):
    """The chunks of each call that was answered, in the order of the log."""
    answers = [[]]
    for event in events:
        if event["type"] == "llm/aux":
            answers[-1:] = [event["data"]["chunks"], []]
        elif event["type"] == "assistant/chunk":
            answers[-1].append(event["data"]["chunk"])
            if event["data"]["chunk"]["type"] == "finish":
                answers.append([])
    return answers[:-1]


def stripped(events):
    """The compaction events without what is new in every run."""
    kept = [event for event in events if event["type"].startswith("compaction/") or event["type"] == "llm/aux"]
    return [event["data"] | {"compactionId": event["type"]} for event in kept]
