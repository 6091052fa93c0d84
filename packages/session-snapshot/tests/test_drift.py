"""What kind a change is, and what one change across many scenarios looks like."""

import json

import pytest
from session_snapshot.drift import Change, changes_between, group_lines, name_of


def lines(*values: object) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def update(kind: str, **more: object) -> dict:
    return {"method": "session/update", "params": {"update": {"sessionUpdate": kind} | more}}


START, END = {"type": "turn/start", "data": {}}, {"type": "turn/end", "data": {}}


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ([START], [START], []),
        ([{"type": "a", "time": 1}], [{"type": "a", "time": 2}], [("clock", "/time changed")]),
        ([{"type": "a", "data": {"durationMs": 1}}], [{"type": "a", "data": {"durationMs": 9}}],
         [("clock", "/data/durationMs changed")]),
        ([{"id": "{{x:1}}"}], [{"id": "{{x:2}}"}], [("identity", "/id changed")]),
        ([START, END], [END, START], [("order", "the same rows in another order")]),
        ([START, END], [START, update("plan"), END], [("additive", "event 'plan' added")]),
        ([START, update("plan"), END], [START, END], [("semantic", "event 'plan' removed")]),
        ([{"text": "read the whole file now"}], [{"text": "read the entire file now"}], [("wording", "/text changed")]),
        ([{"text": "yes"}], [{"text": "no"}], [("semantic", "/text changed")]),
        ([{"n": 1}], [{"n": 2}], [("semantic", "/n changed")]),
        ([{"n": 1}], [{"n": 1, "m": 2}], [("semantic", "/m added")]),
    ],
)  # fmt: skip
def test_kinds(before: list, after: list, changes: list[tuple[str, str]]) -> None:
    found = changes_between("stdout", lines(*before), lines(*after))
    assert [(change.kind, change.phrase) for change in found] == changes


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"type": "turn/end"}, "event 'turn/end'"),
        (update("plan"), "event 'plan'"),
        ({"method": "session/request_permission", "id": 1, "params": {}}, "event 'session/request_permission'"),
        ({"method": "odd", "params": [1]}, "event 'odd'"),
        ({"id": 1, "result": None}, "response"),
        ({"call": 3}, "call 3"),
        ([1], "row"),
    ],
)
def test_names(row: object, name: str) -> None:
    assert name_of(row) == name


def test_groups_the_most_shared_first_each_scenario_once() -> None:
    plan = Change("stdout", "additive", "event 'plan' added")
    text = Change("session", "wording", "/text changed")
    assert group_lines({"s/a": [text], "s/b": [plan, plan], "s/c": [plan]}) == [
        "additive: stdout: event 'plan' added, in 2 scenarios: s/b, s/c",
        "wording: session: /text changed, in s/a",
    ]
