"""Every committed frame is one that the official ACP schema knows: a golden that pins nonsense is found here.

The schema costs a second to load, so no run ever does; this test is its place.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from acp import schema

from ci.projects import ROOT

GOLDENS = sorted((ROOT / "snapshots").glob("*/*/stdout.golden.jsonl"))

RESULTS = {
    "initialize": schema.InitializeResponse,
    "authenticate": schema.AuthenticateResponse,
    "newSession": schema.NewSessionResponse,
    "loadSession": schema.LoadSessionResponse,
    "setMode": schema.SetSessionModeResponse,
    "prompt": schema.PromptResponse,
    "promptContent": schema.PromptResponse,
    "promptAndCancel": schema.PromptResponse,
    "promptExpectError": None,
    "newSessionExpectError": None,
}
"""What answers each op that sends a request; ``None``: an error."""

MESSAGES = {
    "session/update": schema.SessionNotification,
    "session/request_permission": schema.RequestPermissionRequest,
}


def name_of(golden: Path) -> str:
    return f"{golden.parent.parent.name}/{golden.parent.name}"


def sent_ops(scenario: Path) -> list[str]:
    """The ops of a scenario that send a request, in the order of the client's ids."""
    steps = json.loads((scenario / "input.json").read_text(encoding="utf-8"))["steps"]
    return [step["op"] for step in steps if step["op"] in RESULTS]


def check_frame(frame: dict[str, Any], ops: list[str]) -> None:
    """Hold one frame against the schema."""
    assert frame["jsonrpc"] == "2.0"
    if "method" in frame:
        MESSAGES[frame["method"]].model_validate(frame["params"])
        return
    model = RESULTS[ops[frame["id"]]]
    if model is None:
        assert {"code", "message"} <= frame["error"].keys()
    else:
        model.model_validate(frame["result"])


@pytest.mark.parametrize("golden", GOLDENS, ids=name_of)
def test_every_frame_is_one_of_the_protocol(golden: Path) -> None:
    ops = sent_ops(golden.parent)
    frames = [json.loads(line) for line in golden.read_text(encoding="utf-8").splitlines()]

    for frame in frames:
        check_frame(frame, ops)

    assert [frame["id"] for frame in frames if "method" not in frame] == list(range(len(ops)))


def test_a_frame_that_is_not_of_the_protocol_is_found() -> None:
    with pytest.raises(ValueError, match="stop"):
        check_frame({"jsonrpc": "2.0", "id": 0, "result": {"stopReason": 7}}, ["prompt"])


def test_there_are_goldens() -> None:
    assert len(GOLDENS) >= 14
