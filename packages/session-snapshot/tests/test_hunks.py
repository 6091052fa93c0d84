"""Differences taken in one by one: all give the new text, none the old one, any a text whose rows are whole."""

import json
from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_snapshot.hunks import apply, hunks_of, texts_of
from session_snapshot.rows import DEAR, align, read_rows

STDOUT, SESSION, REQUESTS = "stdout.golden.jsonl", "session.jsonl", "requests.golden.jsonl"


def lines(*values: object) -> str:
    return "".join(json.dumps(value, separators=(",", ":")) + "\n" for value in values)


def subsets(count: int) -> list[set[int]]:
    return [set(chosen) for chosen in chain.from_iterable(combinations(range(count), n) for n in range(count + 1))]


# ── any two texts ───────────────────────────────────────────────────────────────────────────────────────────────────

TOKENS = st.sampled_from(["{{toolCallId:1}}", "{{toolCallId:2}}", "{{toolCallId:3}}"])
LEAVES = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["one two", "one three", "x"]) | TOKENS
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc/~"), inner, max_size=3),
    max_leaves=5,
)
ROWS = st.one_of(
    st.fixed_dictionaries({"type": st.sampled_from(["turn/start", "plan", "session"]), "data": VALUES}),
    st.fixed_dictionaries({"id": st.integers(0, 2), "result": VALUES}),
    st.fixed_dictionaries({"type": st.just("text-chunks"), "data": LEAVES}),
    st.fixed_dictionaries(
        {"call": st.integers(0, 2), "append": st.lists(LEAVES, max_size=3)},
        optional={"keep": st.integers(0, 2), "parent": st.none() | st.integers(0, 1), "params": VALUES},
    ),
    VALUES,
)
TEXTS = st.lists(ROWS, max_size=8).map(lambda rows: lines(*rows))
BROKEN = st.lists(st.sampled_from(["{oops", "", '{"a": 1}', '{"a":1}\r', "\x85"]), max_size=3).map("\n".join)
NAMES = st.sampled_from([STDOUT, SESSION, REQUESTS])


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, str]:
    """A text and another one that was made of it: rows gone, come, moved and changed."""
    old = draw(st.lists(ROWS, max_size=8))
    new = [row for row in old if draw(st.integers(0, 5))]
    for row in draw(st.lists(ROWS, max_size=2)):
        new.insert(draw(st.integers(0, len(new))), row)
    if len(new) > 1 and draw(st.booleans()):
        new.insert(draw(st.integers(0, len(new) - 1)), new.pop(draw(st.integers(0, len(new) - 1))))
    return lines(*old), lines(*new)


@settings(deadline=None, max_examples=200)
@given(NAMES, st.tuples(TEXTS | BROKEN, TEXTS | BROKEN) | edited(), st.data())
def test_all_none_and_some(name: str, pair: tuple[str, str], data: st.DataObject) -> None:
    texts = texts_of(name, *pair)
    hunks = hunks_of(texts)
    every = set(range(len(hunks)))
    assert apply(texts, set()) == pair[0]
    assert apply(texts, every) == pair[1]
    assert bool(hunks) is (pair[0] != pair[1])
    some = data.draw(st.sets(st.sampled_from(sorted(every)))) if every else set()
    merged = apply(texts, some)
    known = {"", *pair[0].split("\n"), *pair[1].split("\n")}
    assert [line for line in merged.split("\n") if line not in known and not is_json(line)] == []
    assert apply(texts_of(name, merged, pair[1]), set(range(1000))) == pair[1]


def is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


@settings(deadline=None, max_examples=200)
@given(NAMES, st.tuples(TEXTS, TEXTS) | edited())
def test_every_row_is_paired_once_in_both_orders(name: str, pair: tuple[str, str]) -> None:
    old, new = map(read_rows, pair)
    pairs = align(old, new)
    assert [i for i, _ in pairs if i is not None] == list(range(len(old)))
    assert [j for _, j in pairs if j is not None] == list(range(len(new)))


@settings(deadline=None, max_examples=100)
@given(st.lists(ROWS, max_size=8), ROWS, st.integers(0, 8))
def test_one_inserted_row_is_one_difference(rows: list, row: object, at: int) -> None:
    new = [*rows[:at], row, *rows[at:]]
    (hunk,) = hunks_of(texts_of(STDOUT, lines(*rows), lines(*new)))
    assert (hunk.how, hunk.path) == ("added", "")


@given(st.none() | TEXTS, st.none() | TEXTS)
@settings(deadline=None, max_examples=50)
def test_a_file_that_comes_or_goes_is_one_difference(old: str | None, new: str | None) -> None:
    texts = texts_of(STDOUT, old, new)
    assert apply(texts, set()) == old
    assert apply(texts, set(range(100))) == new
    if None in (old, new):
        assert len(hunks_of(texts)) == (old is not new)


# ── to the letter ───────────────────────────────────────────────────────────────────────────────────────────────────

PLAN = {"type": "plan"}


def a(number: int, **more: object) -> dict:
    return {"type": "a", "id": f"{{{{toolCallId:{number}}}}}"} | more


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ([a(1), a(2), PLAN], [a(1), {"type": "b"}, a(2), PLAN], 1),
        ([a(1, x=1, y=[1, 2], z={"k": "v"})], [a(1, x=2, y=[0, 1, 2], w={"k": "v"})], 4),
        ([a(1), a(2), PLAN, a(3)], [PLAN, a(1), a(3)], 2),
        ([{"type": "a", "x": 1, "y": 2}, PLAN], [{"y": 3, "type": "a", "x": 1}, PLAN, PLAN], 2),
        ([a(1), PLAN, {"type": "c", "n": 1}], [{"type": "c", "n": 2}, a(2), PLAN], 3),
    ],
)  # fmt: skip
def test_what_is_left_after_any_choice_is_what_was_not_chosen(old: list, new: list, count: int) -> None:
    texts = texts_of(STDOUT, lines(*old), lines(*new))
    hunks = hunks_of(texts)
    assert len(hunks) == count, hunks
    for chosen in subsets(count):
        left = hunks_of(texts_of(STDOUT, apply(texts, chosen), lines(*new)))
        assert len(left) == count - len(chosen), (chosen, left)


def test_a_row_taken_in_by_half_has_those_fields_and_no_others() -> None:
    old, new = {"type": "a", "x": [1, 2], "y": "old"}, {"type": "a", "x": [0, 1, 2], "y": "new", "z": 1}
    texts = texts_of(STDOUT, lines(old), lines(new))
    paths = [hunk.path for hunk in hunks_of(texts)]
    assert paths == ["/x/0", "/y", "/z"]
    assert apply(texts, {0}) == lines(old | {"x": [0, 1, 2]})
    assert apply(texts, {1}) == lines(old | {"y": "new"})
    assert apply(texts, {2}) == lines(old | {"z": 1})


def test_the_history_of_a_request_is_taken_in_whole_or_not() -> None:
    old = {"call": 1, "lane": 0, "parent": 0, "params": {"n": 1}, "append": ["a"]}
    new = {"call": 1, "lane": 0, "parent": 0, "params": {"n": 2}, "keep": 1, "append": ["b", "c"]}
    texts = texts_of(REQUESTS, lines(old), lines(new))
    assert [hunk.path for hunk in hunks_of(texts)] == ["", "/params/n"]
    assert apply(texts, {1}) == lines(old | {"params": {"n": 2}})
    assert apply(texts, {0}) == lines(new | {"params": {"n": 1}})


def test_rows_of_the_model_and_nothing_else_are_its_words() -> None:
    chunk = {"type": "assistant/chunk", "data": {"call": 0, "chunk": {"text": "a"}}}
    summary = {"type": "compaction/summary", "data": {"rawOutput": ["a"], "range": [0, 1]}}
    changed = [
        {"type": "assistant/chunk", "data": {"call": 0, "chunk": {"text": "b"}}},
        {"type": "compaction/summary", "data": {"rawOutput": ["b"], "range": [0, 2]}},
    ]
    hunks = hunks_of(texts_of(SESSION, lines(chunk, summary), lines(*changed)))
    assert {hunk.path: hunk.model for hunk in hunks} == {
        "/data/chunk/text": True,
        "/data/rawOutput/0": True,
        "/data/range/1": False,
    }
    assert not any(hunk.model for hunk in hunks_of(texts_of(STDOUT, lines(chunk), lines(changed[0]))))


def test_long_texts_are_paired_as_well() -> None:
    count = int(DEAR**0.5) + 50
    old = [a(at, n=at % 7) for at in range(1, count)]
    new = [a(1, n="x"), *(row | {"id": f"{{{{toolCallId:{at}}}}}"} for at, row in enumerate(old, 2))]
    hunks = hunks_of(texts_of(STDOUT, lines(*old), lines(*new)))
    assert [hunk.how for hunk in hunks].count("added") == 1
    assert {hunk.path for hunk in hunks} == {"", "/id"}
