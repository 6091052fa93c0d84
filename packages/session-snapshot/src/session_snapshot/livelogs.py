"""An agent's own session logs while it still writes them: what is there so far, and waiting for more."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from llm_replay import Event, SessionLog
from msgspec import Struct

from session_snapshot import steps as ops
from session_snapshot.agent import Agent
from session_snapshot.files import until_changed
from session_snapshot.harvest import found, log_pattern, order, read_log
from session_snapshot.responses import in_json
from session_snapshot.sandbox import Sandbox

TURN_ENDS = ("turn/start", "turn/end")


class LiveLogs(Struct, frozen=True):
    """The logs that ``[persistence]`` says where to find, in the sandbox of one run."""

    agent: Agent
    box: Sandbox

    def all(self) -> list[SessionLog]:
        """Every log that has its header, as far as its lines are whole; by creation, then by id.

        Raises:
            AgentError: one is malformed.
        """
        read = [read_log(path, whole=False) for path in sorted(found(log_pattern(self.agent, self.box)))]
        return sorted((log for log in read if log is not None), key=lambda log: order(log, []))

    def events_of(self, session: str) -> tuple[Event, ...]:
        """What the log of a session holds; nothing where there is none yet."""
        return next((log.events for log in self.all() if log.header.get("id") == session), ())

    def subagents_of(self, session: str) -> list[SessionLog]:
        """The logs of a session's sub-agents, and of theirs, by creation."""
        logs = self.all()
        family = {session}
        for _ in logs:  # each look finds one more generation at most
            family |= {str(log.header.get("id")) for log in logs if log.header.get("parentSession") in family}
        return [log for log in logs if log.header.get("id") in family - {session}]

    async def until(self, true: Callable[[], bool]) -> None:
        """Return once ``true()`` holds; it is asked now and whenever a file changes where the logs are."""
        if not true():
            await until_changed(self.folder(), true)

    def folder(self) -> Path:
        """The folder of the sandbox that the logs are in."""
        pattern = Path(log_pattern(self.agent, self.box))
        homes = (self.box.cwd, self.box.home, self.box.tmp)
        return next((folder for folder in homes if pattern.is_relative_to(folder)), self.box.root)


def event_at(wait: ops.WaitForEvent, events: tuple[Event, ...], taken: int) -> int:
    """The place of the first event from ``taken`` on that a step waits for; -1 where there is none."""
    places = range(taken, len(events))
    return next((at for at in places if events[at].type == wait.type and wait.contains in in_json(events[at].data)), -1)


def ended_turns(log: SessionLog) -> int | None:
    """How many turns of its own a sub-agent has ended; ``None`` while it is in one."""
    turns = [event.type for event in own_events(log) if event.type in TURN_ENDS]
    return None if turns[-1:] == ["turn/start"] else turns.count("turn/end")


def own_events(log: SessionLog) -> tuple[Event, ...]:
    """The events of a log but for those it inherited of its parent."""
    seed = log.header.get("seedLength")
    return log.events[seed if isinstance(seed, int) else 0 :]


def told_of(events: tuple[Event, ...]) -> str:
    """What a log holds, in words: ``turn/start, 3 assistant/chunk``."""
    counts = Counter(event.type for event in events)
    return ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in counts.items()) or "nothing"
