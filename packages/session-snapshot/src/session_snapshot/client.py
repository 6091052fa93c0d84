"""The client's side of what an agent asks: permissions from the script, files where the client says it has them."""

import re
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from session_snapshot.protocols import acp

LINE = re.compile(r"[^\n]*\n|[^\n]+")

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class ReadFile(Struct, frozen=True):
    """The parameters of ``fs/read_text_file`` that matter: ``line`` counts from 1, ``limit`` is a number of lines."""

    path: str
    line: int | None = None
    limit: int | None = None


class WriteFile(Struct, frozen=True):
    """The parameters of ``fs/write_text_file`` that matter."""

    path: str
    content: str


class ClientSide:
    """Answers an agent's requests; what went wrong about them is in ``failures``."""

    def __init__(self, cwd: Path, answers: deque[str], capabilities: Mapping[str, Any]) -> None:
        """``answers`` are the scripted permission kinds, first in first out; paths are relative to ``cwd``."""
        self.cwd = cwd
        self.answers = answers
        self.capabilities = capabilities
        self.failures: list[str] = []

    def answer(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        """The ``result`` or ``error`` member of the response to a request."""
        params = frame.get("params", {})
        try:
            match frame["method"]:
                case "session/request_permission":
                    return {"result": self.permission(msgspec.convert(params, dict[str, Any]))}
                case "fs/read_text_file" if self.has_files("readTextFile"):
                    return self.read(msgspec.convert(params, ReadFile))
                case "fs/write_text_file" if self.has_files("writeTextFile"):
                    return self.write(msgspec.convert(params, WriteFile))
                case method:
                    self.failures.append(f"the agent asked for {method!r}, which this client does not offer")
                    return failed(METHOD_NOT_FOUND, f"Method not found: {method}")
        except msgspec.ValidationError as error:
            self.failures.append(f"the agent asked for {frame['method']!r} with wrong parameters: {error}")
            return failed(INVALID_PARAMS, str(error))

    def permission(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The next scripted answer; cancelled where there is none or its kind is not offered, and that is a failure."""
        call = params.get("toolCall")
        title = call.get("title") if isinstance(call, dict) else None
        if not self.answers:
            self.failures.append(f"a permission request nobody scripted an answer for ({title!r}) was cancelled")
            return acp.CANCELLED
        kind = self.answers.popleft()
        result = acp.permission_result(params, kind)
        if result is None:
            offered = [option.get("kind") for option in acp.options_of(params)]
            self.failures.append(f"the scripted answer {kind!r} was not offered for {title!r} (offered: {offered})")
        return result or acp.CANCELLED

    def has_files(self, capability: str) -> bool:
        """Whether the client declared this file capability."""
        files = self.capabilities.get("fs")
        return isinstance(files, dict) and bool(files.get(capability))

    def read(self, asked: ReadFile) -> dict[str, Any]:
        """``fs/read_text_file``: the text, or the lines asked for."""
        try:
            text = (self.cwd / asked.path).read_bytes().decode()
        except (OSError, ValueError) as error:
            return failed(INTERNAL_ERROR, reason(error))
        lines = LINE.findall(text)
        first = max((asked.line or 1) - 1, 0)
        return {"result": {"content": "".join(lines[first : None if asked.limit is None else first + asked.limit])}}

    def write(self, asked: WriteFile) -> dict[str, Any]:
        """``fs/write_text_file``."""
        path = self.cwd / asked.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(asked.content, encoding="utf-8", newline="")
        except (OSError, ValueError) as error:
            return failed(INTERNAL_ERROR, reason(error))
        return {"result": {}}


def failed(code: int, message: str) -> dict[str, Any]:
    """The ``error`` member of a response."""
    return {"error": {"code": code, "message": message}}


def reason(error: OSError | ValueError) -> str:
    """Why a file cannot be used, without its path (which differs from run to run)."""
    return str(error.strerror) if isinstance(error, OSError) else "the text is not UTF-8"
