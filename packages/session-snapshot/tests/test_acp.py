"""Steps as ACP messages, and what the agent's frames mean; no frame may break the reader."""

import pytest
from session_snapshot import steps as ops
from session_snapshot.protocols import PROTOCOLS
from session_snapshot.protocols.acp import (
    call_of,
    count_kinds,
    failed_tools,
    frame_kind,
    permission_result,
    text_of,
    update_of,
)

SESSION = {"sessionId": "s"}


@pytest.mark.parametrize(
    ("step", "method", "params"),
    [
        (ops.Authenticate(method_id="m"), "authenticate", {"methodId": "m"}),
        (ops.NewSession(as_="a"), "session/new", {"cwd": "{{cwd}}", "mcpServers": []}),
        (
            ops.NewSessionExpectError(cwd="x", additional_directories=["d"]),
            "session/new",
            {"cwd": "x", "mcpServers": [], "additionalDirectories": ["d"]},
        ),
        (ops.LoadSession(), "session/load", SESSION | {"cwd": "{{cwd}}", "mcpServers": []}),
        (ops.ResumeSession(mcp_servers=[1]), "session/resume", SESSION | {"cwd": "{{cwd}}", "mcpServers": [1]}),
        (ops.CloseSession(), "session/close", SESSION),
        (ops.SetMode(mode_id="m"), "session/set_mode", SESSION | {"modeId": "m"}),
        (ops.SetModel(model_id="m"), "session/set_model", SESSION | {"modelId": "m"}),
        (
            ops.SetConfigOption(config_id="c", value="v"),
            "session/set_config_option",
            SESSION | {"configId": "c", "value": "v"},
        ),
        (ops.Prompt(text="t"), "session/prompt", SESSION | {"prompt": [{"type": "text", "text": "t"}]}),
        (ops.PromptContent(content=[{"type": "x"}]), "session/prompt", SESSION | {"prompt": [{"type": "x"}]}),
        (ops.Cancel(), "session/cancel", SESSION),
    ],
)
def test_calls(step: ops.Step, method: str, params: dict) -> None:
    call = call_of(step, "s", {})
    assert call is not None
    assert (call.method, call.params, call.notification) == (method, params, method == "session/cancel")


def test_initialize_tells_the_capabilities() -> None:
    call = call_of(ops.Initialize(), "", {"fs": {"readTextFile": True}})
    assert call is not None and call.params["clientCapabilities"] == {"fs": {"readTextFile": True}}


@pytest.mark.parametrize("step", [ops.Kill(), ops.Restart(), ops.WaitForFile(path="p"), ops.SendRaw(text="")])
def test_steps_that_send_no_call(step: ops.Step) -> None:
    assert call_of(step, "s", {}) is None


def update(kind: str, session: str = "s", **more: object) -> dict:
    return {"method": "session/update", "params": {"sessionId": session, "update": {"sessionUpdate": kind} | more}}


def chunk(text: str, message: str = "m", session: str = "s") -> dict:
    return update("agent_message_chunk", session, messageId=message, content={"type": "text", "text": text})


ODD = [
    {},
    {"method": "x"},
    {"method": "session/update"},
    {"method": "session/update", "params": [1]},
    {"method": "session/update", "params": {"update": 1}},
    {"method": "odd_chunk"},
    {"method": "odd_chunk", "params": []},
    update("agent_message_chunk"),
    update("agent_message_chunk", content="text"),
    update("agent_message_chunk", content={"text": 1}),
    {"method": 5},
    {"id": 1},
]


@pytest.mark.parametrize("frame", ODD)
def test_odd_frames_are_read_without_a_crash(frame: dict) -> None:
    assert text_of(frame) == ""
    assert isinstance(update_of(frame), dict)
    assert count_kinds([frame, frame])
    assert failed_tools([frame]) == 0


@pytest.mark.parametrize(
    ("frames", "counts"),
    [
        ([], {}),
        ([{"id": 1, "result": {}}, update("plan"), update("plan")], {"response": 1, "plan": 2}),
        ([chunk("a"), chunk("b")], {"agent_message_chunk": 1}),
        ([chunk("a"), chunk("b", "other")], {"agent_message_chunk": 2}),
        ([chunk("a"), chunk("b", session="t")], {"agent_message_chunk": 2}),
        ([chunk("a"), update("plan"), chunk("b")], {"agent_message_chunk": 2, "plan": 1}),
        ([{"method": "session/request_permission", "id": 1}], {"session/request_permission": 1}),
    ],
)
def test_counts(frames: list[dict], counts: dict[str, int]) -> None:
    assert count_kinds(frames) == counts


def test_kinds_and_texts() -> None:
    assert [frame_kind(frame) for frame in ({"id": 1}, update("plan"), {"method": "x/y"})] == [
        "response",
        "plan",
        "x/y",
    ]
    assert text_of(chunk("hello")) == "hello"


def test_a_tool_call_fails_once() -> None:
    failed = update("tool_call_update", toolCallId="a", status="failed")
    done = update("tool_call_update", toolCallId="b", status="completed")
    assert failed_tools([failed, failed, done]) == 1


@pytest.mark.parametrize(
    ("kind", "option"), [("cancelled", None), ("allow_once", "1"), ("allow_always", ...), ("reject_once", "2")]
)
def test_permission(kind: str, option: object) -> None:
    offered = {"options": [{"kind": "allow_once", "optionId": "1"}, {"kind": "reject_once", "optionId": "2"}]}
    result = permission_result(offered, kind)
    expected = {"outcome": "cancelled"} if option is None else {"outcome": "selected", "optionId": option}
    assert result == (None if option is ... else {"outcome": expected})


def test_the_table() -> None:
    assert PROTOCOLS.keys() == {"acp"}
