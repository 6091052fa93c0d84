"""The parts of a page before they are rows: what a run brought in, in tokens and held against its goldens; or the
committed files alone, in the order they tell."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from llm_dialects import is_streamed, to_json
from llm_mock_server import CapturedRequest
from llm_replay import RecordedCall
from llm_replay.files import REQUESTS
from msgspec import Struct
from normalizer import Document, normalize

from session_snapshot.calls import LiveCall
from session_snapshot.fixtures import STDOUT, Committed, is_log, log_number
from session_snapshot.report import Report
from session_snapshot.run import Capture
from session_snapshot.sandbox import Tree
from session_snapshot.suites import Loaded
from session_snapshot.surfaces import distinct_headers, documents_of, ordered_frames, place_live, run_context
from session_snapshot.trace import Moment, Sent, Wrote
from session_snapshot.view.calls import Asking
from session_snapshot.view.order import guessed, steps_of
from session_snapshot.view.rows import Held, against, alone, fresh, gone, hold, readable


class Raw(Struct, frozen=True):
    """A frame as the agent wrote it, in tokens: its line on stdout (from 1), its step, its value."""

    line: int
    step: int
    value: Any


class Framed(Struct, frozen=True):
    """A frame in canonical order held against its golden, and the places of the raw ones it was made of."""

    held: Held
    sources: tuple[int, ...] = ()


class Side(Struct, frozen=True):
    """A request that was no model call, and how many calls had come before it."""

    after: int
    method: str
    path: str
    status: int | None


class Parts(Struct, frozen=True):
    """``calls`` are in order of arrival, as ``moments`` number them; ``missing`` were recorded and not made.

    ``sent`` are the values of the moments in which something was sent, ``None`` where they are not known. ``tree`` is
    what was left, held against ``expected_tree``; ``None`` where nothing ran.
    """

    steps: Sequence[Mapping[str, Any]]
    moments: Sequence[Moment]
    sent: Sequence[Any]
    raw: Sequence[Raw]
    frames: Sequence[Framed]
    calls: Sequence[Asking]
    missing: Sequence[Asking]
    sides: Sequence[Side]
    logs: Mapping[str, Sequence[Held]]
    expected_tree: Tree
    tree: Tree | None


def ops_of(loaded: Loaded) -> list[dict[str, Any]]:
    """The steps of a script as they are written, defaults left out."""
    return [
        {key: value for key, value in msgspec.to_builtins(step).items() if value not in ("", [], None, False)}
        for step in loaded.script.steps
    ]


# ── a run ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def parts_of_run(loaded: Loaded, committed: Committed, capture: Capture, report: Report, expected_tree: Tree) -> Parts:
    """The parts of a run that is over."""
    values, sent, asked = in_tokens(loaded, committed, capture)
    raw = [Raw(frame.line, frame.step, value) for frame, value in zip(capture.frames, values, strict=True)]
    calls = askings(committed, capture, report, asked)
    moments = capture.moments
    if not committed.wire:
        known = [moment for moment in moments if isinstance(moment, Sent | Wrote)]
        rows = rows_by_call(committed.texts.get(REQUESTS, ""))
        asks = [rows[call.number][1] if call.number in rows else None for call in calls]
        moments = guessed(known, values, [one.step for one in raw], ops_of(loaded), asks)
    made = {call.recorded for call in capture.calls}
    return Parts(
        steps=ops_of(loaded),
        moments=moments,
        sent=sent,
        raw=raw,
        frames=framed(loaded, committed, capture, report),
        calls=calls,
        missing=[never_made(call, committed) for call in committed.recording.calls if call.index not in made],
        sides=sides_of(capture.requests),
        logs=logs_of(committed, report),
        expected_tree=expected_tree,
        tree=capture.after,
    )


def in_tokens(loaded: Loaded, committed: Committed, capture: Capture) -> tuple[list[Any], list[Any], list[Any]]:
    """The raw frames, what was sent and what was asked, with the tokens that the surfaces of this run have."""
    placed = place_live(capture.calls, committed.recording.calls) if committed.wire else []
    said = [moment.value for moment in capture.moments if isinstance(moment, Sent)]
    documents = [
        *documents_of(loaded, capture, placed, distinct_headers(placed)),
        Document("raw", "stdout", [frame.value for frame in capture.frames]),
        Document("sent", "stdout", said),
        Document("asked", "requests", [to_json(call.request) for call in capture.calls]),
    ]
    *_, raw, sent, asked = normalize(documents, run_context(loaded, capture))
    return list(raw.values), list(map(own_id, said, sent.values)), list(asked.values)


def own_id(raw: Any, value: Any) -> Any:
    """What the editor sent with the id it has there: its ids are the harness's own, the same every run, and no tokens
    in the frames that answer them."""
    return value | {"id": raw["id"]} if isinstance(raw, dict) and "method" in raw and "id" in raw else value


def framed(loaded: Loaded, committed: Committed, capture: Capture, report: Report) -> list[Framed]:
    """The compared frames."""
    sources = [one.sources for one in ordered_frames(loaded, capture)]
    rows = hold(committed.texts.get(STDOUT, ""), text_of(report, STDOUT))
    return [Framed(row, () if row.at is None else sources[row.at]) for row in rows]


def text_of(report: Report, name: str) -> str:
    """A surface of a run as text; nothing where it has none."""
    content = report.actual.get(name, "")
    return content if isinstance(content, str) else content.decode(errors="replace")


def sides_of(requests: Sequence[CapturedRequest]) -> list[Side]:
    """The requests that were no model calls."""
    calls, found = 0, []
    for request in requests:
        if request.kind == "call":
            calls += 1
        else:
            found.append(Side(calls, request.method, request.path, request.status))
    return found


def logs_of(committed: Committed, report: Report) -> dict[str, list[Held]]:
    """The agent's own logs against the committed ones; none where it writes none in our form."""
    if not committed.own_log:
        return {}
    names = sorted({name for name in {*committed.texts, *report.actual} if is_log(name)}, key=log_number)
    return {name: hold(committed.texts.get(name, ""), text_of(report, name)) for name in names}


# ── its calls ───────────────────────────────────────────────────────────────────────────────────────────────────────

Numbered = Mapping[int | None, tuple[int, Any]]
"""The rows of ``requests.golden.jsonl`` by their call: line and value."""


def rows_by_call(text: str) -> Numbered:
    """The rows of a requests file by their call."""
    rows = [(line, row) for line, row in enumerate(readable(text), 1) if isinstance(row, dict)]
    return {row["call"]: (line, row) for line, row in rows if isinstance(row.get("call"), int)}


def askings(committed: Committed, capture: Capture, report: Report, asked: Sequence[Any]) -> list[Asking]:
    """The calls of a run, in order of arrival."""
    expected, actual = rows_by_call(committed.texts.get(REQUESTS, "")), rows_by_call(text_of(report, REQUESTS))
    journal = {request.call: request for request in capture.requests if request.kind == "call"}
    recorded: dict[int | None, RecordedCall] = {call.index: call for call in committed.recording.calls}
    found = []
    for call, request in zip(capture.calls, asked, strict=True):
        told = answered(call, capture.calls, recorded)
        asking = Asking(
            number=call.recorded,
            lane=lane_key(told),
            held=held_row(call.recorded, expected, actual) if committed.wire else None,
            request=request,
            entry=None if told is None else told.entry,
            streamed=is_streamed(call.request),
        )
        found.append(on_wire(asking, journal.get(call.number) if committed.wire else None))
    return found


def answered(
    call: LiveCall, others: Sequence[LiveCall], recorded: Mapping[int | None, RecordedCall]
) -> RecordedCall | None:
    """The recorded call that answers a live one; one that repeats another is answered as that."""
    index = call.recorded
    if index is None and call.entry is not None:
        same = (other.recorded for other in others if other.request == call.request)
        index = next((number for number in same if number is not None), None)
    return recorded.get(index)


def lane_key(call: RecordedCall | None) -> str:
    """The key of a call's lane; calls nobody recorded have one of their own."""
    return "model" if call is None else f"model {call.lane}"


def held_row(call: int | None, expected: Numbered, actual: Numbered) -> Held | None:
    """The row of a recorded call against the golden one."""
    if call is None or call not in actual:
        return None
    line, value = actual[call]
    return against(expected[call][1], value, line, line - 1) if call in expected else fresh(value, line - 1)


def on_wire(asking: Asking, captured: CapturedRequest | None) -> Asking:
    """A call with what became of it on the wire."""
    if captured is None:
        return asking
    outcome = captured.outcome or ""
    return msgspec.structs.replace(asking, dialect=captured.dialect, status=captured.status, outcome=outcome)


def never_made(call: RecordedCall, committed: Committed) -> Asking:
    """A recorded call that the run did not make."""
    rows = rows_by_call(committed.texts.get(REQUESTS, ""))
    held = gone(rows[call.index][1], rows[call.index][0]) if call.index in rows else gone({"call": call.index}, 0)
    return Asking(call.index, lane_key(call), held, entry=call.entry)


# ── committed files ─────────────────────────────────────────────────────────────────────────────────────────────────


class Kept(Struct, frozen=True):
    """The committed half of a scenario, as far as it can be read: texts by name, recorded calls, frames a step."""

    texts: Mapping[str, str]
    calls: Sequence[RecordedCall] = ()
    counts: Sequence[Mapping[str, int]] = ()
    own_log: bool = True
    tree: Tree = {}


def parts_of_files(loaded: Loaded, kept: Kept) -> Parts:
    """The parts of a scenario that nothing was held against."""
    steps = ops_of(loaded)
    frames = alone(kept.texts.get(STDOUT, ""))
    at = [min(step, max(len(steps) - 1, 0)) for step in steps_of([row.actual for row in frames], kept.counts)]
    rows = rows_by_call(kept.texts.get(REQUESTS, ""))
    moments: list[Moment] = []
    for step in range(len(steps)):
        moments += [Sent(step, ""), *(Wrote(number) for number, own in enumerate(at) if own == step)]
    asks = [rows[call.index][1] if call.index in rows else None for call in kept.calls]
    logs = sorted((name for name in kept.texts if is_log(name) and kept.own_log), key=log_number)
    return Parts(
        steps=steps,
        moments=guessed(moments, [row.actual for row in frames], at, steps, asks),
        sent=[None] * len(steps),
        raw=[Raw(row.number, step, row.actual) for row, step in zip(frames, at, strict=True)],
        frames=[Framed(row, (number,)) for number, row in enumerate(frames)],
        calls=[committed_call(call, rows) for call in kept.calls],
        missing=[],
        sides=[],
        logs={name: alone(kept.texts[name]) for name in logs},
        expected_tree=kept.tree,
        tree=None,
    )


def committed_call(call: RecordedCall, rows: Numbered) -> Asking:
    """A call as it is recorded."""
    if call.index not in rows:
        request = {"call": call.index, "source": call.source}
        return Asking(call.index, lane_key(call), request=request, entry=call.entry)
    line, value = rows[call.index]
    return Asking(call.index, lane_key(call), Held("", line, line - 1, None, value), entry=call.entry)
