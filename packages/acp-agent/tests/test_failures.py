"""What the provider does wrong: told to the client, logged, retried where waiting can mend it."""

import pytest
from llm_dialects.actions import Body, Head, Reset


def say(text):
    return {"kind": "say", "text": text}


def throw(code, message="no luck", chunks=(), **members):
    return {"kind": "throw", "chunks": list(chunks), "message": message, "code": code} | members


START = {"type": "block-start", "index": 0, "blockType": "text"}
HALF = [START, {"type": "text-delta", "index": 0, "text": "half"}]
DIALECTS = ["openai-chat", "anthropic-messages"]

LASTING = [
    ("AUTH", 401),
    ("INVALID_REQUEST", 400),
    ("CONTEXT_WINDOW_EXCEEDED", 400),
    ("QUOTA", 429),
    ("NOT_FOUND", 404),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("code", "status"), LASTING)
def test_a_lasting_failure_ends_the_turn_at_once(provider, spawn, read_log, code, status, dialect):
    server = provider([throw(code, "no luck"), say("unused")])
    agent = spawn(server, dialect=dialect)
    session = agent.new_session()
    error = agent.prompt(session)
    assert error["code"] == -32603
    assert error["message"].startswith("Internal error: turn failed: ")
    assert "no luck" in error["message"]
    assert error["data"] == {"code": code}
    assert [request.status for request in server.requests] == [status]
    agent.close()
    _, events = read_log(session)
    end = events[-1]["data"]["reason"]
    assert (end["kind"], end["code"]) == ("error", code)
    assert [event["type"] for event in events][-2:] == ["step/end", "turn/end"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("code", ["RATE_LIMIT", "SERVER_ERROR", "UNAVAILABLE", "OVERLOADED", "STREAM_CLOSED"])
def test_a_passing_failure_is_retried(provider, spawn, read_log, code, dialect):
    server = provider([throw(code), throw(code), say("At last.")])
    agent = spawn(server, dialect=dialect)
    session = agent.new_session()
    assert agent.prompt(session) == {"stopReason": "end_turn"}
    agent.close()
    _, events = read_log(session)
    retries = [event["data"] for event in events if event["type"] == "llm/retry"]
    assert [(data["retry"], data["maxRetries"], data["delayMs"]) for data in retries] == [(1, 2, 0), (2, 2, 0)]
    assert {data["failure"]["code"] for data in retries} == {code}
    assert len({request.body for request in server.requests}) == 1


def test_retries_end(provider, spawn):
    server = provider([throw("RATE_LIMIT")] * 3 + [say("unused")])
    agent = spawn(server)
    assert agent.prompt(agent.new_session())["data"] == {"code": "RATE_LIMIT"}
    assert len(server.requests) == 3


def test_retries_can_be_switched_off(provider, spawn):
    server = provider([throw("RATE_LIMIT"), say("unused")])
    agent = spawn(server, overlay="model.retries = 0")
    assert agent.prompt(agent.new_session())["data"] == {"code": "RATE_LIMIT"}
    assert len(server.requests) == 1


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


def test_an_answer_without_an_end_is_a_closed_stream(provider, spawn):
    server = provider(lambda request: [Head(200, (("content-type", "text/event-stream"),)), Body(b"data: [DONE]\n\n")])
    agent = spawn(server, overlay="model.retries = 0")
    assert agent.prompt(agent.new_session())["data"] == {"code": "STREAM_CLOSED"}


def test_an_answer_that_is_no_answer(provider, spawn):
    server = provider(
        lambda request: [Head(200, (("content-type", "text/event-stream"),)), Body(b"data: {nonsense\n\n")]
    )
    agent = spawn(server, overlay="model.retries = 0")
    assert agent.prompt(agent.new_session())["code"] == -32603


def test_an_error_page_of_a_proxy(provider, spawn):
    server = provider(lambda request: [Head(403, (("content-type", "text/html"),)), Body(b"<h1>No</h1>")])
    agent = spawn(server)
    assert agent.prompt(agent.new_session())["data"] == {"code": "PERMISSION"}


def test_a_silent_provider_is_given_up(provider, spawn):
    agent = spawn(provider([{"kind": "hang"}]), overlay="model.silence_seconds = 0.2")
    assert agent.prompt(agent.new_session())["data"] == {"code": "TIMEOUT"}


def test_a_connection_that_is_reset_before_the_head(provider, spawn):
    agent = spawn(provider(lambda request: [Reset()]), overlay="model.retries = 1")
    assert agent.prompt(agent.new_session())["data"] == {"code": "STREAM_CLOSED"}


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
