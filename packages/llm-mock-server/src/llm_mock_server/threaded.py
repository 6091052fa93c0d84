"""The server for synchronous tests: its own event loop in its own thread."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from llm_mock_server.journal import CapturedRequest
from llm_mock_server.server import Responder, serve


@contextmanager
def serve_in_thread(responder: Responder, **options: Any) -> Iterator["ThreadedServer"]:
    """Serve ``responder`` from a thread until the block is left; ``options`` are those of ``serve``.

    The responder and ``on_change`` are called in that thread.

    Raises:
        OSError: the address cannot be listened on.
    """
    server = ThreadedServer(responder, options)
    server.start()
    try:
        yield server
    finally:
        server.close()


class ThreadedServer:
    """A running server in another thread; ``serve_in_thread`` makes one. All members may be used from any thread."""

    def __init__(self, responder: Responder, options: dict[str, Any]) -> None:
        self._responder = responder
        self._options = options
        self._thread = threading.Thread(target=self._run, name="llm-mock-server")
        self._ready = threading.Event()
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self._closed = False

    def start(self) -> None:
        """Start the thread and wait until the server listens."""
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def close(self) -> None:
        """Drop every connection and join the thread. Closing twice is closing once."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    @property
    def url(self) -> str:
        """``http://HOST:PORT``."""
        return self._server.url

    @property
    def control_url(self) -> str:
        """URL of the control API, or ""."""
        return self._server.control_url

    def base_url(self, dialect: str, segment: str = "") -> str:
        """Return the base URL to give to a client of ``dialect``; ``segment`` as in ``MockServer.base_url``."""
        return self._server.base_url(dialect, segment)

    @property
    def base_urls(self) -> dict[str, str]:
        """The base URL of every dialect."""
        return self._server.base_urls

    @property
    def requests(self) -> tuple[CapturedRequest, ...]:
        """The journal: every request, in the order in which their answers began."""
        return self._server.requests

    @property
    def in_flight(self) -> int:
        """How many model calls are being answered."""
        return self._server.in_flight

    @property
    def dropped(self) -> int:
        """How many requests the journal does not hold any more."""
        return self._server.dropped

    @property
    def ended(self) -> int:
        """How many model calls have been answered, or given up, since the beginning or the last ``reset``."""
        return self._server.ended

    @property
    def failures(self) -> tuple[Exception, ...]:
        """What the responder and the observer raised."""
        return self._server.failures

    def start_listening(self) -> None:
        """Let clients in, where ``serve`` was told not to. Starting twice is starting once.

        Raises:
            OSError: the port cannot be listened on.
        """
        self._do(self._server.start_listening)

    def reset(self) -> None:
        """Drop what is being answered, empty the journal and count from 0 again; a scripted responder begins anew."""
        self._do(self._server.reset)

    def wait(self, predicate: Callable[[], bool], timeout: float = 10.0) -> None:
        """Wait until ``predicate`` holds; it is asked now and whenever a request begins or has ended.

        Raises:
            TimeoutError: it did not come to hold within ``timeout`` seconds.
        """
        with self._changed:
            self._changed.wait_for(lambda: predicate() or self._closed, timeout)
            if not predicate():
                when = "before the server was closed" if self._closed else f"within {timeout} s"
                shown = "".join(f"\n  {captured}" for captured in self.requests[-LAST:])
                raise TimeoutError(f"nothing of the kind happened {when}; the last of {self.seen} requests:{shown}")

    @property
    def seen(self) -> int:
        """How many requests there have been."""
        return self._server.journal.opened

    def _do(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if self._closed:
            raise RuntimeError("the server is closed\nmend: do it inside the block of serve_in_thread")
        asyncio.run_coroutine_threadsafe(work(), self._loop).result()

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()
            with self._changed:
                self._closed = True
                self._changed.notify_all()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with serve(self._responder, **self._options) as self._server:
            self._server.journal.observers.append(self._tell)
            self._ready.set()
            await self._stop.wait()

    def _tell(self, _: CapturedRequest) -> None:
        with self._changed:
            self._changed.notify_all()


LAST = 5
"""Requests that are told when a wait was in vain."""
