"""Events never make the server wait, and are not written to nobody."""

import asyncio
import contextlib
import json
import os
import sys
import threading

import pytest
from llm_mock_server.events import EventWriter, result_event, stdout_descriptor
from llm_mock_server.journal import CapturedRequest


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    yield reading, writing
    for end in (reading, writing):
        with contextlib.suppress(OSError):  # closed by the test
            os.close(end)


def read_all(reading):
    """Read until there is an end, in a thread: the writer may be blocked by a full pipe."""
    got = bytearray()

    def read():
        while piece := os.read(reading, 65536):
            got.extend(piece)

    thread = threading.Thread(target=read)
    thread.start()
    return got, thread


def test_events_are_lines_in_order(pipe):
    reading, writing = pipe
    writer = EventWriter(writing)
    for number in range(1000):
        writer.emit("request", {"number": number})
    got, thread = read_all(reading)
    writer.close()
    os.close(writing)
    thread.join()
    rows = [json.loads(line) for line in got.splitlines()]
    assert rows == [{"type": "request", "number": number} for number in range(1000)]
    writer.emit("request", {})


def test_nobody_reads_and_nobody_waits(pipe):
    """What did not fit is counted, and said as soon as something fits again."""
    reading, writing = pipe
    writer = EventWriter(writing, limit=10)
    for _ in range(100):
        writer.emit("request", {"x": "y" * 100_000})
    writer.close(patience=0)
    got, thread = read_all(reading)
    writer.close()
    os.close(writing)
    thread.join()
    assert 1 <= len(got.splitlines()) < 100


def test_what_was_skipped_is_said(pipe):
    reading, writing = pipe
    writer = EventWriter(writing, limit=2)
    while not writer._skipped:
        writer.emit("request", {"x": "y" * 100_000})
    got, thread = read_all(reading)
    while writer._skipped:
        writer.emit("request", {"last": True})
    writer.close()
    os.close(writing)
    thread.join()
    rows = [json.loads(line) for line in got.splitlines()]
    assert [row["type"] for row in rows[-2:]] == ["skipped", "request"]
    assert rows[-2]["events"] >= 1


@pytest.mark.parametrize("write", [False, True])
def test_the_end_of_the_reader_is_noticed(pipe, write):
    """Before anything is written where the platform tells, else at the next event."""
    reading, writing = pipe

    async def scene():
        gone = asyncio.Event()
        writer.watch(gone.set)
        os.close(reading)
        if write or sys.platform == "win32":
            writer.emit("request", {})
        await gone.wait()

    writer = EventWriter(writing)
    asyncio.run(asyncio.wait_for(scene(), 10))
    writer.close()


def test_nothing_is_written_where_there_is_no_stdout(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert stdout_descriptor() is None
    writer = EventWriter(None)

    async def scene():
        writer.watch(lambda: None)
        writer.emit("request", {})

    asyncio.run(scene())
    writer.close()


def test_a_result_says_everything_but_what_is_not_dropped():
    captured = CapturedRequest(
        number=3, call=1, kind="call", dialect="gemini", method="POST", path="/", query="", headers=(), body=b""
    )
    captured.label = "half a \ud83d"
    told = {"type": "result", "number": 3, "call": 1, "label": "half a \ud83d", "cursor": None, "status": None}
    told |= {"outcome": None, "bodiesSent": 0, "bytesSent": 0, "error": None}
    assert json.loads(result_event(captured, 0)) == told
    assert json.loads(result_event(captured, 7)) == told | {"dropped": 7}
