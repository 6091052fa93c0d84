"""A conversation that is too long for its model: the real agent, a real provider, every dialect."""

import json

import pytest
from llm_dialects import DIALECTS, TextBlock, ToolCallBlock, ToolResultPart, honest_usage
from llm_replay import check_live, derive_replay_script, parse_log

LONG = " ".join(f"The heron on post {n} watches the water." for n in range(60))
"""About 2400 characters, 600 tokens."""

SUMMARY = "The user told of sixty herons on posts. They wait for a question."


def say(text="", **members):
    return {"kind": "say", "text": text} | members


def read(path, id="c1"):
    return say(toolCalls=[{"name": "read_file", "arguments": {"path": path}, "id": id}])


OVERFLOW = {"kind": "behaviour", "name": "context_overflow"}
REFUSED = {"kind": "throw", "chunks": [], "message": "prompt is too long", "code": "CONTEXT_WINDOW_EXCEEDED"}
AMID = {
    "kind": "chunks",
    "chunks": [
        {
            "type": "finish",
            "reason": {"kind": "error", "failure": {"message": "too long", "code": "CONTEXT_WINDOW_EXCEEDED"}},
        }
    ],
}
TOO_LARGE = {"kind": "throw", "chunks": [], "message": "request exceeds the maximum size", "code": "REQUEST_TOO_LARGE"}


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


# ── Recovery ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("refusal", [OVERFLOW, REFUSED, AMID, TOO_LARGE], ids=["vendor", "throw", "amid", "413"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_refused_call_is_made_again_with_a_summary(provider, spawn, read_log, dialect, refusal):
    server = provider([say("NOTED"), refusal, say(SUMMARY), say("Herons.")])
    agent = spawn(server, dialect=dialect)
    session = agent.new_session()
    agent.prompt(session, LONG)
    assert agent.prompt(session, "What birds?") == {"stopReason": "end_turn"}
    assert agent.close() == 0
    first, refused, summary, again = (asked(server, number) for number in range(4))
    assert said(refused) == [LONG, "NOTED", "What birds?"]
    assert (len(summary.messages), summary.tools) == (1, ())
    assert LONG in said(summary)[0]
    assert "NOTED" in said(summary)[0]
    assert "What birds?" not in said(summary)[0]
    assert "2048" in json.dumps(server.requests[2].json)
    checkpoint, last = said(again)
    assert last == "What birds?"
    assert SUMMARY in checkpoint
    assert "heron on post" not in json.dumps(server.requests[3].json)
    assert (again.system, again.tools, again.params) == (first.system, first.tools, first.params)
    assert {dict(request.headers)["x-session-id"] for request in server.requests} == {session}
    assert "".join(update["content"]["text"] for update in agent.updates("agent_message_chunk")) == "NOTEDHerons."
    _, events = read_log(session)
    assert compactions(events) == ["start", "summary", "end"]


def test_the_log_tells_what_was_done(provider, spawn, read_log, tmp_path):
    usage = {"inputTokens": 3000, "outputTokens": 10, "cacheReadTokens": 500}
    server = provider([say("NOTED", usage=usage), REFUSED, say(SUMMARY, chunkSize=7), say("Herons.")])
    agent = spawn(server)
    session = agent.new_session()
    agent.prompt(session, LONG)
    agent.prompt(session, "What birds?")
    agent.close()
    _, events = read_log(session)
    names = [event["type"] for event in events if event["data"].get("turn") == 2]
    assert names[: names.index("assistant/chunk")] == [
        *("turn/start", "step/start", "compaction/start", "llm/aux", "compaction/summary", "compaction/end")
    ]
    ((start,), (aux,), (summary,), (end,)) = (
        of(events, name) for name in ("compaction/start", "llm/aux", "compaction/summary", "compaction/end")
    )
    assert len({event["compactionId"] for event in (start, aux, summary, end)}) == 1
    assert {(event["turn"], event["step"]) for event in (start, aux, summary, end)} == {(2, 1)}
    failure = {"code": "CONTEXT_WINDOW_EXCEEDED", "message": "prompt is too long", "status": 400}
    assert (start["reason"], start["failure"]) == ("overflow", failure)
    # What was told (3500 + 10), and an estimate of the prompt since.
    assert 3510 < start["tokens"] <= 3560
    assert summary["shadowedRange"] == {"start": 0, "end": 2}
    assert 600 < summary["shadowedTokens"] < 700
    assert (summary["shortened"], summary["leftOut"]) == (0, 0)
    assert summary["rawOutput"] == [{"type": "text", "text": SUMMARY}]
    assert summary["usage"]["outputTokens"] > 0
    assert aux["purpose"] == "compaction"
    assert "".join(chunk.get("text", "") for chunk in aux["chunks"]) == SUMMARY
    assert end["tokensBefore"] == start["tokens"]
    assert end["tokensAfter"] < end["tokensBefore"] - 500
    assert SUMMARY in end["message"]["content"][0]["text"]
    raw = (tmp_path / "state" / "sessions" / session / "session.jsonl").read_text("utf-8")
    log = parse_log(raw, "session.jsonl")
    check_live(log)
    script = derive_replay_script(log)
    assert len(script) == 3
    deltas = [chunk.text for chunk in script[1].chunks if type(chunk).__name__ == "TextDelta"]
    assert ("".join(deltas), len(deltas) > 5) == (SUMMARY, True)


def test_a_second_refusal_ends_the_turn(provider, spawn, read_log):
    server = provider([say("NOTED"), REFUSED, say(SUMMARY), REFUSED, say("Still here.")])
    agent = spawn(server)
    session = agent.new_session()
    agent.prompt(session, LONG)
    error = agent.prompt(session, "What birds?")
    assert error["data"] == {"code": "CONTEXT_WINDOW_EXCEEDED"}
    assert "too long even after a compaction: prompt is too long" in error["message"]
    assert len(server.requests) == 4
    assert agent.prompt(session, "And now?") == {"stopReason": "end_turn"}
    agent.close()
    assert said(asked(server, 4))[1:] == ["What birds?", "And now?"]
    assert SUMMARY in said(asked(server, 4))[0]
    _, events = read_log(session)
    assert compactions(events) == ["start", "summary", "end"]


def test_a_summary_is_summed_up_again_when_need_be(provider, spawn, read_log):
    again = "There were herons, sixty, then more."
    server = provider(
        [say("NOTED"), REFUSED, say(SUMMARY), say("Ok."), say("More."), REFUSED, say(again), say("Done.")]
    )
    agent = spawn(server)
    session = agent.new_session()
    for text in (LONG, "What birds?", LONG):
        agent.prompt(session, text)
    assert agent.prompt(session, "How many?") == {"stopReason": "end_turn"}
    agent.close()
    assert SUMMARY in said(asked(server, 6))[0]
    checkpoint, last = said(asked(server, 7))
    assert (again in checkpoint, SUMMARY in checkpoint, last) == (True, False, "How many?")
    _, events = read_log(session)
    assert compactions(events) == ["start", "summary", "end"] * 2


def test_the_first_request_may_be_the_one_that_is_too_long(provider, spawn):
    """Then half of it is taken for what fits, and the prompt itself is in the summary alone."""
    prompt = LONG * 5
    server = provider([REFUSED, say(SUMMARY), say("Herons.")])
    agent = spawn(server)
    assert agent.prompt(agent.new_session(), prompt) == {"stopReason": "end_turn"}
    agent.close()
    refused, summary = (honest_usage(server.requests[number].json, ()).input_tokens for number in range(2))
    assert refused * 0.4 < summary <= refused * 0.5
    assert "characters left out]" in said(asked(server, 1))[0]
    (checkpoint,) = said(asked(server, 2))
    assert SUMMARY in checkpoint


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_stays_with_its_results_amid_a_turn(provider, spawn, cwd, dialect):
    (cwd / "long.txt").write_text(LONG)
    (cwd / "short.txt").write_text("short")
    both = [{"name": "read_file", "arguments": {"path": "short.txt"}, "id": f"s{n}"} for n in range(2)]
    server = provider([read("long.txt"), read("long.txt", "c2"), say(toolCalls=both), REFUSED, say(SUMMARY), say("Ok")])
    agent = spawn(server, dialect=dialect)
    assert agent.prompt(agent.new_session(), "Read on.") == {"stopReason": "end_turn"}
    agent.close()
    request = asked(server, 5)
    parts = [part for message in request.messages for part in message.content]
    calls = [part.id for part in parts if isinstance(part, ToolCallBlock)]
    results = [part.call_id for part in parts if isinstance(part, ToolResultPart)]
    assert len(calls) == 2
    assert calls == results
    assert [message.role for message in request.messages] == ["user", "assistant", "tool", "tool"]
    record = said(asked(server, 4))[0]
    assert "## call of read_file" in record
    assert f"## result of read_file\n{LONG[:40]}" in record


# ── The threshold ───────────────────────────────────────────────────────────────────────────────────────────────────

USED = {"inputTokens": 1000, "outputTokens": 100, "cacheReadTokens": 2000}


@pytest.mark.parametrize(("threshold", "calls"), [(3100, 3), (3200, 2)])
def test_the_threshold_is_held_against_what_the_provider_counted(provider, spawn, read_log, threshold, calls):
    server = provider([say("NOTED", usage=USED), *([say(SUMMARY)] * (calls - 2)), say("Herons.")])
    agent = spawn(server, overlay=f"compaction.threshold_tokens = {threshold}")
    session = agent.new_session()
    agent.prompt(session, LONG)
    assert agent.prompt(session, "What birds?") == {"stopReason": "end_turn"}
    agent.close()
    assert len(server.requests) == calls
    assert (LONG in said(asked(server, -1))[0]) is (calls == 2)
    _, events = read_log(session)
    assert [(data["reason"], data["thresholdTokens"]) for data in of(events, "compaction/start")] == (
        [("threshold", threshold)] * (calls - 2)
    )


def test_before_there_is_usage_the_honest_estimate_counts(provider, spawn, read_log):
    probe = provider([say("-")])
    agent = spawn(probe)
    agent.prompt(agent.new_session(), LONG)
    agent.close()
    estimate = honest_usage(probe.requests[0].json, ()).input_tokens
    for threshold, calls in ((estimate, 2), (estimate + 1, 1)):
        server = provider([*([say(SUMMARY)] * (calls - 1)), say("Herons.")])
        agent = spawn(server, overlay=f"compaction.threshold_tokens = {threshold}")
        session = agent.new_session()
        assert agent.prompt(session, LONG) == {"stopReason": "end_turn"}
        agent.close()
        assert len(server.requests) == calls
        _, events = read_log(session)
        assert [data["tokens"] for data in of(events, "compaction/start")] == [estimate] * (calls - 1)


def test_no_second_compaction_follows_one_at_the_threshold(provider, spawn, read_log):
    server = provider([say("NOTED", usage=USED), say(SUMMARY), REFUSED])
    agent = spawn(server, overlay="compaction.threshold_tokens = 3000")
    session = agent.new_session()
    agent.prompt(session, LONG)
    assert "too long even after a compaction" in agent.prompt(session, "What birds?")["message"]
    agent.close()
    assert len(server.requests) == 3


def test_a_context_that_stays_full_is_not_compacted_for_ever(provider, spawn, read_log):
    """After the first time there is too little left for a second one to gain anything."""
    server = provider([say("NOTED"), say(SUMMARY), say("One."), say("Two."), say("Three.")])
    agent = spawn(server, overlay="compaction.threshold_tokens = 1")
    session = agent.new_session()
    for text in ("Hello.", LONG, "Again.", "And again."):
        assert agent.prompt(session, text) == {"stopReason": "end_turn"}
    agent.close()
    _, events = read_log(session)
    assert compactions(events) == ["start", "summary", "end"]


# ── What is left alone ──────────────────────────────────────────────────────────────────────────────────────────────


def test_too_little_to_gain_is_no_compaction(provider, spawn, read_log):
    server = provider([say("Hi."), REFUSED])
    agent = spawn(server)
    session = agent.new_session()
    agent.prompt(session, "Hello.")
    error = agent.prompt(session, "What birds?")
    agent.close()
    assert error["message"] == "Internal error: turn failed: prompt is too long"
    assert compactions(read_log(session)[1]) == []


def test_it_can_be_turned_off(provider, spawn, read_log):
    server = provider([say("NOTED"), REFUSED])
    agent = spawn(server, overlay="compaction.on_overflow = false")
    session = agent.new_session()
    agent.prompt(session, LONG)
    assert agent.prompt(session, "What birds?")["data"] == {"code": "CONTEXT_WINDOW_EXCEEDED"}
    agent.close()
    assert compactions(read_log(session)[1]) == []


def test_an_answer_that_has_begun_is_not_taken_back(provider, spawn, read_log):
    begun = AMID | {"chunks": [{"type": "text-delta", "index": 0, "text": "Her"}, *AMID["chunks"]]}
    server = provider([say("NOTED"), begun])
    agent = spawn(server)
    session = agent.new_session()
    agent.prompt(session, LONG)
    assert agent.prompt(session, "What birds?")["data"] == {"code": "CONTEXT_WINDOW_EXCEEDED"}
    agent.close()
    assert compactions(read_log(session)[1]) == []


# ── Headroom ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_request_for_a_summary_leaves_room_for_the_answer(provider, spawn, read_log, cwd, dialect):
    (cwd / "long.txt").write_text(f"BEGIN {LONG * 4} END")
    server = provider([read("long.txt"), say("Read."), REFUSED, say(SUMMARY), say("Herons.")])
    overlay = "compaction.window_tokens = 2000\ncompaction.summary_max_tokens = 500"
    agent = spawn(server, dialect=dialect, overlay=overlay)
    session = agent.new_session()
    agent.prompt(session, "Read long.txt.")
    assert agent.prompt(session, "What birds?") == {"stopReason": "end_turn"}
    agent.close()
    body = server.requests[3].json
    tokens = honest_usage(body, ()).input_tokens
    assert 1200 < tokens <= 1500
    record = said(asked(server, 3))[0]
    assert "Read long.txt." in record
    assert "BEGIN The heron on post 0 watches" in record
    assert "characters left out]" in record
    assert "watches the water. END" in record
    _, events = read_log(session)
    (summary,) = of(events, "compaction/summary")
    assert (summary["shortened"], summary["leftOut"]) == (1, 0)


def test_a_window_without_room_for_any_summary_is_said_clearly(provider, spawn):
    server = provider([say("NOTED"), REFUSED])
    overlay = "compaction.window_tokens = 2000\ncompaction.summary_max_tokens = 1900"
    agent = spawn(server, overlay=overlay)
    session = agent.new_session()
    agent.prompt(session, LONG)
    error = agent.prompt(session, "What birds?")
    assert error["data"] == {"code": "COMPACTION_FAILED"}
    assert "no request for one fits into 100 tokens; see [compaction] window_tokens" in error["message"]


def test_counts_that_are_zeros_are_none(provider, spawn):
    """Some dialects cannot say that nothing was counted."""
    zeros = {"inputTokens": 0, "outputTokens": 0}
    server = provider([say("NOTED", usage=zeros), say(SUMMARY), say("Herons.")])
    agent = spawn(server, overlay="compaction.threshold_tokens = 1000\ncompaction.window_tokens = 9000")
    session = agent.new_session()
    agent.prompt(session, "Hello.")
    assert agent.prompt(session, LONG) == {"stopReason": "end_turn"}
    agent.close()
    assert SUMMARY in said(asked(server, -1))[0]
    assert len(agent.updates("usage_update")) == 1


def test_the_client_is_told_how_full_a_known_window_is(provider, spawn):
    script = [
        say("NOTED", usage=USED),
        REFUSED,
        say(SUMMARY),
        say("Herons.", usage={"inputTokens": 9, "outputTokens": 1}),
    ]
    for window, told in ((0, []), (9000, [(3100, 9000), (10, 9000)])):
        agent = spawn(provider(script), overlay=f"compaction.window_tokens = {window}")
        session = agent.new_session()
        agent.prompt(session, LONG)
        agent.prompt(session, "What birds?")
        agent.close()
        assert [(update["used"], update["size"]) for update in agent.updates("usage_update")] == told
