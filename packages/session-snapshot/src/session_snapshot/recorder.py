"""Record mode's model: forwards every call to the real provider, streams the answer through as it arrives, and keeps
it.

Only this module holds the real key; the agent has a dummy. What a call was is kept as what it was: an answer, a failure
(``throw``) or a silence the agent gave up on (``hang``).
"""

import re
from collections.abc import AsyncIterator, Callable, Mapping

import httpx
from llm_dialects.actions import Action, Body, Head, Reset
from llm_dialects.chunks import Finish, StreamChunk
from llm_dialects.dialect import Dialect, DialectError, is_streamed
from llm_dialects.dialects import DIALECTS
from llm_dialects.entries import Chunks, Entry, Hang, Throw
from llm_dialects.errors import ProviderError, classify, status_of
from llm_dialects.requests import Request
from llm_mock_server import HttpRequest
from msgspec import UNSET

from session_snapshot.calls import LiveCall

DROPPED = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "accept-encoding", "authorization",
     "x-api-key", "x-goog-api-key", "api-key", "proxy-authorization", "cookie"}
)  # fmt: skip
"""Request headers that are this hop's own, or that carry a key: the recorder sets its own."""

KEPT = ("content-type", "retry-after", "request-id", "x-request-id")
"""Response headers an agent may act on; the others tell of the provider's account."""

KEY_MEMBERS: dict[str, str] = {"gemini": "key"}
"""The member of the query that may hold the key; it is left out, and the header holds the real one."""

VERSIONED = re.compile(r"/v\d\w*/.*")


class RecordModel:
    """A responder that forwards. ``calls`` are complete once the server has closed, in order of arrival."""

    def __init__(
        self, client: httpx.AsyncClient, upstream: str, key: str, dialects: Mapping[str, Dialect] = DIALECTS
    ) -> None:
        """``upstream`` is the provider's base URL for the dialect, ``key`` the real key."""
        self.client = client
        self.upstream = upstream.rstrip("/")
        self.key = key
        self.dialects = dialects
        self.calls: list[LiveCall] = []
        self.progress: Callable[[LiveCall], None] = lambda _call: None

    def __call__(self, http: HttpRequest) -> AsyncIterator[Action]:
        """Forward one model call."""
        dialect = self.dialects[http.dialect]
        return self.forward(dialect, http, dialect.parse_request(http.json))

    async def forward(self, dialect: Dialect, http: HttpRequest, request: Request) -> AsyncIterator[Action]:
        """Stream one answer through; whatever happens, the call is kept."""
        self.calls.append(LiveCall(http.number, request, http.body, None, None))
        place = len(self.calls) - 1
        taken: list[StreamChunk] = []
        entry: Entry = Hang()
        try:
            async for action, so_far in self.exchange(dialect, http, request, taken):
                entry = so_far
                yield action
        finally:
            self.calls[place] = LiveCall(http.number, request, http.body, None, entry)
            self.progress(self.calls[place])

    async def exchange(
        self, dialect: Dialect, http: HttpRequest, request: Request, taken: list[StreamChunk]
    ) -> AsyncIterator[tuple[Action, Entry]]:
        """Yield each action together with what the call is so far (a call the agent gives up on is a hang)."""
        url = self.upstream + below_base(dialect, http)
        try:
            async with self.client.stream("POST", url, content=http.body, headers=self.headers(http)) as response:
                if response.status_code >= 400:
                    body = await response.aread()
                    yield (
                        Head(response.status_code, kept(response.headers, len(body))),
                        failed(response.status_code, body),
                    )
                    yield Body(body), failed(response.status_code, body)
                    return
                yield Head(response.status_code, kept(response.headers)), Hang()
                async for pair in through(dialect, request, response, taken):
                    yield pair
        except httpx.TransportError as error:
            yield Reset("fin" if taken else "rst"), lost(taken, error)

    def headers(self, http: HttpRequest) -> dict[str, str]:
        """The request's headers with the real key in place of the dummy."""
        headers = {name: value for name, value in http.headers if name not in DROPPED}
        name, value = self.dialects[http.dialect].key_header
        return headers | {"accept-encoding": "identity", name: value.format(key=self.key)}


def below_base(dialect: Dialect, http: HttpRequest) -> str:
    """What follows the provider's base URL: the endpoint, or all from the API's version on where the path names the
    model; and the query without the dummy key."""
    path = http.path[len(http.prefix) :]
    if dialect.path_params(http.path, http.query):
        versioned = VERSIONED.search(http.path)
        path = versioned[0] if versioned else http.path
    members = [pair for pair in http.query.split("&") if pair.partition("=")[0] != KEY_MEMBERS.get(dialect.name)]
    query = "&".join(members)
    return f"{path}?{query}" if query else path


async def through(
    dialect: Dialect, request: Request, response: httpx.Response, taken: list[StreamChunk]
) -> AsyncIterator[tuple[Action, Entry]]:
    """Pass a body on as it arrives, decoding it beside."""
    if not is_streamed(request):
        body = await response.aread()
        taken += dialect.decode_message(body)
        yield Body(body), Chunks(chunks=tuple(taken))
        return
    decoder = dialect.decoder()
    async for data in response.aiter_bytes():
        taken += feed(decoder.feed, data)
        yield Body(data), Chunks(chunks=tuple(taken)) if finished(taken) else Hang()
    taken += decoder.close()
    if finished(taken):
        yield Body(b""), Chunks(chunks=tuple(taken))
    else:
        yield Body(b""), lost(taken, EOFError("the stream ended before its finish"))


def feed(decode: Callable[[bytes], list[StreamChunk]], data: bytes) -> list[StreamChunk]:
    """Decode bytes; garbage is passed on to the agent and recorded as a stream that broke."""
    try:
        return decode(data)
    except DialectError:
        return []


def finished(chunks: list[StreamChunk]) -> bool:
    """Whether an answer is whole."""
    return any(isinstance(chunk, Finish) for chunk in chunks)


def failed(status: int, body: bytes) -> Throw:
    """An HTTP error as an entry."""
    error = classify(status, body)
    own = status_of(ProviderError(error.code, error.message))
    return Throw(chunks=(), message=error.message, code=error.code, status=UNSET if status == own else status)


def lost(taken: list[StreamChunk], error: Exception) -> Throw:
    """A connection that broke, as an entry."""
    return Throw(chunks=tuple(taken), message=str(error) or type(error).__name__, code="STREAM_CLOSED")


def kept(headers: httpx.Headers, length: int | None = None) -> tuple[tuple[str, str], ...]:
    """The response headers that are passed on."""
    pairs = [(name, headers[name]) for name in KEPT if name in headers]
    return (*pairs, *([("content-length", str(length))] if length is not None else []))
