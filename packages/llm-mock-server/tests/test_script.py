"""Scripts: which entry answers what, filled how, and what is said when none is left."""

import json

import pytest
from llm_dialects import DIALECTS, DialectError, EntryError, RenderError
from llm_mock_server import HttpRequest, ScriptedProvider, read_script


def ask(provider, dialect="openai-chat", **body):
    """What a call is answered with, the bodies joined."""
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]} | body
    path = DIALECTS[dialect].base_suffix + DIALECTS[dialect].endpoints[0]
    http = HttpRequest("POST", path, "", (), b"", dialect, body, provider.served)
    head, *bodies = provider(http)
    return head.status, b"".join(body.data for body in bodies).decode()


def text_of(provider, **body):
    status, answer = ask(provider, **body)
    assert status == 200
    return json.loads(answer)["choices"][0]["message"]["content"]


def say(text):
    return {"kind": "say", "text": text}


def test_call_n_is_answered_by_entry_n():
    provider = ScriptedProvider([say("one"), say("two")])
    assert [text_of(provider), text_of(provider)] == ["one", "two"]
    assert (provider.served, provider.remaining) == (2, 0)


def test_one_script_speaks_every_dialect():
    provider = ScriptedProvider([say("one"), say("two")])
    assert json.loads(ask(provider, "anthropic-messages", max_tokens=9)[1])["content"][0]["text"] == "one"
    assert text_of(provider) == "two"


def test_a_script_that_is_used_up_says_which_call_it_lacks():
    provider = ScriptedProvider([say("one")], where="up.json")
    ask(provider)
    status, answer = ask(provider)
    error = json.loads(answer)["error"]
    assert (status, error["code"]) == (500, "MOCK_SCRIPT_EXHAUSTED")
    assert error["message"].splitlines() == [
        "up.json: model call 1 (POST /v1/chat/completions, model m, 1 messages) has no entry, the script holds 1",
        "mend: add an entry to up.json",
    ]


def test_a_request_the_dialect_cannot_read_takes_no_entry():
    provider = ScriptedProvider([say("one")])
    with pytest.raises(DialectError, match="messages"):
        ask(provider, messages=3)
    assert text_of(provider) == "one"


def test_an_entry_is_filled_from_the_request():
    provider = ScriptedProvider([say("{{fromRequest:id=(\\w+)}}!"), say("{{fromRequest:nowhere}}")])
    messages = [{"role": "user", "content": "id=a"}, {"role": "user", "content": "id=b"}]
    assert text_of(provider, messages=messages) == "b!"
    with pytest.raises(RenderError):
        ask(provider)


def test_calls_without_an_id_are_numbered_through_the_script():
    call = {"name": "f", "arguments": {}}
    provider = ScriptedProvider([{"kind": "say", "toolCalls": [call, call]}, {"kind": "say", "toolCalls": [call]}])
    answers = [json.loads(ask(provider)[1]) for _ in range(2)]
    ids = [call["id"] for answer in answers for call in answer["choices"][0]["message"]["tool_calls"]]
    assert ids == ["call_mock_1", "call_mock_2", "call_mock_3"]
    assert [answer["id"] for answer in answers] == ["chatcmpl-mock1", "chatcmpl-mock2"]


def test_a_wrong_entry_is_named_by_its_place():
    with pytest.raises(EntryError, match=r"up\.json: entries\[1\]"):
        ScriptedProvider([say("one"), {"kind": "sing"}], where="up.json")


@pytest.mark.parametrize(
    "text", [b"{", b"\xff", "[]", '{"entries": 1}', '{"entries": [], "more": 1}', '{"entries": [1]}']
)
def test_a_script_that_is_none(text):
    with pytest.raises(EntryError, match=r"^up\.json: "):
        read_script(text, "up.json")


def test_reading_a_script():
    assert read_script('{"entries": [{"kind": "hang"}]}', "up.json") == [{"kind": "hang"}]
