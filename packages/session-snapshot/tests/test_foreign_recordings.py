"""Recordings of a real model, made by another system, are served over the wire: to our agent and to official SDKs.

The session logs are read where they lie (``$SNAPSHOT_CASES``) and never copied into the repository.
"""

import asyncio
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import msgspec
import openai
import pytest
from google import genai
from llm_dialects import (
    DIALECTS,
    Chunks,
    ReasoningDelta,
    StreamChunk,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    fold,
    limits,
)
from llm_dialects.limits import leveled
from llm_mock_server.threaded import serve_in_thread
from llm_replay import Player, Recording, derive_calls
from llm_replay.files import load_scenario_recording
from session_snapshot.dialects import speaking
from session_snapshot.fixtures import load_committed
from session_snapshot.model import ReplayModel
from session_snapshot.replay import replay_loaded
from session_snapshot.runroot import run_root
from session_snapshot.suites import Place, load
from session_snapshot.tokens import LiveTokens

RECORDINGS = ("text-turn", "bash-tool-turn", "parallel-tool-calls")
SUITE = Path(__file__).parents[3] / "snapshots" / "session"


@pytest.fixture(params=RECORDINGS)
def recorded(request: pytest.FixtureRequest) -> Path:
    """The folder of one recording."""
    cases = os.environ.get("SNAPSHOT_CASES")
    if not cases:
        pytest.skip("SNAPSHOT_CASES is not set: no foreign cases here")
    return Path(cases) / "dsh" / "acp-agent" / str(request.param)


def answers(recording: Recording) -> list[tuple[StreamChunk, ...]]:
    """The chunks of every call."""
    return [call.entry.chunks for call in recording.calls if isinstance(call.entry, Chunks)]


# ── our agent ───────────────────────────────────────────────────────────────────────────────────────────────────────


def suite_of(recorded: Path, folder: Path) -> Place:
    """A suite of our agent with one scenario that is the foreign recording."""
    scenario = folder / "foreign" / recorded.name
    scenario.mkdir(parents=True)
    shutil.copy(SUITE / "agent.toml", folder / "foreign" / "agent.toml")
    (scenario / "scenario.toml").write_text(
        'description = "foreign"\nrecording = "authored"\n[expect]\nstop_reason = "end_turn"\n', encoding="utf-8"
    )
    for name in ("input.json", "session.jsonl"):
        shutil.copy(recorded / name, scenario / name)
    return Place("foreign", recorded.name, scenario)


def check_agent(recorded: Path, tmp_path: Path, dialect: str) -> list[str]:
    """Our agent asks for every recorded call, consumes all, and logs the chunks it was given: how each call compared.

    A call is ``exact`` chunk for chunk where the dialect can say it (``limits`` tells), else ``folded``.
    """
    loaded = load(suite_of(recorded, tmp_path))
    loaded = msgspec.structs.replace(loaded, agent=speaking(loaded.agent, loaded.place, dialect))
    committed = load_committed(loaded)
    with run_root() as base:
        report, capture = asyncio.run(replay_loaded(loaded, committed, base))

    assert [failure.what for failure in report.failures if failure.surface in ("agent", "consumed", "expect")] == []
    logged = [entry.chunks for log in capture.logs for entry in derive_calls(log)]
    expected = answers(committed.recording)
    compared = ["folded" if list(limits(dialect, chunks)) else "exact" for chunks in expected]
    for how, was, now in zip(compared, expected, logged, strict=True):
        lost = {limit.loss for limit in limits(dialect, was)}
        assert leveled(fold(now), lost) == leveled(fold(was), lost)
        assert how == "folded" or now == was
    return compared


def test_our_agent_gets_a_recording_chunk_for_chunk_in_a_dialect_that_can_say_it(
    recorded: Path, tmp_path: Path
) -> None:
    compared = check_agent(recorded, tmp_path, "openai-chat")

    # What the live model said arrives exactly; the third recording ends its first tool call before the second begins.
    assert compared == {"text-turn": ["exact"], "bash-tool-turn": ["exact", "exact"]}.get(
        recorded.name, ["folded", "exact"]
    )


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "openai-chat"])
def test_our_agent_gets_a_recording_equal_after_folding_in_another_dialect(
    recorded: Path, tmp_path: Path, dialect: str
) -> None:
    assert set(check_agent(recorded, tmp_path, dialect)) <= {"exact", "folded"}


# ── official SDKs ───────────────────────────────────────────────────────────────────────────────────────────────────


def player_of(recording: Recording, tmp_path: Path) -> ReplayModel:
    """A responder that plays the recording."""
    return ReplayModel(Player(recording), LiveTokens({"cwd": str(tmp_path)}, lambda _kind: []), tmp_path)


def deltas(chunks: tuple[StreamChunk, ...]) -> list[tuple[str, str]]:
    """What a stream says piece by piece: ``(kind, piece)``."""
    return [
        (type(chunk).__name__, chunk.arguments_delta if isinstance(chunk, ToolCallDelta) else chunk.text)
        for chunk in chunks
        if isinstance(chunk, TextDelta | ReasoningDelta | ToolCallDelta)
    ]


def openai_deltas(events: Iterator[Any]) -> list[tuple[str, str]]:
    """The same as the SDK gives it out."""
    found = []
    for event in events:
        for choice in event.choices:
            reasoning = getattr(choice.delta, "reasoning_content", None)
            found += [("ReasoningDelta", reasoning)] if reasoning is not None else []
            found += [("TextDelta", choice.delta.content)] if choice.delta.content is not None else []
            found += [("ToolCallDelta", call.function.arguments) for call in choice.delta.tool_calls or ()]
    return [(kind, piece) for kind, piece in found if piece]


def test_the_openai_sdk_gets_every_piece_as_it_was_recorded(recorded: Path, tmp_path: Path) -> None:
    recording = load_scenario_recording(recorded)

    with (
        serve_in_thread(player_of(recording, tmp_path)) as server,
        openai.OpenAI(base_url=server.base_url("openai-chat"), api_key="x", max_retries=0) as client,
    ):
        for chunks in answers(recording):
            stream = client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "go"}], stream=True
            )
            with stream:
                assert openai_deltas(iter(stream)) == [pair for pair in deltas(chunks) if pair[1]]


def test_the_anthropic_sdk_gets_the_blocks_as_they_were_recorded(recorded: Path, tmp_path: Path) -> None:
    recording = load_scenario_recording(recorded)

    with (
        serve_in_thread(player_of(recording, tmp_path)) as server,
        anthropic.Anthropic(base_url=server.base_url("anthropic-messages"), api_key="x", max_retries=0) as client,
    ):
        for chunks in answers(recording):
            with client.messages.stream(
                model="m", max_tokens=100, messages=[{"role": "user", "content": "go"}]
            ) as stream:
                message = stream.get_final_message()
            said = [(block.type, sdk_content(block)) for block in message.content]
            assert said == [our_content(block) for block in fold(chunks).blocks]


def responses_deltas(events: Iterator[Any]) -> list[tuple[str, str]]:
    """What the SDK gives out of a stream of OpenAI responses, piece by piece."""
    found = [(RESPONSES_DELTAS[event.type], event.delta) for event in events if event.type in RESPONSES_DELTAS]
    return [(kind, piece) for kind, piece in found if piece]


RESPONSES_DELTAS = {
    "response.reasoning_text.delta": "ReasoningDelta",
    "response.reasoning_summary_text.delta": "ReasoningDelta",
    "response.output_text.delta": "TextDelta",
    "response.function_call_arguments.delta": "ToolCallDelta",
}


def test_the_openai_sdk_gets_every_piece_as_it_was_recorded_from_responses_too(recorded: Path, tmp_path: Path) -> None:
    recording = load_scenario_recording(recorded)

    with (
        serve_in_thread(player_of(recording, tmp_path)) as server,
        openai.OpenAI(base_url=server.base_url("openai-responses"), api_key="x", max_retries=0) as client,
    ):
        for chunks in answers(recording):
            with client.responses.create(model="m", input="go", stream=True) as stream:
                # Items are told one after another: only pieces of calls that were told by turns move.
                assert sorted(responses_deltas(iter(stream))) == sorted(pair for pair in deltas(chunks) if pair[1])


def gemini_parts(events: Iterator[Any]) -> list[tuple[str, Any]]:
    """What Google's SDK gives out of a stream: pieces of text, and calls whole."""
    parts = [part for event in events for part in event.candidates[0].content.parts]
    return [
        ("ToolCall", (part.function_call.name, part.function_call.args))
        if part.function_call
        else ("ReasoningDelta" if part.thought else "TextDelta", part.text)
        for part in parts
    ]


def gemini_expected(chunks: tuple[StreamChunk, ...]) -> list[tuple[str, Any]]:
    """The same of ours."""
    calls = [block for block in fold(chunks).blocks if isinstance(block, ToolCallBlock)]
    texts = [pair for pair in deltas(chunks) if pair[0] != "ToolCallDelta" and pair[1]]
    return texts + [("ToolCall", (call.name, json.loads(call.arguments))) for call in calls]


def test_the_google_sdk_gets_every_piece_as_it_was_recorded(recorded: Path, tmp_path: Path) -> None:
    recording = load_scenario_recording(recorded)

    with (
        serve_in_thread(player_of(recording, tmp_path)) as server,
        genai.Client(api_key="x", http_options={"base_url": server.base_url("gemini")}) as client,
    ):
        for chunks in answers(recording):
            stream = client.models.generate_content_stream(model="m", contents="go")
            assert gemini_parts(iter(stream)) == gemini_expected(chunks)


def sdk_content(block: Any) -> Any:
    """What an SDK's block holds."""
    return getattr(block, {"text": "text", "thinking": "thinking", "tool_use": "input"}[block.type])


def our_content(block: Any) -> tuple[str, Any]:
    """The same of ours, in the SDK's words."""
    if isinstance(block, TextBlock):
        return "text", block.text
    if isinstance(block, ToolCallBlock):
        return "tool_use", json.loads(block.arguments)
    return "thinking", block.text
