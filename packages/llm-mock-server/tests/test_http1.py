"""The HTTP grammar as values: whole, byte by byte, with a tail, and everything a client can get wrong."""

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_dialects import Head
from llm_mock_server.http1 import (
    ContinueWanted,
    Event,
    Opening,
    RawRequest,
    Refused,
    RequestParser,
    encode_chunk,
    open_response,
    origin_form,
)

MAX_BODY = 1000
MAX_HEAD = 500


def parse(pieces: Iterable[bytes]) -> list[Event]:
    parser = RequestParser(MAX_BODY, MAX_HEAD)
    return [event for piece in pieces for event in parser.feed(piece)]


def cuts(data: bytes) -> list[list[bytes]]:
    """``data`` whole, byte by byte, and in two at every place."""
    halves = [[data[:at], data[at:]] for at in range(1, len(data))]
    return [[data], [data[at : at + 1] for at in range(len(data))], *halves]


def check_requests(data: bytes, *expected: Event) -> None:
    for pieces in cuts(data):
        assert parse(pieces) == list(expected)


PLAIN = RawRequest("GET", "/v1/models?limit=2", (("host", "h"),), b"")
POST = RawRequest("POST", "/chat/completions", (("host", "h"), ("content-length", "5")), b"h\xc3\xa9\xff!")
CHUNKED = RawRequest("POST", "/m", (("host", "h"), ("transfer-encoding", "chunked")), b"hello world")

REQUESTS = {
    "no body": (b"GET /v1/models?limit=2 HTTP/1.1\r\nHost: h\r\n\r\n", PLAIN),
    "a length": (b"POST /chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nh\xc3\xa9\xff!", POST),
    "an empty body": (
        b"POST /m HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
        RawRequest("POST", "/m", (("host", "h"), ("content-length", "0")), b""),
    ),
    "chunks and trailers": (
        b"POST /m HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"5\r\nhello\r\n6;x=1\r\n world\r\n0\r\nA: x\r\n\r\n",
        CHUNKED,
    ),
    "a proxy's form": (
        b"GET http://h:1/a?b=c://d HTTP/1.1\r\nHost: h\r\n\r\n",
        RawRequest("GET", "/a?b=c://d", (("host", "h"),), b""),
    ),
    "HTTP/1.0": (b"GET / HTTP/1.0\r\n\r\n", RawRequest("GET", "/", (), b"", keep_alive=False, http10=True)),
    "an offer of HTTP/2": (
        b"POST /m HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhi",
        RawRequest("POST", "/m", (("host", "h"), ("upgrade", "h2c"), ("content-length", "2")), b"hi"),
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_the_same_however_it_is_cut(name):
    data, expected = REQUESTS[name]
    check_requests(data, expected)


@pytest.mark.parametrize("name", [name for name in REQUESTS if name != "HTTP/1.0"])
def test_what_follows_a_request_is_the_next_one(name):
    data, expected = REQUESTS[name]
    check_requests(data + REQUESTS["no body"][0], expected, PLAIN)


def test_nothing_is_taken_after_a_request_that_closes():
    data = b"GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    check_requests(
        data + data,
        RawRequest("GET", "/a", (("host", "h"), ("connection", "close")), b"", keep_alive=False),
    )


def test_a_tunnel_is_not_dug():
    check_requests(
        b"CONNECT a:1 HTTP/1.1\r\nHost: h\r\n\r\n\x16\x03",
        RawRequest("CONNECT", "a:1", (("host", "h"),), b"", keep_alive=False),
    )


def test_a_client_that_waits_for_a_sign_is_told_to_go_on_before_its_body():
    head = b"POST /m HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n"
    request = RawRequest("POST", "/m", (("host", "h"), ("expect", "100-Continue"), ("content-length", "2")), b"hi")
    check_requests(head + b"hi", ContinueWanted(), request)
    assert parse([head]) == [ContinueWanted()]


def check_refused(data: bytes, status: int, target: str) -> None:
    for pieces in cuts(data):
        (refused,) = parse(pieces)
        assert isinstance(refused, Refused)
        assert (refused.status, refused.request.target) == (status, target)


REFUSED = {
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01", 400, ""),
    "not HTTP": (b"hello there\r\n\r\n", 400, ""),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "*"),
    "a length that is none": (b"POST /m HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n", 400, "/m"),
    "two kinds of length": (
        b"POST /m HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        400,
        "/m",
    ),
    "a chunk size that is none": (
        b"POST /m HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        400,
        "/m",
    ),
    "no host": (b"GET /m HTTP/1.1\r\nX: 1\r\n\r\n", 400, "/m"),
    "two hosts": (b"GET /m HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400, "/m"),
    "an expectation": (b"POST /m HTTP/1.1\r\nHost: h\r\nExpect: tea\r\nContent-Length: 1\r\n\r\nx", 417, "/m"),
    "a coding": (b"POST /m HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, "/m"),
    "a coding alone": (b"POST /m HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "/m"),
    "a coding before": (
        b"POST /m HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
        501,
        "/m",
    ),
    "too long a length": (b"POST /m HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n", 413, "/m"),
    "too many chunks": (
        b"POST /m HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"fb\r\n"
        + b"x" * 251
        + b"\r\n"
        + b"2ee\r\n"
        + b"x" * 750,
        413,
        "/m",
    ),
    "too long a head": (b"GET /m HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 600, 431, "/m"),
    "too many headers": (b"GET /m HTTP/1.1\r\nHost: h\r\n" + b"X: 1\r\n" * 100, 431, "/m"),
    "too many trailers": (
        b"GET /m HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: 1\r\n" * 100,
        431,
        "/m",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_taken_is_refused_once(name):
    check_refused(*REFUSED[name])


def test_nobody_is_told_to_go_on_after_a_refusal():
    large = b"POST /m HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1) + b"x" * (MAX_BODY + 1)
    events = parse([large + b"POST /m HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"])
    assert [type(event) for event in events] == [Refused]


def test_a_body_of_exactly_the_limit_is_taken():
    (request,) = parse([b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n", b"x" * 1000])
    assert isinstance(request, RawRequest)
    assert len(request.body) == 1000


def test_a_request_cut_short_is_seen_as_partial():
    parser = RequestParser(MAX_BODY, MAX_HEAD)
    parser.feed(b"POST /m HTTP/1.1\r\nHost: h\r\nTransfer-")
    assert parser.partial is None
    parser.feed(b"Encoding: chunked\r\n\r\n5\r\nhel")
    partial = parser.partial
    assert partial is not None
    assert (partial.method, partial.target, partial.body) == ("POST", "/m", b"hel")
    parser.feed(b"lo\r\n0\r\n\r\n")
    assert parser.partial is None


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=300), st.lists(st.integers(0, 299)))
def test_any_bytes_end_in_events_or_nothing(data, places):
    marks = sorted({0, len(data), *(place for place in places if place < len(data))})
    parse(data[begin:end] for begin, end in pairwise(marks))


HEADS = st.sampled_from(
    [
        b"POST /m HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\nX: 1\r\n\r\n",
        b"POST /m HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\nX: 2\r\n\r\n",
        b"POST /m HTTP/1.1\r\nHost: h\r\ncontent-length:%03d\r\n\r\n",
        b"POST /m HTTP/1.1\r\nHost: h\r\ncontent-length: %d \r\n\r\n",
        b"POST /m HTTP/1.1\r\nHost: h\r\ncontent-length: %d\r\nExpect: 100-continue\r\n\r\n",
        b"POST /m HTTP/1.1\r\nHost: h\r\ncontent-length: %d\r\nconnection: close\r\n\r\n",
        b"POST /m HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: %d\r\n\r\n",
        b"POST /m HTTP/1.0\r\nconnection: keep-alive\r\ncontent-length: %d\r\n\r\n",
        b"POST /m HTTP/1.1\r\nHost: h\r\nX: content-length: %d\r\n\r\n",
        b"POST /m HTTP/1.1\r\nHost: h\r\ncontent-length: %d\r\ntransfer-encoding: chunked\r\n\r\n",
        b"POST /m HTTP/1.1\r\nHost: h\r\ntransfer-encoding: chunked\r\nx-length: %d\r\n\r\n1\r\na\r\n0\r\n\r\n",
        b"GET /m?%d HTTP/1.1\r\nHost: h\r\n\r\n",
    ]
)
BODIES = st.sampled_from(
    [b"", b"a", b"bb", b"c" * MAX_BODY, b"d" * (MAX_BODY + 1), b"\r\n\r\n", b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(HEADS, BODIES), max_size=6), st.lists(st.integers(0, 6000)))
def test_a_head_that_comes_again_is_read_as_the_first_time(requests, places):
    """Piece by piece as a client sends them, and cut anywhere, they are what they are byte by byte."""
    pieces = [head % len(body) + body for head, body in requests]
    data = b"".join(pieces)
    cut = [data[start:end] for start, end in pairwise([0, *sorted({at for at in places if at < len(data)}), len(data)])]
    assert parse(pieces) == parse(cut) == parse(data[at : at + 1] for at in range(len(data)))


AGAIN = b"POST /m HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nA: b\r\n\r\nhi"


@pytest.mark.parametrize(
    "pieces",
    [
        [AGAIN, AGAIN.replace(b"A: b", b"A: c")],
        [AGAIN, AGAIN.replace(b": 2", b": %d" % (MAX_BODY + 1)) + b"x" * (MAX_BODY - 1)],
        [AGAIN, b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(AGAIN), AGAIN],
        [AGAIN[:16], AGAIN[16:], AGAIN[16:]],
        [AGAIN, AGAIN + AGAIN, AGAIN + b"\r\n", AGAIN],
        [AGAIN + b"\r\n", AGAIN, AGAIN[:-1], b"i", AGAIN],
        [AGAIN, AGAIN[:30], AGAIN[30:], AGAIN],
    ],
)
def test_only_a_whole_request_with_the_same_head_is_the_same_again(pieces):
    assert parse(pieces) == parse(data[at : at + 1] for data in pieces for at in range(len(data)))


@pytest.mark.parametrize("length", [b"5", b"05", b"6", b"4", b"+5", b"5 ", b" 5", b"-5", b"0x5", b"", b"5,5", b"1_0"])
def test_only_the_digits_of_a_length_may_change(length):
    first = b"POST /m HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nA: b\r\n\r\nhi"
    then = b"POST /m HTTP/1.1\r\nHost: h\r\nContent-Length: " + length + b"\r\nA: b\r\n\r\nhello"
    assert parse([first, then]) == parse(data[at : at + 1] for data in (first, then) for at in range(len(data)))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=20), max_size=5))
def test_what_is_sent_in_chunks_is_read_from_chunks(pieces):
    head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    (request,) = parse([head + b"".join(encode_chunk(piece) for piece in pieces) + b"0\r\n\r\n"])
    assert isinstance(request, RawRequest)
    assert request.body == b"".join(pieces)


LENGTH = (("Content-Length", "3"),)
STATUS = b"HTTP/1.1 200 OK\r\n"

OPENINGS = [
    (Head(200), "GET", False, True, Opening(STATUS + b"transfer-encoding: chunked\r\n\r\n", "chunked", 0, True)),
    (
        Head(200),
        "GET",
        False,
        False,
        Opening(STATUS + b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n", "chunked", 0, False),
    ),
    (Head(200, LENGTH), "GET", False, True, Opening(STATUS + b"Content-Length: 3\r\n\r\n", "length", 3, True)),
    (Head(200, LENGTH), "HEAD", False, True, Opening(STATUS + b"Content-Length: 3\r\n\r\n", "none", 0, True)),
    (Head(200), "GET", True, True, Opening(STATUS + b"connection: close\r\n\r\n", "close", 0, False)),
    (
        Head(200, LENGTH),
        "GET",
        True,
        True,
        Opening(STATUS + b"Content-Length: 3\r\nconnection: keep-alive\r\n\r\n", "length", 3, True),
    ),
    (Head(204), "GET", False, True, Opening(b"HTTP/1.1 204 No Content\r\n\r\n", "none", 0, True)),
    (
        Head(299, (("Connection", "Close"),)),
        "HEAD",
        False,
        True,
        Opening(b"HTTP/1.1 299 Unknown\r\nConnection: Close\r\n\r\n", "none", 0, False),
    ),
]


@pytest.mark.parametrize(("head", "method", "http10", "keep_alive", "expected"), OPENINGS)
def test_open_response(head, method, http10, keep_alive, expected):
    assert open_response(head, method, http10=http10, keep_alive=keep_alive) == expected


@pytest.mark.parametrize("headers", [(("a", "1\r\nb: 2"),), (("a\nb", "1"),), (("content-length", "x"),)])
def test_a_head_that_no_client_could_read_is_an_error(headers):
    with pytest.raises(ValueError, match=r"line break|invalid literal"):
        open_response(Head(200, headers), "GET", http10=False, keep_alive=True)


@pytest.mark.parametrize(("target", "expected"), [("/a", "/a"), ("/a://b", "/a://b"), ("http://h/a", "/a"), ("*", "*")])
def test_origin_form(target, expected):
    assert origin_form(target) == expected
