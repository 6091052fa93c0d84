"""Providers that say what none should: the client gets it as it is, and what was kept tells it once more."""

import asyncio
import gzip
import zlib

import httpx
import pytest
from llm_dialects import DIALECTS, Chunks, answer_to, entry_to_json
from llm_mock_server import entry_reply, serve
from session_snapshot.recording.heard import is_json

FRAMINGS = {
    "CRLF": lambda event: event.replace(b"\n", b"\r\n"),
    "CR": lambda event: event.replace(b"\n", b"\r"),
    "comments": lambda event: b": a comment\n\n:\n" + event,
    "ids and retries": lambda event: b"id: 7\nretry: 1000\n" + event,
    "several lines": lambda event: event.replace(b",", b",\ndata: ", 1),
    "no space": lambda event: event.replace(b"data: ", b"data:"),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("framing", FRAMINGS)
def test_events_are_read_however_they_are_framed_and_passed_on_as_they_are(kit, framing, dialect):
    pieces = [FRAMINGS[framing](event) for event in kit.told(dialect, streamed=True)]
    got, entry = kit.forward(kit.saying(*kit.events(*pieces)), dialect)
    assert got.content == b"".join(pieces)
    assert entry == Chunks(chunks=kit.SAID)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_byte_order_mark_and_cuts_anywhere_change_nothing(kit, dialect):
    body = b"\xef\xbb\xbf" + b"".join(kit.told(dialect, streamed=True))
    got, entry = kit.forward(kit.saying(*kit.events(*(body[at : at + 7] for at in range(0, len(body), 7)))), dialect)
    assert got.content == body
    assert entry == Chunks(chunks=kit.SAID)


CODINGS = {
    "gzip": lambda body: gzip.compress(body),
    "deflate": lambda body: zlib.compress(body),
    "raw deflate": lambda body: zlib.compress(body)[2:-4],
}


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("coding", CODINGS)
def test_a_compression_that_nobody_asked_for_is_undone(kit, coding, streamed):
    plain = b"".join(kit.told("openai-chat", streamed=streamed))
    packed = CODINGS[coding](plain)
    writes = kit.message(
        packed, kind="text/event-stream" if streamed else "application/json", content_encoding=coding.split()[-1]
    )
    got, entry = kit.forward(kit.saying(*writes), streamed=streamed)
    assert got.content == plain
    assert "content-encoding" not in got.headers and got.headers.get("content-length") is None
    assert isinstance(entry, Chunks) and entry.chunks[-1] == kit.SAID[-1]


def throw(entry):
    """A failure's code and message, and what of the wire was kept."""
    value = entry_to_json(entry)
    return value["code"], value["message"], value.get("wire", {})


# [DONE] is no loss, and Anthropic tells the reason to stop before the last event.
TOLD_BEFORE = ("openai-chat", "anthropic-messages")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_last_event_without_its_empty_line_is_kept_as_it_was_where_it_matters(kit, dialect):
    """The standard drops it; there are clients that do not."""
    body = b"".join(kit.told(dialect, streamed=True)).rstrip(b"\n")
    got, entry = kit.forward(kit.saying(*kit.events(body)), dialect)
    assert got.content == body
    if dialect in TOLD_BEFORE:
        assert entry == Chunks(chunks=kit.SAID)
    else:
        wire = {"dialect": dialect, "status": 200, "body": body.decode(), "end": "complete"}
        assert throw(entry) == ("STREAM_CLOSED", "the answer ended before its finish", wire)


PAGE = b"<html><title>Bad gateway</title>\n<p>Try later.</p></html>"
LINE = "<html><title>Bad gateway</title> <p>Try later.</p></html>"
ERROR = b'{"error":{"message":"too much","type":"server_error","code":"rate_limit_exceeded"}}'
BUSY = b'{"error":{"message":"busy","type":"service_unavailable_error","param":null,"code":null}}'
GARBAGE = b'data: {"choices": 7}\n\n'
JSON, HTML = {"content-type": "application/json"}, {"content-type": "text/html; charset=utf-8"}
BINARY = {"content-type": "application/octet-stream"}
GOOD = {"dialect": "openai-chat", "status": 200}


def chat(kit, chunks=None):
    return kit.told("openai-chat", streamed=True, chunks=chunks or kit.SAID)


def begun(kit):
    return chat(kit, kit.SAID[:2])


def whole(kit):
    return kit.told("openai-chat", streamed=False)[0]


def garbled(kit):
    return [*chat(kit)[:2], GARBAGE, *chat(kit)[2:]]


# what the provider writes, streamed?, code, message, what is kept of the wire
ODD = {
    "a page of HTML instead of a stream": lambda kit: (
        kit.message(PAGE, kind=HTML["content-type"]), True,
        "MALFORMED_ANSWER", f"text/html came instead of a stream: {LINE}",
        GOOD | {"headers": HTML, "body": PAGE.decode()},
    ),
    "a page of HTML instead of a message": lambda kit: (
        kit.message(PAGE, kind=HTML["content-type"]), False,
        "MALFORMED_ANSWER", "body: not JSON: ", GOOD | {"headers": HTML, "body": PAGE.decode()},
    ),
    "an error page": lambda kit: (
        kit.message(PAGE, 502, kind=HTML["content-type"]), True,
        "SERVER_ERROR", LINE, {"dialect": "openai-chat", "status": 502, "headers": HTML, "body": PAGE.decode()},
    ),
    "an error under 200 instead of a stream": lambda kit: (
        kit.message(ERROR), True,
        "RATE_LIMIT", "too much", GOOD | {"headers": JSON, "body": ERROR.decode()},
    ),
    "an error under 200 instead of a message": lambda kit: (
        kit.message(ERROR), False, "RATE_LIMIT", "too much", GOOD | {"headers": {}, "body": ERROR.decode()},
    ),
    "a message instead of a stream": lambda kit: (
        kit.message(whole(kit)), True, "MALFORMED_ANSWER", "application/json came instead of a stream: ",
        GOOD | {"headers": JSON, "body": whole(kit).decode()},
    ),
    "garbage amid a stream": lambda kit: (
        kit.events(*garbled(kit)), True, "MALFORMED_ANSWER", "event 3.choices: must be",
        GOOD | {"body": b"".join(garbled(kit)).decode()},
    ),
    "bytes that are no text": lambda kit: (
        kit.message(b"\xff\x00", kind=BINARY["content-type"]), False,
        "MALFORMED_ANSWER", "body: not JSON: ", GOOD | {"headers": BINARY, "bodyBase64": "/wA="},
    ),
    "half a message, whole by its length": lambda kit: (
        kit.message(whole(kit)[:50]), False,
        "MALFORMED_ANSWER", "body: not JSON: ", GOOD | {"body": whole(kit)[:50].decode()},
    ),
    "a message that stops": lambda kit: (
        [kit.head(200, "application/json", content_length=len(whole(kit))), whole(kit)[:50]], False,
        "STREAM_CLOSED", "the connection was closed in the middle of the answer",
        GOOD | {"headers": JSON, "body": whole(kit)[:50].decode(), "end": "cut"},
    ),
    "a stream that stops": lambda kit: (
        kit.events(*begun(kit))[:-1], True,
        "STREAM_CLOSED", "the connection was closed in the middle of the answer", {},
    ),
    "a stream that stops within an event": lambda kit: (
        kit.events(*begun(kit), b"data: {")[:-1], True,
        "STREAM_CLOSED", "the connection was closed in the middle of the answer",
        GOOD | {"body": b"".join([*begun(kit), b"data: {"]).decode()},
    ),
    "a stream of nothing": lambda kit: (
        kit.events(), True,
        "STREAM_CLOSED", "the answer ended before its finish", GOOD | {"body": "", "end": "complete"},
    ),
    "an overload, with when to come again": lambda kit: (
        kit.message(BUSY, 503, retry_after="7"), True, "UNAVAILABLE", "busy", {"headers": {"retry-after": "7"}},
    ),
    "nothing but a status": lambda kit: (
        kit.message(b"", 500, kind="text/plain"), True, "SERVER_ERROR", "HTTP 500",
        {"dialect": "openai-chat", "status": 500, "headers": {"content-type": "text/plain"}, "body": ""},
    ),
    "no HTTP at all": lambda kit: (
        [b"220 smtp.example ESMTP\r\n\r\n"], True,
        "STREAM_CLOSED", "the connection was closed before the answer began", {"end": "cut"},
    ),
    "an end before any answer": lambda kit: (
        [], True, "STREAM_CLOSED", "the connection was closed before the answer began", {"end": "cut"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_what_no_provider_should_say_is_passed_on_as_it_is_and_kept(kit, name):
    writes, streamed, code, text, wire = ODD[name](kit)
    got, entry = kit.forward(kit.saying(*writes), streamed=streamed)
    was_code, was_text, was_wire = throw(entry)
    assert (was_code, {"headers": {}} | was_wire) == (code, {"headers": {}} | wire)
    assert was_text.startswith(text) if code == "MALFORMED_ANSWER" else was_text == text
    check_no_difference(got, asyncio.run(kit.direct(kit.saying(*writes), streamed=streamed)))


def check_no_difference(got, straight):
    """A client behind the recorder got what one without it got."""
    assert type(got) is type(straight)
    if isinstance(got, httpx.Response):
        names = ("content-type", "content-length", "retry-after")
        assert (got.status_code, got.content) == (straight.status_code, straight.content)
        assert [got.headers.get(name) for name in names] == [straight.headers.get(name) for name in names]


@pytest.mark.parametrize("name", ODD)
def test_and_is_told_again(kit, name):
    """What was kept, served: the client gets the same once more."""
    writes, streamed, *_ = ODD[name](kit)
    got, entry = kit.forward(kit.saying(*writes), streamed=streamed)
    check_retold(got, asyncio.run(retold(kit, entry, streamed)))


async def retold(kit, entry, streamed):
    def respond(http):
        dialect = DIALECTS[http.dialect]
        request = dialect.parse_request(http.json)
        return entry_reply(dialect, request, entry, answer_to(dialect, request, token="1", created=0))

    below, body = kit.asked("openai-chat", streamed=streamed)
    async with serve(respond) as server, httpx.AsyncClient(trust_env=False) as client:
        try:
            return await client.post(server.base_url("openai-chat") + below, json=body)
        except httpx.RequestError as error:
            return error


def check_retold(got, again):
    assert type(got) is type(again)
    if isinstance(got, httpx.Response):
        kinds = [each.headers.get("content-type", "").partition(";")[0] for each in (got, again)]
        assert kinds[0] == kinds[1]
        assert got.headers.get("retry-after") == again.headers.get("retry-after")
        same = got.content == again.content or (is_json(got.content) and got.json() == again.json())
        assert got.status_code == again.status_code and same


@pytest.mark.parametrize(("end", "kept"), [("rst", "reset"), ("fin", "cut")])
def test_an_answer_that_is_whole_although_its_connection_broke(kit, end, kept):
    got, entry = kit.forward(kit.saying(*kit.events(*chat(kit))[:-1], end=end))
    assert isinstance(got, (httpx.ReadError, httpx.RemoteProtocolError))
    assert entry.chunks == kit.SAID
    assert entry_to_json(entry)["wire"] == {"end": kept}


@pytest.mark.parametrize("cut", [0, 60])
def test_a_broken_compression(kit, cut):
    body = gzip.compress(b"".join(chat(kit)))[:cut] + b"\x1f\x8b garbage" * 20
    got, entry = kit.forward(kit.saying(*kit.message(body, kind="text/event-stream", content_encoding="gzip")))
    code, text, _ = throw(entry)
    assert code == "MALFORMED_ANSWER" and text.startswith("the compression of the answer is broken: ")
    assert isinstance(got, httpx.RemoteProtocolError)


def test_a_compression_that_cannot_be_undone_is_told_instead(kit):
    got, entry = kit.forward(kit.saying(*kit.message(b"\x0b\x02\x80", kind="text/event-stream", content_encoding="br")))
    what = "the provider compressed its answer (br), although it was asked not to"
    assert (got.status_code, got.json()["error"]["message"]) == (500, what)
    assert throw(entry) == ("MALFORMED_ANSWER", what, {})


def test_a_provider_that_says_nothing_for_too_long(kit):
    async def respond(reader, _writer, _body):
        await reader.read()

    async def run():
        below, body = kit.asked("openai-chat", streamed=True)
        async with kit.raw_provider(respond) as upstream, kit.recorder(upstream) as (front, model, client):
            model.client.timeout = httpx.Timeout(5, read=0.05)
            return await client.post(front.base_url("openai-chat") + below, json=body), model

    got, model = asyncio.run(run())
    what = "nothing came from the provider for 0.05 seconds"
    assert (got.status_code, got.json()["error"]["message"]) == (504, what)
    assert throw(model.calls[0].entry) == ("TIMEOUT", what, {})


def test_a_stream_in_which_nothing_comes_for_too_long(kit):
    async def respond(reader, writer, _body):
        for data in kit.events(*begun(kit))[:-1]:
            writer.write(data)
        await reader.read()

    async def run():
        below, body = kit.asked("openai-chat", streamed=True)
        async with kit.raw_provider(respond) as upstream, kit.recorder(upstream) as (front, model, client):
            model.client.timeout = httpx.Timeout(5, read=0.05)
            with pytest.raises(httpx.RemoteProtocolError):
                await client.post(front.base_url("openai-chat") + below, json=body)
        return model

    assert throw(asyncio.run(run()).calls[0].entry) == (
        "STREAM_CLOSED", "nothing came from the provider for 0.05 seconds", {},
    )  # fmt: skip


def test_what_an_agent_says_in_its_headers_reaches_the_provider_but_for_its_key(kit):
    heads = []

    async def serve_head(reader, writer):
        heads.append((await reader.readuntil(b"\r\n\r\n")).lower())
        await reader.readexactly(int(heads[0].partition(b"content-length: ")[2].partition(b"\r\n")[0]))
        for data in kit.events(*chat(kit)):
            writer.write(data)
        writer.close()

    async def run():
        server = await asyncio.start_server(serve_head, "127.0.0.1", 0)
        upstream = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        below, body = kit.asked("openai-chat", streamed=True)
        sent = [("x-a", "1"), ("x-a", "2"), ("x-title", "ü".encode("latin-1")), ("authorization", "Bearer dummy"),
                ("cookie", "c"), ("accept-encoding", "br"), ("te", "trailers")]  # fmt: skip
        async with kit.recorder(upstream) as (front, _, client):
            got = await client.post(front.base_url("openai-chat") + below, json=body, headers=sent)
        server.close()
        return got

    assert asyncio.run(run()).status_code == 200
    lines = heads[0].split(b"\r\n")
    assert [line for line in lines if line.startswith(b"x-")] == [b"x-a: 1", b"x-a: 2", b"x-title: \xfc"]
    assert b"authorization: bearer the real key" in lines and b"accept-encoding: identity" in lines
    assert not [line for line in lines if b"dummy" in line or line.startswith((b"cookie", b"te:"))]
