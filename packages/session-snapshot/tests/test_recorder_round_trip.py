"""Recorded, then replayed: for every behaviour the mock server knows, in every dialect, streamed and not.

A client asks the mock through the recorder; the entry that was kept is served again, and recorded again. Three things
hold of every cell: the second entry is the first one, to the byte; a client reads of the replay what it read live
(``view``); and the bytes it got are the same bytes, but for what ``OTHERWISE`` names.
"""

import asyncio
import itertools
import json
import re
from contextlib import asynccontextmanager

import httpx
import msgspec
import pytest
from llm_dialects import DIALECTS, Chunks, answer_to, entry_from_json, entry_to_json, honest_usage
from llm_mock_server import ScriptedProvider, entry_reply, serve
from llm_mock_server.behaviours import BEHAVIOURS
from llm_mock_server.provider import CREATED
from session_snapshot.heard import RETOLD, is_json, read_stream, read_whole
from session_snapshot.recorder import RecordModel

KEY = "the real key"
OPTIONS = {"chunkDelayMs": 0, "disconnectDelayMs": 0, "headersDelayMs": 0, "hugeBytes": 100_000}
SCRIPTS = {"redirect": ["redirect", "success"]}

KEEPALIVE = re.compile(rb": keep-alive\n\n|event: ping\ndata: [^\n]*\n\n|\A\n+|(?<=})\n(?=,)")
ENDED = b'"text":"mock response recovered"'

# behaviour -> the bytes of the replay, made of the live ones
OTHERWISE = {
    # What keeps a connection alive means nothing, and is not told again.
    "keepalive_comments": lambda body: KEEPALIVE.sub(b"", body),
    # Events are numbered as they are told, items of an array lie between commas, and where a text's end says less than
    # its pieces did, the pieces count (``CANNOT_SAY``: a block whose end contradicts its deltas).
    "duplicate_event": lambda body: renumbered(body.replace(b"}[{", b"},\n{")),
}
TOKENS = {"redirect": "mock2"}
"""What the mock makes its ids of: it counts answers."""


class Call(msgspec.Struct, frozen=True):
    """What a client asks: the endpoint under its base URL, and the body."""

    dialect: str
    streamed: bool
    below: str
    body: dict

    @property
    def id(self):
        return f"{self.dialect}{'-array' if self.below.endswith('Content') and self.streamed else ''}-" + (
            "stream" if self.streamed else "whole"
        )


HI = [{"role": "user", "content": "hi"}]
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
MODEL = "/v1beta/models/m:"
CALLS = [
    call
    for streamed in (True, False)
    for call in (
        Call(
            "openai-chat",
            streamed,
            "/chat/completions",
            {"model": "m", "messages": HI, "stream": streamed}
            | ({"stream_options": {"include_usage": True}} if streamed else {}),
        ),
        Call("openai-responses", streamed, "/responses", {"model": "m", "input": HI, "stream": streamed}),
        Call(
            "anthropic-messages",
            streamed,
            "/v1/messages",
            {"model": "m", "max_tokens": 9, "messages": HI, "stream": streamed},
        ),
        Call(
            "gemini", streamed, MODEL + ("streamGenerateContent?alt=sse" if streamed else "generateContent"), CONTENTS
        ),
    )
] + [Call("gemini", True, MODEL + "streamGenerateContent", CONTENTS)]


class Seen(msgspec.Struct):
    """What a client without any mercy saw of a response."""

    status: int | None = None
    headers: dict = {}
    body: bytes = b""
    end: str = "complete"


class Listener(asyncio.Protocol):
    """Takes down all that comes, and how it ends; asyncio's streams forget at a reset what they have not been asked."""

    def __init__(self):
        self.data, self.end = b"", "cut"
        self.changed, self.lost = asyncio.Event(), False

    def data_received(self, data):
        self.data += data
        self.changed.set()

    def connection_lost(self, error):
        self.end = "reset" if isinstance(error, ConnectionResetError) else "cut"
        self.lost = True
        self.changed.set()

    async def until(self, done):
        while not self.lost and not done(self.data):
            self.changed.clear()
            await self.changed.wait()


async def ask(base, call, *, leave=False):
    """Ask once over a connection of its own; ``leave``: go as soon as the head is there."""
    url, body = httpx.URL(base + call.below), json.dumps(call.body).encode()
    transport, listener = await asyncio.get_running_loop().create_connection(Listener, url.host, url.port)
    head = f"POST {url.raw_path.decode()} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    transport.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    await listener.until(lambda data: b"\r\n\r\n" in data if leave else is_whole(data))
    transport.close()
    return seen_in(listener.data, "silence" if leave else listener.end)


def is_whole(data):
    return b"\r\n\r\n" in data and seen_in(data, "cut").end == "complete"


def seen_in(data, end):
    """A response of which so much came before it ended like this."""
    head, _, rest = data.partition(b"\r\n\r\n")
    if not head:
        return Seen(end=end)
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    body, whole = b"", False
    if "content-length" in headers:
        body, whole = rest, len(rest) == int(headers["content-length"])
    while "content-length" not in headers and b"\r\n" in rest:
        size, _, rest = rest.partition(b"\r\n")
        whole = int(size, 16) == 0
        body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return Seen(int(first.split()[1]), headers, body, "complete" if whole else end)


def view(call, seen):
    """What a client makes of a response."""
    dialect = DIALECTS[call.dialect]
    told = {name: value for name, value in seen.headers.items() if name in RETOLD}
    kind = seen.headers.get("content-type", "").partition(";")[0]
    if seen.status is None or seen.status >= 300:
        said = json.loads(seen.body) if is_json(seen.body) else seen.body
    else:
        said = read_stream(dialect, seen.body) if call.streamed else read_whole(dialect, seen.body)
        said = (said.chunks, said.wrong, bool(said.events))
    return seen.status, kind, told, said, seen.end


@asynccontextmanager
async def recording(upstream, call):
    """A recorder before ``upstream``: its base URL, and its model."""
    async with httpx.AsyncClient(trust_env=False) as client:
        model = RecordModel(client, upstream.base_url(call.dialect), KEY)
        async with serve(model) as front:
            yield front, model
        assert not front.failures


async def live(name, call):
    """Ask the mock through a recorder."""
    provider = ScriptedProvider(script(name))
    async with serve(provider, api_key=KEY) as upstream, recording(upstream, call) as (front, model):
        seen = await ask(front.base_url(call.dialect), call, leave=name == "stall")
        await upstream.wait(lambda: upstream.in_flight == 0)
        await front.wait(lambda: front.in_flight == 0)
    return seen, model.calls[0].entry


def script(name):
    return [{"kind": "behaviour", "name": entry, "options": OPTIONS} for entry in SCRIPTS.get(name, [name])]


def renumbered(body):
    if b"sequence_number" not in body:
        return body
    body, numbers = body.replace(ENDED, ENDED.replace(b"mock res", b"mock resmock res")), itertools.count()
    return re.sub(rb'"sequence_number":\d+', lambda _: b'"sequence_number":%d' % next(numbers), body)


def replaying(entry, name):
    """A responder that serves an entry, as it stands in a file, with the ids and the clock of the mock."""
    kept = entry_from_json(json.loads(json.dumps(entry_to_json(entry))), "here")

    def respond(http):
        dialect = DIALECTS[http.dialect]
        request = dialect.parse_request(http.json)
        usage = None if isinstance(kept, Chunks) else honest_usage(http.json, kept.chunks)
        answer = answer_to(dialect, request, token=TOKENS.get(name, "mock1"), created=CREATED, usage=usage)
        return entry_reply(dialect, request, kept, answer)

    return respond


async def replayed(entry, name, call):
    """Ask for an entry: directly, and through a recorder."""
    async with serve(replaying(entry, name)) as upstream:
        direct = await ask(upstream.base_url(call.dialect), call, leave=name == "stall")
        async with recording(upstream, call) as (front, model):
            await ask(front.base_url(call.dialect), call, leave=name == "stall")
            await front.wait(lambda: front.in_flight == 0)
    return direct, model.calls[0].entry


@pytest.mark.parametrize("call", CALLS, ids=[call.id for call in CALLS])
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_a_behaviour_recorded_and_replayed_is_the_same(name, call):
    async def run():
        seen, entry = await live(name, call)
        return seen, entry, *await replayed(entry, name, call)

    seen, entry, direct, again = asyncio.run(run())
    assert entry_to_json(again) == entry_to_json(entry)
    assert view(call, direct) == view(call, seen)
    assert direct.body == OTHERWISE.get(name, bytes)(seen.body)
