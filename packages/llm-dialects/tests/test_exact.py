"""Answers taken from a provider are told with the counts it gave and no others."""

import pytest
from llm_dialects import DIALECTS, Answer, Finish, FinishReason, TextBlock, Usage, fold, unfold
from llm_dialects.fold import Folded

BARE = Usage(input_tokens=3, output_tokens=4)
CACHED = Usage(input_tokens=3, output_tokens=4, cache_read_tokens=2)
ZERO = Usage(input_tokens=3, output_tokens=4, cache_read_tokens=0, reasoning_tokens=0)
NOTHING = Usage(input_tokens=0, output_tokens=0)


def told(dialect, usage, *, exact, streamed, asked=True):
    """The usage that a client reads of an answer."""
    answer = Answer(id="a", model="m", include_usage=asked, exact=exact)
    said = Folded((TextBlock(text="x"),), usage, FinishReason(kind="stop"))
    chunks = unfold(said, end_together=dialect == "openai-chat")
    assert isinstance(chunks[-1], Finish)
    row = DIALECTS[dialect]
    if not streamed:
        return fold(row.decode_message(row.encode_message(chunks, answer))).usage
    decoder = row.decoder()
    return fold((*decoder.feed(b"".join(row.encode_stream(chunks, answer))), *decoder.close())).usage


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("usage", [BARE, CACHED, ZERO], ids=["bare", "cached", "zero"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_counts_that_a_provider_left_out_are_not_told(dialect, usage, streamed):
    assert told(dialect, usage, exact=True, streamed=streamed) == usage


def test_a_usage_of_nothing_is_told_where_a_client_can_tell():
    assert told("openai-responses", NOTHING, exact=True, streamed=True) == NOTHING


def test_otherwise_clients_get_the_counts_they_rely_on():
    usage = told("openai-responses", BARE, exact=False, streamed=True)
    assert (usage.cache_read_tokens, usage.reasoning_tokens) == (0, 0)


@pytest.mark.parametrize(("exact", "wanted"), [(True, BARE), (False, None)])
def test_a_usage_that_nobody_asked_for_is_told_if_the_provider_did(exact, wanted):
    assert told("openai-chat", BARE, exact=exact, streamed=True, asked=False) == wanted


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_usage_is_none(dialect):
    assert told(dialect, None, exact=True, streamed=True) is None
