"""The same round trip with bytes from a server that nobody here wrote: ``@copilotkit/aimock``, which speaks all four
dialects (pinned in ``bench/peers``). Its ids are random and its clock runs, so that what is compared is what a client
reads: chunk for chunk, the error, status, ``retry-after``; by the official SDKs as well.
"""

import asyncio
import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from llm_dialects import Chunks, Throw, entry_to_json, fold
from llm_mock_server import serve_in_thread
from session_snapshot.recording.recorder import RecordModel

ROOT = Path(__file__).parents[3]
CLI = ROOT / "bench/peers/node_modules/@copilotkit/aimock/dist/cli.js"
JUDGE = ROOT / "packages/llm-mock-server/tests/test_sdk_table.py"

TEXT = "Hello there, wörld 🙂. One two three four five six."
TOUCH = {"name": "touch", "arguments": '{"path":"a.txt"}'}
LOOK = {"name": "look", "arguments": "{}"}
ERROR = {"message": "Slow down", "type": "rate_limit_error", "code": "rate_limit_exceeded"}

# what is asked -> what it answers, and how
ANSWERS = {
    "say something": {"response": {"content": TEXT}},
    "touch and look": {"response": {"toolCalls": [TOUCH, LOOK]}},
    "think first": {"response": {"content": "So.", "reasoning": "Let me think about it for a good while."}},
    "say and touch": {"response": {"content": "I touch it.", "toolCalls": [TOUCH]}},
    "be cut short": {"response": {"content": TEXT, "finishReason": "length"}},
    "count it": {
        "response": {"content": TEXT, "usage": {"prompt_tokens": 7, "completion_tokens": 9, "total_tokens": 16}},
    },
    "slow down": {"response": {"error": ERROR, "status": 429}},
    "be overloaded": {"response": {"error": {"message": "Overloaded", "type": "overloaded_error"}, "status": 503}},
    "break off": {"response": {"content": TEXT}, "truncateAfterChunks": 2},
    "garble it": {"response": {"content": TEXT}, "chaos": {"malformedRate": 1}},
    "drop it": {"response": {"content": TEXT}, "chaos": {"dropRate": 1}},
    "hang up": {"response": {"content": TEXT}, "chaos": {"disconnectRate": 1}},
}  # fmt: skip
REFUSED = ("slow down", "be overloaded", "garble it", "drop it", "hang up")
FAILING = {"stream": (*REFUSED, "break off"), "array": (*REFUSED, "break off"), "whole": REFUSED}

DIALECTS = {"openai-chat": "/v1", "openai-responses": "/v1", "anthropic-messages": "", "gemini": ""}
MODES = [(dialect, mode) for dialect in DIALECTS for mode in ("stream", "whole")] + [("gemini", "array")]


@pytest.fixture(scope="module")
def aimock(tmp_path_factory):
    """Where it listens."""
    node = shutil.which("node")
    if node is None or not CLI.is_file():
        pytest.skip("no Node, or no bench/peers/node_modules: (cd bench/peers && npm ci)")
    fixtures = tmp_path_factory.mktemp("aimock") / "fixtures.json"
    answers = [{"match": {"userMessage": asked}} | answer for asked, answer in ANSWERS.items()]
    fixtures.write_text(json.dumps({"fixtures": answers}), encoding="utf-8")
    command = [node, str(CLI), "-p", "0", "-c", "8", "-f", str(fixtures)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        told = iter(process.stdout.readline, "")
        yield next(found[0] for line in told if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
        process.terminate()
        process.stdout.close()


@pytest.mark.parametrize("asked", ANSWERS)
@pytest.mark.parametrize(("dialect", "mode"), MODES)
def test_what_it_says_recorded_and_replayed_is_the_same(kit, aimock, dialect, mode, asked):
    call = kit.call(dialect, mode, asked)

    async def run():
        async with kit.recording(aimock + DIALECTS[dialect]) as (front, model):
            seen = await kit.ask(front.base_url(dialect), call)
            await front.wait(lambda: front.in_flight == 0)
        entry = model.calls[0].entry
        return seen, entry, *await kit.replayed(kit.replaying(entry), call)

    seen, entry, replay, again = asyncio.run(run())
    assert entry_to_json(again) == entry_to_json(entry)
    assert kit.view(call, replay) == kit.view(call, seen)
    assert isinstance(entry, Throw if asked in FAILING[mode] else Chunks)
    if isinstance(entry, Chunks):
        # An answer as it should be needs no further words. (Who asks Google for an array gets one; here, events.)
        assert ("wire" in entry_to_json(entry)) is (mode == "array")
        check_said(asked, fold(entry.chunks))


def check_said(asked, folded):
    """What it was told to say was understood."""
    response = ANSWERS[asked]["response"]
    said = {kind: [b for b in folded.blocks if type(b).__name__ == kind] for kind in ("TextBlock", "ToolCallBlock")}
    assert "".join(block.text for block in said["TextBlock"]) == response.get("content", "")
    assert [b.name for b in said["ToolCallBlock"]] == [call["name"] for call in response.get("toolCalls", [])]
    # It gives Gemini a finish for calls that Google does not have, and Responses no reason; they travel as they are.
    called = ("tool-calls", "FUNCTION_CALL")
    wanted = (
        ("max-tokens", "incomplete") if "finishReason" in response else called if "toolCalls" in response else ("stop",)
    )
    assert folded.finish.kind in wanted


def loaded(path):
    spec = importlib.util.spec_from_file_location("sdk_table_judge", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def judge():
    """What asks and reads with the official SDKs."""
    return loaded(JUDGE)


@pytest.mark.parametrize("asked", ["say and touch", "think first", "count it", "slow down", "break off", "garble it"])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
def test_an_sdk_sees_the_same_directly_behind_the_recorder_and_in_the_replay(
    kit, aimock, judge, monkeypatch, dialect, streamed, asked
):
    base = aimock + DIALECTS[dialect]
    client = httpx.AsyncClient(trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))
    model = RecordModel(client, base, kit.KEY)
    direct = see(judge, monkeypatch, dialect, base, asked, streamed)
    with serve_in_thread(model) as front:
        recorded = see(judge, monkeypatch, dialect, front.base_url(dialect), asked, streamed)
    with serve_in_thread(kit.replaying(model.calls[0].entry)) as server:
        replay = see(judge, monkeypatch, dialect, server.base_url(dialect), asked, streamed)
    assert without_ids(recorded) == without_ids(direct)
    assert replay == recorded


def see(judge, monkeypatch, dialect, base, asked, streamed):
    """What an SDK makes of the answer to ``asked``. (Events here lack members that the SDK's types promise.)"""
    driver = judge.DRIVERS[dialect](base)
    ask_as(driver, dialect, asked, monkeypatch)
    monkeypatch.setattr(judge.Driver, "told", told)
    monkeypatch.setattr(judge, "is_what_its_type_says", lambda thing: hasattr(thing, "model_dump"))
    try:
        return driver.run(streamed=streamed, hurry=False)
    finally:
        driver.client.close()


def ask_as(driver, dialect, text, monkeypatch):
    """Have an SDK ask for this text."""
    if dialect == "gemini":
        driver.asked = lambda hurry: {"model": "mock-model", "contents": text}
        return
    messages = [{"role": "user", "content": text}]
    member = "input" if dialect == "openai-responses" else "messages"
    monkeypatch.setattr(type(driver), "asked", type(driver).asked | {member: messages})


def told(driver, error, when):
    """The members of a row that tell an exception; ids of requests are this server's own."""
    row = {"raises": type(error), "when": when, "status": driver.status(error), "word": driver.word(error)}
    response = getattr(error, "response", None)
    row["retry_after"] = None if response is None else response.headers.get("retry-after")
    return {key: value for key, value in row.items() if value is not None}


def without_ids(row):
    """A row whose tool calls have no ids: each asking makes others."""
    return row | {"tools": [[name, said] for _, name, said in row["tools"]]} if "tools" in row else row
