"""Escapes and tokens have one reading."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from normalizer import escape, has_token, strip_numbers, unescape
from normalizer.tokens import marks

BRACES = st.text(alphabet="{}:ab1", max_size=20)


@pytest.mark.parametrize(
    ("live", "stored"),
    [
        ("plain", "plain"),
        ("{", "{"),
        ("{{", "{{{{"),
        ("{{{", "{{{{{"),
        ("{{cwd}}", "{{{{cwd}}"),
        ("{{{{", "{{{{{{{{"),
        ("a {{b}} {c", "a {{{{b}} {c"),
    ],
)
def test_a_literal_is_doubled_and_comes_back(live: str, stored: str) -> None:
    assert escape(live) == stored
    assert unescape(stored) == live
    assert not has_token(stored)


@given(BRACES)
def test_unescape_undoes_escape(text: str) -> None:
    assert unescape(escape(text)) == text
    assert not has_token(escape(text))


@given(BRACES, BRACES)
def test_a_token_stands_out_between_any_texts(before: str, after: str) -> None:
    stored = escape(before) + "{{cwd}}" + escape(after)
    found = [stored[mark.start : mark.end] for mark in marks(stored) if mark.token]
    assert found == ["{{cwd}}"]
    assert unescape(stored) == before + "{{cwd}}" + after


@pytest.mark.parametrize(
    ("stored", "stripped"),
    [
        ("{{sessionId:3}} in {{cwd}}", "{{sessionId}} in {{cwd}}"),
        ("{{{{sessionId:3}}", "{{{{sessionId:3}}"),
        ("{{{sessionId:12}}", "{{{sessionId}}"),
        ("{{sessionId:main}}", "{{sessionId:main}}"),
    ],
)
def test_numbers_are_stripped_from_tokens_only(stored: str, stripped: str) -> None:
    assert strip_numbers(stored) == stripped
