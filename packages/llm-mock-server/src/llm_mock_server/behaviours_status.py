"""Behaviours that are HTTP errors: status, words and headers as each provider sends them. Pure."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from llm_dialects import Action, Json, ProviderError, status_of
from llm_dialects.errors import RPC, quota_failure
from llm_dialects.wire import decode_json, encode_json
from msgspec import Struct

from llm_mock_server.answer import whole
from llm_mock_server.behaviours_parts import JSON, Headers, request_id
from llm_mock_server.situation import Situation


class Refusal(Struct, frozen=True):
    """How one provider words one failure.

    ``code`` is ours (``llm_dialects.errors``), ``status`` the HTTP status where it is not the code's own; ``param`` is
    the member of the request that OpenAI blames, ``reason`` the one that Google's errors give in a detail. The message
    may name the ``{model}``, the ``{limit}`` and the ``{delay}``.
    """

    code: str
    message: str
    status: int | None = None
    param: str | None = None
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
    limits = LIMITS.get(situation.dialect.name) if name == "rate_limit" else None
    headers = request_id(situation) + (limits(situation) if limits else ())
    body = detailed(situation, name, situation.dialect.error_body(error))
    if situation.streamed and situation.dialect.stream_type(situation.request) == JSON:
        body = b"[%b]" % body  # whoever asked for an array gets an array
    yield from whole(status_of(error) or 500, body, headers)


def failure_of(situation: Situation, name: str) -> ProviderError:
    """Return the failure of the behaviour ``name`` as the provider words it."""
    refusal = refusal_of(situation, name)
    wait = situation.options.retry_after_ms
    delay = google_duration(wait) if situation.dialect.name == "gemini" else duration(wait)
    message = refusal.message.format(model=situation.request.params.get("model", ""), limit=LIMIT, delay=delay)
    return ProviderError(refusal.code, message, refusal.status)


def refusal_of(situation: Situation, name: str) -> Refusal:
    """Return the row of the behaviour and the dialect; one that has none speaks like OpenAI."""
    return WORDS.get((name, situation.dialect.name)) or WORDS[name, "openai-chat"]


# ── Headers and details ─────────────────────────────────────────────────────────────────────────────────────────────


def retry_after(situation: Situation) -> Headers:
    """Return when to come again, in whole seconds, rounded up."""
    return (("retry-after", str(-(-situation.options.retry_after_ms // 1000))),)


def openai_limits(situation: Situation) -> Headers:
    """Return what OpenAI says of a limit that is reached.

    https://developers.openai.com/api/docs/guides/rate-limits
    """
    wait = situation.options.retry_after_ms
    return (
        *retry_after(situation),
        ("retry-after-ms", str(wait)),
        ("x-ratelimit-limit-requests", str(LIMIT)),
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", duration(wait)),
    )


def anthropic_limits(situation: Situation) -> Headers:
    """Return what Anthropic says of a limit that is reached; when it is over is a time in UTC.

    https://platform.claude.com/docs/en/api/rate-limits, and ``x-should-retry`` as in
    https://github.com/anthropics/anthropic-sdk-typescript/issues/357.
    """
    over = datetime.fromtimestamp(situation.created, UTC) + timedelta(milliseconds=situation.options.retry_after_ms)
    return (
        ("x-should-retry", "true"),
        *retry_after(situation),
        ("anthropic-ratelimit-requests-limit", str(LIMIT)),
        ("anthropic-ratelimit-requests-remaining", "0"),
        ("anthropic-ratelimit-requests-reset", over.strftime("%Y-%m-%dT%H:%M:%SZ")),
    )


def detailed(situation: Situation, name: str, body: bytes) -> bytes:
    """Return an error body with what its provider says beside code and message."""
    details = DETAILS.get(situation.dialect.name)
    return body if details is None else encode_json(details(situation, name, decode_json(body)))


def openai_details(situation: Situation, name: str, body: dict[str, Json]) -> dict[str, Json]:
    """Return ``body`` with the member of the request that is to blame."""
    return {"error": body["error"] | {"param": refusal_of(situation, name).param}}


def anthropic_details(situation: Situation, name: str, body: dict[str, Json]) -> dict[str, Json]:  # noqa: ARG001
    """Return ``body`` with the request's id, which is in the header too."""
    return body | {"request_id": dict(request_id(situation))["request-id"]}


def google_details(situation: Situation, name: str, body: dict[str, Json]) -> dict[str, Json]:
    """Return ``body`` with a reason, a limit, a delay; this one is told nowhere else, in no header.

    A key: https://github.com/continuedev/continue/issues/10290; a limit:
    https://github.com/googleapis/python-genai/issues/2044; a delay: https://github.com/vercel/ai/issues/18627.
    """
    told = list(body["error"].get("details", []))
    reason = refusal_of(situation, name).reason
    if reason:
        told.append({"@type": f"{RPC}ErrorInfo", "reason": reason, "domain": "googleapis.com", "metadata": SERVICE})
        told.append({"@type": f"{RPC}LocalizedMessage", "locale": "en-US", "message": body["error"]["message"]})
    if name == "rate_limit":
        delay = google_duration(situation.options.retry_after_ms)
        told += [quota_failure("Minute"), HELP, {"@type": f"{RPC}RetryInfo", "retryDelay": delay}]
    if name == "quota_exceeded":
        told.append(HELP)
    return {"error": body["error"] | ({"details": told} if told else {})}


def duration(milliseconds: int) -> str:
    """Return a duration as OpenAI writes it: ``120ms``, ``1.5s``, ``6m0s``."""
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    before = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return before + f"{rest // 1000}.{rest % 1000:03}".rstrip("0").rstrip(".") + "s"


def google_duration(milliseconds: int) -> str:
    """Return a duration as Protocol Buffers write it in JSON: ``1s``, ``1.500s``."""
    whole_seconds, rest = divmod(milliseconds, 1000)
    return f"{whole_seconds}.{rest:03}s" if rest else f"{whole_seconds}s"


LIMIT = 60
"""Requests that the limit allows in a minute."""

SERVICE: dict[str, Json] = {"service": "generativelanguage.googleapis.com"}

HELP: dict[str, Json] = {
    "@type": f"{RPC}Help",
    "links": [
        {
            "description": "Learn more about Gemini API quotas",
            "url": "https://ai.google.dev/gemini-api/docs/rate-limits",
        }
    ],
}

# dialect -> what its error bodies say beside code and message
DETAILS: Mapping[str, Callable[[Situation, str, dict[str, Json]], dict[str, Json]]] = {
    "openai-chat": openai_details,
    "openai-responses": openai_details,
    "anthropic-messages": anthropic_details,
    "gemini": google_details,
}

# dialect -> the headers of its rate limits
LIMITS: Mapping[str, Callable[[Situation], Headers]] = {
    "openai-chat": openai_limits,
    "openai-responses": openai_limits,
    "anthropic-messages": anthropic_limits,
}

QUOTA_SPENT = "You exceeded your current quota, please check your plan and billing details. "

# https://developers.openai.com/api/docs/guides/error-codes, worded as in
# https://github.com/feder-cr/invisible_playwright_mcp/issues/249 (limit), https://github.com/Wei-Shaw/sub2api/issues/6631
# (overloaded), https://github.com/dev-hato/hato-bot/pull/4552 (quota),
# https://github.com/chatanywhere/GPT_API_free/issues/427 (key), https://github.com/AsyncFuncAI/deepwiki-open/issues/144
# (context) and, of responses, https://github.com/dyad-sh/dyad/issues/1672.
OPENAI: dict[str, Refusal] = {
    "rate_limit": Refusal(
        "RATE_LIMIT",
        "Rate limit reached for {model} in organization org-mock on requests per min (RPM): "
        "Limit {limit}, Used {limit}, Requested 1. Please try again in {delay}. "
        "Visit https://platform.openai.com/account/rate-limits to learn more.",
    ),
    "server_error": Refusal("SERVER_ERROR", "The server had an error while processing your request. Sorry about that!"),
    "service_unavailable": Refusal("UNAVAILABLE", "The server is temporarily unavailable. Please try again later."),
    "overloaded": Refusal("OVERLOADED", "Our servers are currently overloaded. Please try again later.", 503),
    "quota_exceeded": Refusal(
        "QUOTA",
        QUOTA_SPENT + "For more information on this error, read the docs: "
        "https://platform.openai.com/docs/guides/error-codes/api-errors.",
    ),
    "auth_error": Refusal(
        "AUTH",
        "Incorrect API key provided: mock****key. You can find your API key at "
        "https://platform.openai.com/account/api-keys.",
    ),
    "invalid_request": Refusal("INVALID_REQUEST", "Invalid value: the request is not what the API expects."),
    "context_overflow": Refusal(
        "CONTEXT_WINDOW_EXCEEDED",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 128001 tokens. "
        "Please reduce the length of the messages.",
        param="messages",
    ),
}
RESPONSES: dict[str, Refusal] = {
    "context_overflow": Refusal(
        "CONTEXT_WINDOW_EXCEEDED",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        param="input",
    ),
}
# https://platform.claude.com/docs/en/api/errors; that a credit is used up is none of the billing errors there, but
# https://github.com/anthropics/anthropic-sdk-typescript/issues/618.
ANTHROPIC: Mapping[str, Refusal] = {
    "rate_limit": Refusal(
        "RATE_LIMIT", "This request would exceed your organization's rate limit of {limit} requests per minute."
    ),
    "server_error": Refusal("SERVER_ERROR", "Internal server error"),
    "service_unavailable": Refusal("SERVER_ERROR", "Service unavailable", 503),
    "overloaded": Refusal("OVERLOADED", "Overloaded"),
    "quota_exceeded": Refusal(
        "INVALID_REQUEST",
        "Your credit balance is too low to access the Anthropic API. "
        "Please go to Plans & Billing to upgrade or purchase credits.",
    ),
    "auth_error": Refusal("AUTH", "invalid x-api-key"),
    "invalid_request": Refusal("INVALID_REQUEST", "messages: the request is not what the API expects"),
    "context_overflow": Refusal("CONTEXT_WINDOW_EXCEEDED", "prompt is too long: 200001 tokens > 200000 maximum"),
}
# https://ai.google.dev/gemini-api/docs/troubleshooting, worded as in
# https://github.com/continuedev/continue/issues/9570 (limit) and 12662 (overloaded).
GEMINI: Mapping[str, Refusal] = {
    "rate_limit": Refusal(
        "RATE_LIMIT",
        QUOTA_SPENT
        + "For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits. \n"
        "* Quota exceeded for metric: generativelanguage.googleapis.com/generate_requests_per_model, limit: {limit}, "
        "model: {model}\nPlease retry in {delay}.",
    ),
    "server_error": Refusal("SERVER_ERROR", "An internal error has occurred. Please retry."),
    "service_unavailable": Refusal("UNAVAILABLE", "The service is currently unavailable."),
    "overloaded": Refusal(
        "OVERLOADED",
        "This model is currently experiencing high demand. Spikes in demand are usually temporary. "
        "Please try again later.",
        503,
    ),
    "quota_exceeded": Refusal(
        "QUOTA",
        QUOTA_SPENT + "For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.",
    ),
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
