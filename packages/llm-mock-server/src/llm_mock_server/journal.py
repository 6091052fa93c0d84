"""What came in and what became of it. The journal keeps requests raw; only its printed forms hide secrets.

It is bounded twice, by entries and by bytes, so that a server that runs for days costs what it cost after an hour. The
oldest are dropped, and counted: whoever reads the journal can tell that it is not all of it.
"""

import base64
from collections import deque
from collections.abc import Callable
from itertools import chain
from typing import Any, Literal

from llm_dialects import DIALECTS, Json
from llm_dialects.wire import decode_json
from msgspec import Struct

from llm_mock_server.http1 import Headers
from llm_mock_server.redaction import blanked, redact_error, redact_headers, redact_query, redact_url

Kind = Literal["call", "side", "rejected"]
"""A model call, any other request a provider answers, or a request that never reached the responder."""

Outcome = Literal["completed", "reset", "stalled", "client_closed", "server_closed", "failed"]
"""How the answer ended: whole; dropped by a ``Reset``; silent until the client went; cut off by the client; cut off by
``aclose``; ended by an exception of the responder."""

Observer = Callable[["CapturedRequest"], None]
"""Called with an entry when it begins (its ``outcome`` is None) and when it has ended."""


KEEP = 10_000
"""Entries that are kept, unless told otherwise."""

KEEP_BYTES = 256 * 1024 * 1024
"""Bytes of bodies and heads that are kept, unless told otherwise."""

MAX_FAILURES = 100
"""Exceptions that are kept; one that comes with every request must not fill the memory."""


class CapturedRequest(Struct, kw_only=True):
    """One request and its outcome.

    Attributes:
        number: Place among all requests, from 0, in the order in which their answers began.
        call: Place among the model calls, from 0; None for other requests.
        dialect: Name of the dialect it was taken for.
        headers: As sent, names in lower case; secrets included.
        body: As sent, without its transfer coding.
        outcome: None while the answer is going on.
        bodies_sent: How many pieces of a body were handed to the socket: the events of a stream, one each.
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
    bodies_sent: int = 0
    bytes_sent: int = 0
    error: Exception | None = None
    label: str | None = None
    cursor: str | None = None

    @property
    def json(self) -> Json:
        """The value the body holds, None where it is no JSON; of a model call with what its path says, as in
        ``HttpRequest.json``.
        """
        value = read_json(self.body)
        dialect = DIALECTS.get(self.dialect)
        if self.kind != "call" or dialect is None or not isinstance(value, dict):
            return value
        said = dialect.path_params(self.path, self.query)
        return said | value | said

    def to_json(self) -> dict[str, Json]:
        """Return the entry as JSON, secrets hidden; a body that is not UTF-8 is ``{"base64": ...}``."""
        return {
            "number": self.number,
            "call": self.call,
            "kind": self.kind,
            "dialect": self.dialect,
            "method": self.method,
            "path": redact_url(self.path),
            "query": redact_query(self.query),
            "headers": [list(pair) for pair in redact_headers(self.headers)],
            "body": text_or_base64(self.body),
            "status": self.status,
            "outcome": self.outcome,
            "label": self.label,
            "cursor": self.cursor,
            "bodiesSent": self.bodies_sent,
            "bytesSent": self.bytes_sent,
            "error": self.error_text,
        }

    @property
    def error_text(self) -> str | None:
        """The exception as type and text, where there was one, without the request's secrets."""
        if self.error is None:
            return None
        return blanked(f"{type(self.error).__name__}: {self.error}", self.headers, self.query)

    def __repr__(self) -> str:
        shown = self.to_json() | {"body": f"<{len(self.body)} bytes>"}
        return f"CapturedRequest({', '.join(f'{key}={value!r}' for key, value in shown.items())})"


class Journal:
    """The entries of one server, and who is told when one begins or ends.

    Args:
        keep: How many entries are kept, the newest; None keeps all.
        keep_bytes: How many bytes of bodies and heads are kept, the newest; the newest entry is kept whatever its
            size. None keeps all.

    Attributes:
        dropped: How many entries are not kept any more.
        opened: How many entries there have been.
        ended: How many model calls have ended.
        failures: The first ``MAX_FAILURES`` exceptions that are nobody's on the wire.
    """

    def __init__(self, keep: int | None = KEEP, keep_bytes: int | None = KEEP_BYTES) -> None:
        self.observers: list[Observer] = []
        self.in_flight = 0
        self._keep = keep
        self._keep_bytes = keep_bytes
        self.reset()

    def reset(self) -> None:
        """Forget everything, and count from 0 again. What is in flight must have ended before."""
        self.entries: deque[CapturedRequest] = deque()
        self.failures: list[Exception] = []
        self.dropped = 0
        self.ended = 0
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self.opened = 0
        self._calls = 0

    def open(self, *, kind: Kind, **members: Any) -> CapturedRequest:
        """Begin an entry; ``members`` are those of ``CapturedRequest`` but the numbers."""
        captured = CapturedRequest(
            number=self.opened, call=self._calls if kind == "call" else None, kind=kind, **members
        )
        self.opened += 1
        if kind == "call":
            self._calls += 1
            self.in_flight += 1
        self.entries.append(captured)
        size = size_of(captured)
        self._sizes.append(size)
        self._bytes += size
        if self._is_over():
            self._drop()
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
            if captured.kind == "call":
                self.in_flight -= 1
                self.ended += 1
            self._tell(captured)

    def fail(self, error: Exception, captured: CapturedRequest | None = None) -> None:
        """Keep an exception that is nobody's on the wire: a responder's or an observer's."""
        if len(self.failures) < MAX_FAILURES:
            self.failures.append(error)
        else:
            error.__traceback__ = None  # its frames hold the request
        if captured is not None:
            redact_error(error, captured.headers, captured.query)
            captured.error = error

    def _is_over(self) -> bool:
        return (self._keep is not None and len(self.entries) > self._keep) or (
            self._keep_bytes is not None and self._bytes > self._keep_bytes
        )

    def _drop(self) -> None:
        """Drop the oldest until the bounds hold, or one is left."""
        while self._is_over() and (len(self.entries) > 1 or self._keep == 0):
            self.entries.popleft()
            self._bytes -= self._sizes.popleft()
            self.dropped += 1

    def _tell(self, captured: CapturedRequest) -> None:
        for observer in tuple(self.observers):
            try:
                observer(captured)
            except Exception as error:  # an observer must never change what is on the wire
                self.fail(error)


def size_of(captured: CapturedRequest) -> int:
    """Return what an entry weighs: its body and what came in its head."""
    head = sum(map(len, chain.from_iterable(captured.headers)))
    return len(captured.body) + len(captured.path) + len(captured.query) + head


def read_json(body: bytes) -> Json:
    """Return the JSON value of a body, None where it is none, is not UTF-8, or is deeper than anyone may nest."""
    try:
        return decode_json(body.decode())
    except (ValueError, RecursionError):
        return None


def depth_of(value: Json) -> int:
    """Return how many levels of arrays and objects a value has."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return depth


def text_or_base64(data: bytes) -> Json:
    """Return ``data`` as a string where it is UTF-8, else as ``{"base64": ...}``."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}
