"""Record mode's model: forwards every call to the real provider, streams the answer through as it arrives, and keeps
it.

Only this module holds the real key; the agent has a dummy. What the agent gets is what the provider said, byte for byte
and as it comes, but for the compression that nobody asked for and headers that are this hop's own. What a call was is
kept as what it was (:mod:`session_snapshot.recording.heard`).
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

import httpx
from llm_dialects.actions import Action, Body, Head, Reset
from llm_dialects.dialect import Dialect
from llm_dialects.dialects import DIALECTS
from llm_dialects.entries import Hang, Throw
from llm_mock_server import HttpRequest

from session_snapshot.calls import LiveCall
from session_snapshot.recording.forwarding import MOVED, next_url, target_of, told_away, why_unreachable
from session_snapshot.recording.heard import MALFORMED, REDIRECTED, RETOLD, TIMEOUT, UNREACHABLE, Heard
from session_snapshot.recording.secrets import blanked, find_key

DROPPED = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect",
     "accept-encoding", "authorization", "x-api-key", "x-goog-api-key", "api-key", "proxy-authorization",
     "proxy-connection", "cookie"}
)  # fmt: skip
"""Request headers that are this hop's own, or that carry a key: the recorder sets its own."""

KEPT = ("content-type", *RETOLD, "request-id", "x-request-id")
"""Response headers an agent may act on; the others tell of the provider's account."""

DECODED = frozenset({"", "identity", "gzip", "deflate"})
"""Codings of a body that can be undone, should a provider use one unasked."""

HOPS = 5
"""How often a call is asked again elsewhere."""

REST_SECONDS = 2.0
"""How long the rest of an answer is heard that its agent could not read."""

UNREACHED = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.InvalidURL,
)


class RecordModel:
    """A responder that forwards. ``calls`` are in order of arrival, and complete once it has ``settled``."""

    def __init__(
        self, client: httpx.AsyncClient, upstream: str, key: str, dialects: Mapping[str, Dialect] = DIALECTS
    ) -> None:
        """``upstream`` is the provider's base URL for the dialect, ``key`` the real key."""
        self.client = client
        self.upstream = upstream
        self.key = key
        self.dialects = dialects
        self.calls: list[LiveCall] = []
        self.rest: set[asyncio.Future[None]] = set()
        self.progress: Callable[[LiveCall], None] = lambda _call: None

    def __call__(self, http: HttpRequest) -> AsyncIterator[Action]:
        """Forward one model call."""
        dialect = self.dialects[http.dialect]
        request = dialect.parse_request(http.json)
        self.calls.append(LiveCall(http.number, request, http.body, None, None))
        return self.forward(len(self.calls) - 1, http, Heard(dialect, request))

    async def forward(self, place: int, http: HttpRequest, heard: Heard) -> AsyncIterator[Action]:
        """Stream one answer through; whatever happens, the call is kept."""
        actions = self.exchange(http, heard)
        coming: asyncio.Future[Action | None] | None = None
        try:
            while True:
                # In a task of its own: an agent that goes takes down who waits for this, and not the exchange.
                coming = asyncio.ensure_future(anext(actions, None))
                action = await asyncio.shield(coming)
                coming = None
                if action is None:
                    heard.over()
                    break
                yield heard.take(action)
        finally:
            rest = asyncio.ensure_future(self.end(place, heard, actions, coming))
            self.rest.add(rest)
            if not heard.left_for_garbage:
                await asyncio.shield(rest)

    async def end(
        self,
        place: int,
        heard: Heard,
        actions: AsyncGenerator[Action, None],
        coming: asyncio.Future[Action | None] | None,
    ) -> None:
        """End an exchange. If its agent left it for what it could not read, the rest is heard all the same: how much it
        had got by then is chance, and a recording should not be.
        """
        if heard.left_for_garbage:
            with suppress(TimeoutError):
                async with asyncio.timeout(REST_SECONDS):
                    while (action := await (coming or anext(actions, None))) is not None:
                        heard.take(action)
                        coming = None
                    heard.over()
        elif coming is not None:
            coming.cancel()
            await asyncio.wait([coming])
        await actions.aclose()
        call = self.calls[place]
        self.calls[place] = LiveCall(call.number, call.request, call.body, None, heard.entry())
        self.progress(self.calls[place])

    async def settled(self) -> None:
        """Wait until everything that was asked is kept; what was given up before it was even forwarded is a silence."""
        await asyncio.gather(*self.rest)
        for place, call in enumerate(self.calls):
            if call.entry is None:
                self.calls[place] = LiveCall(call.number, call.request, call.body, None, Hang(chunks=()))

    async def exchange(self, http: HttpRequest, heard: Heard) -> AsyncGenerator[Action, None]:
        """Yield what the provider says; where it says nothing, what a client without a recorder would see of that."""
        url = target_of(self.upstream, heard.dialect, http)
        try:
            async with self.ask(url, http) as response:
                if why := unusable(response):
                    for action in heard.fail(*why):
                        yield action
                    return
                pieces = self.refusal(response) if response.is_error else self.answer(response)
                async for action in pieces:
                    yield action
        except UNREACHED as error:
            heard.failure = Throw(chunks=(), message=why_unreachable(url, error), code=UNREACHABLE)
            yield Reset("rst")
        except httpx.TimeoutException:
            seconds = self.client.timeout.read
            for action in heard.fail(TIMEOUT, f"nothing came from the provider for {seconds:g} seconds"):
                yield action
        except httpx.DecodingError as error:
            for action in heard.fail(MALFORMED, f"the compression of the answer is broken: {error}"):
                yield action
        except (httpx.RequestError, OSError) as error:
            yield Reset("fin" if isinstance(error, httpx.RemoteProtocolError) else "rst")

    async def answer(self, response: httpx.Response) -> AsyncIterator[Action]:
        """An answer as it comes."""
        yield Head(response.status_code, kept(response.headers))
        async for data in response.aiter_bytes():
            yield Body(data)

    async def refusal(self, response: httpx.Response) -> AsyncIterator[Action]:
        """An error, when all of it is there: some providers repeat the key that they were shown, whole or masked, and
        the agent is not told it."""
        taken: list[bytes] = []
        try:
            async for data in response.aiter_bytes():
                taken.append(data)
        except (httpx.RequestError, OSError):
            for action in told_refusal(response, b"".join(taken), self.key):
                yield action
            raise
        for action in told_refusal(response, b"".join(taken), self.key):
            yield action

    @asynccontextmanager
    async def ask(self, url: str, http: HttpRequest) -> AsyncIterator[httpx.Response]:
        """Ask the provider, and ask again where it says that the same is elsewhere on the same host.

        The agent is not sent there: it would ask past the recorder. Another host is not shown the key.
        """
        headers = self.headers(http)
        for hop in range(HOPS + 1):
            async with self.client.stream("POST", url, content=http.body, headers=headers) as response:
                elsewhere = next_url(response)
                if not elsewhere or hop == HOPS:
                    yield response
                    return
            url = elsewhere

    def headers(self, http: HttpRequest) -> list[tuple[bytes, bytes]]:
        """The request's headers with the real key in place of the dummy, those that are told twice twice."""
        name, value = self.dialects[http.dialect].key_header
        own = (("accept-encoding", "identity"), (name, value.format(key=self.key)))
        told = [pair for pair in http.headers if pair[0] not in DROPPED]
        return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in (*told, *own)]


def told_refusal(response: httpx.Response, body: bytes, key: str) -> tuple[Action, ...]:
    """A provider's error as the agent is told it: as it is, but for the key."""
    headers = kept(response.headers)
    if find_key(body, key):
        body = blanked(body.decode("utf-8", "replace"), key).encode()
        headers = tuple((name, str(len(body)) if name == "content-length" else value) for name, value in headers)
    return (Head(response.status_code, headers), *([Body(body)] if body else []))


def unusable(response: httpx.Response) -> tuple[str, str] | None:
    """Why a response cannot be passed on: a code, and the words for it."""
    if response.status_code in MOVED:
        return REDIRECTED, told_away(response)
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding not in DECODED:
        return MALFORMED, f"the provider compressed its answer ({coding}), although it was asked not to"
    return None


def kept(headers: httpx.Headers) -> tuple[tuple[str, str], ...]:
    """The response headers that are passed on; the length where the body is as long as it came."""
    names = KEPT if headers.get("content-encoding") else (*KEPT, "content-length")
    told = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers.raw]
    return tuple(pair for pair in told if pair[0] in names)
