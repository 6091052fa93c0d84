"""The official SDK as the judge: its client drives our agent, its models check every frame we write."""

import asyncio
import sys
from typing import Any

import acp
import acp.schema as schema
import pytest

TOOL = {"name": "write_file", "arguments": {"path": "a", "content": "x"}, "id": "c1"}
RUN = {"name": "bash", "arguments": {"command": "echo hi", "escalate": True, "justification": "must"}, "id": "c2"}
SCRIPT = [
    {"kind": "say", "text": "Working.", "reasoning": "Hm.", "toolCalls": [TOOL, RUN]},
    {"kind": "say", "text": "Done."},
    {"kind": "throw", "chunks": [], "message": "bad key", "code": "AUTH"},
    {"kind": "hang"},
]

RESULTS: dict[str, Any] = {
    "initialize": schema.InitializeResponse,
    "authenticate": schema.AuthenticateResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/set_mode": schema.SetSessionModeResponse,
    "session/prompt": schema.PromptResponse,
}
REQUESTS: dict[str, Any] = {
    "session/update": schema.SessionNotification,
    "session/request_permission": schema.RequestPermissionRequest,
}


def forbid_extra(model, value, where):
    """Check that ``value`` validates and says nothing the model does not know: reading and writing it loses nothing."""
    written = model.model_validate(value).model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert written == value, where


def check_frame(frame, asked):
    """Check one frame against the SDK's model for it; ``asked`` maps our client's request ids to methods."""
    assert frame["jsonrpc"] == "2.0"
    if "method" in frame:
        assert set(frame) == {"jsonrpc", "method", "params"} | ({"id"} & set(frame))
        forbid_extra(REQUESTS[frame["method"]], frame["params"], frame)
    elif "error" in frame:
        assert set(frame) == {"jsonrpc", "id", "error"}
        forbid_extra(schema.Error, frame["error"], frame)
    else:
        assert set(frame) == {"jsonrpc", "id", "result"}
        forbid_extra(RESULTS[asked[frame["id"]]], frame["result"], frame)


def test_every_frame_is_one_the_schema_knows(provider, spawn):
    server = provider(SCRIPT)
    agent = spawn(server, overlay="compaction.window_tokens = 100000")
    asked = {1: "initialize"}

    def start(method, **params):
        id = agent.start(method, **params)
        asked[id] = method
        return id

    agent.answer_to(start("authenticate", methodId="x"))
    session = agent.answer_to(start("session/new", cwd=str(agent.cwd), mcpServers=[]))["result"]["sessionId"]
    agent.answer_to(start("session/set_mode", sessionId=session, modeId="default"))
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
    first = start("session/prompt", **prompt)
    agent.answer_permission("allow-once")
    agent.answer_to(first)
    assert agent.answer_to(start("session/prompt", **prompt))["error"]["data"] == {"code": "AUTH"}
    third = start("session/prompt", **prompt)
    agent.wait_for(lambda frame: frame.get("method") == "session/update")
    agent.send("session/cancel", {"sessionId": session})
    agent.answer_to(third)
    agent.answer_to(start("session/load", sessionId=session, cwd=str(agent.cwd), mcpServers=[]))
    agent.send_raw(b"nonsense\n")
    agent.next_frame()
    agent.close()
    for frame in agent.frames:
        check_frame(frame, asked)
    kinds = {update["sessionUpdate"] for update in agent.updates()}
    assert kinds == {
        "agent_message_chunk",
        "agent_thought_chunk",
        "user_message_chunk",
        "tool_call",
        "tool_call_update",
        "usage_update",
    }


class Editor(acp.Client):
    """A client that says yes and keeps what it is told."""

    def __init__(self):
        self.updates, self.asked = [], []

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append(tool_call.tool_call_id)
        option = next(option for option in options if option.kind == "allow_once")
        return schema.RequestPermissionResponse(
            outcome=schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
        )


def test_the_sdks_client_drives_the_agent(provider, environment, cwd):
    server = provider(SCRIPT)
    editor = Editor()
    variables = environment | {"OPENAI_BASE_URL": server.base_url("openai-chat")}

    async def drive():
        command = [sys.executable, "-m", "acp_agent"]
        async with acp.spawn_agent_process(editor, *command, env=variables, cwd=str(cwd)) as (agent, process):
            hello = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
            session = await agent.new_session(cwd=str(cwd), mcp_servers=[])
            answer = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("go")])
            with pytest.raises(acp.RequestError, match=r"turn failed: .*bad key"):
                await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("go")])
            return hello, answer, process

    hello, answer, _ = asyncio.run(drive())
    assert hello.protocol_version == acp.PROTOCOL_VERSION
    assert answer.stop_reason == "end_turn"
    assert editor.asked == ["c2"]
    assert (cwd / "a").read_text() == "x"
    texts = [update.content.text for update in editor.updates if update.session_update == "agent_message_chunk"]
    assert "".join(texts) == "Working.Done."
