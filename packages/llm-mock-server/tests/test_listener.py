"""Ports that are held before they listen, and who may reach them."""

import asyncio
import socket
import sys
import warnings

import pytest
from llm_dialects import Body, Head, Reset, Stall
from llm_mock_server.listener import RemoteWarning, bind_all, is_loopback
from llm_mock_server.server import serve
from llm_mock_server.threaded import serve_in_thread

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def one(http):
    return [Head(200), Body(b"one")]


def port_of(server):
    return int(server.url.rpartition(":")[2])


def test_a_port_that_does_not_listen_yet_refuses_and_then_lets_in(dial, post):
    with serve_in_thread(one, listen=False) as server:
        for _ in range(3):
            with pytest.raises(ConnectionRefusedError):
                dial(server.url)
        server.start_listening()
        server.start_listening()
        client = dial(server.url)
        client.send(post())
        client.expect(HEAD + b"3\r\none\r\n")


def test_every_write_leaves_at_once_on_a_connection_that_is_kept_too(dial, post):
    """Small writes that wait for an acknowledgement (Nagle) are lost with a reset."""

    def cut_off(http):
        return [Head(200), *(Body(b"part") for _ in range(3)), Reset("rst")] if http.number else one(http)

    with serve_in_thread(cut_off) as server:
        client = dial(server.url)
        client.send(post())
        client.expect(HEAD + b"3\r\none\r\n0\r\n\r\n")
        client.send(post())
        client.expect(HEAD + b"4\r\npart\r\n" * 3)


def test_a_port_that_does_not_listen_yet_is_held():
    """Also against a socket that would share it."""
    with serve_in_thread(one, listen=False) as server, socket.socket() as rival:
        if sys.platform != "win32":  # where it means to take it by force
            rival.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match=r"(?i)use|permission|socket"):
            rival.bind(("127.0.0.1", port_of(server)))


def test_closing_before_listening_frees_the_port():
    with serve_in_thread(one, listen=False) as server:
        pass
    with serve_in_thread(one, port=port_of(server)):
        pass


def test_a_port_is_free_again_although_its_last_connections_linger(dial, post):
    """The side that closes first keeps its end in TIME_WAIT; here that is the server."""
    with serve_in_thread(lambda http: [Head(200), Stall()]) as server:
        client = dial(server.url)
        client.send(post())
        client.expect(HEAD)
    client.expect_end()
    client.close()
    with serve_in_thread(one, port=port_of(server)) as again:
        assert again.url == server.url


def test_a_closed_server_does_not_listen_again():
    async def scene():
        async with serve(one, listen=False) as server:
            await server.aclose()
            with pytest.raises(OSError, match="closed"):
                await server.start_listening()

    asyncio.run(scene())


def test_another_host_than_this_one_must_be_allowed():
    for host in ("0.0.0.0", "", "::", "192.0.2.1"):
        with pytest.raises(ValueError, match="other machines") as raised, serve_in_thread(one, host=host):
            pass
        assert str(raised.value).splitlines()[-1].startswith("mend: ")


def test_another_host_is_warned_of():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with serve_in_thread(one, host="0.0.0.0", allow_remote=True) as server:
            assert server.url.startswith("http://127.0.0.1:")
    assert [warning.category for warning in caught] == [RemoteWarning]
    assert "0.0.0.0" in str(caught[0].message)


@pytest.mark.parametrize(
    ("address", "is_one"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("::", False), ("0.0.0.0", False), ("fe80::1%lo", False)],
)
def test_is_loopback(address, is_one):
    assert is_loopback((socket.AF_INET, (address, 0))) == is_one


def test_a_name_with_several_addresses_has_one_port():
    bound = bind_all([(socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_INET, ("127.0.0.2", 0))])
    try:
        assert len({at.getsockname()[1] for at in bound}) == 1
    finally:
        for at in bound:
            at.close()


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_is_a_number_of_sixteen_bits(port):
    with pytest.raises(ValueError, match="port"), serve_in_thread(one, port=port):
        pass


@pytest.mark.parametrize("address", ["::ffff:127.0.0.1", "localhost"])
def test_this_machine_by_its_other_names(address, dial, post):
    try:
        with serve_in_thread(one, host=address) as server:
            client = dial(server.url)
            client.send(post())
            client.expect(HEAD)
    except OSError as error:
        pytest.skip(f"this machine has no such address: {error}")


def test_a_port_that_is_taken_is_told_with_its_mend():
    with (
        serve_in_thread(one) as server,
        pytest.raises(OSError, match="cannot take") as caught,
        serve_in_thread(one, port=port_of(server)),
    ):
        pass
    assert str(caught.value).splitlines()[-1].startswith("mend: name a host of this machine and a port")
