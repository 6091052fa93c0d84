"""Hold a response, or an update, against what a step expects of it; pure."""

import json
from collections.abc import Mapping
from typing import Any

from session_snapshot import steps as ops
from session_snapshot.errors import AgentError


def check_response(step: ops.Step, response: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a response (empty where it is no object), or where an error is expected, nothing.

    Raises:
        AgentError: an error where none was expected, none where one was, or another code.
    """
    error = response.get("error")
    if isinstance(step, ops.NewSessionExpectError | ops.PromptExpectError):
        expect_error(step, error, response)
        return {}
    if error is not None:
        raise AgentError(
            f"{ops.op_of(step)} was answered by an error: {in_json(error)}",
            f"correct the agent, or use {ops.op_of(step)}ExpectError if this is what the scenario is about",
        )
    result = response.get("result")
    return result if isinstance(result, dict) else {}


def expect_error(
    step: ops.NewSessionExpectError | ops.PromptExpectError, error: Any, response: Mapping[str, Any]
) -> None:
    """Check that a response is the error its step expects."""
    if error is None:
        raise AgentError(
            f"{ops.op_of(step)} was answered by a result: {in_json(response.get('result'))}",
            "correct the agent, or the step if success is right",
        )
    code = error.get("code") if isinstance(error, dict) else None
    if step.code is not None and code != step.code:
        raise AgentError(
            f"{ops.op_of(step)} expects code {step.code}, got {in_json(error)}", "correct the agent, or the step's code"
        )


def matches(pattern: ops.UpdatePattern, update: Mapping[str, Any]) -> bool:
    """Whether an update (empty: the frame is none) is of the pattern's kind and holds its text."""
    if not update or (pattern.kind and update.get("sessionUpdate") != pattern.kind):
        return False
    return pattern.contains in in_json(update)


def in_json(value: object) -> str:
    """A value as JSON text."""
    return json.dumps(value, ensure_ascii=False)
