"""Whole turns: prompts, answers, tool calls, over real pipes and real HTTP."""

import json

import pytest
from llm_dialects import DIALECTS, TextBlock, fold, say_to_chunks
from llm_dialects.chunks import to_json
from llm_dialects.entries import say_from_json
from llm_replay import check_live, derive_replay_script, parse_log


def say(text="", **members):
    return {"kind": "say", "text": text} | members


def tool(name, arguments, id="call_1"):
    return say(toolCalls=[{"name": name, "arguments": arguments, "id": id}])


def raw(entry):
    """The chunks of a say entry; only chunks may hold arguments that are no JSON object."""
    said = say_to_chunks(say_from_json(entry, "said"), lambda: "unused")
    return {"kind": "chunks", "chunks": [to_json(chunk) for chunk in said]}


def types(events):
    """The events' types, a run of chunks as one."""
    names = [event["type"] for event in events]
    return [name for at, name in enumerate(names) if name != "assistant/chunk" or names[at - 1] != name]


def spoken(agent, kind="agent_message_chunk"):
    return "".join(update["content"]["text"] for update in agent.updates(kind))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_text_turn(provider, spawn, read_log, cwd, dialect):
    server = provider([say("Hello there, friend.", usage={"inputTokens": 12, "outputTokens": 5})])
    agent = spawn(server, dialect=dialect)
    session = agent.new_session()
    assert agent.prompt(session, "Greet me.") == {"stopReason": "end_turn"}
    assert spoken(agent) == "Hello there, friend."
    assert len({update["messageId"] for update in agent.updates("agent_message_chunk")}) == 1
    assert agent.close() == 0
    header, events = read_log(session)
    assert header | {"createdAt": 0} == {
        "type": "session",
        "format": "session-snapshot",
        "version": 1,
        "id": session,
        "createdAt": 0,
        "cwd": str(cwd),
    }
    assert types(events) == [
        "turn/start",
        "step/start",
        "user/message",
        "request/header",
        "assistant/chunk",
        "assistant/message",
        "step/end",
        "turn/end",
    ]
    data = {event["type"]: event["data"] for event in events}
    assert data["turn/end"] == {"turn": 1, "reason": {"kind": "completed"}}
    assert data["assistant/message"]["message"]["content"] == [{"type": "text", "text": "Hello there, friend."}]
    assert {"inputTokens": 12, "outputTokens": 5}.items() <= data["assistant/message"]["usage"].items()
    assert data["request/header"]["header"]["config"]["dialect"] == dialect
    assert str(cwd) in data["request/header"]["header"]["system"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_request_is_one_the_dialect_knows(provider, spawn, cwd, dialect):
    server = provider([tool("bash", {"command": "echo hi"}), say("done")])
    agent = spawn(server, dialect=dialect)
    session = agent.new_session()
    agent.prompt(session, "Run it.")
    agent.close()
    sent = server.requests[0]
    path, headers, members, absent = ASKED[dialect]
    assert f"{sent.path}?{sent.query}".rstrip("?") == path
    assert (headers | {"x-session-id": session}).items() <= dict(sent.headers).items()
    assert members.items() <= json.loads(sent.body).items()
    assert not absent & json.loads(sent.body).keys()
    first, second = [DIALECTS[dialect].parse_request(request.json) for request in server.requests]
    assert (first.params["model"], first.params["stream"], len(first.tools)) == ("gpt-4.1-mini", True, 4)
    assert second.messages[: len(first.messages)] == first.messages
    assert [message.role for message in second.messages] == ["user", "assistant", "tool"]
    (result,) = second.messages[-1].content
    assert (result.call_id, result.content) == ("call_1", (TextBlock(text="hi\n"),))


BEARER = {"authorization": "Bearer sk-test-secret"}
STREAMED = {"model": "gpt-4.1-mini", "stream": True}

# dialect -> path and query, headers, members of the body, and what must not be a member
ASKED = {
    "openai-chat": (
        "/v1/chat/completions",
        BEARER,
        STREAMED | {"max_tokens": 8192, "stream_options": {"include_usage": True}},
        set(),
    ),
    "openai-responses": (
        "/v1/responses",
        BEARER,
        STREAMED | {"max_output_tokens": 8192},
        {"max_tokens", "stream_options"},
    ),
    "anthropic-messages": (
        "/v1/messages",
        {"x-api-key": "sk-test-secret", "anthropic-version": "2023-06-01"},
        STREAMED | {"max_tokens": 8192},
        {"stream_options"},
    ),
    "gemini": (
        "/v1beta/models/gpt-4.1-mini:streamGenerateContent?alt=sse",
        {"x-goog-api-key": "sk-test-secret"},
        {"generationConfig": {"maxOutputTokens": 8192}},
        {"model", "stream", "alt", "max_tokens"},
    ),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_temperature_is_sent_where_there_is_one(provider, spawn, dialect):
    server = provider([say("Hot.")])
    agent = spawn(server, dialect=dialect, overlay="model.temperature = 0.5")
    agent.prompt(agent.new_session())
    body = server.requests[0].json
    assert body.get("generationConfig", body)["temperature"] == 0.5


def test_a_tool_turn_in_log_and_frames(provider, spawn, read_log, cwd):
    server = provider([tool("write_file", {"path": "a.txt", "content": "A\n"}), say("Written.")])
    agent = spawn(server)
    session = agent.new_session()
    assert agent.prompt(session) == {"stopReason": "end_turn"}
    assert (cwd / "a.txt").read_bytes() == b"A\n"
    agent.close()
    begun, running, done = [update for update in agent.updates() if "toolCallId" in update]
    assert begun == {
        "sessionUpdate": "tool_call",
        "toolCallId": "call_1",
        "status": "pending",
        "title": "Write a.txt",
        "kind": "edit",
        "rawInput": {"path": "a.txt", "content": "A\n"},
        "locations": [{"path": str(cwd / "a.txt")}],
    }
    assert running["status"] == "in_progress"
    assert done["status"] == "completed"
    assert done["content"] == [{"type": "diff", "path": str((cwd / "a.txt").resolve()), "newText": "A\n"}]
    _, events = read_log(session)
    assert types(events)[5:10] == ["assistant/message", "tool/call", "tool/result", "step/end", "step/start"]
    call, result = [event["data"] for event in events if event["type"].startswith("tool/")]
    assert call["name"] == "write_file"
    assert json.loads(call["arguments"]) == {"path": "a.txt", "content": "A\n"}
    assert result == {
        "turn": 1,
        "step": 1,
        "callId": "call_1",
        "content": [{"type": "text", "text": "wrote 2 bytes to a.txt"}],
        "isError": False,
    }


def test_several_calls_of_one_message_run_in_order(provider, spawn, cwd):
    calls = [
        {"name": "bash", "arguments": {"command": f"echo {n} >> order; cat order"}, "id": f"c{n}"} for n in range(3)
    ]
    agent = spawn(provider([say(toolCalls=calls), say("done")]))
    agent.prompt(agent.new_session())
    assert (cwd / "order").read_text().split() == ["0", "1", "2"]
    ends = [update for update in agent.updates("tool_call_update") if update["status"] == "completed"]
    assert [update["toolCallId"] for update in ends] == ["c0", "c1", "c2"]


def test_an_unknown_tool_and_bad_arguments_are_results_with_a_code(provider, spawn, read_log):
    agent = spawn(
        provider(
            [
                tool("teleport", {}),
                tool("bash", '{"command": 7}'),
                raw(tool("bash", '{"comm')),
                tool("read_file", {"path": "x", "bogus": 1}),
                say("oh"),
            ]
        )
    )
    session = agent.new_session()
    assert agent.prompt(session) == {"stopReason": "end_turn"}
    agent.close()
    _, events = read_log(session)
    results = [event["data"] for event in events if event["type"] == "tool/result"]
    codes = [result["error"]["code"] for result in results]
    assert codes == ["UNKNOWN_TOOL", "INVALID_ARGUMENTS", "INVALID_ARGUMENTS", "INVALID_ARGUMENTS"]
    assert all(result["isError"] for result in results)
    assert [u["status"] for u in agent.updates("tool_call_update")] == ["failed"] * 4
    assert agent.updates("tool_call")[0]["kind"] == "other"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_thoughts_are_shown_as_thoughts(provider, spawn, dialect):
    agent = spawn(provider([say("Yes.", reasoning="Is it so?")]), dialect=dialect)
    agent.prompt(agent.new_session())
    assert spoken(agent, "agent_thought_chunk") == "Is it so?"
    assert spoken(agent) == "Yes."


CUTS = [
    ("max-tokens", "max_tokens", {"kind": "max-tokens"}),
    ("content-filter", "refusal", {"kind": "blocked", "by": "content-filter"}),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("finish", "stop", "reason"), CUTS)
def test_an_answer_that_is_cut_off(provider, spawn, read_log, finish, stop, reason, dialect):
    arguments = "{}" if dialect == "gemini" else '{"comm'  # Gemini tells calls whole, or not at all
    cut = say("So", toolCalls=[{"name": "bash", "arguments": arguments, "id": "c1"}], finish={"kind": finish})
    agent = spawn(provider([raw(cut), say("Again.")]), dialect=dialect)
    session = agent.new_session()
    assert agent.prompt(session) == {"stopReason": stop}
    assert agent.prompt(session) == {"stopReason": "end_turn"}
    agent.close()
    _, events = read_log(session)
    assert [event["data"]["reason"] for event in events if event["type"] == "turn/end"] == [
        reason,
        {"kind": "completed"},
    ]
    assert [event["data"]["error"]["code"] for event in events if event["type"] == "tool/result"] == ["NOT_STARTED"]


def test_steps_are_bounded(provider, spawn, read_log):
    agent = spawn(provider([tool("bash", {"command": "true"})] * 2), overlay="turn.max_steps = 2")
    session = agent.new_session()
    assert agent.prompt(session) == {"stopReason": "max_turn_requests"}
    agent.close()
    assert read_log(session)[1][-1]["data"]["reason"] == {"kind": "blocked", "by": "max_steps"}


def test_the_header_is_logged_once_and_the_history_grows(provider, spawn, read_log):
    server = provider([say("One."), say("Two.")])
    agent = spawn(server)
    session = agent.new_session()
    agent.prompt(session, "first")
    agent.prompt(session, "second")
    agent.close()
    _, events = read_log(session)
    assert types(events).count("request/header") == 1
    assert [event["data"]["turn"] for event in events if event["type"] == "turn/start"] == [1, 2]
    first, second = [json.loads(request.body)["messages"] for request in server.requests]
    assert second[:2] == first
    assert [message["role"] for message in second[2:]] == ["assistant", "user"]


def test_two_sessions_prompt_at_the_same_time(provider, spawn):
    server = provider([{"kind": "hang"}, say("I am free.")])
    agent = spawn(server)
    slow, quick = agent.new_session(), agent.new_session()
    waiting = agent.start_prompt(slow, "wait")
    server.wait(lambda: server.in_flight == 1)
    assert agent.prompt(quick) == {"stopReason": "end_turn"}
    agent.send("session/cancel", {"sessionId": slow})
    assert agent.answer_to(waiting)["result"] == {"stopReason": "cancelled"}


def test_a_second_prompt_of_a_busy_session_is_refused(provider, spawn):
    server = provider([{"kind": "hang"}])
    agent = spawn(server)
    session = agent.new_session()
    agent.start_prompt(session, "wait")
    server.wait(lambda: server.in_flight == 1)
    assert agent.prompt(session)["code"] == -32600


def test_all_kinds_of_prompt_content_reach_the_model(provider, spawn):
    server = provider([say("Seen.")])
    agent = spawn(server)
    blocks = [
        {"type": "text", "text": "look"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource_link", "name": "notes", "uri": "file:///n.md"},
        {"type": "resource", "resource": {"uri": "file:///t.txt", "text": "inside"}},
    ]
    assert agent.call("session/prompt", sessionId=agent.new_session(), prompt=blocks) == {"stopReason": "end_turn"}
    sent = json.dumps(json.loads(server.requests[0].body)["messages"][-1])
    for piece in ("look", "aGk=", "[notes](file:///n.md)", "inside"):
        assert piece in sent


def test_no_command_sees_the_key(provider, spawn, tmp_path):
    server = provider([tool("bash", {"command": "env"}), say("done")])
    agent = spawn(server)
    agent.prompt(agent.new_session())
    agent.close()
    (result,) = [update for update in agent.updates("tool_call_update") if update["status"] == "completed"]
    names = {line.split("=")[0] for line in result["content"][0]["content"]["text"].splitlines()}
    assert "PATH" in names
    assert not {name for name in names if "KEY" in name or "BASE_URL" in name}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if b"sk-test-secret" in path.read_bytes()]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_log_tells_what_the_model_said(provider, spawn, tmp_path, dialect):
    script = [tool("bash", {"command": "echo hi"}), say("It said hi.", usage={"inputTokens": 3, "outputTokens": 4})]
    agent = spawn(provider(script), dialect=dialect)
    session = agent.new_session()
    agent.prompt(session)
    agent.close()
    log = parse_log((tmp_path / "state" / "sessions" / session / "session.jsonl").read_text("utf-8"), "session.jsonl")
    check_live(log)
    call, answer = [fold(entry.chunks) for entry in derive_replay_script(log)]
    assert [block.name for block in call.blocks] == ["bash"]
    assert [block.text for block in answer.blocks] == ["It said hi."]
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (3, 4)
