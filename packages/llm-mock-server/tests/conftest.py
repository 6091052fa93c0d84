"""Clients that say exactly what a test wants said, and a transport that writes down what is written to it."""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest


class RawClient:
    """A TCP connection that speaks bytes. Every wait is bounded, so a server that hangs is a failed test."""

    def __init__(self, url: str, receive_buffer: int | None = None) -> None:
        address = urlsplit(url)
        self.socket = socket.socket(socket.AF_INET6 if ":" in (address.hostname or "") else socket.AF_INET)
        self.socket.settimeout(20)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            self.socket.connect((address.hostname, address.port))
        except OSError:
            self.socket.close()
            raise

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def expect(self, data: bytes) -> None:
        """Read exactly ``data``."""
        got = b""
        while len(got) < len(data) and data.startswith(got):
            more = self.socket.recv(len(data) - len(got))
            if not more:
                break
            got += more
        assert got == data

    def expect_end(self) -> None:
        """Read the end of the stream."""
        assert self.socket.recv(1000) == b""

    def read_until(self, end: bytes) -> str:
        """Read up to ``end``, byte by byte, so that nothing after it is taken."""
        got = b""
        while not got.endswith(end):
            more = self.socket.recv(1)
            assert more, got
            got += more
        return got.decode()

    def read_head(self) -> str:
        """Read a response's head."""
        return self.read_until(b"\r\n\r\n")

    def read_whole(self) -> tuple[str, dict]:
        """Read a response of announced length: its head and the JSON of its body."""
        head = self.read_head()
        length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
        body = b""
        while len(body) < length:
            body += self.socket.recv(length - len(body))
        return head, json.loads(body) if body else {}

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def dial() -> Iterator[Callable[..., RawClient]]:
    """Connect to a URL; all connections are closed in the end."""
    clients: list[RawClient] = []

    def connect(url: str, receive_buffer: int | None = None) -> RawClient:
        clients.append(RawClient(url, receive_buffer))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


@pytest.fixture
def post() -> Callable[..., bytes]:
    """Make the bytes of a model call."""

    def make(
        body: bytes | None = None,
        path: str = "/v1/chat/completions",
        method: str = "POST",
        headers: tuple[str, ...] = (),
    ) -> bytes:
        if body is None:
            body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}).encode()
        lines = [f"{method} {path} HTTP/1.1", "host: test", f"content-length: {len(body)}", *headers]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body

    return make


class WrittenTransport(asyncio.Transport):
    """Writes down what is asked of it; ``filled``, where set, is called after every write, as by a full kernel."""

    def __init__(self) -> None:
        super().__init__({"socket": socket.socket()})
        self.written: list[bytes] = []
        self.closed = False
        self.reading = True
        self.filled: Callable[[], None] | None = None

    def write(self, data: bytes) -> None:
        self.written.append(bytes(data))
        if self.filled is not None:
            self.filled()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high == 0

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.reading = False
        self.written.append(b"<pause reading>")

    def resume_reading(self) -> None:
        if not self.reading:
            self.reading = True
            self.written.append(b"<resume reading>")

    def write_eof(self) -> None:
        self.written.append(b"<eof>")

    def abort(self) -> None:
        self.closed = True
        self.written.append(b"<abort>")


@pytest.fixture
def transport() -> Iterator[WrittenTransport]:
    """A transport for a ``Connection`` on no network."""
    made = WrittenTransport()
    yield made
    made.get_extra_info("socket").close()
