"""The load client of bench/mock_server.py: one process on one core, told what to do by JSON lines on stdin.

Raw sockets, keep-alive, no pipelining, the same bytes for every server. It reads as much of an answer as is needed to
find its end, so that it costs less than any server it measures; the bench's ceiling row shows what it can do itself.
Bodies differ from request to request, in content and in length, as an agent's do.
"""

import json
import selectors
import socket
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

RECEIVE = 1 << 18
LAST_CHUNK = b"0\r\n\r\n"


def main() -> None:
    """Do what each line says; answer each with a line."""
    for line in sys.stdin:
        order = json.loads(line)
        result = ORDERS[order.pop("do")](**order)
        print(json.dumps(result), flush=True)


# ── What is sent ────────────────────────────────────────────────────────────────────────────────────────────────────


def questions(port: int, *, stream: bool) -> Iterator[bytes]:
    """Yield requests without end, as the openai SDK sends them."""
    for number in count():
        text = f"ping {number:08d}{'.' * (number % 29)}"
        body = json.dumps(BODY | {"messages": [*MESSAGES, {"role": "user", "content": text}], "stream": stream})
        yield HEAD.format(port=port, length=len(body)).encode() + body.encode()


def prepared(port: int, amount: int = 1024) -> list[bytes]:
    """Return requests made in advance, to be asked again and again: making one costs as much as sending it."""
    made = questions(port, stream=False)
    return [next(made) for _ in range(amount)]


MESSAGES = [
    {"role": "system", "content": "You are a careful assistant. Answer in one word, and use a tool only when told to."},
    {"role": "user", "content": "Say what you see.\nThen wait."},
    {"role": "assistant", "content": "A line of text, and a second one."},
]
TOOL = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a command in the working directory.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}
BODY: dict[str, Any] = {"model": "gpt-4o", "temperature": 0, "tools": [TOOL]}
HEAD = (
    "POST /v1/chat/completions HTTP/1.1\r\n"
    "host: 127.0.0.1:{port}\r\n"
    "accept: application/json\r\n"
    "accept-encoding: identity\r\n"
    "connection: keep-alive\r\n"
    "content-type: application/json\r\n"
    "user-agent: OpenAI/Python 3.57.0\r\n"
    "x-stainless-lang: python\r\n"
    "x-stainless-async: false\r\n"
    "x-stainless-retry-count: 0\r\n"
    "authorization: Bearer sk-bench\r\n"
    "content-length: {length}\r\n\r\n"
)


# ── What comes back ─────────────────────────────────────────────────────────────────────────────────────────────────


def is_whole(data: bytes) -> bool:
    """Return whether an answer has come whole; one that is no 200 ends the bench."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = data[:end]
    length = LENGTHS.get(head)
    if length is None:
        length = announced(head)
        LENGTHS[head] = length
    return data.endswith(LAST_CHUNK) if length < 0 else len(data) >= end + 4 + length


def announced(head: bytes) -> int:
    """Return the length that a head announces, -1 where the body is chunked."""
    status, *lines = head.decode("latin-1").lower().split("\r\n")
    if " 200 " not in status:
        raise SystemExit(f"not a 200: {head!r}")
    fields = dict(line.split(": ", 1) for line in lines)
    if len(LENGTHS) > 1000:  # servers that send a date or an id
        LENGTHS.clear()
    return -1 if fields.get("transfer-encoding") == "chunked" else int(fields["content-length"])


LENGTHS: dict[bytes, int] = {}
"""Heads that came before -> the length they announce."""


# ── Orders ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def connect(port: int) -> socket.socket:
    """Return a connection that sends at once."""
    link = socket.create_connection(("127.0.0.1", port))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


def ask(port: int, connections: int, requests: int = 0, seconds: float = 0.0) -> dict[str, float]:
    """Ask on some connections at once, for so many requests or so many seconds; count."""
    links = [connect(port) for _ in range(connections)]
    bodies = prepared(port)
    began = time.perf_counter()
    until = began + seconds if seconds else float("inf")
    run = ask_one if connections == 1 else ask_many
    done, times = run(links, bodies, requests or sys.maxsize, until)
    took = time.perf_counter() - began
    for link in links:
        link.close()
    times.sort()
    return {"requests": done, "seconds": took, "p50": times[len(times) // 2], "p99": times[len(times) * 99 // 100]}


def ask_one(links: list[socket.socket], bodies: list[bytes], limit: int, until: float) -> tuple[int, list[float]]:
    """Ask one after the other on one connection."""
    (link,) = links
    times: list[float] = []
    sent = time.perf_counter()
    while len(times) < limit and sent < until:
        link.sendall(bodies[len(times) & 1023])
        data = link.recv(RECEIVE)
        while not is_whole(data):
            data += receive(link)
        now = time.perf_counter()
        times.append(now - sent)
        sent = now
    return len(times), times


def ask_many(links: list[socket.socket], bodies: list[bytes], limit: int, until: float) -> tuple[int, list[float]]:
    """Keep one request under way on every connection."""
    selector = selectors.DefaultSelector()
    sent: dict[socket.socket, float] = {}
    begun: dict[socket.socket, bytes] = {}
    started = len(links)
    for number, link in enumerate(links):
        selector.register(link, selectors.EVENT_READ)
        sent[link] = time.perf_counter()
        link.sendall(bodies[number & 1023])
    times: list[float] = []
    while sent:
        for key, _ in selector.select():
            link = key.fileobj  # type: ignore[assignment]
            data = receive(link)
            if begun:
                data = begun.pop(link, b"") + data
            if not is_whole(data):
                begun[link] = data
                continue
            now = time.perf_counter()
            times.append(now - sent[link])
            if started < limit and now < until:
                sent[link] = now
                link.sendall(bodies[started & 1023])
                started += 1
            else:
                del sent[link]
                selector.unregister(link)
    selector.close()
    return len(times), times


def receive(link: socket.socket) -> bytes:
    """Return what has come."""
    data = link.recv(RECEIVE)
    if not data:
        raise SystemExit("the server closed a connection in the middle of an answer")
    return data


def stream(port: int, runs: int) -> dict[str, list[float]]:
    """Ask for a streamed answer several times; return seconds, seconds to the body's first byte, events and reads."""
    link = connect(port)
    asked = questions(port, stream=True)
    results = [stream_once(link, next(asked)) for _ in range(runs)]
    link.close()
    return {
        name: list(column)
        for name, column in zip(("seconds", "first", "events", "reads"), zip(*results, strict=True), strict=True)
    }


def stream_once(link: socket.socket, question: bytes) -> tuple[float, float, int, int]:
    """Ask once. The head alone is not the first byte: a client can do nothing with it."""
    reads: list[bytes] = []
    first = 0.0
    began = time.perf_counter()
    link.sendall(question)
    while True:
        data = receive(link)
        reads.append(data)
        if not first and (len(reads) > 1 or not data.endswith(b"\r\n\r\n")):
            first = time.perf_counter() - began
        if data.endswith(LAST_CHUNK):
            break
    took = time.perf_counter() - began
    whole = b"".join(reads)
    return took, first, whole.count(b'"content":'), len(reads)


ORDERS: dict[str, Callable[..., object]] = {"ask": ask, "stream": stream}

if __name__ == "__main__":
    main()
