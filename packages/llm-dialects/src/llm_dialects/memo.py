"""What was computed from an answer, remembered: a script says the same chunks again and again.

Chunks are frozen, so the same tuple means the same answer for as long as it is kept; comparing two answers, or hashing
one, would cost as much as most of what is computed from it. What is kept is bounded, for all functions together: a
large answer is computed anew each time, which is little beside sending it.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from threading import Lock
from typing import Any, TypeVar, cast

from llm_dialects.chunks import BlockEnd, ReasoningDelta, StreamChunk, TextDelta, ToolCallBlock, ToolCallDelta

R = TypeVar("R")

KEPT = 64
"""Answers that each function remembers."""

MAX_EACH = 512 * 1024
"""What one answer may weigh (``weight``), if it is to be remembered."""

MAX_ALL = 4 * 1024 * 1024
"""What all that is remembered may weigh."""

CHUNK = 96
"""What a chunk weighs beside its text."""


Known = dict[int, tuple[object, Any, int]]
"""What one function remembers: the id of a tuple of chunks -> the tuple, the result, the weight. The tuple is kept so
that its id is nobody else's."""


class Memory:
    """What is remembered of all functions, the oldest first. Several servers may share it, each in its thread."""

    def __init__(self) -> None:
        self.weight = 0
        self._order: dict[tuple[int, int], Known] = {}
        self._lock = Lock()

    def keep(self, known: Known, chunks: tuple[StreamChunk, ...], result: object) -> None:
        """Remember ``result``, and forget what is too much then."""
        weighs = weight(chunks)
        if weighs > MAX_EACH:
            return
        with self._lock:
            if len(known) >= KEPT:
                self._forget(known, next(iter(known)))
            while self.weight + weighs > MAX_ALL:
                (_, oldest), of = next(iter(self._order.items()))
                self._forget(of, oldest)
            if id(chunks) not in known:
                known[id(chunks)] = chunks, result, weighs
                self._order[id(known), id(chunks)] = known
                self.weight += weighs

    def _forget(self, known: Known, key: int) -> None:
        self.weight -= known.pop(key)[2]
        del self._order[id(known), key]


def remembered(function: Callable[[tuple[StreamChunk, ...]], R]) -> Callable[[Iterable[StreamChunk]], R]:
    """Return ``function`` for any iterable of chunks; of a tuple seen a short while ago it knows the result."""
    known: Known = {}

    @wraps(function)
    def remember(chunks: Iterable[StreamChunk]) -> R:
        found = known.get(id(chunks))
        if found is not None:
            return cast(R, found[1])
        whole = tuple(chunks)
        result = function(whole)
        if whole is chunks:
            MEMORY.keep(known, whole, result)
        return result

    return remember


def weight(chunks: Iterable[StreamChunk]) -> int:
    """Return about how many bytes chunks hold; what is computed from them holds about as many."""
    return sum(CHUNK + said(chunk) for chunk in chunks)


def said(chunk: StreamChunk) -> int:
    """Return the length of a chunk's text."""
    match chunk:
        case TextDelta() | ReasoningDelta():
            return len(chunk.text)
        case ToolCallDelta():
            return len(chunk.arguments_delta)
        case BlockEnd():
            return len(chunk.block.arguments if isinstance(chunk.block, ToolCallBlock) else chunk.block.text)
        case _:
            return 0


MEMORY = Memory()
