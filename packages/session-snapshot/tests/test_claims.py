"""What agents say of usage: where it is found, and that real ones are honest."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from llm_dialects.chunks import Usage
from llm_dialects.requests import Request
from llm_replay import SessionLog, parse_log
from session_snapshot.claims import claims_in_log
from session_snapshot.invariants import InContext, Logged, SentCall, Spent, check_wire
from session_snapshot.protocols import acp

HEADER = {"type": "session", "format": "session-snapshot", "version": 1, "id": "x", "createdAt": 0, "cwd": "/"}


def log(*events: dict[str, Any], **header: int) -> SessionLog:
    """A session log with these events."""
    return parse_log("".join(json.dumps(row) + "\n" for row in (HEADER | header, *events)), "session.jsonl")


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data}


COUNT = {"inputTokens": 7, "outputTokens": 2}


@pytest.mark.parametrize(
    ("rows", "header", "where"),
    [
        ([event("assistant/message", turn=1, step=2, usage=COUNT)], {}, ["assistant/message (turn 1, step 2)"]),
        ([event("compaction/summary", usage=COUNT)], {}, ["compaction/summary"]),
        ([event("assistant/message", usage=COUNT)] * 2, {"seedLength": 1}, ["assistant/message"]),
        ([event("assistant/message", turn=1), event("step/end", usage=COUNT)], {}, []),
        ([event("assistant/message", usage="much")], {}, []),
    ],
)
def test_what_a_log_says(rows: list[dict[str, Any]], header: dict[str, int], where: list[str]) -> None:
    expected = [Logged(f"session.1.jsonl: {one}", Usage(7, 2)) for one in where]
    assert list(claims_in_log("session.1.jsonl", log(*rows, **header))) == expected


def update(kind: str, used: object) -> dict[str, Any]:
    return {"method": "session/update", "params": {"update": {"sessionUpdate": kind, "used": used}}}


@pytest.mark.parametrize(
    ("frame", "spent", "used"),
    [
        ({"id": 1, "result": {"usage": COUNT}}, (7, 2, None), None),
        ({"id": 1, "result": {"usage": COUNT | {"totalTokens": 9}}}, (7, 2, 9), None),
        ({"id": 1, "result": {"usage": {"inputTokens": "7"}}}, None, None),
        ({"id": 1, "result": None}, None, None),
        (update("usage_update", 9), None, 9),
        (
            {"method": "session/update", "params": {"update": {"sessionUpdate": "usage_update", "used": "9"}}},
            None,
            None,
        ),
        ({"method": "session/update", "params": {"update": {"sessionUpdate": "plan", "used": 9}}}, None, None),
    ],
)
def test_what_a_frame_says(frame: dict[str, Any], spent: tuple[int, int, int | None] | None, used: int | None) -> None:
    assert (acp.tokens_spent(frame), acp.tokens_in_context(frame)) == (spent, used)


# ── real agents ─────────────────────────────────────────────────────────────────────────────────────────────────────

EACH = Usage(100, 10)
"""What the model of these captures said that each of its answers cost."""

CALLS = 12
"""More than any of them made."""

HONEST = {"claude": set(), "codex": set(), "opencode": set(), "hermes": {"context"}}
"""The checks that real agents break: the last tells of its context what its own tokenizer estimates."""


@pytest.mark.parametrize("agent", HONEST)
def test_real_agents_say_what_they_were_told(agent: str) -> None:
    if "SNAPSHOT_CASES" not in os.environ:
        pytest.skip("SNAPSHOT_CASES is not set: the frames of real agents are not in this repository")
    call = SentCall(0, 0, None, 0, Request((), (), (), {}), b"{}", EACH)
    claims = [claim for path in frames_of(agent) for claim in claims_in(path)]
    assert len(claims) > 10
    assert {breach.check for breach in check_wire([call] * CALLS, 0, claims)} == HONEST[agent]


def frames_of(agent: str) -> list[Path]:
    """The captures of an agent, one a run."""
    return sorted(Path(os.environ["SNAPSHOT_CASES"], "acp", agent).glob("*/frames.jsonl"))


def claims_in(path: Path) -> list[Spent | InContext]:
    """What the agent of a capture says of usage."""
    found: list[Spent | InContext] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        row = json.loads(line)
        if row["dir"] == "in":
            spent, used = acp.tokens_spent(row["frame"]), acp.tokens_in_context(row["frame"])
            found += [Spent(f"{path.parent.name}:{number}", CALLS, *spent)] if spent is not None else []
            found += [InContext(f"{path.parent.name}:{number}", CALLS, used)] if used is not None else []
    return found
