"""The two pipes to the client: lines in, lines out, and answers to our own requests matched by id.

Input is read in a thread: pipes on standard input cannot be awaited on every system.
Output is written at once and in full; a client that does not read stops us, as it should.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator
from io import FileIO
from typing import Any

from acp_agent.errors import RpcError
from acp_agent.jsonrpc import INTERNAL_ERROR, Answer, LineSplitter, call_line


class Connection:
    """Speaks lines over ``source``, a file descriptor, and ``sink``."""

    def __init__(self, source: int, sink: FileIO) -> None:
        self._source, self._sink = source, sink
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._calls = 0
        self._open = True

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the client's lines until it closes the pipe or ``stop`` is called."""
        threading.Thread(target=self._read, daemon=True).start()
        while (line := await self._lines.get()) is not None:
            yield line

    def stop(self) -> None:
        """End ``lines``, whatever may still come in."""
        self._lines.put_nowait(None)

    def send(self, line: bytes) -> None:
        """Write one line; a client that has gone away is nobody's error."""
        if not self._open:
            return
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[self._sink.write(rest) :]
        except OSError:
            self._open = False

    async def call(self, method: str, params: Any) -> Any:
        """Make a request of the client and return its result.

        Raises:
            RpcError: the client refused.
        """
        self._calls += 1
        id = self._calls
        answer = self._waiting[id] = self._loop.create_future()
        try:
            self.send(call_line(id, method, params))
            return await answer
        finally:
            del self._waiting[id]

    def settle(self, answer: Answer) -> None:
        """Hand an answer to whoever waits for it; one that nobody waits for is dropped."""
        waiting = self._waiting.get(answer.id) if isinstance(answer.id, int) else None
        if waiting is None or waiting.done():
            return
        if answer.error is None:
            waiting.set_result(answer.result)
        else:
            code, message = answer.error.get("code", INTERNAL_ERROR), answer.error.get("message", "")
            waiting.set_exception(RpcError(code, str(message)))

    def _read(self) -> None:
        """Read the pipe to its end; runs in a thread."""
        splitter = LineSplitter()
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: the loop is closed, the agent is leaving
            while data := os.read(self._source, 65536):
                for line in splitter.feed(data):
                    self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.stop)
