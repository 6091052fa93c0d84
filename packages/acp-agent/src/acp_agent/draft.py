"""An answer while it streams: what its chunks add up to so far. Pure."""

from typing import assert_never

from llm_dialects import (
    Block,
    BlockEnd,
    BlockStart,
    Finish,
    FinishReason,
    ReasoningBlock,
    ReasoningDelta,
    StreamChunk,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    Usage,
    UsageChunk,
    failure_in,
)

from acp_agent.errors import ModelError


class Draft:
    """The message ``id`` in the making. ``usage`` and ``finish`` are ``None`` until the stream has said them."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.usage: Usage | None = None
        self.finish: FinishReason | None = None
        self._ended: dict[int, Block] = {}
        self._texts: dict[int, str] = {}

    def add(self, chunk: StreamChunk) -> tuple[str, str] | None:
        """Take in a chunk; return ``(kind of session/update, text)`` where it holds something to show."""
        match chunk:
            case TextDelta(index=index, text=text):
                self._texts[index] = self._texts.get(index, "") + text
                return "agent_message_chunk", text
            case ReasoningDelta(text=text):
                return "agent_thought_chunk", text
            case BlockEnd(index=index, block=block):
                return self._end(index, block)
            case UsageChunk(usage=usage):
                self.usage = usage
            case Finish(reason=reason):
                self.finish = reason
            case BlockStart() | ToolCallDelta():
                pass
            case _:
                assert_never(chunk)
        return None

    def blocks(self) -> tuple[Block, ...]:
        """Return the completed blocks in order of their index, without texts that are none: no provider takes those."""
        return tuple(block for _, block in sorted(self._ended.items()) if not is_hollow(block))

    def tool_calls(self) -> tuple[ToolCallBlock, ...]:
        """Return the completed tool calls."""
        return tuple(block for block in self.blocks() if isinstance(block, ToolCallBlock))

    def partial_texts(self) -> tuple[TextBlock, ...]:
        """Return what the user has seen of an answer that was cut off: its text, blocks that never ended included.

        Thoughts and tool calls are left out: a provider takes neither back unfinished.
        """
        ended = {index: block.text for index, block in self._ended.items() if isinstance(block, TextBlock)}
        return tuple(TextBlock(text=text) for _, text in sorted((self._texts | ended).items()) if text)

    def _end(self, index: int, block: Block) -> tuple[str, str] | None:
        """Close a block; a text that came without deltas is still to be shown."""
        self._ended[index] = block
        match block:
            case TextBlock(text=text) if text and index not in self._texts:
                return "agent_message_chunk", text
            case TextBlock() | ReasoningBlock() | ToolCallBlock():
                return None
            case _:
                assert_never(block)


def finish_of(draft: Draft) -> FinishReason:
    """Return how an answer finished.

    Raises:
        ModelError: it did not, or with an error.
    """
    if draft.finish is None:
        raise ModelError("STREAM_CLOSED", "the stream ended before the answer was complete")
    failure = failure_in([Finish(reason=draft.finish)])
    if failure is not None:
        raise ModelError(failure.code, failure.message)
    return draft.finish


def is_hollow(block: Block) -> bool:
    """Return whether a block is a text without a word and without anything that the provider wants back."""
    return isinstance(block, TextBlock) and not block.text and not block.extra
