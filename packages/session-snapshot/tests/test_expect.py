"""``[expect]`` against facts: each key breached and kept, each breach named by its key."""

import pytest
from llm_dialects.chunks import BlockEnd, TextBlock, ToolCallBlock
from llm_dialects.entries import Chunks, Hang, Throw
from session_snapshot.expect import CHECKS, Facts, check_expect, facts_of_entries
from session_snapshot.scenario import Expect

FACTS = Facts(["bash", "read"], "It is done.", 2, ["AUTH"], [0, 1], "end_turn", 0)
KEPT = Expect(error_codes=["AUTH"], exit_codes=[0, 1])


def expect(**keys) -> Expect:
    return Expect(**{"error_codes": ["AUTH"], "exit_codes": [0, 1]} | keys)


@pytest.mark.parametrize(
    "kept",
    [
        expect(),
        expect(tools_called=["bash", "read"]),
        expect(tools_not_called=["write"]),
        expect(exit_codes=[1, 0, 7]),
        expect(stop_reason="end_turn"),
        expect(answer_contains=["done", "It"]),
        expect(model_calls=2),
    ],
)
def test_what_is_as_expected(kept: Expect) -> None:
    assert check_expect(kept, FACTS) == []


BOTH = "['bash', 'read']"
BREACHES = [
    ("tools_called", expect(tools_called=["read", "bash"]), "expected ['read', 'bash'], the model called " + BOTH),
    ("tools_called", expect(tools_called=[]), "expected [], the model called ['bash', 'read']"),
    ("tools_not_called", expect(tools_not_called=["read"]), "the model called 'read'"),
    ("exit_codes", expect(exit_codes=[0]), "a tool ended with 1, allowed are [0]"),
    ("stop_reason", expect(stop_reason="cancelled"), "expected 'cancelled', got 'end_turn'"),
    ("error_codes", expect(error_codes=None), "expected [], got ['AUTH']"),
    ("error_codes", expect(error_codes=["AUTH", "AUTH"]), "expected ['AUTH', 'AUTH'], got ['AUTH']"),
    ("answer_contains", expect(answer_contains=["do", "DONE"]), "'DONE' is not in the answer 'It is done.'"),
    ("model_calls", expect(model_calls=0), "expected 0, there are 2"),
    ("compactions", expect(compactions=1), "expected 1, there were 0"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "broken", "said"), BREACHES)
def test_what_is_not(key: str, broken: Expect, said: str) -> None:
    assert check_expect(broken, FACTS) == [f"{key}: {said}"]


def test_every_key_can_be_breached() -> None:
    assert {key for key, _, _ in BREACHES} == {check.__name__ for check in CHECKS} == set(Expect.__struct_fields__)


def test_what_the_evidence_cannot_tell_breaches_nothing() -> None:
    facts = Facts([], "", 1, [])
    assert check_expect(Expect(stop_reason="end_turn", exit_codes=[], compactions=3), facts) == []


def test_facts_of_a_recording() -> None:
    spoken = Chunks(chunks=(BlockEnd(index=0, block=TextBlock(text="one")), BlockEnd(index=1, block=bash())))
    failed = Throw(chunks=(BlockEnd(index=0, block=TextBlock(text="two")),), message="m", code="AUTH")
    facts = facts_of_entries([spoken, failed, Hang()])
    assert facts == Facts(["bash"], "one\ntwo\npartial", 3, ["AUTH"])


def bash() -> ToolCallBlock:
    return ToolCallBlock(id="c", name="bash", arguments="{}")
