"""What OpenAI chat cannot say: how to tell that an answer holds it (the rows are in ``limits.CANNOT_SAY``)."""

from collections.abc import Sequence
from typing import TypeGuard

from msgspec import UNSET

from llm_dialects.anthropic_messages_requests import REDACTED
from llm_dialects.chunks import (
    BlockEnd,
    BlockStart,
    Finish,
    ReasoningBlock,
    ReasoningDelta,
    StreamChunk,
    TextDelta,
    ToolCallDelta,
    UsageChunk,
)
from llm_dialects.fold import KINDS, fold, indexed, is_empty, kind_of_block

Chunks = Sequence[StreamChunk]


def early_end(chunks: Chunks) -> bool:
    """Say whether the ends of blocks are not what comes last of them all, by number."""
    ends = [at for at, chunk in enumerate(chunks) if isinstance(chunk, BlockEnd)]
    numbers = [chunk.index for chunk in chunks if isinstance(chunk, BlockEnd)]
    last = max((at for at, c in enumerate(chunks) if not isinstance(c, (BlockEnd, UsageChunk, Finish))), default=-1)
    return numbers != sorted(numbers) or any(at < last for at in ends)


def unended(chunks: Chunks) -> bool:
    """Say whether blocks and answer are not over together."""
    return any((item.end is not None) != fold(chunks).complete for item in indexed(chunks))


def bare_start(chunks: Chunks) -> bool:
    """Say whether a start is not followed by its first delta, which is all that tells it."""
    starts = [(at, chunk) for at, chunk in enumerate(chunks) if isinstance(chunk, BlockStart)]
    return any(not _is_delta_of(chunk.index, chunks[at + 1 : at + 2]) for at, chunk in starts)


def overtaken(chunks: Chunks) -> bool:
    """Say whether blocks begin to be said in another order than they start in."""
    told = [item.index for item in indexed(chunks) if not is_empty(item.block)]
    said = dict.fromkeys(chunk.index for chunk in chunks if _says(chunk) and chunk.index in told)
    return list(said) != [index for index in told if index in said]


def said_twice(chunks: Chunks) -> bool:
    """Say whether there are two blocks of text, or of thinking."""
    kinds = [kind_of_block(block) for block in fold(chunks).blocks]
    return any(kinds.count(kind) > 1 for kind in ("text", "reasoning"))


def signed(chunks: Chunks) -> bool:
    """Say whether thinking has a signature, or is redacted."""
    thoughts = (block for block in fold(chunks).blocks if isinstance(block, ReasoningBlock))
    return any(block.signature is not UNSET or REDACTED in block.extra for block in thoughts)


def unordered(chunks: Chunks) -> bool:
    """Say whether the blocks stand in another order than thinking, text, tool calls."""
    ranks = [KINDS.index(kind_of_block(block)) for block in fold(chunks).blocks]
    return ranks != sorted(ranks)


def _is_delta_of(index: int, following: Chunks) -> bool:
    deltas = (chunk for chunk in following if isinstance(chunk, (TextDelta, ReasoningDelta, ToolCallDelta)))
    return any(delta.index == index for delta in deltas)


def _says(chunk: StreamChunk) -> TypeGuard[TextDelta | ReasoningDelta | ToolCallDelta | BlockEnd]:
    """Return whether ``chunk`` is told at all."""
    texts = isinstance(chunk, (TextDelta, ReasoningDelta)) and bool(chunk.text)
    return texts or isinstance(chunk, (ToolCallDelta, BlockEnd))
