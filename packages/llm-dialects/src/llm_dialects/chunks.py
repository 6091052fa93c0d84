"""What a model says, provider-neutral: the pieces of one answer's stream, and the blocks they add up to.

The JSON of a chunk is the one of the historical session logs (``reference``: DeepSeek Harness format version 0),
e.g. ``{"type": "text-delta", "index": 0, "text": "PONG"}``. Members that a log holds and this module does not know
are kept in ``extra`` and written back, so that reading and writing a chunk loses nothing.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

Json = Any
"""A JSON value: ``None``, ``bool``, ``int``, ``float``, ``str``, ``list[Json]`` or ``dict[str, Json]``."""


class Record(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """A JSON object with known members and an ``extra`` for the rest."""

    # The wire name is one that no program writes, so that a member really called "extra" is kept like any other.
    extra: dict[str, Json] = msgspec.field(name="(extra)", default_factory=dict)


# ── Blocks: what the deltas of one index add up to ──────────────────────────────────────────────────────────────────


class TextBlock(Record, frozen=True, tag_field="type", tag="text"):
    """Text meant for the user."""

    text: str


class ReasoningBlock(Record, frozen=True, tag_field="type", tag="reasoning"):
    """The model's thinking; ``signature`` is what the provider wants back with it."""

    text: str
    signature: str | UnsetType = UNSET


class ToolCallBlock(Record, frozen=True, tag_field="type", tag="tool-call"):
    """One tool call; ``arguments`` is the raw JSON text as the model wrote it, perhaps not valid JSON."""

    id: str
    name: str
    arguments: str


Block = TextBlock | ReasoningBlock | ToolCallBlock


# ── Chunks ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Usage(Record, frozen=True):
    """Token counts of one call, as the historical logs count them.

    ``input_tokens`` are the fresh ones only: the prompt is the sum of these, those read from the cache and those
    written to it. ``output_tokens`` include ``reasoning_tokens``.
    """

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int | UnsetType = UNSET
    cache_write_tokens: int | UnsetType = UNSET
    reasoning_tokens: int | UnsetType = UNSET


class Failure(Record, frozen=True):
    """Why a stream ended in an error that the provider reported as data."""

    message: str
    code: str


class FinishReason(Record, frozen=True):
    """``kind``: ``stop``, ``tool-calls``, ``max-tokens``, ``content-filter``, ``error``, or the provider's own word."""

    kind: str
    failure: Failure | UnsetType = UNSET


class BlockStart(Record, frozen=True, tag_field="type", tag="block-start"):
    """Block ``index`` begins; ``block_type`` is ``text``, ``reasoning`` or ``tool-call``."""

    index: int
    block_type: str


class TextDelta(Record, frozen=True, tag_field="type", tag="text-delta"):
    """More text of block ``index``."""

    index: int
    text: str


class ReasoningDelta(Record, frozen=True, tag_field="type", tag="reasoning-delta"):
    """More thinking of block ``index``."""

    index: int
    text: str


class ToolCallDelta(Record, frozen=True, kw_only=True, tag_field="type", tag="tool-call-delta"):
    """More of the raw argument text of the tool call in block ``index``."""

    index: int
    id: str
    name: str | UnsetType = UNSET
    arguments_delta: str


class BlockEnd(Record, frozen=True, tag_field="type", tag="block-end"):
    """Block ``index`` is complete; ``block`` is the whole of it."""

    index: int
    block: Block


class UsageChunk(Record, frozen=True, tag_field="type", tag="usage"):
    """The call's token counts."""

    usage: Usage


class Finish(Record, frozen=True, tag_field="type", tag="finish"):
    """The answer is over."""

    reason: FinishReason
    replay_state: Json | UnsetType = UNSET


StreamChunk = BlockStart | TextDelta | ReasoningDelta | ToolCallDelta | BlockEnd | UsageChunk | Finish


def chunk_from_json(value: Json) -> StreamChunk:
    """Read one chunk from its JSON object.

    Raises:
        msgspec.ValidationError: an unknown ``type``, a missing member or one of the wrong kind.
    """
    chunk: StreamChunk = msgspec.convert(value, StreamChunk)
    return keep_extra(chunk, value)


def chunks_from_json(values: Iterable[Json]) -> tuple[StreamChunk, ...]:
    """Read a list of chunks."""
    return tuple(chunk_from_json(value) for value in values)


def block_from_json(value: Json) -> Block:
    """Read one block from its JSON object."""
    block: Block = msgspec.convert(value, Block)
    return keep_extra(block, value)


R = TypeVar("R", bound=Record)


def keep_extra(record: R, source: Mapping[str, Json]) -> R:
    """Return ``record`` with those members of ``source`` in ``extra`` that its type does not name, all the way down."""
    changes: dict[str, Any] = {}
    for field in fields_of(type(record)):
        inner = getattr(record, field.name)
        if isinstance(inner, Record):
            kept = keep_extra(inner, source[field.encode_name])
            if kept is not inner:
                changes[field.name] = kept
    known = {field.encode_name for field in fields_of(type(record))} | {record.__struct_config__.tag_field}
    extra = {key: value for key, value in source.items() if key not in known}
    if extra:
        changes["extra"] = extra
    return msgspec.structs.replace(record, **changes) if changes else record


@cache
def fields_of(kind: type[Record]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """The fields of a record's type; looking them up anew costs more than everything else about a chunk."""
    return msgspec.structs.fields(kind)


def to_json(record: Record) -> dict[str, Json]:
    """Return the JSON object of a chunk, block, usage or other record; the inverse of ``*_from_json``."""
    tag = record.__struct_config__
    result: dict[str, Json] = {tag.tag_field: tag.tag} if tag.tag_field else {}
    for field in fields_of(type(record)):
        value = getattr(record, field.name)
        if field.name != "extra" and value is not UNSET and value != field.default:
            result[field.encode_name] = plain(value)
    return result | record.extra


def plain(value: Any) -> Json:
    """Return ``value`` with every record and tuple in it turned into plain JSON."""
    if isinstance(value, Record):
        return to_json(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
