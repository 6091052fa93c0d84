"""The canonical order: what is joined, folded, moved, kept and dropped, and what stays where it was."""

import pytest
from normalizer import ORDERINGS, Json, Ordering, OrderRule, canonical_order, frame_kind, traced_order


def update(kind: str, **members: Json) -> Json:
    return {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": "s", "update": {"sessionUpdate": kind, **members}},
    }


def said(text: str, kind: str = "agent_message_chunk", **members: Json) -> Json:
    return update(kind, content={"type": "text", "text": text}, **members)


def call(status: str | None = None, kind: str = "tool_call_update", toolCallId: str = "c1", **members: Json) -> Json:
    return update(kind, toolCallId=toolCallId, **({"status": status} if status else {}), **members)


DONE: Json = {"jsonrpc": "2.0", "id": 1, "result": {}}
COMMANDS = update("available_commands_update")
USED = [update("usage_update", used=number) for number in range(3)]

ROWS: list[tuple[str, list[Json], list[Json]]] = [
    ("chunks are joined", [said(""), said("Hel"), said("lo")], [said("Hello")]),
    (
        "another kind is not",
        [said("a"), said("b", "agent_thought_chunk")],
        [said("a"), said("b", "agent_thought_chunk")],
    ),
    (
        "another message is not",
        [said("a", messageId="1"), said("b", messageId="2")],
        [said("a", messageId="1"), said("b", messageId="2")],
    ),
    ("another _meta is not", [said("a", _meta={"x": 1}), said("b")], [said("a", _meta={"x": 1}), said("b")]),
    ("nor across another frame", [said("a"), COMMANDS, said("b")], [said("a"), COMMANDS, said("b")]),
    ("nor across a response", [said("a"), DONE, said("b")], [said("a"), DONE, said("b")]),
    (
        "pending states fold into the last, none of their members lost",
        [call("pending", "tool_call", title="bash", kind2=1), call(title="ls"), call("pending", rawInput={"c": "ls"})],
        [call("pending", "tool_call", title="ls", kind2=1, rawInput={"c": "ls"})],
    ),
    (
        "a call that went on does not fold",
        [call("pending", "tool_call"), call("in_progress"), call(title="x"), call("completed")],
        [call("pending", "tool_call"), call("in_progress"), call(title="x"), call("completed")],
    ),
    (
        "another call does not fold",
        [call("pending"), call("pending", toolCallId="c2")],
        [call("pending"), call("pending", toolCallId="c2")],
    ),
    (
        "a call that goes back to pending has been further on",
        [call("completed", "tool_call"), call("pending"), call("in_progress"), call("pending", "tool_call")],
        [call("completed", "tool_call"), call("pending"), call("in_progress"), call("pending", "tool_call")],
    ),
    (
        "nor what stands apart",
        [call("pending"), COMMANDS, call("pending")],
        [call("pending"), COMMANDS, call("pending")],
    ),
    (
        "a call stays what it was over a step",
        [call("in_progress"), DONE, call(title="x"), call(title="y")],
        [call("in_progress"), DONE, call(title="x"), call(title="y")],
    ),
]


@pytest.mark.parametrize(("why", "before", "after"), ROWS, ids=[row[0] for row in ROWS])
def test_always(why: str, before: list[Json], after: list[Json]) -> None:
    kept = str(before)
    assert canonical_order(before) == after
    assert canonical_order(after) == after
    assert str(before) == kept
    assert canonical_order(before, Ordering(expand=True)) == before


DECLARED = [
    (OrderRule("available_commands_update", "float"), [COMMANDS, said("a"), DONE], [said("a"), DONE, COMMANDS]),
    (
        OrderRule("available_commands_update", "float"),
        [said("a"), COMMANDS, said("b"), DONE],
        [said("ab"), DONE, COMMANDS],
    ),
    (OrderRule("usage_update", "last"), [*USED[:2], DONE, USED[2]], [USED[1], DONE, USED[2]]),
    (OrderRule("usage_update", "drop"), [USED[0], said("a"), USED[1], said("b"), DONE], [said("ab"), DONE]),
    (OrderRule("response", "drop"), [DONE, COMMANDS], [COMMANDS]),
]


@pytest.mark.parametrize(("rule", "before", "after"), DECLARED)
def test_declared(rule: OrderRule, before: list[Json], after: list[Json]) -> None:
    assert canonical_order(before, Ordering((rule,)), steps=[len(before)]) == after


def test_every_ordering_has_a_row() -> None:
    assert {rule.order for rule, _, _ in DECLARED} == set(ORDERINGS)


def test_a_frame_floats_to_the_end_of_its_own_step() -> None:
    rule = Ordering((OrderRule("available_commands_update", "float"),))
    frames = [COMMANDS, DONE, said("a"), DONE]
    assert canonical_order(frames, rule) == [DONE, COMMANDS, said("a"), DONE]
    assert canonical_order(frames, rule, steps=[1, 3]) == frames
    assert canonical_order([*frames, COMMANDS], rule, steps=[2, 3]) == [DONE, COMMANDS, said("a"), DONE, COMMANDS]
    with pytest.raises(ValueError, match="steps of 3 frames, but 4"):
        canonical_order(frames, rule, steps=[3])


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (DONE, "response"),
        (COMMANDS, "available_commands_update"),
        ({"id": 0, "method": "fs/read"}, "fs/read"),
        ({}, "response"),
    ],
)
def test_kind(frame: Json, kind: str) -> None:
    assert frame_kind(frame) == kind


@pytest.mark.parametrize(
    ("rules", "frames", "sources"),
    [
        ([], [said("a"), said("b"), DONE, said("c")], [(0, 1), (2,), (3,)]),
        ([], [call("pending"), call("pending"), call("in_progress")], [(0, 1), (2,)]),
        ([OrderRule("available_commands_update", "float")], [said("a"), COMMANDS, said("b")], [(0, 2), (1,)]),
        ([OrderRule("usage_update", "drop")], [USED[0], said("a"), USED[1], said("b")], [(1, 3)]),
        ([OrderRule("usage_update", "last")], [USED[0], USED[1], DONE], [(1,), (2,)]),
    ],
)
def test_every_frame_knows_where_it_came_from(rules: list[OrderRule], frames: list[Json], sources: list[Json]) -> None:
    traced = traced_order(frames, Ordering(tuple(rules)), steps=[len(frames)])
    assert [one.sources for one in traced] == sources
    assert [one.frame for one in traced] == canonical_order(frames, Ordering(tuple(rules)), steps=[len(frames)])
