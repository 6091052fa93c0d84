"""Behaviours that are answers: well formed and whole, slow, huge, cut by their limit, of tools, of nothing. Pure."""

from collections.abc import Iterator, Sequence

from llm_dialects import (
    Action,
    BlockEnd,
    BlockStart,
    Body,
    Finish,
    FinishReason,
    Say,
    StreamChunk,
    ToolCallBlock,
    ToolCallDelta,
    say_to_chunks,
)
from llm_dialects.entries import SaidCall
from msgspec import UNSET

from llm_mock_server.behaviours_parts import events, message_head, pause, stream_head, tell
from llm_mock_server.situation import Situation


def success(situation: Situation) -> Iterator[Action]:
    """Answer with the success text."""
    return tell(situation, situation.text(situation.options.success_text))


def reasoning_success(situation: Situation) -> Iterator[Action]:
    """Think, then answer."""
    said = Say(reasoning=situation.options.reasoning_text, text=situation.options.success_text)
    return tell(situation, situation.said(said))


def tool_call_success(situation: Situation) -> Iterator[Action]:
    """Call the tools, one after the other."""
    return tell(situation, called(calls_of(situation, situation.calls())))


def reordered_tool_deltas(situation: Situation) -> Iterator[Action]:
    """Call the tools by turns, out of order; where a dialect tells calls one by one, in reverse order."""
    wanted = situation.calls()
    blocks = calls_of(situation, wanted if len(wanted) > 1 else wanted * 2)
    if situation.streamed and situation.dialect.name in INTERLEAVING:
        return tell(situation, interleaved(blocks))
    return tell(situation, called(blocks[::-1]))


def max_tokens(situation: Situation) -> Iterator[Action]:
    """Answer with the success text, cut off by the limit of tokens."""
    said = Say(text=situation.options.success_text, finish=FinishReason(kind="max-tokens"))
    return tell(situation, situation.said(said))


def slow_success(situation: Situation) -> Iterator[Action]:
    """Answer with a pause before each event; a message after all these pauses at once."""
    chunks = situation.text(situation.options.success_text)
    wait = pause(situation.options.chunk_delay_ms)
    told = events(situation, chunks)
    if situation.streamed:
        yield stream_head(situation)
        for event in told:
            yield wait
            yield Body(event)
    else:
        yield from (wait for _ in told)
        yield from tell(situation, chunks)


def huge_event(situation: Situation) -> Iterator[Action]:
    """Answer with one event of many bytes."""
    size = situation.options.huge_bytes
    return tell(situation, say_to_chunks(Say(text="x" * size, chunk_size=size), situation.new_id))


def empty(situation: Situation) -> Iterator[Action]:
    """Answer in due form, with no content."""
    return tell(situation, (Finish(reason=FinishReason(kind="stop")),))


def empty_body(situation: Situation) -> Iterator[Action]:
    """Say 200 and nothing."""
    yield stream_head(situation) if situation.streamed else message_head(situation, 0)


# ── Tool calls ──────────────────────────────────────────────────────────────────────────────────────────────────────


def calls_of(situation: Situation, wanted: Sequence[SaidCall]) -> tuple[ToolCallBlock, ...]:
    """Return ``wanted`` as blocks, those without an id with a new one."""
    return tuple(
        ToolCallBlock(id=situation.new_id() if call.id is UNSET else call.id, name=call.name, arguments=call.arguments)
        for call in wanted
    )


def called(blocks: Sequence[ToolCallBlock]) -> tuple[StreamChunk, ...]:
    """Return the chunks of calls one after the other, the arguments of each cut in their middle."""
    begun: list[StreamChunk] = []
    for at, block in enumerate(blocks):
        begun += [start(at), *halves(at, block)]
    return (*begun, *ends(blocks))


def interleaved(blocks: Sequence[ToolCallBlock]) -> tuple[StreamChunk, ...]:
    """Return the chunks of calls by turns: all begin in order with their first half, the last ends first.

    Not even the first halves are out of order: OpenAI's own reader of streams takes a call by its number from the list
    of those that have begun.
    """
    cut = [halves(at, block) for at, block in enumerate(blocks)]
    starts = [start(at) for at in range(len(blocks))]
    rest = [delta for _, *more in reversed(cut) for delta in more]
    return (*starts, *(first for first, *_ in cut), *rest, *ends(blocks))


def start(at: int) -> BlockStart:
    """Return the start of call ``at``."""
    return BlockStart(index=at, block_type="tool-call")


def halves(at: int, block: ToolCallBlock) -> list[ToolCallDelta]:
    """Return the two deltas of one call."""
    middle = len(block.arguments) // 2
    pieces = (block.arguments[:middle], block.arguments[middle:])
    return [ToolCallDelta(index=at, id=block.id, name=block.name, arguments_delta=piece) for piece in pieces]


def ends(blocks: Sequence[ToolCallBlock]) -> tuple[StreamChunk, ...]:
    """Return the ends of all calls, and that of the answer."""
    over = (BlockEnd(index=at, block=block) for at, block in enumerate(blocks))
    return (*over, Finish(reason=FinishReason(kind="tool-calls")))


# The dialects whose deltas of several calls may come by turns.
INTERLEAVING = frozenset({"openai-chat", "openai-responses"})
