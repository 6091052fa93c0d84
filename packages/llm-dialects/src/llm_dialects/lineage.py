"""How requests of one conversation grow from one another: the comparisons that recording and binding share."""

from typing import Any

import msgspec
from msgspec import UNSET

from llm_dialects.anthropic_messages_requests import REDACTED
from llm_dialects.chunks import Json, ReasoningBlock, Record
from llm_dialects.requests import Message, OpaquePart, Request


def common_prefix(a: Request, b: Request) -> int:
    """Return how many messages at the front of ``a`` and ``b`` are equal."""
    pairs = zip(a.messages, b.messages, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(a.messages), len(b.messages)))


def extends(parent: Request, child: Request) -> bool:
    """Return whether ``child`` holds all messages of ``parent`` at its front, and more."""
    return len(child.messages) > len(parent.messages) == common_prefix(parent, child)


def appended(parent: Request, child: Request) -> tuple[Message, ...]:
    """Return the messages that ``child``, which extends ``parent``, has beyond it."""
    return child.messages[len(parent.messages) :]


def same_messages(a: Request, b: Request) -> bool:
    """Return whether the histories are equal."""
    return a.messages == b.messages


def same_header(a: Request, b: Request) -> bool:
    """Return whether system texts and tools are equal."""
    return a.system == b.system and a.tools == b.tools


def strip_volatile(request: Request) -> Request:
    """Return ``request`` without what a provider signs anew each time: signatures of thinking, wherever they stand."""
    messages = tuple(msgspec.structs.replace(m, **_without_signatures(m)) for m in request.messages)
    return msgspec.structs.replace(request, messages=messages)


def _without_signatures(record: Record) -> dict[str, Any]:
    """Return the fields of ``record`` that hold signatures, without them."""
    changes: dict[str, Any] = {"extra": _unsigned(record.extra)} if record.extra else {}
    if isinstance(record, ReasoningBlock):
        changes["signature"] = UNSET
    if isinstance(record, OpaquePart):
        changes["value"] = _unsigned(record.value)
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if isinstance(value, tuple):
            changes[name] = tuple(_strip(item) for item in value)
    return changes


def _strip(value: Any) -> Any:
    if isinstance(value, Record):
        changes = _without_signatures(value)
        return msgspec.structs.replace(value, **changes) if changes else value
    return value


def _unsigned(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _unsigned(item) for key, item in value.items() if key not in SIGNATURES}
    if isinstance(value, list):
        return [_unsigned(item) for item in value]
    return value


# Members that hold signed or encrypted thinking: Gemini's two spellings, OpenAI's and OpenRouter's, Anthropic's.
SIGNATURES = frozenset(
    {"thought_signature", "thoughtSignature", "encrypted_content", "reasoning_details", "signature", REDACTED}
)
