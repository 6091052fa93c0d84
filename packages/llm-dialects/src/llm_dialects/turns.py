"""Messages of the wire that hold tool results beside other parts, as Anthropic's and Gemini's do.

Here every result is a message of its own. Written, results and the user message that directly follows them are one
message of the wire again.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal

from llm_dialects.chunks import Json
from llm_dialects.requests import Message, Part, ToolResultPart


def split_turn(
    role: Literal["system", "user", "assistant"], parts: Sequence[Part], extra: Mapping[str, Json]
) -> Iterator[Message]:
    """Yield the neutral messages of one message of the wire; its unknown members go to the first."""
    own = dict(extra)
    if not parts:
        yield Message(role=role, content=(), extra=own)
    for is_result, group in groupby(parts, lambda part: isinstance(part, ToolResultPart)):
        together = tuple(group)
        for piece in [(part,) for part in together] if is_result else [together]:
            yield Message(role="tool" if is_result else role, content=piece, extra=own)
            own = {}


def join_turns(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Yield the runs of messages that are one message of the wire."""
    turn: list[Message] = []
    for message in messages:
        joins = message.role in ("tool", "user") and not message.extra and message.content
        if turn and not (joins and turn[-1].role == "tool"):
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn
