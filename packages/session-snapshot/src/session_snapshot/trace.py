"""What happened in a run, in the order it happened: what was sent to the agent, what it wrote, what it asked its model
and what it was told. The frames and the calls themselves are kept where they belong; a trace only knows their places.
"""

from typing import Any

from msgspec import Struct


class Sent(Struct, frozen=True):
    """The editor's side wrote a message in this step (from 0); a raw line is kept as its text."""

    step: int
    value: dict[str, Any] | str


class Wrote(Struct, frozen=True):
    """The agent wrote a frame: its place among all frames, from 0."""

    frame: int


class Asked(Struct, frozen=True):
    """A model call came in: its place among all calls, from 0."""

    call: int


class Told(Struct, frozen=True):
    """The agent was told pieces of the answer to a call, nothing else happening in between: the bodies as sent."""

    call: int
    bodies: list[bytes]


class Ended(Struct, frozen=True):
    """The answer to a call was over, said to its end or not."""

    call: int


Moment = Sent | Wrote | Asked | Told | Ended


class Trace:
    """The moments of one run. Everything in a run happens in one event loop, so that there is one order."""

    def __init__(self) -> None:
        """Nothing has happened yet."""
        self.moments: list[Moment] = []

    def add(self, moment: Moment) -> None:
        """Take down a moment."""
        self.moments.append(moment)

    def told(self, call: int, body: bytes) -> None:
        """Take down a piece of an answer."""
        last = self.moments[-1] if self.moments else None
        if isinstance(last, Told) and last.call == call:
            last.bodies.append(body)
        else:
            self.add(Told(call, [body]))
