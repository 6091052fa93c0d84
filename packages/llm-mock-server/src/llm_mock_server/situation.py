"""What a behaviour has to go by: the call it answers, and what it is to say. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from llm_dialects import (
    Action,
    Answer,
    Dialect,
    Request,
    Say,
    StreamChunk,
    Usage,
    UsageChunk,
    answer_to,
    is_streamed,
    say_to_chunks,
)
from llm_dialects.entries import SaidCall
from msgspec import Struct

from llm_mock_server.options import Options


class Situation(Struct, frozen=True, kw_only=True):
    """One model call, as a behaviour sees it.

    Attributes:
        token: What makes the ids of this answer: the same token, the same bytes.
        created: When the answer was made, in Unix seconds.
        count: Honest usage of chunks that hold none.
        new_id: A new id for a tool call.
        accepts_gzip: Whether the client's ``accept-encoding`` lets ``gzip`` in.
    """

    dialect: Dialect
    request: Request
    options: Options
    token: str
    created: int
    count: Callable[[Sequence[StreamChunk]], Usage]
    new_id: Callable[[], str]
    accepts_gzip: bool = True

    @property
    def streamed(self) -> bool:
        """Whether the client asked for a stream."""
        return is_streamed(self.request)

    def answer(self, chunks: Sequence[StreamChunk]) -> Answer:
        """Return what goes with ``chunks``; usage is counted where they hold none."""
        counted = any(isinstance(chunk, UsageChunk) for chunk in chunks)
        usage = None if counted else self.count(chunks)
        return answer_to(self.dialect, self.request, token=self.token, created=self.created, usage=usage)

    def said(self, say: Say) -> tuple[StreamChunk, ...]:
        """Return the chunks of ``say``, cut as the options want."""
        return say_to_chunks(msgspec.structs.replace(say, chunk_size=self.options.chunk_size), self.new_id)

    def calls(self) -> tuple[SaidCall, ...]:
        """Return the tool calls the options want."""
        one = SaidCall(name=self.options.tool_name, arguments=self.options.tool_arguments)
        return self.options.tool_calls or (one,)


class Behaviour(Struct, frozen=True, kw_only=True):
    """One thing a provider may do to a client.

    Attributes:
        act: The actions that answer a call.
        summary: One sentence: what a streamed call gets on the wire.
        whole: What a call that is not streamed gets, where that differs.
        differs: dialect -> what is different there.
    """

    name: str
    act: Callable[[Situation], Iterator[Action]]
    summary: str
    whole: str = ""
    differs: Mapping[str, str] = {}
