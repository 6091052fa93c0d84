"""What the module of a protocol offers; all of it is pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from session_snapshot.protocols.message import Call
from session_snapshot.steps import Step


class AgentProtocol(Protocol):
    """What a protocol's module offers; all of it is pure."""

    def call_of(self, step: Step, session: str, capabilities: Mapping[str, Any]) -> Call | None:
        """The message a step sends first, or ``None`` where it sends none."""

    def cancel(self, session: str) -> Call:
        """The message that cancels a session's turn."""

    def update_of(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        """The update a frame carries, else an empty object."""

    def tokens_spent(self, frame: Mapping[str, Any]) -> tuple[int, int, int | None] | None:
        """Input, output and (where told) total tokens that a frame says were spent, else ``None``."""

    def tokens_in_context(self, frame: Mapping[str, Any]) -> int | None:
        """How many tokens a frame says are in the context, else ``None``."""

    def text_of(self, frame: Mapping[str, Any]) -> str:
        """The piece of the agent's answer a frame carries, else ``""``."""

    def count_kinds(self, frames: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """How many frames of each kind; a run of text chunks counts once."""

    def failed_tools(self, frames: Iterable[Mapping[str, Any]]) -> int:
        """How many tool calls the frames tell to have failed."""

    def introduction(self, frames: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
        """What the agent says of itself when a session is made: a heading and a line each."""

    def wanted_login(self, frames: Iterable[Mapping[str, Any]]) -> list[str] | None:
        """The login methods of an agent that makes no session without one; ``None`` where it does."""
