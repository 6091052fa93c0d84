"""OpenAI responses: answers to wire bytes and back, and the dialect's table row.

Token counts that are not known are told as zeros, since clients rely on every one of them; unless a provider left them
out itself (``Answer.exact``).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from msgspec import UNSET, UnsetType

from llm_dialects.chunks import (
    BlockEnd,
    BlockStart,
    Finish,
    FinishReason,
    Json,
    ReasoningDelta,
    StreamChunk,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from llm_dialects.dialect import Answer, Dialect
from llm_dialects.errors import ProviderError, error_of, failure_in, finish_of, openai_error
from llm_dialects.fold import Folded, fold, indexed, unfold
from llm_dialects.openai_responses_decoder import (
    INCOMPLETE_BACK,
    OpenAiResponsesDecoder,
    is_failed,
    read_error,
    read_finish,
    read_item,
    read_usage,
)
from llm_dialects.openai_responses_items import ITEMS, RESPONSE_PREFIX, Event, OutputItem
from llm_dialects.openai_responses_requests import parse_request, render_request
from llm_dialects.reading import as_object, objects, parse
from llm_dialects.side import bearer_key, responses_side_reply
from llm_dialects.sse import encode_event
from llm_dialects.wire import encode_json

# ── Answers out ─────────────────────────────────────────────────────────────────────────────────────────────────────


def encode_stream(chunks: Sequence[StreamChunk], answer: Answer) -> Iterator[bytes]:
    """Yield the events of an answer: the response begins, each item from start to end, the response as a whole.

    A finish of kind ``error`` becomes an ``error`` event and a failed response, as the provider does it.
    """
    for number, (kind, members) in enumerate(_events(chunks, answer)):
        yield _encode(kind, number, members)


def encode_message(chunks: Sequence[StreamChunk], answer: Answer) -> bytes:
    """Return the body of an answer that is not streamed; one that finishes with an error is an error body."""
    failure = failure_in(chunks)
    if failure is not None:
        return error_body(failure)
    finished = chunks if fold(chunks).finish is not None else [*chunks, Finish(reason=FinishReason(kind="stop"))]
    *_, (_, last) = _events(finished, answer)
    return encode_json(last["response"])


def error_body(failure: ProviderError) -> bytes:
    """Return the body of an HTTP error."""
    return encode_json(openai_error(failure))


def error_event(failure: ProviderError) -> bytes:
    """Return the event that ends a stream with an error, numbered as if nothing had been said.

    The error is an object of its own, as the provider sends it, although it documents its members beside ``type``.
    """
    return _encode("error", 0, openai_error(failure))


def _encode(kind: str, number: int, members: dict[str, Json]) -> bytes:
    body = {"type": kind, "sequence_number": number} | members
    return encode_event(encode_json(body).decode(), event=kind)


def _events(chunks: Sequence[StreamChunk], answer: Answer) -> Iterator[Event]:
    """Yield the events of an answer.

    An item ends before the next one begins, even where its block ends later, as the provider does it; only if there is
    more to say of it later do items mix.
    """
    items = {block.index: ITEMS[block.kind](at, block, answer) for at, block in enumerate(indexed(chunks))}
    last = {chunk.index: at for at, chunk in enumerate(chunks) if not isinstance(chunk, (BlockEnd, UsageChunk, Finish))}
    for kind in ("created", "in_progress"):
        yield f"response.{kind}", {"response": _response(answer, "in_progress")}
    _mark_incomplete(list(items.values()), fold(chunks).finish)
    for at, chunk in enumerate(chunks):
        match chunk:
            case UsageChunk():
                continue
            case BlockStart():
                told = [item for index, item in items.items() if item.begun and last.get(index, at) < at]
                yield from (event for item in told for event in item.end())
                yield from items[chunk.index].start()
            case TextDelta() | ReasoningDelta() | ToolCallDelta():
                yield from items[chunk.index].delta(chunk)
            case BlockEnd():
                yield from items[chunk.index].end()
            case Finish():
                yield from _epilogue(chunk.reason, list(items.values()), _usage_of(chunks, answer), answer)
                return
            case _:
                assert_never(chunk)


def _mark_incomplete(items: Sequence[OutputItem], finish: FinishReason | None) -> None:
    """Let the last item of an answer that was cut short end as such."""
    if items and finish is not None and finish.kind not in COMPLETE:
        items[-1].status = "incomplete"


def _epilogue(
    reason: FinishReason, items: Sequence[OutputItem], usage: Usage | None, answer: Answer
) -> Iterator[Event]:
    """Yield the ends of what is still being told, and of the response."""
    if reason.kind == "error":
        yield from _failed(error_of(reason), items, answer)
        return
    yield from (event for item in items for event in item.end())
    status = "completed" if reason.kind in COMPLETE else "incomplete"
    details = None if status == "completed" else {"reason": INCOMPLETE.get(reason.kind, reason.kind)}
    said = {"incomplete_details": details, "output": [item.value() for item in items]}
    counts = {"usage": None if usage is None else _render_usage(usage, exact=answer.exact)}
    yield f"response.{status}", {"response": _response(answer, status) | said | counts}


def _failed(failure: ProviderError, items: Sequence[OutputItem], answer: Answer) -> Iterator[Event]:
    error = openai_error(failure)
    yield "error", error
    words = {"code": error["error"]["code"] or error["error"]["type"], "message": failure.message}
    output = [item.value() for item in items if item.over]
    yield "response.failed", {"response": _response(answer, "failed") | {"error": words, "output": output}}


def _response(answer: Answer, status: str) -> dict[str, Json]:
    """Return a response that holds nothing yet. Clients rely on every member; most repeat what was asked."""
    return {
        "id": answer.id,
        "object": "response",
        "created_at": answer.created,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "model": answer.model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "user": None,
        "metadata": {},
    }


def _usage_of(chunks: Sequence[StreamChunk], answer: Answer) -> Usage | None:
    return fold(chunks).usage or answer.usage


def _render_usage(usage: Usage, *, exact: bool) -> dict[str, Json]:
    """Return the ``usage`` object. Clients rely on all counts: zeros stand for unknown ones, unless it is ``exact``."""
    cached, written = usage.cache_read_tokens, usage.cache_write_tokens
    # Here cached tokens are part of the prompt.
    whole = usage.input_tokens + (cached or 0) + (written or 0)
    return {
        "input_tokens": whole,
        **_details("input_tokens_details", {"cached_tokens": cached, "cache_write_tokens": written}, exact=exact),
        "output_tokens": usage.output_tokens,
        **_details("output_tokens_details", {"reasoning_tokens": usage.reasoning_tokens}, exact=exact),
        "total_tokens": whole + usage.output_tokens,
    }


def _details(name: str, counts: Mapping[str, int | UnsetType], *, exact: bool) -> dict[str, Json]:
    told = {key: count or 0 for key, count in counts.items() if not (exact and count is UNSET)}
    return {name: told} if told else {}


# ── Whole answers in, and the row ───────────────────────────────────────────────────────────────────────────────────


def decode_message(body: bytes) -> tuple[StreamChunk, ...]:
    """Read the body of an answer that was not streamed, or of an error.

    Raises:
        DialectError: it is neither.
    """
    value = as_object(parse(body, "body"), "$")
    if is_failed(value):
        return (finish_of(read_error(value.get("error"))),)
    items = objects(value.get("output"), "$.output")
    blocks = tuple(block for item, path in items for block in read_item(item, path).values())
    called = any(isinstance(block, ToolCallBlock) for block in blocks)
    folded = Folded(
        blocks=blocks,
        usage=read_usage(value.get("usage"), "$.usage"),
        finish=read_finish(value, "$", called=called),
    )
    return unfold(folded, end_together=False)


OPENAI_RESPONSES = Dialect(
    name="openai-responses",
    endpoints=("/responses",),
    base_suffix="/v1",
    id_prefix=RESPONSE_PREFIX,
    parse_request=parse_request,
    render_request=render_request,
    encode_stream=encode_stream,
    encode_message=encode_message,
    decoder=OpenAiResponsesDecoder,
    decode_message=decode_message,
    error_body=error_body,
    error_event=error_event,
    side_reply=responses_side_reply,
    api_key=bearer_key,
)

# our finish -> the wire's reason for an incomplete response; any other word travels as it is
INCOMPLETE = {ours: theirs for theirs, ours in INCOMPLETE_BACK.items()}

COMPLETE = ("stop", "tool-calls", "error")
"""Finishes of an answer that is not cut short; whether there are calls in it tells the first two apart."""
