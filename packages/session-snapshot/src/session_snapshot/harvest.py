"""Collect what an agent left behind on disk: its own session logs, and the headers and tree that go with them."""

import glob
from pathlib import Path

from llm_replay import SessionLog, check_live, parse_log
from llm_replay.files import PRIMARY

from session_snapshot.agent import Agent, render
from session_snapshot.errors import AgentError, FixtureError
from session_snapshot.sandbox import Sandbox


def harvest_logs(agent: Agent, box: Sandbox, opened: list[str]) -> list[SessionLog]:
    """The agent's session logs: main sessions in the order they were ``opened``, then children by creation and id.

    Raises:
        AgentError: a log is malformed, or its ``seq`` has a gap.
    """
    if agent.persistence.format != "session-snapshot":
        return []
    logs = [read_log(path) for path in sorted(found(log_pattern(agent, box)))]
    return sorted((log for log in logs if log is not None), key=lambda log: order(log, opened))


def log_pattern(agent: Agent, box: Sandbox) -> str:
    """The glob of ``[persistence] log`` with the places of a run in it."""
    places = {name: glob.escape(str(path)) for name, path in (("cwd", box.cwd), ("home", box.home), ("tmp", box.tmp))}
    return render(agent.persistence.log, places, "agent.toml")


def found(pattern: str) -> list[Path]:
    """The files an absolute glob pattern matches."""
    path = Path(pattern)
    base = Path(path.anchor)
    return list(base.glob(str(path.relative_to(base))))


def read_log(path: Path, whole: bool = True) -> SessionLog | None:
    """Read one live log and check that it is one.

    With ``whole`` false the agent may still be writing it: an unended last line is left out, and ``None`` is a log
    that has no header yet.

    Raises:
        AgentError: it is malformed.
    """
    try:
        content = path.read_bytes()
        if not whole:
            content = content[: content.rfind(b"\n") + 1]
            if not content:
                return None
        log = parse_log(content.decode(), path.name)
        check_live(log)
    except (FixtureError, UnicodeDecodeError) as error:
        raise AgentError(f"the agent's session log is wrong: {error}", "correct the agent's persistence") from error
    return log


def order(log: SessionLog, opened: list[str]) -> tuple[bool, int, int, str]:
    """Main sessions before children; opened ones as they were opened, then by creation, then by id."""
    number = str(log.header.get("id", ""))
    place = opened.index(number) if number in opened else len(opened)
    created = log.header.get("createdAt")
    return "parentSession" in log.header, place, created if isinstance(created, int) else 0, number


def log_names(count: int) -> list[str]:
    """The committed names of so many logs: ``session.jsonl``, ``session.1.jsonl``, ..."""
    return [PRIMARY if number == 0 else f"session.{number}.jsonl" for number in range(count)]
