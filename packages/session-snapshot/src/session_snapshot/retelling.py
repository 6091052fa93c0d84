"""A recording told in another dialect than it was made in: what then is compared, and what is not, as notes. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, assert_never

import msgspec
from llm_dialects.chunks import StreamChunk, chunk_from_json, to_json
from llm_dialects.dialect import is_streamed
from llm_dialects.entries import Chunks, Entry, Hang, Throw
from llm_dialects.errors import ProviderError, finish_of, status_of
from llm_dialects.fold import Folded
from llm_dialects.limits import Limit, Loss, limits
from llm_dialects.lineage import SIGNATURES
from llm_dialects.requests import Request
from llm_dialects.translation import arrives, common_request, comparable, failure_arrives, left_out, paths_of
from llm_dialects.wire import compact, read_object
from llm_replay import Event, RecordedCall, diff_json, parse_log
from msgspec import UNSET, Struct, UnsetType
from normalizer import canonical_line, canonical_lines


class Retelling(Struct, frozen=True):
    """A recording made in the dialect ``recorded`` is told in ``spoken``; ``counts``: token counts arrive as they
    are."""

    recorded: str
    spoken: str
    counts: bool = True

    def request(self, request: Request) -> Request:
        """A request as both dialects can say it; one that they cannot both say stays as it is."""
        try:
            return common_request(request, (self.spoken, self.recorded))
        except ValueError:
            return request

    def log(self, text: str, name: str) -> str:
        """A session log with its answers added up to blocks."""
        log = parse_log(text, name)
        return canonical_lines([log.header, *(self.compared(row) for row in folded_rows(log.events))])

    def compared(self, row: dict[str, Any]) -> Any:
        """A row of a log without what differs by dialect."""
        return leveled(row, self.counts)


class Untold(Struct, frozen=True):
    """An answer that arrives as something else than was recorded: which call's, and what the dialect cannot say."""

    call: RecordedCall
    why: str


# ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def untold(calls: Iterable[RecordedCall], dialect: str) -> Iterator[Untold]:
    """The answers that ``dialect`` cannot tell."""
    for call in calls:
        told, meant = told_and_meant(call, dialect)
        if (told.blocks, told.finish) != (meant.blocks, meant.finish):
            yield Untold(call, " and ".join(limit.what for limit in lost(call, dialect)) or "what it says")
        elif isinstance(call.entry, Throw) and failure_arrives(error_of(call.entry), dialect).code != call.entry.code:
            yield Untold(call, f"the failure {call.entry.code}")


def uncounted(calls: Iterable[RecordedCall], dialect: str) -> bool:
    """Whether the token counts of an answer arrive as others than were recorded."""
    pairs = (told_and_meant(call, dialect) for call in calls)
    return any(meant.usage is not None and told.usage != meant.usage for told, meant in pairs)


def told_and_meant(call: RecordedCall, dialect: str) -> tuple[Folded, Folded]:
    """What a client reads of a recorded answer in ``dialect``, and what it would read if nothing were lost."""
    chunks = said(call.entry)
    return arrives(chunks, dialect, streamed(call)), comparable(chunks)


def said(entry: Entry) -> tuple[StreamChunk, ...]:
    """What of an entry is an answer: of a failure what comes before it, and its event."""
    match entry:
        case Chunks() | Hang():
            return entry.chunks
        case Throw():
            begun = bool(entry.chunks) or entry.accepted is True
            lost_connection = status_of(error_of(entry)) is None
            return (*entry.chunks, finish_of(error_of(entry))) if begun and not lost_connection else entry.chunks
        case _:
            assert_never(entry)


def error_of(entry: Throw) -> ProviderError:
    """The failure of an entry."""
    return ProviderError(entry.code, entry.message, None if entry.status is UNSET else entry.status)


def streamed(call: RecordedCall) -> bool:
    """Whether the answer was asked for as a stream."""
    return call.request is None or is_streamed(call.request)


def lost(call: RecordedCall, dialect: str) -> list[Limit]:
    """What of a recorded answer ``dialect`` cannot say; how it is cut into pieces is timing."""
    unheard = {Loss.CUT} | ({Loss.MESSAGE} if streamed(call) else set())
    return [limit for limit in limits(dialect, said(call.entry)) if limit.loss not in unheard]


# ── notes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def answer_notes(calls: Sequence[RecordedCall], dialect: str) -> list[str]:
    """What ``dialect`` cannot say of the answers, or only in words of its own."""
    found = dict.fromkeys(limit.what for call in calls for limit in lost(call, dialect))
    own = dict.fromkeys(name for call in calls if (name := words_of(call.entry)) not in ("", dialect))
    words = [f"{dialect} tells in its own words what the provider put into {name}'s" for name in own]
    return [*(f"{dialect} cannot say {what}" for what in found), *words]


def words_of(entry: Entry) -> str:
    """The dialect in which an entry's status and body stand as the provider put them; ``""`` where they do not."""
    wire = entry.wire
    return "" if isinstance(wire, UnsetType) or isinstance(wire.dialect, UnsetType) else wire.dialect


def request_notes(requests: Sequence[Request], dialect: str, retelling: Retelling) -> list[str]:
    """What of requests read in ``dialect`` is not compared, because the other dialect has no such thing."""
    pair = (retelling.spoken, retelling.recorded)
    paths: dict[str, None] = {}
    for request in requests:
        paths |= dict.fromkeys(left_out(paths_of(request.params, dialect), dialect, pair))
        paths |= dict.fromkeys(lost_paths(request, retelling.request(request)))
    return [f"requests are compared without {path}, which {dialect} alone says" for path in paths]


def lost_paths(request: Request, common: Request) -> list[str]:
    """Where a request says more than its common form; list positions are ``*``."""
    bare = [to_json(msgspec.structs.replace(one, params={})) for one in (request, common)]
    found = (difference.path.strip("/").split("/") for difference in diff_json(*bare))
    return list(dict.fromkeys("/".join("*" if part.isdigit() else part for part in path) for path in found))


# ── session logs ────────────────────────────────────────────────────────────────────────────────────────────────────


def folded_rows(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    """The rows of a log; chunks of one answer that no other event parts are one row, where the first of them is."""
    answers: dict[str, list[StreamChunk]] = {}
    keys: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.type == "assistant/chunk" and "chunk" in event.data:
            key = {name: value for name, value in event.data.items() if name != "chunk"}
            keys.setdefault(canonical_line(key), key)
            answers.setdefault(canonical_line(key), []).append(chunk_from_json(event.data["chunk"]))
            continue
        yield from folded_answers(keys, answers)
        keys, answers = {}, {}
        yield {"type": event.type, "data": event.data, **event.rest}
    yield from folded_answers(keys, answers)


def folded_answers(keys: dict[str, dict[str, Any]], answers: dict[str, list[StreamChunk]]) -> Iterator[dict[str, Any]]:
    """Answers as rows: whole blocks, counts, and how each ended."""
    for name, key in keys.items():
        folded = comparable(tuple(answers[name]))
        parts = {
            "blocks": [to_json(block) for block in folded.blocks],
            "usage": None if folded.usage is None else to_json(folded.usage),
            "finish": None if folded.finish is None else to_json(folded.finish),
        }
        yield {"type": "assistant/answer", "data": key | parts}


def leveled(value: Any, counts: bool, key: str = "") -> Any:
    """``value`` without signatures, the name of the dialect and counts of nothing, and arguments spaced alike."""
    match value:
        case dict():
            kept = {name: item for name, item in value.items() if not is_dialects(name, item, key, counts)}
            return {name: leveled(item, counts, name) for name, item in kept.items()}
        case list():
            return [leveled(item, counts, key) for item in value]
        case str() if key == "arguments" and (read := read_object(value)) is not None:
            return compact(read)
        case _:
            return value


def is_dialects(name: str, value: Any, above: str, counts: bool) -> bool:
    """Whether a member is the dialect's, and not the agent's; ``above`` is the member that it stands in."""
    signs = name in SIGNATURES and above in ("content", "blocks")
    unknown = above == "usage" and value == 0
    return signs or unknown or (name, above) == ("dialect", "config") or (name == "usage" and not counts)
