import json

import pytest
from llm_replay import FixtureError, Header, Rows, Script, Unfinished, build_recording, parse_override, parse_rows

ROW = {"lane": 0, "header": "main", "params": {}, "append": []}


def rows(*sources, lanes=None, headers=None):
    """Rows that name these answers, each call under the one before it in its lane."""
    lanes = lanes or [0] * len(sources)
    lines = [
        json.dumps(ROW | {"call": at, "parent": None, "source": source, "lane": lane})
        for at, (source, lane) in enumerate(zip(sources, lanes, strict=True))
    ]
    return Rows(parse_rows("\n".join(lines), "requests.golden.jsonl"), headers=headers)


def override(value):
    return parse_override(json.dumps(value), "replay.override.json")


HANG = {"kind": "hang"}


@pytest.fixture
def scripts(kit):
    return [
        Script(source="session.jsonl", entries=(kit.answer("a"), kit.answer("b"))),
        Script(source="session.1.jsonl", entries=(kit.answer("c"),), primary=False),
    ]


def answers(recording):
    """What answers each call: its text, or the kind of failure."""
    return [
        call.entry.chunks[0].block.text
        if call.entry.chunks and hasattr(call.entry.chunks[0], "block")
        else type(call.entry).__name__
        for call in recording.calls
    ]


def test_without_rows_a_script_is_a_lane(scripts):
    recording = build_recording(scripts)
    assert [(call.lane, call.parent, call.source, call.request) for call in recording.calls] == [
        (0, None, "session.jsonl#0", None),
        (0, 0, "session.jsonl#1", None),
        (1, None, "session.1.jsonl#0", None),
    ]


def test_rows_order_the_calls_of_all_files(scripts):
    recording = build_recording(
        scripts, rows("session.jsonl#0", "session.1.jsonl#0", "session.jsonl#1", lanes=[0, 1, 0])
    )
    assert answers(recording) == ["a", "c", "b"]
    assert not any(call.headed for call in recording.calls)


def test_headers_at_hand_are_put_into_the_requests(scripts):
    header = Header(system=("You are an agent.",))
    recording = build_recording(scripts[1:], rows("session.1.jsonl#0", headers={"main": header}))
    (call,) = recording.calls
    assert call.request.system == header.system and call.headed and call.header == "main"


OVERRIDES = {
    "replaced": ([HANG, HANG, HANG], None, ["Hang", "Hang", "Hang", "c"]),
    "swapped": ({"patches": [{"at": 1, "entry": HANG}]}, None, ["a", "Hang", "c"]),
    "appended": ({"patches": [{"at": 1, "entry": HANG, "lane": 1}]}, None, ["a", "b", "c", "Hang"]),
    "replaced, by rows": (
        [HANG, HANG],
        (["session.jsonl#0", "replay.override.json#1", "session.1.jsonl#0"], [0, 0, 1]),
        ["Hang", "Hang", "c"],
    ),
    "swapped, by rows": (
        {"patches": [{"at": 0, "entry": HANG, "lane": 1}]},
        (["session.jsonl#0", "session.1.jsonl#0", "session.jsonl#1"], [0, 1, 0]),
        ["a", "Hang", "b"],
    ),
    "a failure between, by rows": (
        {"patches": [{"at": 1, "entry": HANG}]},
        (["session.jsonl#0", "replay.override.json#0", "session.jsonl#1", "session.1.jsonl#0"], [0, 0, 0, 1]),
        ["a", "Hang", "b", "c"],
    ),
}


@pytest.mark.parametrize("name", OVERRIDES)
def test_overrides_answer_calls_of_a_lane(scripts, name):
    document, named, expected = OVERRIDES[name]
    asked = None if named is None else rows(*named[0], lanes=named[1])
    assert answers(build_recording(scripts, asked, override(document))) == expected


def test_an_unfinished_call_needs_its_override(kit):
    broken = Script("session.jsonl", (kit.answer("a"), Unfinished((), "turn 1, step 2", "session.jsonl", 7)))
    patch = override({"patches": [{"at": 1, "entry": HANG}]})
    for asked in (None, rows("session.jsonl#0", "session.jsonl#1")):
        with pytest.raises(FixtureError, match="turn 1, step 2 ended without") as caught:
            build_recording([broken], asked)
        assert caught.value.line == 7
        assert answers(build_recording([broken], asked, patch)) == ["a", "Hang"]


MISFITS = {
    "unknown source": ((["session.jsonl#0", "session.jsonl#9"], [0, 0]), None, "'session.jsonl#9' is no recorded"),
    "named twice": ((["session.jsonl#0", "session.jsonl#0"], [0, 0]), None, "answers twice"),
    "not named": ((["session.jsonl#0", "session.jsonl#1"], [0, 0]), None, "no row names .*'session.1.jsonl#0'"),
    "lane out of order": ((["session.jsonl#0", "session.jsonl#1"], [0, 2]), None, "lane 2 where 1"),
    "override without document": ((["replay.override.json#0"], [0]), None, "is no recorded answer"),
    "override without entry": (
        (["session.jsonl#0", "session.jsonl#1", "session.1.jsonl#0", "replay.override.json#0"], [0, 0, 1, 1]),
        {"patches": []},
        "which has no entry for this call",
    ),
    "too few replacements": (
        (["session.jsonl#0", "session.jsonl#1", "session.1.jsonl#0"], [0, 0, 1]),
        [HANG],
        "lane 0 has 1 answers",
    ),
    "patch that no call asks for": (
        (["session.jsonl#0", "session.jsonl#1", "session.1.jsonl#0"], [0, 0, 1]),
        {"patches": [{"at": 1, "entry": HANG, "lane": 1}]},
        "lane 1 has 2 answers",
    ),
    "patch without any call": (([], []), {"patches": [{"at": 0, "entry": HANG}]}, "no row names"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_files_that_do_not_fit_together_are_refused(scripts, name):
    (sources, lanes), document, what = MISFITS[name]
    with pytest.raises(FixtureError, match=what):
        build_recording(scripts, rows(*sources, lanes=lanes), None if document is None else override(document))
