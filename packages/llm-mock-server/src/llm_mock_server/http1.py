"""HTTP/1.1 as values: bytes from a client become requests, heads and pieces of an answer become bytes. No IO.

The grammar is httptools' (llhttp); what this module adds is what a server under abuse needs: bounds on everything a
client can make it keep, and a verdict for what cannot be taken, so that the caller only ever sees whole requests.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

import httptools
from llm_dialects import Head
from msgspec import Struct

Headers = tuple[tuple[str, str], ...]
"""Header fields in the order sent; names in lower case."""


class RawRequest(Struct, frozen=True):
    """One whole request. ``target`` is the path and the query; ``keep_alive`` is the client's wish."""

    method: str
    target: str
    headers: Headers
    body: bytes
    keep_alive: bool = True
    http10: bool = False


class ContinueWanted(Struct, frozen=True):
    """The client sent ``Expect: 100-continue`` and holds its body back."""


class Refused(Struct, frozen=True):
    """What came is no request to be taken: answer ``status`` and close. ``request`` holds as much as was understood."""

    status: int
    message: str
    request: RawRequest


Event = RawRequest | ContinueWanted | Refused


class RequestParser:
    """Bytes in, events out, however the bytes are cut. After a ``Refused``, or a request that does not keep the
    connection alive, everything else is ignored.

    Args:
        max_body: Bytes of one body, decoded from its chunks; more is refused with 413.
        max_head: Bytes of a head, of trailers, or of anything else that is not body; more is refused with 431.
    """

    def __init__(self, max_body: int, max_head: int) -> None:
        self._max_body = max_body
        self._max_head = max_head
        self._events: list[Event] = []
        self._done = False
        self._unproductive = 0  # bytes since a body byte or a message's end
        self._seen: SeenHead | None = None
        self._restart()

    def feed(self, data: bytes) -> list[Event]:
        """Return what ``data`` completes."""
        if self._done:
            return []
        between = self._between
        if between and self._seen is not None and (request := self._seen.again(data, self._max_body)) is not None:
            return [request]
        self._events = []
        self._unproductive += len(data)
        self._parse(data)
        if between and self._between and len(self._events) == 1:
            self._seen = seen_head(data, self._events[0])
        if self._unproductive > self._max_head:
            self._refuse(431, f"the head is larger than {self._max_head} bytes")
        return self._events

    @property
    def partial(self) -> RawRequest | None:
        """The request whose head has come and whose body has not come whole, or None."""
        return self._request() if self._in_body and not self._done else None

    # ── httptools' callbacks ────────────────────────────────────────────────────────────────────────────────────────

    def on_message_begin(self) -> None:
        """Forget the last request."""
        self._between = False
        self._target = b""
        self._headers: list[tuple[str, str]] = []
        self._pieces: list[bytes] = []
        self._size = 0
        self._in_body = False

    def on_url(self, url: bytes) -> None:
        """Take more of the request target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header field; trailers are dropped."""
        if not self._in_body:
            self._headers.append(field(name, value) if len(value) < MAX_KNOWN else read_field(name, value))

    def on_headers_complete(self) -> None:
        """Judge the head before the body comes."""
        self._in_body = True
        announced, fault = self._header("content-length"), fault_of(self._headers, self._parser.get_http_version())
        if fault is not None:
            self._refuse(*fault)
        elif announced.isdecimal() and int(announced) > self._max_body:
            self._refuse_size()
        elif self._header("expect").lower() == "100-continue" and not self._done:
            self._events.append(ContinueWanted())

    def on_body(self, body: bytes) -> None:
        """Take more of the body."""
        self._unproductive = 0
        self._size += len(body)
        if self._size > self._max_body:
            self._refuse_size()
        elif not self._done:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        """Hand out the request."""
        self._unproductive = 0
        if self._done or self._declines_upgrade():
            return
        request = self._request()
        self._events.append(request)
        self._in_body = False
        self._done = not request.keep_alive
        self._between = request.keep_alive

    # ── Helpers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _restart(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self.on_message_begin()
        self._between = True

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if not self._done:
                rest = data[upgrade.args[0] :]
                head = self._head_without_upgrade()
                self._restart()
                self._parse(head + rest)
        except httptools.HttpParserError as error:
            self._refuse(400, f"not HTTP/1.1: {error}")

    def _declines_upgrade(self) -> bool:
        """Some clients offer HTTP/2 with every plain request. A server may ignore the offer; httptools takes it, and
        the body for another protocol, so the head is parsed again without its ``connection`` header.
        """
        return self._parser.should_upgrade() and self._parser.get_method() != b"CONNECT"

    def _head_without_upgrade(self) -> bytes:
        lines = [f"{self._parser.get_method().decode('latin-1')} {self._target.decode('latin-1')} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in self._headers if name != "connection"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def _request(self) -> RawRequest:
        version = self._parser.get_http_version()
        return RawRequest(
            method=(self._parser.get_method() or b"").decode("latin-1"),
            target=origin_form(self._target.decode("latin-1")),
            headers=tuple(self._headers),
            body=b"".join(self._pieces),
            keep_alive=self._parser.should_keep_alive() and not self._parser.should_upgrade(),
            http10=version == "1.0",
        )

    def _header(self, name: str) -> str:
        return header(self._headers, name) or ""

    def _refuse_size(self) -> None:
        self._refuse(413, f"the body is larger than {self._max_body} bytes")

    def _refuse(self, status: int, message: str) -> None:
        if not self._done:
            self._pieces = []
            self._done = True
            self._events.append(Refused(status, message, self._request()))


class SeenHead(Struct, frozen=True):
    """The head of a request that came in one piece with its body. A client says the same again with every request, but
    for the length: what httptools has read once need not be read again, which takes longer than all else here.

    Attributes:
        before: The head up to the digits of its ``content-length``.
        after: The rest of it.
        request: The request it came with, without its body.
        at: Place of ``content-length`` among its headers.
    """

    before: bytes
    after: bytes
    request: RawRequest
    at: int

    def again(self, data: bytes, max_body: int) -> RawRequest | None:
        """Return the request that ``data`` is, if it is one whole request of this head and nothing else."""
        start = len(self.before)
        end = data.find(b"\r", start, start + 20)
        length = data[start:end]
        if not (data.startswith(self.before) and length.isdigit() and data.startswith(self.after, end)):
            return None
        body = data[end + len(self.after) :]
        if len(body) != int(length) or len(body) > max_body:
            return None
        was = self.request
        told = ("content-length", length.decode("ascii"))
        headers = (*was.headers[: self.at], told, *was.headers[self.at + 1 :])
        return RawRequest(was.method, was.target, headers, body)


def seen_head(data: bytes, event: Event) -> SeenHead | None:
    """Return the head in ``data``, if that is ``event``, a request whose body is as long as its head says."""
    head = data.partition(b"\r\n\r\n")[0]
    lengths = list(LENGTH.finditer(head + b"\r\n"))
    if not isinstance(event, RawRequest) or len(lengths) != 1 or event.http10:
        return None
    names = [name for name, _ in event.headers]
    if "transfer-encoding" in names or names.count("content-length") != 1:
        return None
    start, end = lengths[0].span(1)
    bare = RawRequest(event.method, event.target, event.headers, b"")
    return SeenHead(data[:start], data[end : len(head) + 4], bare, names.index("content-length"))


LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)(?=\r\n)", re.IGNORECASE)


def read_field(name: bytes, value: bytes) -> tuple[str, str]:
    """Return a header field, its name in lower case."""
    return name.decode("latin-1").lower(), value.decode("latin-1")


# A client says the same fields with every request: read once, they cost a journal nothing either.
field = lru_cache(maxsize=512)(read_field)
MAX_KNOWN = 512


def header(headers: Headers | list[tuple[str, str]], name: str) -> str | None:
    """Return the first value of the header ``name``, or None; names are in lower case."""
    for key, value in headers:
        if key == name:
            return value
    return None


def fault_of(headers: list[tuple[str, str]], version: str) -> tuple[int, str] | None:
    """Return the status and the words for what the grammar lets pass in a head, and HTTP/1.1 does not; or None."""
    hosts = coding = 0
    for name, value in headers:
        if name == "host":
            hosts += 1
        elif name == "transfer-encoding":
            coding += 1
            if coding > 1 or value.lower() != "chunked":
                return 501, f"the transfer coding {value[:40]!r} is not understood, only 'chunked' alone"
        elif name == "expect" and value.lower() != "100-continue":
            return 417, f"{value[:40]!r} cannot be expected, only '100-continue'"
    if hosts != 1 and version != "1.0":
        return 400, f"a request of HTTP/1.1 says one Host, not {hosts}"
    return None


def origin_form(target: str) -> str:
    """Return the path and query of a request target, which a client that takes us for a proxy sends as a whole URL."""
    _, found, rest = target.partition("://")
    if not found or target.startswith("/"):
        return target
    return "/" + rest.partition("/")[2]


def split_target(target: str) -> tuple[str, str]:
    """Return the path and the query of a request target."""
    path, _, query = target.partition("?")
    return path, query


# ── Answers ─────────────────────────────────────────────────────────────────────────────────────────────────────────

Framing = Literal["length", "chunked", "close", "none"]
"""How a client finds the body's end: by its announced length, by the last chunk, by our closing, or there is none."""

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


class Opening(Struct, frozen=True):
    """A head ready to be sent: how its body is framed, how long it says that is, and whether the connection lives."""

    data: bytes
    frame: Framing
    length: int
    keep_alive: bool


@lru_cache(maxsize=256)
def open_response(head: Head, method: str, *, http10: bool, keep_alive: bool) -> Opening:
    """Return how an answer to a request of ``method`` opens.

    There is no ``date`` and no ``server`` header: the same actions are the same bytes.

    Raises:
        ValueError: a header that would break out of its line, or a ``content-length`` that is no number.
    """
    own = {name.lower(): value for name, value in head.headers}
    frame = framing(head.status, own, method, http10=http10)
    keep_alive = keep_alive and frame != "close" and own.get("connection", "").lower() != "close"
    length = int(own["content-length"]) if frame == "length" else 0
    lines = [f"HTTP/1.1 {head.status} {REASONS.get(head.status, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in head.headers]
    if frame == "chunked" and "transfer-encoding" not in own:
        lines.append("transfer-encoding: chunked")
    if "connection" not in own and (http10 or not keep_alive):
        lines.append(f"connection: {'keep-alive' if keep_alive else 'close'}")
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError(f"a header of {head} holds a line break")
    return Opening(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"), frame, length, keep_alive)


def framing(status: int, headers: Mapping[str, str], method: str, *, http10: bool) -> Framing:
    """Return how a body is framed; ``headers`` are the answer's."""
    if method == "HEAD" or status in (204, 304):
        return "none"
    if "content-length" in headers:
        return "length"
    return "close" if http10 else "chunked"


def encode_chunk(data: bytes) -> bytes:
    """Return ``data`` (not empty: that would be the last chunk) as one chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


REASONS = {
    200: "OK",
    201: "Created",
    202: "Accepted",
    204: "No Content",
    301: "Moved Permanently",
    302: "Found",
    304: "Not Modified",
    307: "Temporary Redirect",
    308: "Permanent Redirect",
    400: "Bad Request",
    401: "Unauthorized",
    402: "Payment Required",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    417: "Expectation Failed",
    422: "Unprocessable Content",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    529: "Overloaded",
}
