"""The JSON-RPC conversation: ids matched, requests answered, every fault kept and told to whoever waits."""

import asyncio
import json
from collections import deque
from pathlib import Path

import pytest
from session_snapshot.client import ClientSide
from session_snapshot.connection import Connection, raw_ids
from session_snapshot.errors import AgentError
from session_snapshot.protocols.message import Call
from session_snapshot.waiting import Changes


class Pipe:
    """The agent's end: keeps what it is sent, and says what a test has it say."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.exit_code: int | None = None

    def start_reading(self, on_output) -> None:
        self.on_output = on_output

    def write(self, line: bytes) -> None:
        self.sent.append(line)

    def says(self, *frames: object) -> None:
        self.on_output(b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))

    def said(self) -> list[object]:
        return [json.loads(line) for line in self.sent]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Connection, Pipe]:
    connection = Connection(ClientSide(tmp_path, deque(["cancelled"]), {}), 1000, Changes())
    pipe = Pipe()
    connection.attach(pipe)  # type: ignore[arg-type]
    return connection, pipe


def test_requests_are_numbered_and_notifications_are_not(pair) -> None:
    connection, pipe = pair
    numbers = [
        connection.request(Call("m", {"a": 1})),
        connection.request(Call("n", {}, True)),
        connection.request(Call("m", {})),
    ]
    assert numbers == [0, -1, 1]
    assert pipe.said() == [
        {"jsonrpc": "2.0", "id": 0, "method": "m", "params": {"a": 1}},
        {"jsonrpc": "2.0", "method": "n", "params": {}},
        {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {}},
    ]


def test_answers_in_any_order(pair) -> None:
    connection, pipe = pair
    first, second = connection.request(Call("m", {})), connection.request(Call("m", {}))

    async def work() -> list[dict]:
        asyncio.get_running_loop().call_soon(pipe.says, {"id": second, "result": 2}, {"id": first, "result": 1})
        return [await connection.answer(first), await connection.answer(second)]

    assert [answer["result"] for answer in asyncio.run(work())] == [1, 2]


def test_what_the_agent_asks_is_answered_under_its_id(pair) -> None:
    connection, pipe = pair
    pipe.says({"id": "p", "method": "session/request_permission", "params": {}}, {"method": "note"})
    assert pipe.said() == [{"jsonrpc": "2.0", "id": "p", "result": {"outcome": {"outcome": "cancelled"}}}]
    assert [frame.line for frame in connection.frames] == [1, 2]


@pytest.mark.parametrize("number", [0, 7, -1, "0", "x", True, 0.0, [1], {"a": 1}])
def test_an_answer_nobody_asked_for(pair, number: object) -> None:
    connection, pipe = pair
    connection.request(Call("m", {}))
    pipe.says({"id": 0, "result": {}})
    pipe.says({"id": number, "result": {}})
    assert "stdout line 2 answers a request nobody made or that was answered" in str(connection.fault)


def test_a_raw_request_may_be_answered_and_bad_input_too(pair) -> None:
    connection, pipe = pair
    connection.send_raw('{"id": "mine", "method": "x"}')
    pipe.says({"id": "mine", "result": 1}, {"id": None, "error": {"code": -32700}})
    assert connection.fault is None
    assert pipe.sent == [b'{"id": "mine", "method": "x"}']


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ('{"id": 1}', [1]),
        ('{"id": "a"}', ["a"]),
        ('{"id": null}', []),
        ('{"id": [1]}', []),
        ("[1]", []),
        ("{", []),
        ("[" * 99999, []),
    ],
)
def test_raw_ids(text: str, ids: list) -> None:
    assert raw_ids(text) == ids


def test_the_first_fault_counts_and_nothing_after_it(pair) -> None:
    connection, pipe = pair
    pipe.says({"method": "good"})
    pipe.on_output(b"bad\n{}\nworse\n")
    assert "stdout line 2 is not JSON" in str(connection.fault)
    pipe.on_output(b"bad again\n")
    pipe.says({"method": "late"})
    assert len(connection.frames) == 1

    async def work() -> None:
        await connection.until(lambda: False, "anything")

    with pytest.raises(AgentError, match="line 2 is not JSON"):
        asyncio.run(work())


def test_an_end_in_the_middle_of_a_line(pair) -> None:
    connection, pipe = pair
    pipe.on_output(b'{"a"')
    pipe.on_output(None)
    assert connection.ended and "in the middle of line 1" in str(connection.fault)


def test_line_numbers_and_ids_go_on_after_a_restart(pair) -> None:
    connection, pipe = pair
    connection.request(Call("m", {}))
    pipe.says({"id": 0, "result": {}}, {"method": "a"})
    pipe.on_output(None)
    again = Pipe()
    connection.attach(again)  # type: ignore[arg-type]
    connection.step = 3
    assert not connection.ended
    assert connection.request(Call("m", {})) == 1
    again.says({"method": "b"})
    assert (connection.frames[-1].line, connection.frames[-1].step) == (3, 3)
