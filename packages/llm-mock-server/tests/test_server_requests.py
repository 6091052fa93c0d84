"""What the server makes of requests on real sockets: abuse, mistakes, keys, side requests."""

import socket

import pytest
from llm_dialects import Body, DialectError, Head
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


ABUSE = {
    "an empty body": (lambda post: post(b""), 400, "empty"),
    "not JSON": (lambda post: post(b"{"), 400, "JSON object"),
    "not an object": (lambda post: post(b"[1]"), 400, "JSON object"),
    "invalid UTF-8": (lambda post: post(b'{"model": "\xff"}'), 400, "JSON object"),
    "compressed": (lambda post: post(headers=("content-encoding: gzip",)), 415, "gzip"),
    "too large": (lambda post: post(b"x" * 1001), 413, "1000 bytes"),
    "too large a head": (lambda post: post(headers=("x: " + "x" * 400_000,)), 431, "65536 bytes"),
    "not HTTP": (lambda post: b"\x16\x03\x01 hello\r\n\r\n", 400, "HTTP/1.1"),
    "a wrong method": (lambda post: post(method="GET"), 405, "use POST"),
    "a wrong path": (lambda post: post(path="/v1/chat"), 404, "/chat/completions"),
}


@pytest.mark.parametrize("name", ABUSE)
def test_abuse_is_answered_in_the_dialects_words(dial, post, name):
    make, status, words = ABUSE[name]
    with serve_in_thread(one_two, max_body=1000) as server:
        client = dial(server.url)
        client.send(make(post))
        head, body = client.read_whole()
        assert int(head.split()[1]) == status
        assert words in body["error"]["message"]
        (captured,) = server.requests
        assert (captured.kind, captured.call, captured.status) == ("rejected", None, status)
        assert ("allow: POST" in head) == (status == 405)


def test_json_deeper_than_the_stack_is_refused(dial, post):
    with serve_in_thread(one_two) as server:
        client = dial(server.url)
        client.send(post(b'{"a":' * 100_000 + b"1" + b"}" * 100_000))
        assert client.read_whole()[0].startswith("HTTP/1.1 400 ")


@pytest.mark.parametrize("name", ["an empty body", "not JSON", "a wrong method", "a wrong path"])
def test_a_mistake_does_not_cost_the_connection(dial, post, name):
    with serve_in_thread(one_two) as server:
        client = dial(server.url)
        client.send(ABUSE[name][0](post) + post())
        client.read_whole()
        client.expect(HEAD + ONE + TWO + LAST)
        assert [captured.call for captured in server.requests] == [None, 0]


def test_a_client_in_the_middle_of_a_huge_body_can_still_read_why_it_was_refused(dial, post):
    with serve_in_thread(one_two, max_body=1000) as server:
        client = dial(server.url)
        client.send(post(b"x" * 8_000_000))
        head, _ = client.read_whole()
        assert head.startswith("HTTP/1.1 413 ")
        assert "connection: close" in head
        client.expect_end()


def test_a_chunked_body_that_ends_early_is_journalled_and_never_answered(dial, post):
    with serve_in_thread(one_two) as server:
        client = dial(server.url)
        client.send(f"POST {CHAT} HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel".encode())
        client.socket.shutdown(socket.SHUT_WR)
        client.expect_end()
        server.wait(lambda: outcomes(server) == ["client_closed"])
        (captured,) = server.requests
        assert (captured.kind, captured.path, captured.body) == ("rejected", CHAT, b"hel")


def test_a_body_the_dialect_cannot_read_is_the_clients_mistake(dial, post):
    def reply(http):
        raise DialectError("messages: missing")

    with serve_in_thread(reply) as server:
        client = dial(server.url)
        client.send(post())
        head, body = client.read_whole()
        assert head.startswith("HTTP/1.1 400 ")
        assert body["error"]["message"] == "messages: missing"
        server.wait(lambda: outcomes(server) == ["completed"])
        (captured,) = server.requests
        assert (captured.kind, captured.call) == ("rejected", None)
        assert (captured.error_text, captured.error.__traceback__) == ("DialectError: messages: missing", None)
        assert (server.failures, server.in_flight) == ((), 0)


def test_a_responder_that_fails_is_kept_in_failures(dial, post):
    def reply(http):
        raise RuntimeError("broken")

    with serve_in_thread(reply) as server:
        client = dial(server.url)
        client.send(post())
        head, body = client.read_whole()
        assert head.startswith("HTTP/1.1 500 ")
        assert body["error"]["message"] == "RuntimeError: broken"
        assert [str(failure) for failure in server.failures] == ["broken"]
        server.wait(lambda: outcomes(server) == ["failed"])


@pytest.mark.parametrize(
    ("headers", "status"),
    [((), 401), (("authorization: Bearer no",), 401), (("authorization: Bearer sesame",), 200)],
)
def test_only_the_key_is_let_in(dial, post, headers, status):
    with serve_in_thread(lambda http: [Head(200, (("content-length", "0"),))], api_key="sesame") as server:
        client = dial(server.url)
        client.send(post(headers=headers))
        head, _ = client.read_whole()
        assert int(head.split()[1]) == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [((), 200), (("authorization: Bearer no",), 401), (("authorization: Bearer sesame",), 200)],
)
def test_a_side_request_needs_no_key_but_must_not_show_a_wrong_one(dial, post, headers, status):
    with serve_in_thread(one_two, api_key="sesame") as server:
        client = dial(server.url)
        client.send(post(b"", "/v1/models", "GET", headers))
        head, _ = client.read_whole()
        assert int(head.split()[1]) == status


def test_side_requests_are_answered_and_never_reach_the_responder(dial, post):
    def reply(http):
        raise AssertionError

    with serve_in_thread(reply) as server:
        client = dial(server.url)
        client.send(post(b"", "/v1/models", "GET"))
        assert client.read_whole()[1]["object"] == "list"
        client.send(post(b"", "/v1/models/m", "GET"))
        assert client.read_whole()[1]["id"] == "m"
        client.send(b"HEAD / HTTP/1.1\r\nhost: h\r\n\r\n")
        assert client.read_head().startswith("HTTP/1.1 200 ")
        client.send(post(b"", "/", "GET"))
        assert client.read_whole()[0].startswith("HTTP/1.1 200 ")
        assert [captured.kind for captured in server.requests] == ["side"] * 4
        assert (server.failures, server.in_flight) == ((), 0)


def test_what_the_responder_is_told(dial, post):
    told = []

    def reply(http):
        told.append(http)
        return one_two(http)

    with serve_in_thread(reply) as server:
        client = dial(server.url)
        client.send(post(b'{"a": "\xc3\xa9"}', "/gate/v1/chat/completions?x=1", headers=("X-Session-Id: s",)))
        client.expect(HEAD + ONE + TWO + LAST)
    (http,) = told
    assert (http.method, http.path, http.query) == ("POST", "/gate/v1/chat/completions", "x=1")
    assert (http.dialect, http.prefix, http.json, http.number) == ("openai-chat", "/gate/v1", {"a": "é"}, 0)
    assert ("x-session-id", "s") in http.headers
    assert http.body == b'{"a": "\xc3\xa9"}'


def test_the_responder_says_in_the_journal_what_answers(dial, post):
    def reply(http):
        http.note("success", "lane 1")
        return one_two(http)

    with serve_in_thread(reply) as server:
        client = dial(server.url)
        client.send(post())
        client.expect(HEAD + ONE + TWO + LAST)
        (captured,) = server.requests
        assert (captured.label, captured.cursor) == ("success", "lane 1")
        assert captured.to_json()["label"] == "success"
