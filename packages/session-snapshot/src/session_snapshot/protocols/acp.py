"""Steps <-> Agent Client Protocol (version 1): what a step says, and what a frame means. Values in, values out.

Source: the protocol's JSON schema, version 1 (``agent-client-protocol`` 0.12 ships it; a test holds goldens against
it).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from session_snapshot import steps as ops
from session_snapshot.frames import is_response
from session_snapshot.protocols import acp_introduction
from session_snapshot.protocols.message import Call

PROTOCOL_VERSION = 1
CLIENT_INFO = {"name": "session-snapshot", "title": "session-snapshot", "version": "1"}
"""The client the agent sees; its version is the protocol the harness speaks, not its release, so that no golden
churns."""


def call_of(  # noqa: C901 - one arm per op
    step: ops.Step, session: str, capabilities: Mapping[str, Any]
) -> Call | None:
    """The message a step sends first, or ``None`` where it sends none; ``session`` is the id of the session it is
    about."""
    about = {"sessionId": session}
    match step:
        case ops.Initialize():
            return Call("initialize", initialize_params(capabilities))
        case ops.Authenticate(method_id=method):
            return Call("authenticate", {"methodId": method})
        case ops.NewSession() | ops.NewSessionExpectError():
            return Call("session/new", new_session_params(step))
        case ops.LoadSession(mcp_servers=servers):
            return Call("session/load", about | {"cwd": "{{cwd}}", "mcpServers": servers})
        case ops.ResumeSession(mcp_servers=servers):
            return Call("session/resume", about | {"cwd": "{{cwd}}", "mcpServers": servers})
        case ops.CloseSession():
            return Call("session/close", about)
        case ops.SetMode(mode_id=mode):
            return Call("session/set_mode", about | {"modeId": mode})
        case ops.SetModel(model_id=model):
            return Call("session/set_model", about | {"modelId": model})
        case ops.SetConfigOption(config_id=option, value=value):
            return Call("session/set_config_option", about | {"configId": option, "value": value})
        case ops.PromptContent(content=content):
            return Call("session/prompt", about | {"prompt": content})
        case ops.Prompt() | ops.PromptExpectError() | ops.PromptAndCancel() | ops.PromptAndWaitForAgentMessage():
            return Call("session/prompt", about | {"prompt": [{"type": "text", "text": step.text}]})
        case ops.Cancel():
            return cancel(session)
        case _:
            return None


def cancel(session: str) -> Call:
    """The notification that cancels a session's turn."""
    return Call("session/cancel", {"sessionId": session}, notification=True)


def initialize_params(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """What the client says of itself."""
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "clientCapabilities": dict(capabilities),
        "clientInfo": CLIENT_INFO,
    }


def new_session_params(step: ops.NewSession | ops.NewSessionExpectError) -> dict[str, Any]:
    """The parameters of ``session/new``; additional directories only where the step names some."""
    params: dict[str, Any] = {"cwd": step.cwd, "mcpServers": step.mcp_servers}
    return params | ({"additionalDirectories": step.additional_directories} if step.additional_directories else {})


# ── Frames of the agent ─────────────────────────────────────────────────────────────────────────────────────────────


def update_of(frame: Mapping[str, Any]) -> dict[str, Any]:
    """The update of a ``session/update`` frame, else an empty object."""
    params = frame.get("params")
    if frame.get("method") != "session/update" or not isinstance(params, dict):
        return {}
    update = params.get("update")
    return update if isinstance(update, dict) else {}


def frame_kind(frame: Mapping[str, Any]) -> str:
    """``response``, the ``sessionUpdate`` of an update, or the method."""
    if is_response(frame):
        return "response"
    return str(update_of(frame).get("sessionUpdate") or frame["method"])


def text_of(frame: Mapping[str, Any]) -> str:
    """The text of an ``agent_message_chunk``, else ``""``."""
    update = update_of(frame)
    content = update.get("content")
    if update.get("sessionUpdate") != "agent_message_chunk" or not isinstance(content, dict):
        return ""
    text = content.get("text")
    return text if isinstance(text, str) else ""


def count_kinds(frames: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many frames of each kind; a run of text chunks of one message counts once (how an agent cuts it is
    timing)."""
    counts: dict[str, int] = {}
    before: tuple[object, ...] | None = None
    for frame in frames:
        kind = frame_kind(frame)
        run = (kind, session_of(frame), update_of(frame).get("messageId")) if is_chunk(kind) else None
        if run is None or run != before:
            counts[kind] = counts.get(kind, 0) + 1
        before = run
    return counts


def session_of(frame: Mapping[str, Any]) -> object:
    """The session a frame names, or ``None``."""
    params = frame.get("params")
    return params.get("sessionId") if isinstance(params, dict) else None


def is_chunk(kind: str) -> bool:
    """Whether frames of this kind are pieces of a text."""
    return kind.endswith("_chunk")


def failed_tools(frames: Iterable[Mapping[str, Any]]) -> int:
    """How many tool calls ended with status ``failed``."""
    updates = [update_of(frame) for frame in frames]
    return len({str(update.get("toolCallId")) for update in updates if update.get("status") == "failed"})


def tokens_spent(frame: Mapping[str, Any]) -> tuple[int, int, int | None] | None:
    """The ``usage`` of a response, where it is one."""
    result = frame.get("result")
    usage = result.get("usage") if isinstance(result, dict) else None
    if not isinstance(usage, dict):
        return None
    spent, output, total = (usage.get(name) for name in ("inputTokens", "outputTokens", "totalTokens"))
    if type(spent) is not int or type(output) is not int:
        return None
    return spent, output, total if type(total) is int else None


def tokens_in_context(frame: Mapping[str, Any]) -> int | None:
    """The ``used`` of a ``usage_update``."""
    update = update_of(frame)
    used = update.get("used") if update.get("sessionUpdate") == "usage_update" else None
    return used if type(used) is int else None


def permission_result(params: Mapping[str, Any], kind: str) -> dict[str, Any] | None:
    """The answer of ``kind`` to a permission request, or ``None`` where no option of that kind was offered."""
    if kind == "cancelled":
        return {"outcome": {"outcome": "cancelled"}}
    for option in options_of(params):
        if option.get("kind") == kind:
            return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
    return None


def options_of(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The options a permission request offers; what is no option is none."""
    options = params.get("options")
    return [option for option in options if isinstance(option, dict)] if isinstance(options, list) else []


CANCELLED = {"outcome": {"outcome": "cancelled"}}
"""What an agent is told when nobody scripted an answer: nothing is ever allowed by default."""

introduction = acp_introduction.introduction
wanted_login = acp_introduction.wanted_login
