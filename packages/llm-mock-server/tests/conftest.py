"""Clients that say exactly what a test wants said, and a transport that writes down what is written to it."""

import asyncio
import gzip
import json
import socket
from collections.abc import Callable, Iterator
from itertools import count
from urllib.parse import urlsplit

import msgspec
import pytest
from llm_dialects import DIALECTS, Action, Body, Head, Request, StreamChunk, TextDelta, Usage
from llm_dialects.entries import SaidCall
from llm_mock_server.behaviours import behave
from llm_mock_server.options import Options
from llm_mock_server.situation import Situation


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


class Call(msgspec.Struct):
    """A model call for behaviours to answer; its usage is always 3 and 4, its token 7."""

    dialect: str
    streamed: bool
    framing: dict
    options: Options = Options(
        partial_text="to be cut",
        success_text="said and done",
        reasoning_text="thought",
        chunk_size=5,
        chunk_delay_ms=0,
        disconnect_delay_ms=0,
        headers_delay_ms=0,
        tool_calls=(
            SaidCall(name="a", arguments='{"x": 1}', id="call_a"),
            SaidCall(name="b", arguments='{"y": 2}', id="call_b"),
        ),
        huge_bytes=1000,
    )

    @property
    def request(self) -> Request:
        """What the client asked."""
        params = {"model": "m", "stream": self.streamed} | self.framing
        return Request(system=(), tools=(), messages=(), params=params)

    def acts(self, name: str, options: Options | None = None, **members: object) -> list[Action]:
        """Return the actions of the behaviour ``name``."""
        ids = count(1)
        situation = Situation(
            dialect=DIALECTS[self.dialect],
            request=self.request,
            options=options or self.options,
            token="7",
            created=1_767_225_600,
            count=lambda chunks: Usage(input_tokens=3, output_tokens=4),
            new_id=lambda: f"call_{next(ids)}",
            **members,
        )
        return list(behave(name, situation))

    def body(self, actions: list[Action]) -> bytes:
        """Return the body that ``actions`` make."""
        return b"".join(action.data for action in actions if isinstance(action, Body))

    def headers(self, actions: list[Action]) -> dict[str, str]:
        """Return the headers that ``actions`` say."""
        return next((dict(action.headers) for action in actions if isinstance(action, Head)), {})

    def decoded(self, actions: list[Action], size: int = 0) -> tuple[StreamChunk, ...]:
        """Return the chunks a client reads, at once or in pieces of ``size`` bytes."""
        body = self.body(actions)
        if self.headers(actions).get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if not self.streamed:
            return DIALECTS[self.dialect].decode_message(body)
        decoder, chunks = DIALECTS[self.dialect].decoder(), []
        step = size or len(body) or 1
        for at in range(0, len(body), step):
            chunks += decoder.feed(body[at : at + step])
        return (*chunks, *decoder.close())

    def text(self, actions: list[Action]) -> str:
        """Return the text a client reads, as it comes."""
        return "".join(chunk.text for chunk in self.decoded(actions) if isinstance(chunk, TextDelta))


# dialect -> what else a call may ask that changes how its stream is framed
FRAMINGS = {"gemini": [{"alt": "sse"}, {}]}
STREAMS = [Call(name, True, framing) for name in DIALECTS for framing in FRAMINGS.get(name, [{}])]
WHOLES = [Call(name, False, {}) for name in DIALECTS]


def called(call: Call) -> str:
    """Return the name of a call among tests."""
    return f"{call.dialect}{'-array' if call in STREAMS and call.dialect in FRAMINGS and not call.framing else ''}"


@pytest.fixture
def a_call() -> type[Call]:
    """Make a call in one dialect."""
    return Call


@pytest.fixture(params=STREAMS, ids=called)
def stream(request: pytest.FixtureRequest) -> Call:
    """A streamed call in each dialect."""
    return request.param


@pytest.fixture(params=WHOLES, ids=called)
def whole(request: pytest.FixtureRequest) -> Call:
    """A call in each dialect that is not streamed."""
    return request.param


@pytest.fixture(params=STREAMS + WHOLES, ids=lambda call: f"{called(call)}-{'stream' if call.streamed else 'whole'}")
def call(request: pytest.FixtureRequest) -> Call:
    """A call in each dialect, streamed and not."""
    return request.param
