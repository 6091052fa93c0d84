"""The state of one answer on its way out."""

from collections.abc import AsyncIterable, Awaitable, Iterator
from typing import Any

from llm_dialects import Action, Reply

from llm_mock_server.http1 import Framing, RawRequest
from llm_mock_server.journal import CapturedRequest, Outcome

ResponderResult = Reply | Awaitable[Any] | AsyncIterable[Action]
"""What a responder may give back: actions, actions that come one by one, or what will be either when awaited."""


class Exchange:
    """A request and how far its answer has come.

    Attributes:
        actions: The rest of the reply, None while it is awaited.
        driven: Whether a task performs the actions, as those of an asynchronous answer.
        frame: How the body is framed, None until there is a head.
        held: Bytes of the head that wait for the first of the body.
        owed: Bytes of an announced length that are not sent yet; negative where too many were.
        outcome: What the journal will say if the answer ends well.
    """

    __slots__ = (
        "actions",
        "answer",
        "captured",
        "driven",
        "frame",
        "held",
        "keep_alive",
        "outcome",
        "owed",
        "raw",
        "terminated",
    )

    def __init__(
        self, raw: RawRequest, captured: CapturedRequest, answer: ResponderResult, *, keep_alive: bool
    ) -> None:
        self.raw = raw
        self.captured = captured
        self.answer = answer
        self.keep_alive = keep_alive
        self.actions: Iterator[Action] | None = None
        self.driven = False
        self.frame: Framing | None = None
        self.held = b""
        self.owed = 0
        self.terminated = False
        self.outcome: Outcome = "completed"
