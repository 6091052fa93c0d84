"""The recorder passes an answer on as it comes, and learns at once that nobody wants it any more."""

import asyncio
import itertools

import pytest
from llm_dialects import DIALECTS, Chunks, Hang, entry_to_json


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_client_has_every_piece_before_the_next_is_sent(kit, dialect, streamed):
    """In lockstep: the provider sends no piece before the client has confirmed the last. A buffer anywhere between
    them, of whatever size, would stop both for good."""
    pieces = kit.told(dialect, streamed=streamed)
    pieces = pieces if streamed else [pieces[0][at : at + 10] for at in range(0, len(pieces[0]), 10)]
    confirmed = asyncio.Queue()
    got = []

    async def respond(_reader, writer, _body):
        for data in kit.events(*pieces, kind="text/event-stream" if streamed else "application/json"):
            writer.write(data)
            if data != b"0\r\n\r\n":
                await confirmed.get()

    async def run():
        below, body = kit.asked(dialect, streamed=streamed)
        async with kit.raw_provider(respond) as upstream, kit.recorder(upstream) as (front, model, client):
            async with client.stream("POST", front.base_url(dialect) + below, json=body) as response:
                confirmed.put_nowait("the head")
                async for data in response.aiter_raw():
                    got.append(data)
                    confirmed.put_nowait(data)
            await front.wait(lambda: front.in_flight == 0)
        return model.calls[0].entry

    entry = asyncio.run(run())
    assert got == pieces
    assert isinstance(entry, Chunks)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_agent_that_gives_up_is_a_hang_and_the_provider_learns_of_it_at_once(kit, dialect):
    """A stream nobody reads any more must not be paid for."""
    begun = kit.told(dialect, streamed=True, chunks=kit.SAID[:2])
    learned = asyncio.Event()

    async def respond(reader, writer, _body):
        for data in kit.events(*begun)[:-1]:
            writer.write(data)
        assert await reader.read() == b""
        learned.set()

    async def run():
        below, body = kit.asked(dialect, streamed=True)
        async with kit.raw_provider(respond) as upstream, kit.recorder(upstream) as (front, model, client):
            async with client.stream("POST", front.base_url(dialect) + below, json=body) as response:
                wanted, got = b"".join(begun), b""
                async for data in response.aiter_raw():
                    got += data
                    if got == wanted:
                        break
            await learned.wait()
            await front.wait(lambda: front.in_flight == 0)
        return model.calls[0].entry

    assert entry_to_json(asyncio.run(run())) == entry_to_json(Hang(chunks=kit.SAID[:2]))


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
def test_an_agent_that_gives_up_before_the_answer_begins(kit, streamed):
    came = asyncio.Event()

    async def respond(reader, _writer, _body):
        came.set()
        await reader.read()

    async def run():
        below, body = kit.asked("openai-chat", streamed=streamed)
        async with kit.raw_provider(respond) as upstream, kit.recorder(upstream) as (front, model, client):
            asking = asyncio.create_task(client.post(front.base_url("openai-chat") + below, json=body))
            await came.wait()
            asking.cancel()
            await front.wait(lambda: front.in_flight == 0)
        return model.calls[0].entry

    assert asyncio.run(run()) == (Hang(chunks=()) if streamed else Hang())


@pytest.mark.parametrize(("dialect", "last"), [("openai-chat", b'finish_reason":"stop'), ("gemini", b"finishReason")])
def test_an_agent_that_goes_once_it_knows_that_the_answer_is_over_has_all_of_it(kit, dialect, last):
    """Some clients do not wait for what follows the last word."""
    pieces = kit.told(dialect, streamed=True)
    upto = next(at for at, piece in enumerate(pieces) if last in piece) + 1

    async def respond(reader, writer, _body):
        for data in kit.events(*pieces[:upto])[:-1]:
            writer.write(data)
        await reader.read()

    async def run():
        below, body = kit.asked(dialect, streamed=True)
        async with kit.raw_provider(respond) as upstream, kit.recorder(upstream) as (front, model, client):
            async with client.stream("POST", front.base_url(dialect) + below, json=body) as response:
                async for data in response.aiter_raw():
                    if last in data:
                        break
            await front.wait(lambda: front.in_flight == 0)
        return model.calls[0].entry

    assert asyncio.run(run()) == Chunks(chunks=kit.SAID)


def test_an_agent_that_goes_for_what_it_cannot_read_is_kept_with_the_whole_answer(kit):
    """When it has gone is chance; what the provider says to it after that is told again all the same."""
    pieces = kit.told("openai-chat", streamed=True)
    begun, garbage, rest = pieces[:2], b"data: {\n\n", pieces[2:]
    gone = asyncio.Event()

    async def respond(_reader, writer, _body):
        first, *more = kit.events(*begun, garbage, *rest)
        for at, data in enumerate((first, *more)):
            if at == len(begun) + 2:
                await gone.wait()
            writer.write(data)

    async def run():
        below, body = kit.asked("openai-chat", streamed=True)
        async with kit.raw_provider(respond) as upstream, kit.recorder(upstream) as (front, model, client):
            async with client.stream("POST", front.base_url("openai-chat") + below, json=body) as response:
                async for data in response.aiter_raw():
                    if data == garbage:
                        break
            await front.wait(lambda: front.in_flight == 0)
            gone.set()
            await model.settled()
        return model.calls[0].entry

    entry = asyncio.run(run())
    assert (entry.code, entry.wire.body) == ("MALFORMED_ANSWER", b"".join([*begun, garbage, *rest]))


def test_concurrent_calls_are_kept_apart(kit):
    """Two answers kit.told by turns: a piece of one after a piece of the other."""
    answers = {
        b"first": kit.told("openai-chat", streamed=True, chunks=kit.SAID[:2]),
        b"second": kit.told("openai-chat", streamed=True),
    }
    writers, over = {}, asyncio.Event()

    async def respond(_reader, writer, body):
        writers[b"second" if b"second" in body else b"first"] = writer
        if len(writers) < 2:
            await over.wait()
            return
        for pair in itertools.zip_longest(*(kit.events(*answers[name]) for name in answers)):
            for name, data in zip(answers, pair, strict=True):
                writers[name].write(data or b"")
                await writers[name].drain()
        over.set()

    async def run():
        below, body = kit.asked("openai-chat", streamed=True)
        bodies = [body | {"messages": [{"role": "user", "content": name.decode()}]} for name in answers]
        async with kit.raw_provider(respond) as upstream, kit.recorder(upstream) as (front, model, client):
            await asyncio.gather(*(client.post(front.base_url("openai-chat") + below, json=one) for one in bodies))
            await front.wait(lambda: front.in_flight == 0)
        return {call.request.messages[0].content[0].text: call.entry for call in model.calls}

    entries = asyncio.run(run())
    assert entries["second"] == Chunks(chunks=kit.SAID)
    assert entries["first"].chunks == kit.SAID[:2] and entries["first"].code == "STREAM_CLOSED"


@pytest.mark.parametrize("closing", [False, True], ids=["kept", "closed"])
def test_a_connection_is_used_again_as_long_as_the_provider_keeps_it(kit, closing):
    """One that was closed in between costs no call: another is made."""
    connections = []

    async def take(reader, writer):
        connections.append(0)
        while head := await reader.readuntil(b"\r\n\r\n"):
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))
            for data in kit.message(kit.told("openai-chat", streamed=False)[0]):
                writer.write(data)
            connections[-1] += 1
            if closing:
                return

    async def run():
        below, body = kit.asked("openai-chat", streamed=False)
        async with kit.listening(take) as port, kit.recorder(f"http://127.0.0.1:{port}/v1") as (front, model, client):
            for _ in range(3):
                assert (await client.post(front.base_url("openai-chat") + below, json=body)).status_code == 200
        return model.calls

    calls = asyncio.run(run())
    assert [type(call.entry) for call in calls] == [Chunks] * 3
    assert connections == ([1, 1, 1] if closing else [3])
