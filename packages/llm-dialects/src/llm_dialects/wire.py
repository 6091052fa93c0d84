"""JSON as it goes over the wire: compact UTF-8 out, anything that is JSON in."""

import json
from typing import Any

import msgspec

from llm_dialects.chunks import Json

_encoder = msgspec.json.Encoder()


def encode_json(value: Json) -> bytes:
    """Return ``value`` as compact JSON in UTF-8.

    Half a surrogate pair (a piece of text that its author cut inside a character) cannot be UTF-8: it is escaped.
    """
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def decode_json(data: bytes | str) -> Json:
    """Return the value of the JSON text ``data``.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        # The standard library reads what msgspec refuses: halves of surrogate pairs.
        return json.loads(data, parse_constant=_refuse_constant)


def compact(value: Json) -> str:
    """Return ``value`` as compact JSON text, characters unescaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def compact_length(value: Json) -> int:
    """Return how many characters ``compact(value)`` has (a float may be written shorter)."""
    try:
        return len(_encoder.encode(value).decode())
    except (UnicodeEncodeError, OverflowError):
        return len(compact(value))


def read_object(text: str) -> dict[str, Json] | None:
    """Return the JSON object ``text`` holds, or ``None`` if it holds anything else."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def arguments_text(value: Json) -> str:
    """Return a tool's ``input`` as raw argument text; text that is no JSON object travels as a string."""
    if value is None:
        return ""
    return value if isinstance(value, str) else compact(value)


def arguments_value(text: str) -> Json:
    """Return raw argument text as a tool's ``input``; no text at all is no arguments."""
    if not text:
        return {}
    value = read_object(text)
    return text if value is None else value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
