"""Recorded, then replayed: for every behaviour the mock server knows, in every dialect, streamed and not.

A client asks the mock through the recorder; the entry that was kept is served again, and recorded again. Three things
hold of every cell: the second entry is the first one, to the byte; a client reads of the replay what it read live
(``view``); and the bytes it got are the same bytes, but for what ``OTHERWISE`` names.
"""

import asyncio
import itertools
import re

import pytest
from llm_dialects import DIALECTS, entry_to_json
from llm_mock_server import ScriptedProvider, serve
from llm_mock_server.behaviours import BEHAVIOURS
from llm_mock_server.provider import CREATED

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


MODES = [(dialect, mode) for dialect in DIALECTS for mode in ("stream", "whole")] + [("gemini", "array")]


def script(name):
    return [{"kind": "behaviour", "name": entry, "options": OPTIONS} for entry in SCRIPTS.get(name, [name])]


def renumbered(body):
    if b"sequence_number" not in body:
        return body
    body, numbers = body.replace(ENDED, ENDED.replace(b"mock res", b"mock resmock res")), itertools.count()
    return re.sub(rb'"sequence_number":\d+', lambda _: b'"sequence_number":%d' % next(numbers), body)


async def live(kit, name, call):
    """Ask the mock through a recorder; who falls silent is left as soon as the head is there."""
    provider = ScriptedProvider(script(name))
    async with (
        serve(provider, api_key=kit.KEY) as upstream,
        kit.recording(upstream.base_url(call.dialect)) as (front, model),
    ):
        seen = await kit.ask(front.base_url(call.dialect), call, leave=name == "stall")
        await upstream.wait(lambda: upstream.in_flight == 0)
        await front.wait(lambda: front.in_flight == 0)
    return seen, model.calls[0].entry


@pytest.mark.parametrize(("dialect", "mode"), MODES)
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_a_behaviour_recorded_and_replayed_is_the_same(kit, name, dialect, mode):
    call = kit.call(dialect, mode)

    async def run():
        seen, entry = await live(kit, name, call)
        responder = kit.replaying(entry, TOKENS.get(name, "mock1"), CREATED)
        return seen, entry, *await kit.replayed(responder, call, leave=name == "stall")

    seen, entry, replay, again = asyncio.run(run())
    assert entry_to_json(again) == entry_to_json(entry)
    assert kit.view(call, replay) == kit.view(call, seen)
    assert replay.body == OTHERWISE.get(name, bytes)(seen.body)
