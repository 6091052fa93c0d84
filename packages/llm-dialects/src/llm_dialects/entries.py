"""Script entries: what stands in for the provider at one model call, read from JSON and written back.

``{"kind": "chunks", "chunks": [...]}`` answers, ``{"kind": "throw", "chunks": [...], "message", "code", "status"?}``
fails (before the stream where ``chunks`` is empty, in the middle of it otherwise), ``{"kind": "hang", "chunks"?,
"readyFile"?}`` says these chunks (``partial`` where none are given) and then nothing more. Each may have a ``wire``
(``telling``). Only an ``upstream.json`` may also hold the shorthand ``{"kind": "say", ...}``.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, assert_never

import msgspec
from msgspec import UNSET, Struct, UnsetType

from llm_dialects.chunks import (
    Block,
    BlockEnd,
    BlockStart,
    Finish,
    FinishReason,
    Json,
    ReasoningBlock,
    ReasoningDelta,
    StreamChunk,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    Usage,
    UsageChunk,
    chunk_from_json,
    to_json,
)
from llm_dialects.telling import EntryError, Wire, wire_from_json, wire_to_json

PARTIAL: tuple[StreamChunk, ...] = (BlockStart(index=0, block_type="text"), TextDelta(index=0, text="partial"))
"""What a call says before its silence, where nobody says otherwise."""


class Chunks(Struct, frozen=True, kw_only=True):
    """The call is answered by these chunks."""

    chunks: tuple[StreamChunk, ...]
    wire: Wire | UnsetType = UNSET


class Throw(Struct, frozen=True, kw_only=True):
    """The call fails with ``code``, after ``chunks`` have been said.

    ``status`` overrides the HTTP status of the code; ``accepted`` marks a failure after the provider took the call.
    """

    chunks: tuple[StreamChunk, ...]
    message: str
    code: str
    status: int | UnsetType = UNSET
    accepted: bool | UnsetType = UNSET
    wire: Wire | UnsetType = UNSET


class Hang(Struct, frozen=True, kw_only=True):
    """The call says ``chunks`` and then nothing; ``ready_file`` (relative to the agent's cwd) is then written.

    Without any chunks not even the response begins.
    """

    ready_file: str | UnsetType = UNSET
    chunks: tuple[StreamChunk, ...] = PARTIAL
    wire: Wire | UnsetType = UNSET


Entry = Chunks | Throw | Hang


class SaidCall(Struct, frozen=True, kw_only=True):
    """A tool call of the shorthand; ``arguments`` is the raw JSON text, ``id`` is invented where it is absent."""

    name: str
    arguments: str
    id: str | UnsetType = UNSET


class Say(Struct, frozen=True, kw_only=True):
    """The shorthand of an answer: ``say_to_chunks`` cuts it into chunks of ``chunk_size`` code points."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[SaidCall, ...] = ()
    usage: Usage | UnsetType = UNSET
    finish: FinishReason | UnsetType = UNSET
    chunk_size: int = 8


def entry_from_json(value: Json, where: str) -> Entry:
    """Read one entry; ``where`` is its place, e.g. ``replay.override.json: entry 2``.

    Raises:
        EntryError: an unknown kind or key, a missing key, or a member of the wrong kind.
    """
    kind = _kind(value, where, ENTRY_KEYS)
    wire = wire_from_json(value["wire"], f"{where}.wire") if "wire" in value else UNSET
    if kind == "chunks":
        return Chunks(chunks=_chunks(value["chunks"], f"{where}.chunks"), wire=wire)
    if kind == "hang":
        said = _chunks(value["chunks"], f"{where}.chunks") if "chunks" in value else PARTIAL
        return Hang(ready_file=_member(value, "readyFile", str, where), chunks=said, wire=wire)
    return Throw(
        wire=wire,
        chunks=_chunks(value["chunks"], f"{where}.chunks"),
        message=_non_empty(value, "message", where),
        code=_non_empty(value, "code", where),
        status=_status(value, where),
        accepted=_member(value, "accepted", bool, where),
    )


def entry_to_json(entry: Entry) -> dict[str, Json]:
    """Return the JSON object of ``entry``; the inverse of ``entry_from_json``."""
    chunks = [to_json(chunk) for chunk in entry.chunks]
    wire = {} if entry.wire is UNSET else {"wire": wire_to_json(entry.wire)}
    match entry:
        case Chunks():
            return {"kind": "chunks", "chunks": chunks} | wire
        case Hang():
            said = {} if entry.chunks == PARTIAL else {"chunks": chunks}
            return _present({"kind": "hang"} | said | {"readyFile": entry.ready_file}) | wire
        case Throw():
            members = {"message": entry.message, "code": entry.code, "status": entry.status, "accepted": entry.accepted}
            return _present({"kind": "throw", "chunks": chunks} | members) | wire
        case _:
            assert_never(entry)


def upstream_from_json(value: Json, where: str) -> tuple[Entry | Say, ...]:
    """Read the content of an ``upstream.json``: ``{"entries": [...]}``, the shorthand allowed.

    Raises:
        EntryError: as ``entry_from_json``, naming the entry by its number.
    """
    if not isinstance(value, dict) or set(value) != {"entries"} or not isinstance(value["entries"], list):
        raise EntryError(f'{where}: must be an object of one key: {{"entries": [...]}}')
    return tuple(_upstream_entry(item, f"{where}: entries[{at}]") for at, item in enumerate(value["entries"]))


def say_from_json(value: Json, where: str) -> Say:
    """Read one ``{"kind": "say", ...}``.

    Raises:
        EntryError: as ``entry_from_json``.
    """
    _kind(value, where, SAY_KEYS)
    size = _member(value, "chunkSize", int, where)
    if size is not UNSET and size < 1:
        raise EntryError(f"{where}.chunkSize: must be at least 1")
    calls = _or(_member(value, "toolCalls", list, where), [])
    return Say(
        text=_or(_member(value, "text", str, where), ""),
        reasoning=_or(_member(value, "reasoning", str, where), ""),
        tool_calls=tuple(_said_call(call, f"{where}.toolCalls[{at}]") for at, call in enumerate(calls)),
        usage=_record(value, "usage", Usage, where),
        finish=_finish(value, where),
        chunk_size=_or(size, 8),
    )


def say_to_chunks(say: Say, new_id: Callable[[], str]) -> tuple[StreamChunk, ...]:
    """Return the chunks of ``say`` in the order a real provider streams them: reasoning, text, then tool calls.

    Every block starts at its first piece and all blocks end together. ``new_id`` names calls that have no id.
    """
    blocks = _said_blocks(say, new_id)
    begun = [chunk for index, block in enumerate(blocks) for chunk in _said_block(index, block, say.chunk_size)]
    ends: list[StreamChunk] = [BlockEnd(index=index, block=block) for index, block in enumerate(blocks)]
    usage: list[StreamChunk] = [] if say.usage is UNSET else [UsageChunk(usage=say.usage)]
    natural = FinishReason(kind="tool-calls" if say.tool_calls else "stop")
    return (*begun, *ends, *usage, Finish(reason=_or(say.finish, natural)))


def _said_blocks(say: Say, new_id: Callable[[], str]) -> list[Block]:
    """Return the blocks of ``say``; empty texts make none."""
    reasoning: list[Block] = [ReasoningBlock(text=say.reasoning)] if say.reasoning else []
    text: list[Block] = [TextBlock(text=say.text)] if say.text else []
    calls = (
        ToolCallBlock(id=new_id() if call.id is UNSET else call.id, name=call.name, arguments=call.arguments)
        for call in say.tool_calls
    )
    return [*reasoning, *text, *calls]


def _said_block(index: int, block: Block, size: int) -> Iterator[StreamChunk]:
    """Yield the start and the deltas of one block. A call without arguments still has one delta: it names the call."""
    match block:
        case TextBlock():
            yield BlockStart(index=index, block_type="text")
            yield from (TextDelta(index=index, text=piece) for piece in _cut(block.text, size))
        case ReasoningBlock():
            yield BlockStart(index=index, block_type="reasoning")
            yield from (ReasoningDelta(index=index, text=piece) for piece in _cut(block.text, size))
        case ToolCallBlock():
            yield BlockStart(index=index, block_type="tool-call")
            for piece in _cut(block.arguments, size) or [""]:
                yield ToolCallDelta(index=index, id=block.id, name=block.name, arguments_delta=piece)
        case _:
            assert_never(block)


def _cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


# ── Reading, with the place of a fault ──────────────────────────────────────────────────────────────────────────────


def _upstream_entry(value: Json, where: str) -> Entry | Say:
    if isinstance(value, dict) and value.get("kind") == "say":
        return say_from_json(value, where)
    return entry_from_json(value, where)


def _kind(value: Json, where: str, table: Mapping[str, tuple[frozenset[str], frozenset[str]]]) -> str:
    """Return the kind of the object ``value`` after checking its keys against ``table``."""
    if not isinstance(value, dict):
        raise EntryError(f"{where}: must be an object")
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in table:
        raise EntryError(f"{where}.kind: {kind!r} is none of {', '.join(table)}")
    _check_keys(value, where, *table[kind])
    return kind


def _check_keys(value: Mapping[str, Json], where: str, required: Iterable[str], optional: Iterable[str]) -> None:
    for key in required:
        if key not in value:
            raise EntryError(f"{where}: the key {key!r} is missing")
    known = {*required, *optional}
    for key in value:
        if key not in known:
            raise EntryError(f"{where}: unknown key {key!r}; known are {', '.join(sorted(known))}")


def _chunks(value: Json, where: str) -> tuple[StreamChunk, ...]:
    if not isinstance(value, list):
        raise EntryError(f"{where}: must be an array")
    return tuple(_chunk(item, f"{where}[{at}]") for at, item in enumerate(value))


def _chunk(value: Json, where: str) -> StreamChunk:
    try:
        return chunk_from_json(value)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise EntryError(f"{where}: {_fault(error)}") from None


def _member(value: Mapping[str, Json], key: str, kind: type, where: str) -> Any:
    """Return the optional member ``key`` of exactly the type ``kind``, or ``UNSET``."""
    if key not in value:
        return UNSET
    if type(value[key]) is not kind:
        raise EntryError(f"{where}.{key}: must be {KIND_WORDS[kind]}")
    return value[key]


def _non_empty(value: Mapping[str, Json], key: str, where: str) -> str:
    text: str = _member(value, key, str, where)
    if not text:
        raise EntryError(f"{where}.{key}: must not be empty")
    return text


def _status(value: Mapping[str, Json], where: str) -> int | UnsetType:
    status: int | UnsetType = _member(value, "status", int, where)
    if status is not UNSET and not 400 <= status <= 599:
        raise EntryError(f"{where}.status: must be an HTTP error status, 400 to 599")
    return status


def _record(value: Mapping[str, Json], key: str, kind: type[Any], where: str) -> Any:
    if key not in value:
        return UNSET
    try:
        return msgspec.convert(value[key], kind)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise EntryError(f"{where}.{key}: {_fault(error)}") from None


def _fault(error: Exception) -> str:
    """Return the words on what could not be read. Half a surrogate pair is no wrong word that could be shown."""
    return "holds half a surrogate pair where a word must stand" if isinstance(error, UnicodeError) else str(error)


def _finish(value: Mapping[str, Json], where: str) -> FinishReason | UnsetType:
    """Read ``finish``, either the bare kind or the whole reason."""
    said = value.get("finish", {})
    if isinstance(said, str):
        return FinishReason(kind=said)
    if not isinstance(said, dict):
        raise EntryError(f'{where}.finish: must be a kind, e.g. "stop", or an object {{"kind": ...}}')
    reason: FinishReason | UnsetType = _record(value, "finish", FinishReason, where)
    return reason


def _said_call(value: Json, where: str) -> SaidCall:
    if not isinstance(value, dict):
        raise EntryError(f"{where}: must be an object")
    _check_keys(value, where, ("name", "arguments"), ("id",))
    arguments = value["arguments"]
    if not isinstance(arguments, (str, dict)):
        raise EntryError(f"{where}.arguments: must be an object, or a string of raw JSON text")
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return SaidCall(name=_non_empty(value, "name", where), arguments=raw, id=_member(value, "id", str, where))


def _or(value: Any, default: Any) -> Any:
    return default if value is UNSET else value


def _present(members: Mapping[str, Any]) -> dict[str, Json]:
    return {key: value for key, value in members.items() if value is not UNSET}


KIND_WORDS = {str: "a string", bool: "true or false", int: "a whole number", list: "an array"}

# kind -> (required keys, optional keys)
ENTRY_KEYS = {
    "chunks": (frozenset({"kind", "chunks"}), frozenset({"wire"})),
    "throw": (frozenset({"kind", "chunks", "message", "code"}), frozenset({"status", "accepted", "wire"})),
    "hang": (frozenset({"kind"}), frozenset({"chunks", "readyFile", "wire"})),
}
SAY_KEYS = {
    "say": (
        frozenset({"kind"}),
        frozenset({"text", "reasoning", "toolCalls", "usage", "finish", "chunkSize"}),
    ),
}
