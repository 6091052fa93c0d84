import msgspec
import pytest
from llm_dialects import Message, ReasoningBlock, ToolCallBlock
from llm_replay import Player, RecordedCall, Recording, Repeated, Served, Unrecorded


def calls_of(outcomes):
    """What each outcome says: the call, ``again N`` or ``none``."""
    names = {
        Served: lambda found: found.call.index,
        Repeated: lambda found: f"again {found.call.index}",
        Unrecorded: lambda found: "none",
    }
    return [names[type(found)](found) for found in outcomes]


def check_bound(player, requests, expected, left=()):
    outcomes = [player.ask(asked) for asked in requests]
    assert calls_of(outcomes) == expected
    assert [call.index for call in player.unconsumed()] == list(left)
    return outcomes


# ── The drift matrix: green for what means the same, red (and served) for what does not ─────────────────────────────

GREEN = {
    "the same": {},
    "key order": {"params": {"temperature": 0, "model": "m"}},
}
RED = {
    "system prompt": ({"system": ("You are a poet.",)}, "/system/0"),
    "tool schema": ({"tools": ("bash", "read")}, "/tools/1"),
    "no temperature": ({"params": {"model": "m"}}, "/params/temperature"),
    "temperature": ({"params": {"model": "m", "temperature": 1}}, "/params/temperature"),
}


GREEN = {
    "the same": {},
    "key order": {"params": {"temperature": 0, "model": "m"}},
}
RED = {
    "system prompt": ({"system": ("You are a poet.",)}, "/system/0"),
    "tool schema": ({"tools": ("bash", "read")}, "/tools/1"),
    "no temperature": ({"params": {"model": "m"}}, "/params/temperature"),
    "temperature": ({"params": {"model": "m", "temperature": 1}}, "/params/temperature"),
}


@pytest.fixture
def recorded(kit):
    return [kit.request("u do it", temperature=0), kit.request("u do it", "c ls", "t a b", temperature=0)]


@pytest.mark.parametrize("name", GREEN)
def test_equal_requests_are_green(kit, recorded, name):
    live = [msgspec.structs.replace(asked, **GREEN[name]) for asked in recorded]
    outcomes = check_bound(kit.player(*recorded), live, [0, 1])
    assert [(found.rank, found.differences) for found in outcomes] == [(1, ()), (1, ())]


@pytest.mark.parametrize("name", RED)
def test_a_drifted_header_is_served_and_red(kit, recorded, name):
    change, path = RED[name]
    tools = kit.request(tools=change["tools"]).tools if "tools" in change else recorded[0].tools
    live = [msgspec.structs.replace(asked, **(change | {"tools": tools})) for asked in recorded]
    outcomes = check_bound(kit.player(*recorded), live, [0, 1])
    assert [[found.path for found in outcome.differences] for outcome in outcomes] == [[path], [path]]
    assert [found.rank for found in outcomes] == [2, 2]


def test_superset_text_is_served_and_red(kit):
    player = kit.player(kit.request("u do it"), kit.request("u do it", "a fine", "u more"))
    live = [kit.request("u please do it now"), kit.request("u please do it now", "a fine", "u more")]
    first, second = check_bound(player, live, [0, 1])
    assert [found.path for found in first.differences] == ["/messages/0/content/0/text"]
    assert (second.rank, second.differences) == (3, ()), "a drift that is carried along is told once"


def test_added_history_is_served_and_red(kit):
    player = kit.player(kit.request("u do it"), kit.request("u do it", "a fine", "u more"))
    live = [kit.request("u note", "u do it"), kit.request("u note", "u do it", "a fine", "u also", "u more")]
    first, second = check_bound(player, live, [0, 1])
    assert [(found.kind, found.path) for found in first.differences] == [("added", "/messages/0")]
    assert [(found.kind, found.path) for found in second.differences] == [("added", "/messages/3")]
    assert second.rank == 4


def test_volatile_values_are_the_canons_business_and_token_numbers_nobodys(kit):
    def canon(asked):
        return msgspec.structs.replace(asked, system=("Today is {{date}}.",))

    recording = kit.record(kit.request("u in {{cwd}} as {{sessionId:3}}", system=("Today is {{date}}.",)))
    live = kit.request("u in {{cwd}} as {{sessionId}}", system=("Today is 2031-01-01.",))
    (found,) = check_bound(Player(recording, canon), [live], [0])
    assert (found.rank, found.differences) == (1, ())


def test_an_escaped_brace_is_not_a_token(kit):
    player = kit.player(kit.request("u say {{{{cwd:1}}"))
    (found,) = check_bound(player, [kit.request("u say {{{{cwd:2}}")], [0])
    assert found.differences, "the literal text {{cwd:1}} is not {{cwd:2}}"


def test_what_a_provider_signs_is_not_compared(kit):
    def signed(signature):
        thought = Message(role="assistant", content=(ReasoningBlock(text="hm", signature=signature),))
        return msgspec.structs.replace(kit.request("u a"), messages=(kit.message("u a"), thought, kit.message("u b")))

    (found,) = check_bound(kit.player(signed("x")), [signed("y")], [0])
    assert (found.rank, found.differences) == (1, ())


def test_what_the_agent_received_may_come_back_rewritten(kit):
    """Ids, reasoning and even the answer's text: the binding does not look at them, the differences tell."""
    calls = [kit.request(*("u a", "c ls", "t x", "c l", "t y")[:length]) for length in (1, 3, 5)]
    mine = Message(role="assistant", content=(ToolCallBlock(id="other", name="bash", arguments="ls"),))

    def rewritten(asked):
        messages = tuple(mine if message.role == "assistant" else message for message in asked.messages)
        return msgspec.structs.replace(asked, messages=messages)

    outcomes = check_bound(kit.player(*calls), [rewritten(asked) for asked in calls], [0, 1, 2])
    assert [found.rank for found in outcomes] == [1, 1, 1]
    assert all(found.path.startswith("/messages/1/") for found in outcomes[1].differences)
    assert all(found.path.startswith("/messages/3/") for found in outcomes[2].differences)


def test_tool_results_of_one_message_may_end_in_any_order(kit):
    player = kit.player(kit.request("u a", "c ls", "t x", "t y"))
    (found,) = check_bound(player, [kit.request("u a", "c ls", "t y", "t x")], [0])
    assert found.rank == 1


# ── Retries and repeats ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_retry_is_the_recorded_repeat_first_and_an_unrecorded_one_then(kit):
    asked = kit.request("u a")
    player = kit.player(kit.said(asked, kit.failed), kit.said(asked))
    outcomes = check_bound(player, [asked] * 4, [0, 1, "again 1", "again 1"])
    assert outcomes[2].of == outcomes[3].of == 1
    assert player.bound == ((0, 0), (1, 1)) and player.served == 2


def test_a_retry_under_drift_is_still_the_recorded_repeat(kit):
    asked, drifted = kit.request("u a"), kit.request("u a", temperature=1)
    check_bound(kit.player(kit.said(asked, kit.failed), kit.said(asked)), [drifted] * 3, [0, 1, "again 1"])


def test_a_retry_deep_in_a_drifted_conversation(kit):
    first, second = kit.request("u a"), kit.request("u a", "c ls", "t x")
    player = kit.player(kit.said(first), kit.said(second, kit.failed), kit.said(second))
    drifted = [kit.request("u a b"), *[kit.request("u a b", "c ls", "t x z")] * 3]
    check_bound(player, drifted, [0, 1, 2, "again 2"])


def test_a_repeat_takes_no_call_that_only_looks_like_it(kit):
    first, second = kit.request("u a"), kit.request("u a", "c ls", "t x")
    check_bound(kit.player(first, second), [first, first, second], [0, "again 0", 1])


def test_a_retry_that_does_not_happen_leaves_no_gap(kit):
    first, second = kit.request("u a"), kit.request("u a", "c ls", "t x")
    player = kit.player(kit.said(first, kit.failed), kit.said(first), kit.said(second))
    check_bound(player, [first, kit.request("u a", "c ls", "t x y")], [0, 2], left=[1])


def test_twins_drift_together(kit):
    first, second = kit.request("u a"), kit.request("u a", "c ls", "t x")
    player = kit.player(kit.said(first), kit.said(first), kit.said(second), kit.said(second))
    drifted = kit.request("u a b"), kit.request("u a b", "c ls", "t y")
    check_bound(player, [drifted[0], drifted[0], drifted[1], drifted[1], drifted[1]], [0, 1, 2, 3, "again 3"])


# ── Calls beside the main one ───────────────────────────────────────────────────────────────────────────────────────

TITLE = {"tools": (), "system": ("Name this conversation.",)}


TITLE = {"tools": (), "system": ("Name this conversation.",)}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("drift", [{}, {"temperature": 1}])
def test_a_title_call_beside_the_main_call(kit, order, drift):
    calls = [kit.request("u hi"), kit.request("u hi", **TITLE)]
    live = [kit.request("u hi", **drift), kit.request("u hi", **TITLE, **drift)]
    check_bound(kit.player(*calls), [live[at] for at in order], list(order))


def test_an_unrecorded_title_call_does_not_take_the_main_answer(kit):
    player = kit.player(kit.request("u hi"), kit.request("u hi", "a fine", "u go on"))
    live = [kit.request("u hi", **TITLE), kit.request("u hi"), kit.request("u hi", "a fine", "u title?", **TITLE)]
    outcomes = check_bound(player, [*live, kit.request("u hi", "a fine", "u go on")], ["none", 0, "none", 1])
    assert outcomes[0].nearest.index == 0
    assert "/tools/0" in [found.path for found in outcomes[0].differences]


def test_two_drifted_headers_are_told_apart_by_what_was_bound_before(kit):
    plan, build = {"system": ("Plan.",)}, {"system": ("Build.",)}
    texts = ("u first", "u second", "u please do this", "u please do that")
    asked = [kit.request(text, **header) for text, header in zip(texts, [plan, build] * 2, strict=True)]
    calls = kit.record(*asked).calls
    player = Player(Recording(tuple(msgspec.structs.replace(call, header="PB"[call.index % 2]) for call in calls)))
    new_plan, new_build = {"system": ("Plan it.",)}, {"system": ("Build it.",)}
    live = [kit.request("u first", **new_plan), kit.request("u second", **new_build)]
    live += [kit.request("u please do it", **new_build), kit.request("u something else", **new_plan)]
    check_bound(player, live, [0, 1, 3, 2])


# ── Histories: extra steps, forks, compaction ───────────────────────────────────────────────────────────────────────


def test_an_extra_step_is_nobodys_call(kit):
    """It goes on from a conversation that is told to its end; the other conversation's calls are not for it."""
    player = kit.player(
        *(kit.request("u a"), kit.request("u a", "c ls", "t x"), kit.request("u b")),
        *(kit.request("u b", "c ls", "t y"), kit.request("u b", "c ls", "t y", "c ls", "t z")),
    )
    live = [kit.request("u a"), kit.request("u a", "c ls", "t x"), kit.request("u a", "c ls", "t x", "c more", "t z")]
    outcomes = check_bound(player, live, [0, 1, "none"], left=[2, 3, 4])
    assert outcomes[2].nearest.index == 1


def test_a_fork_of_one_history_opens_a_lane_and_each_branch_finds_its_own(kit):
    base = ("u a", "c ls", "t x")
    calls = [kit.request("u a"), kit.request(*base), kit.request(*base, "a one", "u left")]
    calls += [kit.request(*base, "a one", "u right"), kit.request(*base, "a one", "u right", "a two", "u on")]
    recording = kit.record(*calls)
    assert [(call.lane, call.parent) for call in recording.calls] == [(0, None), (0, 0), (0, 1), (1, 1), (1, 3)]
    order = [0, 1, 3, 4, 2]
    check_bound(Player(recording), [calls[at] for at in order], order)


def test_a_drifted_fork_takes_the_branch_that_is_most_alike(kit):
    calls = [kit.request("u a"), *(kit.request("u a", "a b", text) for text in ("u go left now", "u turn right here"))]
    live = [kit.request("u a"), kit.request("u a", "a b", "u turn right over here"), calls[1]]
    check_bound(kit.player(*calls), live, [0, 2, 1])


LONG = ("u a", "c ls", "t x", "c cat", "t y")


def compaction(kit, summary="u so far: x and y"):
    """A conversation, the call that sums it up, and what goes on from the summary with the last messages kept."""
    return [
        *(kit.request(*LONG[:at]) for at in (1, 3, 5)),
        kit.request(*LONG, "u sum it up"),
        kit.request(summary, *LONG[3:]),
        kit.request(summary, *LONG[3:], "a fine", "u on"),
    ]


def test_a_compaction_is_recorded_as_a_rewritten_history(kit):
    recording = kit.record(*compaction(kit))
    assert [(call.lane, call.parent) for call in recording.calls] == [*((0, at) for at in (None, 0, 1, 2, 3, 4))]
    check_bound(Player(recording), compaction(kit), [0, 1, 2, 3, 4, 5])


def test_a_drifted_compaction_is_found_by_what_it_was_rewritten_from(kit):
    outcomes = check_bound(kit.player(*compaction(kit)), compaction(kit, "u until now: x"), [0, 1, 2, 3, 4, 5])
    assert [found.rank for found in outcomes] == [1, 1, 1, 1, 6, 3]
    assert [bool(found.differences) for found in outcomes] == [False] * 4 + [True, False]


def test_a_history_whose_date_is_renewed_is_the_same_conversation(kit):
    """A message rewritten in place is a change of that message and not the end of the conversation."""

    def day(at):
        return [kit.request(f"u day {at}", *LONG[: 2 * at + 1]) for at in range(3)]

    recording = kit.record(*day(0)[:1], *day(1)[1:2], *day(2)[2:])
    assert [(call.lane, call.parent) for call in recording.calls] == [(0, None), (0, 0), (0, 1)]


# ── Ties: session key, conversation, recorded order ─────────────────────────────────────────────────────────────────


def test_a_session_key_tells_twins_apart_where_their_histories_cannot(kit):
    """Two identical conversations, answered differently, whose agent sends nothing of the answers back."""
    first, second = kit.request("u a"), kit.request("u a", "a -", "u b")
    calls = [kit.said(first, kit.answer("x"), "k1"), kit.said(first, kit.answer("y"), "k2")]
    calls += [kit.said(second, kit.answer("x2"), "k1"), kit.said(second, kit.answer("y2"), "k2")]
    player = kit.player(*calls)
    found = [player.ask(*asked) for asked in [(first, "l1"), (first, "l2"), (second, "l2"), (second, "l1")]]
    assert calls_of(found) == [0, 1, 3, 2]


def test_without_a_key_the_conversation_decides_then_the_recorded_order(kit):
    first, second = kit.request("u a"), kit.request("u a", "a fine", "u b")
    calls = [kit.said(asked, kit.answer("fine")) for asked in (first, second, first, second)]
    check_bound(kit.player(*calls), [first, second, first, second], [0, 1, 2, 3])
    check_bound(kit.player(*calls), [first, first, second, second], [0, 2, 1, 3])


# ── Nothing recorded ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_recording_without_calls_serves_none(kit):
    (found,) = check_bound(Player(Recording(())), [kit.request("u a")], ["none"])
    assert found == Unrecorded(None, ())


def test_an_opening_of_another_kind_is_nobodys_call(kit):
    player = kit.player(kit.request("u count the files"))
    (found,) = check_bound(player, [kit.request("u write a poem", system=("You are a poet.",))], ["none"], left=[0])
    assert found.nearest.index == 0


def historical(kit, *lanes):
    calls = []
    for lane, texts in enumerate(lanes):
        for at, text in enumerate(texts):
            parent = len(calls) - 1 if at else None
            calls.append(RecordedCall(len(calls), lane, parent, None, kit.answer(text), f"session.{lane}.jsonl#{at}"))
    return Player(Recording(tuple(calls)))


def test_without_recorded_requests_sessions_take_scripts_in_the_order_of_first_call(kit):
    player = historical(kit, ["a", "b"], [], ["c"])
    asked = kit.request("u anything")
    found = [player.ask(asked, key) for key in ("one", "two", "one", "two", "one", "three")]
    assert calls_of(found) == [0, 2, 1, "none", "none", "none"]
    assert (found[3].nearest.index, found[4].nearest.index, found[5].nearest) == (2, 1, None)
    assert player.unconsumed() == ()


def test_calls_without_a_key_share_one_session(kit):
    player = historical(kit, ["a", "b"], ["c"])
    assert calls_of([player.ask(kit.request("u x")) for _ in range(3)]) == [0, 1, "none"]
    assert [call.index for call in player.unconsumed()] == [2]


def test_the_same_messages_under_another_header_are_no_new_call(kit):
    """The agent asks again with another parameter: that is neither the recorded next step nor a repeat."""
    player = kit.player(kit.request("u a"), kit.request("u a", "c ls", "t x"))
    check_bound(player, [kit.request("u a"), kit.request("u a", temperature=1)], [0, "none"], left=[1])


def test_tools_that_vanish_in_the_middle_are_a_drift(kit):
    calls = [kit.request("u a"), kit.request("u a", "c ls", "t x")]
    _, second = check_bound(kit.player(*calls), [calls[0], kit.request("u a", "c ls", "t x", tools=())], [0, 1])
    assert [(found.kind, found.path) for found in second.differences] == [("removed", "/tools/0")]


def test_messages_that_come_again_with_other_ids_are_no_next_step(kit):
    def asked(id):
        call = Message(role="assistant", content=(ToolCallBlock(id=id, name="bash", arguments="ls"),))
        first, _, result = kit.request("u a", "c ls", "t x").messages
        return msgspec.structs.replace(kit.request(), messages=(first, call, result))

    player = kit.player(kit.request("u a"), asked("1"), kit.request("u a", "c ls", "t x", "c cat", "t y"))
    check_bound(player, [kit.request("u a"), asked("2"), asked("3")], [0, 1, "none"], left=[2])


def test_a_drifted_step_is_the_next_one_and_not_a_later_one_that_is_more_alike(kit):
    calls = [kit.request(*("u a", "c ls", "t x", "c cat", "t y")[:length]) for length in (1, 3, 5)]
    check_bound(kit.player(*calls), [calls[0], kit.request("u a", "c ls", "t y")], [0, 1], left=[2])


def test_what_grew_out_of_a_twin_may_go_on_from_either(kit):
    """Only one of two identical conversations goes on, and live it is the one that was opened first."""
    first = kit.said(kit.request("u a"))
    player = kit.player(first, first, kit.said(kit.request("u a", "a fine", "u b")))
    check_bound(player, [kit.request("u a"), kit.request("u a", "a fine", "u b c")], [0, 2], left=[1])


def test_a_drifted_opening_that_takes_a_retrys_place_shows_what_changed(kit):
    asked = kit.request("u count the files")
    player = kit.player(kit.said(asked, kit.failed), kit.said(asked))
    _, second = check_bound(player, [asked, kit.request("u count the big files")], [0, 1])
    assert [(found.kind, found.path) for found in second.differences] == [("changed", "/messages/0/content/0/text")]
