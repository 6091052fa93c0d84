import json

import pytest
from llm_dialects import DIALECTS, Failure, Finish, FinishReason, ProviderError, classify, failure_in, status_of
from llm_dialects.errors import ERRORS, finish_of, gemini_error

CODES = [row.code for row in ERRORS]
EVERY_DIALECT = pytest.mark.parametrize("name", DIALECTS)


@EVERY_DIALECT
@pytest.mark.parametrize("code", [*CODES, "OWN_CODE"])
def test_an_error_told_and_read_is_the_same(name, code):
    message = "the context window is full" if code == "CONTEXT_WINDOW_EXCEEDED" else "no luck"
    error = ProviderError(code, message, status_of(ProviderError(code, message)))
    assert classify(error.status, DIALECTS[name].error_body(error)) == error


@EVERY_DIALECT
@pytest.mark.parametrize("code", [*CODES, "OWN_CODE"])
def test_an_error_in_a_stream_is_read_as_a_finish(name, code):
    message = "maximum context length" if code == "CONTEXT_WINDOW_EXCEEDED" else "no luck"
    dialect = DIALECTS[name]
    error = ProviderError(code, message)
    assert dialect.decoder().feed(dialect.error_event(error)) == [finish_of(error)]
    assert dialect.decode_message(dialect.error_body(error)) == (finish_of(error),)


def test_google_tells_a_code_in_details_only_where_its_words_do_not():
    plain = gemini_error(ProviderError("RATE_LIMIT", "slow"))
    assert plain == {"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}}
    own = gemini_error(ProviderError("OWN_CODE", "m"))["error"]
    assert (own["code"], own["status"], own["details"]) == (500, "UNKNOWN", [reason("OWN_CODE")])
    daily = gemini_error(ProviderError("QUOTA", "m"))["error"]
    assert daily["details"][0]["@type"].endswith("QuotaFailure")
    said = gemini_error(ProviderError("OVERLOADED", "The model is overloaded.", 503))
    assert said == {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ProviderError("AUTH", ""), 401),
        (ProviderError("QUOTA", ""), 429),
        (ProviderError("OVERLOADED", ""), 529),
        (ProviderError("OVERLOADED", "", 503), 503),
        (ProviderError("NEVER_HEARD_OF", ""), 500),
        (ProviderError("STREAM_CLOSED", ""), None),
    ],
)
def test_status(error, status):
    assert status_of(error) == status


def openai(message, **members):
    return json.dumps({"error": {"message": message, "param": None, **members}}).encode()


def anthropic(message, kind):
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


def google(message, status, *details, code=400):
    told = {"error": {"code": code, "message": message, "status": status}}
    return json.dumps(told if not details else {"error": told["error"] | {"details": list(details)}}).encode()


def reason(word):
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": word, "domain": "googleapis.com"}


def quota(word):
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": word}]}


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "5s"}
COUNT = "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576)."

FULL = "This model's maximum context length is 8 tokens"
POOR = "Your credit balance is too low to access the Anthropic API."
LONG = "prompt is too long: 9 tokens > 8 maximum"


# Bodies as real providers, gateways and proxies answer them.
@pytest.mark.parametrize(
    ("status", "body", "code", "message"),
    [
        (401, openai("no key", type="invalid_request_error", code="invalid_api_key"), "AUTH", "no key"),
        (429, openai("slow down", type="requests", code="rate_limit_exceeded"), "RATE_LIMIT", "slow down"),
        (429, openai("slow down", type="tokens", code="rate_limit_exceeded"), "RATE_LIMIT", "slow down"),
        (429, openai("slow down", type="rate_limit_error", code="slow_down"), "RATE_LIMIT", "slow down"),
        (429, openai("slow down", type="tokens", code=None), "RATE_LIMIT", "slow down"),
        (429, openai("pay", type="insufficient_quota", code="credit_balance_exhausted"), "QUOTA", "pay"),
        (503, openai("busy", type="service_unavailable_error", code="server_is_overloaded"), "OVERLOADED", "busy"),
        (503, openai("busy", type="server_error", code="overloaded"), "OVERLOADED", "busy"),
        (503, openai("away", type="service_unavailable_error", code=None), "UNAVAILABLE", "away"),
        (503, openai("away", type="server_error", code="service_unavailable"), "UNAVAILABLE", "away"),
        (503, openai("away", type="server_error", code=None), "UNAVAILABLE", "away"),
        (429, openai("pay", type="insufficient_quota", code="insufficient_quota"), "QUOTA", "pay"),
        (400, openai(FULL, type="invalid_request_error", code=None), "CONTEXT_WINDOW_EXCEEDED", FULL),
        (400, openai("bad", type="invalid_request_error", code="invalid_value"), "INVALID_REQUEST", "bad"),
        (429, openai("m", code=429), "RATE_LIMIT", "m"),
        (400, anthropic(LONG, "invalid_request_error"), "CONTEXT_WINDOW_EXCEEDED", LONG),
        (400, anthropic(POOR, "invalid_request_error"), "QUOTA", POOR),
        (402, anthropic("pay", "billing_error"), "QUOTA", "pay"),
        (503, anthropic("away", "api_error"), "UNAVAILABLE", "away"),
        (400, google("bad", "INVALID_ARGUMENT"), "INVALID_REQUEST", "bad"),
        (400, google("no key", "INVALID_ARGUMENT", reason("API_KEY_INVALID")), "AUTH", "no key"),
        (401, google("no key", "UNAUTHENTICATED", reason("NEVER_HEARD_OF")), "AUTH", "no key"),
        (400, google(COUNT, "INVALID_ARGUMENT"), "CONTEXT_WINDOW_EXCEEDED", COUNT),
        (400, google("where?", "FAILED_PRECONDITION"), "INVALID_REQUEST", "where?"),
        (403, google("no", "PERMISSION_DENIED", reason("SERVICE_DISABLED")), "PERMISSION", "no"),
        (404, google("m", "NOT_FOUND"), "NOT_FOUND", "m"),
        (429, google("slow", "RESOURCE_EXHAUSTED", quota("RequestsPerMinute"), RETRY), "RATE_LIMIT", "slow"),
        (429, google("pay", "RESOURCE_EXHAUSTED", quota("GenerateRequestsPerDayFree"), RETRY), "QUOTA", "pay"),
        (500, google("m", "INTERNAL"), "SERVER_ERROR", "m"),
        (500, google("m", "UNKNOWN"), "SERVER_ERROR", "m"),
        (503, google("m", "UNAVAILABLE"), "UNAVAILABLE", "m"),
        (503, google("it is overloaded", "UNAVAILABLE"), "OVERLOADED", "it is overloaded"),
        (503, google("there is high demand", "UNAVAILABLE"), "OVERLOADED", "there is high demand"),
        (504, google("m", "DEADLINE_EXCEEDED"), "TIMEOUT", "m"),
        (429, b"[" + google("m", "RESOURCE_EXHAUSTED") + b"]", "RATE_LIMIT", "m"),
        (429, google("m", "RESOURCE_EXHAUSTED", 7, {"reason": 7}), "RATE_LIMIT", "m"),
        (529, anthropic("Overloaded", "overloaded_error"), "OVERLOADED", "Overloaded"),
        (502, b"<html>Bad Gateway</html>", "SERVER_ERROR", "<html>Bad Gateway</html>"),
        (503, b"", "UNAVAILABLE", "HTTP 503"),
        (418, b'{"error":"teapot"}', "INVALID_REQUEST", "teapot"),
        (422, b"[1]", "INVALID_REQUEST", "[1]"),
        (500, b'{"detail":"x"}', "SERVER_ERROR", '{"detail":"x"}'),
    ],
)
def test_what_an_answer_means(status, body, code, message):
    assert classify(status, body) == ProviderError(code, message, status)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"error": {"message": "m", "type": "service_unavailable_error"}}, "UNAVAILABLE"),
        ({"error": {"message": "Your credit balance is too low.", "type": "invalid_request_error"}}, "QUOTA"),
        ({"error": {"message": "m", "type": "server_error"}}, "SERVER_ERROR"),
        ({"error": {"message": "m", "type": "invalid_request_error"}}, "INVALID_REQUEST"),
        ({"error": {"message": "m", "type": "odd", "code": "odder"}}, "odder"),
        ({"error": {"message": "m"}}, "SERVER_ERROR"),
        ({"error": {"message": "m", "code": 413, "status": "INVALID_ARGUMENT"}}, "REQUEST_TOO_LARGE"),
        ({"error": {"message": "m", "code": 429}}, "RATE_LIMIT"),
    ],
)
def test_what_an_event_means_without_a_status(body, code):
    assert classify(None, body).code == code


def test_the_failure_in_chunks():
    failure = Failure(message="m", code="AUTH")
    assert failure_in([Finish(reason=FinishReason(kind="stop"))]) is None
    assert failure_in([Finish(reason=FinishReason(kind="error", failure=failure))]) == ProviderError("AUTH", "m")
    assert failure_in([Finish(reason=FinishReason(kind="error"))]).code == "SERVER_ERROR"
