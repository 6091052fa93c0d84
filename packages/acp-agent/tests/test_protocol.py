"""The protocol's edges: handshake, malformed lines, wrong params, sessions read again."""

import json

SAY = {"kind": "say", "text": "Noted."}


def test_initialize(spawn):
    agent = spawn(greet=False)
    result = agent.call("initialize", protocolVersion=1, clientCapabilities={})
    assert result["protocolVersion"] == 1
    assert result["agentCapabilities"]["loadSession"] is True
    assert agent.call("initialize", protocolVersion=99)["protocolVersion"] == 1
    assert agent.call("authenticate", methodId="any") == {}


def test_everything_asked_before_the_pipe_closes_is_answered(spawn):
    agent = spawn(greet=False)
    agent.start("initialize", protocolVersion=1)
    agent.start("session/new", cwd=str(agent.cwd), mcpServers=[])
    assert agent.close() == 0
    assert [frame["id"] for frame in agent.frames] == [1, 2]


BAD_LINES = [
    (b"nonsense\n", None, -32700),
    (b'{"jsonrpc":"2.0","id":7,\n', None, -32700),
    (b'"\xff\xfe"\n', None, -32700),
    (b"[]\n", None, -32600),
    (b'{"jsonrpc":"2.0","id":7}\n', 7, -32600),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/fly","params":{}}\n', 7, -32601),
    (b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}\n', 7, -32602),
    (b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":[1]}\n', 7, -32602),
    (b'{"jsonrpc":"2.0","id":"a","method":"session/prompt","params":{"sessionId":"no","prompt":[]}}\n', "a", -32602),
    (
        b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"no","prompt":[{"type":"x"}]}}\n',
        7,
        -32602,
    ),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/set_mode","params":{"sessionId":"no","modeId":"x"}}\n', 7, -32602),
]


def test_a_bad_line_is_answered_and_the_agent_goes_on(spawn):
    agent = spawn()
    for line, id, code in BAD_LINES:
        agent.send_raw(line)
        frame = agent.next_frame()
        assert (frame["id"], frame["error"]["code"]) == (id, code), line
    assert agent.new_session()
    assert agent.close() == 0


SILENT_LINES = [
    b"\n  \n\r\n",
    b'{"jsonrpc":"2.0","method":"$/unknown","params":{}}\n',
    b'{"jsonrpc":"2.0","id":99,"result":{}}\n',
    b'{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}\n',
]


def test_a_line_that_wants_no_answer_gets_none(spawn):
    agent = spawn()
    agent.send_raw(b"".join(SILENT_LINES))
    assert agent.call("authenticate", methodId="any") == {}
    assert len(agent.frames) == 2


NEW_SESSION_FAULTS = [
    {"cwd": "relative"},
    {"cwd": "/no/such/place"},
    {"mcpServers": [{"name": "m", "command": "c", "args": [], "env": []}]},
    {"additionalDirectories": ["/tmp"]},
    {"mcpServers": None},
]


def test_a_session_the_agent_cannot_give_is_refused(spawn, tmp_path):
    agent = spawn()
    for fault in NEW_SESSION_FAULTS:
        error = agent.call("session/new", **({"cwd": str(agent.cwd), "mcpServers": []} | fault))
        assert error["code"] == -32602, fault
    assert not (tmp_path / "state").exists()


def test_an_unknown_mode_is_refused(spawn):
    agent = spawn()
    session = agent.new_session()
    assert agent.call("session/set_mode", sessionId=session, modeId="wild")["code"] == -32602


# ── session/load ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_loaded_session_is_shown_and_goes_on(provider, spawn, read_log):
    write = {"name": "write_file", "arguments": {"path": "a", "content": "x"}, "id": "c1"}
    server = provider([{"kind": "say", "text": "Working.", "reasoning": "Hm.", "toolCalls": [write]}, SAY, SAY])
    first = spawn(server)
    session = first.new_session()
    first.prompt(session, "Begin.")
    first.close()
    second = spawn(server)
    loaded = second.call("session/load", sessionId=session, cwd=str(second.cwd), mcpServers=[])
    assert loaded["modes"]["currentModeId"] == "default"
    shown = [(body["sessionUpdate"], body.get("content")) for body in second.updates()]
    assert [kind for kind, _ in shown] == [
        "user_message_chunk",
        "agent_thought_chunk",
        "agent_message_chunk",
        "tool_call",
        "agent_message_chunk",
    ]
    assert second.updates("tool_call")[0]["status"] == "completed"
    assert second.prompt(session, "Go on.") == {"stopReason": "end_turn"}
    second.close()
    bodies = [json.loads(request.body)["messages"] for request in server.requests]
    assert bodies[2][: len(bodies[1])] == bodies[1]
    assert [message["role"] for message in bodies[2][len(bodies[1]) :]] == ["assistant", "user"]
    _, events = read_log(session)
    assert [event["data"]["turn"] for event in events if event["type"] == "turn/start"] == [1, 2]
    assert [event["data"]["reason"] for event in events if event["type"] == "request/header"] == ["initial", "resume"]


def test_a_session_whose_agent_was_killed_is_mended(provider, spawn, read_log, tmp_path):
    calls = [{"name": "bash", "arguments": {"command": f"sleep {n}"}, "id": f"c{n}"} for n in (600, 601)]
    server = provider([{"kind": "say", "toolCalls": calls}, SAY])
    first = spawn(server)
    session = first.new_session()
    first.start_prompt(session, "Sleep.")
    first.wait_for(lambda frame: frame.get("params", {}).get("update", {}).get("status") == "in_progress")
    first.kill()
    log = tmp_path / "state" / "sessions" / session / "session.jsonl"
    with log.open("ab") as file:
        file.write(b'{"type":"torn')
    second = spawn(server)
    second.call("session/load", sessionId=session, cwd=str(second.cwd), mcpServers=[])
    _, events = read_log(session)
    assert [event["type"] for event in events][-4:] == ["tool/result", "tool/result", "step/end", "turn/end"]
    codes = [event["data"]["error"]["code"] for event in events if event["type"] == "tool/result"]
    assert codes == ["TOOL_OUTCOME_UNKNOWN", "TOOL_NOT_STARTED"]
    assert second.prompt(session) == {"stopReason": "end_turn"}
    roles = [message["role"] for message in json.loads(server.requests[1].body)["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]


def test_a_session_that_is_not_there(spawn):
    agent = spawn()
    for session in ("unknown", "", "../sessions", "a/b", "."):
        error = agent.call("session/load", sessionId=session, cwd=str(agent.cwd), mcpServers=[])
        assert error["code"] == -32602, session


def test_a_session_with_a_running_prompt_is_not_loaded(provider, spawn):
    server = provider([{"kind": "hang"}])
    agent = spawn(server)
    session = agent.new_session()
    agent.start_prompt(session, "wait")
    server.wait(lambda: server.in_flight == 1)
    error = agent.call("session/load", sessionId=session, cwd=str(agent.cwd), mcpServers=[])
    assert error["code"] == -32600


def test_pictures_and_lost_tools_are_shown_again(provider, spawn):
    calls = [{"name": name, "arguments": "{}", "id": name} for name in ("teleport", "read_file")]
    server = provider([{"kind": "say", "toolCalls": calls}, SAY])
    first = spawn(server)
    session = first.new_session()
    picture = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    first.call("session/prompt", sessionId=session, prompt=[picture])
    first.close()
    second = spawn(server)
    second.call("session/load", sessionId=session, cwd=str(second.cwd), mcpServers=[])
    assert second.updates("user_message_chunk")[0]["content"] == picture
    assert [(call["title"], call["status"]) for call in second.updates("tool_call")] == [
        ("teleport", "failed"),
        ("read_file", "failed"),
    ]


def test_a_configured_temperature_is_sent_and_logged(provider, spawn, read_log):
    server = provider([SAY])
    agent = spawn(server, overlay="model.temperature = 0.5")
    session = agent.new_session()
    agent.prompt(session)
    agent.close()
    assert json.loads(server.requests[0].body)["temperature"] == 0.5
    header = next(event["data"]["header"] for event in read_log(session)[1] if event["type"] == "request/header")
    assert header["config"]["temperature"] == 0.5


def test_a_broken_log_is_named(spawn, tmp_path):
    agent = spawn()
    session = agent.new_session()
    log = tmp_path / "state" / "sessions" / session / "session.jsonl"
    with log.open("ab") as file:
        file.write(b"nonsense\n")
    error = agent.call("session/load", sessionId=session, cwd=str(agent.cwd), mcpServers=[])
    assert error["code"] == -32603
    assert f"{log}:2: " in error["message"]
