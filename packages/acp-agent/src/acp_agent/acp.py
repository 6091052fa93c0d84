"""The Agent Client Protocol, version 1: the shapes we read and the ones we write. Pure.

Source of the format: the ACP schema (agentclientprotocol.com).
The tests hold what we write against the official SDK's models.
Members of a request that we do not know (``_meta``, later additions) are ignored, as the protocol asks.
"""

from typing import Any, Literal

from msgspec import Struct

PROTOCOL_VERSION = 1
Json = Any

# ── What the client sends ───────────────────────────────────────────────────────────────────────────────────────────


class TextContent(Struct, frozen=True, tag_field="type", tag="text"):
    """Words."""

    text: str


class ImageContent(Struct, frozen=True, rename="camel", tag_field="type", tag="image"):
    """An image, base64 encoded."""

    data: str
    mime_type: str


class ResourceLink(Struct, frozen=True, tag_field="type", tag="resource_link"):
    """A pointer to something the agent may go and read."""

    name: str
    uri: str


class ResourceText(Struct, frozen=True):
    """The text of an embedded resource."""

    uri: str
    text: str


class EmbeddedResource(Struct, frozen=True, tag_field="type", tag="resource"):
    """Something the client sends along whole."""

    resource: ResourceText


ContentBlock = TextContent | ImageContent | ResourceLink | EmbeddedResource


class InitializeParams(Struct, frozen=True, rename="camel"):
    """``initialize``."""

    protocol_version: int


class AuthenticateParams(Struct, frozen=True, rename="camel"):
    """``authenticate``."""

    method_id: str


class NewSessionParams(Struct, frozen=True, rename="camel"):
    """``session/new``."""

    cwd: str
    mcp_servers: list[Json]
    additional_directories: list[str] | None = None


class LoadSessionParams(NewSessionParams, frozen=True, rename="camel", kw_only=True):
    """``session/load``."""

    session_id: str


class PromptParams(Struct, frozen=True, rename="camel"):
    """``session/prompt``."""

    session_id: str
    prompt: list[ContentBlock]


class SetModeParams(Struct, frozen=True, rename="camel"):
    """``session/set_mode``."""

    session_id: str
    mode_id: str


class Outcome(Struct, frozen=True, rename="camel"):
    """What the user decided: ``selected`` with the option's id, or ``cancelled``."""

    outcome: Literal["selected", "cancelled"]
    option_id: str | None = None


class PermissionAnswer(Struct, frozen=True):
    """The client's answer to ``session/request_permission``."""

    outcome: Outcome


# ── What the agent sends ────────────────────────────────────────────────────────────────────────────────────────────


def initialize_result(version: str) -> Json:
    """Return the answer to ``initialize``: what this agent can do."""
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentInfo": {"name": "acp-agent", "title": "ACP agent", "version": version},
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": False, "sse": False},
        },
        "authMethods": [],
    }


def mode_state(current: str) -> Json:
    """Return the session modes and the one in force."""
    modes = [{"id": id, "name": name, "description": text} for id, name, text in MODES]
    return {"currentModeId": current, "availableModes": modes}


def text_update(kind: str, text: str, message_id: str | None = None) -> Json:
    """Return a piece of a message; ``kind`` is ``agent_message_chunk`` or the like."""
    return content_update(kind, text_block(text), message_id)


def content_update(kind: str, content: Json, message_id: str | None = None) -> Json:
    """Return a piece of a message whose content block is already in wire form."""
    return {"sessionUpdate": kind} | ({"messageId": message_id} if message_id else {}) | {"content": content}


def usage_update(used: int, size: int) -> Json:
    """Return how full the context is, in tokens."""
    return {"sessionUpdate": "usage_update", "used": used, "size": size}


def text_block(text: str) -> Json:
    """Return a text content block."""
    return {"type": "text", "text": text}


def tool_text(text: str) -> Json:
    """Return the content of a tool call that is plain text."""
    return {"type": "content", "content": text_block(text)}


def tool_diff(path: str, old: str | None, new: str) -> Json:
    """Return the content of a tool call that changed a file; ``old`` is ``None`` for a new file."""
    return {"type": "diff", "path": path} | ({} if old is None else {"oldText": old}) | {"newText": new}


def permission_params(session_id: str, tool_call: Json) -> Json:
    """Return the params of ``session/request_permission``."""
    options = [{"optionId": option_id, "name": name, "kind": kind} for option_id, name, kind in PERMISSION_OPTIONS]
    return {"sessionId": session_id, "toolCall": tool_call, "options": options}


MODES = (
    ("default", "Default", "Reads, writes and runs commands in the session's directory."),
    ("read-only", "Read only", "Reads; writes nothing and runs no command unless the user allows it."),
)

PERMISSION_OPTIONS = (
    ("allow-once", "Allow once", "allow_once"),
    ("allow-always", "Allow for this session", "allow_always"),
    ("reject-once", "Reject", "reject_once"),
    ("reject-always", "Reject for this session", "reject_always"),
)
