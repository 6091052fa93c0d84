"""OpenAI chat completions: answers to wire bytes and back, side requests, and the dialect's table row.

Thinking travels as ``reasoning_content`` (DeepSeek's extension, the most widely read); ``reasoning`` is read too.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from msgspec import UNSET

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
)
from llm_dialects.dialect import Answer, Dialect
from llm_dialects.errors import ProviderError, classify, error_of, failure_in, finish_of, openai_error
from llm_dialects.fold import Folded, Indexed, fold, indexed, unfold
from llm_dialects.memo import remembered
from llm_dialects.openai_chat_decoder import FINISH_BACK, OpenAiChatDecoder, read_usage
from llm_dialects.openai_chat_requests import parse_request, render_request
from llm_dialects.reading import as_object, as_text, objects, parse
from llm_dialects.requests import Request
from llm_dialects.side import bearer_key, openai_side_reply
from llm_dialects.sse import encode_event
from llm_dialects.wire import encode_json


def wants_usage(request: Request) -> bool:
    """Return whether ``stream_options.include_usage`` is on."""
    options = request.params.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


# ── Answers out ─────────────────────────────────────────────────────────────────────────────────────────────────────


def encode_stream(chunks: Sequence[StreamChunk], answer: Answer) -> Iterator[bytes]:
    """Yield the events of an answer: the role, one event a delta, the finish, the usage if asked for, ``[DONE]``.

    A finish of kind ``error`` becomes an error event, and nothing follows it.
    """
    before, after = _around(answer)
    for delta in _deltas(chunks):
        yield before + delta + after
    finish = next((chunk for chunk in chunks if isinstance(chunk, Finish)), None)
    if finish is not None:
        yield from _epilogue(finish.reason, fold(chunks).usage or answer.usage, answer)


def encode_message(chunks: Sequence[StreamChunk], answer: Answer) -> bytes:
    """Return the body of an answer that is not streamed; one that finishes with an error is an error body."""
    failure = failure_in(chunks)
    if failure is not None:
        return error_body(failure)
    usage = fold(chunks).usage or answer.usage
    counted = b',"usage":' + _usage_json(usage) if usage else b""
    return b'%b,"choices":[%b]%b}' % (_opening("chat.completion", answer), _whole_choice(chunks), counted)


def error_body(failure: ProviderError) -> bytes:
    """Return the body of an HTTP error."""
    return encode_json(openai_error(failure))


def error_event(failure: ProviderError) -> bytes:
    """Return the event that ends a stream with an error."""
    return encode_event(error_body(failure).decode())


# The text of most events differs in one member only: what is around it is encoded once an answer, the deltas once a
# script, and joining them is all that is left to do for a chunk.


def _opening(kind: str, answer: Answer) -> bytes:
    """Return the members that every object of an answer begins with, without the brace that ends it."""
    members = {"id": answer.id, "object": kind, "created": answer.created, "model": answer.model}
    return encode_json(members)[:-1]


def _event(answer: Answer, choices: bytes, usage: bytes = b"null") -> bytes:
    opening = _opening("chat.completion.chunk", answer)
    # The usage is null in every event but its own.
    closing = b',"usage":%b}' % usage if answer.include_usage or usage != b"null" else b"}"
    return b'data: %b,"choices":[%b]%b\n\n' % (opening, choices, closing)


def _around(answer: Answer) -> tuple[bytes, bytes]:
    """Return what stands before and after the delta of an event."""
    before, after = _event(answer, CHOICE % (MARK, b"null")).rsplit(MARK, 1)
    return before, after


@remembered
def _deltas(chunks: tuple[StreamChunk, ...]) -> tuple[bytes, ...]:
    """Return the ``delta`` of every event up to the finish."""
    return tuple(encode_json(delta) for delta in _each_delta(chunks))


def _each_delta(chunks: tuple[StreamChunk, ...]) -> Iterator[dict[str, Json]]:
    yield {"role": "assistant", "content": ""}
    numbers = _call_numbers(chunks)
    named: set[int] = set()
    blocks = {block.index: block for block in indexed(chunks)}
    for chunk in chunks:
        match chunk:
            case TextDelta() | ReasoningDelta() | ToolCallDelta():
                yield _delta(chunk, numbers, named)
            case BlockEnd():
                yield from (_delta(unsaid, numbers, named) for unsaid in _unsaid(blocks[chunk.index]))
            case BlockStart() | UsageChunk():
                continue
            case Finish():
                return
            case _:
                assert_never(chunk)


def _delta(
    chunk: TextDelta | ReasoningDelta | ToolCallDelta, numbers: Mapping[int, int], named: set[int]
) -> dict[str, Json]:
    """Return the ``delta`` of a chunk. The first of a tool call names it; ``named`` remembers which are."""
    match chunk:
        case TextDelta():
            return {"content": chunk.text}
        case ReasoningDelta():
            return {"reasoning_content": chunk.text}
        case ToolCallDelta():
            call: dict[str, Json] = {"index": numbers[chunk.index]}
            function: dict[str, Json] = {"arguments": chunk.arguments_delta}
            if chunk.index not in named:
                named.add(chunk.index)
                call |= {"id": chunk.id, "type": "function"}
                function = {"name": chunk.name or ""} | function
            return {"tool_calls": [call | {"function": function}]}


def _call_numbers(chunks: tuple[StreamChunk, ...]) -> dict[int, int]:
    """Return block index -> position among the tool calls."""
    calls = [block.index for block in indexed(chunks) if block.kind == "tool-call"]
    return {index: number for number, index in enumerate(calls)}


def _unsaid(block: Indexed) -> Iterator[TextDelta | ReasoningDelta | ToolCallDelta]:
    """Yield what only the end of a block says; a call without any delta must still be named."""
    if not block.rest and (block.deltas or block.kind != "tool-call"):
        return
    match block.block:
        case TextBlock():
            yield TextDelta(index=block.index, text=block.rest)
        case ReasoningBlock():
            yield ReasoningDelta(index=block.index, text=block.rest)
        case ToolCallBlock(id=call_id, name=name):
            yield ToolCallDelta(index=block.index, id=call_id, name=name, arguments_delta=block.rest)
        case unknown:
            assert_never(unknown)


def _epilogue(reason: FinishReason, usage: Usage | None, answer: Answer) -> Iterator[bytes]:
    if reason.kind == "error":
        yield error_event(error_of(reason))
        return
    kind = encode_json(FINISH.get(reason.kind, reason.kind))
    yield _event(answer, CHOICE % (b"{}", kind))
    if (answer.include_usage or answer.exact) and usage is not None:
        yield _event(answer, b"", _usage_json(usage))
    yield DONE


@remembered
def _whole_choice(chunks: tuple[StreamChunk, ...]) -> bytes:
    """Return the one choice of an answer that is not streamed."""
    folded = fold(chunks)
    reason = folded.finish.kind if folded.finish else "stop"
    message, finish = _whole(folded), FINISH.get(reason, reason)
    return encode_json({"index": 0, "message": message, "logprobs": None, "finish_reason": finish})


def _whole(folded: Folded) -> dict[str, Json]:
    """Return the ``message`` of an answer."""
    text = "".join(block.text for block in folded.blocks if isinstance(block, TextBlock))
    thoughts = "".join(block.text for block in folded.blocks if isinstance(block, ReasoningBlock))
    calls = [
        {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": block.arguments}}
        for block in folded.blocks
        if isinstance(block, ToolCallBlock)
    ]
    return (
        {"role": "assistant", "content": text or None, "refusal": None}
        | ({"reasoning_content": thoughts} if thoughts else {})
        | ({"tool_calls": calls} if calls else {})
    )


def _usage_json(usage: Usage) -> bytes:
    # Here cached tokens are part of the prompt.
    whole = usage.input_tokens + (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    counts = b'{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d' % (
        whole,
        usage.output_tokens,
        whole + usage.output_tokens,
    )
    details = _usage_details(usage)
    return b"%b,%b" % (counts, encode_json(details)[1:]) if details else counts + b"}"


def _usage_details(usage: Usage) -> dict[str, Json]:
    details: dict[str, Json] = {}
    prompt = _set({"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens})
    if prompt:
        details["prompt_tokens_details"] = prompt
    if usage.reasoning_tokens is not UNSET:
        details["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return details


def _set(members: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in members.items() if value is not UNSET}


# ── Whole answers in, and the row ───────────────────────────────────────────────────────────────────────────────────


def decode_message(body: bytes) -> tuple[StreamChunk, ...]:
    """Read the body of an answer that was not streamed, or of an error.

    Raises:
        DialectError: it is neither.
    """
    value = as_object(parse(body, "body"), "$")
    if value.get("error"):
        return (finish_of(classify(None, value)),)
    choice, path = next(objects(value.get("choices"), "$.choices"), ({}, "$.choices[0]"))
    reason = as_text(choice.get("finish_reason"), f"{path}.finish_reason")
    folded = Folded(
        blocks=tuple(_read_whole(as_object(choice.get("message") or {}, f"{path}.message"), f"{path}.message")),
        usage=None if value.get("usage") is None else read_usage(as_object(value["usage"], "$.usage"), "$.usage"),
        finish=FinishReason(kind=FINISH_BACK.get(reason, reason or "stop")),
    )
    return unfold(folded, end_together=True)


def _read_whole(message: dict[str, Json], path: str) -> Iterator[Block]:
    thought = message.get("reasoning_content") or message.get("reasoning")
    if thought:
        yield ReasoningBlock(text=as_text(thought, f"{path}.reasoning_content"))
    text = as_text(message.get("content"), f"{path}.content") + as_text(message.get("refusal"), f"{path}.refusal")
    if text:
        yield TextBlock(text=text)
    for call, at in objects(message.get("tool_calls"), f"{path}.tool_calls"):
        function = as_object(call.get("function"), f"{at}.function")
        yield ToolCallBlock(
            id=as_text(call.get("id"), f"{at}.id"),
            name=as_text(function.get("name"), f"{at}.function.name"),
            arguments=as_text(function.get("arguments"), f"{at}.function.arguments"),
        )


OPENAI_CHAT = Dialect(
    name="openai-chat",
    endpoints=("/chat/completions",),
    base_suffix="/v1",
    id_prefix="chatcmpl-",
    parse_request=parse_request,
    render_request=render_request,
    wants_usage=wants_usage,
    encode_stream=encode_stream,
    encode_message=encode_message,
    decoder=OpenAiChatDecoder,
    decode_message=decode_message,
    error_body=error_body,
    error_event=error_event,
    side_reply=openai_side_reply,
    api_key=bearer_key,
)

CHOICE = b'{"index":0,"delta":%b,"logprobs":null,"finish_reason":%b}'
MARK = b"\0"  # no JSON text holds it
DONE = encode_event("[DONE]")

# our finish -> the wire's; any other word travels as it is
FINISH = {ours: theirs for theirs, ours in FINISH_BACK.items()}
