"""What came in and what became of it. The journal keeps every request raw; only its printed forms hide secrets."""

import base64
from collections.abc import Callable
from typing import Any, Literal

from llm_dialects import Json
from msgspec import Struct

from llm_mock_server.http1 import Headers

Kind = Literal["call", "side", "rejected"]
"""A model call, any other request a provider answers, or a request that never reached the responder."""

Outcome = Literal["completed", "reset", "stalled", "client_closed", "server_closed", "failed"]
"""How the answer ended: whole; dropped by a ``Reset``; silent until the client went; cut off by the client; cut off by
``aclose``; ended by an exception of the responder."""

Observer = Callable[["CapturedRequest"], None]
"""Called with an entry when it begins (its ``outcome`` is None) and when it has ended."""


class CapturedRequest(Struct, kw_only=True):
    """One request and its outcome.

    Attributes:
        number: Place among all requests, from 0, in the order in which their answers began.
        call: Place among the model calls, from 0; None for other requests.
        dialect: Name of the dialect it was taken for.
        headers: As sent, names in lower case; secrets included.
        body: As sent, without its transfer coding.
        outcome: None while the answer is going on.
        bytes_sent: What was handed to the socket, heads and framing included.
        error: The responder's exception, where there was one.
        label: What answers it, in the responder's words; None where it does not say.
        cursor: Which run through the script the answer is from, likewise.
    """

    number: int
    call: int | None
    kind: Kind
    dialect: str
    method: str
    path: str
    query: str
    headers: Headers
    body: bytes
    status: int | None = None
    outcome: Outcome | None = None
    bytes_sent: int = 0
    error: Exception | None = None
    label: str | None = None
    cursor: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the entry as JSON, secrets hidden; a body that is not UTF-8 is ``{"base64": ...}``."""
        return {
            "number": self.number,
            "call": self.call,
            "kind": self.kind,
            "dialect": self.dialect,
            "method": self.method,
            "path": self.path,
            "query": redact_query(self.query),
            "headers": [list(pair) for pair in redact_headers(self.headers)],
            "body": text_or_base64(self.body),
            "status": self.status,
            "outcome": self.outcome,
            "label": self.label,
            "cursor": self.cursor,
            "bytesSent": self.bytes_sent,
            "error": None if self.error is None else f"{type(self.error).__name__}: {self.error}",
        }

    def __repr__(self) -> str:
        shown = self.to_json() | {"body": f"<{len(self.body)} bytes>"}
        return f"CapturedRequest({', '.join(f'{key}={value!r}' for key, value in shown.items())})"


class Journal:
    """The entries of one server, and who is told when one begins or ends.

    Args:
        limit: How many entries are kept, the oldest dropped first; None keeps all.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.entries: list[CapturedRequest] = []
        self.failures: list[Exception] = []
        self.observers: list[Observer] = []
        self.in_flight = 0
        self._limit = limit
        self._opened = 0
        self._calls = 0

    def open(self, *, kind: Kind, **members: Any) -> CapturedRequest:
        """Begin an entry; ``members`` are those of ``CapturedRequest`` but the numbers."""
        captured = CapturedRequest(
            number=self._opened, call=self._calls if kind == "call" else None, kind=kind, **members
        )
        self._opened += 1
        if kind == "call":
            self._calls += 1
            self.in_flight += 1
        self.entries.append(captured)
        if self._limit is not None and len(self.entries) > self._limit:
            del self.entries[0]
        self._tell(captured)
        return captured

    def reject(self, captured: CapturedRequest) -> None:
        """Take back that an open entry is a model call; its number is not given again."""
        if captured.kind == "call":
            captured.kind, captured.call = "rejected", None
            self.in_flight -= 1

    def close(self, captured: CapturedRequest, outcome: Outcome) -> None:
        """End an entry, once."""
        if captured.outcome is None:
            captured.outcome = outcome
            self.in_flight -= captured.kind == "call"
            self._tell(captured)

    def fail(self, error: Exception, captured: CapturedRequest | None = None) -> None:
        """Keep an exception that is nobody's on the wire: a responder's or an observer's."""
        self.failures.append(error)
        if captured is not None:
            captured.error = error

    def _tell(self, captured: CapturedRequest) -> None:
        for observer in tuple(self.observers):
            try:
                observer(captured)
            except Exception as error:  # an observer must never change what is on the wire
                self.fail(error)


def redact_headers(headers: Headers) -> Headers:
    """Return ``headers`` with the values of those that carry secrets replaced."""
    return tuple((name, HIDDEN if name in SECRET_HEADERS else value) for name, value in headers)


def redact_query(query: str) -> str:
    """Return ``query`` with the values of parameters that carry keys replaced."""
    parts = (part.partition("=") for part in query.split("&"))
    return "&".join(name + equals + (HIDDEN if name in SECRET_PARAMETERS else value) for name, equals, value in parts)


def text_or_base64(data: bytes) -> Json:
    """Return ``data`` as a string where it is UTF-8, else as ``{"base64": ...}``."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


HIDDEN = "***"
SECRET_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "openai-organization"}
)
SECRET_PARAMETERS = frozenset({"key", "api_key", "api-key"})
