"""Responses held against their steps; updates against patterns; placeholders of a script."""

import pytest
from session_snapshot import steps as ops
from session_snapshot.errors import AgentError, FixtureError
from session_snapshot.responses import check_response, matches
from session_snapshot.variables import Sessions, fill

PROMPT = ops.Prompt(text="")
REFUSED = {"error": {"code": -32603, "message": "no"}}


@pytest.mark.parametrize(
    ("step", "response", "result"),
    [
        (PROMPT, {"result": {"stopReason": "end_turn"}}, {"stopReason": "end_turn"}),
        (PROMPT, {"result": None}, {}),
        (PROMPT, {}, {}),
        (ops.PromptExpectError(text=""), REFUSED, {}),
        (ops.PromptExpectError(text="", code=-32603), REFUSED, {}),
        (ops.NewSessionExpectError(), {"error": "just no"}, {}),
    ],
)
def test_as_expected(step: ops.Step, response: dict, result: dict) -> None:
    assert check_response(step, response) == result


@pytest.mark.parametrize(
    ("step", "response", "said"),
    [
        (
            PROMPT,
            REFUSED,
            'prompt was answered by an error: {"code": -32603, "message": "no"}\nmend: correct the agent',
        ),
        (PROMPT, {"error": "just no"}, 'prompt was answered by an error: "just no"'),
        (ops.PromptExpectError(text=""), {"result": {"a": 1}}, 'promptExpectError was answered by a result: {"a": 1}'),
        (ops.NewSessionExpectError(code=-32602), REFUSED, "expects code -32602, got"),
        (ops.NewSessionExpectError(code=-32602), {"error": "just no"}, 'expects code -32602, got "just no"'),
    ],
)
def test_not_as_expected(step: ops.Step, response: dict, said: str) -> None:
    with pytest.raises(AgentError) as caught:
        check_response(step, response)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "update", "matching"),
    [
        (ops.UpdatePattern(), {"sessionUpdate": "plan"}, True),
        (ops.UpdatePattern(), {}, False),
        (ops.UpdatePattern("plan"), {"sessionUpdate": "plan"}, True),
        (ops.UpdatePattern("plan"), {"sessionUpdate": "other"}, False),
        (ops.UpdatePattern("plan", "é"), {"sessionUpdate": "plan", "text": "café"}, True),
        (ops.UpdatePattern("", "x"), {"sessionUpdate": "plan"}, False),
    ],
)
def test_matches(pattern: ops.UpdatePattern, update: dict, matching: bool) -> None:
    assert matches(pattern, update) is matching


def sessions(*aliases: str) -> Sessions:
    opened = Sessions()
    for number, alias in enumerate(aliases):
        opened.opened(alias, f"id-{number}")
    return opened


@pytest.mark.parametrize(
    ("aliases", "session", "found"),
    [
        ([""], "", "id-0"),
        (["", ""], "", "id-1"),
        (["a", "b"], "a", "id-0"),
        (["a", ""], "", "id-1"),
        (["a", "a"], "a", "id-1"),
    ],
)
def test_the_session_of_a_step(aliases: list[str], session: str, found: str) -> None:
    assert sessions(*aliases).of(ops.Prompt(text="", session=session)) == found


@pytest.mark.parametrize(
    ("aliases", "session", "said"),
    [
        ([], "", "prompt before newSession\nmend: open one with newSession (aliases so far: none)"),
        ([], "a", "prompt before newSession"),
        (["b", "a"], "c", "no session 'c'\nmend: open one with newSession (aliases so far: a, b)"),
    ],
)
def test_no_such_session(aliases: list[str], session: str, said: str) -> None:
    with pytest.raises(FixtureError) as caught:
        sessions(*aliases).of(ops.Prompt(text="", session=session))
    assert said in str(caught.value)


def test_sessions_keep_the_order_they_were_opened_in() -> None:
    assert sessions("", "", "a").ids == ["id-0", "id-1", "id-2"]


def test_fill() -> None:
    variables = sessions("a", "").variables("/w")
    assert variables == {"cwd": "/w", "sessionId": "id-1", "sessionId:a": "id-0"}
    stored = {"x": ["{{cwd}}/f", {"y": "{{sessionId}} {{sessionId:a}} {{other}}"}], "n": 1, "{{cwd}}": None}
    assert fill(stored, variables) == {"x": ["/w/f", {"y": "id-1 id-0 {{other}}"}], "n": 1, "{{cwd}}": None}
    assert sessions().variables("/w") == {"cwd": "/w"}
