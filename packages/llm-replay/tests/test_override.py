import json

import pytest
from llm_dialects.entries import Hang, Throw
from llm_replay import FixtureError, apply_override, parse_override

HANG = {"kind": "hang"}
THROW = {"kind": "throw", "chunks": [], "message": "m", "code": "AUTH", "accepted": True}


def parse(value):
    return parse_override(json.dumps(value), "replay.override.json")


def patches(*items):
    return {"patches": [{"at": at, "entry": HANG, **({} if lane is None else {"lane": lane})} for at, lane in items]}


def test_an_array_replaces_lane_0_and_no_other():
    lanes = apply_override([["a", "b"], ["c"]], parse([HANG, THROW]))
    assert lanes == ((Hang(), Throw(chunks=(), message="m", code="AUTH", accepted=True)), ("c",))


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([(0, None)], [[Hang(), "b"], ["c"]]),
        ([(1, 0)], [["a", Hang()], ["c"]]),
        ([(2, None)], [["a", "b", Hang()], ["c"]]),
        ([(3, None), (2, None)], [["a", "b", Hang(), Hang()], ["c"]]),
        ([(0, 1), (1, 1), (0, 0)], [[Hang(), "b"], [Hang(), Hang()]]),
        ([], [["a", "b"], ["c"]]),
    ],
)
def test_patches_swap_or_append_in_any_lane(items, expected):
    assert [list(lane) for lane in apply_override([["a", "b"], ["c"]], parse(patches(*items)))] == expected


@pytest.mark.parametrize(("items", "what"), [([(3, None)], "lane 0, which has 2"), ([(0, 2)], "names lane 2")])
def test_a_patch_beyond_the_recording_is_refused(items, what):
    with pytest.raises(FixtureError, match=what) as caught:
        apply_override([["a", "b"], ["c"]], parse(patches(*items)))
    assert str(caught.value).startswith("replay.override.json: ")


WRONG = {
    "document a string": ("x", "document: must be"),
    "document with more keys": ({"patches": [], "note": 1}, "document: must be"),
    "patches an object": ({"patches": {}}, "document: must be"),
    "unknown kind": ([{"kind": "say", "text": "x"}], "entries[0].kind: 'say' is none of"),
    "unknown key": ([HANG, HANG | {"x": 1}], "entries[1]: unknown key 'x'"),
    "empty message": ([THROW | {"message": ""}], "entries[0].message"),
    "empty code": ([THROW | {"code": ""}], "entries[0].code"),
    "throw without chunks": ([{"kind": "throw", "message": "m", "code": "c"}], "entries[0]: the key 'chunks'"),
    "unknown chunk": ([{"kind": "chunks", "chunks": [{"type": "audio"}]}], "entries[0].chunks[0]"),
    "patch without entry": ({"patches": [{"at": 0}]}, "patches[0]: must be an object with at, entry"),
    "patch with more keys": ({"patches": [{"at": 0, "entry": HANG, "x": 1}]}, "patches[0]: must be"),
    "at negative": (patches((-1, None)), "patches[0].at"),
    "at true": (patches((True, None)), "patches[0].at"),
    "at a float": (patches((1.0, None)), "patches[0].at"),
    "at beyond safety": (patches((2**53, None)), "patches[0].at"),
    "lane null": ({"patches": [{"at": 0, "entry": HANG, "lane": None}]}, "patches[0].lane"),
    "duplicate": (patches((0, None), (1, None), (0, 0)), "patches[2]: call 0 of lane 0 is patched twice"),
    "wrong entry in a patch": ({"patches": [{"at": 0, "entry": {}}]}, "patches[0].entry.kind"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_override_is_refused_with_its_place(name):
    value, place = WRONG[name]
    with pytest.raises(FixtureError) as caught:
        parse(value)
    assert f"replay.override.json: invalid override: {place}" in str(caught.value)


def test_an_override_that_is_not_json_is_refused():
    with pytest.raises(FixtureError, match="not JSON"):
        parse_override("[", "replay.override.json")
