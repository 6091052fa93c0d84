"""What an agent says its model calls cost: in its own log, in its responses, in its updates."""

from collections.abc import Iterator

import msgspec
from llm_dialects.chunks import Usage
from llm_replay import Event, SessionLog

from session_snapshot.harvest import log_names
from session_snapshot.invariants import Claim, InContext, Logged, Spent
from session_snapshot.livelogs import own_events
from session_snapshot.protocols import AgentProtocol
from session_snapshot.run import Capture
from session_snapshot.trace import Asked, Wrote

COUNTED = ("assistant/message", "compaction/summary")
"""The events that say what one model call cost."""


def claims_of(capture: Capture, protocol: AgentProtocol) -> list[Claim]:
    """Everything that a run's agent says of usage."""
    names = log_names(len(capture.logs))
    logged = [claim for name, log in zip(names, capture.logs, strict=True) for claim in claims_in_log(name, log)]
    return [*logged, *claims_in_frames(capture, protocol)]


def claims_in_log(name: str, log: SessionLog) -> Iterator[Claim]:
    """What a log says, but for what it inherited of its parent; what is no usage is left to the log's own surface."""
    for event in own_events(log):
        if event.type in COUNTED and "usage" in event.data:
            try:
                usage = msgspec.convert(event.data["usage"], Usage)
            except msgspec.ValidationError:
                continue
            yield Logged(f"{name}: {place_of(event)}", usage)


def place_of(event: Event) -> str:
    """An event and where in the conversation it stands."""
    turn = ", ".join(f"{key} {event.data[key]}" for key in ("turn", "step") if event.data.get(key) is not None)
    return f"{event.type} ({turn})" if turn else event.type


def claims_in_frames(capture: Capture, protocol: AgentProtocol) -> Iterator[Claim]:
    """What frames say, each with the number of model calls made before it."""
    calls = 0
    for moment in capture.moments:
        match moment:
            case Asked():
                calls += 1
            case Wrote(frame=number):
                frame = capture.frames[number]
                spent, used = protocol.tokens_spent(frame.value), protocol.tokens_in_context(frame.value)
                where = f"stdout line {frame.line}"
                if spent is not None:
                    yield Spent(where, calls, *spent)
                if used is not None:
                    yield InContext(where, calls, used)
            case _:
                pass
