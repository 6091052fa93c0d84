"""What every server here shares: sockets that are bound before they listen, and connections that can all be freed."""

import asyncio
import ipaddress
import socket
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from llm_dialects import Reply

from llm_mock_server.accept import Acceptor
from llm_mock_server.connection import Connection
from llm_mock_server.exchange import Exchange
from llm_mock_server.http1 import RawRequest, Refused
from llm_mock_server.journal import Journal

Address = tuple[socket.AddressFamily, tuple[Any, ...]]
"""A family and an address of it, without a name to be looked up."""


class RemoteWarning(UserWarning):
    """The server can be reached from other machines."""


class Listener(ABC):
    """Sockets and connections of a server; what a connection asks of it is for the server to say.

    A port is held from ``bind`` on. Until ``start_listening`` whoever connects is refused by the kernel, as by a
    provider that is down, and nobody else can take the port meanwhile.

    Attributes:
        url: ``http://HOST:PORT``, from ``bind`` on.
        listening: Set once clients are let in.
        closing: Whether ``aclose`` has been called.
        max_body: Bytes of a request body; more is refused.
        tasks: Those that perform asynchronous answers.
    """

    def __init__(self, journal: Journal, max_body: int) -> None:
        self.journal = journal
        self.max_body = max_body
        self.url = ""
        self.listening = asyncio.Event()
        self.closing = False
        self.tasks: set[asyncio.Task[None]] = set()
        self._bound: list[socket.socket] = []
        self._acceptor = Acceptor(self._connect)
        self._connections: set[Connection] = set()
        self._deserted = asyncio.Event()
        self._deserted.set()

    @abstractmethod
    def open(self, event: RawRequest | Refused) -> Exchange:
        """Journal a request and find its answer."""

    @abstractmethod
    def abandon(self, partial: RawRequest) -> None:
        """Journal a request whose body never came whole."""

    @abstractmethod
    def apologise(self, exchange: Exchange, error: Exception) -> Reply:
        """Journal an exception that ended an answer and find what to say instead."""

    async def bind(self, host: str, port: int, *, allow_remote: bool = False) -> None:
        """Take a port on every address of ``host``.

        Raises:
            ValueError: ``port`` is none; or ``host`` can be reached from other machines, and ``allow_remote`` does not
                say that it may.
            OSError: an address cannot be had.
        """
        if not 0 <= port <= 65535:
            raise ValueError(f"{port} is no port\nmend: say a number up to 65535; 0 lets the system choose")
        addresses = await resolve(host, port)
        if not all(is_loopback(address) for address in addresses):
            admit_remote(host, allow_remote)
        self._bound = bind_all(addresses)
        self.url = url_of(self._bound[0].getsockname())

    async def start_listening(self) -> None:
        """Let clients in. Starting twice is starting once.

        Raises:
            OSError: the port was taken while it did not listen, or the server is closed.
        """
        if self.closing:
            raise OSError("the server is closed")
        bound, self._bound = self._bound, []
        for at in bound:
            if sys.platform != "win32":  # what it accepts must not keep the port from whoever comes after it
                at.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        await self._acceptor.start(bound)
        self.listening.set()

    @property
    def shortages(self) -> int:
        """How many times the system had no room for another connection, so that clients had to wait."""
        return self._acceptor.shortages

    def _connect(self) -> Connection:
        return Connection(self)

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

    async def drop_busy(self) -> None:
        """Drop the connections on which something is being answered, and return when it has ended."""
        while busy := [connection for connection in self._connections if connection.busy]:
            for connection in busy:
                connection.abort()
            await asyncio.sleep(0)

    async def aclose(self) -> None:
        """Stop at once: whatever is being answered is dropped. Closing twice is closing once."""
        self.closing = True
        for bound in self._bound:
            bound.close()
        await self._acceptor.aclose()
        for connection in tuple(self._connections):
            connection.abort()
        await self._deserted.wait()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def resolve(host: str, port: int) -> list[Address]:
    """Return the addresses of ``host``; none at all means every address of this machine."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise OSError(f"there is no host {host!r}: {error}\n{TAKEN}") from None
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def is_loopback(address: Address) -> bool:
    """Return whether only this machine can reach an address."""
    at = ipaddress.ip_address(address[1][0].partition("%")[0])
    mapped = at.ipv4_mapped if isinstance(at, ipaddress.IPv6Address) else None
    return (mapped or at).is_loopback


def admit_remote(host: str, allow_remote: bool) -> None:
    """Warn that other machines can reach the server, or refuse it."""
    if not allow_remote:
        raise ValueError(
            f"{host!r} can be reached from other machines, and the server believes whoever asks it\n"
            "mend: listen on 127.0.0.1, or allow it: --allow-remote, in Python allow_remote=True"
        )
    warnings.warn(f"{host!r} can be reached from other machines: whoever asks is answered", RemoteWarning, stacklevel=2)


def bind_all(addresses: Sequence[Address]) -> list[socket.socket]:
    """Bind a socket to every address, all to the port of the first; none listens."""
    bound: list[socket.socket] = []
    try:
        for family, address in addresses:
            port = bound[0].getsockname()[1] if bound else address[1]
            bound.append(bind_one(family, (address[0], port, *address[2:])))
    except OSError:
        for at in bound:
            at.close()
        raise
    return bound


def bind_one(family: socket.AddressFamily, address: tuple[Any, ...]) -> socket.socket:
    """Bind a socket. A port that an ended server has left in TIME_WAIT is taken none the less.

    Not at once with SO_REUSEADDR, though: under Linux two sockets that have it may both hold a port while neither
    listens, and the promise is that a port which is held is held alone.
    """
    try:
        return _bind(family, address, reuse=False)
    except OSError:
        if sys.platform == "win32":
            raise
        return _bind(family, address, reuse=True)


def _bind(family: socket.AddressFamily, address: tuple[Any, ...], *, reuse: bool) -> socket.socket:
    # asyncio sets TCP_NODELAY only where the protocol is named, and what is accepted names what listened.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setblocking(False)
        if reuse:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "win32":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        if family == socket.AF_INET6 and not address[0].startswith(MAPPED):  # the other family has its own socket
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
    except OSError as error:
        made.close()
        what = f"cannot take {address[0]} port {address[1]}: {error.strerror or error}"
        raise OSError(error.errno, f"{what}\n{TAKEN}") from None
    return made


def url_of(address: tuple[Any, ...]) -> str:
    """Return the URL under which a client on this machine reaches a listening socket."""
    host = LOOPBACK.get(address[0], address[0])
    return f"http://[{host}]:{address[1]}" if ":" in host else f"http://{host}:{address[1]}"


MAPPED = "::ffff:"
"""What an address of IPv4 begins with when it is written as one of IPv6."""

TAKEN = "mend: name a host of this machine and a port that is free (0: the system chooses)"

# An address that means "all of this machine's" -> one that a client can call.
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}
