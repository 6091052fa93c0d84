"""What was computed from an answer, remembered: a script says the same chunks again and again.

Chunks are frozen, so the same tuple means the same answer for as long as it is kept; comparing two answers, or hashing
one, would cost as much as most of what is computed from it.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TypeVar

from llm_dialects.chunks import StreamChunk

R = TypeVar("R")

KEPT = 64
"""Answers that each function remembers."""


def remembered(function: Callable[[tuple[StreamChunk, ...]], R]) -> Callable[[Iterable[StreamChunk]], R]:
    """Return ``function`` for any iterable of chunks; of a tuple seen a short while ago it knows the result."""
    known: dict[int, tuple[object, R]] = {}  # what is kept is alive, so that its id is nobody else's

    @wraps(function)
    def remember(chunks: Iterable[StreamChunk]) -> R:
        found = known.get(id(chunks))
        if found is not None:
            return found[1]
        whole = tuple(chunks)
        result = function(whole)
        if whole is chunks:
            for oldest in list(known)[: len(known) - KEPT + 1]:
                known.pop(oldest, None)
            known[id(chunks)] = chunks, result
        return result

    return remember
