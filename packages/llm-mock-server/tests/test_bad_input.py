"""Whatever a client sends: a clear error, and the next client is served. On real sockets."""

import contextlib
import dataclasses
import json
import random
import socket

import msgspec
import pytest
from llm_dialects import DIALECTS, Body, Head
from llm_mock_server.journal import depth_of
from llm_mock_server.provider import ScriptedProvider
from llm_mock_server.script import script_from_json
from llm_mock_server.threaded import serve_in_thread

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
    "gemini": "/v1beta/models/m:generateContent",
}
DEEP = b'{"model":"m","messages":' + b"[" * 600 + b"]" * 600 + b"}"

BODIES = {
    "nothing": b"",
    "not JSON": b'{"model": ',
    "no object": b"[]",
    "null": b"null",
    "invalid UTF-8": b'{"model": "\xff\xfe"}',
    "another encoding": '{"model": "m"}'.encode("utf-16"),
    "a mark before it": b"\xef\xbb\xbf{}",
    "two values": b"{}{}",
    "NaN": b'{"model": NaN}',
    "nested as deep as can be read": DEEP,
    "nested deeper than that": b'{"a":' * 100_000,
    "an empty object": b"{}",
    "members of wrong types": b'{"model": 1, "messages": 2, "input": {}, "contents": "x", "stream": "no"}',
    "lists of wrong things": b'{"model": "m", "messages": [1, null, {}], "input": [[]], "contents": [1]}',
    "half a surrogate pair": b'{"model": "\\ud800", "messages": [{"role": "user", "content": "\\ud800"}]}',
    "a number past all": b'{"model": "m", "messages": [], "max_tokens": 1e999}',
}


@pytest.fixture(scope="module")
def server():
    with serve_in_thread(ScriptedProvider(["success"])) as running:
        yield running


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
@pytest.mark.parametrize("name", BODIES)
def test_a_body_is_answered_whatever_it_is(server, dial, post, name, dialect):
    """By the answer or by an error in the dialect's words, and the connection lives on."""
    before = len(server.requests)
    client = dial(server.url)
    for _ in range(2):
        client.send(post(BODIES[name], PATHS[dialect]))
        head, body = client.read_whole()
        status = int(head.split()[1])
        assert status in (200, 400, 500)
        assert bool(body.get("error")) == (status != 200)
        assert "Traceback" not in json.dumps(body)
        if status == 500:  # the script has one entry only
            assert "MOCK_SCRIPT_EXHAUSTED" in json.dumps(body)
    server.wait(lambda: all(captured.outcome for captured in server.requests))
    assert [captured.body for captured in server.requests[before:]] == [BODIES[name]] * 2
    assert server.failures == ()


HEADS = {
    "no version": b"GET /nowhere\r\n\r\n",
    "another version": b"POST / HTTP/9.9\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: h\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
    "a negative length": b"POST / HTTP/1.1\r\nHost: h\r\ncontent-length: -1\r\n\r\n",
    "a length past all numbers": b"POST / HTTP/1.1\r\nHost: h\r\ncontent-length: " + b"9" * 400 + b"\r\n\r\n",
    "a length and chunks": b"POST / HTTP/1.1\r\nHost:\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n",
    "a chunk of no size": b"POST / HTTP/1.1\r\nHost: h\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
    "a chunk past all numbers": b"POST / HTTP/1.1\r\nHost:\r\ntransfer-encoding: chunked\r\n\r\n" + b"f" * 40 + b"\r\n",
    "a null in a header": b"GET / HTTP/1.1\r\nHost: h\r\na: \x00\r\n\r\n",
    "a folded header": b"GET / HTTP/1.1\r\nHost: h\r\na: b\r\n c\r\n\r\n",
    "a header without a name": b"GET / HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n",
    "noise": bytes(range(256)) * 4,
    "a tunnel": b"CONNECT somewhere:443 HTTP/1.1\r\nhost: somewhere:443\r\n\r\n",
}


@pytest.mark.parametrize("name", HEADS)
def test_a_head_that_is_none_is_answered_once_and_the_connection_closed(server, dial, name):
    client = dial(server.url)
    client.send(HEADS[name])
    head, body = client.read_whole()
    assert head.split()[1] in ("400", "404")
    assert body["error"]["message"]
    client.socket.shutdown(socket.SHUT_WR)
    client.expect_end()
    assert server.failures == ()


@pytest.mark.parametrize(
    "path", ["/%", "/%zz/v1/messages", "//", "/\xff\xfe", "/?%", "/v1beta/models/%ff:generateContent"]
)
def test_a_path_is_answered_whatever_it_is(server, dial, path):
    for method in ("GET", "POST", "DELETE"):
        client = dial(server.url)
        client.send(f"{method} {path} HTTP/1.1\r\nHost: h\r\ncontent-length: 0\r\n\r\n".encode("latin-1"))
        assert 200 <= int(client.read_whole()[0].split()[1]) < 500
    assert server.failures == ()


def test_noise_in_requests_is_answered_or_dropped_and_never_a_traceback(server, dial, post, caplog):
    """Bytes changed, taken out and put in at random places, the same ones every time."""
    chance = random.Random(3)
    for _ in range(400):
        said = bytearray(post(path=chance.choice([*PATHS.values(), "/v1/models"])))
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(said))
            said[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
        client = dial(server.url)
        client.send(bytes(said))
        client.socket.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while client.socket.recv(65536):
                pass
    server.wait(lambda: all(captured.outcome for captured in server.requests))
    assert (server.failures, server.in_flight, caplog.records) == ((), 0, [])


@pytest.mark.parametrize("depth", [90, 200, 500, 700, 900, 960, 970, 980])
def test_nesting_is_the_clients_mistake_wherever_the_stack_ends(dial, post, depth):
    """Told apart from a responder that recurses without end by how deep the body is."""
    schema = b'{"a":' * depth + b"1" + b"}" * depth
    tool = b'{"type":"function","function":{"name":"f","parameters":' + schema + b"}}"
    body = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[' + tool + b"]}"
    script = {"entries": [{"kind": "say", "text": "{{fromRequest:.*}}"}], "cursor": "lineage", "repeatLast": True}
    with serve_in_thread(ScriptedProvider(script_from_json(script, "script"))) as server:
        client = dial(server.url)
        client.send(post(body))
        status = client.read_whole()[0].split()[1]
        assert status in ("200", "400")
        assert status == "200" or depth > 100
        assert server.failures == ()


def test_a_responder_that_recurses_without_end_is_its_own_mistake(dial, post):
    def reply(http):
        return reply(http)

    with serve_in_thread(reply) as server:
        client = dial(server.url)
        client.send(post())
        assert client.read_whole()[0].startswith("HTTP/1.1 500 ")
        assert [type(error) for error in server.failures] == [RecursionError]


@pytest.mark.parametrize(
    ("value", "depth"), [(1, 0), ([], 1), ({"a": [1, {"b": []}], "c": 2}, 4), ([[[]], {}, [[[1]]]], 4)]
)
def test_depth_of(value, depth):
    assert depth_of(value) == depth


def test_a_dialect_that_stumbles_is_a_500_and_not_the_end(dial, post):
    """Dialects can be given; the ones that are here do not."""

    def stumble(path, query):
        raise IndexError("no third segment")

    dialect = msgspec.structs.replace(DIALECTS["openai-chat"], path_params=stumble)
    with serve_in_thread(lambda http: [Head(200)], dialects={"openai-chat": dialect}) as server:
        client = dial(server.url)
        for _ in range(2):
            client.send(post())
            head, body = client.read_whole()
            assert head.startswith("HTTP/1.1 500 ")
            assert body["error"]["message"] == "IndexError: no third segment"
        assert [str(error) for error in server.failures] == ["no third segment"] * 2
        assert [captured.kind for captured in server.requests] == ["rejected"] * 2


def test_a_responder_that_answers_nonsense_is_a_500_and_not_the_end(dial, post):
    nonsense = [None, 3, "text", [1], [Body(b"no head")], [Head(200, (("a", "b\r\nc: d"),))], dataclasses, [None]]
    with serve_in_thread(lambda http: nonsense[http.number]) as server:
        client = dial(server.url)
        for _ in nonsense:
            client.send(post())
            assert client.read_whole()[0].startswith("HTTP/1.1 500 ")
        server.wait(lambda: all(captured.outcome == "failed" for captured in server.requests))
        assert len(server.failures) == len(nonsense)
