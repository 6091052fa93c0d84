"""Many clients, and slow ones: bounded cost, and close() frees them all. On real sockets."""

import socket
import threading

import pytest
from llm_dialects import Body, Head, Stall
from llm_mock_server.connection import MAX_HEAD
from llm_mock_server.threaded import serve_in_thread

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
CROWD = 1000


def one(http):
    return [Head(200), Body(b"one")]


def stall(http):
    return [Head(200), Stall()]


@pytest.fixture
def crowd():
    """How many clients there can be, each of which takes two descriptors here."""
    try:
        import resource
    except ImportError:  # on Windows, where the limit is far away
        return CROWD
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * CROWD + 200
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return CROWD if soft == resource.RLIM_INFINITY else min(CROWD, (soft - 200) // 2)


def gone(client):
    """Whether the server has ended the connection, gently or not."""
    try:
        while client.socket.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def test_a_thousand_stalled_clients_are_freed_at_once(dial, post, crowd):
    with serve_in_thread(stall) as server:
        clients = [dial(server.url) for _ in range(crowd)]
        for client in clients:
            client.send(post())
        server.wait(lambda: server.in_flight == crowd, 20)
    assert all(gone(client) for client in clients)
    assert [captured.outcome for captured in server.requests] == ["stalled"] * crowd
    assert server.in_flight == 0


@pytest.mark.parametrize("said", [b"", b"P", b"POST /v1/chat/comp", b"POST / HTTP/1.1\r\na: b\r\n"])
def test_clients_that_never_finish_a_head_keep_nobody_waiting(dial, post, said):
    with serve_in_thread(one) as server:
        slow = [dial(server.url) for _ in range(100)]
        for client in slow:
            client.send(said)
        client = dial(server.url)
        for _ in range(10):
            client.send(post())
            client.expect(HEAD + b"3\r\none\r\n0\r\n\r\n")
    assert all(gone(client) for client in slow)
    assert {captured.kind for captured in server.requests} == {"call"}


def test_a_head_may_come_byte_by_byte_and_may_not_go_on_for_ever(dial, post):
    with serve_in_thread(one) as server:
        client = dial(server.url)
        for byte in post():
            client.send(bytes((byte,)))
        client.expect(HEAD + b"3\r\none\r\n0\r\n\r\n")
        client.send(b"POST / HTTP/1.1\r\n")
        for number in range(MAX_HEAD // 1000 + 1):
            client.send(b"x-%06d: " % number + b"y" * 1000 + b"\r\n")
        assert client.read_whole()[0].startswith("HTTP/1.1 431 ")


def test_requests_in_advance_are_answered_in_order_to_whoever_reads_late(dial, post):
    """Both directions fill up: the server stops reading, the client's kernel stops taking."""
    count = 5000
    with serve_in_thread(lambda http: [Head(200), Body(b"%05d" % http.number)]) as server:
        client = dial(server.url, receive_buffer=4096)
        sending = threading.Thread(target=client.send, args=(post() * count,))
        sending.start()
        expected = b"".join(HEAD + b"5\r\n%05d\r\n0\r\n\r\n" % number for number in range(count))
        got = bytearray()
        while len(got) < len(expected):
            got += client.socket.recv(65536)
        sending.join()
        assert bytes(got) == expected
        server.wait(lambda: server.ended == count)


def test_a_client_that_goes_while_others_stall_is_forgotten(dial, post):
    with serve_in_thread(stall) as server:
        clients = [dial(server.url) for _ in range(20)]
        for client in clients:
            client.send(post())
            client.expect(HEAD)
        for client in clients[::2]:
            client.socket.shutdown(socket.SHUT_RDWR)
            client.close()
        server.wait(lambda: server.in_flight == 10)
        assert len(server._server._connections) == 10
