"""Wire invariants on request bodies: what breaks each, and what does not."""

import json
from collections.abc import Sequence

import pytest
from llm_dialects.chunks import TextBlock, ToolCallBlock
from llm_dialects.requests import Message, Request, ToolResultPart
from session_snapshot.invariants import SentCall, check_wire, first_difference, pairing_faults, rewrites

USER = Message(role="user", content=(TextBlock(text="hi"),))


def asks(*ids: str) -> Message:
    return Message(
        role="assistant", content=tuple(ToolCallBlock(id=one, name=f"t-{one}", arguments="{}") for one in ids)
    )


def told(*ids: str) -> Message:
    return Message(role="tool", content=tuple(ToolResultPart(call_id=one, content=()) for one in ids))


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([USER], []),
        ([USER, asks("a", "b"), told("b"), told("a"), USER], []),
        ([USER, asks("a", "b"), told("b", "a")], []),
        ([USER, asks("a"), told("a"), asks("a"), told("a")], []),
        ([USER, asks("a")], ["the history ends without the results of ['t-a']"]),
        ([USER, asks("a", "b"), told("a")], ["the history ends without the results of ['t-b']"]),
        ([USER, asks("a"), USER, told("a")], [
            "message 2 (user) stands where the results of ['t-a'] should follow",
            "message 3 holds a result for 'a', which no assistant message before it asked for",
        ]),
        ([USER, told("x")], ["message 1 holds a result for 'x', which no assistant message before it asked for"]),
        ([USER, asks("a"), told("a"), told("a")], [
            "message 3 holds a result for 'a', which no assistant message before it asked for"
        ]),
    ],
)  # fmt: skip
def test_results_follow_their_calls(messages: Sequence[Message], said: list[str]) -> None:
    assert list(pairing_faults(messages)) == said


def call(number: int, body: object, parent: int | None = None, kept: int = 0, messages: int = 1, lane: int = 0):
    request = Request(system=(), tools=(), messages=(USER,) * messages, params={})
    return SentCall(number, lane, parent, kept, request, body if isinstance(body, bytes) else json.dumps(body).encode())


def body(first: str, *more: str, model: str = "m", tools: object = (), key: str = "messages") -> dict:
    return {"model": model, key: [{"content": text} for text in (first, *more)], "tools": list(tools)}


def checks(calls: Sequence[SentCall], compactions: int = 0) -> list[tuple[str, int]]:
    return [(breach.check, breach.call) for breach in check_wire(calls, compactions)]


@pytest.mark.parametrize(
    ("bodies", "broken"),
    [
        ([body("a"), body("a", "b"), body("a", "b", "c")], []),
        ([body("a"), body("x", "b"), body("x", "b", "c")], []),
        ([body("a"), body("a", "b"), body("x", "b", "c")], [("leading-message", 2)]),
        ([body("a", model="m"), body("a", model="n")], [("envelope", 1)]),
        ([body("a", tools=[1]), body("a", tools=[2])], [("tools", 1)]),
        ([body("a", tools=[1, 2]), body("a", tools=[2, 1])], [("tools", 1)]),
        ([body("a", key="input"), body("a", "b", key="input"), body("x", key="input")], [("leading-message", 2)]),
        ([{"contents": [1]}, {"contents": [1]}, {"contents": [2]}], [("leading-message", 2)]),
        ([{"input": "text"}, {"input": "other"}, {"input": "third"}], []),
        ([{"messages": []}, {}, {"messages": []}], [("envelope", 1), ("envelope", 2)]),
        ([b'{"model":"m","messages":[1]}', b'{"model": "m","messages":[1]}'], [("envelope", 1)]),
    ],
)  # fmt: skip
def test_what_is_stable_in_a_lane(bodies: Sequence[object], broken: list[tuple[str, int]]) -> None:
    assert checks([call(number, one) for number, one in enumerate(bodies)]) == broken


def test_lanes_do_not_mix() -> None:
    calls = [call(0, body("a", model="m")), call(1, body("b", model="n"), lane=1), call(2, body("a", model="m"))]
    assert checks(calls) == []


def rewritten() -> list[SentCall]:
    return [
        call(0, body("a", "b"), messages=2),
        call(1, body("a", "b"), parent=0, kept=2, messages=2),
        call(2, body("x"), parent=1, kept=0, messages=1),
    ]


@pytest.mark.parametrize(
    ("compactions", "broken"), [(0, [("append-only", 2), ("leading-message", 2)]), (1, []), (2, [])]
)
def test_a_declared_compaction_may_rewrite(compactions: int, broken: list[tuple[str, int]]) -> None:
    assert checks(rewritten(), compactions) == broken
    assert rewrites(rewritten()) == 1


def test_a_compaction_forgives_no_other_call() -> None:
    calls = [*rewritten(), call(3, body("y"), parent=2, kept=1)]
    assert checks(calls, 1) == [("leading-message", 3)]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [(b"abc", b"abd", "at byte 2, 'abc' became 'abd'"), (b"ab", b"abc", "at byte 2, 'ab' became 'abc'")],
)
def test_first_difference(before: bytes, after: bytes, said: str) -> None:
    assert first_difference(before, after) == said


def test_first_difference_far_in() -> None:
    assert first_difference(b"x" * 100 + b"1", b"x" * 100 + b"2").startswith("at byte 100, 'xxxxxxxxxxxxxxxxxxxx1'")
