"""OpenAI responses: request bodies to neutral requests and back.

The wire's history is a list of items. What the model said (reasoning, messages of the assistant, calls) is one neutral
message as long as nothing else comes between; every other item is a message of its own. An item that is not understood
whole is kept whole, as an ``OpaquePart`` on the side of whoever wrote it.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import assert_never

from msgspec import UNSET

from llm_dialects.chunks import Json, ReasoningBlock, Record, TextBlock, ToolCallBlock, fields_of
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
    """Read a responses body.

    ``instructions`` and leading system and developer messages are the system texts; ``input`` may be one string.

    Raises:
        DialectError: naming the JSON path.
    """
    body = as_object(body, "$")
    system, conversation = split_system(tuple(_messages(body.get("input"))))
    return Request(
        system=(*_instructions(body.get("instructions")), *system),
        tools=tuple(_tool(item, path) for item, path in objects(body.get("tools"), "$.tools")),
        messages=conversation,
        params={key: value for key, value in body.items() if key not in {"input", "tools", "instructions"}},
    )


def render_request(request: Request) -> dict[str, Json]:
    """Return the responses body of ``request``: the first system text is the ``instructions``, others lead the input.

    What the dialect cannot say: that a tool's result is an error.
    """
    system = [{"type": "message", "role": "system", "content": text} for text in request.system[1:]]
    items = [item for message in request.messages for item in _render_message(message)]
    return (
        request.params
        | ({"instructions": request.system[0]} if request.system else {})
        | {"input": [*system, *items]}
        | ({"tools": [_render_tool(tool) for tool in request.tools]} if request.tools else {})
    )


# ── Items in ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _instructions(value: Json) -> Iterator[str]:
    if value is not None:
        yield as_text(value, "$.instructions")


def _messages(value: Json) -> Iterator[Message]:
    """Yield the messages of ``input``; neighbours that the model said are one."""
    if isinstance(value, str):
        yield Message(role="user", content=(TextBlock(text=value),))
        return
    items = (_item(item, path) for item, path in objects(value, "$.input"))
    for said, group in groupby(items, lambda message: message.role == "assistant"):
        if said:
            yield Message(role="assistant", content=tuple(part for message in group for part in message.content))
        else:
            yield from group


def _item(value: dict[str, Json], path: str) -> Message:
    message = _read_item(value, path)
    if any(_clashes(record) for record in (message, *message.content)):
        return Message(role=message.role, content=(OpaquePart(value=value),))
    return message


def _clashes(record: Record) -> bool:
    """Say whether what is kept of the wire goes by the name of a member of ours: JSON cannot say both."""
    return not record.extra.keys().isdisjoint(field.encode_name for field in fields_of(type(record)))


def _read_item(value: dict[str, Json], path: str) -> Message:
    match value.get("type") or ("message" if "role" in value else "item_reference"):
        case "message":
            return _message(value, path)
        case "reasoning":
            return Message(role="assistant", content=(_reasoning(value, path),))
        case "function_call" | "custom_tool_call":
            return Message(role="assistant", content=(_call(value, path),))
        case "function_call_output" | "custom_tool_call_output":
            return _result(value, path)
        case str() as kind if kind.endswith(("_output", "_response")):
            return Message(role="tool", content=(OpaquePart(value=value),))
    return Message(role="assistant", content=(OpaquePart(value=value),))


def _message(value: dict[str, Json], path: str) -> Message:
    match value.get("role"):
        case "system" | "user" as role:
            return Message(role=role, content=_parts(value, "content", path), extra=_rest(value, "role", "content"))
        case "developer":
            extra = DEVELOPER | _rest(value, "role", "content")
            return Message(role="system", content=_parts(value, "content", path), extra=extra)
        case "assistant":
            return Message(role="assistant", content=tuple(_said(value, path)))
        case role:
            raise DialectError(f"{path}.role: {role!r} is none of system, developer, user, assistant")


def _said(value: dict[str, Json], path: str) -> Iterator[TextBlock | OpaquePart]:
    """Yield a message of the assistant: the one text it holds, with the members of text and message side by side."""
    content, extra = value.get("content"), _rest(value, "role", "content")
    if isinstance(content, str):
        yield TextBlock(text=content, extra=extra)
        return
    parts = as_list(content, f"{path}.content")
    part = as_object(parts[0], f"{path}.content[0]") if parts else {}
    plain = part.get("type") == "output_text" and isinstance(part.get("text"), str)
    own = others(part, "type", "text")
    if len(parts) == 1 and plain and own.keys() <= TEXT_MEMBERS and not own.keys() & extra.keys():
        yield TextBlock(text=part["text"], extra=extra | own)
    elif parts or extra:
        yield OpaquePart(value=value)


def _reasoning(value: dict[str, Json], path: str) -> ReasoningBlock | OpaquePart:
    """Return thinking: the parts of its summary are paragraphs; the unabridged ``content`` stays in ``extra``."""
    summary = [item for item, _ in objects(value.get("summary"), f"{path}.summary")]
    if any(item.keys() != {"type", "text"} or item["type"] != "summary_text" for item in summary):
        return OpaquePart(value=value)
    signature = value.get("encrypted_content")
    return ReasoningBlock(
        text=PARAGRAPH.join(as_text(item["text"], f"{path}.summary[{at}].text") for at, item in enumerate(summary)),
        signature=UNSET if signature is None else as_text(signature, f"{path}.encrypted_content"),
        extra=_rest(value, "summary", "encrypted_content"),
    )


def _call(value: dict[str, Json], path: str) -> ToolCallBlock:
    custom = value["type"] == CUSTOM_CALL
    text = "input" if custom else "arguments"
    return ToolCallBlock(
        id=as_text(value.get("call_id"), f"{path}.call_id"),
        name=as_text(value.get("name"), f"{path}.name"),
        arguments=as_text(value.get(text), f"{path}.{text}"),
        extra=({ITEM_TYPE: CUSTOM_CALL} if custom else {}) | _rest(value, "call_id", "name", text),
    )


def _result(value: dict[str, Json], path: str) -> Message:
    result = ToolResultPart(
        call_id=as_text(value.get("call_id"), f"{path}.call_id"), content=_parts(value, "output", path)
    )
    custom = {ITEM_TYPE: value["type"]} if value["type"] == CUSTOM_RESULT else {}
    return Message(role="tool", content=(result,), extra=custom | _rest(value, "call_id", "output"))


def _rest(value: Mapping[str, Json], *known: str) -> dict[str, Json]:
    """Return the other members of an item. Its own id goes by another name: a call's ``id`` is that of the call."""
    rest = others(value, "type", *known)
    return {ITEM_ID if key == "id" else key: item for key, item in rest.items()}


def _parts(value: Mapping[str, Json], name: str, path: str) -> tuple[TextBlock | ImagePart | OpaquePart, ...]:
    """Return the parts of a content: a string, an array, or nothing."""
    content = value.get(name)
    if isinstance(content, str):
        return (TextBlock(text=content),)
    return tuple(_part(item, at) for item, at in objects(content, f"{path}.{name}"))


def _part(value: dict[str, Json], path: str) -> TextBlock | ImagePart | OpaquePart:
    if value.get("type") == "input_text" and isinstance(value.get("text"), str):
        return TextBlock(text=value["text"], extra=others(value, "type", "text"))
    if value.get("type") == "input_image" and value.get("image_url") is not None:
        return _image(value, path)
    return OpaquePart(value=others(value))


def _image(value: dict[str, Json], path: str) -> ImagePart | OpaquePart:
    image = image_at(as_text(value["image_url"], f"{path}.image_url"), others(value, "type", "image_url"))
    return OpaquePart(value=others(value)) if _clashes(image) else image


# ── Items out ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _render_message(message: Message) -> Iterator[Json]:
    """Yield the items of one message."""
    match message.role:
        case "assistant" if message.content:
            yield from (_render_said(part) for part in message.content)
        case "tool":
            yield from (_render_result(part, message.extra) for part in message.content)
        case role:
            yield _message_item(role, _render_parts(message.content), message.extra)


def _message_item(role: str, content: Json, extra: Mapping[str, Json]) -> dict[str, Json]:
    return {"type": "message", "role": role, "content": content} | _back(extra)


def _back(extra: Mapping[str, Json]) -> dict[str, Json]:
    """Return members that ``_rest`` kept under their own names; those that say what an item is win over the neutral."""
    return {WIRE_NAMES.get(key, key): value for key, value in extra.items()}


def _render_said(part: Part) -> Json:
    match part:
        case TextBlock():
            return _render_text(part)
        case ReasoningBlock():
            summary = [{"type": "summary_text", "text": text} for text in part.text.split(PARAGRAPH) if part.text]
            signature = {} if part.signature is UNSET else {"encrypted_content": part.signature}
            return {"type": "reasoning", "summary": summary} | signature | _back(part.extra)
        case ToolCallBlock():
            text = "input" if part.extra.get(ITEM_TYPE) == CUSTOM_CALL else "arguments"
            head = {"type": "function_call", "call_id": part.id, "name": part.name, text: part.arguments}
            return head | _back(part.extra)
        case OpaquePart():
            return part.value
        case ImagePart() | ToolResultPart():
            raise ValueError(f"what a model said holds no {type(part).__name__} in OpenAI responses")
        case _:
            assert_never(part)


def _render_text(part: TextBlock) -> dict[str, Json]:
    """Return a message of the assistant: its content is a string where nothing else is said of it."""
    if not part.extra:
        return _message_item("assistant", part.text, {})
    own = {key: value for key, value in part.extra.items() if key in TEXT_MEMBERS}
    text = {"type": "output_text", "text": part.text} | own
    return _message_item("assistant", [text], others(part.extra, *own))


def _render_result(part: Part, extra: Mapping[str, Json]) -> Json:
    if isinstance(part, OpaquePart):
        return part.value
    if not isinstance(part, ToolResultPart):
        return _message_item("user", _render_parts([part]), extra)
    head = {"type": "function_call_output", "call_id": part.call_id, "output": _render_parts(part.content)}
    return head | _back(extra) | part.extra


def _render_parts(parts: Sequence[Part]) -> Json:
    """Return a content: a string where one plain text is all there is."""
    text = only_text(parts)
    return [_render_part(part) for part in parts] if text is None else text


def _render_part(part: Part) -> Json:
    match part:
        case TextBlock():
            return {"type": "input_text", "text": part.text} | part.extra
        case ReasoningBlock():
            return {"type": "input_text", "text": part.text}
        case ImagePart():
            return {"type": "input_image", "image_url": url_of(part)} | part.extra
        case OpaquePart():
            return part.value
        case ToolCallBlock() | ToolResultPart():
            raise ValueError(f"a message of OpenAI responses holds no {type(part).__name__} here")
        case _:
            assert_never(part)


# ── Tools ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _tool(value: dict[str, Json], path: str) -> Tool:
    """Return a tool. One that is no function keeps the whole of its wire form in ``extra``."""
    if value.get("type") != "function":
        return Tool(name=as_text(value.get("name", value.get("type")), f"{path}.name"), extra=others(value))
    return read_function(value, path, "parameters", "type")


def _render_tool(tool: Tool) -> dict[str, Json]:
    if "type" in tool.extra:
        return tool.extra
    return {"type": "function"} | render_function(tool, "parameters")


CUSTOM_CALL, CUSTOM_RESULT = "custom_tool_call", "custom_tool_call_output"

ITEM_ID, ITEM_TYPE = "itemId", "itemType"
"""Members of ``extra``: an item's own id, and its type where that is not the usual one of such a part."""

WIRE_NAMES = {ITEM_ID: "id", ITEM_TYPE: "type", WIRE_ROLE: "role"}

PARAGRAPH = "\n\n"
"""What stands between the parts of a summary."""

TEXT_MEMBERS = frozenset({"annotations", "logprobs"})
"""Members of an output text, told apart from those of the message around it."""
