"""Recorded scripts of another project, most of them a live model's words, served in every dialect."""

import json
import os
from pathlib import Path

import pytest
from llm_dialects import DIALECTS, Answer, Chunks, Loss, Throw, entry_from_json, entry_to_json, fold, limits
from llm_dialects.limits import leveled

CASES = Path(os.environ.get("SNAPSHOT_CASES", "/nowhere")) / "dsh"
SCRIPTS = sorted(CASES.rglob("script.expected.json"))
ANSWER = Answer(id="a", model="m")

pytestmark = pytest.mark.skipif(not SCRIPTS, reason="SNAPSHOT_CASES names no folder with dsh cases")


def entries():
    """Yield every recorded entry's JSON with its place."""
    for path in SCRIPTS:
        value = json.loads(path.read_text(encoding="utf-8"))
        for number, script in enumerate(value.get("scripts", [])):
            for at, entry in enumerate(script["entries"] if isinstance(script, dict) else script):
                yield f"{path.parent.name}/{number}#{at}", entry


def answered():
    """Yield the chunks of every recorded entry that has some."""
    for where, value in entries():
        entry = entry_from_json(value, where)
        if isinstance(entry, (Chunks, Throw)) and entry.chunks:
            yield where, entry.chunks


def through(dialect, chunks, size=4096):
    decoder = dialect.decoder()
    wire = b"".join(dialect.encode_stream(chunks, ANSWER))
    parts = [wire[at : at + size] for at in range(0, len(wire), size)]
    return tuple(chunk for part in parts for chunk in decoder.feed(part)) + tuple(decoder.close())


def check_folded(name, said, chunks, where):
    """Both are equal after folding, but for counts and spaces that the dialect cannot keep."""
    lost = {limit.loss for limit in limits(name, chunks)}
    assert leveled(fold(said), lost) == leveled(fold(chunks), lost), where


def test_every_entry_is_read_and_written_back():
    for where, value in entries():
        assert entry_to_json(entry_from_json(value, where)) == value, where


def test_openai_chat_tells_them_chunk_for_chunk():
    exact = 0
    for where, chunks in answered():
        losses = {limit.loss for limit in limits("openai-chat", chunks)}
        said = through(DIALECTS["openai-chat"], chunks)
        assert losses <= {Loss.CUT, Loss.MESSAGE, Loss.MEANING}
        if Loss.CUT not in losses and Loss.MEANING not in losses:
            assert said == chunks, where
            exact += 1
        elif Loss.MEANING not in losses:
            assert fold(said) == fold(chunks), where
    # The recordings of live models are all exact: only those written by hand hold blocks no provider streams so.
    assert exact >= 100


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_tells_the_same_after_folding(name):
    lost = []
    for where, chunks in answered():
        if any(limit.loss is Loss.MEANING for limit in limits(name, chunks)):
            lost.append(where)
            continue
        check_folded(name, through(DIALECTS[name], chunks), chunks, where)
    assert lost == LOST[name]


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_tells_the_same_unstreamed(name):
    for where, chunks in answered():
        if {limit.loss for limit in limits(name, chunks)} <= {Loss.CUT, Loss.COUNT, Loss.SPACING}:
            dialect = DIALECTS[name]
            check_folded(name, dialect.decode_message(dialect.encode_message(chunks, ANSWER)), chunks, where)


# Entries of which a dialect cannot tell everything, by name: one that disappears or turns up is news.
LOST: dict[str, list[str]] = {"openai-chat": [], "openai-responses": [], "anthropic-messages": [], "gemini": []}
