"""OpenAI responses: streamed answers from wire bytes to chunks."""

from collections.abc import Iterator

from msgspec import UNSET

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
from llm_dialects.errors import ProviderError, classify, finish_of
from llm_dialects.fold import OpenBlock, text_of
from llm_dialects.openai_responses_requests import CUSTOM_CALL, ITEM_TYPE, PARAGRAPH
from llm_dialects.reading import as_count, as_object, as_text, objects, parse
from llm_dialects.sse import SseDecoder, SseEvent


class OpenAiResponsesDecoder:
    """Reads a streamed answer.

    A text of a message, a reasoning item and a call are one block each. Usage and finish come with the event that ends
    the response. Items that are none of these (hosted tools and their results) are left out.
    """

    def __init__(self) -> None:
        self._sse = SseDecoder()
        self._number = 0  # of the event
        self._blocks: dict[tuple[Json, int], _OpenPart] = {}  # by the item's index and the content's
        self._members: dict[Json, dict[str, Json]] = {}  # of messages, by their index
        self._over = False

    def feed(self, data: bytes) -> list[StreamChunk]:
        """Return the chunks that ``data`` completes; what follows the response's end or an error is not read."""
        chunks: list[StreamChunk] = []
        for event in self._sse.feed(data):
            self._number += 1
            self._over = self._over or event.data.startswith("[DONE]")
            if not self._over:
                chunks += self._read(event)
        return chunks

    def close(self) -> list[StreamChunk]:
        """Return nothing: an answer without its last event was cut off."""
        return []

    def _read(self, event: SseEvent) -> list[StreamChunk]:
        where = f"event {self._number}"
        body = as_object(parse(event.data, where), where)
        match body.get("type", event.event):
            case "error":
                self._over = True
                return [finish_of(read_error(body.get("error") or body))]
            case "response.completed" | "response.incomplete" | "response.failed":
                return self._end(as_object(body.get("response"), f"{where}.response"), f"{where}.response")
            case "response.output_item.added" | "response.output_item.done" as kind:
                return list(self._item(body, where, done=kind.endswith("done")))
            case str() as kind if kind.startswith("response.content_part.") or kind in PARTS:
                return list(self._part(body, where, done=kind.endswith("done")))
            case str() as kind if kind in DELTAS:
                return list(self._delta(DELTAS[kind], body, where))
        return []

    def _item(self, body: dict[str, Json], where: str, *, done: bool) -> Iterator[StreamChunk]:
        """Take in what is said of an item at its start or at its end, which may hold more than the deltas did."""
        at = body.get("output_index")
        item = as_object(body.get("item"), f"{where}.item")
        self._members[at] = kept_members(item)
        for part, block in read_item(item, f"{where}.item").items():
            yield from self._begin(at, part, block)
            if done:
                yield from self._blocks[at, part].finish(block)

    def _part(self, body: dict[str, Json], where: str, *, done: bool) -> Iterator[StreamChunk]:
        """Take in the start or the end of a text of a message, or the start of a part of thinking."""
        part = as_object(body.get("part"), f"{where}.part")
        at, number = body.get("output_index"), _part_number(body, where)
        text = read_text(part, f"{where}.part")
        if text is None:
            yield from self._paragraph(at, (str(part.get("type")), number))
            return
        block = TextBlock(text=text, extra=self._members.get(at, {}))
        yield from self._begin(at, number, block)
        if done:
            yield from self._blocks[at, number].finish(block)

    def _delta(self, kind: type[Block], body: dict[str, Json], where: str) -> Iterator[StreamChunk]:
        at, number = body.get("output_index"), _part_number(body, where)
        part = number if kind is TextBlock else 0
        if kind is TextBlock:
            yield from self._begin(at, part, TextBlock(text="", extra=self._members.get(at, {})))
        elif kind is ReasoningBlock:
            yield from self._paragraph(at, ("summary_text" if "summary_index" in body else "reasoning_text", number))
        block = self._blocks.get((at, part))
        if block is not None and isinstance(block.head, kind):
            yield block.add(as_text(body.get("delta"), f"{where}.delta"))

    def _begin(self, at: Json, part: int, block: Block) -> Iterator[StreamChunk]:
        if (at, part) not in self._blocks:
            self._blocks[at, part] = begun = _OpenPart(len(self._blocks), block)
            yield begun.start

    def _paragraph(self, at: Json, paragraph: tuple[str, int]) -> Iterator[StreamChunk]:
        """Tell where the parts of thinking meet; the block has them as paragraphs."""
        if paragraph[0] not in THOUGHTS:
            return
        yield from self._begin(at, 0, ReasoningBlock(text=""))
        block = self._blocks[at, 0]
        if block.paragraph not in (None, paragraph) and isinstance(block.head, ReasoningBlock):
            yield block.add(PARAGRAPH)
        block.paragraph = paragraph

    def _end(self, response: dict[str, Json], path: str) -> list[StreamChunk]:
        self._over = True
        if is_failed(response):
            return [finish_of(read_error(response.get("error")))]
        blocks = self._blocks.values()
        usage = read_usage(response.get("usage"), f"{path}.usage")
        called = any(isinstance(block.head, ToolCallBlock) for block in blocks)
        return [
            *(block.end for block in blocks if not block.over),
            *([] if usage is None else [UsageChunk(usage=usage)]),
            Finish(reason=read_finish(response, path, called=called)),
        ]


class _OpenPart(OpenBlock):
    """A block that is being told; ``paragraph`` is the part of thinking that was told last."""

    paragraph: tuple[str, int] | None = None
    over = False

    def finish(self, block: Block) -> Iterator[StreamChunk]:
        """Take in the whole block; yield what its deltas left out, and its end."""
        if self.over:
            return
        said, whole = "".join(self.pieces), text_of(block)
        self.over, self.head = True, block
        if whole != said and whole.startswith(said):
            yield self.add(whole[len(said) :])
        yield self.end


def _part_number(body: dict[str, Json], where: str) -> int:
    """Return which part of its item an event tells of."""
    name = "summary_index" if "summary_index" in body else "content_index"
    return as_count(body.get(name), f"{where}.{name}")


# ── What events and whole answers hold ──────────────────────────────────────────────────────────────────────────────


def read_item(item: dict[str, Json], path: str) -> dict[int, Block]:
    """Read an item of the output: its blocks by the index of their content."""
    match item.get("type"):
        case "message":
            texts = {at: read_text(part, here) for at, (part, here) in enumerate(_parts(item, "content", path))}
            extra = kept_members(item)
            return {at: TextBlock(text=text, extra=extra) for at, text in texts.items() if text is not None}
        case "reasoning":
            return {0: _read_reasoning(item, path)}
        case "function_call":
            return {0: _read_call(item, "arguments", {}, path)}
        case "custom_tool_call":
            return {0: _read_call(item, "input", {ITEM_TYPE: CUSTOM_CALL}, path)}
    return {}


def kept_members(item: dict[str, Json]) -> dict[str, Json]:
    """Return the members of an item that its block keeps."""
    return {key: item[key] for key in ITEM_MEMBERS if item.get(key) is not None}


def read_text(part: dict[str, Json], path: str) -> str | None:
    """Return the text of a part of a message, ``None`` if it is something else."""
    name = {"output_text": "text", "refusal": "refusal"}.get(str(part.get("type")))
    return None if name is None else as_text(part.get(name), f"{path}.{name}")


def _read_reasoning(item: dict[str, Json], path: str) -> ReasoningBlock:
    parts = [*_parts(item, "summary", path), *_parts(item, "content", path)]
    signature = item.get("encrypted_content")
    return ReasoningBlock(
        text=PARAGRAPH.join(as_text(part.get("text"), f"{here}.text") for part, here in parts),
        signature=UNSET if signature is None else as_text(signature, f"{path}.encrypted_content"),
    )


def _read_call(item: dict[str, Json], text: str, extra: dict[str, Json], path: str) -> ToolCallBlock:
    return ToolCallBlock(
        id=as_text(item.get("call_id"), f"{path}.call_id"),
        name=as_text(item.get("name"), f"{path}.name"),
        arguments=as_text(item.get(text), f"{path}.{text}"),
        extra=extra | kept_members(item),
    )


def _parts(item: dict[str, Json], name: str, path: str) -> Iterator[tuple[dict[str, Json], str]]:
    return objects(item.get(name), f"{path}.{name}")


def is_failed(response: dict[str, Json]) -> bool:
    """Say whether a response tells of an error and of nothing else."""
    return response.get("status") == "failed" or bool(response.get("error"))


def read_finish(response: dict[str, Json], path: str, *, called: bool) -> FinishReason:
    """Read why a response ended; ``called``: it holds calls, which is all that tells them from a plain end."""
    details = as_object(response.get("incomplete_details") or {}, f"{path}.incomplete_details")
    reason = as_text(details.get("reason"), f"{path}.incomplete_details.reason")
    status = as_text(response.get("status"), f"{path}.status")
    if status in ("", "completed") and not reason:
        return FinishReason(kind="tool-calls" if called else "stop")
    return FinishReason(kind=INCOMPLETE_BACK.get(reason, reason or status))


def read_usage(value: Json, path: str) -> Usage | None:
    """Read a ``usage`` object."""
    if value is None:
        return None
    usage = as_object(value, path)
    details = {
        "cache_read_tokens": ("input_tokens_details", "cached_tokens"),
        "cache_write_tokens": ("input_tokens_details", "cache_write_tokens"),
        "reasoning_tokens": ("output_tokens_details", "reasoning_tokens"),
    }
    counts: dict[str, Json] = {}
    for ours, (group, name) in details.items():
        known = as_object(usage.get(group) or {}, f"{path}.{group}").get(name)
        if known is not None:
            counts[ours] = as_count(known, f"{path}.{group}.{name}")
    # Here cached tokens are part of the prompt. (Some gateways leave them out: hence never below zero.)
    cached = counts.get("cache_read_tokens", 0) + counts.get("cache_write_tokens", 0)
    return Usage(
        input_tokens=max(0, as_count(usage.get("input_tokens"), f"{path}.input_tokens") - cached),
        output_tokens=as_count(usage.get("output_tokens"), f"{path}.output_tokens"),
        **counts,
    )


def read_error(error: Json) -> ProviderError:
    """Read an error of a stream: the documented one has its ``code`` alone, real ones a ``type`` beside it."""
    known = error if isinstance(error, dict) else {"message": error or "The provider reported an error."}
    kind = known.get("type")
    word = known.get("code") if kind in (None, "error") else kind
    return classify(None, {"error": known | {"type": word}})


# kinds of delta -> the block they add to
DELTAS: dict[str, type[Block]] = {
    "response.output_text.delta": TextBlock,
    "response.refusal.delta": TextBlock,
    "response.reasoning_summary_text.delta": ReasoningBlock,
    "response.reasoning_text.delta": ReasoningBlock,
    "response.function_call_arguments.delta": ToolCallBlock,
    "response.custom_tool_call_input.delta": ToolCallBlock,
}

PARTS = ("response.reasoning_summary_part.added",)
THOUGHTS = ("summary_text", "reasoning_text")

# the wire's reason for an incomplete response -> ours; any other word travels as it is
INCOMPLETE_BACK = {"max_output_tokens": "max-tokens", "content_filter": "content-filter"}

ITEM_MEMBERS = ("phase", "namespace", "caller", "async")
"""Members of an item that a client has to send back, kept in a block's ``extra``."""
