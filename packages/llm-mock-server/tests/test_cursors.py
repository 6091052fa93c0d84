"""Cursors: who has which, and that how callers interleave changes nothing."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_dialects import DIALECTS, EntryError, ReasoningBlock, extends, same_header, same_messages
from llm_mock_server import HttpRequest
from llm_mock_server.cursors import (
    ByHeader,
    ByLineage,
    BySegment,
    Cursor,
    Cursors,
    Keys,
    Lineages,
    Shared,
    cursor_from_json,
    segment_of,
)
from llm_mock_server.dice import Dice

WEIGHTS = {"success": 1.0, "stall": 1.0, "empty": 1.0}


def request_of(*texts, system=()):
    roles = ("user", "assistant")
    messages = [{"role": "system", "content": text} for text in system]
    messages += [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return DIALECTS["openai-chat"].parse_request({"model": "m", "messages": messages})


def http(prefix="/v1", headers=()):
    return HttpRequest("POST", prefix + "/chat/completions", "", headers, b"", "openai-chat", {}, 0, prefix)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("shared", Shared()),
        ("lineage", ByLineage()),
        ({"header": "X-Session"}, ByHeader("x-session")),
        ({"segment": True}, BySegment()),
    ],
)
def test_rules_are_read(value, rule):
    assert cursor_from_json(value, "w") == rule


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("linage", "w: no cursor is called 'linage'; the nearest known is 'lineage'"),
        ({}, "w: must have one key"),
        ({"header": "a", "segment": True}, "w: must have one key"),
        ({"heder": "a"}, "w: unknown key 'heder'; the nearest known is 'header'"),
        ({"header": ""}, "w.header: must be a string that is not empty"),
        ({"header": "bad header"}, "w.header: 'bad header' cannot be the name of a header"),
        ({"segment": 1}, "w.segment: must be true or false"),
        ({"segment": False}, "w.segment: must be true"),
        (None, "w: must be an object"),
    ],
)
def test_what_is_no_rule(value, words):
    with pytest.raises(EntryError) as caught:
        cursor_from_json(value, "w")
    assert str(caught.value).startswith(words)
    assert str(caught.value).splitlines()[-1].startswith("mend: ")


@pytest.mark.parametrize(
    ("rule", "seen", "key"),
    [
        (Shared(), http("/alice/v1", (("x-session", "alice"),)), ""),
        (ByHeader("x-session"), http(headers=(("x-session", "alice"),)), "alice"),
        (ByHeader("x-session"), http(headers=(("x-other", "alice"),)), ""),
        (BySegment(), http("/alice/v1"), "alice"),
        (ByHeader("authorization"), http(headers=(("authorization", "Bearer sk"),)), "authorization#cf09b03b28e1"),
        (ByHeader("authorization"), http(), ""),
    ],
)
def test_keys(rule, seen, key):
    assert Keys(rule).key_of(seen, request_of("hi")) == key


@pytest.mark.parametrize(
    ("prefix", "segment"),
    [
        ("", ""),
        ("/v1", ""),
        ("/v1beta/models/gemini", ""),
        ("/models/gemini", ""),
        ("/alice", "alice"),
        ("/alice/v1", "alice"),
        ("/alice/bob/v1", "alice"),
        ("/a%20b/v1beta/models/gemini", "a b"),
        ("/version/v1", "version"),
        ("/vera/v1", "vera"),
    ],
)
def test_the_segment_is_what_the_base_url_has_before_the_endpoints_own(prefix, segment):
    assert segment_of(prefix) == segment


def test_a_cursor_counts_what_is_taken_and_what_is_left():
    cursor = Cursor("", (2, None, 0, 1), 7, WEIGHTS)
    assert list(cursor.open) == [0, 1, 3]
    for at in (0, 0, 1, 3, 3):
        cursor.take(at)
    assert (cursor.calls, cursor.answers, cursor.last, list(cursor.open)) == (5, 5, 3, [1])
    assert cursor.to_json() == {"key": "", "calls": 5, "answers": 5, "left": [0, None, 0, 0], "last": 3}


def test_an_entry_taken_before_its_turn_is_not_lost_sight_of():
    cursor = Cursor("", (1, 1, 1), 7, WEIGHTS)
    cursor.take(1)
    assert list(cursor.open) == [0, 2]
    cursor.take(0)
    assert list(cursor.open) == [2]


def test_ids_are_the_cursors_own():
    plain, alice, bob = (Cursor(key, (), 7, WEIGHTS) for key in ("", "alice", "bob"))
    assert [plain.new_id(), plain.new_id()] == ["call_mock_1", "call_mock_2"]
    assert [plain.new_acted_id(), plain.new_acted_id()] == ["mock-call-1", "mock-call-2"]
    assert alice.new_acted_id() == Cursor("alice", (), 7, WEIGHTS).new_acted_id() != bob.new_acted_id()
    assert alice.new_id() == Cursor("alice", (), 7, WEIGHTS).new_id() != bob.new_id()


def test_dice_are_the_cursors_own():
    dice = {key: Cursor(key, (), 7, WEIGHTS).dice for key in ("", "alice", "bob")}
    thrown = {key: [die.throw() for _ in range(30)] for key, die in dice.items()}
    assert len({tuple(each) for each in thrown.values()}) == 3
    again = Cursor("bob", (), 7, WEIGHTS).dice
    assert [again.throw() for _ in range(30)] == thrown["bob"]


def test_the_seed_of_the_only_cursor_is_the_scripts():
    one, other = Cursor("", (), 7, WEIGHTS).dice, Dice(7, WEIGHTS)
    assert [one.throw() for _ in range(30)] == [other.throw() for _ in range(30)]


def begun(limit):
    return Cursors(lambda key: Cursor(key, (3,), 7, WEIGHTS), limit)


def test_a_key_has_one_cursor():
    cursors = begun(10)
    alice, bob = cursors.of("alice"), cursors.of("bob")
    assert cursors.of("alice") is alice
    assert list(cursors) == [alice, bob]
    assert ("alice" in cursors, "carol" in cursors, len(cursors)) == (True, False, 2)


def test_the_cursor_that_was_not_used_for_the_longest_time_is_dropped_and_begins_anew():
    cursors = begun(2)
    for key in ("alice", "bob", "alice", "carol"):
        cursors.of(key).take(0)
    assert [(cursor.key, cursor.answers) for cursor in cursors] == [("alice", 2), ("carol", 1)]
    assert (cursors.dropped, cursors.served) == (1, 4)
    assert cursors.of("bob").answers == 0
    assert [cursor.key for cursor in cursors] == ["carol", "bob"]
    assert (cursors.dropped, cursors.served) == (2, 4)


def test_cursors_are_looked_at_in_pages():
    cursors = begun(3)
    for key in "abcde":
        cursors.of(key)
    pages = [cursors.page(*asked) for asked in ((0, 2), (4, 2), (5, 2), (9, 2), (0, None))]
    assert [("".join(cursor.key for cursor in page), following) for page, following in pages] == [
        ("cd", 4),
        ("e", 5),
        ("", 5),
        ("", 9),
        ("cde", 5),
    ]


# ── Lineages ────────────────────────────────────────────────────────────────────────────────────────────────────────


def keys(*requests):
    """The conversations of requests in the order in which they come, as small numbers."""
    lineages, seen = Lineages(), {}
    return [seen.setdefault(lineages.key_of(request), len(seen)) for request in requests]


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        # a conversation, a retry, and a late retry of its beginning
        ([request_of("a"), request_of("a"), request_of("a", "b", "c"), request_of("a")], [0, 0, 0, 0]),
        # two, interleaved
        ([request_of("a"), request_of("b"), request_of("b", "x", "y"), request_of("a", "x", "y")], [0, 1, 1, 0]),
        # the longest history that is extended decides
        ([request_of("a", "b", "c"), request_of("a"), request_of("a", "b", "c", "d", "e")], [0, 1, 0]),
        # forks of one history are one conversation
        ([request_of("a"), request_of("a", "b", "c"), request_of("a", "b", "d")], [0, 0, 0]),
        # a history that was rewritten is a new one
        ([request_of("a", "b", "c"), request_of("summary")], [0, 1]),
        # the same words to another system prompt are another caller's; a longer history may have changed it
        ([request_of("a", system=["s"]), request_of("a", system=["t"])], [0, 1]),
        ([request_of("a", system=["s"]), request_of("a", "b", "c", system=["t"])], [0, 0]),
        (
            [
                request_of("a", system=["s"]),
                request_of("a", system=["t"]),
                request_of("a", "b", "c", system=["t"]),
                request_of("a", "b", "c", system=["s"]),
            ],
            [0, 1, 1, 0],
        ),
        ([request_of(), request_of(), request_of("a")], [0, 0, 0]),
    ],
)
def test_who_belongs_to_which_conversation(requests, expected):
    assert keys(*requests) == expected


def test_a_signature_made_anew_is_the_same_conversation():
    def signed(signature):
        thought = ReasoningBlock(text="hm", signature=signature)
        begun = request_of("a", "b")
        said = msgspec.structs.replace(begun.messages[1], content=(thought,))
        return msgspec.structs.replace(begun, messages=(begun.messages[0], said))

    assert keys(request_of("x"), signed("1"), signed("2")) == [0, 1, 1]


def test_the_key_is_the_openings_own():
    alone, late = Lineages(), Lineages()
    late.key_of(request_of("someone else"))
    assert alone.key_of(request_of("a")) == late.key_of(request_of("a"))


def test_conversations_are_forgotten_that_nobody_went_on_with():
    lineages = Lineages(limit=2)
    first = lineages.key_of(request_of("a"))
    lineages.key_of(request_of("b"))
    assert lineages.key_of(request_of("a", "x", "y")) == first
    lineages.key_of(request_of("c"))
    assert lineages.key_of(request_of("a", "x", "y", "x", "z")) == first
    lineages.key_of(request_of("d"))
    lineages.key_of(request_of("e"))
    assert lineages.key_of(request_of("a", "x", "y", "x", "z")) != first


histories = st.lists(st.sampled_from("ab"), min_size=1, max_size=4).map(lambda texts: request_of(*texts))


@given(st.lists(histories, max_size=8))
def test_a_conversation_is_what_extends_or_equals(requests):
    """The digests say what ``llm_dialects.lineage`` says of whole requests."""
    expected = []
    for at, request in enumerate(requests):
        earlier = [
            (len(other.messages), -number)
            for number, other in enumerate(requests[:at])
            if extends(other, request) or (same_messages(other, request) and same_header(other, request))
        ]
        found = max(earlier, default=None)
        expected.append(len(set(expected)) if found is None else expected[-found[1]])
    assert keys(*requests) == expected


@settings(deadline=None)
@given(st.data())
def test_how_conversations_interleave_changes_nothing(data):
    names = data.draw(st.lists(st.sampled_from("abcd"), unique=True, min_size=2))
    turns = {name: [request_of(name), request_of(name), request_of(name, "x", "y")] for name in names}
    order = data.draw(st.permutations([name for name in names for _ in turns[name]]))
    lineages, waiting = Lineages(), {name: iter(asked) for name, asked in turns.items()}
    got = {name: set() for name in names}
    for name in order:
        got[name].add(lineages.key_of(next(waiting[name])))
    assert got == {name: {Lineages().key_of(turns[name][0])} for name in names}
