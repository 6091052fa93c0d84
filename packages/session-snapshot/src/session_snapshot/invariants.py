"""Wire invariants: what must hold of the raw request bodies an agent sends, and of what it says they cost, whatever a
recording says (DESIGN section 6).

Providers refuse a tool result that does not follow its call, and their caches key on the bytes before ``messages``. An
agent that tells its user another usage than it was told hides what a run costs; :mod:`session_snapshot.claims` finds
where it tells one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise

import msgspec
from llm_dialects.chunks import ToolCallBlock, Usage
from llm_dialects.requests import Message, Request, ToolResultPart
from msgspec import UNSET, Struct

HISTORY_KEYS = ("messages", "input", "contents")
"""The member that holds the history, by dialect: openai-chat and anthropic, openai-responses, gemini."""


class SentCall(Struct, frozen=True):
    """One live model call: its number, its lane, the call it extends (by position in the sequence), and what was sent.

    ``kept`` is how many of the parent's messages stand unchanged at the front; ``told`` the usage that the agent was
    told of the call, ``None`` where it was told none.
    """

    number: int
    lane: int
    parent: int | None
    kept: int
    request: Request
    body: bytes
    told: Usage | None = None


class Logged(Struct, frozen=True):
    """An agent's own log says what one answer cost; ``where`` names the event."""

    where: str
    usage: Usage


class Spent(Struct, frozen=True):
    """A response says what was spent: on the last call, in the turn, or in the session; agents differ in which.

    ``calls`` is how many model calls had been made when it was said. ``total`` is ``None`` where it says none.
    """

    where: str
    calls: int
    input: int
    output: int
    total: int | None = None


class InContext(Struct, frozen=True):
    """An update says how many tokens are in the context, after so many ``calls``."""

    where: str
    calls: int
    used: int


Claim = Logged | Spent | InContext


class Wire(Struct, frozen=True):
    """All that the checks look at, each in the order it came."""

    calls: Sequence[SentCall]
    claims: Sequence[Claim] = ()


class Breach(Struct, frozen=True):
    """One invariant broken: which, by which call (``None``: by something the agent said), and how."""

    check: str
    call: int | None
    what: str


def check_wire(calls: Sequence[SentCall], compactions: int, claims: Sequence[Claim] = ()) -> list[Breach]:
    """Every breach; history may be rewritten ``compactions`` times."""
    breaches = [breach for check in CHECKS for breach in CHECKS[check](Wire(calls, claims))]
    rewrites = [breach for breach in breaches if breach.check == "append-only"]
    allowed = rewrites if len(rewrites) <= compactions else []
    forgiven = {breach.call for breach in allowed}
    return [b for b in breaches if b not in allowed and not (b.check == "leading-message" and b.call in forgiven)]


def rewrites(calls: Sequence[SentCall]) -> int:
    """How many calls rewrote the history they extend."""
    return len(list(append_only(Wire(calls))))


# ── requests ────────────────────────────────────────────────────────────────────────────────────────────────────────


def tool_results(wire: Wire) -> Iterable[Breach]:
    """All results of one assistant message follow it directly, in any order; no result stands without its call."""
    for call in wire.calls:
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


def append_only(wire: Wire) -> Iterable[Breach]:
    """A call keeps all messages of the call it extends."""
    for call in wire.calls:
        if call.parent is not None:
            parent = wire.calls[call.parent]
            before = len(parent.request.messages)
            if call.kept < before:
                what = f"it keeps {call.kept} of the {before} messages of call {parent.number}"
                yield Breach("append-only", call.number, what)


def leading_message(wire: Wire) -> Iterable[Breach]:
    """The first message of the body is byte-stable from a lane's second call on."""
    return stable(wire.calls, "leading-message", first_message, skip=1)


def envelope(wire: Wire) -> Iterable[Breach]:
    """The bytes before the history are the same in every call of a lane."""
    return stable(wire.calls, "envelope", bytes_before_history, skip=0)


def tools(wire: Wire) -> Iterable[Breach]:
    """The bytes of the tools array are the same in every call of a lane."""
    return stable(wire.calls, "tools", lambda members, _: bytes(members.get("tools", b"")), skip=0)


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


# ── usage ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Tokens(Struct, frozen=True):
    """Token counts of some calls together; ``fresh`` and ``cached`` make the prompt, ``thought`` is in ``output``."""

    fresh: int = 0
    cached: int = 0
    output: int = 0
    thought: int = 0

    @classmethod
    def of(cls, usage: Usage) -> "Tokens":
        """The counts of one call; what a provider does not count is 0."""
        parts = (usage.cache_read_tokens, usage.cache_write_tokens)
        cached = sum(part for part in parts if part is not UNSET)
        thought = 0 if usage.reasoning_tokens is UNSET else usage.reasoning_tokens
        return cls(usage.input_tokens, cached, usage.output_tokens, thought)

    def __add__(self, other: "Tokens") -> "Tokens":
        """Both together."""
        sums = (getattr(self, name) + getattr(other, name) for name in self.__struct_fields__)
        return Tokens(*sums)

    def __str__(self) -> str:
        """The counts in words: ``412 in, 9 out``."""
        return f"{self.fresh + self.cached} in, {self.output} out"


def usage(wire: Wire) -> Iterable[Breach]:
    """What an agent says it spent is what it was told: of one call in its log, of the last ones in a response."""
    untold = [Tokens.of(call.told) for call in wire.calls if call.told is not None]
    for claim in wire.claims:
        if isinstance(claim, Logged):
            logged = Tokens.of(claim.usage)
            found = next((one for one in untold if same_call(one, logged)), None)
            if found is None:
                yield Breach("usage", None, f"{claim.where} says {logged}; {told_in_words(untold)}")
            else:
                untold.remove(found)
        elif isinstance(claim, Spent):
            spent = sums_of(wire.calls[: claim.calls])
            if not any(is_spent(claim, one) for one in spent):
                said = f"{claim.input} in, {claim.output} out"
                said += "" if claim.total is None else f", {claim.total} in all"
                yield Breach("usage", None, f"{claim.where} says {said}; {told_in_words(spent)}")


def context(wire: Wire) -> Iterable[Breach]:
    """How full the context is said to be is the prompt of a call so far, with its answer or what there is of it.

    Nothing is held against an agent that was told nothing: it can only estimate.
    """
    for claim in wire.claims:
        if isinstance(claim, InContext):
            told = [Tokens.of(call.told) for call in wire.calls[: claim.calls] if call.told is not None]
            if told and not any(one.fresh <= claim.used <= one.fresh + one.cached + one.output for one in told):
                yield Breach("context", None, f"{claim.where} says {claim.used}; {told_in_words(told)}")


def same_call(told: Tokens, logged: Tokens) -> bool:
    """Whether a log's counts are those of a call; not every dialect parts a prompt into fresh and cached tokens."""
    return (told.fresh + told.cached, told.output) == (logged.fresh + logged.cached, logged.output)


def is_spent(claim: Spent, told: Tokens) -> bool:
    """Whether a response's counts are these: cached tokens and thoughts may be counted apart."""
    prompts, outputs = (told.fresh, told.fresh + told.cached), (told.output, told.output - told.thought)
    totals = {prompt + told.output for prompt in prompts}
    return claim.input in prompts and claim.output in outputs and (claim.total is None or claim.total in totals)


def sums_of(calls: Sequence[SentCall]) -> list[Tokens]:
    """What was told of the last call, of the last two, and so on: of all calls, and of each lane alone."""
    lanes = [[call for call in calls if call.lane == lane] for lane in sorted({call.lane for call in calls})]
    sums: list[Tokens] = []
    for run in (calls, *lanes):
        told = [Tokens.of(call.told) for call in reversed(run) if call.told is not None]
        sums += list(accumulate(told))
    return list(dict.fromkeys(sums))


def told_in_words(told: Sequence[Tokens]) -> str:
    """What an agent was told."""
    return f"it was told {' or '.join(map(str, told))}" if told else "it was told none"


CHECKS: dict[str, Callable[[Wire], Iterable[Breach]]] = {
    "tool-results": tool_results,
    "append-only": append_only,
    "leading-message": leading_message,
    "envelope": envelope,
    "tools": tools,
    "usage": usage,
    "context": context,
}
