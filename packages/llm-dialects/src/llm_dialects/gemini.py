"""Gemini's generateContent and streamGenerateContent: answers to wire bytes, and the dialect's table row."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import parse_qs

import msgspec
from msgspec import UNSET

from llm_dialects.chunks import Block, FinishReason, Json, ReasoningBlock, StreamChunk, ToolCallBlock, Usage
from llm_dialects.dialect import EVENT_STREAM, Answer, Dialect
from llm_dialects.errors import ProviderError, error_of, failure_in, gemini_error
from llm_dialects.fold import Folded, delta_text, fold, indexed, is_empty, text_of
from llm_dialects.gemini_calls import CallIds
from llm_dialects.gemini_decoder import BLOCKED, FINISH_BACK, GeminiDecoder, decode_message
from llm_dialects.gemini_requests import (
    SIGNATURE,
    call_path,
    parse_request,
    path_params,
    render_call,
    render_request,
    signature_of,
)
from llm_dialects.json_stream import END, encode_item
from llm_dialects.requests import Request
from llm_dialects.side import gemini_side_reply, header_key
from llm_dialects.sse import encode_event
from llm_dialects.wire import encode_json, read_object


def stream_type(request: Request) -> str:
    """Return the content type of a streamed answer: events where ``alt=sse`` asks for them, else a JSON array."""
    return EVENT_STREAM if request.params.get("alt") == "sse" else "application/json"


def api_key(headers: Mapping[str, str], query: str = "") -> str | None:
    """Return the key of ``x-goog-api-key`` or the bearer key, else the one in the query."""
    return header_key(headers, ("x-goog-api-key",)) or next(iter(parse_qs(query).get("key", [])), None)


# ── Answers out ─────────────────────────────────────────────────────────────────────────────────────────────────────


def encode_stream(chunks: Sequence[StreamChunk], answer: Answer) -> Iterator[bytes]:
    """Yield the events of an answer, one a piece of text or a function call; the last one tells the finish.

    Each tells the usage so far: https://github.com/vercel/ai/issues/5217. Blocks are told one after another, whatever
    the order of their chunks. A finish of kind ``error`` becomes an error, and nothing follows it.
    """
    bodies = list(_bodies(chunks, answer))
    if answer.stream_type == EVENT_STREAM:
        yield from (_bare(body) if "error" in body else encode_event(encode_json(body).decode()) for body in bodies)
        return
    finished = fold(chunks).finish is not None
    for at, body in enumerate(bodies):
        end = END if finished and at + 1 == len(bodies) else b""
        yield encode_item(encode_json(body), first=not at) + end


def encode_message(chunks: Sequence[StreamChunk], answer: Answer) -> bytes:
    """Return the body of an answer that is not streamed; one that finishes with an error is an error body."""
    failure = failure_in(chunks)
    if failure is not None:
        return error_body(failure)
    folded = fold(chunks)
    parts = _parts((block, [text_of(block)]) for block in folded.blocks)
    return encode_json(_last_body(list(parts), folded.finish or FinishReason(kind="stop"), folded, answer))


def error_body(failure: ProviderError) -> bytes:
    """Return the body of an HTTP error."""
    return encode_json(gemini_error(failure))


def error_event(failure: ProviderError) -> bytes:
    """Return what ends a stream of server-sent events with an error: no event, but the bare body, line by line.

    So https://github.com/vercel/ai/issues/5217 shows it, and Google's own client reads it.
    """
    return _bare(gemini_error(failure))


def _bare(body: dict[str, Json]) -> bytes:
    return msgspec.json.format(encode_json(body), indent=2) + b"\n"


# ── Bodies ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _bodies(chunks: Sequence[StreamChunk], answer: Answer) -> Iterator[dict[str, Json]]:
    """Yield the bodies of the events; a finish is told with the last part, where there is one."""
    folded = fold(chunks)
    so_far = _usage_so_far(folded.usage or answer.usage)
    parts = list(_parts(_told(chunks)))
    if folded.finish is None or folded.finish.kind == "error":
        yield from (_body([part], so_far, answer) for part in parts)
        yield from [] if folded.finish is None else [gemini_error(error_of(folded.finish))]
        return
    yield from (_body([part], so_far, answer) for part in parts[:-1])
    yield _last_body(parts[-1:], folded.finish, folded, answer)


def _last_body(parts: list[Json], finish: FinishReason, folded: Folded, answer: Answer) -> dict[str, Json]:
    """Return the body that tells ``parts``, the finish and the usage."""
    usage = folded.usage or answer.usage
    counted = {} if usage is None else {"usageMetadata": _render_usage(usage)}
    if BLOCKED in finish.extra:
        said = _candidates(parts) if parts else {}
        return said | {"promptFeedback": {BLOCKED: finish.extra[BLOCKED]}} | counted | _envelope(answer)
    return _candidates(parts, _render_finish(finish, folded.blocks)) | counted | _envelope(answer)


def _body(parts: list[Json], usage: dict[str, Json], answer: Answer) -> dict[str, Json]:
    return _candidates(parts) | usage | _envelope(answer)


def _candidates(parts: list[Json], finish: Mapping[str, Json] = {}) -> dict[str, Json]:
    content = ({"parts": parts} if parts else {}) | {"role": "model"}
    return {"candidates": [{"content": content, **finish, "index": 0}]}


def _envelope(answer: Answer) -> dict[str, Json]:
    return {"modelVersion": answer.model, "responseId": answer.id}


def _told(chunks: Sequence[StreamChunk]) -> Iterator[tuple[Block, Sequence[str]]]:
    """Yield the blocks that can be told, each with the pieces of its text. A call is told once all of it is there."""
    over = fold(chunks).complete
    items = indexed(chunks)
    for at, item in enumerate(items):
        begun = isinstance(item.block, ToolCallBlock) and not (over or item.end or at + 1 < len(items))
        if not begun and not is_empty(item.block):
            yield item.block, [piece for piece in (*map(delta_text, item.deltas), item.rest) if piece]


def _parts(told: Iterable[tuple[Block, Sequence[str]]]) -> Iterator[dict[str, Json]]:
    """Yield the parts of blocks. Arguments that are no object cannot be told: the finish does (``_render_finish``)."""
    ids = CallIds()
    for block, pieces in told:
        signature = signature_of(block)
        signed = {SIGNATURE: signature} if signature else {}
        if isinstance(block, ToolCallBlock):
            if not _is_malformed(block):
                bare = msgspec.structs.replace(block, extra=signed)
                yield render_call(bare, ids, read_object(block.arguments))
        else:
            thought = {"thought": True} if isinstance(block, ReasoningBlock) else {}
            *others, last = pieces or [""]
            yield from ({"text": piece} | thought for piece in others)
            yield {"text": last} | thought | signed


def _render_finish(finish: FinishReason, blocks: Sequence[Block]) -> dict[str, Json]:
    """Return why the answer stopped. A call that Google could not read ends it, as the model's fault."""
    malformed = next((b for b in blocks if isinstance(b, ToolCallBlock) and _is_malformed(b)), None)
    if malformed is not None and FINISH.get(finish.kind) == "STOP":
        said = f"Malformed function call: {malformed.name}({malformed.arguments})"
        return {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": said}
    return {"finishReason": FINISH.get(finish.kind, finish.kind)}


def _is_malformed(block: ToolCallBlock) -> bool:
    return bool(block.arguments) and read_object(block.arguments) is None


def _usage_so_far(usage: Usage | None) -> dict[str, Json]:
    """Return what every event but the last tells of the usage: what is known from the start, the prompt."""
    if usage is None:
        return {}
    prompt = _prompt_tokens(usage)
    return {"usageMetadata": {"promptTokenCount": prompt, "totalTokenCount": prompt}}


def _prompt_tokens(usage: Usage) -> int:
    """Return the tokens of the prompt; here those that came from the cache are among them."""
    return usage.input_tokens + (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)


def _render_usage(usage: Usage) -> dict[str, Json]:
    """Return the ``usageMetadata``; the candidates include no thinking."""
    prompt = _prompt_tokens(usage)
    thoughts = usage.reasoning_tokens or 0
    details = {"cachedContentTokenCount": usage.cache_read_tokens, "thoughtsTokenCount": usage.reasoning_tokens}
    return {
        "promptTokenCount": prompt,
        "candidatesTokenCount": max(0, usage.output_tokens - thoughts),
        "totalTokenCount": prompt + max(usage.output_tokens, thoughts),
    } | {name: count for name, count in details.items() if count is not UNSET}


GEMINI = Dialect(
    name="gemini",
    endpoints=(":generateContent", ":streamGenerateContent"),
    base_suffix="",
    id_prefix="",
    parse_request=parse_request,
    render_request=render_request,
    encode_stream=encode_stream,
    encode_message=encode_message,
    decoder=GeminiDecoder,
    decode_message=decode_message,
    error_body=error_body,
    error_event=error_event,
    side_reply=gemini_side_reply,
    api_key=api_key,
    key_header=("x-goog-api-key", "{key}"),
    path_params=path_params,
    call_path=call_path,
    stream_type=stream_type,
)

# our finish -> the wire's; any other word travels as it is
FINISH = {ours: theirs for theirs, ours in FINISH_BACK.items()} | {"tool-calls": "STOP"}
