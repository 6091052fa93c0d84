"""Tokens of a recording become this run's values; what is unknown is an error, never text."""

import pytest
from session_snapshot.errors import FixtureError
from session_snapshot.tokens import LiveTokens

PLACES = {"cwd": "C:\\w", "date": "2026-01-02"}
SEEN = {"sessionId": ["s-1", "s-2"]}


def tokens() -> LiveTokens:
    return LiveTokens(PLACES, lambda kind: SEEN.get(kind, []))


@pytest.mark.parametrize(
    ("stored", "live"),
    [
        ("in {{cwd}} on {{date}}", "in C:\\w on 2026-01-02"),
        ("{{sessionId:2}}{{sessionId:1}}", "s-2s-1"),
        ("literal {{{{cwd}}", "literal {{cwd}}"),
        ({"a": ["{{cwd}}", 1, None]}, {"a": ["C:\\w", 1, None]}),
        ({"arguments": '{"path":"{{cwd}}"}'}, {"arguments": '{"path":"C:\\\\w"}'}),
        ({"argumentsDelta": "{{cwd}}"}, {"argumentsDelta": "C:\\\\w"}),
        ({"arguments": {"path": "{{cwd}}"}}, {"arguments": {"path": "C:\\w"}}),
    ],
)
def test_expand(stored: object, live: object) -> None:
    assert tokens().expand(stored) == live


@pytest.mark.parametrize("stored", ["{{sessionId:3}}", "{{sessionId:0}}", "{{other:1}}", "{{home}}", "{{sessionId}}"])
def test_what_this_run_has_no_value_for(stored: str) -> None:
    with pytest.raises(FixtureError, match="has no value for") as caught:
        tokens().expand(stored)
    assert stored in str(caught.value)
