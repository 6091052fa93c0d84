"""Model calls as rows of the page: the request as what it adds, and the answer in groups of chunks, each where it was
told."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llm_dialects import (
    Entry,
    StreamChunk,
    TextBlock,
    TextDelta,
    Throw,
    ToolCallBlock,
    ToolCallDelta,
    entry_to_json,
    to_json,
)
from llm_dialects.chunks import BlockEnd, BlockStart, Finish, ReasoningDelta, Usage, UsageChunk
from llm_dialects.dialect import DialectError
from llm_dialects.dialects import DIALECTS
from llm_dialects.fold import Indexed, fold, indexed
from msgspec import UNSET, Struct

from session_snapshot.trace import Asked, Ended, Moment, Told
from session_snapshot.view.rows import Detail, Held, Row, gist, json_detail, text_detail, title_of

Delta = TextDelta | ReasoningDelta | ToolCallDelta


class Asking(Struct, frozen=True):
    """One model call. ``number`` is the recorded call it is (``None``: nobody recorded it), ``lane`` its lane's key.

    ``held`` is its row of the requests against the golden one; ``request`` is shown where it has none. ``entry`` is the
    answer, in tokens; ``outcome`` and ``status`` what became of it on the wire.
    """

    number: int | None
    lane: str
    held: Held | None = None
    request: Any = None
    entry: Entry | None = None
    dialect: str = ""
    streamed: bool = True
    outcome: str = ""
    status: int | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        return "a call nobody recorded" if self.number is None else f"call {self.number}"


def call_row(asking: Asking, step: int) -> Row:
    """The request of a call."""
    held = asking.held
    value = asking.request if held is None else held.value
    heading = "request" if held is None else "request, as what it adds to the call before it in its lane"
    details = [json_detail(heading, value) if held is None else held.detail(heading), *answer_details(asking)]
    if asking.outcome:
        details.append(wire_detail(asking))
    return Row(
        asking.lane,
        "call",
        title_of(f"{asking.name}:", asked(value)),
        step,
        ("added" if asking.number is None else "") if held is None else held.state,
        "" if held is None else f"requests.golden.jsonl{held.source}",
        () if held is None else held.differences,
        tuple(details),
    )


def wire_detail(asking: Asking) -> Detail:
    """What became of a call on the wire."""
    return json_detail("on the wire", {"dialect": asking.dialect, "status": asking.status, "outcome": asking.outcome})


def asked(value: Any) -> str:
    """What a request asks, in a few words: the newest message it adds."""
    messages = value.get("append", value.get("messages")) if isinstance(value, dict) else None
    if not isinstance(messages, list) or not messages:
        return "nothing is added"
    newest = messages[-1] if isinstance(messages[-1], dict) else {}
    count = f"{len(messages)} message{'s'[: len(messages) != 1]}"
    return f"{count}, the last of {newest.get('role', '?')}: {gist(newest.get('content'), 1)}"


def answer_details(asking: Asking) -> Iterator[Detail]:
    """The whole answer of a call, its chunks added up."""
    if asking.entry is None:
        return
    folded = fold(tuple(asking.entry.chunks))
    for block in folded.blocks:
        if isinstance(block, ToolCallBlock):
            yield json_detail("answer: tool call", to_json(block))
        else:
            yield text_detail("answer: text" if isinstance(block, TextBlock) else "answer: thinking", block.text)
    if folded.usage is not None:
        yield json_detail("usage", to_json(folded.usage))


# ── the answer, in groups ───────────────────────────────────────────────────────────────────────────────────────────


def answer_rows(
    asking: Asking, call: int, moments: Sequence[Moment], steps: Sequence[int]
) -> Iterator[tuple[int, Row]]:
    """The groups of chunks that answered a live call, each with the moment it was told in; then how that ended."""
    if asking.entry is None:
        return
    chunks = tuple(asking.entry.chunks)
    places = places_of(chunks, asking, call, moments)
    blocks = {block.index: block for block in indexed(chunks)}
    for place, members in grouped(chunks, places):
        yield place, group_row(asking, steps[place], members, blocks)
    last = last_told(call, moments)
    if failing(asking.entry):
        told = json_detail("recorded answer", entry_to_json(asking.entry))
        title = title_of(asking.name, failing(asking.entry))
        yield last, Row(asking.lane, "chunks", title, steps[last], details=(told,))
    elif asking.outcome in ENDS:
        end = next((at for at, moment in enumerate(moments) if moment == Ended(call)), last)
        title = title_of(asking.name, ENDS[asking.outcome])
        yield end, Row(asking.lane, "chunks", title, steps[end], details=(wire_detail(asking),))


def places_of(chunks: Sequence[StreamChunk], asking: Asking, call: int, moments: Sequence[Moment]) -> list[int]:
    """The moment each chunk was told in: deltas as a client reads them from the bytes, the rest around them."""
    told = delta_places(asking, call, moments)
    deltas = [at for at, chunk in enumerate(chunks) if isinstance(chunk, Delta)]
    last = last_told(call, moments)
    by_delta = dict(zip(deltas, [*told, *[last] * len(deltas)], strict=False))
    places: list[int] = []
    for at, chunk in enumerate(chunks):
        before = places[-1] if places else first_told(call, moments)
        match chunk:
            case UsageChunk() | Finish():
                places.append(last)
            case BlockStart():
                places.append(max(before, by_delta.get(at + 1, before)))
            case BlockEnd():
                places.append(before)
            case _:
                places.append(max(before, by_delta[at]))
    return places


def delta_places(asking: Asking, call: int, moments: Sequence[Moment]) -> list[int]:
    """For every delta that a client can read, the moment that brought it; nothing where there is no stream."""
    if not asking.streamed or asking.dialect not in DIALECTS:
        return []
    decoder = DIALECTS[asking.dialect].decoder()
    places: list[int] = []
    try:
        for at, moment in enumerate(moments):
            if isinstance(moment, Told) and moment.call == call:
                read = [chunk for body in moment.bodies for chunk in decoder.feed(body)]
                places += [at for chunk in read if isinstance(chunk, Delta)]
    except DialectError:
        return places  # an error event, or a broken stream that was recorded as one
    return places


def first_told(call: int, moments: Sequence[Moment]) -> int:
    """The first moment of a call's answer; where it was asked, if it was told nothing."""
    return next(at for at, moment in enumerate(moments) if isinstance(moment, Asked | Told) and moment.call == call)


def last_told(call: int, moments: Sequence[Moment]) -> int:
    """The last moment of a call's answer; where it was asked, if it was told nothing."""
    found = [at for at, moment in enumerate(moments) if isinstance(moment, Asked | Told) and moment.call == call]
    return found[-1]


def grouped(chunks: Sequence[StreamChunk], places: Sequence[int]) -> Iterator[tuple[int, list[StreamChunk]]]:
    """Runs of chunks of one block that were told in one moment."""
    group: list[StreamChunk] = []
    before: tuple[int, int | None] | None = None
    for chunk, place in zip(chunks, places, strict=True):
        key = place, None if isinstance(chunk, UsageChunk | Finish) else chunk.index
        if before is not None and key != before:
            yield before[0], group
            group = []
        group.append(chunk)
        before = key
    if before is not None:
        yield before[0], group


def group_row(asking: Asking, step: int, members: Sequence[StreamChunk], blocks: Mapping[int, Indexed]) -> Row:
    """One group of chunks."""
    count = f"{len(members)} chunk{'s'[: len(members) != 1]}"
    title = group_title(members, blocks)
    chunks = json_detail(count, [to_json(chunk) for chunk in members])
    folded = text_detail("added up", said(members)) if said(members) else None
    details = (chunks,) if folded is None else (folded, chunks)
    return Row(asking.lane, "chunks", title_of(title, f"({count})"), step, details=details)


def group_title(members: Sequence[StreamChunk], blocks: Mapping[int, Indexed]) -> str:
    """What a group of chunks says."""
    first = members[0]
    if isinstance(first, UsageChunk | Finish):
        return " · ".join(filter(None, map(closing, members)))
    block = blocks[first.index]
    name = block.block.name if isinstance(block.block, ToolCallBlock) else ""
    return f"{block.kind} {name} {said(members) or 'ends'}"


def closing(chunk: StreamChunk) -> str:
    """What a chunk at the end of an answer says."""
    match chunk:
        case Finish(reason=reason):
            why = "" if reason.failure is UNSET else f" ({reason.failure.code}: {reason.failure.message})"
            return f"finish {reason.kind}{why}"
        case UsageChunk(usage=usage):
            return usage_text(usage)
        case _:
            return ""


def usage_text(usage: Usage) -> str:
    """Token counts in words."""
    return f"{usage.input_tokens} tokens in, {usage.output_tokens} out"


def said(members: Sequence[StreamChunk]) -> str:
    """The text that the deltas of a group add up to."""
    return "".join(
        chunk.arguments_delta if isinstance(chunk, ToolCallDelta) else chunk.text
        for chunk in members
        if isinstance(chunk, Delta)
    )


def failing(entry: Entry | None) -> str:
    """How an answer fails that was recorded to fail; nothing for any other."""
    if not isinstance(entry, Throw):
        return ""
    return f"fails: {entry.code}{'' if entry.status is UNSET else f' ({entry.status})'}: {entry.message}"


ENDS = {
    "client_closed": "was cut off by the agent",
    "reset": "was dropped",
    "stalled": "said nothing more until the agent cut it off",
    "server_closed": "was going on when the run ended",
    "failed": "could not be answered",
}
"""How answers end that are not whole."""
