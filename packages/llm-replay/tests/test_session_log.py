import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_replay import FixtureError, check_live, format_fixture, parse_log

OURS = '{"type":"session","format":"session-snapshot","version":1,"id":"s","createdAt":5,"cwd":"/w"}\n'
OLD = '{"type":"session","version":0,"id":"s","createdAt":5}\n'


def row(type, data, **rest):
    return json.dumps({"type": type, **rest, "data": data}) + "\n"


def shape(log):
    return [(event.type, event.data, event.rest) for event in log.events]


def check_refused(text, line, what):
    with pytest.raises(FixtureError) as caught:
        parse_log(text, "session.jsonl")
    assert str(caught.value).startswith(f"session.jsonl:{line}: ")
    assert what in caught.value.what
    assert str(caught.value).rpartition("\n")[2].startswith("mend: ")


TURN = row("turn/start", {"turn": 1})
LIVE = row("turn/start", {"turn": 1}, seq=0, time=7)
TEXTS = {"turn": 1, "step": 1, "index": 0, "dt": [0, 3], "texts": ["a", "b", "c"]}
ARGS = {"turn": 1, "step": 1, "index": 0, "dt": [0], "id": "c1", "name": "bash", "args": ["{", "}"]}

REFUSED = {
    "empty": ("", 1, "is empty"),
    "no header": (TURN, 1, "must begin with"),
    "unknown version": (OURS.replace('"version":1', '"version":2'), 1, "is not known here"),
    "version as text": (OURS.replace('"version":1', '"version":true'), 1, "is not known here"),
    "historical version 3": (OLD.replace('"version":0', '"version":3'), 1, "is not known here"),
    "not JSON": (OURS + "{\n", 2, "not JSON"),
    "NaN": (OURS + '{"type":"x","data":{"a":NaN}}\n', 2, "not JSON"),
    "an array": (OURS + TURN + "[]\n", 3, "must be a JSON object"),
    "two headers": (OURS + OURS, 2, "type must name an event"),
    "no type": (OURS + '{"data":{}}\n', 2, "type must name an event"),
    "type a list": (OURS + '{"type":[],"data":{}}\n', 2, "type must name an event"),
    "no data": (OURS + '{"type":"x"}\n', 2, "data must be an object"),
    "mixed, projected first": (OURS + TURN + LIVE, 3, "mixes events"),
    "mixed, complete first": (OURS + LIVE + TURN, 3, "mixes events"),
    "partial": (OURS + row("turn/start", {}, seq=0), 2, "but not both"),
    "partial packed": (OURS + row("text-chunks", TEXTS, seq0=0), 2, "but not both"),
    "seq gap": (OURS + LIVE + row("turn/end", {}, seq=2, time=8), 3, "seq is 2 where 1 was due"),
    "seq gap after packed": (
        OURS + row("text-chunks", TEXTS, seq0=0, time0=1) + row("turn/end", {}, seq=1, time=8),
        3,
        "seq is 1 where 3 was due",
    ),
    "seq as text": (OURS + row("turn/start", {}, seq="0", time=1), 2, "must be a number"),
    "packed row with more keys": (OURS + row("text-chunks", TEXTS, ignorable=True), 2, "unknown key 'ignorable'"),
    "packed data with more keys": (OURS + row("text-chunks", TEXTS | {"x": 1}), 2, "keys must be"),
    "packed without index": (OURS + row("text-chunks", {"turn": 1, "step": 1, "texts": ["a"]}), 2, "keys must be"),
    "packed texts with a name": (OURS + row("text-chunks", TEXTS | {"id": "c"}), 2, "keys must be"),
    "packed args without id": (
        OURS + row("tool-call-chunks", {key: value for key, value in ARGS.items() if key != "id"}),
        2,
        "keys must be",
    ),
    "packed dt too long": (OURS + row("text-chunks", TEXTS | {"dt": [0, 0, 0]}), 2, "dt must be 2"),
    "packed dt of text": (OURS + row("text-chunks", TEXTS | {"dt": [0, "0"]}), 2, "dt must be 2"),
    "packed nothing": (OURS + row("text-chunks", TEXTS | {"texts": [], "dt": []}), 2, "at least one"),
    "packed number": (OURS + row("text-chunks", TEXTS | {"texts": ["a", 1, "c"]}), 2, "list of strings"),
    "packed name a number": (OURS + row("tool-call-chunks", ARGS | {"name": 1}), 2, "name must be a string"),
    "packed index true": (OURS + row("text-chunks", TEXTS | {"index": True}), 2, "index must be"),
    "old packed row without dt": (
        OLD + row("text-chunks", {"turn": 1, "step": 1, "index": 0, "texts": ["a"]}),
        2,
        "keys must be",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_log_is_refused_at_its_line(name):
    check_refused(*REFUSED[name])


def test_packed_rows_come_out_as_the_events_they_stand_for():
    log = parse_log(OLD + row("text-chunks", TEXTS) + row("tool-call-chunks", ARGS), "s")
    place = {"turn": 1, "step": 1}
    call = {"type": "tool-call-delta", "index": 0, "id": "c1", "name": "bash"}
    assert [event.data for event in log.events] == [
        *({**place, "chunk": {"type": "text-delta", "index": 0, "text": text}} for text in "abc"),
        *({**place, "chunk": {**call, "argumentsDelta": text}} for text in "{}"),
    ]
    assert [event.seq for event in log.events] == [0, 1, 2, 3, 4]
    assert [event.line for event in log.events] == [2, 2, 2, 3, 3]


def test_a_complete_packed_row_keeps_its_clocks():
    log = parse_log(OURS + LIVE + row("text-chunks", TEXTS, seq0=1, time0=100), "s")
    assert [(event.seq, event.time) for event in log.events] == [(0, 7), (1, 100), (2, 100), (3, 103)]
    check_live(log)


def test_only_lf_ends_a_line_and_half_characters_survive():
    text = OURS + '{"type":"x","data":{"a":"\u2028 \\ud83d"}}\n'
    log = parse_log(text, "s")
    assert log.events[0].data == {"a": "\u2028 \ud83d"}
    assert format_fixture(log) == text


@pytest.mark.parametrize(
    ("text", "what"), [(OURS + TURN, "no seq and time"), (OURS + LIVE.replace('"seq": 0', '"seq": 4'), "begins at 4")]
)
def test_a_log_that_no_agent_wrote_is_not_live(text, what):
    with pytest.raises(FixtureError, match=what):
        check_live(parse_log(text, "s"))


def test_a_header_alone_is_a_log():
    log = parse_log(OURS, "s")
    check_live(log)
    assert log.events == () and format_fixture(log) == OURS


def deltas(kind, count, **place):
    chunk = {"type": kind, "index": 0} | ({"id": "c"} if kind == "tool-call-delta" else {})
    text = "argumentsDelta" if kind == "tool-call-delta" else "text"
    return [row("assistant/chunk", {**place, "chunk": {**chunk, text: str(at)}}) for at in range(count)]


@pytest.mark.parametrize("place", [{"turn": 1, "step": 1}, {"call": 4}], ids=["step", "call"])
@pytest.mark.parametrize("kind", ["text-delta", "reasoning-delta", "tool-call-delta"])
def test_runs_of_three_are_packed_and_shorter_ones_not(kind, place):
    for count, lines in ((1, 1), (2, 2), (3, 1), (9, 1)):
        log = parse_log(OURS + "".join(deltas(kind, count, **place)), "s")
        formatted = format_fixture(log)
        assert formatted.count("\n") == 1 + lines
        assert '"dt"' not in formatted
        assert shape(parse_log(formatted, "s")) == shape(log)


def test_a_run_ends_where_a_block_a_name_or_a_step_does():
    first, second = deltas("text-delta", 3, turn=1, step=1), deltas("text-delta", 3, turn=1, step=2)
    other = [line.replace('"index": 0', '"index": 1') for line in first]
    extra = [line.replace('"index": 0', '"more": 1, "index": 0') for line in first]
    log = parse_log(OURS + "".join(first + other + extra + second), "s")
    assert [line.count("texts") for line in format_fixture(log).split("\n")[1:-1]] == [1, 1, 0, 0, 0, 1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
DELTA = st.sampled_from(["text-delta", "reasoning-delta"]).flatmap(
    lambda kind: st.fixed_dictionaries({"type": st.just(kind), "index": st.integers(0, 1), "text": st.text(max_size=3)})
)
CALL_DELTA = st.fixed_dictionaries(
    {"type": st.just("tool-call-delta"), "index": st.just(0), "id": st.sampled_from("ab")},
    optional={"name": st.sampled_from(["x", "y"]), "argumentsDelta": st.text(max_size=3), "more": JSON},
)
CHUNK = st.tuples(
    DELTA | CALL_DELTA, st.sampled_from([{"turn": 1, "step": 1}, {"turn": 1, "step": 2}, {"call": 0}])
).map(lambda pair: {"type": "assistant/chunk", "data": {**pair[1], "chunk": pair[0]}})
OTHER = st.fixed_dictionaries(
    {"type": st.sampled_from(["turn/start", "assistant/chunk"]), "data": st.dictionaries(st.text(max_size=3), JSON)},
    optional={"surfaceOp": JSON},
)


@given(st.lists(CHUNK | OTHER, max_size=12), st.sampled_from([OURS, OLD]), st.booleans())
@settings(deadline=None, max_examples=200)
def test_formatting_then_parsing_gives_the_same_log(events, header, live):
    clocks = [{"seq": seq, "time": 9} if live else {} for seq in range(len(events))]
    text = header + "".join(json.dumps(event | clock) + "\n" for event, clock in zip(events, clocks, strict=True))
    log = parse_log(text, "s")
    formatted = format_fixture(log)
    again = parse_log(formatted, "s")
    assert again.header == log.header and shape(again) == shape(log)
    assert format_fixture(again) == formatted
