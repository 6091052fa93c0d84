"""A provider that writes what it is told, and a recorder before it; what tests of the recorder share."""

import asyncio
import socket
import struct
import sys
from contextlib import asynccontextmanager, suppress

import httpx
from llm_dialects import (
    DIALECTS,
    BlockEnd,
    BlockStart,
    Finish,
    FinishReason,
    TextBlock,
    TextDelta,
    answer_to,
)
from llm_mock_server import serve
from session_snapshot.recorder import RecordModel

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
            if isinstance(failure, Exception) and not isinstance(failure, OSError):
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
        httpx.AsyncClient(trust_env=False) as outward,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        model = RecordModel(outward, upstream, "the real key")
        async with serve(model) as front:
            yield front, model, client
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
