"""How actions become writes: what is drawn when, and what a connection does when told to wait. On no network."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from llm_dialects import DIALECTS, Body, Head, Pause, Reset, Stall
from llm_mock_server.connection import MAX_PENDING, TURN, Connection
from llm_mock_server.journal import CapturedRequest, Journal
from llm_mock_server.server import MockServer, Responder

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
ONE = b"3\r\none\r\n"
LAST = b"0\r\n\r\n"


@pytest.fixture
def play(transport):
    """Play a scene of callbacks against a server that answers with ``responder``; return the server."""

    def run(responder: Responder, scene: Callable[[Connection], Awaitable[None]]) -> MockServer:
        async def play_scene() -> MockServer:
            server = MockServer(responder, Journal(), api_key=None, max_body=1000, dialects=DIALECTS)
            connection = Connection(server)
            connection.connection_made(transport)
            await scene(connection)
            transport.closed = True
            connection.connection_lost(None)
            await asyncio.gather(*server.tasks, return_exceptions=True)
            return server

        return asyncio.run(play_scene())

    return run


@pytest.fixture
def asked(play, post):
    """Ask once, and let whatever was scheduled happen; return the journal's one entry."""

    def run(responder: Responder) -> CapturedRequest:
        async def ask(connection: Connection) -> None:
            connection.data_received(post())
            for _ in range(10):
                await asyncio.sleep(0)

        (captured,) = play(responder, ask).requests
        return captured

    return run


async def in_time(*actions):
    for action in actions:
        yield action


async def later(value):
    return value


FORMS = {
    "a list": lambda *actions: list(actions),
    "an iterator": lambda *actions: iter(actions),
    "an asynchronous iterator": in_time,
    "an awaitable list": lambda *actions: later(list(actions)),
    "an awaitable asynchronous iterator": lambda *actions: later(in_time(*actions)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_body_is_one_write_of_its_own(asked, transport, form):
    captured = asked(lambda http: FORMS[form](Head(200), Body(b"one"), Body(b""), Body(b"two")))
    assert transport.written == [HEAD, ONE, b"3\r\ntwo\r\n", LAST]
    sent = len(b"".join(transport.written))
    assert (captured.outcome, captured.status, captured.bytes_sent) == ("completed", 200, sent)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("actions", "written", "outcome"),
    [
        ((Head(200), Body(b"one"), Stall(), Body(b"never")), [HEAD, ONE], "stalled"),
        ((Head(200), Body(b"one"), Reset("rst"), Body(b"never")), [HEAD, ONE, b"<abort>"], "reset"),
        ((Head(200), Body(b"one"), Reset("fin"), Body(b"never")), [HEAD, ONE, b"<eof>"], "reset"),
        ((Reset("rst"),), [b"<abort>"], "reset"),
        ((Stall(),), [], "stalled"),
        ((Head(200), Pause(3600), Body(b"never")), [HEAD], "client_closed"),
        ((Head(200), Pause(0), Body(b"one")), [HEAD, ONE, LAST], "completed"),
    ],
)
def test_what_ends_an_answer(asked, transport, form, actions, written, outcome):
    captured = asked(lambda http: FORMS[form](*actions))
    assert transport.written == written
    assert (captured.outcome, captured.error) == (outcome, None)


BROKEN = {
    "no Head": lambda http: [],
    "a Body before the Head": lambda http: [Body(b"x")],
    "no actions": lambda http: ["x"],
    "nothing": lambda http: None,
    "an exception": lambda http: {}["x"],
    "a header with a line break": lambda http: [Head(200, (("a", "b\nc"),))],
    "an exception when awaited": lambda http: later(None),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_responder_that_fails_before_the_head_is_a_500(asked, transport, name):
    captured = asked(BROKEN[name])
    (written,) = transport.written
    head, _, body = written.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert captured.error is not None
    assert json.loads(body)["error"]["message"] == f"{type(captured.error).__name__}: {captured.error}"
    assert (captured.outcome, captured.status) == ("failed", 500)


def raising(*actions):
    yield from actions
    raise RuntimeError("broken")


@pytest.mark.parametrize(
    "responder",
    [lambda http: raising(Head(200), Body(b"one")), lambda http: [Head(200), Body(b"one"), Head(200)]],
    ids=["an exception", "a second Head"],
)
def test_a_responder_that_fails_in_the_middle_drops_the_connection(asked, transport, responder):
    captured = asked(responder)
    assert transport.written == [HEAD, ONE, b"<abort>"]
    assert captured.outcome == "failed"
    assert captured.error is not None


def test_nothing_is_drawn_while_the_kernel_is_full(play, post, transport):
    drawn = []

    def reply(http):
        for action in (Head(200), Body(b"one"), Body(b"two")):
            drawn.append(action)
            yield action

    async def scene(connection):
        connection.pause_writing()
        connection.data_received(post())
        assert drawn == []
        connection.resume_writing()
        assert len(drawn) == 3

    play(reply, scene)


def test_the_next_action_waits_for_the_last_one_to_leave(play, post, transport):
    """Every write fills the kernel; each time it has room again exactly one more action is drawn."""

    async def scene(connection):
        transport.filled = connection.pause_writing
        connection.data_received(post())
        for count in range(1, 5):
            assert len(transport.written) == count
            assert server_requests(connection)[0].outcome is None
            connection.resume_writing()
        assert server_requests(connection)[0].outcome == "completed"

    def server_requests(connection):
        return connection._host.requests

    play(lambda http: [Head(200), Body(b"one"), Body(b"two")], scene)


def test_an_asynchronous_answer_waits_for_room_too(play, post, transport):
    async def scene(connection):
        transport.filled = connection.pause_writing
        connection.data_received(post())
        for count in range(1, 4):
            for _ in range(10):
                await asyncio.sleep(0)
            assert len(transport.written) == count
            connection.resume_writing()

    play(lambda http: in_time(Head(200), Body(b"one")), scene)


def test_a_long_answer_gives_way_to_others(play, post, transport):
    async def scene(connection):
        connection.data_received(post())
        assert len(transport.written) == TURN - 1
        await asyncio.sleep(0)
        assert len(transport.written) == 2 * TURN - 1

    play(lambda http: [Head(200), *[Body(b"x")] * 1000], scene)


def test_an_asynchronous_answer_that_never_waits_gives_way_too(play, post, transport):
    async def scene(connection):
        connection.data_received(post())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(transport.written) <= 3

    play(lambda http: in_time(Head(200), *[Body(b"x")] * 1000), scene)


def test_what_a_client_says_after_a_fin_is_thrown_away(play, post, transport):
    async def scene(connection):
        connection.data_received(post())
        connection.data_received(post())

    server = play(lambda http: [Head(200), Reset("fin")], scene)
    assert transport.written == [HEAD, b"<eof>"]
    assert len(server.requests) == 1


def test_a_closed_connection_is_not_listened_to_for_ever(play, post, transport, monkeypatch):
    monkeypatch.setattr("llm_mock_server.connection.LINGER_SECONDS", 0)

    async def scene(connection):
        connection.data_received(post())
        async with asyncio.timeout(20):
            while not transport.closed:
                await asyncio.sleep(0)

    play(lambda http: [Head(200), Reset("fin")], scene)
    assert transport.written == [HEAD, b"<eof>", b"<abort>"]


def test_a_client_that_asks_too_much_in_advance_is_not_read(play, post, transport):
    async def scene(connection):
        connection.pause_writing()
        connection.data_received(post() * (MAX_PENDING + 1))
        assert transport.written == [b"<pause reading>"]
        connection.resume_writing()
        for _ in range(10):
            await asyncio.sleep(0)
        assert transport.reading

    server = play(lambda http: [Head(204)], scene)
    assert [captured.outcome for captured in server.requests] == ["completed"] * (MAX_PENDING + 1)


def test_a_client_that_says_too_much_in_advance_is_not_read_either(play, post, transport):
    """A few large bodies weigh as many small ones; the server of these scenes takes 1000 bytes."""

    async def scene(connection):
        connection.pause_writing()
        connection.data_received(post(b"{" + b" " * 898 + b"}"))
        assert transport.written == []
        connection.data_received(post(b"{" + b" " * 898 + b"}"))
        assert transport.written == [b"<pause reading>"]
        connection.resume_writing()
        for _ in range(10):
            await asyncio.sleep(0)
        assert transport.reading

    server = play(lambda http: [Head(204)], scene)
    assert [captured.outcome for captured in server.requests] == ["completed"] * 2


def test_a_reply_is_closed_when_the_client_goes(play, post):
    seen = []

    def reply(http):
        try:
            yield Head(200)
            yield Pause(3600)
        except GeneratorExit:
            seen.append("closed")
            raise

    async def scene(connection):
        connection.data_received(post())

    (captured,) = play(reply, scene).requests
    assert (seen, captured.outcome) == (["closed"], "client_closed")


def test_an_asynchronous_reply_is_cancelled_when_the_client_goes(play, post):
    seen = []

    async def reply(http):
        try:
            yield Head(200)
            await asyncio.Event().wait()
        finally:
            seen.append("cancelled")

    async def scene(connection):
        connection.data_received(post())
        for _ in range(10):
            await asyncio.sleep(0)

    (captured,) = play(reply, scene).requests
    assert (seen, captured.outcome) == (["cancelled"], "client_closed")


def test_an_answer_that_is_never_awaited_is_closed(play, post):
    async def scene(connection):
        connection.data_received(post())

    (captured,) = play(lambda http: later([Head(200)]), scene).requests
    assert captured.outcome == "client_closed"


def test_what_a_reply_raises_when_it_is_closed_is_kept(play, post):
    def reply(http):
        try:
            yield Head(200)
            yield Stall()
        finally:
            raise RuntimeError("broken")

    async def scene(connection):
        connection.data_received(post())

    server = play(reply, scene)
    assert [str(failure) for failure in server.failures] == ["broken"]
    assert server.requests[0].outcome == "stalled"


@pytest.mark.parametrize(
    ("length", "after"),
    [(3, []), (4, [b"<eof>"]), (2, [b"<eof>"])],
    ids=["kept", "too short", "too long"],
)
def test_a_body_that_breaks_its_length_ends_the_connection(asked, transport, length, after):
    captured = asked(lambda http: [known(length), Body(b"one")])
    assert transport.written == [KNOWN % length + b"one", *after]
    assert captured.outcome == "completed"


def known(length):
    return Head(200, (("Content-Length", str(length)),))


KNOWN = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


@pytest.mark.parametrize(
    ("actions", "written"),
    [
        ((known(6), Body(b"one"), Body(b"two")), [KNOWN % 6 + b"one", b"two"]),
        ((known(0),), [KNOWN % 0]),
        ((known(3), Stall()), [KNOWN % 3]),
        ((known(3), Pause(0), Body(b"one")), [KNOWN % 3, b"one"]),
        ((known(3), Reset("rst")), [KNOWN % 3, b"<abort>"]),
    ],
)
def test_a_head_of_known_length_waits_for_nothing_but_the_body(asked, transport, actions, written):
    asked(lambda http: list(actions))
    assert transport.written == written


def test_a_head_waits_for_nothing_where_the_body_is_still_to_come_from_elsewhere(asked, transport):
    async def reply(http):
        yield known(3)
        await asyncio.Event().wait()

    asked(reply)
    assert transport.written == [KNOWN % 3]


def test_a_body_that_was_cut_short_is_journalled(play, post):
    async def scene(connection):
        connection.data_received(post()[:-10])

    server = play(lambda http: [Head(200)], scene)
    (captured,) = server.requests
    assert (captured.kind, captured.call, captured.outcome) == ("rejected", None, "client_closed")
    assert captured.body == post().partition(b"\r\n\r\n")[2][:-10]
    assert server.in_flight == 0
