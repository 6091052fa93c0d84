"""Words of a closed set: which of them a wrong one was probably meant to be."""

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """Return the known word most like ``word``; "" where none is as like it as ``likeness`` says (0: any, 1: equal)."""
    # Only who is wrong needs it: an agent that is started often is started sooner without it.
    from difflib import get_close_matches

    return next(iter(get_close_matches(word[:LONGEST], known, 1, likeness)), "")


LONGEST = 200
"""Characters of a wrong word that are compared: the time this takes grows with their square."""
