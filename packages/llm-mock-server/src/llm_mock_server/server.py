"""The server: accepts connections, lets a responder answer model calls, keeps the journal."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import assert_never

from llm_dialects import DIALECTS, Dialect, DialectError, ProviderError, Reply

from llm_mock_server.admission import Call, HttpRequest, Rejected, Side, admit, admit_refused, likely_dialect
from llm_mock_server.answer import Unanswerable, failure_reply
from llm_mock_server.exchange import Exchange, ResponderResult
from llm_mock_server.http1 import RawRequest, Refused, split_target
from llm_mock_server.journal import KEEP, KEEP_BYTES, CapturedRequest, Journal, Kind, Observer, depth_of, read_json
from llm_mock_server.listener import Listener
from llm_mock_server.redaction import redact_error

Responder = Callable[[HttpRequest], ResponderResult]
"""Answers a model call with actions, with an awaitable of actions, or with an asynchronous iterator of them."""

MAX_BODY = 64 * 1024 * 1024
"""Bytes of a request body, unless told otherwise."""

MAX_DEPTH = 100
"""Levels that a body's nesting may have with certainty; beyond, a responder may come to the end of its stack."""


LISTED_MODEL = "mock-model"
"""The model that ``/models`` lists, unless told otherwise."""


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
    keep: int | None = KEEP,
    keep_bytes: int | None = KEEP_BYTES,
    dialects: Mapping[str, Dialect] = DIALECTS,
    listen: bool = True,
    allow_remote: bool = False,
    control_port: int | None = None,
    listed_model: str = LISTED_MODEL,
) -> AsyncIterator["MockServer"]:
    """Serve ``responder`` until the block is left, then free every connection at once.

    Args:
        responder: Called for every well-formed model call, in order of arrival. What it raises is answered with 500 in
            the dialect's words (a ``DialectError`` with 400) and kept in ``failures``.
        host: Name or address to listen on; one that other machines can reach must be allowed.
        port: 0 lets the system choose.
        api_key: The only key that is let in; None lets everybody in.
        on_change: Called when a request begins and when it has ended; what it raises is kept in ``failures``.
        on_request: The same with the journal entry, whose ``outcome`` is None when it begins.
        max_body: Bytes of a request body; more gets 413.
        keep: How many journal entries are kept, the newest; None keeps all.
        keep_bytes: How many bytes of them, likewise; ``dropped`` says how many entries are not kept any more.
        dialects: The dialects spoken; the first is spoken to clients that do not show theirs.
        listen: False holds the port but refuses who connects until ``start_listening``: a provider that is down.
        allow_remote: Whether ``host`` may be one that other machines can reach; a ``RemoteWarning`` says so.
        control_port: Port of the control API, always on this machine's loopback; 0 lets the system choose, None means
            that there is none.
        listed_model: The model that ``/models`` lists in every dialect; "" for none.

    Raises:
        OSError: the address cannot be listened on.
        ValueError: other machines could reach it, and may not.
    """
    journal = Journal(keep, keep_bytes)
    if on_change is not None:
        journal.observers.append(lambda _: on_change())
    if on_request is not None:
        journal.observers.append(on_request)
    server = MockServer(responder, journal, api_key=api_key, max_body=max_body, dialects=dialects)
    server.listed_model = listed_model
    try:
        await server.bind(host, port, allow_remote=allow_remote)
        if control_port is not None:
            await server.start_control(control_port)
        if listen:
            await server.start_listening()
        yield server
    finally:
        await server.aclose()


class MockServer(Listener):
    """A running server; ``serve`` makes one.

    Attributes:
        control_url: URL of the control API, or "".
        responder: What answers model calls.
        listed_model: The model that ``/models`` lists.
    """

    def __init__(
        self,
        responder: Responder,
        journal: Journal,
        *,
        api_key: str | None,
        max_body: int,
        dialects: Mapping[str, Dialect],
    ) -> None:
        super().__init__(journal, max_body)
        self.control_url = ""
        self.listed_model = LISTED_MODEL
        self.responder = responder
        self._api_key = api_key
        self._dialects = dialects
        self._control: Listener | None = None

    # ── What users need ─────────────────────────────────────────────────────────────────────────────────────────────

    def base_url(self, dialect: str, segment: str = "") -> str:
        """Return the base URL to give to a client of ``dialect``; ``segment`` is a first part of its path, by which a
        script can tell clients apart.
        """
        mount = f"/{segment}" if segment else ""
        return self.url + mount + self._dialects[dialect].base_suffix

    @property
    def base_urls(self) -> dict[str, str]:
        """The base URL of every dialect."""
        return {dialect: self.base_url(dialect) for dialect in self._dialects}

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

    @property
    def dropped(self) -> int:
        """How many requests the journal does not hold any more."""
        return self.journal.dropped

    @property
    def ended(self) -> int:
        """How many model calls have been answered, or given up, since the beginning or the last ``reset``."""
        return self.journal.ended

    async def reset(self) -> None:
        """Drop what is being answered, empty the journal and count from 0 again; a scripted responder begins anew."""
        await self.drop_busy()
        self.journal.reset()
        rewind = getattr(self.responder, "reset", None)
        if rewind is not None:
            rewind()

    async def start_control(self, port: int) -> None:
        """Open the control API."""
        from llm_mock_server.control import ControlServer

        self._control = control = ControlServer(self)
        await control.bind("127.0.0.1", port)
        await control.start_listening()
        self.control_url = control.url

    async def aclose(self) -> None:
        """Stop at once: whatever is being answered is dropped. Closing twice is closing once."""
        if self._control is not None:
            await self._control.aclose()
        await super().aclose()

    # ── What a connection needs ─────────────────────────────────────────────────────────────────────────────────────

    def open(self, event: RawRequest | Refused) -> Exchange:
        """Journal a request and find its answer."""
        if isinstance(event, Refused):
            refusal = admit_refused(event, self._dialects)
            captured = self._capture(event.request, "rejected", refusal.dialect)
            return Exchange(event.request, captured, refusal.reply, keep_alive=False)
        try:
            admission = admit(event, self._dialects, self._api_key, self.listed_model)
        except Exception as error:  # a dialect that stumbles over a request must not take the connection with it
            return self._stumble(event, error)
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
        if isinstance(error, RecursionError) and depth_of(read_json(exchange.raw.body)) > MAX_DEPTH:
            error = DialectError(f"the body is nested deeper than {MAX_DEPTH} levels, which is too deep")
        if isinstance(error, DialectError):
            redact_error(error, exchange.captured.headers, exchange.captured.query)
            exchange.captured.error = error.with_traceback(None)  # whose frames hold the request
            self.journal.reject(exchange.captured)
            return failure_reply(dialect, ProviderError("INVALID_REQUEST", str(error)))
        exchange.outcome = "failed"
        self.journal.fail(error, exchange.captured)
        if isinstance(error, Unanswerable):
            return failure_reply(dialect, error.failure)
        return failure_reply(dialect, ProviderError("SERVER_ERROR", exchange.captured.error_text or ""))

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
            exchange.answer = self.responder(http)
        except Exception as error:
            exchange.answer = self.apologise(exchange, error)
        return exchange

    def _stumble(self, raw: RawRequest, error: Exception) -> Exchange:
        """Answer a request that no dialect could read without failing."""
        dialect = next(iter(self._dialects.values()))
        captured = self._capture(raw, "rejected", dialect)
        exchange = Exchange(raw, captured, (), keep_alive=raw.keep_alive)
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
