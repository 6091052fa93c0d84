"""What the recorder forwards and keeps, in every dialect: the real key instead of the dummy, the path, the chunks."""

import asyncio
from typing import Any

import httpx
import pytest
from llm_dialects import DIALECTS, Chunks, TextBlock, Throw, fold
from llm_mock_server import MockServer, ScriptedProvider, serve
from session_snapshot.calls import LiveCall
from session_snapshot.recording.recorder import RecordModel

PONG: dict[str, Any] = {"kind": "say", "text": "PONG", "usage": {"inputTokens": 5, "outputTokens": 2}}
FULL: dict[str, Any] = {"kind": "throw", "chunks": [], "message": "slow down", "code": "RATE_LIMIT"}
HI = [{"role": "user", "content": "hi"}]
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
STREAM = "/v1beta/models/m:streamGenerateContent"
PROJECT = "/v1beta1/projects/p/locations/l/publishers/google/models"

# dialect, what follows the agent's base URL, headers that show the dummy key, body, what the row's params hold
CALLS: list[tuple[str, str, dict[str, str], dict[str, Any], dict[str, Any]]] = [
    (
        "openai-chat",
        "/chat/completions",
        {"authorization": "Bearer dummy"},
        {"model": "m", "messages": HI, "stream": True, "stream_options": {"include_usage": True}},
        {"model": "m", "stream": True, "stream_options": {"include_usage": True}},
    ),
    (
        "openai-responses",
        "/responses",
        {"authorization": "Bearer dummy"},
        {"model": "m", "input": HI, "stream": True},
        {"model": "m", "stream": True},
    ),
    (
        "anthropic-messages",
        "/v1/messages",
        {"x-api-key": "dummy"},
        {"model": "m", "max_tokens": 9, "messages": HI},
        {"model": "m", "max_tokens": 9},
    ),
    (
        "gemini",
        f"{STREAM}?alt=sse",
        {"x-goog-api-key": "dummy"},
        CONTENTS,
        {"model": "m", "stream": True, "alt": "sse"},
    ),
    ("gemini", f"{STREAM}?key=dummy", {}, CONTENTS, {"model": "m", "stream": True}),
    ("gemini", f"/mount{STREAM}?key=dummy&alt=sse", {}, CONTENTS, {"model": "m", "stream": True, "alt": "sse"}),
    ("gemini", f"{PROJECT}/m:generateContent?$alt=json&key=dummy", {}, CONTENTS, {"model": "m"}),
]
FORWARDED = {
    "/chat/completions": "/v1/chat/completions",
    "/responses": "/v1/responses",
    f"{STREAM}?key=dummy": STREAM,
    f"/mount{STREAM}?key=dummy&alt=sse": f"{STREAM}?alt=sse",
    f"{PROJECT}/m:generateContent?$alt=json&key=dummy": f"{PROJECT}/m:generateContent?$alt=json",
}


async def record(
    dialect: str, below: str, headers: dict[str, str], body: dict[str, Any], entry: dict[str, Any]
) -> tuple[httpx.Response, LiveCall, MockServer]:
    """Ask one thing through a recorder, of a provider that lets in the real key only."""
    async with (
        serve(ScriptedProvider([entry]), api_key="the real key") as provider,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        model = RecordModel(client, provider.base_url(dialect), "the real key")
        async with serve(model) as front:
            response = await client.post(front.base_url(dialect) + below, headers=headers, json=body)
        assert not front.failures
    return response, model.calls[0], provider


EVERY_CALL = pytest.mark.parametrize(
    ("dialect", "below", "headers", "body", "params"), CALLS, ids=[f"{c[0]} {c[1]}" for c in CALLS]
)


@EVERY_CALL
def test_a_call_is_forwarded_with_the_real_key_and_kept(
    dialect: str, below: str, headers: dict[str, str], body: dict[str, Any], params: dict[str, Any]
) -> None:
    response, call, provider = asyncio.run(record(dialect, below, headers, body, PONG))

    asked = provider.requests[0]
    assert f"{asked.path}?{asked.query}".rstrip("?") == FORWARDED.get(below, below)
    assert b"PONG" in response.content
    assert call.request.params == params
    assert isinstance(call.entry, Chunks)
    folded = fold(call.entry.chunks)
    assert folded.blocks == (TextBlock(text="PONG"),)
    assert folded.usage is not None and (folded.usage.input_tokens, folded.usage.output_tokens) == (5, 2)
    assert folded.finish is not None and folded.finish.kind == "stop"


@EVERY_CALL
def test_an_error_is_passed_on_and_kept(
    dialect: str, below: str, headers: dict[str, str], body: dict[str, Any], params: dict[str, Any]
) -> None:
    response, call, _ = asyncio.run(record(dialect, below, headers, body, FULL))

    assert response.status_code == 429
    assert call.entry == Throw(chunks=(), message="slow down", code="RATE_LIMIT")


def test_every_dialect_is_recorded_here() -> None:
    assert {call[0] for call in CALLS} == set(DIALECTS)
