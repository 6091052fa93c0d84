"""A provider's failures: one table from our codes to HTTP status and to each provider's own words, and back."""

import re
from collections.abc import Iterable

from msgspec import Struct

from llm_dialects.chunks import Failure, Finish, FinishReason, Json, StreamChunk
from llm_dialects.wire import decode_json, encode_json


class ProviderError(Struct, frozen=True):
    """A model call that failed; ``status`` is the HTTP status where it is not simply the code's own."""

    code: str
    message: str
    status: int | None = None


class ErrorRow(Struct, frozen=True):
    """One code: its HTTP status (``None``: the connection is dropped) and what OpenAI, Anthropic and Google call it."""

    code: str
    status: int | None
    openai_type: str
    openai_code: str | None
    anthropic_type: str
    google_status: str


def status_of(error: ProviderError) -> int | None:
    """Return the HTTP status ``error`` is told with, or ``None`` if it is told by dropping the connection."""
    if error.status is not None:
        return error.status
    return _BY_CODE[error.code].status if error.code in _BY_CODE else 500


def failure_in(chunks: Iterable[StreamChunk]) -> ProviderError | None:
    """Return the error that ``chunks`` finish with, if they do."""
    for chunk in chunks:
        if isinstance(chunk, Finish) and chunk.reason.kind == "error":
            return error_of(chunk.reason)
    return None


def error_of(reason: FinishReason) -> ProviderError:
    """Return what a finish of kind ``error`` tells."""
    if isinstance(reason.failure, Failure):
        return ProviderError(reason.failure.code, reason.failure.message)
    return ProviderError("SERVER_ERROR", "The provider reported an error.")


def finish_of(error: ProviderError) -> Finish:
    """Return the finish that tells ``error`` as data."""
    return Finish(reason=FinishReason(kind="error", failure=Failure(message=error.message, code=error.code)))


def openai_error(error: ProviderError) -> dict[str, Json]:
    """Return ``error`` as OpenAI words it: ``{"error": {"message", "type", "param", "code"}}``."""
    row = _BY_CODE.get(error.code)
    kind, code = (row.openai_type, row.openai_code) if row else ("server_error", error.code)
    return {"error": {"message": error.message, "type": kind, "param": None, "code": code}}


def anthropic_error(error: ProviderError) -> dict[str, Json]:
    """Return ``error`` as Anthropic words it: ``{"type": "error", "error": {"type", "message"}}``.

    Anthropic has no code for a full context window, only a sentence: it is put in front where the message lacks it.
    """
    row = _BY_CODE.get(error.code)
    kind = row.anthropic_type if row else error.code
    lacks = error.code == "CONTEXT_WINDOW_EXCEEDED" and not _CONTEXT_WORDS.search(error.message)
    message = f"prompt is too long: {error.message}" if lacks else error.message
    return {"type": "error", "error": {"type": kind, "message": message}}


def gemini_error(error: ProviderError) -> dict[str, Json]:
    """Return ``error`` as Google words it: ``{"error": {"code", "message", "status", "details"}}``.

    Google has few words. Where they and the message do not tell our code, a detail does: a quota that is used up for
    the day, else the reason of an ``ErrorInfo``.
    """
    row = _BY_CODE.get(error.code)
    told = {"code": status_of(error) or 499, "message": error.message}
    body = {"error": told | {"status": row.google_status if row else "UNKNOWN"}}
    if classify(None, body).code == error.code:
        return body
    info = {"@type": f"{RPC}ErrorInfo", "reason": error.code, "domain": "googleapis.com"}
    return {"error": body["error"] | {"details": [quota_failure("Day") if error.code == "QUOTA" else info]}}


def quota_failure(span: str) -> dict[str, Json]:
    """Return the detail in which Google says which limit of requests was met, that of a ``Minute`` or of a ``Day``.

    The names are those of a paid project: https://github.com/Aider-AI/aider/issues/3694.
    """
    metric = "generate_requests_per_model_per_day" if span == "Day" else "generate_requests_per_model"
    violation = {
        "quotaMetric": f"generativelanguage.googleapis.com/{metric}",
        "quotaId": f"GenerateRequestsPer{span}PerProjectPerModel",
    }
    return {"@type": f"{RPC}QuotaFailure", "violations": [violation]}


def classify(status: int | None, body: bytes | Json) -> ProviderError:
    """Return what an error response, or an error event in a stream (``status`` is ``None``), means in our codes.

    The provider's own words decide first, then the status. ``body`` is anything a provider or a proxy may answer.
    """
    kind, own, message, number = _wording(body)
    by_status = _code_by_status(number if status is None else status)
    guesses = (_code_by_words(kind, own, message), by_status, GENERIC.get(kind), own, kind)
    code = next((guess for guess in guesses if guess), "SERVER_ERROR")
    return ProviderError(code, message or f"HTTP {status}", status)


def _wording(body: bytes | Json) -> tuple[str, str, str, int | None]:
    """Return ``type``, ``code`` and ``message`` of an error body, each empty where it has none, and a code in numbers.

    Google's ``status`` is the type, and its code is a number: what its details tell stands in for a code in words.
    """
    if isinstance(body, bytes):
        try:
            body = decode_json(body)
        except ValueError:
            return "", "", body.decode("utf-8", "replace").strip(), None
    if isinstance(body, list) and len(body) == 1 and isinstance(body[0], dict):
        body = body[0]  # Google's answer to a request for an array
    inner = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(inner, dict):
        return "", "", inner if isinstance(inner, str) else encode_json(inner).decode(), None
    kind, code = _text(inner.get("type")) or _text(inner.get("status")), inner.get("code")
    number = code if isinstance(code, int) and 400 <= code <= 599 else None
    own = _text(code) or _detail(kind, inner.get("details"))
    return kind, own, _text(inner.get("message")) or encode_json(inner).decode(), number


def _detail(kind: str, details: Json) -> str:
    """Return our code for what the details of Google's error tell; reasons that nobody knows are passed over."""
    for detail in details if isinstance(details, list) else []:
        reason = _text(detail.get("reason")) if isinstance(detail, dict) else ""
        if reason in _BY_CODE or (reason and kind == "UNKNOWN"):
            return reason
        if reason in REASONS:
            return REASONS[reason]
        if _DAILY.search(encode_json(detail)):
            return "QUOTA"
    return ""


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _code_by_words(kind: str, own: str, message: str) -> str | None:
    if kind == "UNAVAILABLE" and not own and _BUSY_WORDS.search(message):
        return "OVERLOADED"
    if kind == INVALID and not own and _CREDIT_WORDS.search(message):
        return "QUOTA"
    for word in (own, kind):
        if word in _BY_WORD:
            return _BY_WORD[word]
        # Our own codes travel as they are where the table has no provider's word for them.
        if re.fullmatch(r"[A-Z][A-Z0-9_]+", word) and word not in GENERIC:
            return word
    return "CONTEXT_WINDOW_EXCEEDED" if _CONTEXT_WORDS.search(message) else None


def _code_by_status(status: int | None) -> str | None:
    if status is None:
        return None
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return "SERVER_ERROR" if status >= 500 else "INVALID_REQUEST"


_CONTEXT_WORDS = re.compile(
    r"prompt is too long|context.{0,3}window|maximum context length|context.length|input token count .{0,20}exceeds",
    re.I,
)
# Where Google and Anthropic have no word of their own for it: https://github.com/continuedev/continue/issues/12662,
# https://github.com/anthropics/anthropic-sdk-typescript/issues/618.
_BUSY_WORDS = re.compile(r"overloaded|high demand", re.I)
_CREDIT_WORDS = re.compile(r"credit balance is too low", re.I)
_DAILY = re.compile(rb'"quotaId":\s*"[^"]*PerDay')

RPC = "type.googleapis.com/google.rpc."
INVALID = "invalid_request_error"
BUSY = "service_unavailable_error"

# Types that many failures share; they decide only where neither a code nor a status does.
GENERIC = {
    INVALID: "INVALID_REQUEST",
    "server_error": "SERVER_ERROR",
    "api_error": "SERVER_ERROR",
    "INVALID_ARGUMENT": "INVALID_REQUEST",
    "FAILED_PRECONDITION": "INVALID_REQUEST",
    "OUT_OF_RANGE": "INVALID_REQUEST",
    "UNKNOWN": "SERVER_ERROR",
}

# reason of Google's ErrorInfo -> our code
REASONS = {
    "API_KEY_INVALID": "AUTH",
    "CREDENTIALS_MISSING": "AUTH",
    "ACCESS_TOKEN_EXPIRED": "AUTH",
    "API_KEY_SERVICE_BLOCKED": "PERMISSION",
    "SERVICE_DISABLED": "PERMISSION",
    "RATE_LIMIT_EXCEEDED": "RATE_LIMIT",
    "QUOTA_EXHAUSTED": "QUOTA",
    "MODEL_CAPACITY_EXHAUSTED": "OVERLOADED",
}

# code, status, OpenAI's type and code, Anthropic's type, Google's status. The first row of a status, or of a word, is
# what that alone means. OpenAI's: https://developers.openai.com/api/docs/guides/error-codes, and as it sends them,
# https://github.com/Wei-Shaw/sub2api/issues/6631 (overloaded),
# https://github.com/feder-cr/invisible_playwright_mcp/issues/249 (a limit of requests; of tokens the type is `tokens`).
ERRORS: tuple[ErrorRow, ...] = (
    ErrorRow("INVALID_REQUEST", 400, INVALID, None, INVALID, "INVALID_ARGUMENT"),
    ErrorRow("CONTEXT_WINDOW_EXCEEDED", 400, INVALID, "context_length_exceeded", INVALID, "INVALID_ARGUMENT"),
    ErrorRow("CONTENT_FILTER", 400, INVALID, "content_filter", "content_filter", "INVALID_ARGUMENT"),
    ErrorRow("AUTH", 401, INVALID, "invalid_api_key", "authentication_error", "UNAUTHENTICATED"),
    ErrorRow("PERMISSION", 403, "permission_error", "permission_denied", "permission_error", "PERMISSION_DENIED"),
    ErrorRow("NOT_FOUND", 404, INVALID, "model_not_found", "not_found_error", "NOT_FOUND"),
    ErrorRow("REQUEST_TOO_LARGE", 413, INVALID, "request_too_large", "request_too_large", "INVALID_ARGUMENT"),
    ErrorRow("RATE_LIMIT", 429, "requests", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"),
    ErrorRow("QUOTA", 429, "insufficient_quota", "insufficient_quota", "billing_error", "RESOURCE_EXHAUSTED"),
    ErrorRow("SERVER_ERROR", 500, "server_error", None, "api_error", "INTERNAL"),
    ErrorRow("UNAVAILABLE", 503, BUSY, None, "service_unavailable", "UNAVAILABLE"),
    ErrorRow("TIMEOUT", 504, "server_error", "timeout", "timeout_error", "DEADLINE_EXCEEDED"),
    ErrorRow("OVERLOADED", 529, BUSY, "server_is_overloaded", "overloaded_error", "UNAVAILABLE"),
    ErrorRow("STREAM_CLOSED", None, "server_error", "stream_closed", "stream_closed", "CANCELLED"),
    ErrorRow("CONNECTION_RESET", None, "server_error", "connection_reset", "connection_reset", "CANCELLED"),
)

# Further words that providers, their imitators and older recordings use -> our code
ALSO = {"overloaded": "OVERLOADED", "tokens": "RATE_LIMIT", "slow_down": "RATE_LIMIT"}

_BY_CODE = {row.code: row for row in ERRORS}
_BY_STATUS = {row.status: row.code for row in reversed(ERRORS) if row.status is not None}
_BY_WORD = {
    word: row.code
    for row in reversed(ERRORS)
    for word in (row.openai_type, row.openai_code, row.anthropic_type, row.google_status)
    if word and word not in GENERIC
} | ALSO
