"""What a behaviour has to go by: the call it answers, and what it is to say. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec
from llm_dialects import (
    Action,
    Answer,
    Dialect,
    Request,
    Say,
    StreamChunk,
    Usage,
    answer_to,
    fold,
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
        target: Path and query that were asked (``target_of``), for a redirect to the same; "" where nobody knows them.
        accepts_gzip: Whether the client's ``accept-encoding`` lets ``gzip`` in (``accepts_gzip``).
    """

    dialect: Dialect
    request: Request
    options: Options
    token: str
    created: int
    count: Callable[[Sequence[StreamChunk]], Usage]
    new_id: Callable[[], str]
    target: str = ""
    accepts_gzip: bool = True

    @property
    def streamed(self) -> bool:
        """Whether the client asked for a stream."""
        return is_streamed(self.request)

    def answer(self, chunks: Sequence[StreamChunk]) -> Answer:
        """Return what goes with ``chunks``; usage is counted where they hold none."""
        usage = usage_of(chunks, self.count)
        return answer_to(self.dialect, self.request, token=self.token, created=self.created, usage=usage)

    def said(self, say: Say) -> tuple[StreamChunk, ...]:
        """Return the chunks of ``say``, cut as the options want."""
        return say_to_chunks(msgspec.structs.replace(say, chunk_size=self.options.chunk_size), self.new_id)

    def text(self, said: str) -> tuple[StreamChunk, ...]:
        """Return the chunks of an answer that says ``said``."""
        return text_chunks(said, self.options.chunk_size)

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


@lru_cache(maxsize=64)
def text_chunks(said: str, size: int) -> tuple[StreamChunk, ...]:
    """Return the chunks of an answer that says ``said`` in pieces of ``size``: for the same text the same ones."""
    return say_to_chunks(Say(text=said, chunk_size=size), str)


def usage_of(chunks: Sequence[StreamChunk], count: Callable[[Sequence[StreamChunk]], Usage]) -> Usage | None:
    """Return the honest usage of ``chunks``, None where they hold their own."""
    return count(chunks) if fold(chunks).usage is None else None


def accepts_gzip(headers: Iterable[tuple[str, str]]) -> bool:
    """Return whether ``accept-encoding`` in ``headers`` (names in lower case) lets ``gzip`` in; silence does not."""
    return _lets_gzip_in(",".join([value for name, value in headers if name == "accept-encoding"]))


@lru_cache(maxsize=64)
def _lets_gzip_in(codings: str) -> bool:
    told = [item.split(";") for item in codings.split(",")]
    shares = {coding.strip().lower(): _share("".join(rest)) for coding, *rest in told}
    return shares.get("gzip", shares.get("*", 0.0)) > 0


def _share(parameter: str) -> float:
    """Return the ``q`` of one coding; 1 where there is none, 0 where it is no number."""
    name, _, value = parameter.partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0


def target_of(path: str, query: str) -> str:
    """Return path and query as one."""
    return f"{path}?{query}" if query else path
