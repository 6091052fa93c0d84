import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_dialects import (
    ImagePart,
    Message,
    OpaquePart,
    ReasoningBlock,
    Request,
    TextBlock,
    Tool,
    ToolCallBlock,
    ToolResultPart,
)
from llm_replay import (
    FixtureError,
    Header,
    RecordedCall,
    format_rows,
    lineage,
    parse_rows,
    requests_to_rows,
    rows_to_requests,
)

NAME = "requests.golden.jsonl"
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("a/~", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("a/~0", max_size=2), inner, max_size=2),
    max_leaves=4,
)
EXTRA = st.just({}) | st.dictionaries(st.sampled_from(["x/y", "note"]), JSON, min_size=1, max_size=2)
TEXT = st.sampled_from(["one", "two", "{{cwd}}/a", ""])
TEXT_BLOCK = st.builds(TextBlock, text=TEXT, extra=EXTRA)
IMAGE = st.builds(ImagePart, media_type=st.just("image/png"), data=TEXT, extra=EXTRA)
OPAQUE = st.builds(OpaquePart, value=JSON)
RESULT = st.builds(
    ToolResultPart, call_id=TEXT, content=st.tuples(TEXT_BLOCK | IMAGE | OPAQUE), is_error=st.booleans(), extra=EXTRA
)
CALL = st.builds(ToolCallBlock, id=TEXT, name=TEXT, arguments=TEXT, extra=EXTRA)
THOUGHT = st.builds(ReasoningBlock, text=TEXT, extra=EXTRA) | st.builds(ReasoningBlock, text=TEXT, signature=TEXT)
MESSAGE = st.one_of(
    st.builds(Message, role=st.just("user"), content=st.tuples(TEXT_BLOCK | IMAGE | OPAQUE), extra=EXTRA),
    st.builds(Message, role=st.just("assistant"), content=st.tuples(THOUGHT, TEXT_BLOCK | CALL), extra=EXTRA),
    st.builds(Message, role=st.just("tool"), content=st.tuples(RESULT)),
)
HEADERS = {
    "main": Header(system=("You are an agent.",), tools=(Tool(name="bash", input_schema={"type": "object"}),)),
    "title": Header(system=("Name it.", "Be brief.")),
    "bare": Header(),
}


@st.composite
def runs(draw):
    """Requests of which each opens a conversation or grows out of an earlier one, perhaps with its past rewritten."""
    requests = []
    for _ in range(draw(st.integers(1, 5))):
        above = draw(st.sampled_from([(), *(asked.messages for asked in requests)]))
        kept = list(above[: draw(st.integers(0, len(above)))])
        if kept and draw(st.booleans()):
            kept[draw(st.integers(0, len(kept) - 1))] = draw(MESSAGE)
        header = draw(st.sampled_from(sorted(HEADERS)))
        params = draw(st.dictionaries(st.sampled_from(["model", "temperature"]), JSON))
        messages = (*kept, *draw(st.lists(MESSAGE, max_size=3)))
        pinned = HEADERS[header]
        requests.append(Request(system=pinned.system, tools=pinned.tools, messages=messages, params=params))
    return requests


def class_of(header):
    return next(name for name, pinned in HEADERS.items() if pinned == header)


def calls_of(requests, kit):
    return [
        RecordedCall(at, place.lane, place.parent, asked, kit.answer(), f"session.jsonl#{at}")
        for at, (asked, place) in enumerate(zip(requests, lineage(requests), strict=True))
    ]


@given(requests=runs())
@settings(deadline=None, max_examples=150)
def test_rows_and_requests_turn_into_one_another_without_loss(kit, requests):
    text = format_rows(requests_to_rows(calls_of(requests, kit), class_of))
    rows = parse_rows(text, NAME)
    again = rows_to_requests(rows, HEADERS, NAME)
    assert again == tuple(requests)
    assert [msgspec.json.encode(one, order="sorted") for one in again] == [
        msgspec.json.encode(one, order="sorted") for one in requests
    ]
    assert format_rows(rows) == text


def rows_of(kit, *requests):
    rows = requests_to_rows(calls_of(requests, kit), lambda header: "main")
    return [json.loads(line) for line in format_rows(rows).splitlines()]


def test_a_row_is_what_the_call_appended(kit):
    first, second = rows_of(kit, kit.request("u a"), kit.request("u a", "a b", "t c"))
    assert list(first) == ["call", "lane", "parent", "source", "header", "params", "append"]
    assert (first["parent"], second["parent"], second["lane"]) == (None, 0, 0)
    assert [message["role"] for message in second["append"]] == ["assistant", "tool"]


def test_a_dropped_signature_is_one_line_and_not_a_dump(kit):
    first, second = kit.request("u a", "c ls", "t x"), kit.request("u a", "c ls", "t x", "a done", "u on")
    thought, call = second.messages[1].content
    bare = msgspec.structs.replace(
        second.messages[1], content=(msgspec.structs.replace(thought, signature=msgspec.UNSET), call)
    )
    second = msgspec.structs.replace(second, messages=(second.messages[0], bare, *second.messages[2:]))
    _, row = rows_of(kit, first, second)
    assert row["rewritten"] == [{"index": 1, "field": "/content/0/signature"}]
    assert len(row["append"]) == 2 and "keep" not in row


def test_a_compacted_history_keeps_what_it_kept(kit):
    long = ("u a", "c ls", "t x", "c cat", "t y")
    *_, row = rows_of(kit, kit.request(*long), kit.request("u a", "u so far", *long[3:]))
    assert (row["parent"], row["keep"], len(row["append"])) == (0, 1, 3)


ROW = {
    "call": 0,
    "lane": 0,
    "parent": None,
    "source": "session.jsonl#0",
    "header": "main",
    "params": {},
    "append": [{"role": "user", "content": [{"type": "text", "text": "a"}]}],
}
WRONG_ROWS = {
    "unknown key": ([ROW | {"extra": 1}], 1, "extra"),
    "missing key": ([{key: value for key, value in ROW.items() if key != "lane"}], 1, "lane"),
    "call out of order": ([ROW, ROW | {"call": 2}], 2, "call is 2 where 1 was due"),
    "parent not before": ([ROW | {"parent": 0}], 1, "parent 0 does not stand before"),
    "parent negative": ([ROW, ROW | {"call": 1, "parent": -1}], 2, "parent -1 does not stand before"),
    "rewritten with more keys": ([ROW | {"rewritten": [{"index": 0, "field": "", "x": 1}]}], 1, "x"),
}


@pytest.mark.parametrize("name", WRONG_ROWS)
def test_a_wrong_row_is_refused_at_its_line(name):
    rows, line, what = WRONG_ROWS[name]
    with pytest.raises(FixtureError, match=what) as caught:
        parse_rows("".join(json.dumps(row) + "\n" for row in rows), NAME)
    assert (caught.value.path, caught.value.line) == (NAME, line)


CHILD = ROW | {"call": 1, "parent": 0}
UNFOLDABLE = {
    "class nobody pins": ([ROW | {"header": "other"}], "header class 'other'"),
    "keeps more": ([ROW, CHILD | {"keep": 2}], "keeps 2 messages of a parent that has 1"),
    "keeps fewer than none": ([ROW, CHILD | {"keep": -1}], "keeps -1"),
    "rewrites what is not kept": (
        [ROW, CHILD | {"rewritten": [{"index": 1, "field": "/role"}]}],
        "message 1 is not among",
    ),
    "rewrites what is not there": ([ROW, CHILD | {"rewritten": [{"index": 0, "field": "/no"}]}], "not a change"),
    "rewrites into no message": (
        [ROW, CHILD | {"rewritten": [{"index": 0, "field": "/role", "value": "robot"}]}],
        "not a message",
    ),
    "rewrites by word in a list": (
        [ROW, CHILD | {"rewritten": [{"index": 0, "field": "/content/first/text", "value": "b"}]}],
        "not a change",
    ),
    "appends no message": ([ROW | {"append": [{"role": "user"}]}], "not a message"),
}


@pytest.mark.parametrize("name", UNFOLDABLE)
def test_rows_that_stand_for_no_request_are_refused(name):
    rows, what = UNFOLDABLE[name]
    parsed = parse_rows("".join(json.dumps(row) + "\n" for row in rows), NAME)
    with pytest.raises(FixtureError, match=what) as caught:
        rows_to_requests(parsed, {"main": Header()}, NAME)
    assert caught.value.line == len(rows)
