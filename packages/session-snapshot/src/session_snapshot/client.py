"""The client's side of what an agent asks: permissions from the script, files where the client says it has them."""

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from session_snapshot.protocols import acp

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603


class ClientSide:
    """Answers an agent's requests; what went wrong about them is in ``failures``."""

    def __init__(self, cwd: Path, answers: deque[str], capabilities: Mapping[str, Any]) -> None:
        """``answers`` are the scripted permission kinds, first in first out."""
        self.cwd = cwd
        self.answers = answers
        self.capabilities = capabilities
        self.failures: list[str] = []

    def answer(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        """The ``result`` or ``error`` member of the response to a request."""
        params = frame.get("params") or {}
        match frame["method"]:
            case "session/request_permission":
                return {"result": self.permission(params)}
            case "fs/read_text_file" if self.has_files("readTextFile"):
                return self.read(params)
            case "fs/write_text_file" if self.has_files("writeTextFile"):
                return self.write(params)
            case method:
                self.failures.append(f"the agent asked for {method!r}, which this client does not offer")
                return {"error": {"code": METHOD_NOT_FOUND, "message": f"Method not found: {method}"}}

    def permission(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The next scripted answer; cancelled where there is none or its kind is not offered, and that is a failure."""
        title = (params.get("toolCall") or {}).get("title")
        if not self.answers:
            self.failures.append(f"a permission request nobody scripted an answer for ({title!r}) was cancelled")
            return acp.CANCELLED
        kind = self.answers.popleft()
        result = acp.permission_result(params, kind)
        if result is None:
            offered = [option.get("kind") for option in params.get("options") or []]
            self.failures.append(f"the scripted answer {kind!r} was not offered for {title!r} (offered: {offered})")
        return result or acp.CANCELLED

    def has_files(self, capability: str) -> bool:
        """Whether the client declared this file capability."""
        return bool((self.capabilities.get("fs") or {}).get(capability))

    def read(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """``fs/read_text_file``: the text, or the lines asked for."""
        try:
            lines = Path(params["path"]).read_text(encoding="utf-8").splitlines(keepends=True)
        except OSError as error:
            return {"error": {"code": INTERNAL_ERROR, "message": str(error.strerror)}}
        first = max(int(params.get("line") or 1) - 1, 0)
        limit = params.get("limit")
        return {"result": {"content": "".join(lines[first : None if limit is None else first + int(limit)])}}

    def write(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """``fs/write_text_file``."""
        path = Path(params["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(params["content"], encoding="utf-8", newline="")
        return {"result": {}}
