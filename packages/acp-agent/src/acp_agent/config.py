"""Settings: one complete TOML file, changed table by table by overlays. Pure; ``__main__`` reads the files.

The shipped ``config.toml`` is the single source of every default, so nothing here has one but what TOML cannot say
(the absence of a temperature).
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec
from llm_dialects.words import nearest
from msgspec import Struct

from acp_agent.errors import ConfigError

AskKind = Literal["escalate", "bash", "write"]
DialectName = Literal["openai-chat", "openai-responses", "anthropic-messages", "gemini"]
ToolName = Literal["bash", "read_file", "write_file", "edit_file"]


class ModelConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """``[model]``: who answers, and how patient the agent is with it."""

    seam: Literal["http", "replay"]
    dialect: DialectName
    name: str
    base_url: str
    base_url_env: str
    api_key_env: str
    max_tokens: int
    retries: int
    backoff_ms: int
    retry_after_max_ms: int
    silence_seconds: float
    temperature: float | None = None


class SessionsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """``[sessions]``: where session logs are kept; ``root`` may be empty (see ``sessions_root``)."""

    root: str


class ToolsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """``[tools]``: what the model may use, and within which limits."""

    enabled: tuple[ToolName, ...]
    bash_timeout_seconds: float
    output_limit_bytes: int
    environment: tuple[str, ...]


class PermissionsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """``[permissions]``: which acts the client is asked about."""

    ask: tuple[AskKind, ...]


class CompactionConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """``[compaction]``: when a long conversation is summarised, and how."""

    on_overflow: bool
    threshold_tokens: int
    window_tokens: int
    summary_max_tokens: int
    keep_tokens: int


class TurnConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """``[turn]``: the bounds of one prompt."""

    max_steps: int


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole configuration; a member is a table of the file."""

    model: ModelConfig
    sessions: SessionsConfig
    tools: ToolsConfig
    permissions: PermissionsConfig
    turn: TurnConfig
    compaction: CompactionConfig


class Source(Struct, frozen=True):
    """One configuration file: its name as the user gave it, and its text."""

    name: str
    text: str


def parse_config(sources: Sequence[Source]) -> Config:
    """Read a complete file and the overlays after it; where two set a key, the later one wins.

    Raises:
        ConfigError: not TOML, an unknown or missing key, or a value of the wrong kind; names file and line.
    """
    merged: dict[str, dict[str, Any]] = {}
    for source in sources:
        for table, values in read_source(source).items():
            merged.setdefault(table, {}).update(values)
    try:
        return msgspec.convert(merged, Config)
    except msgspec.ValidationError as error:
        raise wrong_value(sources, str(error)) from None


def sessions_root(config: Config, environment: Mapping[str, str], home: str) -> str:
    """Return the folder of all session logs, as ``config.toml`` describes it."""
    base = environment.get("ACP_AGENT_HOME") or f"{home}/.acp-agent"
    return config.sessions.root or f"{base}/sessions"


# ── Helpers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_source(source: Source) -> dict[str, dict[str, Any]]:
    """Return the tables of one file, every key of which is a known one."""
    try:
        tables: dict[str, Any] = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML: {error}", source.name, mend="correct the file") from None
    for table, values in tables.items():
        if table not in TABLES or not isinstance(values, dict):
            raise unknown_key(source, "", table, TABLES)
        known = msgspec.structs.fields(TABLES[table])
        for key in values:
            if key not in {field.name for field in known}:
                raise unknown_key(source, table, key, (field.name for field in known))
    return tables


def unknown_key(source: Source, table: str, key: str, known: Iterable[str]) -> ConfigError:
    """Return the error for a key that no setting has, with the nearest one that exists."""
    near, hint = meant(key, list(known))
    what = f"unknown key {key!r} in [{table}]" if table else f"unknown table [{key}]"
    mend = f"rename it to {near!r}" if near else "remove it"
    return ConfigError(f"{what}; {hint}", source.name, key_line(source.text, table, key), mend)


def meant(word: str, known: Sequence[str]) -> tuple[str, str]:
    """Return the known word that ``word`` may be meant to be, "" where none is near, and a hint that says so."""
    near = nearest(word, known, likeness=0.5)
    return near, f"did you mean {near!r}?" if near else f"known are {', '.join(known)}"


def hinted(what: str, table: str, key: str) -> str:
    """Return msgspec's words on a wrong word with the ones that would be right."""
    word, known = what.removeprefix(WRONG_WORD)[1:-1], words_of(table, key)
    return f"{what}; {meant(word, known)[1]}" if what.startswith(WRONG_WORD) and known else what


def words_of(table: str, key: str) -> tuple[str, ...]:
    """Return the words that a setting may be, or may list."""
    fields = msgspec.structs.fields(TABLES[table]) if table in TABLES else ()
    told = [field.type for field in fields if field.name == key]
    while told and not isinstance(told[0], str):
        told = [part for each in told for part in get_args(each) if part is not ...]
    return tuple(told)


def wrong_value(sources: Sequence[Source], message: str) -> ConfigError:
    """Turn msgspec's sentence (``... - at `$.model.retries```) into an error at the line that set the value last."""
    what, _, where = message.partition(" - at `$")
    table, _, key = where.rstrip("`").split("[")[0].strip(".").partition(".")
    missing = what.startswith("Object missing")
    place = (table, key) if key else ("", table)
    found = [(source, line) for source in sources if (line := key_line(source.text, *place))]
    source, line = (found[0] if missing else found[-1]) if found else (sources[0], None)
    name = ".".join(part for part in (table, key) if part)
    mend = "add it to this file, or give it as --overlay over the shipped one" if missing else "correct the value"
    what = hinted(what, table, key)
    return ConfigError(f"{name}: {what}" if name else what, source.name, line, mend)


def key_line(text: str, table: str, key: str) -> int | None:
    """Return the 1-based line that sets ``key`` in ``[table]`` (or opens the table ``key``); ``None`` if not found."""
    current = ""
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("#")[0].strip()
        if code.startswith("["):
            current = code.strip("[] \t")
            if not table and current.split(".")[0] == key:
                return number
            continue
        name = code.partition("=")[0].strip().replace('"', "").replace("'", "")
        if name and (f"{current}.{name}" if current else name) in (f"{table}.{key}" if table else key, table):
            return number
    return None


WRONG_WORD = "Invalid enum value "

TABLES: dict[str, type[Struct]] = {
    "model": ModelConfig,
    "sessions": SessionsConfig,
    "tools": ToolsConfig,
    "permissions": PermissionsConfig,
    "turn": TurnConfig,
    "compaction": CompactionConfig,
}
