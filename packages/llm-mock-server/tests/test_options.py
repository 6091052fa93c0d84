"""Options are read from JSON or refused by name and place."""

import pytest
from llm_dialects import EntryError
from llm_dialects.entries import SaidCall
from llm_mock_server.options import MAX_BYTES, MAX_DELAY_MS, Options, options_from_json, options_to_json

ALL = {
    "successText": "yes",
    "partialText": "no",
    "reasoningText": "why",
    "chunkSize": 3,
    "chunkDelayMs": 0,
    "disconnectDelayMs": 0,
    "headersDelayMs": 0,
    "retryAfterMs": 1,
    "requestId": "req-1",
    "toolName": "t",
    "toolArguments": '{"a": 1}',
    "toolCalls": [{"name": "x", "arguments": "{}", "id": "c"}],
    "hugeBytes": 1,
    "redirectTo": "http://127.0.0.1/other",
}


def check_refused(value, *words):
    with pytest.raises(EntryError) as caught:
        options_from_json(value, "s.json: options")
    message = str(caught.value)
    assert message.startswith("s.json: options")
    for word in words:
        assert word in message


def test_the_defaults():
    assert options_from_json({}, "x") == Options()
    assert Options().success_text == "mock response recovered"
    assert (Options().chunk_delay_ms, Options().disconnect_delay_ms, Options().retry_after_ms) == (25, 10, 1000)


def test_every_option_is_read_and_written_back():
    options = options_from_json(ALL, "x")
    assert len(ALL) == len(Options.__struct_fields__)
    assert options.tool_calls == (SaidCall(name="x", arguments="{}", id="c"),)
    assert options_to_json(options) == ALL
    assert options_to_json(Options()) == {}


def test_options_are_read_over_others():
    base = options_from_json({"successText": "base", "chunkSize": 1}, "x")
    assert options_from_json({"chunkSize": 2}, "x", base) == Options(success_text="base", chunk_size=2)


def test_arguments_may_be_written_as_the_object_they_are():
    assert options_from_json({"toolArguments": {"a": "ä"}}, "x").tool_arguments == '{"a":"ä"}'
    read = options_from_json({"toolCalls": [{"name": "n", "arguments": {"a": 1}}]}, "x")
    assert read.tool_calls == (SaidCall(name="n", arguments='{"a":1}'),)


def test_what_may_be_none():
    assert options_from_json({"requestId": None, "redirectTo": None, "toolCalls": []}, "x") == Options()


@pytest.mark.parametrize("key", [key for key in ALL if key.endswith("Ms")])
def test_the_bounds_of_a_delay(key):
    least = 1 if key == "retryAfterMs" else 0
    for value in (least, MAX_DELAY_MS):
        options_from_json({key: value}, "x")
    for value in (least - 1, MAX_DELAY_MS + 1):
        check_refused({key: value}, f".{key}: ", f"from {least} to {MAX_DELAY_MS}", str(value))
    for value in (True, 1.0, "1", None, [], float("nan")):
        check_refused({key: value}, f".{key}: ", "a whole number")


@pytest.mark.parametrize(("key", "high"), [("chunkSize", MAX_DELAY_MS), ("hugeBytes", MAX_BYTES)])
def test_the_bounds_of_a_size(key, high):
    options_from_json({key: 1}, "x")
    for value in (0, -1, high + 1, True, "8", 8.0):
        check_refused({key: value}, f".{key}: ")


@pytest.mark.parametrize("key", ["successText", "partialText", "reasoningText", "toolName"])
def test_a_text_says_something(key):
    check_refused({key: ""}, f".{key}: ", "empty")
    for value in (None, 1, True, ["a"], {}):
        check_refused({key: value}, f".{key}: ", "a string")


@pytest.mark.parametrize("key", ["requestId", "redirectTo"])
@pytest.mark.parametrize("value", ["", 7, "a b", "a\r\nset-cookie: x", "ä", "a\0"])
def test_what_goes_into_a_header_cannot_leave_it(key, value):
    check_refused({key: value}, f".{key}: ")


@pytest.mark.parametrize("value", ["", "{", "[]", "7", "null", '{"a": NaN}', None, 7, ["{}"]])
def test_arguments_are_a_json_object(value):
    check_refused({"toolArguments": value}, ".toolArguments: ")


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (7, ".toolCalls: "),
        ([7], ".toolCalls[0]: "),
        ([{"name": "x"}], ".toolCalls[0]: the key 'arguments'"),
        ([{"name": "", "arguments": "{}"}], ".toolCalls[0].name: "),
        ([{"name": "x", "arguments": "{}"}, {"name": "x", "arguments": "{"}], ".toolCalls[1].arguments: "),
        ([{"name": "x", "arguments": "{}", "extra": 1}], ".toolCalls[0]: unknown key 'extra'"),
    ],
)
def test_a_tool_call_is_refused_at_its_place(value, place):
    check_refused({"toolCalls": value}, place)


@pytest.mark.parametrize(
    ("key", "near"),
    [("succesText", "successText"), ("chunk_delay_ms", "chunkDelayMs"), ("retryAfter", "retryAfterMs")],
)
def test_an_unknown_option_names_the_nearest(key, near):
    check_refused({key: 1}, repr(key), repr(near))


@pytest.mark.parametrize("value", [None, [], "x", 7])
def test_options_are_an_object(value):
    check_refused(value, "an object")


def test_python_code_is_checked_too():
    with pytest.raises(EntryError, match=r"Options\.chunk_delay_ms: .* -1"):
        Options(chunk_delay_ms=-1)
    with pytest.raises(EntryError, match=r"Options\.tool_calls\[0\]\.arguments: "):
        Options(tool_calls=(SaidCall(name="x", arguments="{"),))
