"""Messages and requests read from their JSON with nothing lost: what no type names stays in ``extra``."""

from typing import Any

import msgspec
from llm_dialects import Json, Message, Record, Request, Tool


def message_from_json(value: Json) -> Message:
    """Read one message; the inverse of ``llm_dialects.to_json``.

    Raises:
        msgspec.ValidationError: it is no message.
    """
    message: Message = _with_extra(msgspec.convert(value, Message), value)
    return message


def request_from_json(value: Json) -> Request:
    """Read one request; the inverse of ``llm_dialects.to_json``.

    Raises:
        msgspec.ValidationError: it is no request.
    """
    request: Request = _with_extra(msgspec.convert(value, Request), value)
    return request


def tools_from_json(values: Json) -> tuple[Tool, ...]:
    """Read a list of tools, each the inverse of ``llm_dialects.to_json``.

    Raises:
        msgspec.ValidationError: it is no list of tools.
    """
    tools: tuple[Tool, ...] = _with_extra(msgspec.convert(values, tuple[Tool, ...]), values)
    return tools


def _with_extra(value: Any, source: Json) -> Any:
    """Return a converted value with what its types do not name put back in from ``source``."""
    if isinstance(value, tuple):
        return tuple(_with_extra(item, part) for item, part in zip(value, source, strict=True))
    if not isinstance(value, Record):
        return value
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(value)}
    changes = {name: _with_extra(getattr(value, name), source[key]) for key, name in fields.items() if key in source}
    known = {*fields, value.__struct_config__.tag_field}
    changes["extra"] = {key: member for key, member in source.items() if key not in known}
    return msgspec.structs.replace(value, **changes)
