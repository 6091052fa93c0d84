"""One client's connection: the loop that performs actions, on a plain ``asyncio.Protocol``.

Nothing is drawn from a reply before the last action is done and its bytes have left for the kernel, so a client that
does not read costs one ``Body`` of memory, and what a reply does between two actions happens when it should. A reply
that never waits is performed without a task; it gives way to other connections every ``TURN`` actions. (One head is
held back until its body is drawn: see ``_send_held``.)
"""

import asyncio
import inspect
import socket
import struct
import sys
from collections import deque
from collections.abc import AsyncIterable, Awaitable
from contextlib import suppress
from types import GeneratorType
from typing import Literal, Protocol, assert_never, cast

from llm_dialects import Action, Body, Head, Pause, Reply, Reset, Stall

from llm_mock_server.exchange import Exchange
from llm_mock_server.http1 import (
    CONTINUE,
    LAST_CHUNK,
    ContinueWanted,
    Event,
    RawRequest,
    Refused,
    RequestParser,
    encode_chunk,
    open_response,
)
from llm_mock_server.journal import Journal, Outcome


class Host(Protocol):
    """What a connection needs of its server."""

    journal: Journal
    max_body: int
    closing: bool
    tasks: set[asyncio.Task[None]]

    def joined(self, connection: "Connection") -> None:
        """Learn of a new connection."""

    def left(self, connection: "Connection") -> None:
        """Learn that a connection is gone."""

    def open(self, event: RawRequest | Refused) -> Exchange:
        """Journal a request and find its answer."""

    def abandon(self, partial: RawRequest) -> None:
        """Journal a request whose body never came whole."""

    def apologise(self, exchange: Exchange, error: Exception) -> Reply:
        """Journal a responder's exception and find what to say instead."""


class Connection(asyncio.Protocol):
    """Reads requests, answers them one after the other.

    The end of the client's stream counts as its going away: clients of model providers do not half-close, and a
    provider that talks on to an empty line would keep a cancelled call in flight.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._parser = RequestParser(host.max_body, MAX_HEAD)
        self._pending: deque[Event] = deque()
        self._pending_bytes = 0  # of bodies
        self._exchange: Exchange | None = None
        self._full = False  # the transport holds bytes the kernel did not take
        self._waiting = False  # for a pause to be over, or for the client to go
        self._deaf = False  # whatever else the client says is thrown away
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._room: asyncio.Future[None] | None = None

    # ── asyncio's callbacks ─────────────────────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for a sign as soon as a write does not fit. (Writes leave at once: asyncio sets TCP_NODELAY.)"""
        self._loop = asyncio.get_running_loop()
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)
        self._socket = cast(socket.socket, transport.get_extra_info("socket"))
        self._host.joined(self)

    def data_received(self, data: bytes) -> None:
        """Take what the client says; too many requests in advance make it wait."""
        if self._deaf:
            return
        for event in self._parser.feed(data):
            self._pending.append(event)
            self._pending_bytes += weight(event)
        if len(self._pending) > 1 and self._is_ahead():
            self._transport.pause_reading()
        if not self._scheduled:
            self._pump()

    def eof_received(self) -> None:
        """Take the client for gone."""
        if self._exchange is not None or self._full:
            self._transport.abort()

    def pause_writing(self) -> None:
        """Draw no more: the kernel is full."""
        self._full = True

    def resume_writing(self) -> None:
        """Go on: the kernel has everything."""
        self._full = False
        self._pump()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio names it
        """Journal what was going on, and free it."""
        exchange, partial = self._exchange, self._parser.partial
        if exchange is not None:
            cut_off: Outcome = "server_closed" if self._host.closing else "client_closed"
            self._finish(exchange, cut_off if exchange.outcome == "completed" else exchange.outcome)
        elif partial is not None:
            self._host.abandon(partial)
        self._cancel_timer()
        self._host.left(self)

    def abort(self) -> None:
        """Drop the connection."""
        self._transport.abort()

    @property
    def busy(self) -> bool:
        """Whether something is being answered."""
        return self._exchange is not None

    def _is_ahead(self) -> bool:
        """Return whether the client has sent so much in advance that it must wait."""
        return len(self._pending) > MAX_PENDING or self._pending_bytes > self._host.max_body

    # ── The loop ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _pump(self) -> None:
        """Do what can be done now: go on with the answer, then begin the next."""
        self._scheduled = False
        left = TURN
        while left > 0:
            exchange = self._exchange
            if self._full or self._waiting or self._transport.is_closing():
                return
            if exchange is not None and exchange.driven:
                self._give_room()
                return
            if exchange is not None:
                left = self._go_on(exchange, left)
            elif self._pending:
                event = self._pending.popleft()
                self._pending_bytes -= weight(event)
                self._begin(event)
                left -= 1
            else:
                return
        self._scheduled = True
        self._loop.call_soon(self._pump)

    def _begin(self, event: Event) -> None:
        if isinstance(event, ContinueWanted):
            self._transport.write(CONTINUE)
            return
        self._exchange = exchange = self._host.open(event)
        if not isinstance(exchange.answer, SYNCHRONOUS) and isinstance(exchange.answer, (Awaitable, AsyncIterable)):
            exchange.driven = True
            self._task = self._loop.create_task(self._drive(exchange))
            self._host.tasks.add(self._task)
            self._task.add_done_callback(self._host.tasks.discard)

    def _go_on(self, exchange: Exchange, left: int) -> int:
        """Perform up to ``left`` actions, as many as can be now; return how many of them are left. This loop is what
        the time of a long stream is spent in.
        """
        is_closing, perform = self._transport.is_closing, self._perform
        try:
            if exchange.actions is None:
                exchange.actions = iter(cast(Reply, exchange.answer))
            for action in exchange.actions:
                left -= 1
                if type(action) is Body:
                    self._send_body(exchange, action.data)
                else:
                    perform(exchange, action)
                if self._full or left <= 0 or self._waiting or is_closing() or self._exchange is not exchange:
                    return left
        except Exception as error:
            self._fail(exchange, error)
        else:
            self._end(exchange)
        return left - 1

    async def _drive(self, exchange: Exchange) -> None:
        """Await an asynchronous answer, in one task from beginning to end; what is left of it ``_pump`` can do."""
        try:
            answer = exchange.answer
            while isinstance(answer, Awaitable):
                answer = await answer
            if isinstance(answer, AsyncIterable):
                await self._drive_actions(exchange, answer)
                answer = ()
            exchange.actions = iter(answer)
        except Exception as error:
            if self._exchange is exchange:
                self._fail(exchange, error)
            else:
                self._host.journal.fail(error, exchange.captured)
        exchange.driven = False
        self._pump()

    async def _drive_actions(self, exchange: Exchange, actions: AsyncIterable[Action]) -> None:
        try:
            async for action in actions:
                if self._exchange is exchange:
                    self._perform(exchange, action)
                    await self._wait_for_room()
                if self._exchange is not exchange:
                    return
        finally:
            if (aclose := getattr(actions, "aclose", None)) is not None:
                await aclose()

    async def _wait_for_room(self) -> None:
        await asyncio.sleep(0)  # an iterator that is always ready must not starve the rest
        while self._full or self._waiting:
            self._room = self._loop.create_future()
            await self._room

    def _give_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    # ── The actions ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _perform(self, exchange: Exchange, action: Action) -> None:
        match action:
            case Body():
                self._send_body(exchange, action.data)
            case Head():
                self._send_head(exchange, action)
            case Pause():
                self._send_held(exchange)
                self._waiting = True
                self._timer = self._loop.call_later(action.seconds, self._wake)
            case Stall():
                self._send_held(exchange)
                self._waiting = True
                exchange.outcome = "stalled"
                self._stop_listening()
            case Reset():
                self._send_held(exchange)
                self._reset(exchange, action.how)
            case _:
                assert_never(action)

    def _send_body(self, exchange: Exchange, data: bytes) -> None:
        if exchange.frame is None:
            raise ValueError("a reply's Body came before its Head")
        if not data or exchange.frame == "none":
            return
        if exchange.frame == "length":
            exchange.owed -= len(data)
        exchange.captured.bodies_sent += 1
        self._write(exchange, encode_chunk(data) if exchange.frame == "chunked" else data)

    def _send_head(self, exchange: Exchange, head: Head) -> None:
        if exchange.frame is not None:
            raise ValueError("a reply has a second Head")
        raw = exchange.raw
        opening = open_response(head, raw.method, http10=raw.http10, keep_alive=exchange.keep_alive)
        exchange.frame, exchange.owed, exchange.keep_alive = opening.frame, opening.length, opening.keep_alive
        exchange.captured.status = head.status
        exchange.held = opening.data
        if opening.frame != "length" or exchange.driven:
            self._send_held(exchange)

    def _send_held(self, exchange: Exchange) -> None:
        """Send a head that was held back. That of a body of known length waits for the body, as it costs a write."""
        if exchange.held:
            self._write(exchange, b"")

    def _write(self, exchange: Exchange, data: bytes) -> None:
        if exchange.held:
            data = exchange.held + data
            exchange.held = b""
        exchange.captured.bytes_sent += len(data)
        self._transport.write(data)

    def _wake(self) -> None:
        self._timer = None
        self._waiting = False
        self._pump()

    def _reset(self, exchange: Exchange, how: Literal["rst", "fin"]) -> None:
        self._finish(exchange, "reset")
        if how == "fin":
            self._close_gently()
            return
        with suppress(OSError):  # the client may be gone already
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ZERO)
        self._transport.abort()

    # ── The end of an answer ────────────────────────────────────────────────────────────────────────────────────────

    def _end(self, exchange: Exchange) -> None:
        """End an answer that has no more actions; called again once its last bytes have left."""
        if exchange.frame is None:
            self._fail(exchange, ValueError("a reply ended without a Head"))
            return
        if exchange.held:
            self._send_held(exchange)
        elif exchange.frame == "chunked" and not exchange.terminated:
            exchange.terminated = True
            self._write(exchange, LAST_CHUNK)
        if not self._full and not self._transport.is_closing():
            self._finish(exchange, exchange.outcome)
            if exchange.owed or not exchange.keep_alive:
                self._close_gently()

    def _fail(self, exchange: Exchange, error: Exception) -> None:
        """Say 500 where nothing has been said yet; drop the connection otherwise."""
        self._close_actions(exchange)
        if exchange.frame is None and exchange.outcome != "failed":
            exchange.outcome = "failed"
            exchange.actions = iter(self._host.apologise(exchange, error))
            return
        self._host.journal.fail(error, exchange.captured)
        self._finish(exchange, "failed")
        self._transport.abort()

    def _finish(self, exchange: Exchange, outcome: Outcome) -> None:
        """Journal the outcome and make ready for the next request."""
        self._exchange = None
        self._waiting = False
        self._cancel_timer()
        self._close_actions(exchange)
        if exchange.driven:
            self._cancel_task(exchange)
        self._host.journal.close(exchange.captured, outcome)
        if not self._is_ahead() and not self._transport.is_closing():
            self._transport.resume_reading()

    def _close_actions(self, exchange: Exchange) -> None:
        close = getattr(exchange.actions, "close", None)
        exchange.actions = None
        if close is not None:
            try:
                close()
            except Exception as error:
                self._host.journal.fail(error, exchange.captured)

    def _close_gently(self) -> None:
        """Send our end, then listen for a while: closing on unread bytes would reset the connection and could take
        from the client the answer that it has not read yet.
        """
        self._stop_listening()
        if not self._transport.is_closing():
            self._timer = self._loop.call_later(LINGER_SECONDS, self._transport.abort)
            with suppress(OSError):  # the client may be gone already
                self._transport.write_eof()

    def _stop_listening(self) -> None:
        """Throw away what the client says from now on; reading goes on, to see it leave."""
        self._deaf = True
        self._pending.clear()
        self._pending_bytes = 0
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def _cancel_task(self, exchange: Exchange) -> None:
        if self._task is not None and self._task is not asyncio.current_task(self._loop):
            self._task.cancel()
        if inspect.iscoroutine(exchange.answer) and inspect.getcoroutinestate(exchange.answer) == inspect.CORO_CREATED:
            exchange.answer.close()  # the task was cancelled before it began

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def weight(event: Event) -> int:
    """Return how many bytes of body an event holds."""
    return len(event.body) if isinstance(event, RawRequest) else 0


MAX_HEAD = 64 * 1024
"""Bytes of a request's head."""

MAX_PENDING = 64
"""Requests a client may send in advance before it is not read any more."""

TURN = 64
"""Actions performed before other connections have their turn."""

SYNCHRONOUS = (tuple, list, GeneratorType, type(iter(())))
"""What most replies are: a plain test for these saves the two dear ones for whatever is to be awaited."""

LINGER_SECONDS = 2.0
"""How long a closed connection is still listened to."""

LINGER_ZERO = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
"""SO_LINGER with no time: closing sends a reset."""
