"""What holds for any input: a fixed point once stored, blind to the names of ids, equality kept, pieces that add up."""

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from normalizer import (
    Context,
    Document,
    Ledger,
    canon_value,
    canonical_lines,
    escape,
    learn,
    leaves,
    normalize,
    normalize_pieces,
    normalize_text,
    strip_numbers,
    unescape,
)
from normalizer.tokens import marks

CONTEXT = Context(cwd=("/run/x1/work",), home=(r"C:\x1\home",), ports=(43210,))
FIELDS = ("sessionId", "toolCallId", "messageId", "turn_id", "item_uuid", "promptCacheKey")

NUMBERS = st.integers(1, 2**40)
SHAPES: tuple[Callable[[int], str], ...] = (
    lambda number: str(UUID(int=number * 2**80 + number)),
    lambda number: f"sess_a7f{number:016x}b3d",
    lambda number: f"call_{number}",
    lambda number: f"{number:x}/q{number}",
)
IDS = st.tuples(st.sampled_from(SHAPES), NUMBERS)
WORDS = st.sampled_from(
    (
        *("/run/x1/work", "/run/x1/work/a b", r"C:\x1\home\a", "run_x1", "/", "\\", ":43210", "PID: 12", "took 3ms"),
        *("{", "{{", "{{{", "}}", "{{cwd}}", "x", " ", ".", "-", '"', "é😀", "[1]", "\n"),
        *("2026-11-30T19:15:14Z", "2026-11-30T10-00", "0b5c1f6e-6a0f-4c1e-9f2b-0a1b2c3d4e5f"),
    )
)
TEXTS = st.lists(WORDS, max_size=6).map("".join)


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[str, int, str]]:
    """``(field, index of an id, text)``: frames that name ids in their fields and in their texts."""
    size = draw(st.integers(1, 4))
    rows = st.tuples(st.sampled_from(FIELDS), st.integers(0, size - 1), TEXTS)
    return draw(st.lists(rows, min_size=1, max_size=6))


def told(story: list[tuple[str, int, str]], ids: list[str]) -> list[Document]:
    frames = [
        {"params": {field: ids[at], "t": [text, f"see {ids[at]}.", f"{ids[at]}_{text}", f"{text}-{ids[at]}"]}}
        for field, at, text in story
    ]
    half = len(frames) // 2
    return [Document("stdout", "stdout", frames[:half]), Document("requests", "requests", frames[half:])]


def distinct(drawn: list[tuple[Any, int]]) -> list[str]:
    """Ids that do not hold each other: each has numbers of its own."""
    return [shape(2**41 * (place + 1) + number) for place, (shape, number) in enumerate(drawn)]


@given(stories(), st.lists(IDS, min_size=4, max_size=4))
def test_stored_documents_are_a_fixed_point(story: list[tuple[str, int, str]], drawn: list[tuple[Any, int]]) -> None:
    once = normalize(told(story, distinct(drawn)), CONTEXT)
    assert normalize(once, CONTEXT, stored=True) == once
    assert normalize(once, Context(), stored=True) == once


@given(stories(), st.lists(st.tuples(IDS, NUMBERS), min_size=4, max_size=4))
def test_renaming_every_id_changes_nothing(story: list[tuple[str, int, str]], drawn: list[Any]) -> None:
    before = distinct([(shape, number) for (shape, number), _ in drawn])
    after = distinct([(shape, number) for (shape, _), number in drawn])
    assert normalize(told(story, before), CONTEXT) == normalize(told(story, after), CONTEXT)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.lists(IDS, min_size=6, max_size=6))
def test_equality_is_kept(order: list[int], drawn: list[tuple[Any, int]]) -> None:
    ids = distinct(drawn)
    frames = [{"params": {"toolCallId": ids[at]}} for at in order]
    tokens = [
        frame["params"]["toolCallId"] for frame in normalize([Document("x", "stdout", frames)], CONTEXT)[0].values
    ]
    assert len(set(zip(order, tokens, strict=True))) == len(set(order)) == len(set(tokens))


@given(stories(), st.lists(IDS, min_size=4, max_size=4))
def test_a_document_normalised_early_equals_it_normalised_late_but_for_numbers(
    story: list[tuple[str, int, str]], drawn: list[tuple[Any, int]]
) -> None:
    documents, ledger = told(story, distinct(drawn)), Ledger()
    for document in documents:
        learn(ledger, document, CONTEXT)
    early = [
        [canon_value(value, ledger, CONTEXT, kind=document.kind) for value in document.values] for document in documents
    ]
    late = [document.values for document in normalize(documents, CONTEXT)]
    assert canonical_lines(early) == strip_numbers(canonical_lines(late))
    assert [canon_value(rows, Ledger(), Context(), stored=True) for rows in late] == early


@given(st.text(alphabet='{}ab\n\\"[]:,1', max_size=30))
def test_text_with_nothing_volatile_is_escaped_and_comes_back(text: str) -> None:
    stored = normalize_text(text.replace("\r", ""), Context())
    assert unescape(stored) == text
    assert stored == escape(text)


@given(TEXTS, st.lists(st.integers(0, 60), max_size=5))
def test_pieces_join_to_the_normalised_whole_and_no_token_is_cut(text: str, cuts: list[int]) -> None:
    check_pieces(text, cuts)


@given(
    st.dictionaries(st.sampled_from(["path", "durationMs", "é"]), TEXTS | st.integers()),
    st.lists(st.integers(0, 90), max_size=5),
    st.booleans(),
)
def test_pieces_of_json_too(value: dict[str, Any], cuts: list[int], ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    check_pieces(text, cuts)
    assert [path for path, _ in leaves(json.loads(normalize_text(text, CONTEXT)))] == [
        path for path, _ in leaves(value)
    ]


def check_pieces(text: str, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(edges)]
    new = normalize_pieces(pieces, CONTEXT)
    whole = normalize_text(text, CONTEXT)
    assert "".join(new) == whole
    assert len(new) == len(pieces)
    assert sum(map(count_tokens, new)) == count_tokens(whole)
    assert normalize_pieces(new, CONTEXT, stored=True) == new


def count_tokens(text: str) -> int:
    return sum(mark.token for mark in marks(text))


def test_the_shapes_look_as_ids_do() -> None:
    assert all(re.search(r"[0-9]", shape(2**41 + 5)) for shape in SHAPES)
