"""A run's trace: what was sent, written, asked and told, in the one order in which it happened."""

import asyncio

from session_snapshot.fixtures import load_committed
from session_snapshot.replay import replay_loaded
from session_snapshot.runroot import run_root
from session_snapshot.suites import load
from session_snapshot.trace import Asked, Ended, Sent, Told, Trace, Wrote

SAY = ["hear"], ["call"], ["say"], ["respond", {"stopReason": "end_turn"}]


def captured(suite):
    loaded = load(suite.place)
    with run_root() as base:
        report, capture = asyncio.run(replay_loaded(loaded, load_committed(loaded), base))
    return report, capture


def spelled(capture):
    """The moments as short words."""
    return [word(moment) for moment in capture.moments]


def word(moment):
    match moment:
        case Sent(step=step, value=str(text)):
            return f"{step} raw {text}"
        case Sent(step=step, value=value):
            return f"{step} sent {value.get('method', 'answer')}"
        case Wrote(frame=number):
            return f"frame {number}"
        case Asked(call=number):
            return f"call {number}"
        case Told(call=number):
            return f"told {number}"
        case Ended(call=number):
            return f"end {number}"


def test_a_turn_in_the_order_it_happened(suite):
    report, capture = captured(suite)
    assert report.green
    assert spelled(capture) == [
        "0 sent initialize",
        "frame 0",
        "1 sent session/new",
        "frame 1",
        "2 sent session/prompt",
        "call 0",
        "told 0",
        "end 0",
        "frame 2",
        "frame 3",
    ]


def test_what_was_told_is_the_answer_as_sent(suite):
    _, capture = captured(suite)
    (told,) = [moment for moment in capture.moments if isinstance(moment, Told)]
    assert b"hello there world" in b"".join(told.bodies)
    assert len(told.bodies) == capture.requests[0].bodies_sent > 2


def test_a_raw_line_is_kept_as_it_is(suite):
    suite.steps({"op": "initialize"}, {"op": "sendRaw", "text": "{nonsense", "replies": 1})
    _, capture = captured(suite)
    assert spelled(capture) == ["0 sent initialize", "frame 0", "1 raw {nonsense", "frame 1"]


def test_pieces_of_one_answer_are_one_moment_until_something_happens():
    trace = Trace()
    for piece in (b"a", b"b"):
        trace.told(0, piece)
    trace.told(1, b"x")
    trace.told(0, b"c")
    trace.add(Wrote(0))
    trace.told(0, b"d")
    assert trace.moments == [Told(0, [b"a", b"b"]), Told(1, [b"x"]), Told(0, [b"c"]), Wrote(0), Told(0, [b"d"])]
