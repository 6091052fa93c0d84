"""What a recording shows, told the same way for every log format: tools called, their results, what was said.

Sources, in this order: ``tool/call``, ``tool/result`` and ``assistant/*`` events of a session log; for an agent we did
not write, the model's chunks in the log, and the tool results in the requests it sent.
"""

from collections.abc import Iterable, Iterator, Mapping

from llm_replay import SessionLog
from msgspec import Struct

from fixture_guard.shapes import Json, items, table, text


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
        said=tuple(said for _, log in logs for said in read_said(log)),
    )


def read_calls(path: str, log: SessionLog) -> Iterator[Call]:
    """Return the tool calls of a log: executed ones, those made by code, and those only the model's chunks hold."""
    executed = [read_call(path, event.line, event.data) for event in log.events if event.type == "tool/call"]
    yield from executed
    for event in log.events:
        if event.type == "tool/code-dispatch-start":
            yield read_call(path, event.line, event.data, direct=False)
    known = {call.id for call in executed}
    for line, block in finished_blocks(log):
        if block.get("type") == "tool-call" and text(block.get("id")) not in known:
            yield read_call(path, line, block)


def read_call(path: str, line: int, data: Mapping[str, Json], *, direct: bool = True) -> Call:
    """Read a call from a ``tool/call``, a dispatch of code, or a block."""
    call_id = text(data.get("callId")) or text(data.get("id"))
    return Call(path, line, call_id, text(data.get("name")), text(data.get("arguments")), direct)


def finished_blocks(log: SessionLog) -> Iterator[tuple[int, Mapping[str, Json]]]:
    """Return the line and the block of every ``block-end`` the model sent."""
    for event in log.events:
        chunk = table(event.data.get("chunk")) if event.type == "assistant/chunk" else {}
        if chunk.get("type") == "block-end":
            yield event.line, table(chunk.get("block"))


def read_results(path: str, log: SessionLog) -> Iterator[Result]:
    """Return the results of a log's ``tool/result`` events."""
    for event in log.events:
        if event.type == "tool/result":
            yield read_result(path, event.line, event.data)


def request_results(path: str, rows: Iterable[tuple[int, Json]]) -> Iterator[Result]:
    """Return the tool results among the messages that rows of ``requests.golden.jsonl`` append."""
    for line, row in rows:
        for message in items(table(row).get("append")):
            if table(message).get("role") == "tool":
                yield read_result(path, line, table(message))


def read_result(path: str, line: int, data: Mapping[str, Json]) -> Result:
    """Read a result from either shape of ``tool/result`` data, or from a tool message."""
    parts = [part for part in walk(data) if isinstance(part, dict)]
    ids = (text(part.get(key)) for part in parts for key in ("callId", "toolCallId"))
    return Result(
        path=path,
        line=line,
        call_id=next(filter(None, ids), ""),
        text="\n".join(texts(data)),
        is_error=any(part.get("isError") is True for part in parts) or bool(data.get("error")),
        code=text(table(data.get("error")).get("code")),
    )


def read_said(log: SessionLog) -> Iterator[str]:
    """Return every text of the model: finished blocks of its chunks, and the messages made of them."""
    for _, block in finished_blocks(log):
        if block.get("type") == "text":
            yield text(block.get("text"))
    for event in log.events:
        if event.type == "assistant/message":
            yield from texts(event.data.get("message"))


def texts(value: Json) -> Iterator[str]:
    """Return the strings under ``text``, ``content`` and ``output`` keys, at any depth, in order."""
    for part in walk(value):
        yield from (found for key in ("text", "content", "output") if (found := text(table(part).get(key))))
        yield from filter(text, items(table(part).get("content")))


def walk(value: Json) -> Iterator[Json]:
    """Return ``value`` and everything in it, parents first."""
    yield value
    for child in (*table(value).values(), *items(value)):
        yield from walk(child)
