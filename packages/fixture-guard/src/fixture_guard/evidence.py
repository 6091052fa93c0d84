"""What a recording shows, told the same way for every log format: tools called, their results, what was said.

Sources, in this order: ``tool/call``, ``tool/result`` and ``assistant/*`` events of a session log; for an agent we did
not write, the model's chunks in the log, and the tool results in the requests it sent.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from llm_replay import SessionLog
from msgspec import Struct

Json = Any


class Call(Struct, frozen=True):
    """A tool call: where it stands, and ``arguments`` as raw JSON text. ``direct``: the model itself called it."""

    path: str
    line: int
    id: str
    name: str
    arguments: str
    direct: bool = True


class Result(Struct, frozen=True):
    """A tool's result: where it stands, the call it answers, its text, and its error code (``""`` for none)."""

    path: str
    line: int
    call_id: str
    text: str
    is_error: bool
    code: str


class Evidence(Struct, frozen=True):
    """All that the logs of one scenario show, in log order, the primary session first."""

    calls: tuple[Call, ...]
    results: tuple[Result, ...]
    said: tuple[str, ...]


def read_evidence(logs: Iterable[tuple[str, SessionLog]]) -> Evidence:
    """Gather the evidence of a scenario's logs, each with the path a finding should name."""
    logs = list(logs)
    return Evidence(
        calls=tuple(call for path, log in logs for call in read_calls(path, log)),
        results=tuple(result for path, log in logs for result in read_results(path, log)),
        said=tuple(text for _, log in logs for text in read_said(log)),
    )


def read_calls(path: str, log: SessionLog) -> Iterator[Call]:
    """Return the tool calls of a log: executed ones, those only the model's chunks hold, and those made by code."""
    executed = set()
    for event in log.events:
        if event.type == "tool/call":
            executed.add(event.data.get("callId"))
            yield Call(path, event.line, event.data["callId"], event.data["name"], str(event.data.get("arguments", "")))
        elif event.type == "tool/code-dispatch-start":
            data = event.data
            yield Call(path, event.line, str(data.get("callId", "")), str(data.get("name", "")), "", direct=False)
    for event in log.events:
        block = finished_block(event.data) if event.type == "assistant/chunk" else {}
        if block.get("type") == "tool-call" and block["id"] not in executed:
            yield Call(path, event.line, block["id"], block["name"], block["arguments"])


def finished_block(data: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the whole block an ``assistant/chunk`` ends, or nothing."""
    chunk = data.get("chunk", {})
    block: Mapping[str, Json] = chunk.get("block", {}) if chunk.get("type") == "block-end" else {}
    return block


def read_results(path: str, log: SessionLog) -> Iterator[Result]:
    """Return the results of a log's ``tool/result`` events."""
    for event in log.events:
        if event.type == "tool/result":
            yield read_result(path, event.line, event.data)


def request_results(path: str, rows: Iterable[tuple[int, Json]]) -> Iterator[Result]:
    """Return the tool results among the messages that rows of ``requests.golden.jsonl`` append."""
    for line, row in rows:
        for message in row.get("append", ()) if isinstance(row, dict) else ():
            if message.get("role") == "tool":
                yield read_result(path, line, message)


def read_result(path: str, line: int, data: Mapping[str, Json]) -> Result:
    """Read a result from either shape of ``tool/result`` data, or from a tool message."""
    parts = [part for part in walk(data) if isinstance(part, dict)]
    error = data.get("error") or {}
    return Result(
        path=path,
        line=line,
        call_id=next((str(part[key]) for part in parts for key in ("callId", "toolCallId") if key in part), ""),
        text="\n".join(texts(data)),
        is_error=any(part.get("isError") is True for part in parts) or bool(error),
        code=str(error.get("code", "")) if isinstance(error, dict) else str(error),
    )


def read_said(log: SessionLog) -> Iterator[str]:
    """Return every text of the model: finished blocks of its chunks, and the messages made of them."""
    for event in log.events:
        block = finished_block(event.data) if event.type == "assistant/chunk" else {}
        if block.get("type") == "text":
            yield block["text"]
        elif event.type == "assistant/message":
            yield from texts(event.data.get("message", {}))


def texts(value: Json) -> Iterator[str]:
    """Return the strings under ``text``, ``content`` and ``output`` keys, at any depth, in order."""
    for part in walk(value):
        if isinstance(part, dict):
            yield from (part[key] for key in ("text", "content", "output") if isinstance(part.get(key), str))
            if isinstance(part.get("content"), list):
                yield from (item for item in part["content"] if isinstance(item, str))


def walk(value: Json) -> Iterator[Json]:
    """Return ``value`` and everything in it, parents first."""
    yield value
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        yield from walk(child)
