"""Answers in groups of chunks: each group stands at the moment that brought it, and endings that are none are told."""

import pytest
from llm_dialects import Answer, Chunks, Hang, Throw
from llm_dialects.chunks import (
    BlockEnd,
    BlockStart,
    Finish,
    FinishReason,
    ReasoningBlock,
    ReasoningDelta,
    TextBlock,
    TextDelta,
    Usage,
    UsageChunk,
)
from llm_dialects.dialects import DIALECTS
from session_snapshot.trace import Asked, Ended, Told, Wrote
from session_snapshot.view.calls import Asking, answer_rows, call_row

CHUNKS = (
    BlockStart(index=0, block_type="reasoning"),
    ReasoningDelta(index=0, text="hm"),
    BlockEnd(index=0, block=ReasoningBlock(text="hm")),
    BlockStart(index=1, block_type="text"),
    TextDelta(index=1, text="one "),
    TextDelta(index=1, text="two "),
    TextDelta(index=1, text="three"),
    BlockEnd(index=1, block=TextBlock(text="one two three")),
    UsageChunk(usage=Usage(input_tokens=5, output_tokens=3)),
    Finish(reason=FinishReason(kind="stop")),
)


def told(dialect, call=0):
    """The bodies of the answer, each read by the dialect's own decoder to where a text is."""
    return list(DIALECTS[dialect].encode_stream(CHUNKS, Answer(id="a", model="m")))


def cut(bodies, word):
    """Bodies up to and with the one that says a word, and the rest."""
    at = next(at for at, body in enumerate(bodies) if word in body)
    return bodies[: at + 1], bodies[at + 1 :]


def groups(moments, dialect="openai-chat", entry=None, **more):
    asking = Asking(0, "model 0", entry=entry or Chunks(chunks=CHUNKS), dialect=dialect, **more)
    steps = [*range(len(moments)), -1]
    rows = list(answer_rows(asking, 0, moments, steps))
    assert all(row.step == steps[place] for place, row in rows)
    return [(place, row.title) for place, row in rows]


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_a_stream_that_is_told_at_once_stands_together(dialect):
    assert groups([Asked(0), Told(0, told(dialect)), Wrote(0), Ended(0)], dialect) == [
        (1, "reasoning hm (3 chunks)"),
        (1, "text one two three (5 chunks)"),
        (1, "5 tokens in, 3 out · finish stop (2 chunks)"),
    ]


@pytest.mark.parametrize("dialect", ["anthropic-messages", "openai-chat"])
def test_what_happens_amid_a_stream_stands_between_its_pieces(dialect):
    first, rest = cut(told(dialect), b"one ")
    second, third = cut(rest, b"two ")
    moments = [
        Asked(0),
        Told(0, first),
        Wrote(0),
        Told(1, [b"other"]),
        Told(0, second),
        Wrote(1),
        Told(0, third),
        Ended(0),
    ]
    assert groups(moments, dialect) == [
        (1, "reasoning hm (3 chunks)"),
        (1, "text one (2 chunks)"),
        (4, "text two (1 chunk)"),
        (6, "text three (2 chunks)"),
        (6, "5 tokens in, 3 out · finish stop (2 chunks)"),
    ]


def test_a_message_that_is_no_stream_is_told_whole():
    assert [place for place, _ in groups([Asked(0), Told(0, [b"{}"]), Ended(0)], streamed=False)] == [1, 1, 1]


def test_without_bytes_an_answer_stands_where_it_was_asked():
    assert {place for place, _ in groups([Wrote(0), Asked(0)], dialect="")} == {1}


def test_bytes_that_are_no_stream_break_nothing():
    assert len(groups([Asked(0), Told(0, [b"data: {nonsense\n\n"]), Ended(0)])) == 3


@pytest.mark.parametrize(
    ("entry", "outcome", "title"),
    [
        (Throw(chunks=(), message="No.", code="AUTH", status=401), "completed", "call 0 fails: AUTH (401): No."),
        (Throw(chunks=(), message="Gone.", code="STREAM_CLOSED"), "reset", "call 0 fails: STREAM_CLOSED: Gone."),
        (Hang(), "stalled", "call 0 said nothing more until the agent cut it off"),
        (Chunks(chunks=CHUNKS), "client_closed", "call 0 was cut off by the agent"),
        (Chunks(chunks=CHUNKS), "server_closed", "call 0 was going on when the run ended"),
    ],
)
def test_an_ending_that_is_none_is_told(entry, outcome, title):
    rows = groups([Asked(0), Told(0, told("openai-chat")), Wrote(0), Ended(0)], entry=entry, outcome=outcome)
    assert rows[-1] == (1 if isinstance(entry, Throw) else 3, title)
    assert title not in [told for _, told in groups([Asked(0), Ended(0)], outcome="completed")]


def test_the_whole_of_a_failure_is_there_to_be_read():
    entry = Throw(chunks=(), message="No. " * 100, code="AUTH")
    asking = Asking(0, "model 0", entry=entry, dialect="openai-chat", outcome="completed")
    ((_, row),) = answer_rows(asking, 0, [Asked(0), Ended(0)], [0, 0, -1])
    assert entry.message not in row.title and entry.message.strip() in row.text


def test_a_request_that_adds_nothing_says_so():
    row = call_row(Asking(None, "model", request={"messages": []}), 0)
    assert (row.title, row.state) == ("a call nobody recorded: nothing is added", "added")
