"""Who lets clients in: a listener's sockets, and what becomes of a client for whom the system has no room.

asyncio's own way of accepting tells every failed try with a traceback on stderr, as many times as there may be waiting
clients. A full pipe there, and the loop stands still. Here it is one line for as long as the shortage lasts, and none
where it would have to wait to be read.
"""

import asyncio
import errno
import os
import select
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress


class Acceptor:
    """Takes what connects to listening sockets.

    Args:
        connect: Makes the protocol of a new connection.

    Attributes:
        shortages: How many times there was no room for another connection; one that lasts counts once.
    """

    def __init__(self, connect: Callable[[], asyncio.Protocol]) -> None:
        self.shortages = 0
        self._connect = connect
        self._listening: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []
        self._joining: set[asyncio.Task[None]] = set()
        self._retry: asyncio.TimerHandle | None = None
        self._short = False

    async def start(self, bound: Sequence[socket.socket]) -> None:
        """Listen on ``bound``.

        Raises:
            OSError: the port was taken meanwhile.
        """
        loop = asyncio.get_running_loop()
        if sys.platform == "win32":  # where a loop has no readers
            for at in bound:
                self._servers.append(await loop.create_server(self._connect, sock=at, backlog=BACKLOG))
            return
        self._listening += bound
        for at in bound:
            at.listen(BACKLOG)
        self._look()

    async def aclose(self) -> None:
        """Stop, but not before what was accepted a moment ago has become a connection. Stopping twice is once."""
        if self._retry is not None:
            self._retry.cancel()
        for at in self._listening:
            asyncio.get_running_loop().remove_reader(at)
            at.close()
        self._listening = []
        for server in self._servers:
            await asyncio.sleep(0)  # asyncio takes two turns of its loop for a connection
            await asyncio.sleep(0)
            server.close()
        await asyncio.gather(*self._joining, return_exceptions=True)

    def _look(self) -> None:
        """Let clients in whenever there are any."""
        self._retry = None
        for at in self._listening:
            asyncio.get_running_loop().add_reader(at, self._accept, at)

    def _accept(self, at: socket.socket) -> None:
        try:
            for _ in range(BACKLOG):
                accepted, _ = at.accept()
                self._join(accepted)
        except BlockingIOError:
            self._short = False  # nobody waits
        except (InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            self._wait_for_room(error)

    def _join(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        task = asyncio.get_running_loop().create_task(self._made(accepted))
        self._joining.add(task)
        task.add_done_callback(self._joining.discard)

    async def _made(self, accepted: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(self._connect, accepted)
        except OSError:  # the client is gone, or the system has no room for one that is already let in
            accepted.close()

    def _wait_for_room(self, error: OSError) -> None:
        """Let nobody in for a moment: the socket would say at once that there is somebody."""
        loop = asyncio.get_running_loop()
        for at in self._listening:
            loop.remove_reader(at)
        if self._retry is None:
            self._retry = loop.call_later(MOMENT, self._look)
        if not self._short:
            self._short = True
            self.shortages += 1
            say_unless_full(f"llm-mock-server: clients must wait: {error.strerror}\nmend: close connections, {RAISE}\n")


def say_unless_full(text: str) -> None:
    """Write a line to stderr, unless somebody would have to read there first."""
    with suppress(OSError, ValueError, AttributeError):  # there is no stderr, or it is no file
        descriptor = sys.stderr.fileno()
        ready = select.poll()
        ready.register(descriptor, select.POLLOUT)
        if ready.poll(0):  # a pipe that says so takes a line whole
            os.write(descriptor, text.encode())


BACKLOG = 1024
"""Clients that may wait to be accepted."""

MOMENT = 0.05
"""Seconds until the next look whether there is room."""

NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

RAISE = "or let the process have more files (ulimit -n)"
