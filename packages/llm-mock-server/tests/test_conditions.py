"""Conditions: what holds for which request, why not where it does not, and what cannot be meant."""

import pytest
from llm_dialects import DIALECTS, EntryError
from llm_mock_server import HttpRequest
from llm_mock_server.conditions import ALWAYS, Asked, at_pointer, failures, holds, same_json, when_from_json

BODY = {
    "model": "gpt-4o-mini",
    "stream": True,
    "temperature": 1,
    "tools": [{"type": "function", "function": {"name": "compress"}}],
    "messages": [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "compress nothing"},
        {"role": "user", "content": [{"type": "text", "text": "please"}, {"type": "text", "text": "compress it"}]},
        {"role": "assistant", "content": "well"},
    ],
    "a/b~c": {"": None},
}
HEADERS = (("x-session", "alice"), ("x-session", "bob"), ("authorization", "Bearer sk-secret"))


def asked(body=None, **more):
    body = BODY if body is None else body
    http = HttpRequest("POST", "/alice/v1/chat/completions", "", HEADERS, b"", "openai-chat", body, 0, "/alice/v1")
    return Asked(http, DIALECTS["openai-chat"].parse_request(body), more.get("session", "alice"), more.get("nth", 2))


@pytest.mark.parametrize(
    "when",
    [
        {},
        {"model": "gpt-*"},
        {"model": "gpt-4[no]-min?"},
        {"path": "/alice/*"},
        {"header": {"X-Session": "^alice$"}},
        {"header": {"x-session": "^bob$", "authorization": "^Bearer "}},
        {"body": {"/stream": True, "/tools/0/function/name": "compress"}},
        {"body": {"/temperature": 1.0}},
        {"body": {"/a~1b~0c/": None}},
        {"body": {"/tools": [{"function": {"name": "compress"}, "type": "function"}]}},
        {"body": {"": BODY}},
        {"nth": 2},
        {"text": "please\ncompress"},
        {"text": "(?i)COMPRESS it$"},
        {"session": "alice"},
        {"model": "*", "nth": 2, "text": "compress", "session": "alice", "path": "*completions"},
    ],
)
def test_what_holds(when):
    assert holds(when_from_json(when, "w"), asked()) is None


@pytest.mark.parametrize(
    ("when", "why"),
    [
        ({"model": "gpt-4o"}, "model: 'gpt-4o-mini' is not 'gpt-4o'"),
        ({"model": "GPT-*"}, "model: 'gpt-4o-mini' is not 'GPT-*'"),
        ({"path": "/bob/*"}, "path: '/alice/v1/chat/completions' is not '/bob/*'"),
        ({"header": {"X-Other": "."}}, "header: there is no 'x-other'"),
        ({"header": {"authorization": "^Basic"}}, "header: 'authorization' does not match '^Basic'"),
        ({"body": {"/stream": 1}}, "body: '/stream' is true, not 1"),
        ({"body": {"/tools/1": {}}}, "body: there is nothing at '/tools/1'"),
        ({"body": {"/tools/-1": {}}}, "body: there is nothing at '/tools/-1'"),
        ({"body": {"/tools/00": {}}}, "body: there is nothing at '/tools/00'"),
        ({"body": {"/stream/x": {}}}, "body: there is nothing at '/stream/x'"),
        ({"nth": 1}, "nth: this is call 2 of its cursor, not 1"),
        ({"text": "first"}, "text: 'please\\ncompress it' does not match 'first'"),
        ({"text": "nothing"}, "text: 'please\\ncompress it' does not match 'nothing'"),
        ({"session": "bob"}, "session: 'alice' is not 'bob'"),
    ],
)
def test_what_does_not_hold_says_why(when, why):
    assert holds(when_from_json(when, "w"), asked()) == why


def test_a_secret_is_not_shown():
    assert "secret" not in holds(when_from_json({"header": {"authorization": "Basic"}}, "w"), asked())


def test_all_that_fails_is_told_in_the_order_of_the_conditions():
    when = when_from_json({"nth": 7, "model": "x", "body": {"/x": 1, "/y": 2}}, "w")
    assert [why.partition(":")[0] for why in failures(when, asked())] == ["model", "body", "body", "nth"]


def test_a_long_text_is_told_in_short():
    body = {"model": "m", "messages": [{"role": "user", "content": "x" * 10_000}]}
    assert len(holds(when_from_json({"text": "y", "body": {}}, "w"), asked(body))) < 200
    assert len(holds(when_from_json({"body": {"/messages": "y" * 10_000}}, "w"), asked(body))) < 300


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([], "text: there is no user message"),
        ([{"role": "assistant", "content": "compress"}], "text: there is no user message"),
        ([{"role": "user", "content": "compress"}, {"role": "tool", "tool_call_id": "1", "content": "done"}], None),
    ],
)
def test_the_last_user_message_is_asked_not_what_follows_it(messages, why):
    assert holds(when_from_json({"text": "compress"}, "w"), asked({"model": "m", "messages": messages})) == why


def test_no_conditions_always_hold():
    assert when_from_json({}, "w") == ALWAYS


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "w: must be an object"),
        ({"modle": "x"}, "w: unknown key 'modle'; the nearest known is 'model'"),
        ({"headers": {}}, "w: unknown key 'headers'; the nearest known is 'header'"),
        ({"model": 7}, "w.model: must be a string"),
        ({"model": ""}, "w.model: must be a string that is not empty"),
        ({"nth": 0}, "w.nth: must be a whole number from 1"),
        ({"nth": True}, "w.nth: must be a whole number from 1"),
        ({"nth": 1.5}, "w.nth: must be a whole number from 1"),
        ({"text": "("}, "w.text: '(' is no regular expression: "),
        ({"header": {"x": "["}}, "w.header.x: '[' is no regular expression: "),
        ({"header": "x"}, "w.header: must be an object"),
        ({"body": {"tools/0": 1}}, "w.body: 'tools/0' is no JSON pointer\nmend: write '/tools/0'"),
        ({"body": {"/a~2~0~": 1}}, "w.body: '/a~2~0~' is no JSON pointer\nmend: write '/a~02~0~0'"),
        ({"header": {"a b": "x"}}, "w.header: 'a b' cannot be the name of a header"),
        ({"header": {"x:": "x"}}, "w.header: 'x:' cannot be the name of a header"),
        ({"text": "a{99999999999999999999}"}, "w.text: 'a{99999999999999999999}' is no regular expression"),
        ({"text": "(" * 3000 + ")" * 3000}, "w.text: '(((("),
        ({"session": None}, "w.session: must be a string"),
    ],
)
def test_what_cannot_be_meant_is_named_by_its_place(value, words):
    with pytest.raises(EntryError) as caught:
        when_from_json(value, "w")
    assert str(caught.value).startswith(words)
    assert str(caught.value).splitlines()[-1].startswith("mend: ")


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ([1], [True], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ([1, 2], [2, 1], False),
        (None, False, False),
        ("1", 1, False),
        ([], {}, False),
    ],
)
def test_equal_json(a, b, same):
    assert same_json(a, b) is same_json(b, a) is same


def test_a_pointer_into_nothing():
    assert at_pointer(7, "") == 7
    with pytest.raises(LookupError):
        at_pointer({}, "/")
