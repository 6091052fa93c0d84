"""Trees as recording finds them; what replay does with them is tested with the player."""

import pytest
from llm_replay import lineage


def check_tree(calls, *expected):
    assert [(place.lane, place.parent, place.keep) for place in lineage(calls)] == list(expected)


def test_a_conversation_is_a_lane(kit):
    texts = ("u a", "c ls", "t x", "c cat", "t y", "a done", "u on")
    check_tree(
        [kit.request(*texts[:at]) for at in (1, 3, 5, 7)], (0, None, None), (0, 0, None), (0, 1, None), (0, 2, None)
    )


def test_an_identical_request_is_a_retry_after_a_failure_and_a_twin_after_an_answer(kit):
    asked = kit.request("u a")
    check_tree([kit.said(asked, kit.failed), kit.said(asked)], (0, None, None), (0, 0, None))
    check_tree([kit.said(asked), kit.said(asked)], (0, None, None), (1, None, None))
    check_tree([asked, asked], (0, None, None), (0, 0, None))


def test_another_session_never_retries_this_ones_call(kit):
    asked = kit.request("u a")
    check_tree([kit.said(asked, kit.failed, "k"), kit.said(asked, kit.failed, "l")], (0, None, None), (1, None, None))


def test_twins_go_on_from_the_answer_they_heard(kit):
    first = kit.request("u a")
    calls = [kit.said(first, kit.answer("x")), kit.said(first, kit.answer("y"))]
    calls += [kit.said(kit.request("u a", f"a {heard}", "u b")) for heard in "xy"]
    check_tree(calls, (0, None, None), (1, None, None), (0, 0, None), (1, 1, None))
    check_tree([*calls[:2], calls[3], calls[2]], (0, None, None), (1, None, None), (1, 1, None), (0, 0, None))


def test_twins_of_one_answer_go_on_each_by_itself(kit):
    first, second = kit.said(kit.request("u a")), kit.said(kit.request("u a", "a fine", "u b"))
    check_tree([first, first, second, second], (0, None, None), (1, None, None), (1, 1, None), (0, 0, None))


def test_a_retry_goes_on_from_the_last_attempt(kit):
    first, second = kit.request("u a"), kit.request("u a", "a fine", "u b")
    calls = [kit.said(first, kit.failed), kit.said(first, kit.failed), kit.said(first), kit.said(second)]
    check_tree(calls, (0, None, None), (0, 0, None), (0, 1, None), (0, 2, None))


def test_a_fork_opens_a_lane_under_its_parent(kit):
    calls = [kit.request("u a"), kit.request("u a", "a b", "u left"), kit.request("u a", "a b", "u right")]
    calls += [kit.request("u a", "a b", "u left", "a c", "u on"), kit.request("u a", "a b", "u right", "a c", "u on")]
    check_tree(calls, (0, None, None), (0, 0, None), (1, 0, None), (0, 1, None), (1, 2, None))


@pytest.mark.parametrize("title", [("u hi",), ("u hi", "a fine", "u name it")])
def test_a_title_call_has_a_lane_of_its_own(kit, title):
    calls = [
        kit.request("u hi"),
        kit.request(*title, tools=(), system=("Name it.",)),
        kit.request("u hi", "a fine", "u on"),
    ]
    parent = 0 if len(title) > 1 else None
    check_tree(calls, (0, None, None), (1, parent, None), (0, 0, None))


def test_a_prompt_after_a_cancelled_one_goes_on_without_an_answer(kit):
    check_tree([kit.request("u a"), kit.request("u a", "u b")], (0, None, None), (0, 0, None))


def test_a_compaction_that_keeps_the_opening_is_no_fork_of_it(kit):
    long = ("u a", "c ls", "t x", "c cat", "t y")
    calls = [kit.request(*long[:at]) for at in (1, 3, 5)]
    check_tree([*calls, kit.request("u a", "u so far", *long[3:])], *((0, at, None) for at in (None, 0, 1)), (0, 2, 1))


def test_a_compaction_that_keeps_nothing_opens_a_lane(kit):
    calls = [kit.request("u a"), kit.request("u a", "c ls", "t x"), kit.request("u so far: x")]
    check_tree(calls, (0, None, None), (0, 0, None), (1, None, None))


def test_a_second_session_with_the_same_context_is_an_opening(kit):
    calls = [
        kit.request("u context", "u a"),
        kit.request("u context", "u a", "c ls", "t x"),
        kit.request("u context", "u b"),
    ]
    check_tree(calls, (0, None, None), (0, 0, None), (1, None, None))


def test_the_canon_is_what_is_compared(kit):
    calls = [kit.request("u at 10:01"), kit.request("u at 10:02", "a b", "u c")]
    places = lineage(calls, lambda asked: kit.request("u at {{time}}", *(["a b", "u c"] * (len(asked.messages) > 1))))
    assert [place.parent for place in places] == [None, 0]
