import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_dialects import SseDecoder, SseEvent, encode_event


def decode(wire, size):
    decoder = SseDecoder()
    events = [event for at in range(0, len(wire), size) for event in decoder.feed(wire[at : at + size])]
    return events, decoder.close()


def check(wire, events, rest=b""):
    """Decode whole, byte by byte, by threes, and with a tail that is no event yet."""
    for size in (len(wire) or 1, 1, 3):
        assert decode(wire, size) == (events, rest)
    if not rest:
        assert decode(wire + b"data: tail", 2) == (events, b"data: tail")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_is_understood(end):
    lines = [b": hello", b"event: ping", b"data: 1", b"data: zw\xc3\xb6lf", b"", b"data:2", b""]
    check(end.join([*lines, b""]), [SseEvent("1\nzwölf", "ping"), SseEvent("2")])


@pytest.mark.parametrize(
    ("wire", "events"),
    [
        (b"", []),
        (b"\n\n\n", []),
        (b"\xef\xbb\xbfdata: x\n\n", [SseEvent("x")]),
        (b"data: x\n\n\xef\xbb\xbfdata: y\n\n", [SseEvent("x")]),
        (b"data\n\n", [SseEvent("")]),
        (b"data:\ndata:\n\n", [SseEvent("\n")]),
        (b"data:  two\n\n", [SseEvent(" two")]),
        (b"event: lost\n\ndata: x\n\n", [SseEvent("x")]),
        (b"id: 7\ndata: x\n\ndata: y\n\n", [SseEvent("x", None, "7"), SseEvent("y", None, "7")]),
        (b"id: 7\ndata: x\n\nid\ndata: y\n\n", [SseEvent("x", None, "7"), SseEvent("y", None, "")]),
        (b"id: a\0b\ndata: x\n\n", [SseEvent("x")]),
        (b"retry: 5\nother: 1\ndata: x\n\n", [SseEvent("x")]),
        (b"data: \xff\n\n", [SseEvent("\ufffd")]),
        (b"data: a: b\n\n", [SseEvent("a: b")]),
    ],
)
def test_the_rules_of_the_standard(wire, events):
    check(wire, events)


def test_an_event_without_its_empty_line_is_left_over():
    check(b"data: x\n\nevent: e\ndata: y\ndata: z", [SseEvent("x")], b"event: e\ndata: y\ndata: z")


def test_a_long_line_in_many_pieces_is_read_once():
    decoder = SseDecoder()
    assert decoder.feed(b"data: ") == []
    for _ in range(20_000):
        assert decoder.feed(b"0123456789") == []
    (event,) = decoder.feed(b"\n\n")
    assert len(event.data) == 200_000


names = st.one_of(st.none(), st.text("ab c", min_size=1).map(str.strip).filter(bool))


@settings(deadline=None)
@given(data=st.text(), event=names, size=st.integers(1, 9))
def test_an_encoded_event_is_decoded_again(data, event, size):
    lines = data.replace("\r\n", "\n").replace("\r", "\n")
    assert decode(encode_event(data, event), size) == ([SseEvent(lines, event)], b"")


def test_the_bytes_of_an_event():
    assert encode_event("a\nb", event="e", id="7") == b"event: e\nid: 7\ndata: a\ndata: b\n\n"
