"""Which dialect a request is taken for, and what it is."""

import json

import pytest
from llm_dialects import DIALECTS
from llm_mock_server.admission import Call, Rejected, Side, admit, find_endpoint, likely_dialect
from llm_mock_server.http1 import RawRequest

BODY = b'{"model": "m"}'


def request(target, method="POST", headers=(), body=BODY):
    return RawRequest(method, target, headers, body)


ENDPOINTS = [
    ("/chat/completions", "openai-chat", ""),
    ("/v1/chat/completions", "openai-chat", "/v1"),
    ("/openai/deployments/x/chat/completions", "openai-chat", "/openai/deployments/x"),
    ("/v1/messages", "anthropic-messages", ""),
    ("/gateway/v1/messages", "anthropic-messages", "/gateway"),
    ("/messages", "anthropic-messages", ""),
    ("/v1beta/models/m:generateContent", "gemini", "/v1beta/models/m"),
    ("/seg/v1beta/models/m:streamGenerateContent", "gemini", "/seg/v1beta/models/m"),
]


@pytest.mark.parametrize(("path", "dialect", "prefix"), ENDPOINTS)
def test_endpoints(path, dialect, prefix):
    found = find_endpoint(path, DIALECTS)
    assert found is not None
    assert (found[0].name, found[1]) == (dialect, prefix)


@pytest.mark.parametrize("path", ["/", "", "/chat", "/chat/completions/", "/v1/messages/count_tokens", "*"])
def test_paths_that_are_no_endpoint(path):
    assert find_endpoint(path, DIALECTS) is None


LIKELY = [
    ("/v1/messages", (), "anthropic-messages"),
    ("/v1/messages?beta=true", (), "anthropic-messages"),
    ("/x", (), "openai-chat"),
    ("/x", (("anthropic-version", "2023-06-01"),), "anthropic-messages"),
    ("/x", (("x-api-key", "k"),), "anthropic-messages"),
    ("/x", (("x-goog-api-key", "k"),), "gemini"),
    ("/x?pageSize=5&key=k", (), "gemini"),
    ("/x?key=k", (("x-api-key", "k"),), "anthropic-messages"),
    ("/x?keys=k", (), "openai-chat"),
    ("/chat/completions", (("x-api-key", "k"),), "openai-chat"),
]


@pytest.mark.parametrize(("target", "headers", "dialect"), LIKELY)
def test_likely_dialect(target, headers, dialect):
    assert likely_dialect(request(target, headers=headers), DIALECTS).name == dialect


def check(raw, kind, dialect, status=None, api_key=None):
    admission = admit(raw, DIALECTS, api_key)
    assert type(admission) is kind
    assert admission.dialect.name == dialect
    if status is not None:
        head, body = admission.reply
        assert head.status == status
        error = json.loads(body.data)
        assert ("type" in error) == (dialect == "anthropic-messages")


KEY = (("x-api-key", "k"),)
BEARER = (("authorization", "Bearer k"),)
GOOGLE = (("x-goog-api-key", "k"),)
COUNT = "/v1beta/models/m:countTokens"

ADMISSIONS = [
    (request("/v1/messages"), Call, "anthropic-messages", None),
    (request("/v1/chat/completions?api-version=1"), Call, "openai-chat", None),
    (request("/v1/models", "GET", headers=KEY), Side, "anthropic-messages", None),
    (request("/v1/models", "GET", headers=BEARER), Side, "openai-chat", None),
    (request("/api/show", headers=KEY), Side, "openai-chat", None),
    (request("/v1/messages/count_tokens"), Side, "anthropic-messages", None),
    (request("/v1/messages/count_tokens", body=b"\xff"), Side, "anthropic-messages", None),
    (request("/v1beta/models", "GET", headers=GOOGLE), Side, "gemini", None),
    (request("/v1beta/models?key=k", "GET"), Side, "gemini", None),
    (request(COUNT), Side, "gemini", None),
    (request("/v1beta/models/m:generateContent", "GET"), Rejected, "gemini", 405),
    (request("/v1/messages", "PUT"), Rejected, "anthropic-messages", 405),
    (request("/v1/complete", headers=KEY), Rejected, "anthropic-messages", 404),
    (request("/v1/messages", body=b"[]"), Rejected, "anthropic-messages", 400),
    (request("/v1/messages", body=b'{"a": "\\ud83d"}'), Call, "anthropic-messages", None),
]


@pytest.mark.parametrize(("raw", "kind", "dialect", "status"), ADMISSIONS)
def test_admissions(raw, kind, dialect, status):
    check(raw, kind, dialect, status)


@pytest.mark.parametrize(
    ("headers", "kind", "status"), [(KEY, Call, None), (BEARER, Call, None), ((("x-api-key", "no"),), Rejected, 401)]
)
def test_keys(headers, kind, status):
    check(request("/v1/messages", headers=headers), kind, "anthropic-messages", status, api_key="k")


def test_a_wrong_key_is_refused_as_the_provider_refuses_it():
    """Google has no 401 for it, and puts it into an array where one was asked for."""
    for target in ("/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent"):
        admission = admit(request(target, headers=GOOGLE), DIALECTS, "other")
        assert type(admission) is Rejected
        head, body = admission.reply
        assert head.status == 400
        told = json.loads(body.data)
        error = (told[0] if "stream" in target else told)["error"]
        assert (error["status"], error["details"][0]["reason"]) == ("INVALID_ARGUMENT", "API_KEY_INVALID")
    check(request("/v1beta/models", "GET", headers=GOOGLE), Rejected, "gemini", 400, api_key="other")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("/v1beta/models/g:generateContent", {"model": "g", "x": 1}),
        ("/v1beta/models/g:streamGenerateContent?alt=sse", {"model": "g", "stream": True, "alt": "sse", "x": 1}),
    ],
)
def test_what_the_path_says_is_said_in_the_json_and_wins(target, said):
    admission = admit(request(target, body=b'{"x": 1, "model": "other"}'), DIALECTS, None)
    assert admission.json == said
    assert next(iter(admission.json)) == "model"


BODIES = [
    (b"", "it is empty"),
    (b"[1]", "it is an array"),
    (b"null", "it is null"),
    (b'"x"', "it is a string"),
    (b'{"a":', "it is not JSON: "),
    (b'{"a": NaN}', "it is not JSON: "),
    (b'{"a": "\xff"}', "it is not UTF-8: byte 7 is 0xff"),
    ('{"a": 1}'.encode("utf-16"), "it is not UTF-8: byte 0 is 0xff"),
]


@pytest.mark.parametrize(("body", "words"), BODIES)
def test_a_body_that_is_no_object_is_told_what_it_is(body, words):
    admission = admit(request("/v1/messages", body=body), DIALECTS, None)
    assert type(admission) is Rejected
    assert words in json.loads(admission.reply[1].data)["error"]["message"]


@pytest.mark.parametrize(
    ("path", "headers", "name"),
    [
        ("/v1/models", (), "id"),
        ("/v1/models", (("anthropic-version", "2023-06-01"),), "id"),
        ("/v1beta/models", GOOGLE, "name"),
    ],
)
def test_model_lists_hold_the_listed_model(path, headers, name):
    def listed(model):
        _, body = admit(request(path, "GET", headers=headers), DIALECTS, None, model).reply
        told = json.loads(body.data)
        return [each[name].removeprefix("models/") for each in told.get("data", told.get("models"))]

    assert (listed("a-model"), listed("")) == (["a-model"], [])
