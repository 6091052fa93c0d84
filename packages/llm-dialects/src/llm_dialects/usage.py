"""Honest token counts for answers whose chunks hold none: four characters make a token, rounded up."""

from collections.abc import Iterable

from llm_dialects.chunks import Json, StreamChunk, Usage
from llm_dialects.fold import fold, text_of
from llm_dialects.memo import remembered
from llm_dialects.wire import compact_length


def honest_usage(request_body: Json, chunks: Iterable[StreamChunk]) -> Usage:
    """Return the counts of a call from its raw request body and its answer.

    Prompt: the compact JSON of the messages plus that of the tools. Completion: all text of the answer, thinking and
    tool arguments included.
    """
    return Usage(input_tokens=prompt_tokens(request_body), output_tokens=completion_tokens(chunks))


def prompt_tokens(request_body: Json) -> int:
    """Return the tokens of the messages and the tools of a request body, in any dialect."""
    body = request_body if isinstance(request_body, dict) else {}
    messages = next((body[key] for key in MESSAGE_KEYS if key in body), None)
    return _tokens(messages) + _tokens(body.get("tools"))


@remembered
def completion_tokens(chunks: tuple[StreamChunk, ...]) -> int:
    """Return the tokens of what a model said."""
    return _quarter(sum(len(text_of(block)) for block in fold(chunks).blocks))


def _tokens(value: Json) -> int:
    return 0 if value is None else _quarter(compact_length(value))


def _quarter(length: int) -> int:
    return -(-length // 4)


# Where the dialects keep the history: OpenAI chat and Anthropic, OpenAI responses, Gemini.
MESSAGE_KEYS = ("messages", "input", "contents")
