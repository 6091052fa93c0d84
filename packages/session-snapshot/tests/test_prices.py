"""What a recording took: computed here by hand, and told without claiming what nobody said."""

import pytest
from llm_dialects.chunks import Finish, FinishReason, TextDelta, Usage, UsageChunk
from llm_dialects.entries import Chunks, Hang, Throw
from llm_dialects.requests import Request
from session_snapshot.agent import Price, parse_agent
from session_snapshot.calls import LiveCall
from session_snapshot.errors import FixtureError
from session_snapshot.recording.prices import Spent, format_spent, price_of, spent

PRICES = {"gpt-x": Price(2.0, 8.0), "gpt-x-mini": Price(0.5, 1.5, 0.05)}


def call(entry, model="gpt-x"):
    return LiveCall(0, Request(system=(), tools=(), messages=(), params={"model": model}), b"", None, entry)


def answer(*usages: Usage):
    end = Finish(reason=FinishReason(kind="stop"))
    return Chunks(chunks=(TextDelta(index=0, text="hi"), *(UsageChunk(usage=usage) for usage in usages), end))


FULL = Usage(input_tokens=1000, output_tokens=200, cache_read_tokens=4000, cache_write_tokens=500, reasoning_tokens=50)
LOST = Throw(chunks=(), message="gone", code="STREAM_CLOSED")


@pytest.mark.parametrize(
    ("calls", "prices", "told"),
    [
        ([], {}, "0 model calls"),
        ([call(None)], {}, "1 model call, 1 in flight"),
        ([call(answer(Usage(12, 3)))], {}, "1 model call, 12 tokens in, 3 out"),
        ([call(answer(Usage(12, 3))), call(None)], {}, "2 model calls, 1 in flight, 12 tokens in, 3 out"),
        ([call(answer(Usage(1, 1), Usage(12, 3)))], {}, "1 model call, 12 tokens in, 3 out"),
        ([call(answer(FULL))], {}, "1 model call, 5,500 tokens in, 200 out"),
        ([call(answer())], {}, "1 model call, tokens of 1 not told"),
        ([call(LOST), call(Hang())], {}, "2 model calls"),
        # (1000 + 500) * 2 + 4000 * 2 + 200 * 8 = 12,600 millionths
        ([call(answer(FULL))], PRICES, "1 model call, 5,500 tokens in, 200 out, $0.0126"),
        # (1000 + 500) * 0.5 + 4000 * 0.05 + 200 * 1.5 = 1,250 millionths
        ([call(answer(FULL), "gpt-x-mini-2026")], PRICES, "1 model call, 5,500 tokens in, 200 out, $0.0013"),
        (
            [call(answer(Usage(500_000, 0))), call(answer(Usage(1, 1)), "other")],
            PRICES,
            "2 model calls, 500,001 tokens in, 1 out, $1.0000 without other ([record.prices] has no such model)",
        ),
        ([call(LOST)], PRICES, "1 model call, $0.0000"),
    ],
)
def test_what_calls_took(calls, prices, told):
    assert format_spent(spent(calls, prices)) == told


def test_a_model_without_prices_costs_nothing_that_is_told():
    assert spent([call(answer(FULL))], {}).cost is None
    assert Spent().cost is None


@pytest.mark.parametrize(
    ("model", "name"),
    [("gpt-x", "gpt-x"), ("gpt-x-2026-05", "gpt-x"), ("gpt-x-mini", "gpt-x-mini"), ("gpt-xl", None), ("gpt", None)],
)
def test_whose_price_it_is(model, name):
    assert price_of(model, PRICES) is (PRICES[name] if name else None)


def test_prices_are_read_from_the_suite():
    told = '[record]\nkey_env = "K"\n[record.prices."gpt-x"]\ninput = 2\noutput = 8.5\n'
    record = parse_agent(f'command = ["x"]\n{told}', "agent.toml").record
    assert record is not None and record.prices == {"gpt-x": Price(2.0, 8.5)}


@pytest.mark.parametrize(
    ("line", "said"),
    [("input = -2", "agent.toml:"), ("inptu = 2", "the nearest known one is 'input'"), ('input = "2"', "agent.toml:")],
)
def test_a_price_that_is_none(line, said):
    told = f'command = ["x"]\n[record]\nkey_env = "K"\n[record.prices.x]\n{line}\noutput = 8\n'
    with pytest.raises(FixtureError) as caught:
        parse_agent(told, "agent.toml")
    assert said in str(caught.value) and "\nmend: " in str(caught.value)
