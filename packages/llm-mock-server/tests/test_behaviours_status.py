"""Failures are told by status, words and headers, as each provider tells them."""

import json

import pytest
from llm_dialects import DIALECTS, Body, Head, Request, Usage, classify
from llm_mock_server.behaviours import behave
from llm_mock_server.options import MAX_DELAY_MS, Options
from llm_mock_server.situation import Situation

OTHERS = "others"
RPC = "type.googleapis.com/google.rpc."
# behaviour -> dialect -> (status, what the failure is in our codes, words in the body)
FAILURES = {
    "rate_limit": {
        OTHERS: (429, "RATE_LIMIT", "rate_limit_exceeded"),
        "anthropic-messages": (429, "RATE_LIMIT", "rate_limit_error"),
        "gemini": (429, "RATE_LIMIT", "RESOURCE_EXHAUSTED"),
    },
    "server_error": {
        OTHERS: (500, "SERVER_ERROR", "server_error"),
        "anthropic-messages": (500, "SERVER_ERROR", "api_error"),
        "gemini": (500, "SERVER_ERROR", "INTERNAL"),
    },
    "service_unavailable": {OTHERS: (503, "UNAVAILABLE", "unavailable")},
    "quota_exceeded": {
        OTHERS: (429, "QUOTA", "insufficient_quota"),
        "anthropic-messages": (400, "QUOTA", "credit balance is too low"),
        "gemini": (429, "QUOTA", "exceeded your current quota"),
    },
    "auth_error": {
        OTHERS: (401, "AUTH", "invalid_api_key"),
        "anthropic-messages": (401, "AUTH", "invalid x-api-key"),
        "gemini": (400, "AUTH", "API_KEY_INVALID"),
    },
    "invalid_request": {OTHERS: (400, "INVALID_REQUEST", "invalid")},
    "context_overflow": {
        OTHERS: (400, "CONTEXT_WINDOW_EXCEEDED", "context_length_exceeded"),
        "anthropic-messages": (400, "CONTEXT_WINDOW_EXCEEDED", "prompt is too long"),
        "gemini": (400, "CONTEXT_WINDOW_EXCEEDED", "exceeds the maximum number of tokens"),
    },
    "overloaded": {
        OTHERS: (503, "OVERLOADED", "server_is_overloaded"),
        "anthropic-messages": (529, "OVERLOADED", "overloaded_error"),
        "gemini": (503, "OVERLOADED", "high demand"),
    },
}


def reply(name, dialect, options=None, *, stream=True, **params):
    situation = Situation(
        dialect=DIALECTS[dialect],
        request=Request(
            system=(), tools=(), messages=(), params={"model": "m", "stream": stream, "alt": "sse"} | params
        ),
        options=options or Options(),
        token="7",
        created=1_767_225_600,
        count=lambda chunks: Usage(input_tokens=0, output_tokens=0),
        new_id=lambda: "call",
        target="",
    )
    return list(behave(name, situation))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_in_the_provider_s_words(name, dialect):
    status, code, words = FAILURES[name].get(dialect, FAILURES[name][OTHERS])
    head, body = reply(name, dialect)
    assert (head.status, dict(head.headers)["content-type"]) == (status, "application/json")
    assert words.lower() in body.data.decode().lower()
    assert classify(head.status, body.data).code == code
    assert reply(name, dialect, stream=False) == [head, body]


@pytest.mark.parametrize("name", FAILURES)
def test_who_asked_gemini_for_an_array_gets_an_array(name):
    _, plain = reply(name, "gemini")
    head, body = reply(name, "gemini", alt="json")
    assert body.data == b"[%b]" % plain.data
    assert dict(head.headers)["content-length"] == str(len(body.data))


@pytest.mark.parametrize(
    ("milliseconds", "seconds", "openai", "google"),
    [
        (1, "1", "1ms", "0.001s"),
        (999, "1", "999ms", "0.999s"),
        (1000, "1", "1s", "1s"),
        (1001, "2", "1.001s", "1.001s"),
        (2500, "3", "2.5s", "2.500s"),
        (10_000, "10", "10s", "10s"),
        (360_000, "360", "6m0s", "360s"),
        (MAX_DELAY_MS, "2147484", "596h31m23.647s", "2147483.647s"),
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_when_to_come_again(dialect, milliseconds, seconds, openai, google):
    head, body = reply("rate_limit", dialect, Options(retry_after_ms=milliseconds))
    headers, message = dict(head.headers), json.loads(body.data)["error"]["message"]
    if dialect.startswith("openai"):
        assert headers["retry-after-ms"] == str(milliseconds)
        assert headers["x-ratelimit-reset-requests"] == openai
        assert f" Please try again in {openai}. " in message
    if dialect == "gemini":
        details = json.loads(body.data)["error"]["details"]
        assert details[-1] == {"@type": f"{RPC}RetryInfo", "retryDelay": google}
        assert message.endswith(f"Please retry in {google}.")
        assert [header for header in headers if "retry" in header] == []
    else:
        assert headers["retry-after"] == seconds


@pytest.mark.parametrize(("name", "span"), [("rate_limit", "Minute"), ("quota_exceeded", "Day")])
def test_which_of_gemini_s_limits_was_met(name, span):
    _, body = reply(name, "gemini")
    limit, help_, *_ = json.loads(body.data)["error"]["details"]
    assert limit["violations"][0]["quotaId"] == f"GenerateRequestsPer{span}PerProjectPerModel"
    assert help_["@type"] == f"{RPC}Help"


def test_what_gemini_says_of_a_key():
    _, body = reply("auth_error", "gemini")
    error = json.loads(body.data)["error"]
    info, localized = error["details"]
    assert (info["reason"], info["metadata"]) == ("API_KEY_INVALID", {"service": "generativelanguage.googleapis.com"})
    assert localized == {"@type": f"{RPC}LocalizedMessage", "locale": "en-US", "message": error["message"]}


@pytest.mark.parametrize("name", FAILURES)
def test_what_openai_blames(name):
    blamed = {"openai-chat": "messages", "openai-responses": "input"} if name == "context_overflow" else {}
    for dialect in ("openai-chat", "openai-responses"):
        assert json.loads(reply(name, dialect)[1].data)["error"]["param"] == blamed.get(dialect)


@pytest.mark.parametrize("name", FAILURES)
def test_anthropic_s_bodies_name_the_request_as_the_header_does(name):
    head, body = reply(name, "anthropic-messages")
    assert json.loads(body.data)["request_id"] == dict(head.headers)["request-id"] == "req_7"


def test_a_limit_names_the_model():
    for dialect in ("openai-chat", "openai-responses", "gemini"):
        assert b"my-{model}" in reply("rate_limit", dialect, model="my-{model}")[1].data


def test_when_anthropic_s_limit_is_over():
    head, _ = reply("rate_limit", "anthropic-messages", Options(retry_after_ms=90_000))
    assert dict(head.headers)["anthropic-ratelimit-requests-reset"] == "2026-01-01T00:01:30Z"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", [name for name in FAILURES if name != "rate_limit"])
def test_only_a_limit_says_when_to_come_again(name, dialect):
    assert not [header for header, _ in reply(name, dialect)[0].headers if "retry" in header or "limit" in header]


@pytest.mark.parametrize(
    ("target", "redirect_to", "location"),
    [
        ("/v1/x", None, "/v1/x?redirected=7"),
        ("/v1/x?alt=sse", None, "/v1/x?alt=sse&redirected=7"),
        ("//host/x", None, "/.//host/x?redirected=7"),
        ("", None, "#redirected=7"),
        ("/v1/x", "http://127.0.0.1/y", "http://127.0.0.1/y"),
    ],
)
def test_where_a_redirect_leads(target, redirect_to, location):
    situation = Situation(
        dialect=DIALECTS["openai-chat"],
        request=Request(system=(), tools=(), messages=(), params={}),
        options=Options(redirect_to=redirect_to),
        token="7",
        created=0,
        count=lambda chunks: Usage(input_tokens=0, output_tokens=0),
        new_id=lambda: "call",
        target=target,
    )
    headers = (("location", location), ("content-length", "0"), ("x-request-id", "req_7"))
    assert list(behave("redirect", situation)) == [Head(307, headers)]


def test_an_unknown_dialect_is_told_in_openai_s_words():
    import msgspec

    known = DIALECTS["openai-chat"]
    situation = Situation(
        dialect=msgspec.structs.replace(known, name="other"),
        request=Request(system=(), tools=(), messages=(), params={}),
        options=Options(),
        token="7",
        created=0,
        count=lambda chunks: Usage(input_tokens=0, output_tokens=0),
        new_id=lambda: "call",
    )
    head, body = behave("auth_error", situation)
    assert isinstance(body, Body)
    assert (head.status, "x-request-id" in dict(head.headers)) == (401, False)
