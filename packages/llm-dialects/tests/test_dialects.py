"""What every dialect's row in the table holds besides its formats: endpoints, keys, side requests."""

import json

import pytest
from llm_dialects import DIALECTS, Answer, Body, Head, Request, answer_to, is_streamed

ANSWER = Answer(id="a", model="org/model", created=7)


def request(**params):
    return Request(system=(), tools=(), messages=(), params=params)


def test_names_are_keys():
    assert {name: dialect.name for name, dialect in DIALECTS.items()} == {name: name for name in DIALECTS}


@pytest.mark.parametrize(
    ("name", "params", "streamed", "usage"),
    [
        ("openai-chat", {}, False, False),
        ("openai-chat", {"stream": True}, True, False),
        ("openai-chat", {"stream": True, "stream_options": {"include_usage": True}}, True, True),
        ("openai-chat", {"stream": "yes", "stream_options": None}, False, False),
        ("openai-responses", {}, False, True),
        ("openai-responses", {"stream": True}, True, True),
        ("anthropic-messages", {"stream": True}, True, True),
        ("gemini", {"stream": True, "alt": "sse"}, True, True),
    ],
)
def test_an_answer_fits_its_request(name, params, streamed, usage):
    asked = request(model="m", **params)
    answer = answer_to(DIALECTS[name], asked, token="9", created=7)
    assert is_streamed(asked) is streamed
    assert answer == Answer(id=DIALECTS[name].id_prefix + "9", model="m", created=7, include_usage=usage)


@pytest.mark.parametrize(
    ("name", "headers", "key"),
    [
        ("openai-chat", {"authorization": "Bearer k"}, "k"),
        ("openai-chat", {"authorization": "Basic k"}, None),
        ("openai-chat", {"x-api-key": "k"}, None),
        ("openai-chat", {}, None),
        ("openai-responses", {"authorization": "Bearer k"}, "k"),
        ("openai-responses", {"x-api-key": "k"}, None),
        ("anthropic-messages", {"x-api-key": "k", "authorization": "Bearer other"}, "k"),
        ("anthropic-messages", {"authorization": "bearer k"}, "k"),
        ("anthropic-messages", {}, None),
        ("gemini", {"x-goog-api-key": "k", "authorization": "Bearer other"}, "k"),
        ("gemini", {"authorization": "Bearer k"}, "k"),
        ("gemini", {}, None),
    ],
)
def test_the_key_a_client_sends(name, headers, key):
    assert DIALECTS[name].api_key(headers) == key


@pytest.mark.parametrize(("name", "dialect"), DIALECTS.items())
def test_the_key_is_found_where_it_is_sent(name, dialect):
    header, value = dialect.key_header
    assert dialect.api_key({header: value.format(key="a{b}")}) == "a{b}", name


@pytest.mark.parametrize("name", DIALECTS)
def test_only_gemini_takes_a_key_from_the_query(name):
    assert DIALECTS[name].api_key({}, "alt=sse&key=a%2Bb") == ("a+b" if name == "gemini" else None)


@pytest.mark.parametrize(("name", "dialect"), DIALECTS.items())
def test_what_an_answer_to_a_stream_is_labelled(name, dialect):
    array = answer_to(dialect, request(model="m", stream=True), token="9", created=7).stream_type
    assert array == ("application/json" if name == "gemini" else "text/event-stream")
    assert answer_to(dialect, request(alt="sse"), token="9", created=7).stream_type == "text/event-stream"


def check_side(name, method, path, expected, body=None, answer=ANSWER):
    head, data = DIALECTS[name].side_reply(method, path, body=body, answer=answer)
    assert isinstance(head, Head)
    assert isinstance(data, Body)
    assert dict(head.headers)["content-length"] == str(len(data.data))
    assert head.status == 200
    assert json.loads(data.data) == expected


OPENAI_MODEL = {"id": "org/model", "object": "model", "created": 7, "owned_by": "snapshot"}
GOOGLES = {
    "name": "models/m",
    "version": "001",
    "displayName": "m",
    "inputTokenLimit": 1048576,
    "outputTokenLimit": 65536,
    "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
}
VERTEX = "/v1beta1/publishers/google/models"
CLAUDE = {"type": "model", "id": "m", "display_name": "m", "created_at": "1970-01-01T00:00:00Z"} | {
    "lifecycle": "active",
    "max_input_tokens": 200000,
    "max_tokens": 64000,
}


@pytest.mark.parametrize(
    ("name", "method", "path", "expected"),
    [
        ("openai-chat", "GET", "/v1/models", {"object": "list", "data": [OPENAI_MODEL]}),
        ("openai-chat", "GET", "/models/", {"object": "list", "data": [OPENAI_MODEL]}),
        ("openai-chat", "GET", "/gateway/v1/models/org/model", OPENAI_MODEL),
        ("openai-chat", "GET", "/api/tags", {"models": [{"name": "org/model", "model": "org/model"}]}),
        (
            "openai-chat",
            "POST",
            "/api/show",
            {"details": {}, "model_info": {}, "capabilities": ["completion", "tools"]},
        ),
        ("openai-chat", "GET", "/", {"status": "ok"}),
        ("openai-responses", "GET", "/v1/models", {"object": "list", "data": [OPENAI_MODEL]}),
        ("openai-responses", "GET", "/v1/models/org/model", OPENAI_MODEL),
        ("openai-responses", "GET", "/", {"status": "ok"}),
        ("anthropic-messages", "GET", "/v1/models/m", CLAUDE),
        ("anthropic-messages", "GET", "/", {"status": "ok"}),
        ("gemini", "GET", "/v1beta/models/m", GOOGLES),
        ("gemini", "GET", f"{VERTEX}/m", {"name": "publishers/google/models/m", "versionId": "default"}),
        ("gemini", "GET", "/", {"status": "ok"}),
    ],
)
def test_side_requests_are_answered(name, method, path, expected):
    check_side(name, method, path, expected)


def test_lists_of_no_known_model_are_empty():
    check_side("openai-chat", "GET", "/v1/models", {"object": "list", "data": []}, answer=None)
    empty = {"data": [], "has_more": False, "first_id": None, "last_id": None}
    check_side("anthropic-messages", "GET", "/v1/models", empty, answer=None)
    one = {"data": [CLAUDE], "has_more": False, "first_id": "m", "last_id": "m"}
    check_side("anthropic-messages", "GET", "/v1/models", one, answer=Answer(id="a", model="m"))
    check_side("gemini", "GET", "/v1beta/models", {"models": []}, answer=None)
    check_side("gemini", "GET", "/v1beta/models", {"models": [GOOGLES]}, answer=Answer(id="a", model="m"))
    check_side("gemini", "GET", VERTEX, {"publisherModels": []}, answer=None)


def test_tokens_are_counted_honestly():
    body = {"messages": [{"role": "user", "content": "ping"}]}
    check_side("anthropic-messages", "POST", "/v1/messages/count_tokens", {"input_tokens": 9}, body=body)
    contents = {"contents": [{"parts": [{"text": "ping"}]}]}
    count = "/v1beta/models/m:countTokens"
    check_side("gemini", "POST", count, {"totalTokens": 8}, body=contents)
    check_side("gemini", "POST", count, {"totalTokens": 8}, body={"generateContentRequest": contents})
    check_side("gemini", "POST", count, {"totalTokens": 0}, body=[7])
    counted = {"object": "response.input_tokens", "input_tokens": 1}
    check_side("openai-responses", "POST", "/v1/responses/input_tokens", counted, body={"model": "m", "input": "hi"})


@pytest.mark.parametrize("name", DIALECTS)
def test_a_look_at_the_bare_host_gets_no_body(name):
    assert DIALECTS[name].side_reply("HEAD", "/") == (Head(200, (("content-length", "0"),)),)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/models"),
        ("DELETE", "/"),
        ("GET", "/v1/chat/completions"),
        ("POST", "/v1/messages"),
        ("POST", "/v1/responses"),
        ("GET", "/v1/responses/input_tokens"),
        ("GET", "/v1/responses/resp_1"),
        ("GET", "/supermodels"),
        ("GET", "/favicon.ico"),
    ],
)
def test_anything_else_is_no_side_request(name, method, path):
    assert DIALECTS[name].side_reply(method, path) is None
