"""An agent's stdout, cut into lines and read as frames; every fault is the agent's, named with its line number."""

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from session_snapshot.errors import AgentError

SHOWN = 200
"""How many bytes of a bad line an error shows."""


class Frame(Struct, frozen=True):
    """One JSON-RPC message the agent wrote: the ``line`` it stood on (from 1), the ``step`` (from 0) it came in, its
    value."""

    line: int
    step: int
    value: dict[str, Any]


def is_response(value: Mapping[str, Any]) -> bool:
    """Whether a frame answers one of the client's requests."""
    return "method" not in value


def is_request(value: Mapping[str, Any]) -> bool:
    """Whether a frame asks the client something."""
    return "method" in value and "id" in value


class LineSplitter:
    """Cuts bytes into lines as they arrive, in bounded memory."""

    def __init__(self, frame_bytes: int) -> None:
        """``frame_bytes`` is the longest line allowed."""
        self.frame_bytes = frame_bytes
        self.lines = 0
        self._parts: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Return the lines that ``data`` completes, each with its number.

        Raises:
            AgentError: a line longer than ``frame_bytes``, finished or not.
        """
        *ended, rest = data.split(b"\n")
        result = []
        for piece in ended:
            self._hold(piece)
            self.lines += 1
            result.append((self.lines, b"".join(self._parts)))
            self._parts, self._held = [], 0
        self._hold(rest)
        return result

    def close(self) -> None:
        """Say that no more comes.

        Raises:
            AgentError: the output ends in the middle of a line.
        """
        if self._held:
            shown = b"".join(self._parts)[:SHOWN]
            raise AgentError(
                f"stdout ended in the middle of line {self.lines + 1}: {printable(shown)}",
                "write each frame and its newline in one piece, and flush before exit",
            )

    def _hold(self, piece: bytes) -> None:
        self._held += len(piece)
        if self._held > self.frame_bytes:
            raise AgentError(
                f"stdout line {self.lines + 1} is longer than {self.frame_bytes} bytes (limits.frame_bytes)",
                "make the agent cut its output, or raise [limits] frame_bytes in scenario.toml",
            )
        if piece:
            self._parts.append(piece)


def parse_frame(number: int, data: bytes, step: int) -> Frame:
    """Read one line of stdout.

    Raises:
        AgentError: invalid UTF-8, not JSON, or JSON that is no object.
    """
    try:
        value = json.loads(data.decode())
    except UnicodeDecodeError as error:
        raise bad_line(number, data, f"is not UTF-8 (byte {error.start})") from error
    except (ValueError, RecursionError) as error:
        raise bad_line(number, data, "is not JSON") from error
    if not isinstance(value, dict):
        raise bad_line(number, data, "is JSON but not a JSON-RPC object")
    return Frame(number, step, value)


def bad_line(number: int, data: bytes, what: str) -> AgentError:
    """An error that shows the beginning of the line."""
    return AgentError(
        f"stdout line {number} {what}: {printable(data[:SHOWN])}",
        "stdout carries protocol frames only: send logs and prints to stderr",
    )


def printable(data: bytes) -> str:
    """``data`` as a quoted string that any terminal can show."""
    return repr(data.decode(errors="backslashreplace"))
