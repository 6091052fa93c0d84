"""stdout as it comes: whole, byte by byte, with a tail; and everything that is no frame."""

import json
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_snapshot.errors import AgentError
from session_snapshot.frames import LineSplitter, is_request, is_response, parse_frame

TEXT = b'{"id":1}\r\n{"a":"\xc3\xa9"}\n\n{"b":2}\n'
LINES = [(1, b'{"id":1}\r'), (2, b'{"a":"\xc3\xa9"}'), (3, b""), (4, b'{"b":2}')]


def lines_of(pieces: Iterable[bytes], most: int = 1000) -> list[tuple[int, bytes]]:
    splitter = LineSplitter(most)
    found = [line for piece in pieces for line in splitter.feed(piece)]
    splitter.close()
    return found


def test_whole_and_byte_by_byte() -> None:
    assert lines_of([TEXT]) == LINES
    assert lines_of(bytes([byte]) for byte in TEXT) == LINES
    assert lines_of([]) == []


@given(st.lists(st.integers(0, len(TEXT)), max_size=6).map(sorted))
@settings(deadline=None)
def test_cut_anywhere(cuts: list[int]) -> None:
    edges = [0, *cuts, len(TEXT)]
    assert lines_of(TEXT[a:b] for a, b in pairwise(edges)) == LINES


def test_a_tail_without_its_newline_is_told() -> None:
    with pytest.raises(AgentError, match=r"ended in the middle of line 5: '{\"c\"'"):
        lines_of([TEXT, b'{"c"'])


@pytest.mark.parametrize("pieces", [[b"x" * 11], [b"x" * 6, b"x" * 5], [b"{}\n" + b"x" * 11 + b"\n"]])
def test_a_line_too_long_is_told_before_it_ends(pieces: list[bytes]) -> None:
    with pytest.raises(AgentError, match=r"stdout line \d is longer than 10 bytes"):
        lines_of(pieces, 10)


def test_lines_as_long_as_allowed_pass() -> None:
    assert lines_of([b"x" * 10 + b"\n"] * 2, 10) == [(1, b"x" * 10), (2, b"x" * 10)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"hello", "stdout line 7 is not JSON: 'hello'"),
        (b"", "stdout line 7 is not JSON"),
        (b'{"a":', "stdout line 7 is not JSON"),
        (b"[" * 100_000, "stdout line 7 is not JSON"),
        (b'{"a":"\xff"}', "stdout line 7 is not UTF-8 (byte 6)"),
        (b"[1]", "stdout line 7 is JSON but not a JSON-RPC object"),
        (b"\x1b[31mred", "stdout line 7 is not JSON: '\\x1b[31mred'"),
    ],
)
def test_what_is_no_frame(line: bytes, said: str) -> None:
    with pytest.raises(AgentError) as caught:
        parse_frame(7, line, 0)
    assert said in str(caught.value)
    assert str(caught.value).splitlines()[-1].startswith("mend: stdout carries protocol frames only")
    assert len(str(caught.value)) < 500


def test_a_frame() -> None:
    frame = parse_frame(3, b'{"id":1,"result":{}}\r', 2)
    assert (frame.line, frame.step, frame.value) == (3, 2, {"id": 1, "result": {}})


@pytest.mark.parametrize(
    ("frame", "asks", "answers"),
    [('{"id":1,"method":"m"}', True, False), ('{"method":"m"}', False, False), ('{"id":1,"result":1}', False, True)],
)
def test_kinds_of_frames(frame: str, asks: bool, answers: bool) -> None:
    assert (is_request(json.loads(frame)), is_response(json.loads(frame))) == (asks, answers)
