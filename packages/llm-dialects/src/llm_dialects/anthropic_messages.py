"""Anthropic messages: answers to wire bytes and back, and the dialect's table row."""

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

import msgspec
from msgspec import UNSET

from llm_dialects.anthropic_messages_decoder import STOP_BACK, AnthropicMessagesDecoder, read_usage
from llm_dialects.anthropic_messages_requests import (
    REDACTED,
    parse_request,
    read_block,
    render_block,
    render_request,
)
from llm_dialects.chunks import (
    Block,
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
)
from llm_dialects.dialect import Answer, Dialect
from llm_dialects.errors import ProviderError, anthropic_error, classify, error_of, failure_in, finish_of
from llm_dialects.fold import Folded, Indexed, fold, indexed, unfold
from llm_dialects.reading import as_object, as_text, objects, parse
from llm_dialects.requests import OpaquePart
from llm_dialects.side import anthropic_side_reply, header_key
from llm_dialects.sse import encode_event
from llm_dialects.wire import encode_json

# ── Answers out ─────────────────────────────────────────────────────────────────────────────────────────────────────


def encode_stream(chunks: Sequence[StreamChunk], answer: Answer) -> Iterator[bytes]:
    """Yield the events of an answer: ``message_start``, each block from start to stop, ``message_delta`` and ``-stop``.

    Blocks are told one after another, whatever the order of their chunks. A finish of kind ``error`` becomes an error
    event, which leaves open what was being told, and nothing follows it.
    """
    folded = fold(chunks)
    usage = folded.usage or answer.usage
    yield _event({"type": "message_start", "message": _message(answer, [], None, _render_usage(usage, output=0))})
    blocks = indexed(chunks)
    for at, block in enumerate(blocks):
        over = block.end is not None or folded.complete or at + 1 < len(blocks)
        yield from _block_events(at, block, over=over)
    if folded.finish is not None:
        yield from _epilogue(folded.finish, usage)


def encode_message(chunks: Sequence[StreamChunk], answer: Answer) -> bytes:
    """Return the body of an answer that is not streamed; one that finishes with an error is an error body."""
    failure = failure_in(chunks)
    if failure is not None:
        return error_body(failure)
    folded = fold(chunks)
    reason = folded.finish.kind if folded.finish else "stop"
    content = [render_block(block) for block in folded.blocks]
    return encode_json(_message(answer, content, STOP.get(reason, reason), _render_usage(folded.usage or answer.usage)))


def error_body(failure: ProviderError) -> bytes:
    """Return the body of an HTTP error."""
    return encode_json(anthropic_error(failure))


def error_event(failure: ProviderError) -> bytes:
    """Return the event that ends a stream with an error."""
    return _event(anthropic_error(failure))


def _event(body: dict[str, Json]) -> bytes:
    return encode_event(encode_json(body).decode(), event=body["type"])


def _message(answer: Answer, content: list[Json], stop: str | None, usage: dict[str, Json]) -> dict[str, Json]:
    head = {"id": answer.id, "type": "message", "role": "assistant", "model": answer.model, "content": content}
    return head | {"stop_reason": stop, "stop_sequence": None, "usage": usage}


def _block_events(at: int, item: Indexed, *, over: bool) -> Iterator[bytes]:
    """Yield the events of one block: its start, its deltas and, if it is ``over``, its stop."""
    block = item.block
    yield _event({"type": "content_block_start", "index": at, "content_block": render_block(_hollow(block))})
    for delta in item.deltas:
        yield _delta_event(at, _delta(delta))
    if item.rest:
        yield _delta_event(at, _text_delta(block, item.rest))
    if isinstance(block, ReasoningBlock) and block.signature:
        yield _delta_event(at, {"type": "signature_delta", "signature": block.signature})
    if over:
        yield _event({"type": "content_block_stop", "index": at})


def _hollow(block: Block) -> Block:
    """Return what a block's start says of it: redacted thinking comes whole, the others empty."""
    match block:
        case TextBlock():
            return TextBlock(text="")
        case ReasoningBlock(extra=extra) if REDACTED in extra:
            return block
        case ReasoningBlock():
            return ReasoningBlock(text="")
        case ToolCallBlock():
            return msgspec.structs.replace(block, arguments="", extra={})
        case _:
            assert_never(block)


def _delta_event(at: int, delta: dict[str, Json]) -> bytes:
    return _event({"type": "content_block_delta", "index": at, "delta": delta})


def _delta(chunk: TextDelta | ReasoningDelta | ToolCallDelta) -> dict[str, Json]:
    match chunk:
        case TextDelta():
            return {"type": "text_delta", "text": chunk.text}
        case ReasoningDelta():
            return {"type": "thinking_delta", "thinking": chunk.text}
        case ToolCallDelta():
            return {"type": "input_json_delta", "partial_json": chunk.arguments_delta}
        case _:
            assert_never(chunk)


def _text_delta(block: Block, text: str) -> dict[str, Json]:
    match block:
        case TextBlock():
            return {"type": "text_delta", "text": text}
        case ReasoningBlock():
            return {"type": "thinking_delta", "thinking": text}
        case ToolCallBlock():
            return {"type": "input_json_delta", "partial_json": text}
        case _:
            assert_never(block)


def _epilogue(reason: FinishReason, usage: Usage | None) -> Iterator[bytes]:
    if reason.kind == "error":
        yield error_event(error_of(reason))
        return
    delta = {"stop_reason": STOP.get(reason.kind, reason.kind), "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": delta, "usage": _render_usage(usage)})
    yield _event({"type": "message_stop"})


def _render_usage(usage: Usage | None, output: int | None = None) -> dict[str, Json]:
    """Return the ``usage`` object; clients rely on its two counts, so that zeros stand for an unknown one."""
    if usage is None:
        return {"input_tokens": 0, "output_tokens": 0}
    cached = {"read": usage.cache_read_tokens, "creation": usage.cache_write_tokens}
    known = {f"cache_{name}_input_tokens": count for name, count in cached.items() if count is not UNSET}
    thinking = {} if usage.reasoning_tokens is UNSET else {"thinking_tokens": usage.reasoning_tokens}
    counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens if output is None else output}
    return counts | known | ({"output_tokens_details": thinking} if thinking and output is None else {})


# ── Whole answers in, and the row ───────────────────────────────────────────────────────────────────────────────────


def decode_message(body: bytes) -> tuple[StreamChunk, ...]:
    """Read the body of an answer that was not streamed, or of an error.

    Raises:
        DialectError: it is neither.
    """
    value = as_object(parse(body, "body"), "$")
    if value.get("type") == "error" or "error" in value:
        return (finish_of(classify(None, value)),)
    parts = [read_block(item, path) for item, path in objects(value.get("content"), "$.content")]
    reason = as_text(value.get("stop_reason"), "$.stop_reason")
    folded = Folded(
        blocks=tuple(part for part in parts if not isinstance(part, OpaquePart)),
        usage=read_usage(as_object(value.get("usage") or {}, "$.usage"), "$.usage"),
        finish=FinishReason(kind=STOP_BACK.get(reason, reason or "stop")),
    )
    return unfold(folded, end_together=False)


def api_key(headers: Mapping[str, str], query: str = "") -> str | None:  # noqa: ARG001 - a KeyReader
    """Return the key of ``x-api-key``, else the bearer key."""
    return header_key(headers, ("x-api-key",))


ANTHROPIC_MESSAGES = Dialect(
    name="anthropic-messages",
    endpoints=("/v1/messages", "/messages"),
    base_suffix="",
    id_prefix="msg_",
    parse_request=parse_request,
    render_request=render_request,
    encode_stream=encode_stream,
    encode_message=encode_message,
    decoder=AnthropicMessagesDecoder,
    decode_message=decode_message,
    error_body=error_body,
    error_event=error_event,
    side_reply=anthropic_side_reply,
    api_key=api_key,
    key_header=("x-api-key", "{key}"),
)

# our finish -> the wire's; any other word travels as it is
STOP = {ours: theirs for theirs, ours in STOP_BACK.items()}
