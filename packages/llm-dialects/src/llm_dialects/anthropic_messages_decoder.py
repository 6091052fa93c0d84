"""Anthropic messages: streamed answers from wire bytes to chunks."""

from collections.abc import Iterator

import msgspec
from msgspec import UNSET

from llm_dialects.anthropic_messages_requests import read_block
from llm_dialects.chunks import (
    Finish,
    FinishReason,
    Json,
    ReasoningBlock,
    StreamChunk,
    TextBlock,
    ToolCallBlock,
    Usage,
    UsageChunk,
)
from llm_dialects.errors import classify, finish_of
from llm_dialects.fold import OpenBlock, text_of
from llm_dialects.reading import as_count, as_object, as_text, parse
from llm_dialects.requests import OpaquePart
from llm_dialects.sse import SseDecoder, SseEvent


class AnthropicMessagesDecoder:
    """Reads a streamed answer.

    Blocks come one after another, each with its own start and end; usage and finish come when the message stops.
    Blocks that are not text, thinking or a call of the client's tools (server tools and their results) are left out.
    """

    def __init__(self) -> None:
        self._sse = SseDecoder()
        self._number = 0  # of the event
        self._blocks: dict[Json, _OpenBlock] = {}  # by the wire's index
        self._usage: dict[str, Json] = {}
        self._stop: str | None = None
        self._over = False

    def feed(self, data: bytes) -> list[StreamChunk]:
        """Return the chunks that ``data`` completes; what follows ``message_stop`` or an error is not read."""
        chunks: list[StreamChunk] = []
        for event in self._sse.feed(data):
            self._number += 1
            if not self._over:
                chunks += self._read(event)
        return chunks

    def close(self) -> list[StreamChunk]:
        """Return the end of an answer that gave its reason to stop but no ``message_stop``."""
        return [] if self._over else self._end()

    def _read(self, event: SseEvent) -> list[StreamChunk]:
        where = f"event {self._number}"
        body = as_object(parse(event.data, where), where)
        match body.get("type"):
            case "error":
                self._over = True
                return [finish_of(classify(None, body))]
            case "message_start":
                message = as_object(body.get("message"), f"{where}.message")
                self._count(message.get("usage"), f"{where}.message.usage")
            case "message_delta":
                delta = as_object(body.get("delta"), f"{where}.delta")
                self._stop = as_text(delta.get("stop_reason"), f"{where}.delta.stop_reason") or self._stop
                self._count(body.get("usage"), f"{where}.usage")
            case "message_stop":
                return self._end()
            case "content_block_start" | "content_block_delta" | "content_block_stop" as kind:
                return list(self._block_event(kind, body, where))
        return []

    def _block_event(self, kind: str, body: dict[str, Json], where: str) -> Iterator[StreamChunk]:
        at = body.get("index")
        if kind == "content_block_start":
            yield from self._start(at, as_object(body.get("content_block"), f"{where}.content_block"), where)
        elif at in self._blocks:
            block = self._blocks[at]
            if kind == "content_block_stop":
                yield block.end
            else:
                yield from block.take(as_object(body.get("delta"), f"{where}.delta"), f"{where}.delta")

    def _start(self, at: Json, value: dict[str, Json], where: str) -> Iterator[StreamChunk]:
        """Begin a block. Its start usually holds nothing, and the input of a call is then an empty object."""
        block = read_block(value, f"{where}.content_block")
        if isinstance(block, OpaquePart):
            return
        self._blocks[at] = begun = _OpenBlock(len(self._blocks), block)
        yield begun.start
        given = text_of(block)
        if given and given != "{}":
            yield begun.add(given)

    def _count(self, usage: Json, path: str) -> None:
        """Take in counts; later ones are totals and replace earlier ones."""
        known = as_object(usage or {}, path)
        self._usage |= {name: value for name, value in known.items() if value is not None}

    def _end(self) -> list[StreamChunk]:
        self._over = True
        if self._stop is None:
            return []
        usage = read_usage(self._usage, "usage")
        counted = [] if usage is None else [UsageChunk(usage=usage)]
        return [*counted, Finish(reason=FinishReason(kind=STOP_BACK.get(self._stop, self._stop)))]


class _OpenBlock(OpenBlock):
    """A block that is being told."""

    def take(self, delta: dict[str, Json], path: str) -> Iterator[StreamChunk]:
        """Take in one delta; kinds that say nothing of the text (citations) are left out."""
        kind = delta.get("type")
        if kind == "signature_delta" and isinstance(self.head, ReasoningBlock):
            signature = as_text(delta.get("signature"), f"{path}.signature")
            self.head = msgspec.structs.replace(self.head, signature=signature or UNSET)
        elif DELTA_TEXTS.get(type(self.head), ("", ""))[0] == kind:
            name = DELTA_TEXTS[type(self.head)][1]
            yield self.add(as_text(delta.get(name), f"{path}.{name}"))


def read_usage(usage: dict[str, Json], path: str) -> Usage | None:
    """Read a ``usage`` object; nothing but zeros is no usage at all."""
    details = as_object(usage.get("output_tokens_details") or {}, f"{path}.output_tokens_details")
    optional = {
        "cache_read_tokens": usage.get("cache_read_input_tokens"),
        "cache_write_tokens": usage.get("cache_creation_input_tokens"),
        "reasoning_tokens": details.get("thinking_tokens"),
    }
    counts: dict[str, Json] = {
        name: as_count(value, f"{path}.{name}") for name, value in optional.items() if value is not None
    }
    counts["input_tokens"] = as_count(usage.get("input_tokens"), f"{path}.input_tokens")
    counts["output_tokens"] = as_count(usage.get("output_tokens"), f"{path}.output_tokens")
    return Usage(**counts) if any(counts.values()) else None


# type of block -> the type of its deltas, and the member that holds their text
DELTA_TEXTS: dict[type, tuple[str, str]] = {
    TextBlock: ("text_delta", "text"),
    ReasoningBlock: ("thinking_delta", "thinking"),
    ToolCallBlock: ("input_json_delta", "partial_json"),
}

# the wire's stop reason -> ours; any other word travels as it is
STOP_BACK = {
    "end_turn": "stop",
    "max_tokens": "max-tokens",
    "tool_use": "tool-calls",
    "refusal": "content-filter",
}
