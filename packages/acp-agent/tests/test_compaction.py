"""Where a history is cut, how its record is shortened, and how a context is counted."""

from math import ceil

import pytest
from acp_agent.__main__ import SHIPPED
from acp_agent.compaction import FLOOR, NoRoom, checkpoint, cut_of, fitted, shorten, tokens_of
from acp_agent.config import Source, parse_config
from acp_agent.meter import Meter, size_of
from acp_agent.session import Session
from acp_agent.session_log import create_log
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_dialects import (
    DIALECTS,
    ImagePart,
    Message,
    ReasoningBlock,
    Request,
    TextBlock,
    ToolCallBlock,
    ToolResultPart,
    Usage,
    honest_usage,
)


def user(text):
    return Message(role="user", content=(TextBlock(text=text),))


def answer(text):
    return Message(role="assistant", content=(TextBlock(text=text),))


def calls(*ids):
    return Message(role="assistant", content=tuple(ToolCallBlock(id=id, name="bash", arguments="{}") for id in ids))


def result(id, text, failed=False):
    part = ToolResultPart(call_id=id, content=(TextBlock(text=text),), is_error=failed)
    return Message(role="tool", content=(part,))


BIG = "x" * 4000
TURN = [user("u"), answer("a")]
STEP = [calls("c1", "c2"), result("c1", "r"), result("c2", "r")]

CUTS = [
    ("one message", [user(BIG)], 8000, 1),
    ("two turns", [user(BIG), answer("a"), *TURN], 8000, 2),
    ("as many turns as fit", [user(BIG), answer("a"), *TURN, *TURN], 8000, 2),
    ("no more than to be kept", [user(BIG), answer("a"), *TURN, *TURN], 40, 4),
    ("no more than half", [*TURN, *TURN], 8000, 2),
    ("steps, where no turn fits", [user("u"), *STEP, calls("c3"), result("c3", BIG), *STEP], 8000, 6),
    ("nothing, where no step fits", [user("u"), *STEP, calls("c3"), result("c3", BIG)], 8000, 6),
    ("a prompt before its steps", [user(BIG), answer("a"), user("u"), *STEP], 8000, 2),
    ("nothing is to be kept", [user(BIG), answer("a"), *TURN], 0, 4),
]


@pytest.mark.parametrize(("messages", "keep_tokens", "cut"), [row[1:] for row in CUTS], ids=[row[0] for row in CUTS])
def test_what_is_cut(messages, keep_tokens, cut):
    assert cut_of(messages, keep_tokens) == cut


texts = st.text(max_size=300)


@st.composite
def histories(draw):
    """Histories as the turn loop leaves them: prompts, answers, calls with all their results."""
    messages = []
    for turn in range(draw(st.integers(1, 4))):
        messages.append(user(draw(texts)))
        for step in range(draw(st.integers(0, 3))):
            ids = [f"c{turn}{step}{n}" for n in range(draw(st.integers(1, 3)))]
            messages += [calls(*ids), *(result(id, draw(texts)) for id in ids)]
        messages += [answer(draw(texts))] if draw(st.booleans()) else []
    return messages


@settings(deadline=None)
@given(histories(), st.integers(0, 200))
def test_a_cut_takes_something_and_parts_no_call_from_its_result(messages, keep_tokens):
    cut = cut_of(messages, keep_tokens)
    assert 1 <= cut <= len(messages)
    kept = messages[cut:]
    assert not kept or kept[0].role != "tool"
    assert tokens_of(kept) <= max(keep_tokens, 0)
    assert 2 * tokens_of(kept) <= tokens_of(messages) + 2


# ── The record ──────────────────────────────────────────────────────────────────────────────────────────────────────


def within(limit):
    return lambda text: len(text) <= limit


def test_a_record_that_fits_is_whole():
    messages = [
        user("Hello."),
        Message(role="user", content=(ImagePart(media_type="image/png", data="AAAA"),)),
        Message(role="assistant", content=(ReasoningBlock(text="hm"), TextBlock(text="Hi."))),
        *(calls("c1"), result("c1", "no such file", failed=True)),
    ]
    record = fitted(messages, within(10_000))
    assert record.text.startswith(
        "<record>\n## user\nHello.\n\n## user\n[an image]\n\n## assistant\nHi.\n\n## call of bash\n{}\n\n"
        "## failed result of bash\nno such file\n</record>\n"
    )
    assert (record.shortened, record.left_out) == (0, 0)


def test_the_longest_entries_lose_their_middle_first():
    messages = [user("a" * 5000), user("b" * 3000), user("c" * 900)]
    record = fitted(messages, within(5000))
    assert 4990 <= len(record.text) <= 5000
    assert ("c" * 900 in record.text, record.shortened, record.left_out) == (True, 2, 0)
    assert record.text.count("characters left out]") == 2
    assert abs(record.text.count("a") - record.text.count("b")) < 30


def test_the_oldest_entries_go_when_no_entry_can_be_shorter():
    messages = [user(f"{n:03} " + "x" * 500) for n in range(40)]
    record = fitted(messages, within(4000))
    assert len(record.text) <= 4000
    assert "[22 earlier entries left out]" in record.text
    assert (record.left_out, record.shortened) == (22, 18)
    assert "## user\n022 " in record.text
    assert "021 " not in record.text


def test_what_cannot_fit_is_refused():
    with pytest.raises(NoRoom):
        fitted([user("x")], within(10))
    with pytest.raises(NoRoom):
        fitted([user("x" * 900), user("y" * 900)], within(FLOOR))


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=800), min_size=1, max_size=8), st.integers(300, 4000))
def test_a_record_is_as_long_as_it_may_be_and_no_longer(said, limit):
    messages = [user(text) for text in said]
    record = fitted(messages, within(limit + 300))
    assert len(record.text) <= limit + 300
    assert fitted(messages, within(limit + 300)) == record
    if record.shortened and not record.left_out:
        assert len(record.text) > limit + 300 - 20 * len(said)


@settings(deadline=None)
@given(st.text(), st.integers(FLOOR, 2000))
def test_a_shortened_text_has_its_length_and_both_its_ends(text, length):
    text = text * 20
    shorter = shorten(text, length)
    assert len(shorter) <= length
    if len(text) <= length:
        assert shorter == text
    else:
        assert length - len(shorter) <= 12
        assert (shorter[:40], shorter[-40:]) == (text[:40], text[-40:])


def test_a_checkpoint_holds_the_summary():
    message = checkpoint("  {braces} and all\n")
    assert message.role == "user"
    assert "<summary>\n{braces} and all\n</summary>" in message.content[0].text


# ── The meter ───────────────────────────────────────────────────────────────────────────────────────────────────────

DIALECT = DIALECTS["openai-chat"]


def request(*messages, system="You are an agent."):
    return Request(system=(system,), tools=(), messages=messages, params={"model": "m"})


def estimate(asked):
    return honest_usage(DIALECT.render_request(asked), ()).input_tokens


def test_before_any_usage_the_honest_estimate_counts():
    meter = Meter(DIALECT)
    assert meter.tokens(request(user(BIG))) == estimate(request(user(BIG)))
    assert (meter.told, meter.accepted) == (None, 0)


def test_what_was_told_counts_and_what_came_since_is_estimated():
    meter = Meter(DIALECT)
    asked, now = request(user(BIG)), request(user(BIG), answer("a"))
    told = estimate(asked)
    usage = Usage(input_tokens=told - 300, output_tokens=50, cache_read_tokens=200, cache_write_tokens=100)
    meter.hear(usage, asked, now)
    assert (meter.told, meter.accepted, meter.ratio) == (told + 50, told, 1.0)
    assert meter.tokens(now) == told + 50
    assert meter.tokens(request(user(BIG), answer("a"), user("y" * 400))) == told + 50 + 114


def test_what_came_since_counts_alike_however_long_the_system_prompt_is():
    counted = set()
    for length in range(8):
        meter = Meter(DIALECT)
        asked, now = (request(*m, system="s" * length) for m in ((user(BIG),), (user(BIG), answer("a"))))
        meter.hear(Usage(input_tokens=1040, output_tokens=5), asked, now)
        counted.add(meter.tokens(request(user(BIG), answer("a"), user("more"), system="s" * length)))
        counted.add(meter.estimate(request(user(BIG))))
    assert len(counted) == 2


def test_the_providers_rate_is_kept_when_the_history_changes():
    meter = Meter(DIALECT)
    asked = request(user(BIG))
    meter.hear(Usage(input_tokens=round(estimate(asked) * 2.6), output_tokens=0), asked, asked)
    assert meter.ratio == 2.5
    meter.forget()
    assert meter.told is None
    assert meter.tokens(asked) == ceil(size_of(asked) * 2.5 / 4)


def test_a_shortened_history_is_counted_anew(tmp_path):
    """What was told is about another history, and an estimate may be far off by so much of it."""
    session = Session("s", tmp_path, create_log(tmp_path, "s", "/", lambda: 0), "", (), Meter(DIALECT))
    config = parse_config([Source("config.toml", SHIPPED.read_text("utf-8"))]).model
    session.messages = [user(BIG), answer(BIG), user("u")]
    now = session.context(config)
    session.meter.hear(Usage(input_tokens=round(size_of(now) * 1.37 / 4), output_tokens=0), now, now)
    session.shorten(2, checkpoint("Short."))
    session.log.close()
    assert session.messages == [checkpoint("Short."), user("u")]
    assert session.meter.tokens(session.context(config)) == session.meter.estimate(session.context(config))


def test_a_provider_that_counts_less_is_not_believed():
    meter = Meter(DIALECT)
    meter.hear(Usage(input_tokens=1, output_tokens=0), request(user(BIG)), request(user(BIG)))
    assert meter.ratio == 1.0
