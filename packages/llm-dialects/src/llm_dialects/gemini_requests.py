"""Gemini: request bodies to neutral requests and back.

What other dialects say in the body, Gemini says in path and query: ``path_params`` returns it as ``model``, ``stream``
and ``alt``, and a server puts these before the members of the body. Names are read in both of the spellings that the
API takes (``functionCall``, ``function_call``) and written in the first.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import assert_never
from urllib.parse import parse_qs, quote, unquote, urlencode

from msgspec import UNSET

from llm_dialects.chunks import Json, ReasoningBlock, TextBlock, ToolCallBlock
from llm_dialects.dialect import DialectError, is_streamed
from llm_dialects.gemini_calls import CallIds
from llm_dialects.gemini_results import read_response, render_response
from llm_dialects.reading import as_list, as_object, as_text, objects, others
from llm_dialects.requests import ImagePart, Message, OpaquePart, Part, Request, Tool, ToolResultPart
from llm_dialects.tools import read_function, render_function
from llm_dialects.turns import join_turns, split_turn
from llm_dialects.wire import arguments_text, read_object


def path_params(path: str, query: str) -> dict[str, Json]:
    """Return the model, whether a stream is asked for and, if one is, how it is to be framed (``alt``)."""
    found = CALL_PATH.search(path)
    if found is None:
        return {}
    model = {"model": unquote(found["model"])}
    if found["method"] != "streamGenerateContent":
        return model
    alt = parse_qs(query).get("alt", [])[-1:]
    return model | {"stream": True} | ({"alt": alt[0]} if alt else {})


def call_path(request: Request) -> str:
    """Return the path and query that say what ``path_params`` reads of them."""
    model = quote(str(request.params.get("model", "")), safe="")
    if not is_streamed(request):
        return f"/v1beta/models/{model}:generateContent"
    query = urlencode({"alt": request.params["alt"]}) if "alt" in request.params else ""
    return f"/v1beta/models/{model}:streamGenerateContent" + (f"?{query}" if query else "")


def parse_request(body: Json) -> Request:
    """Read a generateContent body.

    Raises:
        DialectError: naming the JSON path.
    """
    body = camel(as_object(body, "$"))
    ids = CallIds()
    return Request(
        system=tuple(_system(body.get("systemInstruction"))),
        tools=tuple(t for item, path in objects(body.get("tools"), "$.tools") for t in _tools(camel(item), path)),
        messages=tuple(
            message
            for item, path in objects(body.get("contents"), "$.contents")
            for message in _messages(item, path, ids)
        ),
        params={key: value for key, value in body.items() if key not in {"contents", "tools", "systemInstruction"}},
    )


def render_request(request: Request) -> dict[str, Json]:
    """Return the generateContent body of ``request``, with the members that belong into the path among its params."""
    ids = CallIds()
    system = {"parts": [{"text": text} for text in request.system]}
    return (
        request.params
        | ({"systemInstruction": system} if request.system else {})
        | {"contents": [_render_turn(turn, ids) for turn in join_turns(request.messages)]}
        | ({"tools": list(_render_tools(request.tools))} if request.tools else {})
    )


def camel(value: Mapping[str, Json]) -> dict[str, Json]:
    """Return ``value`` with the names of known members as they are written."""
    return {CAMEL.get(key, key): item for key, item in value.items()}


# ── Contents ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _system(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        return
    for item, path in objects(as_object(value or {}, "$.systemInstruction").get("parts"), "$.systemInstruction.parts"):
        yield as_text(item.get("text"), f"{path}.text")


def _messages(value: dict[str, Json], path: str, ids: CallIds) -> Iterator[Message]:
    """Yield the neutral messages of one content."""
    role = value.get("role") or "user"
    if role not in ("user", "model", *RESULT_ROLES):
        raise DialectError(f"{path}.role: {role!r} is none of user, model")
    _refuse(value, path, "content")
    asks = role == "model"
    ids.begin_turn(asks=asks)
    parts = [_part(camel(item), at, ids, asks=asks) for item, at in objects(value.get("parts"), f"{path}.parts")]
    extra = others(value, "role", "parts") | ({ROLE: role} if role in RESULT_ROLES else {})
    yield from split_turn("assistant" if asks else "user", parts, extra)


def _refuse(value: Mapping[str, Json], path: str, *names: str) -> None:
    """Refuse members that Google refuses too, and that the neutral form has another meaning for."""
    found = next((name for name in names if name in value), None)
    if found is not None:
        raise DialectError(f"{path}.{found}: there is no such member")


def _part(value: dict[str, Json], path: str, ids: CallIds, *, asks: bool) -> Part:
    """Read a part of what the model said (``asks``) or was told; only the first has calls, only the other responses."""
    response = value.get("functionResponse")
    inner = response if isinstance(response, dict) else {}
    if OURS & value.keys() or (OURS - RESPONSE_NAMES) & inner.keys():
        return OpaquePart(value=value)
    match value:
        case {"functionCall": dict(call)} if asks and not others(call, "id", "name", "args"):
            return read_call(value, path, ids)
        case {"functionResponse": dict(response)} if not asks:
            return _result(camel(response), f"{path}.functionResponse", ids, others(value, "functionResponse"))
        case {"text": str(text), "thought": True}:
            signature = as_text(value.get(SIGNATURE), f"{path}.{SIGNATURE}")
            extra = others(value, "text", "thought", SIGNATURE)
            return ReasoningBlock(text=text, signature=signature or UNSET, extra=extra)
        case {"text": str(text)}:
            return TextBlock(text=text, extra=others(value, "text"))
    return _media(value)


def read_call(value: dict[str, Json], path: str, ids: CallIds) -> ToolCallBlock:
    """Read a part that calls a function; a call without an id gets the one of its place."""
    call, at = as_object(value["functionCall"], f"{path}.functionCall"), f"{path}.functionCall"
    name = as_text(call.get("name"), f"{at}.name")
    given = None if call.get("id") is None else as_text(call["id"], f"{at}.id")
    arguments = arguments_text(call.get("args"))
    return ToolCallBlock(id=ids.call(given, name), name=name, arguments=arguments, extra=others(value, "functionCall"))


def signature_of(block: TextBlock | ReasoningBlock | ToolCallBlock) -> str:
    """Return what Google wants back with ``block``, "" where there is nothing."""
    signature = block.signature if isinstance(block, ReasoningBlock) else block.extra.get(SIGNATURE)
    return signature if isinstance(signature, str) else ""


def _result(value: dict[str, Json], path: str, ids: CallIds, extra: dict[str, Json]) -> ToolResultPart:
    """Read a function's response. Its id and its name are kept beside where its call does not tell them."""
    name = as_text(value.get("name"), f"{path}.name")
    given = None if value.get("id") is None else as_text(value["id"], f"{path}.id")
    call_id = ids.result(given, name)
    content, is_error = read_response(value, path, _media)
    own = {} if given in (None, call_id) else {"id": given}
    named = {} if name == ids.name_of(call_id) else {"name": name}
    rest = others(value, "id", "name", "response", "parts")
    return ToolResultPart(call_id=call_id, content=content, is_error=is_error, extra=own | named | rest | extra)


def _media(value: Mapping[str, Json]) -> TextBlock | ImagePart | OpaquePart:
    """Read an image, inline or by its address; anything else stays as it is."""
    match camel(value):
        case part if OURS & part.keys():
            pass
        case {"text": str(text), **rest} if "thought" not in rest:
            return TextBlock(text=text, extra=others(rest))
        case {"inlineData": dict(blob), **rest}:
            blob = camel(blob)
            if set(blob) == {"mimeType", "data"} and _is_image(blob["mimeType"]):
                return ImagePart(media_type=blob["mimeType"], data=blob["data"], extra=others(rest))
        case {"fileData": dict(file), **rest}:
            file = camel(file)
            media_type = file.get("mimeType", UNSET)
            if set(file) - {"mimeType"} == {"fileUri"} and (media_type is UNSET or _is_image(media_type)):
                return ImagePart(media_type=media_type, url=file["fileUri"], extra=others(rest))
    return OpaquePart(value=dict(value))


def _is_image(media_type: Json) -> bool:
    return isinstance(media_type, str) and media_type.startswith("image/")


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _render_turn(turn: Sequence[Message], ids: CallIds) -> dict[str, Json]:
    role = "model" if turn[0].role == "assistant" else "user"
    ids.begin_turn(asks=role == "model")
    parts = [_render_part(part, ids) for message in turn for part in message.content]
    extra = {key: value for key, value in turn[0].extra.items() if key != ROLE}
    return {"role": turn[0].extra.get(ROLE, role), "parts": parts} | extra


def _render_part(part: Part, ids: CallIds) -> Json:
    match part:
        case TextBlock() | ImagePart() | OpaquePart():
            return render_media(part)
        case ReasoningBlock():
            signed = {SIGNATURE: part.signature} if part.signature else {}
            return {"text": part.text, "thought": True} | signed | part.extra
        case ToolCallBlock():
            value = read_object(part.arguments)
            return render_call(part, ids, part.arguments if value is None else value)
        case ToolResultPart():
            return _render_result(part, ids)
        case _:
            assert_never(part)


def render_call(block: ToolCallBlock, ids: CallIds, arguments: Json) -> dict[str, Json]:
    """Return the part that calls a function. No argument text at all is no ``args``; an id of its place is not told."""
    given = None if block.id == ids.next_id else block.id
    ids.call(given, block.name)
    named = ({} if given is None else {"id": given}) | {"name": block.name}
    return {"functionCall": named | ({"args": arguments} if block.arguments else {})} | block.extra


def _render_result(part: ToolResultPart, ids: CallIds) -> dict[str, Json]:
    name = part.extra.get("name", ids.name_of(part.call_id))
    given = part.extra.get("id", None if ids.told_by_place(part.call_id, name) else part.call_id)
    ids.result(given, name)
    head = ({} if given is None else {"id": given}) | {"name": name}
    own = {key: value for key, value in part.extra.items() if key in RESPONSE_NAMES}
    rest = {key: value for key, value in part.extra.items() if key not in RESPONSE_NAMES}
    return {"functionResponse": head | render_response(part, render_media) | own} | rest


def render_media(part: TextBlock | ImagePart | OpaquePart) -> Json:
    """Return a part that is neither thinking nor a function's call or response."""
    match part:
        case TextBlock():
            return {"text": part.text} | part.extra
        case ImagePart(url=str() as url):
            typed = {} if part.media_type is UNSET else {"mimeType": part.media_type}
            return {"fileData": typed | {"fileUri": url}} | part.extra
        case ImagePart():
            return {"inlineData": {"mimeType": part.media_type, "data": part.data}} | part.extra
        case OpaquePart():
            return part.value
        case _:
            assert_never(part)


# ── Tools ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _tools(value: dict[str, Json], path: str) -> Iterator[Tool]:
    """Yield the tools of one entry: functions, and the provider's own, which keep the whole of their wire form."""
    for kind, tool in value.items():
        if kind == "functionDeclarations":
            declared = objects(as_list(tool, f"{path}.{kind}"), f"{path}.{kind}")
            yield from (_function(camel(item), at) for item, at in declared)
        else:
            _refuse({kind: tool}, path, "name", "description", "inputSchema")
            yield Tool(name=kind, extra={kind: tool})


def _function(value: dict[str, Json], path: str) -> Tool:
    _refuse(value, path, "inputSchema")
    schema = next((name for name in ("parametersJsonSchema", "parameters") if name in value), "")
    return read_function(value, path, schema)


def _render_tools(tools: Sequence[Tool]) -> Iterator[dict[str, Json]]:
    """Yield the entries: one for each run of functions, one for each of the provider's own tools."""
    for own, group in groupby(tools, lambda tool: set(tool.extra) == {tool.name}):
        if own:
            yield from (tool.extra for tool in group)
        else:
            yield {"functionDeclarations": [render_function(tool, _schema_name(tool.input_schema)) for tool in group]}


def _schema_name(schema: Json) -> str:
    """Return the member that holds ``schema``: Google's own kind of schema has its types in capitals."""
    googles = isinstance(schema, dict) and str(schema.get("type", "")).isupper()
    return "parameters" if googles else "parametersJsonSchema"


CALL_PATH = re.compile(r"/(?P<model>[^/:]+):(?P<method>generateContent|streamGenerateContent)$")

SIGNATURE = "thoughtSignature"
"""The member of a part that holds what Google wants back with it; of text and calls it stays in ``extra``."""

RESULT_ROLES = ("function", "tool")
"""Roles that some clients give to responses; the API takes them."""

ROLE = "wireRole"
"""The member of a message's ``extra`` that keeps such a role."""

# Names of members of neutral parts: a part of the wire that has one keeps the whole of its wire form.
OURS = frozenset(
    {"type", "id", "name", "arguments", "callId", "content", "isError", "mediaType", "data", "url", "signature"}
)

# members of a functionResponse, as opposed to those of the part it stands in
RESPONSE_NAMES = frozenset({"id", "name", "willContinue", "scheduling"})

# the other spelling -> the one written
CAMEL = {
    "system_instruction": "systemInstruction",
    "function_declarations": "functionDeclarations",
    "parameters_json_schema": "parametersJsonSchema",
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "inline_data": "inlineData",
    "file_data": "fileData",
    "mime_type": "mimeType",
    "file_uri": "fileUri",
    "thought_signature": SIGNATURE,
}
