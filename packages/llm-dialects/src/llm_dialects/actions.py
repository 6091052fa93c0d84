"""What a server does, as values; one loop (``llm_mock_server``) performs them, tests compare lists of them.

A reply is an iterable of actions. Its end means: complete the response properly (terminating chunk of a chunked body,
keep-alive after it). Anything else a provider can do to a client is an action.
"""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct


class Head(Struct, frozen=True, tag=True):
    """Status line and headers. Without a ``content-length`` header the body is sent chunked."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()


class Body(Struct, frozen=True, tag=True):
    """Bytes of the body, written to the socket in one write."""

    data: bytes


class Pause(Struct, frozen=True, tag=True):
    """Wait ``seconds`` before the next action."""

    seconds: float


class Stall(Struct, frozen=True, tag=True):
    """Say nothing more until the client goes away."""


class Reset(Struct, frozen=True, tag=True):
    """Drop the connection now: ``rst`` sends a TCP reset, ``fin`` closes cleanly in the middle of the response."""

    how: Literal["rst", "fin"] = "rst"


Action = Head | Body | Pause | Stall | Reset
Reply = Iterable[Action]
