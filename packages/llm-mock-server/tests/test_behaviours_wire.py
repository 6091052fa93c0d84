"""What bytes of a behaviour reach a client."""

import json
import zlib

import pytest
from llm_mock_server import ScriptedProvider, script_from_json, serve_in_thread

OPTIONS = {
    "successText": "said and done",
    "partialText": "to be cut",
    "chunkSize": 5,
    "chunkDelayMs": 0,
    "disconnectDelayMs": 100,  # the client reads what was said before the reset arrives
    "headersDelayMs": 0,
}
WHOLE = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()


@pytest.fixture
def served(dial):
    """Serve the behaviours of these names; a client and the server."""
    servers = []

    def start(*names, **options):
        script = script_from_json({"entries": list(names), "options": OPTIONS | options}, "test")
        serving = serve_in_thread(ScriptedProvider(script))
        servers.append((serving, serving.__enter__()))
        return dial(servers[-1][1].url), servers[-1][1]

    yield start
    for serving, _ in servers:
        serving.__exit__(None, None, None)


def read_chunk(client):
    """One chunk of a chunked body; its terminator is the empty one."""
    size = int(client.read_until(b"\r\n"), 16)
    data = b""
    while len(data) < size:
        data += client.socket.recv(size - len(data))
    client.expect(b"\r\n")
    return data


def read_chunks(client):
    return list(iter(lambda: read_chunk(client), b""))


def text_of(events):
    values = [json.loads(event.partition(b"data: ")[2]) for event in events if b"[DONE]" not in event]
    return "".join(choice["delta"].get("content") or "" for value in values for choice in value["choices"])


def expect_reset(client):
    with pytest.raises(ConnectionResetError):
        client.socket.recv(1)


def ended(server, count=1):
    """The outcomes of the journal, once there are ``count``."""
    server.wait(lambda: sum(each.outcome is not None for each in server.requests) >= count, timeout=20)
    return [each.outcome for each in server.requests]


def length_in(head):
    return int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])


@pytest.mark.parametrize("body", [None, WHOLE])
def test_a_connection_is_reset_before_a_byte(served, post, body):
    client, server = served("connection_reset")
    client.send(post(body))
    expect_reset(client)
    assert ended(server) == ["reset"]


def test_a_stream_is_reset_after_its_head(served, post):
    client, _ = served("stream_disconnect")
    client.send(post())
    head = client.read_head()
    assert head.startswith("HTTP/1.1 200 ")
    assert "transfer-encoding: chunked" in head.lower()
    expect_reset(client)


def test_a_stream_is_reset_in_the_middle(served, post):
    client, server = served("partial_disconnect")
    client.send(post())
    client.read_head()
    assert text_of([read_chunk(client) for _ in range(3)]) == "to be cut"
    expect_reset(client)
    assert ended(server) == ["reset"]


def test_a_message_is_reset_in_the_middle(served, post):
    client, _ = served("partial_disconnect")
    client.send(post(WHOLE))
    length = length_in(client.read_head())
    got = b""
    while len(got) < length // 2:
        got += client.socket.recv(length)
    assert len(got) == length // 2
    expect_reset(client)


def test_a_partial_stream_ends_properly_and_its_connection_goes_on(served, post):
    client, server = served("partial_eof", "success")
    client.send(post())
    client.read_head()
    events = read_chunks(client)
    assert text_of(events) == "to be cut"
    assert b"[DONE]" not in b"".join(events)
    client.send(post())
    client.read_head()
    events = read_chunks(client)
    assert (text_of(events), events[-1]) == ("said and done", b"data: [DONE]\n\n")
    assert ended(server, 2) == ["completed", "completed"]


def test_half_a_message_is_a_complete_response(served, post):
    client, _ = served("partial_eof", "success")
    client.send(post(WHOLE))
    length = length_in(client.read_head())
    half = b""
    while len(half) < length:
        half += client.socket.recv(length - len(half))
    with pytest.raises(json.JSONDecodeError):
        json.loads(half)
    client.send(post(WHOLE))
    assert client.read_whole()[1]["choices"][0]["message"]["content"] == "said and done"


@pytest.mark.parametrize("body", [None, WHOLE])
def test_a_stalled_call_has_its_head_and_ends_when_the_client_goes(served, post, body):
    client, server = served("stall")
    client.send(post(body))
    client.read_head()
    client.close()
    assert ended(server) == ["stalled"]


def test_nothing_is_a_body_of_nothing(served, post):
    client, _ = served("empty_body", "empty_body", "success")
    client.send(post())
    client.read_head()
    assert read_chunks(client) == []
    client.send(post(WHOLE))
    assert length_in(client.read_head()) == 0
    client.send(post(WHOLE))
    assert client.read_whole()[1]["object"] == "chat.completion"


def test_a_byte_a_write_is_a_byte_a_chunk(served, post):
    client, _ = served("trickle")
    client.send(post())
    client.read_head()
    pieces = read_chunks(client)
    assert {len(piece) for piece in pieces} == {1}
    events = b"".join(pieces).split(b"\n\n")[:-1]
    assert text_of(events).startswith("said and done")
    assert max(b"".join(pieces)) > 0x7F


def test_a_stream_is_compressed_event_by_event(served, post):
    client, _ = served("gzip", "gzip")
    client.send(post(headers=("accept-encoding: gzip, br",)))
    assert "content-encoding: gzip" in client.read_head().lower()
    unpack = zlib.decompressobj(wbits=31)
    events = [unpack.decompress(piece) for piece in read_chunks(client)]
    assert text_of([event for event in events if event]) == "said and done"
    assert unpack.eof
    client.send(post(headers=("accept-encoding: identity",)))
    assert "content-encoding" not in client.read_head().lower()
    assert text_of(read_chunks(client)) == "said and done"


def test_a_redirect_that_is_followed_takes_the_next_entry(served, post):
    client, server = served("redirect", "success")
    client.send(post(WHOLE))
    head = client.read_head()
    assert head.startswith("HTTP/1.1 307 ")
    location = head.partition("location: ")[2].partition("\r\n")[0]
    assert location.startswith("/v1/chat/completions?redirected=")
    client.send(post(WHOLE, path=location))
    assert client.read_whole()[1]["choices"][0]["message"]["content"] == "said and done"
    assert [each.status for each in server.requests] == [307, 200]


def test_a_limit_says_when_to_come_again(served, post):
    client, _ = served("rate_limit", retryAfterMs=1500, requestId="mine")
    client.send(post())
    head, body = client.read_whole()
    assert head.startswith("HTTP/1.1 429 ")
    for line in ("retry-after: 2", "retry-after-ms: 1500", "x-request-id: mine"):
        assert f"\r\n{line}\r\n" in head
    assert body["error"]["code"] == "rate_limit_exceeded"
