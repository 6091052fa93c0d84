"""``agent.toml``: an agent under test, as data. No code is needed to onboard one.

Strings of ``command``, ``[env]``, ``[[model.files]]``, ``[dialects]`` and ``[persistence]`` may hold ``{{cwd}}``,
``{{home}}``, ``{{tmp}}``, ``{{agent}}`` (the install root), ``{{baseUrl}}``, ``{{origin}}`` (the base URL without its
path) and ``{{key}}``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from llm_dialects import DIALECTS
from msgspec import Meta, Struct
from normalizer import Declared

from session_snapshot.errors import FixtureError
from session_snapshot.lines import line_at, line_with
from session_snapshot.protocols import PROTOCOLS
from session_snapshot.strict import misspelt, parse_toml


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


class OtherDialect(Closed, frozen=True):
    """How the agent is told to speak another dialect than that of ``[model]``: ``replay --dialect NAME``.

    What is said here is laid over ``[model]`` and ``[env]``, what is not stays as it is there: ``files`` are written
    after those of ``[model]`` (one of the same path replaces it), ``arguments`` are appended to ``command``.
    """

    base_url_env: str | None = None
    key_env: str | None = None
    name: str | None = None
    name_env: str | None = None
    session_header: str | None = None
    arguments: list[str] = []
    env: dict[str, str] = {}
    files: list[ConfigFile] = []


class Price(Closed, frozen=True):
    """What a model costs, in US dollars per million tokens; ``cached_input`` is for what it reads from its cache."""

    input: Annotated[float, Meta(ge=0)]
    output: Annotated[float, Meta(ge=0)]
    cached_input: Annotated[float, Meta(ge=0)] | None = None


class Record(Closed, frozen=True):
    """Where a recording comes from: the variable that holds the real key, and the provider's base URL.

    The key is read from the environment, else from ``.env``. ``prices``: by the model's name, or what it begins with;
    the cost of a recording is shown where there are any.
    """

    key_env: str
    upstream_url: str = ""
    prices: dict[str, Price] = {}


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

    check: Literal["tool-results", "append-only", "leading-message", "envelope", "tools", "usage", "context"]
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
    dialects: dict[str, OtherDialect] = {}
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
        FixtureError: unknown key (nearest named), an empty command, a missing or wrong value, an unknown protocol or
            dialect, a rule that cannot be applied, an unknown placeholder.
    """
    agent = parse_toml(text, path, Agent)
    for check in CHECKS:
        for error in check(agent, text, path):
            raise error
    return agent


def declared_of(rule: NormalizeRule) -> Declared:
    """A ``[[normalize]]`` entry as the normaliser takes it.

    Raises:
        ValueError: it can find nothing, or its token, reason or pattern is none; the last line says what mends it.
    """
    return Declared(
        token=rule.token,
        reason=rule.reason,
        path=rule.path or None,
        key=rule.key or None,
        pattern=rule.pattern or None,
    )


# ── what the types cannot say ───────────────────────────────────────────────────────────────────────────────────────


def check_command(agent: Agent, text: str, path: str) -> Iterator[FixtureError]:
    """There is a program, and a protocol it can be spoken to in."""
    if agent.protocol not in PROTOCOLS:
        what, mend = f"nobody here speaks {agent.protocol!r}", f"set protocol to one of: {', '.join(PROTOCOLS)}"
        yield FixtureError(what, path, line_at(text, ("protocol",)), mend)
    if not agent.command:
        mend = 'name the program, e.g. command = ["my-agent", "--acp"]'
        yield FixtureError("command is empty", path, line_at(text, ("command",)), mend)


def check_dialect(agent: Agent, text: str, path: str) -> Iterator[FixtureError]:
    """The model's dialect is one that can be served."""
    if agent.model is not None and agent.model.dialect not in DIALECTS:
        what, line = f"unknown dialect {agent.model.dialect!r}", line_at(text, ("model", "dialect"))
        yield misspelt(what, agent.model.dialect, DIALECTS, path, line)


def check_other_dialects(agent: Agent, text: str, path: str) -> Iterator[FixtureError]:
    """Every ``[dialects]`` entry is about a dialect that can be served, and is not the one of ``[model]``."""
    for name in agent.dialects:
        line = line_at(text, ("dialects", name))
        if name not in DIALECTS:
            yield misspelt(f"unknown dialect {name!r}", name, DIALECTS, path, line)
        if agent.model is None:
            mend = "add [model] with the dialect that the agent speaks by itself"
            yield FixtureError(f"[dialects.{name}] is laid over [model], and there is none", path, line, mend)
        elif agent.model.dialect == name:
            mend = "remove it, or correct [model] dialect"
            yield FixtureError(f"[dialects.{name}] is the dialect of [model] itself", path, line, mend)


def check_persistence(agent: Agent, text: str, path: str) -> Iterator[FixtureError]:
    """A session log that is to be read can be found, and read."""
    log, line = agent.persistence, line_at(text, ("persistence", "format"))
    if log.format not in READ_FORMATS:
        what = f"session logs of format {log.format!r} are not read yet"
        yield FixtureError(what, path, line, "leave format and log out: the model's answers are recorded on the wire")
    if log.log and log.format == "none":
        mend = 'say format = "session-snapshot" if the agent writes that, else leave log out'
        yield FixtureError(
            "log names a session log, and format does not say what it is",
            path,
            line_at(text, ("persistence", "log")),
            mend,
        )
    if log.format == "session-snapshot" and not log.log:
        mend = 'say where it is, e.g. log = "{{home}}/.my-agent/sessions/*/session.jsonl"'
        yield FixtureError(
            "format says that the agent writes a session log, and log does not say where", path, line, mend
        )


def check_capabilities(agent: Agent, text: str, path: str) -> Iterator[FixtureError]:
    """What the client offers are capabilities the protocol knows."""
    for name in agent.capabilities:
        if name not in CAPABILITIES:
            yield misspelt(
                f"unknown capability {name!r}", name, CAPABILITIES, path, line_at(text, ("capabilities", name))
            )


def check_normalize(agent: Agent, text: str, path: str) -> Iterator[FixtureError]:
    """Every ``[[normalize]]`` entry is a rule that can be applied."""
    for index, rule in enumerate(agent.normalize):
        try:
            declared_of(rule)
        except ValueError as error:
            what, _, mend = str(error).partition("\nmend: ")
            yield FixtureError(what, path, line_at(text, ("normalize", index)), mend)


def check_ordering(agent: Agent, text: str, path: str) -> Iterator[FixtureError]:
    """Every ``[[ordering]]`` entry says of which frames, what becomes of them, and why."""
    for index, entry in enumerate(agent.ordering):
        line = line_at(text, ("ordering", index))
        if not entry.kind and (entry.rule or not entry.expand):
            yield FixtureError("[[ordering]] names no frames", path, line, "give it kind, or say expand = true")
        if entry.kind and not entry.rule:
            mend = 'give it rule = "float", "last" or "drop"'
            yield FixtureError(f"[[ordering]] {entry.kind}: no rule", path, line, mend)
        if entry.rule and not entry.reason.strip():
            yield FixtureError(f"[[ordering]] {entry.kind}: no reason", path, line, "say why the order varies")


def check_placeholders(agent: Agent, text: str, path: str) -> Iterator[FixtureError]:
    """Every placeholder stands for something where it is used."""
    adapter, files = agent.adapter or Adapter(), agent.model.files if agent.model else []
    told = (*PLACES, *(("baseUrl",) if agent.model else ()), "origin", "key")
    others = [string for other in agent.dialects.values() for string in strings_of(other)]
    uses = (
        (told, [*agent.command, *agent.env.values(), *adapter.arguments, *(file.text for file in files), *others]),
        (PLACES, [file.text for file in adapter.files]),
        (PLACES[:3], [agent.persistence.log]),
    )
    for known, strings in uses:
        yield from unknown_placeholders(strings, known, text, path)


def strings_of(other: OtherDialect) -> list[str]:
    """The strings of a ``[dialects]`` entry that may hold placeholders."""
    return [*other.arguments, *other.env.values(), *(file.text for file in other.files)]


def unknown_placeholders(strings: Iterable[str], known: Iterable[str], text: str, path: str) -> Iterator[FixtureError]:
    """An error for each placeholder in ``strings`` that is none of ``known``; ``text`` is the file they stand in."""
    for string in strings:
        try:
            render(string, dict.fromkeys(known, ""), path)
        except FixtureError as error:
            line = line_with(text, error.what.removeprefix(UNKNOWN_PLACEHOLDER))
            yield FixtureError(error.what, path, line, error.mend)


PLACEHOLDER = re.compile(r"\{\{([A-Za-z]+)\}\}")
UNKNOWN_PLACEHOLDER = "unknown placeholder "


def render(text: str, values: Mapping[str, str], path: str) -> str:
    """Fill ``{{name}}`` in a string of ``agent.toml``.

    Raises:
        FixtureError: a placeholder that is none of ``values``.
    """

    def fill(match: re.Match[str]) -> str:
        if match[1] not in values:
            known = ", ".join(f"{{{{{name}}}}}" for name in values)
            raise FixtureError(f"{UNKNOWN_PLACEHOLDER}{match[0]}", path, None, f"one of {known}")
        return values[match[1]]

    return PLACEHOLDER.sub(fill, text)


PLACES = ("cwd", "home", "tmp", "agent")
"""The placeholders that stand for folders."""

READ_FORMATS = ("none", "session-snapshot")
"""The formats of session logs that are read; the others have their names already."""

CAPABILITIES = ("fs", "terminal", "session", "plan", "auth", "elicitation", "nes", "positionEncodings", "_meta")
"""The members of ``ClientCapabilities`` in the schema of agent-client-protocol, version 1."""

CHECKS = (
    check_command,
    check_dialect,
    check_other_dialects,
    check_persistence,
    check_capabilities,
    check_normalize,
    check_ordering,
    check_placeholders,
)
"""What is checked once the file has its shape, in this order; the first error is told."""
