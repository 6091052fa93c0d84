"""The server on real sockets, asked by a client that says exactly what a test wants said."""

import asyncio
import contextlib
import gc
import json
import random
import socket
import threading

import pytest
from llm_dialects import Body, DialectError, Head, Pause, ProviderError, Reset, Stall
from llm_mock_server.answer import Unanswerable
from llm_mock_server.connection import LINGER_ZERO
from llm_mock_server.listener import url_of
from llm_mock_server.server import serve
from llm_mock_server.threaded import serve_in_thread

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
ONE = b"3\r\none\r\n"
TWO = b"3\r\ntwo\r\n"
LAST = b"0\r\n\r\n"
CHAT = "/v1/chat/completions"


def one_two(http):
    return [Head(200), Body(b"one"), Body(b"two")]


def outcomes(server):
    return [captured.outcome for captured in server.requests]


def test_a_body_is_on_the_wire_before_the_next_is_drawn(dial, post):
    """In lockstep: the client reads each body whole before the reply may go on."""
    loops, go_on = [], asyncio.Event()

    async def reply(http):
        loops.append(asyncio.get_running_loop())
        yield Head(200)
        for _ in range(20):
            yield Body(b"one")
            await go_on.wait()
            go_on.clear()

    with serve_in_thread(reply) as server:
        client = dial(server.url)
        client.send(post())
        client.expect(HEAD)
        for _ in range(20):
            assert client.socket.recv(1000) == ONE
            loops[0].call_soon_threadsafe(go_on.set)
        client.expect(LAST)


def test_a_reset_is_a_reset(dial, post):
    with serve_in_thread(lambda http: [Head(200), Body(b"one"), Reset("rst")]) as server:
        client = dial(server.url)
        client.send(post())
        client.expect(HEAD + ONE)
        with pytest.raises(ConnectionResetError):
            client.socket.recv(1000)
        server.wait(lambda: outcomes(server) == ["reset"])


def test_a_reset_before_the_head(dial, post):
    with serve_in_thread(lambda http: [Reset("rst")]) as server:
        client = dial(server.url)
        client.send(post())
        with pytest.raises(ConnectionResetError):
            client.socket.recv(1000)


def test_a_fin_ends_the_stream_without_its_terminator(dial, post):
    with serve_in_thread(lambda http: [Head(200), Body(b"one"), Reset("fin")]) as server:
        client = dial(server.url)
        client.send(post())
        client.expect(HEAD + ONE)
        client.expect_end()
        server.wait(lambda: outcomes(server) == ["reset"])


def test_a_fin_is_none_the_less_one_when_the_client_has_more_to_say(dial, post):
    """Closing on unread bytes would send a reset."""
    with serve_in_thread(lambda http: [Head(200), Body(b"one"), Reset("fin")]) as server:
        client = dial(server.url)
        client.send(post() + post() * 200)
        client.expect(HEAD + ONE)
        client.expect_end()
        server.wait(lambda: outcomes(server) == ["reset"])


def test_a_stall_ends_when_the_client_goes(dial, post):
    with serve_in_thread(lambda http: [Head(200), Body(b"one"), Stall()]) as server:
        client = dial(server.url)
        client.send(post())
        client.expect(HEAD + ONE)
        assert server.in_flight == 1
        client.close()
        server.wait(lambda: outcomes(server) == ["stalled"])
        assert server.in_flight == 0


def test_a_responder_may_say_itself_why_it_has_no_answer(dial, post):
    def refuse(http):
        raise Unanswerable(ProviderError("MOCK_X", "why\nmend: so", 500))

    with serve_in_thread(refuse) as server:
        client = dial(server.url)
        client.send(post())
        head, body = client.read_whole()
        assert head.startswith("HTTP/1.1 500 ")
        assert (body["error"]["code"], body["error"]["message"]) == ("MOCK_X", "why\nmend: so")
        assert [str(failure) for failure in server.failures] == ["why\nmend: so"]
        server.wait(lambda: outcomes(server) == ["failed"])


def test_closing_frees_whoever_is_stalled_and_is_done_twice_as_well_as_once(post):
    async def scene():
        async with serve(lambda http: [Head(200), Stall()]) as server:
            reader, writer = await asyncio.open_connection(*server.url.removeprefix("http://").split(":"))
            writer.write(post())
            assert await reader.readexactly(len(HEAD)) == HEAD
            await server.aclose()
            assert await reader.read() == b""
            writer.close()
            await server.aclose()
            assert outcomes(server) == ["stalled"]
            assert server.in_flight == 0

    asyncio.run(scene())


def test_closing_in_the_middle_says_who_closed(dial, post):
    with serve_in_thread(lambda http: [Head(200), Pause(3600)]) as server:
        client = dial(server.url)
        client.send(post())
        client.expect(HEAD)
    assert outcomes(server) == ["server_closed"]
    client.expect_end()


def test_a_connection_is_kept_and_used_again(dial, post):
    with serve_in_thread(one_two) as server:
        client = dial(server.url)
        for _ in range(3):
            client.send(post())
            client.expect(HEAD + ONE + TWO + LAST)
        server.wait(lambda: outcomes(server) == ["completed"] * 3)


def test_requests_in_advance_are_answered_in_order(dial, post):
    def reply(http):
        return [Head(200), Pause(0), Body(b"%03d" % http.number)]

    with serve_in_thread(reply) as server:
        client = dial(server.url)
        client.send(post() * 200)
        for number in range(200):
            client.expect(HEAD + b"3\r\n%03d\r\n" % number + LAST)
        server.wait(lambda: outcomes(server) == ["completed"] * 200)


def test_an_old_client_reads_to_the_end(dial, post):
    with serve_in_thread(one_two) as server:
        client = dial(server.url)
        client.send(post().replace(b"HTTP/1.1", b"HTTP/1.0"))
        client.expect(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nonetwo")
        client.expect_end()


def test_a_client_that_wants_to_close_is_closed(dial, post):
    with serve_in_thread(one_two) as server:
        client = dial(server.url)
        client.send(post(headers=("connection: close",)))
        client.expect(HEAD.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n") + ONE + TWO + LAST)
        client.expect_end()


def test_a_client_that_waits_for_a_sign_gets_it(dial, post):
    with serve_in_thread(one_two) as server:
        client = dial(server.url)
        request = post(headers=("expect: 100-continue",))
        head, body = request[: request.index(b"{")], request[request.index(b"{") :]
        client.send(post() + head)
        client.expect(HEAD + ONE + TWO + LAST + b"HTTP/1.1 100 Continue\r\n\r\n")
        client.send(body)
        client.expect(HEAD + ONE + TWO + LAST)


def test_a_client_that_never_reads_costs_one_body_at_a_time(dial, post):
    """The kernel's buffers take some; were nothing held back, every turn of the loop would draw four more MiB."""
    drawn = [0]
    closed = threading.Event()

    def flood(http):
        try:
            yield Head(200)
            while True:
                drawn[0] += 1
                yield Body(bytes(64 * 1024))
        finally:
            closed.set()

    def reply(http):
        return flood(http) if http.json["model"] == "flood" else one_two(http)

    with serve_in_thread(reply) as server:
        deaf = dial(server.url, receive_buffer=4096)
        deaf.send(post(b'{"model": "flood"}'))
        deaf.expect(HEAD)
        other = dial(server.url)
        for _ in range(100):
            other.send(post())
            other.expect(HEAD + ONE + TWO + LAST)
        assert drawn[0] < 500
        deaf.close()
        server.wait(lambda: server.requests[0].outcome == "client_closed")
        assert closed.is_set()


def test_a_client_that_ends_its_stream_without_reading_is_gone(dial, post):
    """Else what it never reads would keep the connection for ever."""

    def flood(http):
        yield Head(200)
        while True:
            yield Body(bytes(64 * 1024))

    with serve_in_thread(flood) as server:
        client = dial(server.url, receive_buffer=4096)
        client.send(post())
        client.expect(HEAD)
        client.socket.shutdown(socket.SHUT_WR)
        server.wait(lambda: outcomes(server) == ["client_closed"])


def test_a_reply_is_closed_when_the_client_goes_in_the_middle(dial, post):
    closed = threading.Event()

    def reply(http):
        try:
            yield Head(200)
            yield Pause(3600)
        finally:
            closed.set()

    with serve_in_thread(reply) as server:
        client = dial(server.url)
        client.send(post())
        client.expect(HEAD)
        client.close()
        server.wait(lambda: outcomes(server) == ["client_closed"])
        assert closed.is_set()


def test_on_change_is_called_at_the_beginning_and_the_end_and_cannot_disturb(dial, post):
    seen = []

    def watch():
        seen.append(True)
        raise RuntimeError("curious")

    with serve_in_thread(one_two, on_change=watch) as server:
        client = dial(server.url)
        client.send(post())
        client.expect(HEAD + ONE + TWO + LAST)
    assert len(seen) == 2
    assert [str(failure) for failure in server.failures] == ["curious"] * 2


def test_only_the_newest_entries_are_kept(dial, post):
    with serve_in_thread(one_two, keep=2) as server:
        client = dial(server.url)
        for _ in range(4):
            client.send(post())
            client.expect(HEAD + ONE + TWO + LAST)
        assert [captured.number for captured in server.requests] == [2, 3]
        assert server.dropped == 2


def test_many_clients_at_once(dial, post):
    with serve_in_thread(one_two) as server:
        clients = [dial(server.url) for _ in range(200)]
        for client in clients:
            client.send(post())
        for client in clients:
            client.expect(HEAD + ONE + TWO + LAST)
        server.wait(lambda: outcomes(server) == ["completed"] * 200)


def test_clients_that_leave_at_any_moment_leave_nothing_behind(dial, post):
    """Each says a part of a request, or a whole one and a part of the next, and goes, half of them with a reset."""
    chance = random.Random(1)

    def reply(http):
        yield Head(200)
        for _ in range(chance.randrange(5)):
            yield Body(b"one")
            yield Pause(0)
        if chance.random() < 0.3:
            yield chance.choice([Stall(), Reset("rst"), Reset("fin"), Pause(3600)])

    whole = post() + post(headers=("transfer-encoding: chunked",)).replace(b"content-length", b"x-length") + post(b"{")
    with serve_in_thread(reply) as server:
        for _ in range(300):
            client = dial(server.url)
            with contextlib.suppress(ConnectionError):
                client.send(whole[: chance.randrange(len(whole))])
                if chance.random() < 0.5:
                    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ZERO)
            client.close()
        server.wait(lambda: len(server.requests) > 100 and server.in_flight == 0 and all(outcomes(server)))
    assert server.failures == ()
    assert None not in outcomes(server)


def test_closing_while_clients_come_leaves_no_socket_open(dial, post):
    """An open one would be a ResourceWarning, and that an error."""
    with serve_in_thread(lambda http: [Head(200), Stall()]) as server:
        for _ in range(100):
            dial(server.url).send(post())
    gc.collect()
    assert server.in_flight == 0


def test_base_urls():
    with serve_in_thread(one_two) as server:
        assert server.base_url("openai-chat") == server.url + "/v1"
        assert server.url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (("127.0.0.1", 1), "http://127.0.0.1:1"),
        (("0.0.0.0", 1), "http://127.0.0.1:1"),
        (("::1", 1, 0, 0), "http://[::1]:1"),
        (("::", 1, 0, 0), "http://[::1]:1"),
    ],
)
def test_url_of(address, url):
    assert url_of(address) == url


def test_an_address_in_use_is_an_error():
    with (
        serve_in_thread(one_two) as server,
        pytest.raises(OSError, match=r"(?i)address"),
        serve_in_thread(one_two, port=int(server.url.rpartition(":")[2])),
    ):
        pass


def test_waiting_has_an_end():
    with serve_in_thread(one_two) as server, pytest.raises(TimeoutError, match="the last of 0 requests"):
        server.wait(lambda: False, timeout=0)


def test_the_event_of_a_wait_in_the_loop(post):
    async def scene():
        async with serve(one_two) as server:
            waiting = asyncio.create_task(server.wait(lambda: outcomes(server) == ["completed"]))
            reader, writer = await asyncio.open_connection(*server.url.removeprefix("http://").split(":"))
            writer.write(post())
            await waiting
            assert await reader.readexactly(len(HEAD)) == HEAD
            writer.close()

    asyncio.run(scene())


def test_the_journals_printed_forms_hide_keys(dial, post):
    secret = "sk-very-secret"
    with serve_in_thread(one_two) as server:
        client = dial(server.url)
        keys = tuple(f"{name}: {secret}" for name in ("authorization", "x-api-key", "x-goog-api-key", "cookie"))
        client.send(post(path=CHAT + f"?key={secret}&a=b", headers=keys))
        client.expect(HEAD + ONE + TWO + LAST)
        (captured,) = server.requests
    assert ("x-api-key", secret) in captured.headers
    assert secret not in repr(captured)
    assert secret not in json.dumps(captured.to_json())
    assert captured.to_json()["query"] == "key=***&a=b"


@pytest.mark.parametrize("kind", [RuntimeError, DialectError])
def test_what_a_responder_raises_is_told_without_the_secrets_of_its_request(dial, post, kind):
    def leak(http):
        raise kind(f"cannot answer {http.headers} {http.query}")

    with serve_in_thread(leak) as server:
        client = dial(server.url)
        client.send(post(path="/v1/chat/completions?token=sk-in-query", headers=("authorization: Bearer sk-secret",)))
        said = json.dumps(client.read_whole()[1])
        assert "cannot answer" in said
        (entry,) = server.requests
        shown = f"{said} {entry!r} {entry.to_json()} {server.failures!r} {entry.error}"
        assert "sk-secret" not in shown
        assert "sk-in-query" not in shown
        assert ("authorization", "Bearer sk-secret") in entry.headers
