"""The walk as a value, and what is drawn of a difference."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from session_snapshot.changes import screen
from session_snapshot.changes.drift import Change, changes_of, compared
from session_snapshot.changes.review import Walk, list_lines, walk_of
from session_snapshot.hunks import Hunk


def change(kind: str, actual: object = 1, model: bool = False) -> Change:
    return Change("stdout", kind, f"{kind} it is", "x.jsonl", 0, Hunk("changed", "row", "/a", 0, actual, 3, 4, model))


ADD, WORD, MODEL = change("additive"), change("wording"), change("semantic", model=True)
WALK = walk_of({"s/a": [ADD, WORD], "s/b": [change("additive", 2), ADD, MODEL], "s/c": [WORD]})


def test_a_walk_goes_from_one_scenario_to_the_next() -> None:
    assert WALK.open() == 0 and WALK.finished() == []
    walk = WALK.decide([0], "accepted")
    assert walk.open() == 1 and walk.finished() == []
    walk = walk.decide([1], "skipped")
    assert walk.open() == 2 and walk.finished() == ["s/a"]
    assert walk.chosen("s/a") == {0} and walk.chosen("s/b") == frozenset()
    assert WALK.verdicts == {}, "a walk is a value"
    assert WALK.decide(range(6), "rejected").open() is None


def test_what_belongs_together() -> None:
    assert WALK.of_kind(0) == [0, 2, 3] and WALK.of_scenario(2) == [2, 3, 4]
    assert WALK.twins(0) == [3] and WALK.twins(2) == [] and WALK.twins(1) == [5]
    decided = WALK.decide([3, 5], "accepted")
    assert decided.twins(0) == [] and decided.of_kind(0) == [0, 2] and decided.finished() == ["s/c"]


def test_the_models_words_are_never_accepted() -> None:
    assert not WALK.items[4].acceptable
    walk = WALK.decide(range(6), "accepted")
    assert walk.open() == 4 and walk.chosen("s/b") == {0, 1}
    assert walk.decide([4], "skipped").open() is None


def test_what_is_accepted_also_was_perhaps_rejected_before() -> None:
    walk = WALK.decide([0], "accepted").decide([1], "rejected").accept_also("s/a", {1})
    assert walk.chosen("s/a") == {0, 1} and walk.with_verdict("rejected") == []


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["accepted", "rejected", "skipped"])), max_size=12))
def test_everything_has_one_verdict_or_none(said: list[tuple[int, str]]) -> None:
    walk = WALK
    for place, verdict in said:
        walk = walk.decide([place], verdict)
    counts = [len(walk.with_verdict(verdict)) for verdict in ("accepted", "rejected", "skipped", None)]
    assert sum(counts) == 6
    assert sum(len(walk.chosen(name)) for name in ("s/a", "s/b", "s/c")) == counts[0]
    assert (walk.open() is None) is (counts[3] == 0)


def test_lines() -> None:
    assert list_lines(Walk(WALK.items[1:3])) == [
        "s/a#2  wording  stdout  wording it is  (x.jsonl:3)",
        "s/b#1  additive  stdout  additive it is  (x.jsonl:3)",
    ]


# ── drawing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def drawn(renderable: object, width: int = 100) -> str:
    console = Console(width=width, force_terminal=False, color_system=None, legacy_windows=False)
    with console.capture() as captured:
        console.print(renderable)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def texts(old: list, new: list) -> tuple:
    lines = ["".join(json.dumps(row) + "\n" for row in rows) for rows in (old, new)]
    found = compared("stdout", "stdout.golden.jsonl", *lines)
    return found, changes_of("stdout", found)


def test_both_sides_beside_one_another() -> None:
    _, (found,) = texts([{"type": "a", "text": "one old text"}], [{"type": "a", "text": "one new text"}])
    row = drawn(screen.difference(found, 80), 80).splitlines()[3]
    assert [cell.strip() for cell in row.split("│")] == ["", "one old text", "one new text", ""]
    assert drawn(screen.difference(found, 40), 40) == "golden:\n  one old text\nnow:\n  one new text"


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("a b c", "a x c", ("a [b] c", "a [x] c")),
        ("a", "a b", ("a", "a[ b]")),
        ("", "a", ('[""]', "[a]")),
        ({"a": 1}, {"a": 2}, ('{\n  "a": [1]\n}', '{\n  "a": [2]\n}')),
        (True, None, ("[true]", "[null]")),
        ("x" * 10 + " " + "y " * 200 + "b", "x" * 10 + " " + "y " * 200 + "c",
         (f" … {'y ' * 30}[b]", f" … {'y ' * 30}[c]")),
    ],
)  # fmt: skip
def test_words_that_differ_are_marked(old: object, new: object, shown: tuple[str, str]) -> None:
    both = screen.marked(Hunk("changed", "row", "/a", old, new, 1, 1), whole=False)
    assert tuple(marks(text) for text in both) == shown


def marks(text) -> str:
    """A text with what is marked in brackets."""
    told, done = "", 0
    for span in text.spans:
        told += f"{text.plain[done : span.start]}[{text.plain[span.start : span.end]}]"
        done = span.end
    return told + text.plain[done:]


def test_texts_of_thousands_of_words_are_drawn_in_no_time() -> None:
    old, new = ("w " * 100_000 + middle + " v" * 100_000 for middle in ("one", "two"))
    left, right = screen.marked_words(old, new, whole=False)
    assert "one" in left.plain and "two" in right.plain and len(left) < 1000


def test_a_long_value_is_cut_unless_somebody_asks() -> None:
    hunk = Hunk("added", "row", "", None, list(range(100)), 0, 1)
    assert "76 more lines (f shows them)" not in screen.marked(hunk, whole=True)[1].plain
    assert "more lines (f shows them)" in screen.marked(hunk, whole=False)[1].plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\nlines", "plain\nlines"),
        ("\x1b[31m", "\\u001b[31m"),
        ("a\rb\tc", "a\\u000db\\u0009c"),
        ("\u202eabc\u200b", "\\u202eabc\\u200b"),
        ("\x85\x9b", "\\u0085\\u009b"),
        ("a\u00a0b", "a\\u00a0b"),
        ("äöü 漢字 👍", "äöü 漢字 👍"),
        ("[bold]markup[/bold]", "[bold]markup[/bold]"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert screen.visible(text) == shown
    assert shown in drawn(screen.cut(screen.Text(shown), True), 200)


def test_the_rows_around_an_inserted_one() -> None:
    rows = [{"type": f"row{at}"} for at in range(10)]
    found, (added,) = texts(rows, [*rows[:5], {"type": "new"}, *rows[5:]])
    assert screen.places(found, added.hunk) == (5, 5)
    picture = drawn(screen.frames(added, found, 100))
    assert all(f"row{at}" in picture for at in range(2, 9)) and "row1" not in picture and "row9" not in picture
    found, (removed,) = texts(rows, rows[:4] + rows[5:])
    assert screen.places(found, removed.hunk) == (4, 4)
    found, (first,) = texts([], rows[:1])
    assert "(no rows)" in drawn(screen.frames(first, found, 100))
