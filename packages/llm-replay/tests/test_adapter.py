"""The adapter in a process of its own, as an agent has it."""

import asyncio
import json
import os
import subprocess
import sys

import pytest
from llm_dialects import to_json
from llm_replay import (
    FixtureError,
    Recording,
    ReplayAdapter,
    ReplayedProviderError,
    UnrecordedCallError,
    format_rows,
    requests_to_rows,
)

# The agent: asks what it is told to, one request after the other, and prints what it hears.
AGENT = """
import asyncio, json, sys
from llm_replay import ReplayAdapter, ReplayedProviderError
from llm_replay.messages import request_from_json

async def ask(adapter, asked):
    heard = []
    try:
        async with asyncio.timeout(asked.get("seconds")):
            async for chunk in adapter.stream(request_from_json(asked["request"]), asked.get("key")):
                heard.append(getattr(chunk, "text", type(chunk).__name__))
                if asked.get("cancel_at") == len(heard):
                    raise asyncio.CancelledError
    except ReplayedProviderError as error:
        heard.append(f"{error.code} {error.status}: {error}")
    except (TimeoutError, asyncio.CancelledError):
        heard.append("cancelled")
    return heard

adapter = ReplayAdapter.from_environment()
for asked in json.load(sys.stdin):
    print(json.dumps(asyncio.run(ask(adapter, asked))))
"""

LOG = '{"type":"session","format":"session-snapshot","version":1,"id":"s","createdAt":0}\n'
STOP = {"type": "finish", "reason": {"kind": "stop"}}


def chunk(value, turn):
    return json.dumps({"type": "assistant/chunk", "data": {"turn": turn, "step": 1, "chunk": value}}) + "\n"


def log(*texts):
    deltas = [chunk({"type": "text-delta", "index": 0, "text": text}, turn) for turn, text in enumerate(texts)]
    return LOG + "".join(delta + chunk(STOP, turn) for turn, delta in enumerate(deltas))


class Agent:
    """Runs the agent over files in ``folder``."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = {"SNAPSHOT_FILE": self.write("session.jsonl", log("a", "b"))}

    def write(self, name, text):
        (self.folder / name).write_text(text, "utf-8")
        return str(self.folder / name)

    def set(self, name, file, text):
        self.environment[name] = self.write(file, text)

    def run(self, *asked):
        """What the agent heard, and its report."""
        report = self.folder / "report.json"
        environment = os.environ | self.environment | {"SNAPSHOT_REPORT": str(report)}
        told = [item if isinstance(item, dict) else {"request": to_json(item)} for item in asked]
        done = subprocess.run(
            [sys.executable, "-c", AGENT],
            input=json.dumps(told).encode(),
            env=environment,
            cwd=self.folder,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert not list(self.folder.glob("*.part"))
        return [json.loads(line) for line in done.stdout.splitlines()], json.loads(report.read_bytes())


@pytest.fixture
def agent(tmp_path):
    return Agent(tmp_path)


def record_requests(agent, kit, *requests):
    calls = kit.record(*requests).calls
    agent.set("SNAPSHOT_REQUESTS", "requests.golden.jsonl", format_rows(requests_to_rows(calls, lambda _: "main")))


def test_calls_are_answered_and_all_of_them_consumed(agent, kit):
    first, second = kit.request("u x"), kit.request("u x", "a a", "u y")
    record_requests(agent, kit, first, second)
    heard, report = agent.run(first, second)
    assert heard == [["a", "Finish"], ["b", "Finish"]]
    assert report == {
        "consumed": ["session.jsonl#0", "session.jsonl#1"],
        **{name: [] for name in ("unconsumed", "unrecorded", "repeated", "drifted")},
    }


def test_what_is_not_as_recorded_is_reported(agent, kit):
    first, second = kit.request("u x"), kit.request("u x", "a a", "u y")
    record_requests(agent, kit, first, second)
    drifted = kit.request("u x", temperature=1)
    heard, report = agent.run(drifted, drifted, kit.request("u x", temperature=2))
    assert heard[0] == heard[1] == ["a", "Finish"]
    assert heard[2][0].startswith("UNRECORDED_CALL 400: nobody recorded")
    assert report["unconsumed"] == ["session.jsonl#1"]
    assert report["repeated"] == [{"source": "session.jsonl#0", "of": 0}]
    (drift,) = report["drifted"]
    assert (drift["source"], drift["differences"][0]["path"]) == ("session.jsonl#0", "/params/temperature")


def test_a_call_nobody_recorded_is_an_error_and_reported(agent, kit):
    texts = ("u x", "a a", "u y", "a b", "u z")
    asked = [kit.request(*texts[:length]) for length in (1, 3, 5)]
    record_requests(agent, kit, *asked[:2])
    heard, report = agent.run(*asked)
    message = "nobody recorded this model call; the nearest recorded one is session.jsonl#1"
    assert heard[2] == [f"UNRECORDED_CALL 400: {message}"]
    assert [call["nearest"] for call in report["unrecorded"]] == ["session.jsonl#1"]


def test_tokens_have_the_live_values_when_an_answer_is_said(agent, kit):
    agent.set("SNAPSHOT_FILE", "session.jsonl", log("read {{cwd}}/a as {{sessionId:1}}, not {{{{cwd}}", "b"))
    first = kit.request("u work in {{cwd}} as {{sessionId:1}}")
    record_requests(agent, kit, first, kit.request("u work in {{cwd}} as {{sessionId:1}}", "a a", "u y"))
    heard, report = agent.run(
        kit.request(f"u work in {agent.folder} as s-77"),
        kit.request(f"u work in {agent.folder} as s-77", "a a", "u y"),
    )
    assert heard[0] == [f"read {agent.folder}/a as s-77, not {{{{cwd}}}}", "Finish"]
    assert report["drifted"] == [] and len(report["consumed"]) == 2


def test_an_override_fails_hangs_and_echoes(agent, kit):
    echo = {"type": "text-delta", "index": 0, "text": "job {{fromRequest:job-(\\S+)}}"}
    entries = [
        {"kind": "throw", "chunks": [], "message": "slow down", "code": "RATE_LIMIT", "status": 429},
        {"kind": "throw", "chunks": [echo], "message": "cut", "code": "STREAM_CLOSED"},
        {"kind": "chunks", "chunks": [echo, STOP]},
        {"kind": "hang", "readyFile": "ready"},
    ]
    agent.set("SNAPSHOT_OVERRIDE", "replay.override.json", json.dumps(entries))
    asked = to_json(kit.request("u job-1 then job-{{cwd}}"))
    heard, report = agent.run(*[{"request": asked}] * 3, {"request": asked, "seconds": 0.01})
    assert heard == [
        ["RATE_LIMIT 429: slow down"],
        ["job {{cwd}}", "STREAM_CLOSED None: cut"],
        ["job {{cwd}}", "Finish"],
        ["BlockStart", "partial", "cancelled"],
    ]
    assert (agent.folder / "ready").exists()
    assert report["unconsumed"] == []


def test_sessions_without_recorded_requests_bind_by_first_call(agent, kit):
    agent.environment["SNAPSHOT_CHILD_FILES"] = os.pathsep.join(
        agent.write(f"session.{at}.jsonl", log(text)) for at, text in ((1, "c"), (2, "d"))
    )
    asked = to_json(kit.request("u x"))
    heard, report = agent.run(*({"request": asked, "key": key} for key in ("main", "one", "main", "one")))
    assert [answer[0] for answer in heard[:3]] == ["a", "c", "b"]
    assert heard[3][0].startswith("UNRECORDED_CALL")
    assert report["unconsumed"] == ["session.2.jsonl#0"]


def test_without_its_file_the_adapter_does_not_start():
    with pytest.raises(FixtureError, match="SNAPSHOT_FILE is not set"):
        ReplayAdapter.from_environment({})


def test_a_reader_that_goes_away_leaves_nothing_behind(kit):
    """A stream is closed where its reader stops: the call stays consumed, the next one is bound as ever."""

    async def read_one():
        stream = adapter.stream(kit.request("u x"))
        first = await anext(stream)
        await stream.aclose()
        return first

    recording = kit.record(kit.request("u x"))
    adapter = ReplayAdapter(recording, {})
    assert asyncio.run(read_one()) == recording.calls[0].entry.chunks[0]
    assert adapter.report()["unconsumed"] == []
    adapter.write_report()


def test_an_empty_recording_refuses_every_call(kit):
    async def read():
        return [chunk async for chunk in ReplayAdapter(Recording(()), {}).stream(kit.request("u x"))]

    with pytest.raises(UnrecordedCallError, match="none at all") as caught:
        asyncio.run(read())
    assert isinstance(caught.value, ReplayedProviderError)
