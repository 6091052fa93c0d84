"""The known word that a wrong one was probably meant to be."""

import pytest
from llm_dialects.words import nearest

KNOWN = ("kind", "text", "toolCalls")


@pytest.mark.parametrize(
    ("word", "likeness", "near"),
    [
        ("txt", 0.6, "text"),
        ("toolcalls", 0.6, "toolCalls"),
        ("zzz", 0.6, ""),
        ("ki", 0.6, "kind"),
        ("ki", 0.7, ""),
        ("", 0.6, ""),
        ("kind" + "x" * 10**5, 0.03, "kind"),
    ],
)
def test_the_most_alike_word_is_named(word, likeness, near):
    assert nearest(word, KNOWN, likeness) == near


def test_of_no_words_none_is_near():
    assert nearest("x", (), 0) == ""
