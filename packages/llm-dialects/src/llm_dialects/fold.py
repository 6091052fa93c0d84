"""Chunks added up to whole blocks, and blocks cut into chunks again.

Two answers are *equal after folding* when ``fold`` returns the same for both: how a provider cuts an answer into
pieces is timing, what it adds up to is meaning.
"""

from collections.abc import Iterator
from typing import assert_never

import msgspec
from msgspec import UNSET, Struct

from llm_dialects.chunks import (
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
)
from llm_dialects.memo import remembered


class Folded(Struct, frozen=True):
    """A whole answer. ``usage`` and ``finish`` are the last ones said, ``None`` where there were none."""

    blocks: tuple[Block, ...] = ()
    usage: Usage | None = None
    finish: FinishReason | None = None

    @property
    def complete(self) -> bool:
        """Whether the answer came to its end: it neither broke off nor failed."""
        return self.finish is not None and self.finish.kind != "error"


class Indexed(Struct, frozen=True):
    """One block of an answer: its number, whether it was ended, and its pieces."""

    index: int
    kind: str
    deltas: tuple[TextDelta | ReasoningDelta | ToolCallDelta, ...]
    end: BlockEnd | None

    @property
    def said(self) -> str:
        """What the deltas add up to."""
        return "".join(delta_text(delta) for delta in self.deltas)

    @property
    def rest(self) -> str:
        """What the block's end holds beyond the deltas; nothing where the two disagree."""
        whole = text_of(self.end.block) if self.end else ""
        return whole[len(self.said) :] if whole.startswith(self.said) else ""

    @property
    def block(self) -> Block:
        """The whole block: what its end says it is, else what the deltas add up to."""
        if self.end is not None:
            return self.end.block
        if self.kind == "tool-call":
            first = next((delta for delta in self.deltas if isinstance(delta, ToolCallDelta)), None)
            name = first.name if first is not None and first.name is not UNSET else ""
            return ToolCallBlock(id=first.id if first else "", name=name, arguments=self.said)
        return ReasoningBlock(text=self.said) if self.kind == "reasoning" else TextBlock(text=self.said)


class OpenBlock:
    """A block that is being read: its number, what its start says of it, and its text in pieces."""

    def __init__(self, index: int, head: Block) -> None:
        self.index = index
        self.head = head
        self.pieces: list[str] = []

    @property
    def start(self) -> BlockStart:
        """The chunk that begins it."""
        return BlockStart(index=self.index, block_type=kind_of_block(self.head))

    def add(self, text: str) -> TextDelta | ReasoningDelta | ToolCallDelta:
        """Take in more text and return the chunk that tells it."""
        self.pieces.append(text)
        match self.head:
            case TextBlock():
                return TextDelta(index=self.index, text=text)
            case ReasoningBlock():
                return ReasoningDelta(index=self.index, text=text)
            case ToolCallBlock(id=call_id, name=name):
                return ToolCallDelta(index=self.index, id=call_id, name=name, arguments_delta=text)
            case _:
                assert_never(self.head)

    @property
    def end(self) -> BlockEnd:
        """The chunk that ends it, with all its text."""
        text = "".join(self.pieces)
        member = {"arguments": text} if isinstance(self.head, ToolCallBlock) else {"text": text}
        return BlockEnd(index=self.index, block=msgspec.structs.replace(self.head, **member))


@remembered
def fold(chunks: tuple[StreamChunk, ...]) -> Folded:
    """Add up ``chunks``. Blocks that hold nothing are left out: some dialects cannot say them."""
    usages = [chunk.usage for chunk in chunks if isinstance(chunk, UsageChunk)]
    finishes = [chunk.reason for chunk in chunks if isinstance(chunk, Finish)]
    return Folded(
        blocks=tuple(item.block for item in indexed(chunks) if not is_empty(item.block)),
        usage=usages[-1] if usages else None,
        finish=finishes[-1] if finishes else None,
    )


def unfold(folded: Folded, *, end_together: bool) -> tuple[StreamChunk, ...]:
    """Return the chunks of a whole answer, one delta a block; blocks end each at once, or together at the end."""
    begun = [tuple(_begin(index, block)) for index, block in enumerate(folded.blocks)]
    ends = [BlockEnd(index=index, block=block) for index, block in enumerate(folded.blocks)]
    usage = () if folded.usage is None else (UsageChunk(usage=folded.usage),)
    finish = () if folded.finish is None else (Finish(reason=folded.finish),)
    if end_together:
        return (*(chunk for start in begun for chunk in start), *ends, *usage, *finish)
    return (*(chunk for start, end in zip(begun, ends, strict=True) for chunk in (*start, end)), *usage, *finish)


@remembered
def indexed(chunks: tuple[StreamChunk, ...]) -> tuple[Indexed, ...]:
    """Return the blocks of ``chunks`` in order of appearance."""
    kinds: dict[int, str] = {}
    deltas: dict[int, list[TextDelta | ReasoningDelta | ToolCallDelta]] = {}
    ends: dict[int, BlockEnd] = {}
    for chunk in chunks:
        if isinstance(chunk, (UsageChunk, Finish)):
            continue
        kinds.setdefault(chunk.index, kind_of(chunk))
        deltas.setdefault(chunk.index, [])
        if isinstance(chunk, BlockEnd):
            ends[chunk.index] = chunk
        elif not isinstance(chunk, BlockStart):
            deltas[chunk.index].append(chunk)
    return tuple(Indexed(at, kind, tuple(deltas[at]), ends.get(at)) for at, kind in kinds.items())


def kind_of(chunk: BlockStart | TextDelta | ReasoningDelta | ToolCallDelta | BlockEnd) -> str:
    """Return the type of the block that ``chunk`` belongs to."""
    match chunk:
        case BlockStart():
            return chunk.block_type
        case TextDelta() | BlockEnd(block=TextBlock()):
            return "text"
        case ReasoningDelta() | BlockEnd(block=ReasoningBlock()):
            return "reasoning"
        case _:
            return "tool-call"


def kind_of_block(block: Block) -> str:
    """Return the type of a block as its start names it."""
    return kind_of(BlockEnd(index=0, block=block))


def text_of(block: Block) -> str:
    """Return the text of a block; of a tool call, its arguments."""
    return block.arguments if isinstance(block, ToolCallBlock) else block.text


def delta_text(delta: TextDelta | ReasoningDelta | ToolCallDelta) -> str:
    """Return what a delta adds."""
    return delta.arguments_delta if isinstance(delta, ToolCallDelta) else delta.text


def is_empty(block: Block) -> bool:
    """Return whether ``block`` holds nothing at all: empty text or thinking, a call that is not yet named."""
    match block:
        case TextBlock():
            return not block.text and not block.extra
        case ReasoningBlock():
            return not block.text and not block.extra and not block.signature
        case ToolCallBlock():
            return not (block.id or block.name or block.arguments or block.extra)
        case _:
            assert_never(block)


def _begin(index: int, block: Block) -> Iterator[StreamChunk]:
    """Yield the start of a block and the one delta that holds all of it."""
    match block:
        case TextBlock():
            yield BlockStart(index=index, block_type="text")
            if block.text:
                yield TextDelta(index=index, text=block.text)
        case ReasoningBlock():
            yield BlockStart(index=index, block_type="reasoning")
            if block.text:
                yield ReasoningDelta(index=index, text=block.text)
        case ToolCallBlock():
            yield BlockStart(index=index, block_type="tool-call")
            yield ToolCallDelta(index=index, id=block.id, name=block.name, arguments_delta=block.arguments)
        case _:
            assert_never(block)


KINDS = ("reasoning", "text", "tool-call")
"""Types of blocks, in the order in which a provider tells them."""
