"""Gemini: answers from wire bytes to chunks, streamed in either framing or whole.

``alt=sse`` asks for server-sent events; without it Google streams one JSON array. The first byte tells which it is.
Amid server-sent events an error is no event, but bare JSON over several lines; one that is an event is read too.
"""

from collections.abc import Iterator

import msgspec

from llm_dialects.chunks import (
    Block,
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
from llm_dialects.fold import OpenBlock
from llm_dialects.gemini_calls import CallIds
from llm_dialects.gemini_requests import SIGNATURE, camel, read_call
from llm_dialects.json_stream import ArrayDecoder
from llm_dialects.reading import as_count, as_object, as_text, objects, parse
from llm_dialects.sse import SseDecoder, SseEvent


class GeminiDecoder:
    """Reads a streamed answer.

    Parts of one kind that follow one another are one block, unless a signature ends it; a function call comes whole.
    Parts that are not text, thinking or a call (code that Google ran, media) are left out. Nothing on the wire says
    that the answer is over, so that usage and finish come at the end of the body, or of the array.
    Only the first candidate is read.
    """

    def __init__(self, finish: str | None = None) -> None:
        """``finish`` is why the answer stopped if it does not say so itself; without it such an answer broke off."""
        self._head = b""
        self._framing: _Events | ArrayDecoder | None = None
        self._number = 0  # of the event
        self._open: OpenBlock | None = None
        self._blocks = 0
        self._ids = CallIds()
        self._calls = False
        self._usage: Usage | None = None
        self._finish = None if finish is None else FinishReason(kind=finish)
        self._over = False

    def feed(self, data: bytes) -> list[StreamChunk]:
        """Return the chunks that ``data`` completes; what follows an error or the end of the array is not read."""
        chunks: list[StreamChunk] = []
        for text in self._texts(data):
            self._number += 1
            if not self._over:
                where = f"event {self._number}"
                chunks += self.read(as_object(parse(text, where), where), where)
        if isinstance(self._framing, ArrayDecoder) and self._framing.over:
            chunks += self.close()
        return chunks

    def close(self) -> list[StreamChunk]:
        """Return the end of an answer that gave its reason to stop."""
        unread = self.feed(b"\n") if isinstance(self._framing, _Events) and self._framing.in_bare_json() else []
        if self._over or self._finish is None:
            return unread
        self._over = True
        usage = [] if self._usage is None else [UsageChunk(usage=self._usage)]
        return [*unread, *self._end_block(), *usage, Finish(reason=self._finished(self._finish))]

    def read(self, body: dict[str, Json], where: str) -> list[StreamChunk]:
        """Return the chunks of one event, or of a whole message."""
        if body.get("error"):
            self._over = True
            return [finish_of(classify(None, body))]
        if body.get("usageMetadata"):
            at = f"{where}.usageMetadata"
            self._usage = read_usage(as_object(body["usageMetadata"], at), at)
        feedback = as_object(body.get("promptFeedback") or {}, f"{where}.promptFeedback")
        if feedback.get(BLOCKED):
            self._finish = FinishReason(kind="content-filter", extra={BLOCKED: feedback[BLOCKED]})
        candidates = objects(body.get("candidates"), f"{where}.candidates")
        return [c for value, path in candidates if not value.get("index") for c in self._candidate(value, path)]

    def _texts(self, data: bytes) -> Iterator[bytes | str]:
        """Yield the JSON texts of the events that ``data`` completes."""
        if self._framing is None:
            self._head += data
            data = self._head.removeprefix(BOM)
            first = data.lstrip()[:1]
            if not first or self._head in (BOM[:1], BOM[:2]):
                return
            self._framing = ArrayDecoder() if first in b"[{" else _Events()
        if isinstance(self._framing, ArrayDecoder):
            yield from self._framing.feed(data)
        else:
            yield from (event.data for event in self._framing.feed(data))

    def _candidate(self, value: dict[str, Json], path: str) -> Iterator[StreamChunk]:
        content = as_object(value.get("content") or {}, f"{path}.content")
        for part, at in objects(content.get("parts"), f"{path}.content.parts"):
            yield from self._part(camel(part), at)
        word = as_text(value.get("finishReason"), f"{path}.finishReason")
        if word:
            self._finish = FinishReason(kind=FINISH_BACK.get(word, word))

    def _part(self, part: dict[str, Json], path: str) -> Iterator[StreamChunk]:
        signature = as_text(part.get(SIGNATURE), f"{path}.{SIGNATURE}")
        if part.get("functionCall") is not None:
            yield from self._call({"functionCall": part["functionCall"]}, path, signature)
        elif "text" in part or part.keys() == {SIGNATURE}:
            kind = ReasoningBlock if part.get("thought") is True else TextBlock
            yield from self._say(kind, as_text(part.get("text"), f"{path}.text"), signature)

    def _say(self, kind: type[TextBlock | ReasoningBlock], text: str, signature: str) -> Iterator[StreamChunk]:
        """Yield more text or thinking. An empty piece says nothing, unless it is signed: then it ends the block."""
        if self._open is not None and not isinstance(self._open.head, kind):
            yield from self._end_block()
        if not text and not signature:
            return
        if self._open is None:
            self._open = self._begin(kind(text=""))
            yield self._open.start
        if text:
            yield self._open.add(text)
        if signature:
            self._open.head = signed(self._open.head, signature)
            yield from self._end_block()

    def _call(self, part: dict[str, Json], path: str, signature: str) -> Iterator[StreamChunk]:
        yield from self._end_block()
        block = read_call(part, path, self._ids)
        self._calls = True
        self._open = self._begin(signed(block, signature) if signature else block)
        yield self._open.start
        yield self._open.add(block.arguments)
        yield from self._end_block()

    def _begin(self, head: TextBlock | ReasoningBlock | ToolCallBlock) -> OpenBlock:
        self._blocks += 1
        return OpenBlock(self._blocks - 1, head)

    def _end_block(self) -> list[StreamChunk]:
        block, self._open = self._open, None
        return [] if block is None else [block.end]

    def _finished(self, reason: FinishReason) -> FinishReason:
        """Return the reason to stop; Google has no word of its own for stopping to have functions called."""
        return FinishReason(kind="tool-calls") if reason.kind == "stop" and self._calls else reason


class _Events(SseDecoder):
    """Server-sent events; bare JSON between them is an event as soon as the line is over that ends it."""

    def __init__(self) -> None:
        super().__init__()
        self._bare: ArrayDecoder | None = None

    def in_bare_json(self) -> bool:
        """Return whether JSON is being read whose last line may lack nothing but its end."""
        return self._bare is not None or self.close().startswith(b"{")

    def _line(self, line: bytes) -> SseEvent | None:
        if line.startswith(b"{") and not self._lines and self._bare is None:
            self._bare = ArrayDecoder()
        if self._bare is None:
            return super()._line(line)
        told = self._bare.feed(line + b"\n")
        if not told:
            return None
        self._bare = None
        return SseEvent(told[0].decode("utf-8", "replace"))


def decode_message(body: bytes) -> tuple[StreamChunk, ...]:
    """Read the body of an answer that was not streamed, or of an error.

    Raises:
        DialectError: it is neither.
    """
    value = parse(body, "body")
    # An error in answer to a request for an array is an array of one.
    value = as_object(value[0] if isinstance(value, list) and len(value) == 1 else value, "$")
    decoder = GeminiDecoder(finish="stop")
    return (*decoder.read(value, "$"), *decoder.close())


def signed(block: Block, signature: str) -> Block:
    """Return ``block`` with what Google wants back with it."""
    if isinstance(block, ReasoningBlock):
        return msgspec.structs.replace(block, signature=signature)
    return msgspec.structs.replace(block, extra={SIGNATURE: signature})


def read_usage(usage: dict[str, Json], path: str) -> Usage:
    """Read a ``usageMetadata``: the prompt includes what came from the cache, the candidates no thinking."""
    counts: dict[str, Json] = {name: as_count(usage.get(name), f"{path}.{name}") for name in COUNTS}
    prompt, tools, cached, said, thought = (counts[name] for name in COUNTS)
    details = {"cache_read_tokens": "cachedContentTokenCount", "reasoning_tokens": "thoughtsTokenCount"}
    told: dict[str, Json] = {ours: counts[name] for ours, name in details.items() if usage.get(name) is not None}
    return Usage(input_tokens=max(0, prompt + tools - cached), output_tokens=said + thought, **told)


BOM = b"\xef\xbb\xbf"

BLOCKED = "blockReason"
"""The member of a finish's ``extra`` that says why Google did not even let the model see the prompt."""

COUNTS = (
    "promptTokenCount",
    "toolUsePromptTokenCount",
    "cachedContentTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
)

# the wire's finish -> ours; any other word travels as it is
FINISH_BACK = {"STOP": "stop", "MAX_TOKENS": "max-tokens", "SAFETY": "content-filter"}
