"""One conversation told in two dialects: what both can say of a request, and what arrives of an answer.

A request is compared as both dialects can say it (``common_request``): it is written and read again in each. Parameters
go by neutral names (``SPELLINGS``); those that one dialect alone has, or words by values of its own, stay out
(``UNSHARED``). What no table names is compared as it stands, so that a parameter nobody thought of shows.
"""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import UNSET

from llm_dialects.chunks import Json, ReasoningBlock, StreamChunk
from llm_dialects.dialect import Answer
from llm_dialects.dialects import DIALECTS
from llm_dialects.errors import ProviderError, classify, status_of
from llm_dialects.fold import Folded, fold
from llm_dialects.limits import Loss, leveled
from llm_dialects.requests import Request


def common_request(request: Request, dialects: Sequence[str]) -> Request:
    """Return ``request``, read in the last of ``dialects``, as all of them can say it.

    Of one agent's conversation this is the same whichever of them it was told in, if they are given in one order.

    Raises:
        ValueError: one of them cannot say it at all.
    """
    params = common_params(request.params, dialects)
    told = msgspec.structs.replace(request, params={})
    for name in dialects:
        told = DIALECTS[name].parse_request(DIALECTS[name].render_request(told))
    return msgspec.structs.replace(told, params=params)


def common_params(params: dict[str, Json], dialects: Sequence[str]) -> dict[str, Json]:
    """Return parameters of any of ``dialects`` by their neutral names, in the order of the names."""
    flat = flattened(params, {path.partition(".")[0] for path in known_paths(dialects) if "." in path})
    unshared = {path for name in dialects for path in unshared_paths(name, dialects)}
    names = {path: neutral for neutral, row in SPELLINGS.items() for path in paths_in(row, dialects)}
    return dict(sorted((names.get(path, path), value) for path, value in flat.items() if path not in unshared))


def left_out(params: Iterable[str], dialect: str, dialects: Sequence[str]) -> list[str]:
    """Return which of ``params`` (paths as ``flattened`` names them) of a ``dialect`` are not compared."""
    return [path for path in params if path in unshared_paths(dialect, dialects)]


def paths_of(params: dict[str, Json], dialect: str) -> list[str]:
    """Return the paths of a request's parameters: ``stream_options``, ``generationConfig.topK``."""
    return list(flattened(params, {path.partition(".")[0] for path in known_paths([dialect]) if "." in path}))


def arrives(chunks: tuple[StreamChunk, ...], dialect: str, streamed: bool = True) -> Folded:
    """Return what a client reads of an answer in ``dialect``, in its ``comparable`` form."""
    codec, answer = DIALECTS[dialect], Answer(id="answer", model="model")
    if not streamed:
        return comparable(codec.decode_message(codec.encode_message(chunks, answer)))
    decoder = codec.decoder()
    read = decoder.feed(b"".join(codec.encode_stream(chunks, answer)))
    return comparable((*read, *decoder.close()))


def comparable(chunks: tuple[StreamChunk, ...]) -> Folded:
    """Return the whole answer, its counts and spacing leveled, without what providers sign anew each time."""
    folded = leveled(fold(chunks), {Loss.COUNT, Loss.SPACING})
    blocks = (
        msgspec.structs.replace(block, signature=UNSET, extra={}) if isinstance(block, ReasoningBlock) else block
        for block in folded.blocks
    )
    return msgspec.structs.replace(folded, blocks=tuple(blocks))


def failure_arrives(error: ProviderError, dialect: str) -> ProviderError:
    """Return what a client makes of an HTTP error in ``dialect``; one without a status is a lost connection."""
    status = status_of(error)
    return error if status is None else classify(status, DIALECTS[dialect].error_body(error))


# ── parameters ──────────────────────────────────────────────────────────────────────────────────────────────────────


def flattened(params: dict[str, Json], nested: Iterable[str]) -> dict[str, Json]:
    """Return ``params`` with the members of the ``nested`` ones at paths of their own."""
    flat: dict[str, Json] = {}
    for name, value in params.items():
        if name in nested and isinstance(value, dict):
            flat |= {f"{name}.{inner}": item for inner, item in value.items()}
        else:
            flat[name] = value
    return flat


def known_paths(dialects: Sequence[str]) -> set[str]:
    """Return every path that a table names for one of ``dialects``."""
    spelled = {path for row in SPELLINGS.values() for path in paths_in(row, dialects)}
    return spelled | {path for name in dialects for path in UNSHARED[name]}


def unshared_paths(dialect: str, dialects: Sequence[str]) -> frozenset[str]:
    """Return the paths of ``dialect`` that one of the other ``dialects`` has no word for."""
    lonely = (row for row in SPELLINGS.values() if not all(name in row for name in dialects))
    return UNSHARED[dialect] | {path for row in lonely for path in row.get(dialect, ())}


def paths_in(row: dict[str, tuple[str, ...]], dialects: Sequence[str]) -> list[str]:
    """Return how a parameter is spelled in any of ``dialects``."""
    return [path for name in dialects for path in row.get(name, ())]


# neutral name -> how each dialect spells it; values are the same in all that have it
SPELLINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "max_tokens": {
        "openai-chat": ("max_tokens", "max_completion_tokens"),
        "openai-responses": ("max_output_tokens",),
        "anthropic-messages": ("max_tokens",),
        "gemini": ("generationConfig.maxOutputTokens",),
    },
    "temperature": {
        "openai-chat": ("temperature",),
        "openai-responses": ("temperature",),
        "anthropic-messages": ("temperature",),
        "gemini": ("generationConfig.temperature",),
    },
    "top_p": {
        "openai-chat": ("top_p",),
        "openai-responses": ("top_p",),
        "anthropic-messages": ("top_p",),
        "gemini": ("generationConfig.topP",),
    },
    "top_k": {"anthropic-messages": ("top_k",), "gemini": ("generationConfig.topK",)},
    "stop": {
        "openai-chat": ("stop",),
        "anthropic-messages": ("stop_sequences",),
        "gemini": ("generationConfig.stopSequences",),
    },
    "seed": {"openai-chat": ("seed",), "gemini": ("generationConfig.seed",)},
    "frequency_penalty": {"openai-chat": ("frequency_penalty",), "gemini": ("generationConfig.frequencyPenalty",)},
    "presence_penalty": {"openai-chat": ("presence_penalty",), "gemini": ("generationConfig.presencePenalty",)},
    "parallel_tool_calls": {"openai-chat": ("parallel_tool_calls",), "openai-responses": ("parallel_tool_calls",)},
    "reasoning_effort": {"openai-chat": ("reasoning_effort",), "openai-responses": ("reasoning.effort",)},
    "prompt_cache_key": {"openai-chat": ("prompt_cache_key",), "openai-responses": ("prompt_cache_key",)},
    "store": {"openai-chat": ("store",), "openai-responses": ("store",)},
}

# dialect -> parameters that it alone has, or says in values of its own
UNSHARED: dict[str, frozenset[str]] = {
    "openai-chat": frozenset(
        {"stream_options", "n", "logprobs", "top_logprobs", "logit_bias", "modalities", "prediction", "verbosity"}
        | {"response_format", "tool_choice", "user", "metadata", "service_tier"}
    ),
    "openai-responses": frozenset(
        {"include", "previous_response_id", "reasoning.summary", "truncation", "background", "max_tool_calls"}
        | {"text", "tool_choice", "user", "metadata", "service_tier", "stream_options", "safety_identifier"}
    ),
    "anthropic-messages": frozenset({"thinking", "tool_choice", "metadata", "service_tier", "output_config"}),
    "gemini": frozenset(
        {"alt", "safetySettings", "cachedContent", "toolConfig", "generationConfig.candidateCount"}
        | {"generationConfig.thinkingConfig", "generationConfig.responseMimeType", "generationConfig.responseSchema"}
        | {"generationConfig.responseJsonSchema", "generationConfig.responseModalities"}
    ),
}
