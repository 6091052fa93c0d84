"""Wire invariants: what must hold of the raw request bodies an agent sends, whatever a recording says (DESIGN
section 6).

Providers refuse a tool result that does not follow its call, and their caches key on the bytes before ``messages``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec
from llm_dialects.chunks import ToolCallBlock
from llm_dialects.requests import Message, Request, ToolResultPart
from msgspec import Struct

HISTORY_KEYS = ("messages", "input", "contents")
"""The member that holds the history, by dialect: openai-chat and anthropic, openai-responses, gemini."""


class SentCall(Struct, frozen=True):
    """One live model call: its number, its lane, the call it extends (by position in the sequence), and what was sent.

    ``kept`` is how many of the parent's messages stand unchanged at the front.
    """

    number: int
    lane: int
    parent: int | None
    kept: int
    request: Request
    body: bytes


class Breach(Struct, frozen=True):
    """One invariant broken: which, by which call, and how."""

    check: str
    call: int
    what: str


def check_wire(calls: Sequence[SentCall], compactions: int) -> list[Breach]:
    """Every breach; history may be rewritten ``compactions`` times."""
    breaches = [breach for check in CHECKS for breach in CHECKS[check](calls)]
    rewrites = [breach for breach in breaches if breach.check == "append-only"]
    allowed = rewrites if len(rewrites) <= compactions else []
    forgiven = {breach.call for breach in allowed}
    return [b for b in breaches if b not in allowed and not (b.check == "leading-message" and b.call in forgiven)]


def rewrites(calls: Sequence[SentCall]) -> int:
    """How many calls rewrote the history they extend."""
    return len(list(append_only(calls)))


def tool_results(calls: Sequence[SentCall]) -> Iterable[Breach]:
    """All results of one assistant message follow it directly, in any order; no result stands without its call."""
    for call in calls:
        for what in pairing_faults(call.request.messages):
            yield Breach("tool-results", call.number, what)


def pairing_faults(messages: Sequence[Message]) -> Iterable[str]:
    """Sentences about calls without results and results without calls."""
    owed: dict[str, str] = {}
    for index, message in enumerate(messages):
        answered = [part.call_id for part in message.content if isinstance(part, ToolResultPart)]
        for call_id in answered:
            if owed.pop(call_id, None) is None:
                yield f"message {index} holds a result for {call_id!r}, which no assistant message before it asked for"
        if owed and not answered:
            yield f"message {index} ({message.role}) stands where the results of {sorted(owed.values())} should follow"
            owed = {}
        owed |= {part.id: part.name for part in message.content if isinstance(part, ToolCallBlock)}
    if owed:
        yield f"the history ends without the results of {sorted(owed.values())}"


def append_only(calls: Sequence[SentCall]) -> Iterable[Breach]:
    """A call keeps all messages of the call it extends."""
    for call in calls:
        if call.parent is not None:
            before = len(calls[call.parent].request.messages)
            if call.kept < before:
                what = f"it keeps {call.kept} of the {before} messages of call {calls[call.parent].number}"
                yield Breach("append-only", call.number, what)


def leading_message(calls: Sequence[SentCall]) -> Iterable[Breach]:
    """The first message of the body is byte-stable from a lane's second call on."""
    return stable(calls, "leading-message", first_message, skip=1)


def envelope(calls: Sequence[SentCall]) -> Iterable[Breach]:
    """The bytes before the history are the same in every call of a lane."""
    return stable(calls, "envelope", bytes_before_history, skip=0)


def tools(calls: Sequence[SentCall]) -> Iterable[Breach]:
    """The bytes of the tools array are the same in every call of a lane."""
    return stable(calls, "tools", lambda members, _: bytes(members.get("tools", b"")), skip=0)


Members = Mapping[str, msgspec.Raw]


def stable(
    calls: Sequence[SentCall], check: str, part: Callable[[Members, bytes], bytes], skip: int
) -> Iterable[Breach]:
    """Breaches where ``part`` of the body differs between neighbours of a lane, the first ``skip`` pairs left out."""
    lanes: dict[int, list[tuple[int, bytes]]] = {}
    for call in calls:
        lanes.setdefault(call.lane, []).append((call.number, part(members_of(call.body), call.body)))
    for lane in lanes.values():
        for (first, before), (second, after) in list(pairwise(lane))[skip:]:
            if before != after:
                yield Breach(check, second, f"differs from call {first}: {first_difference(before, after)}")


def members_of(body: bytes) -> Members:
    """The top-level members of a JSON body, their bytes untouched."""
    return msgspec.json.decode(body, type=dict[str, msgspec.Raw])


def first_message(members: Members, _: bytes) -> bytes:
    """The bytes of the first message."""
    for key in HISTORY_KEYS:
        if key in members:
            messages = msgspec.json.decode(members[key], type=list[msgspec.Raw] | str)
            return bytes(messages[0]) if isinstance(messages, list) and messages else b""
    return b""


def bytes_before_history(members: Members, body: bytes) -> bytes:
    """The bytes of the body up to the history."""
    for key in HISTORY_KEYS:
        if key in members:
            return body[: body.index(bytes(members[key]))]
    return b""


SHOWN = 40


def first_difference(before: bytes, after: bytes) -> str:
    """Where two byte strings part, with a little context."""
    at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    start = max(at - SHOWN // 2, 0)
    was, now = before[start : start + SHOWN], after[start : start + SHOWN]
    return f"at byte {at}, {was.decode(errors='replace')!r} became {now.decode(errors='replace')!r}"


CHECKS: dict[str, Callable[[Sequence[SentCall]], Iterable[Breach]]] = {
    "tool-results": tool_results,
    "append-only": append_only,
    "leading-message": leading_message,
    "envelope": envelope,
    "tools": tools,
}
