"""A stored log, read again: what the model had heard, what the client had seen, and what a crash left open. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from llm_dialects import ImagePart, Json, Message, Part, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultPart
from msgspec import Struct

from acp_agent import acp
from acp_agent.session_log import Event
from acp_agent.toolbox import ToolContext, ToolError
from acp_agent.tools import describe_call, parse_call


class Repair(Struct, frozen=True):
    """An event that an interrupted log still needs: its type and data."""

    type: str
    data: dict[str, Json]


def past_messages(events: Sequence[Event]) -> list[Message]:
    """Return the history as the model is to hear it; what a compaction replaced is not in it."""
    messages: list[Message] = []
    shadowed = 0
    for event in events:
        message = message_of(event)
        if event.type == "compaction/summary":
            shadowed = event.data["shadowedRange"]["end"]
        elif event.type == "compaction/end" and message is not None:
            messages[:shadowed] = [message]
        elif message is not None and message.content:
            messages.append(message)
    return messages


def past_turns(events: Sequence[Event]) -> int:
    """Return the number of turns begun."""
    return sum(event.type == "turn/start" for event in events)


def repairs(events: Sequence[Event]) -> list[Repair]:
    """Return the events that close a turn which a crash left open: results for its calls, then its end."""
    begun = [event for event in events if event.type in ("turn/start", "turn/end")]
    if not begun or begun[-1].type == "turn/end":
        return []
    turn = begun[-1].data["turn"]
    steps = [event for event in events if event.type in ("step/start", "step/end")]
    open_step = bool(steps) and steps[-1].type == "step/start"
    where = {"turn": turn, "step": steps[-1].data["step"] if steps else 1}
    closing = [Repair("step/end", where)] if open_step else []
    end = Repair("turn/end", {"turn": turn, "reason": {"kind": "interrupted"}})
    lost = [lost_result(call, events, where) for call in unanswered(events)]
    return [*lost, *unfinished_compaction(events, where), *closing, end]


def past_updates(events: Sequence[Event], context: ToolContext) -> Iterator[Json]:
    """Yield the ``session/update`` bodies that show a client the whole conversation."""
    results = {event.data["callId"]: event.data for event in events if event.type == "tool/result"}
    for event in events:
        match event.type:
            case "user/message":
                for part in message_parts(event.data["content"]):
                    yield acp.content_update("user_message_chunk", part_content(part), event.data["id"])
            case "assistant/message":
                message = event.data["message"]
                yield from assistant_updates(message["id"], message_parts(message["content"]), results, context)


# ── Helpers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def message_of(event: Event) -> Message | None:
    """Return the message that an event adds to the history, if it adds one."""
    match event.type:
        case "user/message":
            return Message(role="user", content=message_parts(event.data["content"]))
        case "assistant/message":
            return Message(role="assistant", content=message_parts(event.data["message"]["content"]))
        case "tool/result":
            content = msgspec.convert(event.data["content"], tuple[TextBlock, ...])
            result = ToolResultPart(call_id=event.data["callId"], content=content, is_error=event.data["isError"])
            return Message(role="tool", content=(result,))
        case "compaction/end" if "message" in event.data:
            return Message(role="user", content=message_parts(event.data["message"]["content"]))
        case _:
            return None


def message_parts(content: Json) -> tuple[Part, ...]:
    """Read the parts of a logged message."""
    return msgspec.convert(content, tuple[Part, ...])


def unanswered(events: Sequence[Event]) -> list[ToolCallBlock]:
    """Return the tool calls that have no result."""
    answered = {event.data["callId"] for event in events if event.type == "tool/result"}
    said = [part for message in past_messages(events) for part in message.content]
    return [part for part in said if isinstance(part, ToolCallBlock) and part.id not in answered]


def lost_result(call: ToolCallBlock, events: Sequence[Event], where: dict[str, Json]) -> Repair:
    """Return the result of a call whose end nobody saw: it may have begun, or not."""
    begun = any(event.type == "tool/call" and event.data["callId"] == call.id for event in events)
    code, text = LOST[begun]
    content = [{"type": "text", "text": text}]
    return Repair(
        "tool/result", where | {"callId": call.id, "content": content, "isError": True, "error": {"code": code}}
    )


def unfinished_compaction(events: Sequence[Event], where: dict[str, Json]) -> list[Repair]:
    """Return the end of a compaction that a crash cut short: it changed nothing."""
    told = [event for event in events if event.type in ("compaction/start", "compaction/end")]
    if not told or told[-1].type == "compaction/end":
        return []
    id = told[-1].data["compactionId"]
    error = {"code": "INTERRUPTED", "message": "the agent ended before it was done"}
    return [Repair("compaction/end", where | {"compactionId": id, "error": error})]


def part_content(part: Part) -> Json:
    """Return the ACP content block of a part of a user's message."""
    match part:
        case TextBlock(text=text):
            return acp.text_block(text)
        case ImagePart(data=str(data), media_type=str(media_type)):
            return {"type": "image", "data": data, "mimeType": media_type}
        case _:
            return acp.text_block(f"[{type(part).__name__}]")


def assistant_updates(
    message_id: str, parts: Sequence[Part], results: dict[str, dict[str, Any]], context: ToolContext
) -> Iterator[Json]:
    """Yield what a client sees of one answer: whole texts, and each tool call with its result."""
    for part in parts:
        match part:
            case TextBlock(text=text):
                yield acp.text_update("agent_message_chunk", text, message_id)
            case ReasoningBlock(text=text):
                yield acp.text_update("agent_thought_chunk", text, message_id)
            case ToolCallBlock():
                yield call_update(part, results.get(part.id), context)
            case _:
                pass


def call_update(call: ToolCallBlock, result: dict[str, Any] | None, context: ToolContext) -> Json:
    """Return the update that shows a finished tool call."""
    try:
        use = parse_call(call, context.config.enabled)
    except ToolError:
        use = None
    update = {"sessionUpdate": "tool_call", "toolCallId": call.id}
    told = describe_call(call, use, context)
    if result is None:
        return update | {"status": "failed"} | told
    status = "failed" if result["isError"] else "completed"
    content = [acp.tool_text(block["text"]) for block in result["content"]]
    return update | {"status": status} | told | {"content": content}


LOST = {
    True: ("TOOL_OUTCOME_UNKNOWN", "[the agent ended while this ran; what it did is unknown]"),
    False: ("TOOL_NOT_STARTED", "[the agent ended before this began]"),
}
