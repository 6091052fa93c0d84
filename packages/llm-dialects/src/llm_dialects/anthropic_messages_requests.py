"""Anthropic messages: request bodies to neutral requests and back."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from msgspec import UNSET

from llm_dialects.chunks import Json, ReasoningBlock, TextBlock, ToolCallBlock
from llm_dialects.contents import only_text
from llm_dialects.dialect import DialectError
from llm_dialects.reading import as_list, as_object, as_text, objects, others
from llm_dialects.requests import ImagePart, Message, OpaquePart, Part, Request, Tool, ToolResultPart
from llm_dialects.tools import read_function, render_function
from llm_dialects.turns import join_turns, split_turn
from llm_dialects.wire import arguments_text, arguments_value


def parse_request(body: Json) -> Request:
    """Read a messages body.

    Raises:
        DialectError: naming the JSON path.
    """
    body = as_object(body, "$")
    return Request(
        system=tuple(_system(body.get("system"))),
        tools=tuple(_tool(item, path) for item, path in objects(body.get("tools"), "$.tools")),
        messages=tuple(m for item, path in objects(body.get("messages"), "$.messages") for m in _messages(item, path)),
        params={key: value for key, value in body.items() if key not in {"messages", "tools", "system"}},
    )


def render_request(request: Request) -> dict[str, Json]:
    """Return the messages body of ``request``."""
    system = [{"type": "text", "text": text} for text in request.system]
    return (
        request.params
        | ({"system": system} if system else {})
        | {"messages": [_render_turn(turn) for turn in join_turns(request.messages)]}
        | ({"tools": [_render_tool(tool) for tool in request.tools]} if request.tools else {})
    )


def read_block(value: dict[str, Json], path: str) -> ReasoningBlock | ToolCallBlock | TextBlock | OpaquePart:
    """Read one part of what the model said, in a request's history or in an answer."""
    match value.get("type"):
        case "text":
            return TextBlock(text=as_text(value.get("text"), f"{path}.text"), extra=others(value, "type", "text"))
        case "thinking":
            return ReasoningBlock(
                text=as_text(value.get("thinking"), f"{path}.thinking"),
                signature=as_text(value.get("signature"), f"{path}.signature") or UNSET,
                extra=others(value, "type", "thinking", "signature"),
            )
        case "redacted_thinking":
            data = as_text(value.get("data"), f"{path}.data")
            return ReasoningBlock(text="", extra={REDACTED: data} | others(value, "type", "data"))
        case "tool_use":
            return ToolCallBlock(
                id=as_text(value.get("id"), f"{path}.id"),
                name=as_text(value.get("name"), f"{path}.name"),
                arguments=arguments_text(value.get("input")),
                extra=others(value, "type", "id", "name", "input"),
            )
    return OpaquePart(value=value)


def render_block(block: ReasoningBlock | ToolCallBlock | TextBlock) -> dict[str, Json]:
    """Return one block of what the model said on the wire."""
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text} | block.extra
        case ReasoningBlock(extra=extra) if REDACTED in extra:
            rest = {key: value for key, value in extra.items() if key != REDACTED}
            return {"type": "redacted_thinking", "data": extra[REDACTED]} | rest
        case ReasoningBlock():
            return {"type": "thinking", "thinking": block.text, "signature": block.signature or ""} | block.extra
        case ToolCallBlock():
            head = {"type": "tool_use", "id": block.id, "name": block.name}
            return head | {"input": arguments_value(block.arguments)} | block.extra
        case _:
            assert_never(block)


# ── Messages ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _system(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        return
    for item, path in objects(value, "$.system"):
        yield as_text(item.get("text"), f"{path}.text")


def _messages(value: dict[str, Json], path: str) -> Iterator[Message]:
    """Yield the neutral messages of one message of the wire."""
    role = value.get("role")
    if role not in ("user", "assistant", "system"):
        raise DialectError(f"{path}.role: {role!r} is none of user, assistant, system")
    parts = _parts(value.get("content"), f"{path}.content")
    extra = others(value, "role", "content")
    yield from split_turn(role, parts, extra)


def _parts(value: Json, path: str) -> tuple[Part, ...]:
    if isinstance(value, str):
        return (TextBlock(text=value),)
    return tuple(_part(item, at) for item, at in objects(as_list(value, path), path))


def _part(value: dict[str, Json], path: str) -> Part:
    match value.get("type"):
        case "image" if isinstance(value.get("source"), dict):
            return _image(value)
        case "tool_result":
            return ToolResultPart(
                call_id=as_text(value.get("tool_use_id"), f"{path}.tool_use_id"),
                content=_result_content(value.get("content"), f"{path}.content"),
                is_error=value.get("is_error") is True,
                extra=others(value, "type", "tool_use_id", "content", "is_error"),
            )
    return read_block(value, path)


def _image(value: dict[str, Json]) -> ImagePart | OpaquePart:
    source, extra = value["source"], others(value, "type", "source")
    if set(source) == {"type", "media_type", "data"} and source["type"] == "base64":
        return ImagePart(media_type=source["media_type"], data=source["data"], extra=extra)
    if set(source) == {"type", "url"} and source["type"] == "url":
        return ImagePart(url=source["url"], extra=extra)
    return OpaquePart(value=value)


def _result_content(value: Json, path: str) -> tuple[TextBlock | ImagePart | OpaquePart, ...]:
    if isinstance(value, str):
        return (TextBlock(text=value),)
    return tuple(_result_part(item, at) for item, at in objects(value, path))


def _result_part(value: dict[str, Json], path: str) -> TextBlock | ImagePart | OpaquePart:
    part = _part(value, path)
    return part if isinstance(part, (TextBlock, ImagePart)) else OpaquePart(value=value)


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _render_turn(turn: Sequence[Message]) -> dict[str, Json]:
    role = "user" if turn[0].role == "tool" else turn[0].role
    parts = [part for message in turn for part in message.content]
    return {"role": role, "content": _render_content(parts)} | turn[0].extra


def _render_content(parts: Sequence[Part]) -> Json:
    text = only_text(parts)
    return [_render_part(part) for part in parts] if text is None else text


def _render_part(part: Part) -> Json:
    match part:
        case ImagePart(url=str() as url):
            return {"type": "image", "source": {"type": "url", "url": url}} | part.extra
        case ImagePart():
            source = {"type": "base64", "media_type": part.media_type, "data": part.data}
            return {"type": "image", "source": source} | part.extra
        case ToolResultPart():
            result = {"type": "tool_result", "tool_use_id": part.call_id, "content": _render_content(part.content)}
            return result | ({"is_error": True} if part.is_error else {}) | part.extra
        case OpaquePart():
            return part.value
        case _:
            return render_block(part)


# ── Tools ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _tool(value: dict[str, Json], path: str) -> Tool:
    """Return a tool. One of the provider's own (it has a ``type``) keeps the whole of its wire form in ``extra``."""
    if value.get("type", "custom") != "custom":
        return Tool(name=as_text(value.get("name"), f"{path}.name"), extra=others(value))
    return read_function(value, path, "input_schema", "type")


def _render_tool(tool: Tool) -> dict[str, Json]:
    if "type" in tool.extra:
        return tool.extra
    return render_function(tool, "input_schema")


REDACTED = "redactedData"
"""The member of a reasoning block's ``extra`` that holds Anthropic's encrypted thinking."""
