"""What the provider does wrong: told to the client, logged, retried where waiting can mend it."""

import sys

import pytest
from llm_dialects import DIALECTS, Body, Head, Reset


def say(text):
    return {"kind": "say", "text": text}


def throw(code, message="no luck", chunks=(), **members):
    return {"kind": "throw", "chunks": list(chunks), "message": message, "code": code} | members


START = {"type": "block-start", "index": 0, "blockType": "text"}
HALF = [START, {"type": "text-delta", "index": 0, "text": "half"}]

LASTING = [
    ("AUTH", 401),
    ("INVALID_REQUEST", 400),
    ("CONTEXT_WINDOW_EXCEEDED", 400),
    ("QUOTA", 429),
    ("NOT_FOUND", 404),
]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_lasting_failure_ends_the_turn_at_once(provider, spawn, read_log, dialect):
    server = provider([throw(code, "no luck") for code, _ in LASTING])
    agent = spawn(server, dialect=dialect)
    session = agent.new_session()
    for code, _ in LASTING:
        error = agent.prompt(session)
        assert error["code"] == -32603
        assert error["message"].startswith("Internal error: turn failed: ")
        assert "no luck" in error["message"]
        assert error["data"] == {"code": code}
    assert [request.status for request in server.requests] == [status for _, status in LASTING]
    agent.close()
    _, events = read_log(session)
    ends = [event["data"]["reason"] for event in events if event["type"] == "turn/end"]
    assert [(end["kind"], end["code"]) for end in ends] == [("error", code) for code, _ in LASTING]
    assert [event["type"] for event in events][-2:] == ["step/end", "turn/end"]


PASSING = ["RATE_LIMIT", "SERVER_ERROR", "UNAVAILABLE", "OVERLOADED", "STREAM_CLOSED"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_passing_failure_is_retried(provider, spawn, read_log, dialect):
    server = provider([entry for code in PASSING for entry in (throw(code), throw(code), say("At last."))])
    agent = spawn(server, dialect=dialect)
    session = agent.new_session()
    for _ in PASSING:
        assert agent.prompt(session) == {"stopReason": "end_turn"}
    agent.close()
    _, events = read_log(session)
    retries = [event["data"] for event in events if event["type"] == "llm/retry"]
    told = [(data["failure"]["code"], data["retry"], data["maxRetries"], data["delayMs"]) for data in retries]
    assert told == [(code, retry, 2, 0) for code in PASSING for retry in (1, 2)]
    assert len({request.body for request in server.requests}) == len(PASSING)


@pytest.mark.parametrize("retries", [0, 2])
def test_retries_end(provider, spawn, retries):
    server = provider([throw("RATE_LIMIT")] * (retries + 1) + [say("unused")])
    agent = spawn(server, overlay=f"model.retries = {retries}")
    assert agent.prompt(agent.new_session())["data"] == {"code": "RATE_LIMIT"}
    assert len(server.requests) == retries + 1


MIDWAY = ["SERVER_ERROR", "STREAM_CLOSED"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("code", MIDWAY)
def test_a_failure_amid_the_answer_is_not_retried_and_keeps_what_was_said(provider, spawn, read_log, code, dialect):
    server = provider([throw(code, chunks=HALF), say("Second try.")])
    agent = spawn(server, dialect=dialect)
    session = agent.new_session()
    assert agent.prompt(session)["data"] == {"code": code}
    assert agent.prompt(session) == {"stopReason": "end_turn"}
    agent.close()
    assert len(server.requests) == 2
    _, events = read_log(session)
    message = next(event["data"] for event in events if event["type"] == "assistant/message")
    assert message["interrupted"] is True
    assert message["message"]["content"] == [{"type": "text", "text": "half"}]
    assert b"half" in server.requests[1].body


def streamed(*actions):
    return [Head(200, (("content-type", "text/event-stream"),)), *actions]


ODD_REPLIES = [
    (streamed(Body(b"data: [DONE]\n\n")), "STREAM_CLOSED"),
    (streamed(), "STREAM_CLOSED"),
    (streamed(Body(b": a comment\n\n"), Reset("fin")), "STREAM_CLOSED"),
    ([Reset()], "STREAM_CLOSED"),
    (streamed(Body(b"data: {nonsense\n\n")), "SERVER_ERROR"),
    ([Head(403, (("content-type", "text/html"),)), Body(b"<h1>No</h1>")], "PERMISSION"),
    ([Head(302, (("location", "http://127.0.0.1/"),))], "INVALID_REQUEST"),
]


def test_a_reply_that_is_no_answer(provider, spawn):
    replies = iter(ODD_REPLIES)
    agent = spawn(provider(lambda request: next(replies)[0]), overlay="model.retries = 0")
    session = agent.new_session()
    assert [agent.prompt(session)["data"]["code"] for _ in ODD_REPLIES] == [code for _, code in ODD_REPLIES]


def test_a_silent_provider_is_given_up(provider, spawn):
    agent = spawn(provider([{"kind": "hang"}]), overlay="model.silence_seconds = 0.2")
    assert agent.prompt(agent.new_session())["data"] == {"code": "TIMEOUT"}


def test_a_provider_that_is_not_there(spawn):
    agent = spawn(variables={"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, overlay="model.retries = 0")
    assert agent.prompt(agent.new_session())["data"] == {"code": "STREAM_CLOSED"}


def test_a_base_url_that_is_none(spawn):
    agent = spawn(variables={"OPENAI_BASE_URL": "nowhere"})
    assert agent.prompt(agent.new_session())["data"] == {"code": "INVALID_REQUEST"}


def test_a_missing_key_is_said_before_anything_is_sent(provider, spawn):
    server = provider([say("unused")])
    agent = spawn(server, variables={"OPENAI_API_KEY": ""})
    error = agent.prompt(agent.new_session())
    assert error["data"] == {"code": "AUTH"}
    assert "OPENAI_API_KEY" in error["message"]
    assert server.requests == ()


def test_a_log_that_cannot_be_written_fails_the_prompt_only(provider, spawn, tmp_path):
    agent = spawn(provider([say("unused")]))
    (tmp_path / "state").write_text("a file where a folder should be")
    error = agent.call("session/new", cwd=str(agent.cwd), mcpServers=[])
    assert error["code"] == -32603
    (tmp_path / "state").unlink()
    assert agent.new_session()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="prlimit of another process")
def test_a_full_disk_in_the_middle_of_a_turn_fails_the_prompt_and_leaves_the_log_whole(
    provider, spawn, read_log, tmp_path
):
    import resource

    agent = spawn(provider([say("x" * 4000), say("Room again.")]))
    session = agent.new_session()
    log = tmp_path / "state" / "sessions" / session / "session.jsonl"
    for room, outcome in ((5000, None), (resource.RLIM_INFINITY, {"stopReason": "end_turn"})):
        size = room if outcome else log.stat().st_size + room
        resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        answer = agent.prompt(session)
        assert answer == outcome if outcome else answer["data"] == {"code": "INTERNAL"}
        _, events = read_log(session)
    assert events[-1]["data"]["reason"] == {"kind": "completed"}
