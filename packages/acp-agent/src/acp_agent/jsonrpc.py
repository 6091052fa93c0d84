"""JSON-RPC 2.0 in newline-delimited JSON: bytes to messages and back. Pure."""

from typing import Any

import msgspec
from msgspec import Struct

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

Id = str | int | None


class Call(Struct, frozen=True):
    """A request: wants one answer with the same ``id``."""

    id: Id
    method: str
    params: Any


class Notice(Struct, frozen=True):
    """A notification: wants no answer."""

    method: str
    params: Any


class Answer(Struct, frozen=True):
    """The other side's answer to one of our requests; ``error`` is ``None`` where it succeeded."""

    id: Id
    result: Any
    error: dict[str, Any] | None


class Malformed(Struct, frozen=True):
    """A line that is no message; ``id`` is the one to answer, where one could be read."""

    id: Id
    code: int
    message: str


Message = Call | Notice | Answer | Malformed


class LineSplitter:
    """Cuts a stream of bytes into lines; a line ends with LF, CR before it is dropped, empty lines are skipped."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that ``data`` completed."""
        *complete, rest = data.split(b"\n")
        if complete:
            complete[0] = b"".join([*self._parts, complete[0]])
            self._parts = []
        if rest:
            self._parts.append(rest)
        return [line.rstrip(b"\r") for line in complete if line.strip()]


def read_message(line: bytes) -> Message:
    """Read one line; never raises: what is no message is ``Malformed``."""
    try:
        value = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        return Malformed(None, PARSE_ERROR, f"Parse error: {error}")
    if not isinstance(value, dict):
        return Malformed(None, INVALID_REQUEST, "Invalid Request: not an object")
    return read_object(value)


def answer_line(id: Id, result: Any) -> bytes:
    """Return the line that answers request ``id``."""
    return line_of({"jsonrpc": "2.0", "id": id, "result": result})


def error_line(id: Id, code: int, message: str, data: Any = None) -> bytes:
    """Return the line that refuses request ``id``."""
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return line_of({"jsonrpc": "2.0", "id": id, "error": error})


def call_line(id: Id, method: str, params: Any) -> bytes:
    """Return the line of a request."""
    return line_of({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def notice_line(method: str, params: Any) -> bytes:
    """Return the line of a notification."""
    return line_of({"jsonrpc": "2.0", "method": method, "params": params})


# ── Helpers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_object(value: dict[str, Any]) -> Message:
    """Tell requests, notifications and answers apart by their members."""
    id = value.get("id")
    if isinstance(id, bool) or not isinstance(id, str | int | None):
        return Malformed(None, INVALID_REQUEST, "Invalid Request: id must be a string, an integer or null")
    if value.get("jsonrpc") != "2.0":
        return Malformed(id, INVALID_REQUEST, 'Invalid Request: jsonrpc must be "2.0"')
    method = value.get("method")
    if isinstance(method, str):
        params = value.get("params", {})
        return Call(id, method, params) if "id" in value else Notice(method, params)
    if "method" not in value and "id" in value and ("result" in value or isinstance(value.get("error"), dict)):
        return Answer(id, value.get("result"), value.get("error"))
    return Malformed(id, INVALID_REQUEST, "Invalid Request: neither a request nor an answer")


def line_of(value: dict[str, Any]) -> bytes:
    """Return one JSON value as a line."""
    return msgspec.json.encode(value) + b"\n"
