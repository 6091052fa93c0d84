"""From the raw capture of a run to its surfaces: ordered, normalised, in the form they are committed in."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from llm_dialects.chunks import to_json
from llm_dialects.entries import Chunks
from llm_dialects.lineage import common_prefix, strip_volatile
from llm_replay import (
    Event,
    Header,
    Lineage,
    RecordedCall,
    RequestRow,
    Said,
    SessionLog,
    diff_json,
    format_difference,
    format_fixture,
    lineage,
    requests_to_rows,
    row_to_json,
)
from llm_replay.files import REQUESTS
from llm_replay.messages import tools_from_json
from msgspec import Struct
from normalizer import Context, Document, Ordered, canonical_lines, normalize, traced_order

from session_snapshot.calls import LiveCall
from session_snapshot.fixtures import STDOUT, Pin
from session_snapshot.harvest import log_names
from session_snapshot.headers import SYSTEM_FILE, TOOLS_FILE, format_system, header_of
from session_snapshot.invariants import SentCall
from session_snapshot.known import context_of, ordering_of
from session_snapshot.run import Capture
from session_snapshot.suites import Loaded
from session_snapshot.told import install_root

PLACEHOLDER_SYSTEM, PLACEHOLDER_TOOLS = "{{system}}", "{{tools}}"


class Drift(Struct, frozen=True):
    """A live header that its class's pin does not hold: the ``files`` of the pin's ``folder`` that differ, and how."""

    header_class: str
    folder: str
    files: tuple[str, ...]
    text: str


class Placed(Struct, frozen=True):
    """A live call with its place in the tree: which call it is, its lane, its parent, and what answers it.

    ``above`` is the nearest call above it that was made: the parent, unless that is a recorded one nobody asked for.
    ``header`` is the header class it was recorded with, where it was.
    """

    call: LiveCall
    index: int
    lane: int
    parent: int | None
    source: str
    above: int | None
    header: str = ""


class Surfaces(Struct, frozen=True):
    """The machine-written files a run would make, by name; its headers (normalised) with their classes, and where
    those drifted."""

    files: dict[str, str]
    headers: list[Header]
    drifts: list[Drift]
    more: list[Document] = []
    """The further documents that were normalised with them."""
    classes: Sequence[str] = ()


def surfaces_of(
    loaded: Loaded,
    capture: Capture,
    placed: Sequence[Placed],
    pins: Mapping[str, Pin],
    unseen: Sequence[Header] = (),
    more: Sequence[Document] = (),
) -> Surfaces:
    """All surfaces of one run, normalised together so that one value has one token everywhere.

    ``unseen`` are headers that the run's log may tell of although no call on the wire had them. ``more`` is normalised
    with them and numbered last.
    """
    raw_headers = distinct_headers(placed)
    documents = documents_of(loaded, capture, placed, raw_headers)
    normal = normalize([*documents, *more], run_context(loaded, capture))
    stdout, *logs, requests, header_document = normal[: len(documents)]
    headers = [header_from_json(value) for value in header_document.values]
    recorded = {key_of(header_of(place.call.request)): place.header for place in reversed(placed)}
    own = [recorded[key_of(raw)] or loaded.scenario.header.class_ for raw in raw_headers]
    classes = [class_of(header, name, pins) for header, name in zip(headers, own, strict=True)]
    by_label = dict(zip(labels_of(raw_headers).values(), classes, strict=True))
    files = {STDOUT: canonical_lines(stdout.values)}
    for log, document in zip(capture.logs, logs, strict=True):
        files[document.name] = fixture_text(log, document, [*headers, *unseen])
    if placed:
        named = [value | {"header": by_label[value["header"]]} for value in requests.values]
        files[REQUESTS] = canonical_lines(named)
    return Surfaces(files, headers, drifts_of(headers, classes, pins), normal[len(documents) :], classes)


def documents_of(
    loaded: Loaded, capture: Capture, placed: Sequence[Placed], headers: Sequence[Header]
) -> list[Document]:
    """What is compared of a run, raw, in the order in which tokens are numbered: frames, logs, requests, headers."""
    rows = rows_of(placed, labels_of(headers))
    return [
        Document(STDOUT, "stdout", [one.frame for one in ordered_frames(loaded, capture)]),
        *(log_document(name, log) for name, log in zip(log_names(len(capture.logs)), capture.logs, strict=True)),
        Document(REQUESTS, "requests", [row_to_json(row) for row in rows]),
        Document("headers", "requests", [header_json(header) for header in headers]),
    ]


def labels_of(headers: Sequence[Header]) -> dict[bytes, str]:
    """A name for every header of a run, by which it goes until its class is known."""
    return {key_of(header): f"header {number}" for number, header in enumerate(headers)}


def run_context(loaded: Loaded, capture: Capture) -> Context:
    """What the normaliser is told of a run that is over."""
    version = capture.agent_info.get("version")
    install = install_root(loaded)
    return context_of(loaded.agent, capture.box, install, [capture.port], version if isinstance(version, str) else None)


def ordered_frames(loaded: Loaded, capture: Capture) -> list[Ordered]:
    """The agent's frames in canonical order, each with the places of the raw ones it was made of."""
    last = max((frame.step for frame in capture.frames), default=-1)
    steps = [sum(frame.step == step for frame in capture.frames) for step in range(last + 1)]
    return traced_order([frame.value for frame in capture.frames], ordering_of(loaded.agent), steps=steps)


# ── session logs ────────────────────────────────────────────────────────────────────────────────────────────────────


def log_document(name: str, log: SessionLog) -> Document:
    """A log as the normaliser reads it: header, then events without their clocks."""
    header = log.header | {"createdAt": 0}
    return Document(name, "session", [header, *({"type": e.type, "data": e.data, **e.rest} for e in log.events)])


def fixture_text(log: SessionLog, document: Document, headers: Sequence[Header]) -> str:
    """A normalised log in its committed form, prompts and tools in their placeholders."""
    header, *values = document.values
    events = tuple(
        Event(
            type=value["type"],
            data=without_header(value["data"], headers) if value["type"] == "request/header" else value["data"],
            seq=event.seq,
            time=event.time,
            rest={key: item for key, item in value.items() if key not in ("type", "data")},
            line=event.line,
        )
        for event, value in zip(log.events, values, strict=True)
    )
    return format_fixture(SessionLog(document.name, header, events, log.complete))


def without_header(data: dict[str, Any], headers: Sequence[Header]) -> dict[str, Any]:
    """A ``request/header`` with what the wire's headers hold in placeholders; what they do not hold stays visible."""
    if not isinstance(data.get("header"), dict):
        return data
    header = dict(data["header"])
    if header.get("system") in [text for known in headers for text in (*known.system, "\n\n".join(known.system))]:
        header["system"] = PLACEHOLDER_SYSTEM
    if header.get("tools") in [[to_json(tool) for tool in known.tools] for known in headers]:
        header["tools"] = PLACEHOLDER_TOOLS
    return data | {"header": header}


# ── requests ────────────────────────────────────────────────────────────────────────────────────────────────────────


def place_live(calls: Sequence[LiveCall], recorded: Sequence[RecordedCall]) -> list[Placed]:
    """The live calls of a replay in recorded order, each in the place of the call it was bound to."""
    bound = {call.recorded: call for call in calls if call.recorded is not None}
    parents = {known.index: known.parent for known in recorded}

    def made(index: int | None) -> int | None:
        while index is not None and index not in bound:
            index = parents[index]
        return index

    return [
        Placed(
            bound[known.index], known.index, known.lane, known.parent, known.source, made(known.parent), known.header
        )
        for known in recorded
        if known.index in bound
    ]


def place_new(calls: Sequence[LiveCall], sources: Sequence[str]) -> list[Placed]:
    """The calls of a recording, placed by the function that replay binds with."""
    places = live_lineage(calls)
    return [
        Placed(call, index, place.lane, place.parent, source, place.parent)
        for index, (call, place, source) in enumerate(zip(calls, places, sources, strict=True))
    ]


def live_lineage(calls: Sequence[LiveCall]) -> tuple[Lineage, ...]:
    """The tree of live calls; within one run values need no normalising to be compared."""
    return lineage([Said(call.request, call.entry) for call in calls])


def rows_of(placed: Sequence[Placed], labels: Mapping[bytes, str]) -> list[RequestRow]:
    """Rows of raw requests; ``header`` is a label until the class is known."""
    position = {place.index: at for at, place in enumerate(placed)}
    calls = [
        RecordedCall(
            at,
            place.lane,
            None if place.above is None else position[place.above],
            place.call.request,
            place.call.entry or Chunks(chunks=()),
            place.source,
        )
        for at, place in enumerate(placed)
    ]
    rows = requests_to_rows(calls, lambda header: labels[key_of(header)])
    return [
        msgspec.structs.replace(row, call=place.index, parent=place.parent)
        for row, place in zip(rows, placed, strict=True)
    ]


def distinct_headers(placed: Sequence[Placed]) -> list[Header]:
    """Every header of the run once, in recorded order."""
    found = {key_of(header_of(place.call.request)): header_of(place.call.request) for place in placed}
    return list(found.values())


def key_of(header: Header) -> bytes:
    """A header's content as a key."""
    return msgspec.json.encode(header_json(header))


def header_json(header: Header) -> dict[str, Any]:
    """A header as the normaliser reads it."""
    return {"system": list(header.system), "tools": [to_json(tool) for tool in header.tools]}


def header_from_json(value: Any) -> Header:
    """The inverse of :func:`header_json`."""
    return Header(system=tuple(value["system"]), tools=tools_from_json(value["tools"]))


# ── header classes ──────────────────────────────────────────────────────────────────────────────────────────────────


def class_of(header: Header, own: str, pins: Mapping[str, Pin]) -> str:
    """The class whose pin this header is; where it is nobody's, its ``own``: the recorded one, else the scenario's."""
    return next((name for name, pin in pins.items() if pin.header == header), own)


def drifts_of(headers: Sequence[Header], classes: Sequence[str], pins: Mapping[str, Pin]) -> list[Drift]:
    """The headers that are not as their class's pin says."""
    return [
        Drift(name, pins[name].folder, drifted_files(pins[name].header, header), drift_text(pins[name].header, header))
        for header, name in zip(headers, classes, strict=True)
        if name in pins and pins[name].header != header
    ]


def drifted_files(pinned: Header, live: Header) -> tuple[str, ...]:
    """The files of a pin that a live header is not as."""
    same = ((SYSTEM_FILE, pinned.system == live.system), (TOOLS_FILE, pinned.tools == live.tools))
    return tuple(name for name, is_same in same if not is_same)


def drift_text(pinned: Header, live: Header) -> str:
    """What changed in a header, pointed at by word."""
    before = header_json(pinned) | {"system": format_system(pinned.system)}
    after = header_json(live) | {"system": format_system(live.system)}
    return "\n".join(line for change in diff_json(before, after) for line in format_difference(change))


# ── wire ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def sent_calls(calls: Sequence[LiveCall]) -> list[SentCall]:
    """Live calls as the wire invariants look at them."""
    places = live_lineage(calls)
    return [
        SentCall(
            call.number,
            place.lane,
            place.parent,
            kept_messages(calls, call, place),
            call.request,
            call.body,
            call.usage,
        )
        for call, place in zip(calls, places, strict=True)
    ]


def kept_messages(calls: Sequence[LiveCall], call: LiveCall, place: Lineage) -> int:
    """How many of the parent's messages stand unchanged, but for signatures, at the front of a request."""
    if place.parent is None:
        return 0
    return common_prefix(strip_volatile(calls[place.parent].request), strip_volatile(call.request))
