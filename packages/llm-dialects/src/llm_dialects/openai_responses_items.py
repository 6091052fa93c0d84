"""OpenAI responses: the items of an answer's output, each told event by event.

Every block is an item of its own: a message with one text, a reasoning item whose summary is the thinking, a call.
"""

from collections.abc import Iterator, Sequence

from msgspec import UNSET

from llm_dialects.chunks import Json, ReasoningBlock, ReasoningDelta, TextDelta, ToolCallBlock, ToolCallDelta
from llm_dialects.dialect import Answer
from llm_dialects.fold import Indexed, delta_text, kind_of
from llm_dialects.openai_responses_decoder import ITEM_MEMBERS
from llm_dialects.openai_responses_requests import CUSTOM_CALL, ITEM_TYPE, PARAGRAPH

Event = tuple[str, dict[str, Json]]
"""The type of an event, and its members but for the number."""

RESPONSE_PREFIX = "resp_"
"""What the ids of responses begin with."""


class OutputItem:
    """One item of the output: where it stands, what it is called, and how far it is told."""

    def __init__(self, at: int, block: Indexed, answer: Answer) -> None:
        self.at = at
        self.block = block
        self.id = f"{ID_PREFIXES[self.type]}{answer.id.removeprefix(RESPONSE_PREFIX)}{at:02}"
        self.told: list[str] = []
        self.begun = False
        self.over = False
        self.status = "completed"  # once it is over

    @property
    def type(self) -> str:
        """The item's type."""
        return "message"

    def start(self) -> Iterator[Event]:
        """Yield what begins the item, once."""
        if not self.begun:
            self.begun = True
            yield "response.output_item.added", {"output_index": self.at, "item": self.value()}
            yield from self.opening()

    def delta(self, chunk: TextDelta | ReasoningDelta | ToolCallDelta) -> Iterator[Event]:
        """Yield what tells ``chunk``; one that is none of this item's says nothing."""
        yield from self.start()
        if not self.over and kind_of(chunk) == self.block.kind:
            yield from self.more(delta_text(chunk))

    def end(self) -> Iterator[Event]:
        """Yield what ends the item, once."""
        yield from self.start()
        if self.over:
            return
        if self.block.rest:
            yield from self.more(self.block.rest)
        self.over = True
        yield from self.closing()
        yield "response.output_item.done", {"output_index": self.at, "item": self.value()}

    def more(self, text: str) -> Iterator[Event]:
        """Yield the delta that tells ``text``."""
        self.told.append(text)
        yield self.event("output_text.delta", content_index=0, delta=text, logprobs=[])

    def opening(self) -> Iterator[Event]:
        """Yield what follows the start of the item before any delta."""
        yield self.event("content_part.added", content_index=0, part=_text_part(""))

    def closing(self) -> Iterator[Event]:
        """Yield what follows the last delta before the end of the item."""
        text = "".join(self.told)
        yield self.event("output_text.done", content_index=0, text=text, logprobs=[])
        yield self.event("content_part.done", content_index=0, part=_text_part(text))

    def value(self) -> dict[str, Json]:
        """Return the item itself as far as it is told."""
        content = [_text_part("".join(self.told))] if self.over else []
        head = {
            "id": self.id,
            "type": self.type,
            "status": self.status if self.over else "in_progress",
            "role": "assistant",
            "content": content,
        }
        return head | self.members

    @property
    def members(self) -> dict[str, Json]:
        """Members of the item that clients send back."""
        return {key: value for key, value in self.block.block.extra.items() if key in ITEM_MEMBERS}

    def event(self, kind: str, **members: Json) -> Event:
        """Return an event that tells of this item."""
        return f"response.{kind}", {"item_id": self.id, "output_index": self.at} | members


class ReasoningItem(OutputItem):
    """Thinking: its summary comes in parts, which chunks tell by a piece that is nothing but their break."""

    def __init__(self, at: int, block: Indexed, answer: Answer) -> None:
        super().__init__(at, block, answer)
        self.parts: list[list[str]] = []  # each in pieces

    @property
    def type(self) -> str:
        """The item's type."""
        return "reasoning"

    def opening(self) -> Iterator[Event]:
        """Yield nothing: a part begins with its first delta."""
        yield from ()

    def more(self, text: str) -> Iterator[Event]:
        """Yield the delta that tells ``text``, or the end of one part and the beginning of the next."""
        if not self.parts:
            yield from self.part()
        if text == PARAGRAPH:
            yield from self.closing()
            yield from self.part()
        else:
            self.parts[-1].append(text)
            yield self.event("reasoning_summary_text.delta", summary_index=len(self.parts) - 1, delta=text)

    def part(self) -> Iterator[Event]:
        """Yield the beginning of a part."""
        self.parts.append([])
        yield self.event("reasoning_summary_part.added", summary_index=len(self.parts) - 1, part=_summary_part([]))

    def closing(self) -> Iterator[Event]:
        """Yield the end of the part that is being told, if one is."""
        for at, pieces in list(enumerate(self.parts))[-1:]:
            yield self.event("reasoning_summary_text.done", summary_index=at, text="".join(pieces))
            yield self.event("reasoning_summary_part.done", summary_index=at, part=_summary_part(pieces))

    def value(self) -> dict[str, Json]:
        """Return the item itself; what its thinking is signed with comes at its end."""
        block = self.block.block
        signature = block.signature if isinstance(block, ReasoningBlock) and self.over else UNSET
        signed = {} if signature is UNSET else {"encrypted_content": signature}
        return {"id": self.id, "type": self.type, "summary": [_summary_part(part) for part in self.parts]} | signed


class CallItem(OutputItem):
    """A call of one of the client's tools, which take JSON arguments or, custom ones, any text."""

    @property
    def type(self) -> str:
        """The item's type."""
        return CUSTOM_CALL if self.block.block.extra.get(ITEM_TYPE) == CUSTOM_CALL else "function_call"

    @property
    def custom(self) -> bool:
        """Whether the tool takes any text."""
        return self.type == CUSTOM_CALL

    def opening(self) -> Iterator[Event]:
        """Yield nothing."""
        yield from ()

    def more(self, text: str) -> Iterator[Event]:
        """Yield the delta that tells ``text``."""
        self.told.append(text)
        kind = "custom_tool_call_input" if self.custom else "function_call_arguments"
        yield self.event(f"{kind}.delta", delta=text)

    def closing(self) -> Iterator[Event]:
        """Yield the whole of the arguments."""
        text = "".join(self.told)
        yield (
            self.event("custom_tool_call_input.done", input=text)
            if self.custom
            else self.event("function_call_arguments.done", arguments=text)
        )

    def value(self) -> dict[str, Json]:
        """Return the item itself as far as it is told."""
        member = "input" if self.custom else "arguments"
        block, text = self.block.block, "".join(self.told)
        named = {"call_id": block.id, "name": block.name} if isinstance(block, ToolCallBlock) else {}
        return (
            {"id": self.id, "type": self.type, "status": self.status if self.over else "in_progress", member: text}
            | named
            | self.members
        )


def _text_part(text: str) -> dict[str, Json]:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def _summary_part(pieces: Sequence[str]) -> dict[str, Json]:
    return {"type": "summary_text", "text": "".join(pieces)}


# type of item -> what its id begins with
ID_PREFIXES = {"message": "msg_", "reasoning": "rs_", "function_call": "fc_", CUSTOM_CALL: "ctc_"}

# type of block -> the item that tells it
ITEMS: dict[str, type[OutputItem]] = {"text": OutputItem, "reasoning": ReasoningItem, "tool-call": CallItem}
