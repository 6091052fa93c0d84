"""What is asked of whoever makes a suite: each answer is checked at once, by flags or on a terminal alike."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from fixture_guard.checks.files import name_fault
from msgspec import Struct

from session_snapshot.dialects import USUAL, known_dialect
from session_snapshot.errors import Refused
from session_snapshot.init.command import Command, read_command

DIALECT = "openai-chat"
"""What most agents speak."""


class Answers(Struct, frozen=True):
    """All that makes a suite. ``model_env`` and ``login`` are never asked for: few agents want them."""

    suite: str
    command: Command
    dialect: str
    base_url_env: str
    key_env: str
    model_env: str = ""
    login: str = ""


class Question(Struct, frozen=True):
    """One question: the flag that answers it, its words, what is usual, and what an answer must be."""

    flag: str
    words: str
    usual: Callable[[Mapping[str, str]], str]
    check: Callable[[str, Path], object]


def check_suite(name: str, snapshots: Path) -> str:
    """The name of a suite that is not there yet.

    Raises:
        Refused: no folder can have it, or a suite has.
    """
    check_name(name)
    if (snapshots / name / "agent.toml").is_file():
        raise Refused(
            f"the suite {name!r} is there already ({(snapshots / name).as_posix()}/agent.toml)",
            f"choose another name, or add a scenario to it: session-snapshot init {name}/NAME",
        )
    if (snapshots / name / HANDSHAKE).exists():
        raise Refused(
            f"{(snapshots / name / HANDSHAKE).as_posix()} is there already, without an agent.toml",
            "remove that folder, or choose another name",
        )
    return name


def check_name(name: str) -> str:
    """The name of a suite or a scenario: a folder's, on every system.

    Raises:
        Refused: it is none.
    """
    fault = name_fault(name) or ("" if NAME.fullmatch(name) else "letters, digits, '-', '_' and '.' only")
    if fault:
        near = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._").lower() or "agent"
        near = f"my-{near}" if name_fault(near) or near == "agent" else near
        raise Refused(f"{name!r} cannot be a folder's name: {fault}", f"write {near!r}")
    return name


def check_variable(name: str, _: Path) -> str:
    """The name of a variable of the environment. What is none is not repeated: it may be the key itself.

    Raises:
        Refused: it is none.
    """
    if not VARIABLE.fullmatch(name):
        raise Refused(
            "that is no variable's name (letters, digits and '_')",
            "write the name, e.g. OPENAI_API_KEY; the key itself stays in your environment",
        )
    return name


HANDSHAKE = "handshake"
"""The scenario every suite begins with."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

QUESTIONS: dict[str, Question] = {
    "command": Question("--command", "command that starts the agent", lambda _: "", read_command),
    "dialect": Question(
        "--dialect",
        f"dialect it speaks ({', '.join(USUAL)})",
        lambda _: DIALECT,
        lambda name, _: known_dialect(name),
    ),
    "base_url_env": Question(
        "--base-url-env",
        "variable that tells it the base URL",
        lambda so: USUAL[so["dialect"]].base_url_env,
        check_variable,
    ),
    "key_env": Question(
        "--key-env",
        "variable that holds its key",
        lambda so: USUAL[so["dialect"]].key_env,
        check_variable,
    ),
}
"""In the order in which they are asked; what is usual may follow from earlier answers."""
