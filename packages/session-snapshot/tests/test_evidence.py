"""Exit codes, tools and compactions, read from what went over the wire and from the agent's logs."""

import json

import pytest
from llm_dialects.chunks import BlockEnd, TextBlock, ToolCallBlock
from llm_dialects.entries import Chunks
from llm_dialects.requests import Message, Request, ToolResultPart
from llm_replay import parse_log
from session_snapshot.calls import LiveCall
from session_snapshot.evidence import codes_in, exit_codes, logged_compactions, tools_of


def result(text: str, call_id: str = "c") -> ToolResultPart:
    return ToolResultPart(call_id=call_id, content=tuple(TextBlock(text=part) for part in text.split("|")))


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("out\n[exit code: 3]", [3]),
        ("out\n[exit code: -9]\n", [-9]),
        ("Exit code: 0", [0]),
        ("Command failed with exit code 127", [127]),
        ("first|[exit code: 2]", [2]),
        ("[exit code: 1]\nbut then more was said", []),
        ("the docs say: exit codes are numbers", []),
        ("", []),
    ],
)
def test_codes_at_the_end_of_a_result(text: str, codes: list[int]) -> None:
    assert list(codes_in(result(text))) == codes


def call_with(*results: ToolResultPart) -> LiveCall:
    messages = tuple(Message(role="tool", content=(one,)) for one in results)
    return LiveCall(0, Request(system=(), tools=(), messages=messages, params={}), b"{}", None, None)


def test_a_result_counts_once_however_often_the_history_holds_it() -> None:
    first, second = result("[exit code: 1]", "a"), result("[exit code: 0]", "b")
    assert exit_codes([call_with(first), call_with(first, second)]) == [1, 0]


def test_tools_in_the_order_they_were_called() -> None:
    def entry(*names: str) -> Chunks:
        calls = [ToolCallBlock(id=name, name=name, arguments="") for name in names]
        return Chunks(chunks=tuple(BlockEnd(index=at, block=block) for at, block in enumerate(calls)))

    assert tools_of([entry("b", "a"), entry(), entry("b")]) == ["b", "a", "b"]


def test_compactions_are_counted_where_they_end_well_in_every_log() -> None:
    header = {"type": "session", "format": "session-snapshot", "version": 1, "id": "s"}
    start, done = {"type": "compaction/start", "data": {}}, {"type": "compaction/end", "data": {"tokensAfter": 1}}
    failed = {"type": "compaction/end", "data": {"error": {"code": "CANCELLED"}}}
    logs = [
        parse_log("".join(json.dumps(row) + "\n" for row in (header, *rows)), "session.jsonl")
        for rows in ([start, done, start, failed], [], [start, done, start])
    ]
    assert logged_compactions(logs) == 2
    assert logged_compactions([]) == 0
