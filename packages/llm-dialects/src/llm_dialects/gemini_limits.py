"""What Gemini cannot say of an answer: how to tell that an answer holds it (the rows are in ``limits.CANNOT_SAY``)."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import UNSET

from llm_dialects.chunks import StreamChunk, ToolCallBlock
from llm_dialects.fold import fold, indexed, is_empty
from llm_dialects.gemini_requests import signature_of
from llm_dialects.wire import compact, read_object

Chunks = Sequence[StreamChunk]


def merged(chunks: Chunks) -> bool:
    """Say whether two blocks of text or of thinking follow one another, with no signature that ends the first."""
    neighbours = pairwise(fold(chunks).blocks)
    return any(type(a) is type(b) and not isinstance(a, ToolCallBlock) and not signature_of(a) for a, b in neighbours)


def malformed_arguments(chunks: Chunks) -> bool:
    """Say whether the arguments of a call are something else than a JSON object."""
    return any(read_object(text) is None for text in _arguments(chunks))


def spaced_arguments(chunks: Chunks) -> bool:
    """Say whether the arguments of a call are not written as ``compact`` writes them."""
    read = ((text, read_object(text)) for text in _arguments(chunks))
    return any(value is not None and compact(value) != text for text, value in read)


def begun_call(chunks: Chunks) -> bool:
    """Say whether the answer breaks off, or fails, in a call."""
    items = indexed(chunks)
    return not fold(chunks).complete and bool(items) and items[-1].kind == "tool-call" and items[-1].end is None


def unsaid_counts(chunks: Chunks) -> bool:
    """Say whether the usage counts tokens written to the cache, or more thinking than output."""
    usage = fold(chunks).usage
    written = usage is not None and usage.cache_write_tokens is not UNSET
    return written or (usage is not None and (usage.reasoning_tokens or 0) > usage.output_tokens)


def cut_arguments(chunks: Chunks) -> bool:
    """Say whether a call is told in any other number of deltas than one."""
    return any(item.kind == "tool-call" and len(item.deltas) != 1 for item in indexed(chunks))


def hollow(chunks: Chunks) -> bool:
    """Say whether there is a block that holds nothing."""
    return any(is_empty(item.block) for item in indexed(chunks))


def silent_end(chunks: Chunks) -> bool:
    """Say whether a block is left open that the wire ends, or ended where nothing on the wire says so."""
    items = indexed(chunks)
    if fold(chunks).complete:
        return any(item.end is None for item in items)
    last = [item.end.block for item in items[-1:] if item.end is not None]
    unmarked = any(not isinstance(block, ToolCallBlock) and not signature_of(block) for block in last)
    return unmarked or any(item.end is None for item in items[:-1])


def _arguments(chunks: Chunks) -> list[str]:
    """Return the arguments of the calls that have some."""
    calls = (block for block in fold(chunks).blocks if isinstance(block, ToolCallBlock))
    return [call.arguments for call in calls if call.arguments]
