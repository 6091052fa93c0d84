"""A provider that writes what it is told, and a recorder before it; what tests of the recorder share."""

import asyncio
import json
import socket
import struct
import sys
from contextlib import asynccontextmanager, suppress

import httpx
import msgspec
from llm_dialects import (
    DIALECTS,
    BlockEnd,
    BlockStart,
    Chunks,
    Finish,
    FinishReason,
    TextBlock,
    TextDelta,
    answer_to,
    entry_from_json,
    entry_to_json,
    honest_usage,
)
from llm_mock_server import entry_reply, serve
from session_snapshot.recording.heard import RETOLD, is_json, read_stream, read_whole
from session_snapshot.recording.recorder import RecordModel

KEY = "the real key"
SAID = (
    BlockStart(index=0, block_type="text"),
    TextDelta(index=0, text="one "),
    TextDelta(index=0, text="two "),
    TextDelta(index=0, text="drei ü"),
    BlockEnd(index=0, block=TextBlock(text="one two drei ü")),
    Finish(reason=FinishReason(kind="stop")),
)
HI = [{"role": "user", "content": "hi"}]
STREAM, WHOLE = "/v1beta/models/m:streamGenerateContent?alt=sse", "/v1beta/models/m:generateContent"
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def asked(dialect, *, streamed):
    """The endpoint under a client's base URL, and the body of a call."""
    return {
        "openai-chat": ("/chat/completions", {"model": "m", "messages": HI, "stream": streamed}),
        "openai-responses": ("/responses", {"model": "m", "input": HI, "stream": streamed}),
        "anthropic-messages": ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": HI, "stream": streamed}),
        "gemini": (STREAM if streamed else WHOLE, CONTENTS),
    }[dialect]


def told(dialect, *, streamed, chunks=SAID):
    """The events of an answer, or its one message."""
    said = {"model": "m", "stream": True, "alt": "sse"} if dialect == "gemini" else {}
    request = DIALECTS[dialect].parse_request(said | asked(dialect, streamed=True)[1])
    answer = answer_to(DIALECTS[dialect], request, token="1", created=0)
    if streamed:
        return list(DIALECTS[dialect].encode_stream(chunks, answer))
    return [DIALECTS[dialect].encode_message(chunks, answer)]


def chunked(*pieces):
    return [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces] + [b"0\r\n\r\n"]


def head(status=200, kind="text/event-stream", **headers):
    lines = {"content-type": kind} | {name.replace("_", "-"): value for name, value in headers.items()}
    text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status} Whatever\r\n{text}\r\n".encode()


def events(*pieces, status=200, kind="text/event-stream", **headers):
    """A chunked response."""
    return [head(status, kind, transfer_encoding="chunked", **headers), *chunked(*pieces)]


def message(body, status=200, kind="application/json", **headers):
    """A response of known length."""
    return [head(status, kind, content_length=len(body), **headers), body]


@asynccontextmanager
async def listening(take, **options):
    """A server on this machine that lets ``take(reader, writer)`` have each connection; its port. Nothing is left."""
    tasks = set()

    async def close_after(reader, writer):
        try:
            await take(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def begin(reader, writer):
        tasks.add(asyncio.ensure_future(close_after(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0, **options)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        for failure in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(failure, Exception) and not isinstance(failure, (OSError, EOFError)):
                raise failure


@asynccontextmanager
async def raw_provider(respond):
    """A server that calls ``respond(reader, writer, body)`` with each request that has come whole; its base URL."""

    async def take(reader, writer):
        lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
        await respond(reader, writer, await reader.readexactly(length))

    async with listening(take) as port:
        yield f"http://127.0.0.1:{port}/v1"


@asynccontextmanager
async def recorder(upstream):
    """A recorder before ``upstream``, and a client of it; nothing of it may take long."""
    async with (
        asyncio.timeout(20),
        httpx.AsyncClient(trust_env=False, timeout=None) as outward,
        httpx.AsyncClient(trust_env=False, timeout=None) as client,
    ):
        model = RecordModel(outward, upstream, KEY)
        async with serve(model) as front:
            yield front, model, client
        await model.settled()
        assert not front.failures


def saying(*writes, end="fin"):
    """A provider that writes this and then ends the connection."""

    async def respond(_reader, writer, _body):
        for data in writes:
            writer.write(data)
            await writer.drain()
        if end == "rst":
            writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
            )
            writer.transport.abort()

    return respond


async def direct(respond, dialect="openai-chat", *, streamed=True):
    """Ask once without a recorder: what the client got, an exception where that was one."""
    below, body = asked(dialect, streamed=streamed)
    async with raw_provider(respond) as upstream, httpx.AsyncClient(trust_env=False) as client:
        base = upstream if DIALECTS[dialect].base_suffix else upstream.removesuffix("/v1")
        try:
            return await client.post(base + below, json=body)
        except httpx.RequestError as error:
            return error


async def forwarded(respond, dialect, *, streamed):
    """Ask once: what the client got (an exception where that was one), the entry that was kept."""
    below, body = asked(dialect, streamed=streamed)
    async with raw_provider(respond) as upstream, recorder(upstream) as (front, model, client):
        try:
            got = await client.post(front.base_url(dialect) + below, json=body)
        except httpx.RequestError as error:
            got = error
        await front.wait(lambda: front.in_flight == 0)
    return got, model.calls[0].entry


def forward(respond, dialect="openai-chat", *, streamed=True):
    return asyncio.run(forwarded(respond, dialect, streamed=streamed))


# ── what a client sees of a response, and what is told again of it ──────────────────────────────────────────────────


class Call(msgspec.Struct, frozen=True):
    """What a client asks: the endpoint under its base URL, and the body."""

    dialect: str
    streamed: bool
    below: str
    body: dict


def call(dialect, mode, text="hi"):
    """A call that asks for a ``stream``, or ``whole``; of Gemini also for an ``array``. Usage is asked for."""
    below, body = asked(dialect, streamed=mode != "whole")
    body = json.loads(json.dumps(body).replace('"hi"', json.dumps(text)))
    if dialect == "openai-chat" and mode == "stream":
        body["stream_options"] = {"include_usage": True}
    return Call(dialect, mode != "whole", below.removesuffix("?alt=sse") if mode == "array" else below, body)


class Seen(msgspec.Struct):
    """What a client without any mercy saw of a response."""

    status: int | None = None
    headers: dict = {}
    body: bytes = b""
    end: str = "complete"


class Listener(asyncio.Protocol):
    """Takes down all that comes, and how it ends; asyncio's streams forget at a reset what they have not been asked."""

    def __init__(self):
        self.data, self.end = b"", "cut"
        self.changed, self.lost = asyncio.Event(), False

    def data_received(self, data):
        self.data += data
        self.changed.set()

    def connection_lost(self, error):
        self.end = "reset" if isinstance(error, ConnectionResetError) else "cut"
        self.lost = True
        self.changed.set()

    async def until(self, done):
        while not self.lost and not done(self.data):
            self.changed.clear()
            await self.changed.wait()


async def ask(base, call, *, leave=False):
    """Ask once over a connection of its own; ``leave``: go as soon as the head is there."""
    url, body = httpx.URL(base + call.below), json.dumps(call.body).encode()
    transport, listener = await asyncio.get_running_loop().create_connection(Listener, url.host, url.port)
    head = f"POST {url.raw_path.decode()} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    transport.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    await listener.until(lambda data: b"\r\n\r\n" in data if leave else is_whole(data))
    transport.close()
    return seen_in(listener.data, "silence" if leave else listener.end)


def is_whole(data):
    return b"\r\n\r\n" in data and seen_in(data, "cut").end == "complete"


def seen_in(data, end):
    """A response of which so much came before it ended like this."""
    head, _, rest = data.partition(b"\r\n\r\n")
    if not head:
        return Seen(end=end)
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    body, whole = b"", False
    if "content-length" in headers:
        body, whole = rest, len(rest) == int(headers["content-length"])
    while "content-length" not in headers and b"\r\n" in rest:
        size, _, rest = rest.partition(b"\r\n")
        whole = int(size, 16) == 0
        body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return Seen(int(first.split()[1]), headers, body, "complete" if whole else end)


def view(call, seen):
    """What a client makes of a response."""
    dialect = DIALECTS[call.dialect]
    told = {name: value for name, value in seen.headers.items() if name in RETOLD}
    kind = seen.headers.get("content-type", "").partition(";")[0]
    if seen.status is None or seen.status >= 300:
        said = json.loads(seen.body) if is_json(seen.body) else seen.body
    else:
        said = read_stream(dialect, seen.body) if call.streamed else read_whole(dialect, seen.body)
        said = (said.chunks, said.wrong, bool(said.events))
    return seen.status, kind, told, said, seen.end


@asynccontextmanager
async def recording(upstream):
    """A recorder before the base URL ``upstream``: its server, and its model."""
    async with httpx.AsyncClient(trust_env=False) as client:
        model = RecordModel(client, upstream, KEY)
        async with serve(model) as front:
            yield front, model
        await model.settled()
        assert not front.failures


def replaying(entry, token="1", created=0):
    """A responder that serves an entry, as it stands in a file; a replay counts what breaks off as it always does."""
    kept = entry_from_json(json.loads(json.dumps(entry_to_json(entry))), "here")

    def respond(http):
        dialect = DIALECTS[http.dialect]
        request = dialect.parse_request(http.json)
        exact = isinstance(kept, Chunks)
        usage = None if exact else honest_usage(http.json, kept.chunks)
        answer = answer_to(dialect, request, token=token, created=created, usage=usage, exact=exact)
        return entry_reply(dialect, request, kept, answer)

    return respond


async def replayed(responder, made, *, leave=False):
    """Ask for what is served: directly, and through a recorder; what was seen, and the entry that was kept again."""
    async with serve(responder) as upstream:
        seen = await ask(upstream.base_url(made.dialect), made, leave=leave)
        async with recording(upstream.base_url(made.dialect)) as (front, model):
            await ask(front.base_url(made.dialect), made, leave=leave)
            await front.wait(lambda: front.in_flight == 0)
    return seen, model.calls[0].entry
