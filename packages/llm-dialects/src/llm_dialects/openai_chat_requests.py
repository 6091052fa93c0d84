"""OpenAI chat completions: request bodies to neutral requests and back."""

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from msgspec import UNSET

from llm_dialects.chunks import Json, ReasoningBlock, TextBlock, ToolCallBlock
from llm_dialects.contents import image_at, only_text, split_system, url_of
from llm_dialects.dialect import DialectError
from llm_dialects.reading import as_list, as_object, as_text, objects, others
from llm_dialects.requests import (
    DEVELOPER,
    WIRE_ROLE,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    Request,
    Tool,
    ToolResultPart,
)
from llm_dialects.tools import read_function, render_function


def parse_request(body: Json) -> Request:
    """Read a chat completions body.

    Leading system and developer messages are the system texts; a null, absent and empty list of tools are the same.

    Raises:
        DialectError: naming the JSON path.
    """
    body = as_object(body, "$")
    messages = [
        _plain(item) or _message(as_object(item, f"$.messages[{at}]"), f"$.messages[{at}]")
        for at, item in enumerate(as_list(body.get("messages"), "$.messages"))
    ]
    system, conversation = split_system(messages)
    return Request(
        system=system,
        tools=tuple(_tool(item, path) for item, path in objects(body.get("tools"), "$.tools")),
        messages=conversation,
        params={key: value for key, value in body.items() if key not in {"messages", "tools"}},
    )


def render_request(request: Request) -> dict[str, Json]:
    """Return the chat completions body of ``request``. Parts that the dialect cannot say keep their neutral JSON."""
    system = [{"role": "system", "content": text} for text in request.system]
    body = {"messages": [*system, *(render_message(message) for message in request.messages)]}
    tools = {"tools": [_render_tool(tool) for tool in request.tools]} if request.tools else {}
    return request.params | body | tools


# ── Messages ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _plain(value: Json) -> Message | None:
    """Return a message that is a role and a text, None where it is more: most are, and this reads them in half the
    time.
    """
    if type(value) is not dict or len(value) != 2:
        return None
    role, text = value.get("role"), value.get("content")
    if role not in PLAIN_ROLES or type(text) is not str:
        return None
    return Message(role=role, content=(TextBlock(text=text),))


def _message(value: dict[str, Json], path: str) -> Message:
    match value.get("role"):
        case "system" | "user" as role:
            return Message(role=role, content=_parts(value, path), extra=others(value, "role", "content"))
        case "developer":
            extra = DEVELOPER | others(value, "role", "content")
            return Message(role="system", content=_parts(value, path), extra=extra)
        case "assistant":
            return _assistant(value, path)
        case "tool":
            call_id = as_text(value.get("tool_call_id"), f"{path}.tool_call_id")
            result = ToolResultPart(call_id=call_id, content=_result_parts(value, path))
            return Message(role="tool", content=(result,), extra=others(value, "role", "content", "tool_call_id"))
        case role:
            raise DialectError(f"{path}.role: {role!r} is none of system, developer, user, assistant, tool")


def _assistant(value: dict[str, Json], path: str) -> Message:
    thought = next((name for name in REASONING_NAMES if isinstance(value.get(name), str)), "")
    reasoning = [ReasoningBlock(text=value[thought])] if thought else []
    calls = [_call(item, at) for item, at in objects(value.get("tool_calls"), f"{path}.tool_calls")]
    empty = {name for name in ("tool_calls", *REASONING_NAMES) if value.get(name, UNSET) is None}
    return Message(
        role="assistant",
        content=(*reasoning, *_parts(value, path), *calls),
        extra=others(value, "role", "content", "tool_calls", thought, *empty),
    )


def _call(value: dict[str, Json], path: str) -> Part:
    function = value.get("function")
    if value.get("type", "function") != "function" or not isinstance(function, dict) or others(function, *CALL_NAMES):
        return OpaquePart(value=value)
    return ToolCallBlock(
        id=as_text(value.get("id"), f"{path}.id"),
        name=as_text(function.get("name"), f"{path}.function.name"),
        arguments=as_text(function.get("arguments"), f"{path}.function.arguments"),
        extra=others(value, "id", "type", "function"),
    )


def _parts(value: Mapping[str, Json], path: str) -> tuple[Part, ...]:
    """Return the parts of a message's ``content``: a string, an array, or nothing."""
    content = value.get("content")
    if isinstance(content, str):
        return (TextBlock(text=content),)
    return tuple(_part(item, at) for item, at in objects(as_list(content, f"{path}.content"), f"{path}.content"))


def _result_parts(value: Mapping[str, Json], path: str) -> tuple[TextBlock | ImagePart | OpaquePart, ...]:
    parts = _parts(value, path)
    return tuple(part for part in parts if isinstance(part, (TextBlock, ImagePart, OpaquePart)))


def _part(value: dict[str, Json], path: str) -> TextBlock | ImagePart | OpaquePart:
    if value.get("type") == "text" and isinstance(value.get("text"), str):
        return TextBlock(text=value["text"], extra=others(value, "type", "text"))
    if value.get("type") == "image_url" and isinstance(value.get("image_url"), dict):
        image = value["image_url"]
        return image_at(as_text(image.get("url"), f"{path}.image_url.url"), others(image, "url"))
    return OpaquePart(value=value)


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────────────────


def render_message(message: Message) -> dict[str, Json]:
    """Return one message on the wire."""
    if message.role == "tool":
        return _render_result(message)
    calls = [_render_call(part) for part in message.content if _is_call(part)]
    thoughts = "".join(part.text for part in message.content if isinstance(part, ReasoningBlock))
    said = [part for part in message.content if not _is_call(part) and not isinstance(part, ReasoningBlock)]
    thought = any(isinstance(part, ReasoningBlock) for part in message.content)
    content = None if message.role == "assistant" and not said else _render_parts(said)
    return (
        {"role": message.extra.get(WIRE_ROLE, message.role), "content": content}
        | ({"reasoning_content": thoughts} if thought else {})
        | ({"tool_calls": calls} if calls else {})
        | others(message.extra, WIRE_ROLE)
    )


def _render_result(message: Message) -> dict[str, Json]:
    result = next((part for part in message.content if isinstance(part, ToolResultPart)), None)
    if result is None:
        return {"role": "tool", "content": _render_parts(message.content)} | message.extra
    return {"role": "tool", "tool_call_id": result.call_id, "content": _render_parts(result.content)} | message.extra


def _is_call(part: Part) -> bool:
    """Return whether ``part`` belongs into ``tool_calls``."""
    if isinstance(part, OpaquePart):
        return isinstance(part.value, dict) and ("function" in part.value or "custom" in part.value)
    return isinstance(part, ToolCallBlock)


def _render_call(part: Part) -> Json:
    if not isinstance(part, ToolCallBlock):
        return part.value if isinstance(part, OpaquePart) else None
    function = {"name": part.name, "arguments": part.arguments}
    return {"id": part.id, "type": "function", "function": function} | part.extra


def _render_parts(parts: Sequence[Part]) -> Json:
    """Return ``content``: a string where one plain text is all there is."""
    text = only_text(parts)
    return list(_each_part(parts)) if text is None else text


def _each_part(parts: Sequence[Part]) -> Iterator[Json]:
    for part in parts:
        match part:
            case TextBlock():
                yield {"type": "text", "text": part.text} | part.extra
            case ImagePart():
                yield {"type": "image_url", "image_url": {"url": url_of(part)} | part.extra}
            case OpaquePart():
                yield part.value
            case ReasoningBlock():
                yield {"type": "text", "text": part.text}
            case ToolCallBlock() | ToolResultPart():
                raise ValueError(f"a message of OpenAI chat holds no {type(part).__name__} here")
            case _:
                assert_never(part)


# ── Tools ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _tool(value: dict[str, Json], path: str) -> Tool:
    """Return a tool. One that is no plain function keeps the whole of its wire form in ``extra``."""
    function = value.get("function")
    if value.get("type") != "function" or not isinstance(function, dict) or others(value, "type", "function"):
        inner = function if isinstance(function, dict) else value
        return Tool(name=as_text(inner.get("name", value.get("type")), f"{path}.name"), extra=value)
    return read_function(function, f"{path}.function", "parameters")


def _render_tool(tool: Tool) -> dict[str, Json]:
    if "type" in tool.extra:
        return tool.extra
    return {"type": "function", "function": render_function(tool, "parameters")}


PLAIN_ROLES = ("user", "assistant", "system")
REASONING_NAMES = ("reasoning_content", "reasoning")
CALL_NAMES = ("name", "arguments")
