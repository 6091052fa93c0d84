"""The parts of ``scenario.toml``, ``agent.toml`` and ``provenance.toml`` that a fixture is judged by.

The harness owns the closed schemas and reports unknown keys; here a key this module does not know is passed over.
"""

import re
from typing import Any, Literal

from msgspec import Struct, field

Recording = Literal["live", "scripted", "authored"]


class Header(Struct, frozen=True):
    """The header class of the scenario's model calls, and whether this scenario pins its readable content."""

    class_: str = field(default="default", name="class")
    pin: bool = False


class Workspace(Struct, frozen=True):
    """``final``: a person wrote down the tree the run must leave."""

    final: bool = False


class Expect(Struct, frozen=True):
    """The author's intent as data; the names are those of ``scenario.toml``."""

    tools_called: tuple[str, ...] | None = None
    tools_not_called: tuple[str, ...] = ()
    exit_codes: tuple[int, ...] = (0,)
    stop_reason: str | None = None
    error_codes: tuple[str, ...] | None = None
    answer_contains: tuple[str, ...] = ()
    model_calls: int | None = None
    compactions: int = 0

    def asserts_something(self) -> bool:
        """Whether this can fail for a run that did nothing it was written to show."""
        named = (self.tools_called, self.answer_contains, self.stop_reason, self.error_codes, self.compactions)
        return any(named) or self.model_calls is not None


class Settings(Struct, frozen=True):
    """``scenario.toml``."""

    recording: Recording
    overridden: bool = False
    header: Header = Header()
    workspace: Workspace = Workspace()
    expect: Expect = Expect()


class Allow(Struct, frozen=True):
    """A finding the suite's author has looked at and takes: ``code``, below ``path`` (``""``: anywhere), and why.

    ``contains`` narrows it to findings whose sentence holds that text.
    """

    code: str
    reason: str
    path: str = ""
    contains: str = ""


class GuardSettings(Struct, frozen=True):
    """``[guard]`` of ``agent.toml``."""

    allow: tuple[Allow, ...] = ()


class AgentSettings(Struct, frozen=True):
    """``agent.toml``."""

    guard: GuardSettings = GuardSettings()


class AgentVersion(Struct, frozen=True):
    """Which agent made the recording."""

    name: str
    version: str


class Provenance(Struct, frozen=True):
    """``provenance.toml``: who, what and when made a fixture. ``frames`` belongs to the harness alone."""

    made_by: Literal["record", "refresh", "hand"]
    upstream: Literal["model", "script", "none"]
    agent: AgentVersion
    harness: str | dict[str, Any]
    platform: str
    lock: str
    digest: str
    frames: dict[str, Any] | list[Any]
    dialect: str = ""
    model: str = ""


def line_of_key(text: str, key: str) -> int | None:
    """Return the line (from 1) of the first assignment to ``key`` or of the table ``[key]``, if there is one."""
    pattern = rf"^[ \t]*(?:\[+[ \t]*)?(?:\w+\.)*{re.escape(key)}\b"
    match = re.search(pattern, text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match else None
