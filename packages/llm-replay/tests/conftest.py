"""Requests written as short as they can be."""

from types import SimpleNamespace

import pytest
from llm_dialects import (
    BlockEnd,
    Chunks,
    Finish,
    FinishReason,
    Message,
    ReasoningBlock,
    Request,
    TextBlock,
    Throw,
    Tool,
    ToolCallBlock,
    ToolResultPart,
)
from llm_replay import Player, RecordedCall, Recording, Said, lineage

ROLES = {"u": "user", "a": "assistant", "s": "system"}


def message(text):
    """``"u hi"``, ``"a hello"``, ``"t result"`` or ``"c ls"`` (an assistant calling a tool)."""
    kind, _, said = text.partition(" ")
    if kind == "t":
        return Message(role="tool", content=(ToolResultPart(call_id="c1", content=(TextBlock(text=said),)),))
    if kind == "c":
        call = ToolCallBlock(id="c1", name="bash", arguments=said)
        return Message(role="assistant", content=(ReasoningBlock(text="hm", signature="x"), call))
    return Message(role=ROLES[kind], content=(TextBlock(text=said),))


def request(*texts, tools=("bash",), system=("You are an agent.",), model="m", **params):
    offered = tuple(Tool(name=name, input_schema={"type": "object"}) for name in tools)
    return Request(system=system, tools=offered, messages=tuple(map(message, texts)), params={"model": model, **params})


def answer(text="fine"):
    return Chunks(chunks=(BlockEnd(index=0, block=TextBlock(text=text)), Finish(reason=FinishReason(kind="stop"))))


FAILED = Throw(chunks=(), message="m", code="RATE_LIMIT")


def said(asked, entry=None, key=None):
    return Said(asked, answer() if entry is None else entry, key)


def record(*calls):
    """A recording of requests or ``Said``, each answered by the text ``answer N`` where nothing else is given."""
    asked = [call if isinstance(call, Said) else Said(call, answer(f"answer {at}")) for at, call in enumerate(calls)]
    places = lineage(asked)
    return Recording(
        tuple(
            RecordedCall(at, place.lane, place.parent, call.request, call.entry, f"session.jsonl#{at}")
            for at, (call, place) in enumerate(zip(asked, places, strict=True))
        )
    )


@pytest.fixture(scope="session")
def kit():
    """The makers of requests, answers and recordings."""
    names = (message, request, answer, said, record)
    player = {"player": lambda *calls: Player(record(*calls))}
    return SimpleNamespace(failed=FAILED, **player, **{maker.__name__: maker for maker in names})
