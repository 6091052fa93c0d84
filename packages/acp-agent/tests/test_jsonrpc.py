"""Framing: lines to messages, however the bytes are cut."""

import msgspec
import pytest
from acp_agent.jsonrpc import (
    Answer,
    Call,
    LineSplitter,
    Malformed,
    Notice,
    answer_line,
    call_line,
    error_line,
    notice_line,
    read_message,
)
from hypothesis import given
from hypothesis import strategies as st

STREAMS = [
    (b"one\ntwo\n", [b"one", b"two"]),
    (b"one\r\n\r\n\ntwo\n", [b"one", b"two"]),
    (b"one\nunfinished", [b"one"]),
    ("ä€🙂\n".encode(), ["ä€🙂".encode()]),
    (b"", []),
]


@pytest.mark.parametrize(("stream", "lines"), STREAMS)
def test_lines_are_the_same_however_the_bytes_are_cut(stream, lines):
    for size in (1, 2, 3, len(stream) or 1):
        splitter = LineSplitter()
        cut = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert [line for piece in cut for line in splitter.feed(piece)] == lines


@given(
    st.lists(st.binary(min_size=1).filter(lambda b: b.strip() and b"\n" not in b and not b.endswith(b"\r"))), st.data()
)
def test_any_cut_gives_the_lines_back(lines, data):
    stream = b"".join(line + b"\n" for line in lines)
    at = data.draw(st.integers(0, len(stream)))
    splitter = LineSplitter()
    assert splitter.feed(stream[:at]) + splitter.feed(stream[at:]) == lines


MESSAGES = [
    (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}', Call(1, "m", {"a": 1})),
    (b'{"jsonrpc":"2.0","id":"x","method":"m"}', Call("x", "m", {})),
    (b'{"jsonrpc":"2.0","id":null,"method":"m"}', Call(None, "m", {})),
    (b'{"jsonrpc":"2.0","method":"m","params":[1]}', Notice("m", [1])),
    (b'{"jsonrpc":"2.0","id":1,"result":null}', Answer(1, None, None)),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"e"}}', Answer(1, None, {"code": 1, "message": "e"})),
]


@pytest.mark.parametrize(("line", "message"), MESSAGES)
def test_messages_are_told_apart(line, message):
    assert read_message(line) == message


MALFORMED = [
    (b"nonsense", None, -32700),
    (b'{"jsonrpc":"2.0","id":1,', None, -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', None, -32700),
    (b"[]", None, -32600),
    (b"7", None, -32600),
    (b'{"id":1,"method":"m"}', 1, -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"m"}', 1, -32600),
    (b'{"jsonrpc":"2.0","id":1}', 1, -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":3}', 1, -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"m"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"m"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":1,"error":"e"}', 1, -32600),
]


@pytest.mark.parametrize(("line", "id", "code"), MALFORMED)
def test_what_is_no_message_is_told_with_its_id(line, id, code):
    message = read_message(line)
    assert isinstance(message, Malformed)
    assert (message.id, message.code) == (id, code)


@given(st.binary())
def test_no_line_whatever_raises(line):
    read_message(line)


def test_what_we_write_is_one_line_of_json():
    lines = [answer_line(1, {"a": "b\nc"}), error_line(None, -32700, "no"), call_line(2, "m", {}), notice_line("m", {})]
    for line in lines:
        assert line.count(b"\n") == 1
        assert msgspec.json.decode(line)["jsonrpc"] == "2.0"
    assert "data" not in msgspec.json.decode(lines[1])["error"]
