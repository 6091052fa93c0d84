"""``agent.toml``: an agent under test, as data. No code is needed to onboard one.

Strings of ``command``, ``[env]``, ``[[model.files]]`` and ``[persistence]`` may hold ``{{cwd}}``, ``{{home}}``,
``{{tmp}}``, ``{{agent}}`` (the install root), ``{{baseUrl}}``, ``{{origin}}`` (the base URL without its path) and
``{{key}}``.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from session_snapshot.errors import FixtureError
from session_snapshot.protocols import PROTOCOLS
from session_snapshot.strict import line_of, parse_toml


class Closed(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table that holds no other keys."""


class ConfigFile(Closed, frozen=True):
    """A file rendered into the sandboxed home before boot; ``path`` is relative to it."""

    path: str
    text: str


class Model(Closed, frozen=True):
    """How the agent is told where its model is: the dialect it speaks, and the variables or files that carry URL and
    key."""

    dialect: str
    base_url_env: str = ""
    key_env: str = ""
    name: str = "fake-model"
    name_env: str = ""
    files: list[ConfigFile] = []
    session_header: str = ""


class Record(Closed, frozen=True):
    """Where a recording comes from: the variable that holds the real key, the provider's base URL, the model."""

    key_env: str
    upstream_url: str = ""
    model: str = ""


class Persistence(Closed, frozen=True):
    """The agent's own session log: a glob, its format, and the folders (relative to cwd) it may leave behind.

    ``format = "session-snapshot"`` is DESIGN section 5: such a log is the recording. Others are not read yet.
    """

    log: str = ""
    format: Literal["none", "session-snapshot", "jsonl", "json", "sqlite", "zstd"] = "none"
    state: list[str] = []


class Install(Closed, frozen=True):
    """How the agent gets onto the machine; ``kind = "workspace"`` is a member of this workspace.

    ``uv``: the suite folder's own ``pyproject.toml`` and ``uv.lock``, synced into ``.agents/<suite>/``.
    """

    kind: Literal["workspace", "uv", "none"] = "workspace"
    package: str = ""


class NormalizeRule(Closed, frozen=True):
    """A rule the generic ones do not cover: what ``path`` (JSON path, ``*`` for any) or ``pattern`` matches becomes
    ``token``."""

    token: str
    reason: str
    path: str = ""
    pattern: str = ""
    key: str = ""


class OrderingRule(Closed, frozen=True):
    """``float`` a kind to its step's end, keep the ``last`` of a run, or ``drop`` it; ``expand`` compares raw
    frames."""

    kind: str = ""
    rule: Literal["float", "last", "drop"] | None = None
    expand: bool = False
    reason: str = ""


class WireAllow(Closed, frozen=True):
    """A wire invariant this agent is known to break; one that is never used is an error."""

    check: Literal["tool-results", "append-only", "leading-message", "envelope", "tools"]
    reason: str


class Wire(Closed, frozen=True):
    """Declared breaches of the wire invariants."""

    allow: list[WireAllow] = []


class Adapter(Closed, frozen=True):
    """How a Python agent is told to replay its model in its own process (``seam = "adapter"``).

    ``arguments`` are appended to ``command``; ``files`` are rendered into the sandboxed home before boot. Only what
    swaps the provider belongs here (an overlay over the live configuration), never a copy of that configuration.
    """

    arguments: list[str] = []
    files: list[ConfigFile] = []


class GuardAllow(Closed, frozen=True):
    """A finding of the fixture guard that the suite's author has looked at and takes, and why.

    ``code`` is the finding's; ``path`` narrows it to files below that path (relative to the suite), ``contains``
    to findings whose sentence holds that text. One that takes nothing is itself a finding.
    """

    code: str
    reason: str
    path: str = ""
    contains: str = ""


class Guard(Closed, frozen=True):
    """What the fixture guard is told about this suite; the harness itself reads nothing of it."""

    allow: list[GuardAllow] = []


class Agent(Closed, frozen=True):
    """An agent under test: ``agent.toml``, shared by all scenarios of a suite.

    ``command``: the program and its arguments. ``stop``: how it is told to go, by the end of its stdin (eof) or by a
    signal (terminate), and ``exit_code`` what it then exits with. ``capabilities``: what the client says it offers.
    """

    command: list[str]
    description: str = ""
    protocol: str = "acp"
    stop: Literal["eof", "terminate"] = "eof"
    exit_code: int = 0
    env: dict[str, str] = {}
    model: Model | None = None
    record: Record | None = None
    persistence: Persistence = Persistence()
    install: Install = Install()
    normalize: list[NormalizeRule] = []
    ordering: list[OrderingRule] = []
    wire: Wire = Wire()
    adapter: Adapter | None = None
    guard: Guard = Guard()
    capabilities: dict[str, Any] = {}


def parse_agent(text: str, path: str) -> Agent:
    """Read ``agent.toml``.

    Raises:
        FixtureError: unknown key (nearest named), an empty command, a missing or wrong value, an unknown protocol.
    """
    agent = parse_toml(text, path, Agent)
    if agent.protocol not in PROTOCOLS:
        known = ", ".join(PROTOCOLS)
        line = line_of(text, "protocol")
        raise FixtureError(f"nobody here speaks {agent.protocol!r}", path, line, f"set protocol to one of: {known}")
    if not agent.command:
        raise FixtureError("command is empty", path, None, 'name the program, e.g. command = ["my-agent", "--acp"]')
    return agent


PLACEHOLDER = re.compile(r"\{\{([A-Za-z]+)\}\}")


def render(text: str, values: Mapping[str, str], path: str) -> str:
    """Fill ``{{name}}`` in a string of ``agent.toml``.

    Raises:
        FixtureError: a placeholder that is none of ``values``.
    """

    def fill(match: re.Match[str]) -> str:
        if match[1] not in values:
            known = ", ".join(f"{{{{{name}}}}}" for name in values)
            raise FixtureError(f"unknown placeholder {match[0]}", path, None, f"one of {known}")
        return values[match[1]]

    return PLACEHOLDER.sub(fill, text)
