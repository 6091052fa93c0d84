"""What every tool is made of: the values that go in and come out."""

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from acp_agent.config import ToolsConfig


class ToolContext(Struct, frozen=True):
    """Where a tool works: the session's directory, the folder for long outputs, and a command's environment."""

    cwd: Path
    spill: Path
    config: ToolsConfig
    environment: Mapping[str, str]


class FileChange(Struct, frozen=True):
    """A file's text before (``None``: there was none) and after."""

    path: str
    old: str | None
    new: str


class ToolOutcome(Struct, frozen=True):
    """What the model is told; with a ``code`` it is an error."""

    text: str
    code: str | None = None
    change: FileChange | None = None


class ToolError(Exception):
    """Raised inside a tool: becomes an outcome with ``code``."""

    def __init__(self, code: str, text: str) -> None:
        self.code, self.text = code, text
        super().__init__(text)


class ToolSpec(Struct, frozen=True):
    """One tool: how the model sees it, how the client sees it, and what it does.

    ``title`` is a format over the arguments; ``kind`` is ACP's; ``ask`` names the act where it changes something.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    kind: Literal["execute", "read", "edit"]
    title: str
    arguments: type[Struct]
    run: Callable[[ToolContext, Any], Awaitable[ToolOutcome]]
    ask: Literal["bash", "write"] | None


def inside(context: ToolContext, path: str, *, reading: bool = False) -> Path:
    """Return ``path`` resolved, links included, if it lies in the session's directory.

    What is only read may also be one of the session's long outputs.

    Raises:
        ToolError: ``OUTSIDE_CWD``, or ``IO_ERROR`` for what no file can be named.
    """
    if "\0" in path:
        raise ToolError("IO_ERROR", "no file name holds a NUL")
    target = Path(os.path.realpath(context.cwd / path))
    roots = [context.cwd, context.spill] if reading else [context.cwd]
    if not any(target.is_relative_to(os.path.realpath(root)) for root in roots):
        raise ToolError("OUTSIDE_CWD", f"{path} is outside the working directory {context.cwd}")
    return target
