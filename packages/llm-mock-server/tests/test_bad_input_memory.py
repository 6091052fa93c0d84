"""Clients that send or leave unread more than fits: what the server's process takes for it, measured from outside."""

import contextlib
import subprocess
import sys

import psutil

MIB = 2**20

FLOOD = """
from llm_dialects import Body, Head
from llm_mock_server import serve_in_thread

def flood(http):
    yield Head(200)
    for _ in range(1600):
        yield Body(bytes(65536))

def reply(http):
    return flood(http) if http.json.get("model") == "flood" else [Head(200), Body(b"one")]

with serve_in_thread(reply) as server:
    print(server.url, flush=True)
    input()
"""


class Child:
    """A server in a process of its own, and how much memory it has taken since the beginning at most."""

    def __init__(self, process):
        self.process = process
        self._of_system = psutil.Process(process.pid)
        self._first = self._last = self._of_system.memory_info().rss

    def grown(self):
        self._last = max(self._last, self._of_system.memory_info().rss)
        return self._last - self._first


@contextlib.contextmanager
def child(*command):
    process = subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def server(*flags):
    with child("-m", "llm_mock_server", "--sequence", "success", "--repeat-last", *flags) as process:
        url = process.stdout.readline().partition('"baseURL":"')[2].partition("/v1")[0]
        yield Child(process), url


def stream(client, measured, piece, count):
    """Send ``piece`` so many times, or until the server has had enough."""
    with contextlib.suppress(ConnectionError):
        for _ in range(count):
            client.send(piece)
            measured.grown()


def serves_on(url, dial, post):
    client = dial(url)
    client.send(post(b'{"model": "m", "messages": []}'))
    return client.read_whole()[0].startswith("HTTP/1.1 200 ")


PIECE = b"x" * MIB


def test_a_body_that_is_announced_too_large_is_refused_before_it_comes(dial, post):
    with server() as (measured, url):
        client = dial(url)
        client.send(post(b"")[:-4].replace(b"content-length: 0", b"content-length: 200000000") + b"\r\n\r\n")
        head, body = client.read_whole()
        assert head.startswith("HTTP/1.1 413 ")
        assert "67108864 bytes" in body["error"]["message"]
        stream(client, measured, PIECE, 200)
        assert measured.grown() < 16 * MIB
        assert serves_on(url, dial, post)


def test_a_body_that_turns_out_too_large_costs_what_is_allowed_and_no_more(dial, post):
    """In chunks, so that nobody knows how much will come."""
    with server("--max-body", str(8 * MIB)) as (measured, url):
        client = dial(url)
        client.send(post(b"").replace(b"content-length: 0", b"transfer-encoding: chunked"))
        stream(client, measured, b"%x\r\n%b\r\n" % (MIB, PIECE), 9)
        assert client.read_whole()[0].startswith("HTTP/1.1 413 ")
        stream(client, measured, b"%x\r\n%b\r\n" % (MIB, PIECE), 191)
        assert measured.grown() < 32 * MIB
        assert serves_on(url, dial, post)


def test_many_large_bodies_do_not_pile_up_in_the_journal(dial, post):
    with server("--journal-bytes", str(8 * MIB)) as (measured, url):
        client = dial(url)
        for _ in range(50):
            client.send(post(b'{"model": "m", "messages": []}' + b" " * 2 * MIB))
            assert client.read_whole()[0].startswith("HTTP/1.1 200 ")
            measured.grown()
        assert measured.grown() < 48 * MIB


def test_an_answer_of_a_hundred_megabytes_that_nobody_reads_stays_unsaid(dial, post):
    """And comes whole to whoever reads it later."""
    with child("-c", FLOOD) as process:
        url = process.stdout.readline().strip()
        measured, client = Child(process), dial(url, receive_buffer=65536)
        client.send(post(b'{"model": "flood"}'))
        other = dial(url)
        for _ in range(50):
            other.send(post())
            other.read_until(b"0\r\n\r\n")
            measured.grown()
        assert measured.grown() < 16 * MIB
        got = 0
        while got < 1600 * 65536:
            piece = client.socket.recv(MIB)
            assert piece
            got += len(piece)
        assert measured.grown() < 16 * MIB


def test_a_journal_of_few_requests_stays_small(dial, post):
    with server("--journal-limit", "50") as (measured, url):
        client = dial(url)
        for _ in range(400):
            client.send(post(b'{"model": "m", "messages": []}' + b" " * (MIB // 8)))
            assert client.read_whole()[0].startswith("HTTP/1.1 200 ")
            measured.grown()
        assert measured.grown() < 24 * MIB
