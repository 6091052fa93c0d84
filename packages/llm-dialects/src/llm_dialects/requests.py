"""What an agent asks a model, provider-neutral.

A ``Request`` is what a provider's request body means: leading system texts, tools, messages, and every other member as
``params``. ``cache_control`` marks carry no meaning for the answer and are dropped.
"""

from typing import Literal

from msgspec import UNSET, UnsetType

from llm_dialects.chunks import Json, ReasoningBlock, Record, TextBlock, ToolCallBlock


class ImagePart(Record, frozen=True, tag_field="type", tag="image"):
    """An image: base64 ``data`` with its ``media_type``, or a ``url``."""

    media_type: str | UnsetType = UNSET
    data: str | UnsetType = UNSET
    url: str | UnsetType = UNSET


class OpaquePart(Record, frozen=True, tag_field="type", tag="opaque"):
    """A part this version does not understand, kept as it came, so that a change in it still shows."""

    value: Json


class ToolResultPart(Record, frozen=True, tag_field="type", tag="tool-result"):
    """The result of one tool call."""

    call_id: str
    content: tuple[TextBlock | ImagePart | OpaquePart, ...]
    is_error: bool = False


Part = TextBlock | ReasoningBlock | ToolCallBlock | ImagePart | ToolResultPart | OpaquePart


class Message(Record, frozen=True):
    """One message of the history. Every tool result is a message of its own with role ``tool``."""

    role: Literal["system", "user", "assistant", "tool"]
    content: tuple[Part, ...]


WIRE_ROLE = "wireRole"
DEVELOPER: dict[str, Json] = {WIRE_ROLE: "developer"}
"""What the ``extra`` of a system message holds that OpenAI calls a developer's, so that it is written back as one."""


class Tool(Record, frozen=True):
    """A tool offered to the model; ``input_schema`` is a JSON Schema."""

    name: str
    description: str = ""
    input_schema: Json = UNSET


class Request(Record, frozen=True):
    """One model call's question. ``params`` holds ``model``, ``stream`` and whatever else the body held.

    ``system`` are the leading system texts only; a system message later in the history stays in ``messages``.
    """

    system: tuple[str, ...]
    tools: tuple[Tool, ...]
    messages: tuple[Message, ...]
    params: dict[str, Json]
