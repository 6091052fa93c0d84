"""From live calls to rows and classes: places, gaps, headers, placeholders."""

from collections.abc import Sequence

import msgspec
import pytest
from llm_dialects.chunks import BlockEnd, ReasoningBlock, TextBlock
from llm_dialects.entries import Chunks, Hang
from llm_dialects.requests import Message, Request, Tool
from llm_replay import Header, RecordedCall
from session_snapshot.calls import LiveCall
from session_snapshot.fixtures import Pin
from session_snapshot.surfaces import (
    class_of,
    distinct_headers,
    drift_text,
    drifted_files,
    drifts_of,
    header_from_json,
    header_json,
    key_of,
    place_live,
    place_new,
    rows_of,
    sent_calls,
    without_header,
)

TOOL = Tool(name="t", description="d", input_schema={"type": "object"})


def message(text: str, role: str = "user", signature: str | None = None) -> Message:
    block = TextBlock(text=text) if signature is None else ReasoningBlock(text=text, signature=signature)
    return Message(role=role, content=(block,))


def request(*texts: str, system: str = "S", tools: Sequence[Tool] = ()) -> Request:
    return Request(system=(system,), tools=tuple(tools), messages=tuple(map(message, texts)), params={"model": "m"})


def live(number: int, asked: Request, recorded: int | None = None) -> LiveCall:
    said = BlockEnd(index=0, block=TextBlock(text=f"answer {number}"))
    return LiveCall(number, asked, b'{"messages":[1],"tools":[]}', recorded, Chunks(chunks=(said,)))


def chain() -> list[RecordedCall]:
    parents = [None, 0, 1]
    return [RecordedCall(at, 0, parent, None, Hang(), f"session.jsonl#{at}") for at, parent in enumerate(parents)]


ASKED = [request("a"), request("a", "b"), request("a", "b", "c")]


@pytest.mark.parametrize(
    ("bound", "rows"),
    [
        ([0, 1, 2], [(0, None, 1), (1, 0, 1), (2, 1, 1)]),
        ([0, None, 2], [(0, None, 1), (2, 1, 2)]),
        ([None, None, 2], [(2, 1, 3)]),
        ([2, 1, 0], [(0, None, 1), (1, 0, 1), (2, 1, 1)]),
        ([None, None, None], []),
    ],
)
def test_live_calls_stand_in_recorded_order_and_gaps_are_told_against_what_is_above(bound, rows) -> None:
    """``rows``: index, parent as recorded, messages appended."""
    calls = [live(at, ASKED[at if one is None else one], one) for at, one in enumerate(bound)]
    placed = place_live(calls, chain())
    labels = {key_of(header): "h" for header in distinct_headers(placed)}
    assert [(row.call, row.parent, len(row.append)) for row in rows_of(placed, labels)] == rows


def test_a_live_call_keeps_the_header_class_it_was_recorded_with() -> None:
    """A header that drifted is nobody's by its content."""
    recorded = [msgspec.structs.replace(call, header=name) for call, name in zip(chain(), "aba", strict=True)]
    placed = place_live([live(at, asked, at) for at, asked in enumerate(ASKED)], recorded)
    assert [place.header for place in placed] == ["a", "b", "a"]


def test_a_recordings_calls_are_placed_as_replay_binds_them() -> None:
    other = request("z", system="other")
    placed = place_new([live(0, ASKED[0]), live(1, other), live(2, ASKED[1])], ["a", "b", "c"])
    assert [(place.index, place.lane, place.parent, place.source) for place in placed] == [
        (0, 0, None, "a"), (1, 1, None, "b"), (2, 0, 0, "c"),
    ]  # fmt: skip


def test_headers_are_told_apart_once_each() -> None:
    asked = [request("a"), request("b", system="T"), request("c"), request("d", tools=[TOOL])]
    placed = place_live([live(at, one, at) for at, one in enumerate(asked[:3])], chain())
    assert distinct_headers(placed) == [Header(("S",), ()), Header(("T",), ())]
    header = Header(("a", "b"), (TOOL,))
    assert header_from_json(header_json(header)) == header


PINS = {name: Pin(name, Header((text,), (TOOL,)), f"s/{name}") for name, text in (("one", "read files"), ("two", "T"))}


@pytest.mark.parametrize(
    ("header", "name"),
    [(PINS["two"].header, "two"), (Header(("read files",), ()), "mine"), (Header((), ()), "mine")],
)
def test_classes(header: Header, name: str) -> None:
    assert class_of(header, "mine", PINS) == name


def test_drifts() -> None:
    changed = Header(("read folders",), (TOOL,))
    drifts = drifts_of([PINS["two"].header, changed, changed], ["two", "one", "unknown"], PINS)
    assert [(drift.header_class, drift.folder, drift.files) for drift in drifts] == [("one", "s/one", (SYSTEM,))]
    assert "files" in drifts[0].text and "folders" in drifts[0].text
    assert drift_text(changed, changed) == ""


SYSTEM, TOOLS = "header.system.md", "header.tools.json"


@pytest.mark.parametrize(
    ("live", "files"),
    [
        (Header(("read files",), (TOOL,)), ()),
        (Header(("other",), (TOOL,)), (SYSTEM,)),
        (Header(("read files",), ()), (TOOLS,)),
        (Header((), (TOOL, TOOL)), (SYSTEM, TOOLS)),
    ],
)
def test_the_files_of_a_pin_that_drifted(live: Header, files: tuple[str, ...]) -> None:
    assert drifted_files(PINS["one"].header, live) == files


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ({"system": "read files", "tools": None}, {"system": "{{system}}", "tools": None}),
        ({"system": "a\n\nb"}, {"system": "{{system}}"}),
        ({"system": "b"}, {"system": "{{system}}"}),
        ({"system": "read other files"}, {"system": "read other files"}),
        ({"tools": [{"name": "t", "description": "d", "inputSchema": {"type": "object"}}]}, {"tools": "{{tools}}"}),
        ({"tools": []}, {"tools": []}),
        ({}, {}),
        ("odd", "odd"),
        (None, None),
    ],
)
def test_what_the_wire_told_is_a_placeholder_in_the_log(stored, shown) -> None:
    headers = [PINS["one"].header, Header(("a", "b"), (TOOL,))]
    assert without_header({"header": stored, "reason": "r"}, headers) == {"header": shown, "reason": "r"}
    assert without_header({"reason": "r"}, headers) == {"reason": "r"}


@pytest.mark.parametrize(
    ("second", "kept"),
    [
        ([message("a", signature="1"), message("b"), message("c"), message("d")], 3),
        ([message("a", signature="2"), message("b"), message("c"), message("d")], 3),
        ([message("a", signature="1"), message("changed"), message("c"), message("d")], 1),
    ],
)
def test_history_is_kept_but_for_signatures(second: list[Message], kept: int) -> None:
    first = Request(system=(), tools=(), messages=(message("a", signature="1"), message("b"), message("c")), params={})
    again = Request(system=(), tools=(), messages=tuple(second), params={})
    assert [call.kept for call in sent_calls([live(0, first), live(1, again)])] == [0, kept]
