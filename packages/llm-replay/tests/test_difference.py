import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_replay import diff_json, format_difference


def check_diff(expected, actual, *differences):
    assert [(found.kind, found.path) for found in diff_json(expected, actual)] == list(differences)


def message(role, text):
    return {"role": role, "content": [{"type": "text", "text": text}]}


MESSAGES = [message("user", "do it"), message("assistant", "done"), message("user", "again")]

ROWS = {
    "equal": ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}, []),
    "key order": ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
    "true is not 1": ({"a": True}, {"a": 1}, [("changed", "/a")]),
    "one is one": ({"a": 1}, {"a": 1.0}, []),
    "another type": ({"a": []}, {"a": {}}, [("changed", "/a")]),
    "the root": (1, 2, [("changed", "")]),
    "member gone and come": ({"a": 1}, {"b": 1}, [("removed", "/a"), ("added", "/b")]),
    "escaped pointer": ({"a/b~": 1}, {"a/b~": 2}, [("changed", "/a~1b~0")]),
    "inserted at the front": ([1, 2, 3], [0, 1, 2, 3], [("added", "/0")]),
    "removed in the middle": ([1, 2, 3], [1, 3], [("removed", "/1")]),
    "one message inserted": (MESSAGES, [*MESSAGES[:1], message("user", "also"), *MESSAGES[1:]], [("added", "/1")]),
    "one message changed": (
        MESSAGES,
        [*MESSAGES[:2], message("user", "again!")],
        [("changed", "/2/content/0/text")],
    ),
    "changed beside an inserted one": (
        [{"role": "user", "text": "compute the sum"}],
        [{"role": "system", "text": "compute"}, {"role": "user", "text": "compute the sums"}],
        [("added", "/0"), ("changed", "/1/text")],
    ),
    "nothing alike": (["abc"], [1], [("removed", "/0"), ("added", "/0")]),
    "half a character": (["\ud83d"], ["\ud83d"], []),
}


@pytest.mark.parametrize("name", ROWS)
def test_differences_are_few_and_in_their_place(name):
    expected, actual, differences = ROWS[name]
    check_diff(expected, actual, *differences)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=3),
    max_leaves=12,
)


@given(JSON)
@settings(deadline=None, max_examples=50)
def test_a_value_does_not_differ_from_itself(value):
    assert diff_json(value, value) == ()


@given(JSON, JSON)
@settings(deadline=None, max_examples=200)
def test_different_values_differ_and_the_other_way_round_too(one, other):
    there, back = diff_json(one, other), diff_json(other, one)
    assert bool(there) is bool(back)
    assert bool(there) or one == other
    assert all(_at(other, found.path) == found.actual for found in there if found.kind != "removed")


def _at(value, path):
    for key in path.split("/")[1:]:
        value = value[int(key)] if isinstance(value, list) else value[key.replace("~1", "/").replace("~0", "~")]
    return value


def test_thousands_of_changed_elements_are_compared_at_all():
    old, new = [{"n": at} for at in range(3000)], [{"n": -at - 1} for at in range(3001)]
    assert len(diff_json(old, new)) == 3001


SHOWN = {
    "one word": ("say the brown fox", "say the red fox", ["say the [-brown-] fox", "say the {+red+} fox"]),
    "part of a word": ("the sums", "the sum", ["the [-sums-]", "the {+sum+}"]),
    "inserted": ("a c", "a b c", ["a [--]c", "a {+b +}c"]),
    "line break": ("a\nb", "a\nc", ["a\\n[-b-]", "a\\n{+c+}"]),
    "all": ("a", "b", ["[-a-]", "{+b+}"]),
    "far away": (
        "x " * 50 + "old" + " y" * 50,
        "x " * 50 + "new" + " y" * 50,
        ["…" + "x " * 20 + "[-old-]" + " y" * 20 + "…", "…" + "x " * 20 + "{+new+}" + " y" * 20 + "…"],
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_changed_text_is_shown_around_its_changed_words(name):
    expected, actual, (old, new) = SHOWN[name]
    (found,) = diff_json({"t": expected}, {"t": actual})
    assert format_difference(found) == ("changed /t", f"  - {old}", f"  + {new}")


def test_other_values_are_shown_whole_unless_they_are_long():
    added, removed, changed = (
        diff_json({}, {"a": {"b": 1}})[0],
        diff_json({"a": "x" * 1000}, {})[0],
        diff_json(None, [1])[0],
    )
    assert format_difference(added) == ("added /a", '  + {"b":1}')
    assert "602 more" in format_difference(removed)[1] and len(format_difference(removed)[1]) < 450
    assert format_difference(changed) == ("changed (all of it)", "  - null", "  + [1]")
