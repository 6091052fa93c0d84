import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_dialects import (
    Message,
    RenderError,
    Request,
    TextBlock,
    ToolCallBlock,
    ToolResultPart,
    escape,
    expand,
    fill_from_request,
    map_strings,
    substitute,
    unescape,
)
from llm_dialects.render import check_from_request

KNOWN = {"cwd": "/w", "sessionId:1": "s-1", "odd": "{{cwd}}"}
braced = st.text("a{}: ", max_size=9)


@settings(deadline=None)
@given(braced)
def test_escaped_text_holds_no_token(text):
    assert unescape(escape(text)) == text
    assert substitute(escape(text), KNOWN.__getitem__) == text


tokens = st.sampled_from(sorted(KNOWN)).map(lambda name: (name,))


@settings(deadline=None)
@given(st.lists(st.one_of(braced, tokens), max_size=5))
def test_text_and_tokens_side_by_side_stay_apart(parts):
    stored = "".join(f"{{{{{part[0]}}}}}" if isinstance(part, tuple) else escape(part) for part in merge(parts))
    expected = "".join(KNOWN[part[0]] if isinstance(part, tuple) else part for part in parts)
    assert substitute(stored, KNOWN.__getitem__) == expected


def merge(parts):
    """Join neighbouring texts: escaping is done to whole texts, not to halves of a brace pair."""
    merged = []
    for part in parts:
        if merged and isinstance(part, str) and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return merged


@pytest.mark.parametrize(
    ("stored", "live"),
    [
        ("{{cwd}}/a", "/w/a"),
        ("{{{cwd}}}", "{/w}"),
        ("{{{{cwd}}", "{{cwd}}"),
        ("{{{{{{cwd}}", "{{/w"),
        ("{{ cwd }} {{}} {{1}}", "{{ cwd }} {{}} {{1}}"),
        ("{{odd}}", "{{cwd}}"),
    ],
)
def test_substitution(stored, live):
    assert substitute(stored, KNOWN.__getitem__) == live


def test_an_unknown_token_is_an_error():
    with pytest.raises(RenderError, match=r"\{\{home\}\}: nothing is known by this name"):
        substitute("{{home}}", KNOWN.__getitem__)


def test_expansion_reaches_every_string():
    value = {"{{cwd}}": ["{{cwd}}", 1, None, {"a": "{{{{x"}]}
    assert expand(value, KNOWN.__getitem__) == {"/w": ["/w", 1, None, {"a": "{{x"}]}
    assert map_strings(("a", True), str.upper) == ["A", True]


REQUEST = Request(
    system=("id-0",),
    tools=(),
    messages=(
        Message(role="user", content=(TextBlock(text="run id-1 then id-22, {brace}"),)),
        Message(role="assistant", content=(ToolCallBlock(id="c", name="ls", arguments='{"p":"a{{b}}"}'),)),
        Message(role="tool", content=(ToolResultPart(call_id="c", content=(TextBlock(text="job=77\nid-333"),)),)),
    ),
    params={},
)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("nothing", "nothing"),
        ("<{{fromRequest:id-[0-9]+}}>", "<id-333>"),
        ("{{fromRequest:id-([0-9]+)}}", "333"),
        ("{{fromRequest:id-[0-9]{2}}}!", "id-33!"),
        ("{{fromRequest:id-([0-9]{3})}}", "333"),
        ("{{fromRequest:id-1 then id-(22)}} {{fromRequest:job=(\\d+)}}", "22 77"),
        ("{{fromRequest:(?<number>77)}}", "77"),
        ("{{fromRequest:(?<=job=)77}}", "77"),
        ("{{fromRequest:id-333|(never)}}", "id-333"),
        ("{{fromRequest:(?m)^job.*$}}", "job=77"),
        ("{{fromRequest:77\\nid}}", "77\nid"),
        ("{{other}} {{{{", "{{other}} {{{{"),
    ],
)
def test_a_placeholder_is_filled_from_the_request(text, filled):
    assert fill_from_request({"a": [text]}, REQUEST) == {"a": [filled]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{fromRequest:id-0}}", "nothing in the request's messages matches"),
        ("{{fromRequest:(}}", "bad pattern"),
        ("{{fromRequest:a{99999999999999999999}}}", "bad pattern"),
        ("{{fromRequest:" + "(" * 3000 + ")" * 3000 + "}}", "bad pattern"),
        ("{{fromRequest:id-1", "the placeholder has no end"),
        ("{{fromRequest:id-1}", "the placeholder has no end"),
    ],
)
def test_a_placeholder_that_cannot_be_filled_is_an_error(text, message):
    with pytest.raises(RenderError, match=message):
        fill_from_request([text], REQUEST)
    if "matches" not in message:
        with pytest.raises(RenderError, match=message):
            check_from_request(f"{{{{fromRequest:a{{1,2}}}}}} {text}")


def test_what_is_filled_in_can_be_kept_from_expansion():
    filled = fill_from_request('{{fromRequest:a(\\{\\{b\\}\\})"}} {{cwd}}', REQUEST, change=escape)
    assert expand(filled, KNOWN.__getitem__) == "{{b}} /w"


def test_an_entry_without_placeholders_is_returned_itself():
    value = {"a": ["{{cwd}}"]}
    assert fill_from_request(value, REQUEST) is value
