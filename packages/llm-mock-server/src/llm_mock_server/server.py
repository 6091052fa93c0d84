"""The server: accepts connections, lets a responder answer model calls, keeps the journal."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import assert_never

from llm_dialects import DIALECTS, Dialect, DialectError, ProviderError, Reply

from llm_mock_server.admission import Call, HttpRequest, Rejected, Side, admit, admit_refused, likely_dialect
from llm_mock_server.answer import failure_reply
from llm_mock_server.connection import Connection
from llm_mock_server.exchange import Exchange, ResponderResult
from llm_mock_server.http1 import RawRequest, Refused, split_target
from llm_mock_server.journal import CapturedRequest, Journal, Kind, Observer

Responder = Callable[[HttpRequest], ResponderResult]
"""Answers a model call with actions, with an awaitable of actions, or with an asynchronous iterator of them."""

MAX_BODY = 64 * 1024 * 1024
"""Bytes of a request body, unless told otherwise."""


@asynccontextmanager
async def serve(
    responder: Responder,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    api_key: str | None = None,
    on_change: Callable[[], None] | None = None,
    on_request: Observer | None = None,
    max_body: int = MAX_BODY,
    keep: int | None = None,
    dialects: Mapping[str, Dialect] = DIALECTS,
) -> AsyncIterator["MockServer"]:
    """Serve ``responder`` until the block is left, then free every connection at once.

    Args:
        responder: Called for every well-formed model call, in order of arrival. What it raises is answered with 500 in
            the dialect's words (a ``DialectError`` with 400) and kept in ``failures``.
        host: Name or address to listen on.
        port: 0 lets the system choose.
        api_key: The only key that is let in; None lets everybody in.
        on_change: Called when a request begins and when it has ended; what it raises is kept in ``failures``.
        on_request: The same with the journal entry, whose ``outcome`` is None when it begins.
        max_body: Bytes of a request body; more gets 413.
        keep: How many journal entries are kept, the newest; None keeps all.
        dialects: The dialects spoken; the first is spoken to clients that do not show theirs.

    Raises:
        OSError: the address cannot be listened on.
    """
    journal = Journal(keep)
    if on_change is not None:
        journal.observers.append(lambda _: on_change())
    if on_request is not None:
        journal.observers.append(on_request)
    server = MockServer(responder, journal, api_key=api_key, max_body=max_body, dialects=dialects)
    await server.listen(host, port)
    try:
        yield server
    finally:
        await server.aclose()


class MockServer:
    """A running server; ``serve`` makes one."""

    def __init__(
        self,
        responder: Responder,
        journal: Journal,
        *,
        api_key: str | None,
        max_body: int,
        dialects: Mapping[str, Dialect],
    ) -> None:
        self.journal = journal
        self.max_body = max_body
        self.closing = False
        self.tasks: set[asyncio.Task[None]] = set()
        self.url = ""
        self._responder = responder
        self._api_key = api_key
        self._dialects = dialects
        self._connections: set[Connection] = set()
        self._deserted = asyncio.Event()
        self._deserted.set()

    # ── What users need ─────────────────────────────────────────────────────────────────────────────────────────────

    def base_url(self, dialect: str) -> str:
        """Return the base URL to give to a client of ``dialect``."""
        return self.url + self._dialects[dialect].base_suffix

    @property
    def requests(self) -> tuple[CapturedRequest, ...]:
        """The journal: every request, in the order in which their answers began."""
        return tuple(self.journal.entries)

    @property
    def in_flight(self) -> int:
        """How many model calls are being answered."""
        return self.journal.in_flight

    @property
    def failures(self) -> tuple[Exception, ...]:
        """What the responder and the observer raised."""
        return tuple(self.journal.failures)

    async def wait(self, predicate: Callable[[], bool]) -> None:
        """Wait until ``predicate`` holds; it is asked now and whenever a request begins or has ended."""
        changed = asyncio.Event()

        def notice(_: CapturedRequest) -> None:
            changed.set()

        self.journal.observers.append(notice)
        try:
            while not predicate():
                changed.clear()
                await changed.wait()
        finally:
            self.journal.observers.remove(notice)

    async def listen(self, host: str, port: int) -> None:
        """Start to accept connections."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self), host, port, backlog=1024)
        self.url = url_of(self._server.sockets[0].getsockname())

    async def aclose(self) -> None:
        """Stop at once: whatever is being answered is dropped. Closing twice is closing once."""
        self.closing = True
        await self._stop_accepting()
        for connection in tuple(self._connections):
            connection.abort()
        await self._deserted.wait()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def _stop_accepting(self) -> None:
        """Close the listening sockets, but not before what they accepted a moment ago has become a connection: asyncio
        takes two turns of its loop for that, and would lose the accepted socket if its server were closed meanwhile.
        """
        for listening in self._server.sockets:
            with suppress(NotImplementedError):  # on Windows, where it takes no time
                asyncio.get_running_loop().remove_reader(listening.fileno())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self._server.close()

    # ── What a connection needs ─────────────────────────────────────────────────────────────────────────────────────

    def joined(self, connection: Connection) -> None:
        """Learn of a new connection."""
        self._connections.add(connection)
        self._deserted.clear()
        if self.closing:
            connection.abort()

    def left(self, connection: Connection) -> None:
        """Learn that a connection is gone."""
        self._connections.discard(connection)
        if not self._connections:
            self._deserted.set()

    def open(self, event: RawRequest | Refused) -> Exchange:
        """Journal a request and find its answer."""
        if isinstance(event, Refused):
            refusal = admit_refused(event, self._dialects)
            captured = self._capture(event.request, "rejected", refusal.dialect)
            return Exchange(event.request, captured, refusal.reply, keep_alive=False)
        admission = admit(event, self._dialects, self._api_key)
        match admission:
            case Call():
                return self._ask(event, admission)
            case Side():
                captured = self._capture(event, "side", admission.dialect)
                return Exchange(event, captured, admission.reply, keep_alive=event.keep_alive)
            case Rejected():
                captured = self._capture(event, "rejected", admission.dialect)
                return Exchange(event, captured, admission.reply, keep_alive=event.keep_alive)
            case _:
                assert_never(admission)

    def abandon(self, partial: RawRequest) -> None:
        """Journal a request whose body never came whole."""
        captured = self._capture(partial, "rejected", likely_dialect(partial, self._dialects))
        self.journal.close(captured, "server_closed" if self.closing else "client_closed")

    def apologise(self, exchange: Exchange, error: Exception) -> Reply:
        """Journal a responder's exception and find what to say instead."""
        dialect = self._dialects[exchange.captured.dialect]
        if isinstance(error, DialectError):
            exchange.captured.error = error
            self.journal.reject(exchange.captured)
            return failure_reply(dialect, ProviderError("INVALID_REQUEST", str(error)))
        exchange.outcome = "failed"
        self.journal.fail(error, exchange.captured)
        return failure_reply(dialect, ProviderError("SERVER_ERROR", f"{type(error).__name__}: {error}"))

    def _ask(self, raw: RawRequest, call: Call) -> Exchange:
        """Let the responder answer."""
        captured = self._capture(raw, "call", call.dialect)
        exchange = Exchange(raw, captured, (), keep_alive=raw.keep_alive)
        http = HttpRequest(
            method=raw.method,
            path=captured.path,
            query=captured.query,
            headers=raw.headers,
            body=raw.body,
            dialect=call.dialect.name,
            json=call.json,
            number=captured.call or 0,
            prefix=call.prefix,
            captured=captured,
        )
        try:
            exchange.answer = self._responder(http)
        except Exception as error:
            exchange.answer = self.apologise(exchange, error)
        return exchange

    def _capture(self, raw: RawRequest, kind: Kind, dialect: Dialect) -> CapturedRequest:
        path, query = split_target(raw.target)
        return self.journal.open(
            kind=kind,
            dialect=dialect.name,
            method=raw.method,
            path=path,
            query=query,
            headers=raw.headers,
            body=raw.body,
        )


def url_of(address: tuple[str, int] | tuple[str, int, int, int]) -> str:
    """Return the URL under which a client on this machine reaches a listening socket."""
    host = LOOPBACK.get(address[0], address[0])
    return f"http://[{host}]:{address[1]}" if ":" in host else f"http://{host}:{address[1]}"


# An address that means "all of this machine's" -> one that a client can call.
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}
