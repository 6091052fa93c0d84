"""Text for the page: nothing hidden stays hidden, JSON reads as JSON, and what changed is what is marked."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_snapshot.view.text import Line, abridged, changed_words, plain, pretty, pretty_both
from session_snapshot.visible import visible

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def drawn(lines):
    """Lines as a person sees them."""
    return [f"{line.mark}{'  ' * line.depth}{line.text}" for line in lines]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\0b", "a\\u0000b"),
        ("safe \u202e desrever", "safe \\u202e desrever"),
        ("\ud800", "\\ud800"),
        ("\u2028\u200b\ufeff", "\\u2028\\u200b\\ufeff"),
        ("\x1b[31mred", "\\u001b[31mred"),
        ("tab\tline\nümläut 漢 🌲", "tab\tline\nümläut 漢 🌲"),
    ],
)
def test_what_is_hidden_is_spelled_out(text, shown):
    assert visible(text) == shown


@given(st.text())
@settings(deadline=None)
def test_what_is_visible_stays_and_can_be_written(text):
    shown = visible(text)
    assert visible(shown) == shown
    shown.encode()


def test_json_reads_as_json():
    value = {"a": [1, {"b": "x"}], "c": {}, "d": "one\ntwo", "e": None}
    assert drawn(pretty(value)) == [
        " {",
        '   "a": [',
        "     1,",
        "     {",
        '       "b": "x"',
        "     }",
        "   ],",
        '   "c": {},',
        '   "d": "one↵',
        '     two",',
        '   "e": null',
        " }",
    ]


@given(JSON)
@settings(deadline=None)
def test_pretty_json_is_the_value_but_for_signs_of_line_ends(value):
    lines = list(pretty(value))
    assert all("\n" not in line.text for line in lines)
    text = "\n".join(line.text for line in lines).replace("↵\n", "\\n")
    assert json.loads(text) == json.loads(json.dumps(value)) or "↵" in json.dumps(value, ensure_ascii=False)


def test_a_changed_field_is_there_twice_and_the_rest_once():
    old = {"gone": 1, "same": [1, 2], "text": "a", "list": ["x", "y"]}
    new = {"same": [1, 2], "text": "b", "list": ["x", "z", "y"], "more": True}
    assert drawn(pretty_both(old, new)) == [
        " {",
        '-  "gone": 1,',
        '   "same": [',
        "     1,",
        "     2",
        "   ],",
        '-  "text": "a",',
        '+  "text": "b",',
        '   "list": [',
        '     "x",',
        '+    "z",',
        '     "y"',
        "   ],",
        '+  "more": true',
        " }",
    ]


@given(JSON, JSON)
@settings(deadline=None)
def test_both_sides_are_whole(old, new):
    """What is not new is the golden's value, what is not gone the run's, but for commas and the order of members."""
    lines = list(pretty_both(old, new))

    def bare(some):
        return sorted(line.text.rstrip(",") for line in some)

    assert bare(line for line in lines if line.mark != "-") == bare(pretty(new))
    if json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True):  # in Python, False is 0
        assert {line.mark for line in lines} <= {" "}


def test_true_is_not_1():
    assert drawn(pretty_both([True], [1])) == [" [", "-  true,", "+  1", " ]"]


def marked(pieces):
    return "".join(f"[{piece.text}]" if piece.changed else piece.text for piece in pieces)


@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [
        ("say one by one, please", "say at once, please", "say [one by one], please", "say [at once], please"),
        ("a b c", "a c", "a [b ]c", "a c"),
        ("", "new", "", "[new]"),
        ("x" * 500 + " old", "x" * 500 + " new", "…" + "x" * 119 + " [old]", "…" + "x" * 119 + " [new]"),
        ("old " + "y " * 3000, "new " + "y " * 3000, "[old]" + " y" * 60 + "…", "[new]" + " y" * 60 + "…"),
    ],
)
def test_changed_words_are_marked_and_what_is_far_is_left_out(old, new, before, after):
    assert tuple(map(marked, changed_words(old, new))) == (before, after)


@given(st.text(max_size=100), st.text(max_size=100))
@settings(deadline=None)
def test_pieces_add_up_to_the_texts(old, new):
    before, after = changed_words(old, new)
    assert ("".join(p.text for p in before), "".join(p.text for p in after)) == (old, new)
    if old == new:
        assert not any(piece.changed for piece in before + after)


def test_long_texts_say_how_much_is_left_out():
    assert abridged("abcdef", 4) == "abcd… (2 more)"
    assert abridged("abcd", 4) == "abcd"


def test_a_text_is_its_lines():
    assert list(plain("a\n\u202eb", "+")) == [Line("+", 0, "a"), Line("+", 0, "\\u202eb")]
