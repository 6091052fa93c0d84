"""OpenAI chat completions: streamed answers from wire bytes to chunks."""

from collections.abc import Iterator

import msgspec

from llm_dialects.chunks import (
    BlockEnd,
    BlockStart,
    Finish,
    FinishReason,
    Json,
    ReasoningDelta,
    StreamChunk,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from llm_dialects.errors import classify, finish_of
from llm_dialects.fold import indexed
from llm_dialects.reading import as_count, as_object, as_text, objects, parse
from llm_dialects.sse import SseDecoder


class OpenAiChatDecoder:
    """Reads a streamed answer.

    A block starts at its first delta and is numbered in order of appearance; all blocks end together, then come the
    usage and the finish. Only the first choice is read.
    """

    def __init__(self) -> None:
        self._sse = SseDecoder()
        self._number = 0  # of the event
        self._said: list[StreamChunk] = []
        self._blocks = 0
        self._texts: dict[str, int] = {}  # text, reasoning -> the index of its block
        self._calls: dict[Json, ToolCallDelta] = {}  # the wire's index -> a delta of its block
        self._usage: Usage | None = None
        self._finish: str | None = None
        self._over = False

    def feed(self, data: bytes) -> list[StreamChunk]:
        """Return the chunks that ``data`` completes; what follows ``[DONE]`` or an error is not read."""
        chunks: list[StreamChunk] = []
        for event in self._sse.feed(data):
            self._number += 1
            if not self._over:
                chunks += self._end() if event.data.startswith("[DONE]") else self._read(event.data)
        return chunks

    def close(self) -> list[StreamChunk]:
        """Return the end of an answer whose provider sends no ``[DONE]``."""
        return [] if self._over or self._finish is None else self._end()

    def _read(self, data: str) -> list[StreamChunk]:
        where = f"event {self._number}"
        body = as_object(parse(data, where), where)
        if body.get("error"):
            self._over = True
            return [finish_of(classify(None, body))]
        if body.get("usage") is not None:
            self._usage = read_usage(as_object(body["usage"], f"{where}.usage"), f"{where}.usage")
        choices = objects(body.get("choices"), f"{where}.choices")
        chunks = [chunk for choice, path in choices if not choice.get("index") for chunk in self._choice(choice, path)]
        self._said += chunks
        return chunks

    def _choice(self, choice: dict[str, Json], path: str) -> Iterator[StreamChunk]:
        delta = as_object(choice.get("delta") or {}, f"{path}.delta")
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        yield from self._text("reasoning", as_text(thought, f"{path}.delta.reasoning_content"))
        for name in ("content", "refusal"):
            yield from self._text("text", as_text(delta.get(name), f"{path}.delta.{name}"))
        for call, at in objects(delta.get("tool_calls"), f"{path}.delta.tool_calls"):
            yield from self._call(call, at)
        self._finish = choice.get("finish_reason") or self._finish

    def _text(self, kind: str, text: str) -> Iterator[StreamChunk]:
        if not text:
            return
        if kind not in self._texts:
            self._texts[kind] = self._next()
            yield BlockStart(index=self._texts[kind], block_type=kind)
        delta = TextDelta if kind == "text" else ReasoningDelta
        yield delta(index=self._texts[kind], text=text)

    def _call(self, call: dict[str, Json], path: str) -> Iterator[StreamChunk]:
        function = as_object(call.get("function") or {}, f"{path}.function")
        call_id, name = as_text(call.get("id"), f"{path}.id"), as_text(function.get("name"), f"{path}.function.name")
        key = call.get("index")
        known = self._calls.get(key)
        # Some gateways number every call 0: a new id with a name is a new call.
        if known is None or (call_id and name and call_id != known.id):
            known = ToolCallDelta(index=self._next(), id=call_id, name=name, arguments_delta="")
            yield BlockStart(index=known.index, block_type="tool-call")
        self._calls[key] = known = msgspec.structs.replace(known, name=known.name or name)
        text = as_text(function.get("arguments"), f"{path}.function.arguments")
        yield msgspec.structs.replace(known, arguments_delta=text)

    def _next(self) -> int:
        self._blocks += 1
        return self._blocks - 1

    def _end(self) -> list[StreamChunk]:
        """Return the ends of all blocks, the usage and, if the provider said why it stopped, the finish."""
        self._over = True
        ends = [BlockEnd(index=block.index, block=block.block) for block in indexed(self._said)]
        usage = [] if self._usage is None else [UsageChunk(usage=self._usage)]
        if self._finish is None:
            return [*ends, *usage]
        return [*ends, *usage, Finish(reason=FinishReason(kind=FINISH_BACK.get(self._finish, self._finish)))]


def read_usage(usage: dict[str, Json], path: str) -> Usage:
    """Read a ``usage`` object, DeepSeek's names for cached tokens included."""
    prompt = as_object(usage.get("prompt_tokens_details") or {}, f"{path}.prompt_tokens_details")
    completion = as_object(usage.get("completion_tokens_details") or {}, f"{path}.completion_tokens_details")
    cached = prompt.get("cached_tokens")
    cached = usage.get("prompt_cache_hit_tokens") if cached is None else cached
    details = {
        "cache_read_tokens": cached,
        "cache_write_tokens": prompt.get("cache_write_tokens"),
        "reasoning_tokens": completion.get("reasoning_tokens"),
    }
    counts: dict[str, Json] = {
        name: as_count(value, f"{path}.{name}") for name, value in details.items() if value is not None
    }
    # Here cached tokens are part of the prompt. (Some gateways leave them out: hence never below zero.)
    cached_in_all = counts.get("cache_read_tokens", 0) + counts.get("cache_write_tokens", 0)
    return Usage(
        input_tokens=max(0, as_count(usage.get("prompt_tokens"), f"{path}.prompt_tokens") - cached_in_all),
        output_tokens=as_count(usage.get("completion_tokens"), f"{path}.completion_tokens"),
        **counts,
    )


# the wire's finish -> ours; any other word travels as it is
FINISH_BACK = {
    "stop": "stop",
    "length": "max-tokens",
    "tool_calls": "tool-calls",
    "content_filter": "content-filter",
}
