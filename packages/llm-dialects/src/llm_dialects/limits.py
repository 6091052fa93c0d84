"""What a dialect cannot say, in one table.

A recording served in its own dialect arrives chunk for chunk, in another one it is equal after folding — but for
these (and a usage that the client did not ask for). ``CUT`` says that only the pieces change, ``COUNT`` that token
counts which are not known arrive as zeros, ``SPACING`` that the arguments of tool calls are the same JSON, written
otherwise, ``MESSAGE`` that something is lost where the answer is not streamed, ``MEANING`` that something is lost
however it is told. ``limits`` names those that a given answer runs into.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from enum import Enum
from functools import partial

import msgspec
from msgspec import UNSET, Struct

from llm_dialects.anthropic_messages_decoder import STOP_BACK
from llm_dialects.anthropic_messages_requests import REDACTED
from llm_dialects.chunks import (
    Block,
    BlockEnd,
    BlockStart,
    Finish,
    FinishReason,
    Json,
    ReasoningBlock,
    ReasoningDelta,
    Record,
    StreamChunk,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    UsageChunk,
)
from llm_dialects.errors import anthropic_error, classify, error_of, failure_in, gemini_error, openai_error
from llm_dialects.fold import KINDS, Folded, fold, indexed, kind_of, text_of
from llm_dialects.gemini_decoder import BLOCKED
from llm_dialects.gemini_decoder import FINISH_BACK as GEMINI_FINISH_BACK
from llm_dialects.gemini_limits import (
    begun_call,
    cut_arguments,
    hollow,
    malformed_arguments,
    merged,
    silent_end,
    spaced_arguments,
    unsaid_counts,
)
from llm_dialects.gemini_requests import SIGNATURE
from llm_dialects.openai_chat_decoder import FINISH_BACK
from llm_dialects.openai_chat_limits import bare_start, early_end, overtaken, said_twice, signed, unended, unordered
from llm_dialects.openai_responses_decoder import INCOMPLETE_BACK, ITEM_MEMBERS
from llm_dialects.openai_responses_requests import ITEM_TYPE
from llm_dialects.wire import arguments_text, arguments_value, compact, read_object

Chunks = Sequence[StreamChunk]


class Loss(Enum):
    """How much is lost."""

    CUT = "cut"
    COUNT = "count"
    SPACING = "spacing"
    MESSAGE = "message"
    MEANING = "meaning"


class Limit(Struct, frozen=True):
    """One thing a dialect cannot say, and how to tell that an answer holds it."""

    what: str
    loss: Loss
    found: Callable[[Chunks], bool]


def limits(dialect: str, chunks: Chunks) -> tuple[Limit, ...]:
    """Return the limits of ``dialect`` that ``chunks`` run into."""
    return tuple(limit for limit in CANNOT_SAY[dialect] if limit.found(chunks))


def leveled(folded: Folded, losses: Set[Loss]) -> Folded:
    """Return ``folded`` without what ``COUNT`` and ``SPACING`` lose, if they are among ``losses``."""
    for loss in losses & LEVELS.keys():
        folded = LEVELS[loss](folded)
    return folded


def with_zeros(folded: Folded) -> Folded:
    """Return ``folded`` with zeros for token counts that are not known."""
    if folded.usage is None:
        return folded
    unknown = {name: 0 for name in folded.usage.__struct_fields__ if getattr(folded.usage, name) is UNSET}
    return msgspec.structs.replace(folded, usage=msgspec.structs.replace(folded.usage, **unknown))


def with_compact_arguments(folded: Folded) -> Folded:
    """Return ``folded`` with the arguments of tool calls as compact JSON."""
    return msgspec.structs.replace(folded, blocks=tuple(_compacted(block) for block in folded.blocks))


def _compacted(block: Block) -> Block:
    value = read_object(block.arguments) if isinstance(block, ToolCallBlock) else None
    return block if value is None else msgspec.structs.replace(block, arguments=compact(value))


# ── Any dialect ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _malformed(chunks: Chunks) -> bool:
    """Say whether a block lacks its start, has pieces of another kind or after its end, or a call changes its name."""
    finish = next((at for at, chunk in enumerate(chunks) if isinstance(chunk, Finish)), len(chunks) - 1)
    kinds: dict[int, str] = {}
    over: set[int] = set()
    names: dict[tuple[int, str], set[str]] = {}
    for chunk in chunks:
        if isinstance(chunk, (UsageChunk, Finish)):
            continue
        begins = isinstance(chunk, BlockStart)
        if begins == (chunk.index in kinds) or chunk.index in over or kind_of(chunk) not in KINDS:
            return True
        if kinds.setdefault(chunk.index, kind_of(chunk)) != kind_of(chunk):
            return True
        over |= {chunk.index} if isinstance(chunk, BlockEnd) else set()
        for what, name in _named(chunk):
            names.setdefault((chunk.index, what), set()).add(name)
    return finish != len(chunks) - 1 or any(len(found) > 1 for found in names.values())


def _named(chunk: StreamChunk) -> Iterator[tuple[str, str]]:
    """Yield the id and the name that ``chunk`` gives a tool call."""
    if isinstance(chunk, ToolCallDelta):
        yield "id", chunk.id
        yield from [] if chunk.name is UNSET else [("name", chunk.name)]
    if isinstance(chunk, BlockEnd) and isinstance(chunk.block, ToolCallBlock):
        yield from (("id", chunk.block.id), ("name", chunk.block.name))


def _extra(known: Set[str], chunks: Chunks) -> bool:
    return any(_has_extra(known, chunk) for chunk in chunks)


def _has_extra(known: Set[str], record: Record) -> bool:
    """Say whether ``record`` holds members of no meaning to the dialect, which knows some."""
    inner = [getattr(record, name) for name in record.__struct_fields__]
    deeper = any(isinstance(value, Record) and _has_extra(known, value) for value in inner)
    redacted = isinstance(record, ReasoningBlock) and not record.text and set(record.extra) == {REDACTED}
    replay = isinstance(record, Finish) and record.replay_state is not UNSET
    understood = isinstance(record, (TextBlock, ToolCallBlock, FinishReason)) and record.extra.keys() <= known
    return deeper or replay or bool(record.extra and not redacted and not understood)


def _disagrees(chunks: Chunks) -> bool:
    return any(item.end and not text_of(item.end.block).startswith(item.said) for item in indexed(chunks))


def _error_lost(wording: Callable[..., Json], chunks: Chunks) -> bool:
    """Say whether the error that ``chunks`` finish with reads differently after it was told."""
    finish = fold(chunks).finish
    failure = failure_in(chunks)
    if finish is None or failure is None:
        return False
    return finish.failure is UNSET or classify(None, wording(error_of(finish))) != failure


def _before_error(chunks: Chunks) -> bool:
    return failure_in(chunks) is not None and len(chunks) > 1


def _uncounted(chunks: Chunks) -> bool:
    """Say whether there is a usage that nothing will tell: the answer breaks off or fails."""
    folded = fold(chunks)
    return folded.usage is not None and not folded.complete


def _unfinished(chunks: Chunks) -> bool:
    return fold(chunks).finish is None


def _renumbered(chunks: Chunks) -> bool:
    return [item.index for item in indexed(chunks)] != list(range(len(indexed(chunks))))


def _nameless(chunks: Chunks) -> bool:
    return any(isinstance(chunk, ToolCallDelta) and chunk.name is UNSET for chunk in chunks)


def _unsaid(chunks: Chunks) -> bool:
    return any(item.rest for item in indexed(chunks))


def _other_word(words: Mapping[str, str], chunks: Chunks) -> bool:
    """Say whether the finish is a word that the wire uses for something else (``words``: the wire's -> ours)."""
    finish = fold(chunks).finish
    if finish is None or finish.kind == "error":
        return False
    return not finish.kind or (finish.kind in words and finish.kind not in words.values())


def _usage_elsewhere(chunks: Chunks) -> bool:
    """Say whether there are several usages, or one that does not stand right before the finish."""
    at = [at for at, chunk in enumerate(chunks) if isinstance(chunk, UsageChunk)]
    return bool(at) and at != [len(chunks) - 2]


def _empty_delta(chunks: Chunks) -> bool:
    return any(isinstance(chunk, (TextDelta, ReasoningDelta)) and not chunk.text for chunk in chunks)


# ── OpenAI responses ────────────────────────────────────────────────────────────────────────────────────────────────


def _late_end(chunks: Chunks) -> bool:
    """Say whether a block begins between the last that is said of another one and its end."""
    starts = [at for at, chunk in enumerate(chunks) if isinstance(chunk, BlockStart)]
    said = {c.index: at for at, c in enumerate(chunks) if not isinstance(c, (BlockEnd, UsageChunk, Finish))}
    ends = {chunk.index: at for at, chunk in enumerate(chunks) if isinstance(chunk, BlockEnd)}
    return any(said.get(index, end) < at < end for index, end in ends.items() for at in starts)


def _unknown_count(chunks: Chunks) -> bool:
    usage = fold(chunks).usage
    return usage is not None and any(getattr(usage, name) is UNSET for name in usage.__struct_fields__)


def _misnamed_end(chunks: Chunks) -> bool:
    """Say whether the answer stops as if it held calls although it holds none, or the other way round."""
    finish = fold(chunks).finish
    called = any(item.kind == "tool-call" for item in indexed(chunks))
    return finish is not None and finish.kind == ("stop" if called else "tool-calls")


def _redacted(chunks: Chunks) -> bool:
    return any(isinstance(block, ReasoningBlock) and REDACTED in block.extra for block in fold(chunks).blocks)


# ── Anthropic messages ──────────────────────────────────────────────────────────────────────────────────────────────


def _interleaved(chunks: Chunks) -> bool:
    """Say whether blocks do not come one after another, each ended before the next."""
    told = [chunk.index for chunk in chunks if not isinstance(chunk, (UsageChunk, Finish))]
    changes = [index for at, index in enumerate(told) if at == 0 or told[at - 1] != index]
    return len(changes) != len(set(changes))


def _left_open(chunks: Chunks) -> bool:
    """Say whether a block has no end although something follows it; an error may come in the middle of the last."""
    items = indexed(chunks)
    last_may = _unfinished(chunks) or failure_in(chunks) is not None
    return any(item.end is None for item in (items[:-1] if last_may else items))


def _zero(chunks: Chunks) -> bool:
    """Say whether all counts are zeros, which stand for an unknown usage."""
    usage = fold(chunks).usage
    return usage is not None and not any(getattr(usage, name) for name in usage.__struct_fields__ if name != "extra")


def _rewritten_arguments(chunks: Chunks) -> bool:
    calls = (block for block in fold(chunks).blocks if isinstance(block, ToolCallBlock))
    return any(arguments_text(arguments_value(call.arguments)) != call.arguments for call in calls)


def _empty_signature(chunks: Chunks) -> bool:
    return any(isinstance(block, ReasoningBlock) and block.signature == "" for block in fold(chunks).blocks)


EVERYWHERE: tuple[Limit, ...] = (
    Limit("chunks that no provider sends", Loss.MEANING, _malformed),
    Limit("a block whose end contradicts its deltas", Loss.MEANING, _disagrees),
    Limit("the usage of an answer that breaks off or fails", Loss.MEANING, _uncounted),
    Limit("what was said before an error", Loss.MESSAGE, _before_error),
    Limit("an answer that breaks off", Loss.MESSAGE, _unfinished),
    Limit("numbers of blocks other than 0, 1, 2 in order of appearance", Loss.CUT, _renumbered),
    Limit("a tool call's delta without its name", Loss.CUT, _nameless),
    Limit("text that stands only in the end of its block", Loss.CUT, _unsaid),
    Limit("several usages, or one that is not right before the finish", Loss.CUT, _usage_elsewhere),
)

# what is lost -> what makes answers equal that differ in nothing else
LEVELS: dict[Loss, Callable[[Folded], Folded]] = {Loss.COUNT: with_zeros, Loss.SPACING: with_compact_arguments}

# dialect -> what it cannot say
CANNOT_SAY: dict[str, tuple[Limit, ...]] = {
    "openai-chat": (
        *EVERYWHERE,
        Limit("members of no known meaning", Loss.MEANING, partial(_extra, frozenset())),
        Limit("two blocks of text or of thinking (they become one)", Loss.MEANING, said_twice),
        Limit("blocks that are said in another order than they start in", Loss.MEANING, overtaken),
        Limit("the signature of thinking", Loss.MEANING, signed),
        Limit("an error that its words do not tell", Loss.MEANING, partial(_error_lost, openai_error)),
        Limit("a finish that the wire uses for another", Loss.MEANING, partial(_other_word, FINISH_BACK)),
        Limit("the order of text around thinking and tool calls", Loss.MESSAGE, unordered),
        Limit("the end of a block before the end of the answer", Loss.CUT, early_end),
        Limit("a block that ends without the answer, or the other way round", Loss.CUT, unended),
        Limit("the start of a block apart from its first delta", Loss.CUT, bare_start),
        Limit("an empty delta", Loss.CUT, _empty_delta),
    ),
    "openai-responses": (
        *EVERYWHERE,
        Limit("members of no known meaning", Loss.MEANING, partial(_extra, {*ITEM_MEMBERS, ITEM_TYPE})),
        Limit("redacted thinking", Loss.MEANING, _redacted),
        Limit("an error that its words do not tell", Loss.MEANING, partial(_error_lost, openai_error)),
        Limit("a finish that the wire uses for another", Loss.MEANING, partial(_other_word, INCOMPLETE_BACK)),
        Limit("a plain stop beside tool calls, or one for calls without any", Loss.MEANING, _misnamed_end),
        Limit("token counts that are not known (they are zeros)", Loss.COUNT, _unknown_count),
        Limit("the end of a block after the start of another one", Loss.CUT, _late_end),
        Limit("a block left open", Loss.CUT, _left_open),
    ),
    "anthropic-messages": (
        *EVERYWHERE,
        Limit("members of no known meaning", Loss.MEANING, partial(_extra, frozenset())),
        Limit("a usage of nothing", Loss.MEANING, _zero),
        Limit("an empty signature", Loss.MEANING, _empty_signature),
        Limit("an error that its words do not tell", Loss.MEANING, partial(_error_lost, anthropic_error)),
        Limit("a finish that the wire uses for another", Loss.MEANING, partial(_other_word, STOP_BACK)),
        Limit("how the arguments of a tool call are spaced", Loss.MESSAGE, _rewritten_arguments),
        Limit("deltas of several blocks by turns, or ends that come late", Loss.CUT, _interleaved),
        Limit("a block left open", Loss.CUT, _left_open),
    ),
    "gemini": (
        *EVERYWHERE,
        Limit("members of no known meaning", Loss.MEANING, partial(_extra, {SIGNATURE, BLOCKED})),
        Limit("redacted thinking", Loss.MEANING, _redacted),
        Limit("two blocks of text or of thinking in a row (they become one)", Loss.MEANING, merged),
        Limit("arguments of a tool call that are no JSON object", Loss.MEANING, malformed_arguments),
        Limit("a tool call in which the answer breaks off", Loss.MEANING, begun_call),
        Limit("a plain stop beside tool calls, or one for calls without any", Loss.MEANING, _misnamed_end),
        Limit("tokens written to the cache, or more thinking than output", Loss.MEANING, unsaid_counts),
        Limit("an empty signature", Loss.MEANING, _empty_signature),
        Limit("an error that its words do not tell", Loss.MEANING, partial(_error_lost, gemini_error)),
        Limit("a finish that the wire uses for another", Loss.MEANING, partial(_other_word, GEMINI_FINISH_BACK)),
        Limit("how the arguments of a tool call are spaced", Loss.SPACING, spaced_arguments),
        Limit("the arguments of a tool call in pieces, or no piece", Loss.CUT, cut_arguments),
        Limit("a block of nothing", Loss.CUT, hollow),
        Limit("an empty delta", Loss.CUT, _empty_delta),
        Limit("deltas of several blocks by turns, or ends that come late", Loss.CUT, _interleaved),
        Limit("an end of a block that the wire does not tell, or one left open", Loss.CUT, silent_end),
    ),
}
