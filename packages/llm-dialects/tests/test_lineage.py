import msgspec
import pytest
from llm_dialects import (
    Message,
    ReasoningBlock,
    Request,
    TextBlock,
    ToolCallBlock,
    appended,
    common_prefix,
    extends,
    same_header,
    same_messages,
    strip_volatile,
)


def said(*texts, system=()):
    messages = tuple(Message(role="user", content=(TextBlock(text=text),)) for text in texts)
    return Request(system=system, tools=(), messages=messages, params={})


@pytest.mark.parametrize(
    ("parent", "child", "prefix", "grown"),
    [
        (said(), said("a"), 0, True),
        (said("a"), said("a", "b", "c"), 1, True),
        (said("a"), said("a"), 1, False),
        (said("a", "b"), said("a"), 1, False),
        (said("a", "b"), said("a", "x", "c"), 1, False),
        (said("a"), said("x"), 0, False),
    ],
)
def test_one_request_grows_from_another(parent, child, prefix, grown):
    assert common_prefix(parent, child) == common_prefix(child, parent) == prefix
    assert extends(parent, child) is grown
    if grown:
        assert (*parent.messages, *appended(parent, child)) == child.messages


def test_what_is_compared():
    a, b = said("a", "z", system=("s",)), said("b", "z", system=("s",))
    assert same_header(a, b)
    assert not same_messages(a, b)
    assert not same_header(a, said("a", "z"))


def test_signatures_are_stripped_wherever_they_stand():
    def signed(mark):
        call = ToolCallBlock(
            id="c", name="n", arguments="{}", extra={"extra_content": {"google": {"thought_signature": mark, "x": [1]}}}
        )
        thoughts = (
            ReasoningBlock(text="t", signature=mark),
            ReasoningBlock(text="", extra={"redactedData": mark}),
        )
        message = Message(role="assistant", content=(*thoughts, call), extra={"reasoning_details": [mark], "name": "x"})
        return Request(system=("s",), tools=(), messages=(message,), params={"model": "m"})

    stripped = strip_volatile(signed("one"))
    assert stripped == strip_volatile(signed("two"))
    assert stripped == strip_volatile(stripped)
    assert signed("one") != signed("two")
    (message,) = stripped.messages
    assert message.extra == {"name": "x"}
    assert message.content[2].extra == {"extra_content": {"google": {"x": [1]}}}
    assert strip_volatile(said("a")) == said("a")
    assert msgspec.structs.replace(stripped, messages=()).params == {"model": "m"}
