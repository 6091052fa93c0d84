"""The beginning of an answer: what comes before its first word is held back, for it may all be in vain. Pure."""

from typing import assert_never

from llm_dialects import (
    BlockEnd,
    BlockStart,
    Finish,
    ReasoningDelta,
    StreamChunk,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    UsageChunk,
    failure_in,
)

from acp_agent.errors import ModelError


class Opening:
    """Tells an answer that says something from one that only begins. ``over``: it has said something.

    ``held`` are the chunks so far, until it has.
    """

    def __init__(self) -> None:
        self.over = False
        self.held: list[StreamChunk] = []

    def add(self, chunk: StreamChunk) -> list[StreamChunk]:
        """Take in a chunk; return those that need not be held back any more.

        Raises:
            ModelError: the answer is over and has said nothing.
        """
        if self.over:
            return [chunk]
        self.held.append(chunk)
        if isinstance(chunk, Finish):
            check_finish(chunk)
        elif not says_something(chunk):
            return []
        self.over = True
        ready, self.held = self.held, []
        return ready


def says_something(chunk: StreamChunk) -> bool:
    """Return whether there is more to ``chunk`` than that something begins or ends."""
    match chunk:
        case TextDelta(text=text) | ReasoningDelta(text=text):
            return bool(text)
        case BlockEnd(block=block):
            return isinstance(block, ToolCallBlock) or bool(block.text)
        case ToolCallDelta():
            return True
        case BlockStart() | UsageChunk() | Finish():
            return False
        case _:
            assert_never(chunk)


def check_finish(chunk: Finish) -> None:
    """Accept the end of an answer without content only where the provider says why it has none."""
    failure = failure_in([chunk])
    if failure is not None:
        raise ModelError(failure.code, failure.message)
    if chunk.reason.kind not in CUT_SHORT:
        raise ModelError("SERVER_ERROR", f"the provider's answer is empty (it finished with {chunk.reason.kind!r})")


CUT_SHORT = ("max-tokens", "content-filter")
"""Finishes of an answer that may rightly be without content."""
