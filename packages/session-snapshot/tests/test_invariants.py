"""Wire invariants on request bodies: what breaks each, and what does not."""

import json
from collections.abc import Sequence

import pytest
from llm_dialects.chunks import TextBlock, ToolCallBlock, Usage
from llm_dialects.requests import Message, Request, ToolResultPart
from session_snapshot.invariants import (
    InContext,
    Logged,
    SentCall,
    Spent,
    check_wire,
    first_difference,
    pairing_faults,
    rewrites,
)

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


# ── usage ───────────────────────────────────────────────────────────────────────────────────────────────────────────

PLAIN, CACHED = Usage(100, 10), Usage(40, 8, cache_read_tokens=60, reasoning_tokens=5)
NOT_TOLD = None


def told(*usages: Usage | None, lanes: Sequence[int] = ()) -> list[SentCall]:
    request = Request(system=(), tools=(), messages=(USER,), params={})
    numbered = zip(usages, lanes or [0] * len(usages), strict=True)
    return [SentCall(at, lane, None, 0, request, b"{}", usage) for at, (usage, lane) in enumerate(numbered)]


def said(calls: Sequence[SentCall], *claims: object) -> list[str]:
    return [f"{breach.check}: {breach.what}" for breach in check_wire(calls, 0, claims)]


@pytest.mark.parametrize(
    ("usages", "logged", "breaches"),
    [
        ([PLAIN], [PLAIN], 0),
        ([PLAIN, CACHED], [CACHED, PLAIN], 0),
        ([PLAIN, PLAIN], [PLAIN], 0),
        ([CACHED], [Usage(100, 8)], 0),
        ([PLAIN], [PLAIN, PLAIN], 1),
        ([PLAIN], [Usage(100, 11)], 1),
        ([PLAIN], [Usage(99, 10)], 1),
        ([NOT_TOLD], [PLAIN], 1),
    ],
)
def test_a_log_counts_each_call_as_it_was_told(usages: Sequence[Usage], logged: Sequence[Usage], breaches: int) -> None:
    found = said(told(*usages), *(Logged("session.jsonl: assistant/message", usage) for usage in logged))
    assert len(found) == breaches
    assert all(one.startswith("usage: session.jsonl: assistant/message says ") for one in found)


@pytest.mark.parametrize(
    ("usages", "lanes", "claim", "honest"),
    [
        ([PLAIN, PLAIN], [], (100, 10, 110), True),
        ([PLAIN, PLAIN], [], (200, 20, 220), True),
        ([PLAIN, PLAIN], [], (200, 20, None), True),
        ([PLAIN, CACHED], [], (40, 8, 108), True),
        ([PLAIN, CACHED], [], (100, 3, 48), True),
        ([PLAIN, Usage(7, 1), PLAIN], [0, 1, 0], (200, 20, None), True),
        ([PLAIN, Usage(7, 1), PLAIN], [0, 1, 0], (107, 11, None), True),
        ([PLAIN, Usage(7, 1), PLAIN], [0, 1, 0], (7, 1, None), True),
        ([PLAIN, NOT_TOLD, PLAIN], [], (200, 20, None), True),
        ([PLAIN, PLAIN], [], (300, 30, 330), False),
        ([PLAIN, PLAIN], [], (100, 20, 120), False),
        ([PLAIN, PLAIN], [], (200, 20, 221), False),
        ([PLAIN], [], (0, 0, 0), False),
        ([NOT_TOLD], [], (100, 10, None), False),
        ([], [], (100, 10, None), False),
    ],
)
def test_a_response_tells_what_the_last_calls_cost(
    usages: Sequence[Usage | None], lanes: Sequence[int], claim: tuple[int, int, int | None], honest: bool
) -> None:
    found = said(told(*usages, lanes=lanes), Spent("stdout line 9", len(usages), *claim))
    assert [one.partition(" says ")[0] for one in found] == ([] if honest else ["usage: stdout line 9"])


def test_calls_that_come_later_are_not_spent_yet() -> None:
    assert said(told(PLAIN, PLAIN), Spent("x", 1, 200, 20)) == [
        "usage: x says 200 in, 20 out; it was told 100 in, 10 out"
    ]


@pytest.mark.parametrize(
    ("usages", "used", "honest"),
    [
        ([PLAIN], 100, True),
        ([PLAIN], 101, True),
        ([PLAIN], 110, True),
        ([PLAIN], 111, False),
        ([PLAIN], 99, False),
        ([CACHED], 40, True),
        ([CACHED], 108, True),
        ([CACHED], 109, False),
        ([NOT_TOLD], 8858, True),
    ],
)
def test_the_context_holds_a_prompt_and_what_there_is_of_its_answer(
    usages: Sequence[Usage | None], used: int, honest: bool
) -> None:
    found = said(told(*usages), InContext("stdout line 9", 1, used))
    assert [one.partition(" says ")[0] for one in found] == ([] if honest else ["context: stdout line 9"])
