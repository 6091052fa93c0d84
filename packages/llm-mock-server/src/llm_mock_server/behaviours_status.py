"""Behaviours that are HTTP errors: status, words and headers as each provider sends them. Pure."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from llm_dialects import Action, Json, ProviderError, status_of
from llm_dialects.wire import decode_json, encode_json
from msgspec import Struct

from llm_mock_server.answer import whole
from llm_mock_server.behaviours_parts import JSON, Headers, request_id
from llm_mock_server.situation import Situation


class Refusal(Struct, frozen=True):
    """How one provider words one failure.

    ``code`` is ours (``llm_dialects.errors``), ``status`` the HTTP status where it is not the code's own; ``reason``
    is the one that Google's errors give in a detail.
    """

    code: str
    message: str
    status: int | None = None
    reason: str = ""


def rate_limit(situation: Situation) -> Iterator[Action]:
    """Refuse for now, and say when to come again."""
    return refuse(situation, "rate_limit")


def server_error(situation: Situation) -> Iterator[Action]:
    """Fail for no reason given."""
    return refuse(situation, "server_error")


def service_unavailable(situation: Situation) -> Iterator[Action]:
    """Be not there for a while."""
    return refuse(situation, "service_unavailable")


def overloaded(situation: Situation) -> Iterator[Action]:
    """Have too much to do."""
    return refuse(situation, "overloaded")


def quota_exceeded(situation: Situation) -> Iterator[Action]:
    """Refuse for lack of money."""
    return refuse(situation, "quota_exceeded")


def auth_error(situation: Situation) -> Iterator[Action]:
    """Refuse the key."""
    return refuse(situation, "auth_error")


def invalid_request(situation: Situation) -> Iterator[Action]:
    """Refuse the request."""
    return refuse(situation, "invalid_request")


def context_overflow(situation: Situation) -> Iterator[Action]:
    """Refuse a prompt that is too long."""
    return refuse(situation, "context_overflow")


def refuse(situation: Situation, name: str) -> Iterator[Action]:
    """Yield the HTTP error of the behaviour ``name``."""
    error = failure_of(situation, name)
    limits = LIMITS.get(situation.dialect.name, retry_after) if name == "rate_limit" else None
    headers = request_id(situation) + (limits(situation) if limits else ())
    body = detailed(situation, name, situation.dialect.error_body(error))
    if situation.streamed and situation.dialect.stream_type(situation.request) == JSON:
        body = b"[%b]" % body  # whoever asked for an array gets an array
    yield from whole(status_of(error) or 500, body, headers)


def failure_of(situation: Situation, name: str) -> ProviderError:
    """Return the failure of the behaviour ``name`` as the provider words it."""
    refusal = refusal_of(situation, name)
    return ProviderError(refusal.code, refusal.message, refusal.status)


def refusal_of(situation: Situation, name: str) -> Refusal:
    """Return the row of the behaviour and the dialect; one that has none speaks like OpenAI."""
    return WORDS.get((name, situation.dialect.name)) or WORDS[name, "openai-chat"]


# ── Headers and details ─────────────────────────────────────────────────────────────────────────────────────────────


def retry_after(situation: Situation) -> Headers:
    """Return when to come again, in whole seconds, rounded up."""
    return (("retry-after", str(-(-situation.options.retry_after_ms // 1000))),)


def openai_limits(situation: Situation) -> Headers:
    """Return what OpenAI says of a limit that is reached; durations are like ``1.5s``."""
    wait = situation.options.retry_after_ms
    return (
        *retry_after(situation),
        ("retry-after-ms", str(wait)),
        ("x-ratelimit-limit-requests", str(LIMIT)),
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", seconds(wait)),
    )


def anthropic_limits(situation: Situation) -> Headers:
    """Return what Anthropic says of a limit that is reached; when it is over is a time in UTC."""
    over = datetime.fromtimestamp(situation.created, UTC) + timedelta(milliseconds=situation.options.retry_after_ms)
    return (
        *retry_after(situation),
        ("anthropic-ratelimit-requests-limit", str(LIMIT)),
        ("anthropic-ratelimit-requests-remaining", "0"),
        ("anthropic-ratelimit-requests-reset", over.strftime("%Y-%m-%dT%H:%M:%SZ")),
    )


def detailed(situation: Situation, name: str, body: bytes) -> bytes:
    """Return an error body with the details in which Google tells a reason and a delay; others tell none."""
    reason = refusal_of(situation, name).reason
    told: list[Json] = [{"@type": f"{RPC}ErrorInfo", "reason": reason, "domain": "googleapis.com"}] if reason else []
    if name == "rate_limit":
        told.append({"@type": f"{RPC}RetryInfo", "retryDelay": seconds(situation.options.retry_after_ms)})
    if situation.dialect.name != "gemini" or not told:
        return body
    value = decode_json(body)
    known = value["error"].get("details", [])
    return encode_json({"error": value["error"] | {"details": [*known, *told]}})


def seconds(milliseconds: int) -> str:
    """Return a duration like ``1.5s``."""
    whole_seconds, rest = divmod(milliseconds, 1000)
    return f"{whole_seconds}.{rest:03}".rstrip("0").rstrip(".") + "s"


RPC = "type.googleapis.com/google.rpc."

LIMIT = 60
"""Requests that the limit allows."""

# dialect -> the headers of its rate limits, where they say more than when to come again
LIMITS: Mapping[str, Callable[[Situation], Headers]] = {
    "openai-chat": openai_limits,
    "openai-responses": openai_limits,
    "anthropic-messages": anthropic_limits,
}

OPENAI: dict[str, Refusal] = {
    "rate_limit": Refusal("RATE_LIMIT", "Rate limit reached for requests. Please try again later."),
    "server_error": Refusal("SERVER_ERROR", "The server had an error while processing your request. Sorry about that!"),
    "service_unavailable": Refusal("UNAVAILABLE", "The server is temporarily unavailable. Please try again later."),
    "overloaded": Refusal("OVERLOADED", "The engine is currently overloaded, please try again later.", 503),
    "quota_exceeded": Refusal("QUOTA", "You exceeded your current quota, please check your plan and billing details."),
    "auth_error": Refusal("AUTH", "Incorrect API key provided."),
    "invalid_request": Refusal("INVALID_REQUEST", "Invalid value: the request is not what the API expects."),
    "context_overflow": Refusal(
        "CONTEXT_WINDOW_EXCEEDED",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 128001 tokens. "
        "Please reduce the length of the messages.",
    ),
}
RESPONSES: dict[str, Refusal] = {
    "context_overflow": Refusal(
        "CONTEXT_WINDOW_EXCEEDED",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
}
ANTHROPIC: Mapping[str, Refusal] = {
    "rate_limit": Refusal("RATE_LIMIT", "This request would exceed your organization's rate limit."),
    "server_error": Refusal("SERVER_ERROR", "Internal server error"),
    "service_unavailable": Refusal("UNAVAILABLE", "Service unavailable"),
    "overloaded": Refusal("OVERLOADED", "Overloaded"),
    "quota_exceeded": Refusal("QUOTA", "Your credit balance is too low to access the Anthropic API.", 402),
    "auth_error": Refusal("AUTH", "invalid x-api-key"),
    "invalid_request": Refusal("INVALID_REQUEST", "messages: the request is not what the API expects"),
    "context_overflow": Refusal("CONTEXT_WINDOW_EXCEEDED", "prompt is too long: 200001 tokens > 200000 maximum"),
}
GEMINI: Mapping[str, Refusal] = {
    "rate_limit": Refusal("RATE_LIMIT", "Resource has been exhausted (e.g. check quota)."),
    "server_error": Refusal("SERVER_ERROR", "An internal error has occurred. Please retry."),
    "service_unavailable": Refusal("UNAVAILABLE", "The service is currently unavailable."),
    "overloaded": Refusal("OVERLOADED", "The model is overloaded. Please try again later.", 503),
    "quota_exceeded": Refusal("QUOTA", "You exceeded your current quota, please check your plan and billing details."),
    # No 401: a key that is none is an invalid argument there.
    "auth_error": Refusal(
        "INVALID_REQUEST", "API key not valid. Please pass a valid API key.", reason="API_KEY_INVALID"
    ),
    "invalid_request": Refusal("INVALID_REQUEST", "Request contains an invalid argument."),
    "context_overflow": Refusal(
        "CONTEXT_WINDOW_EXCEEDED",
        "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
    ),
}

# (behaviour, dialect) -> the provider's own words
WORDS: Mapping[tuple[str, str], Refusal] = {
    (name, dialect): refusal
    for dialect, refusals in {
        "openai-chat": OPENAI,
        "openai-responses": OPENAI | RESPONSES,
        "anthropic-messages": ANTHROPIC,
        "gemini": GEMINI,
    }.items()
    for name, refusal in refusals.items()
}
