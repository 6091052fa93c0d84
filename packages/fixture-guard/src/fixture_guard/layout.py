"""The files below ``snapshots/`` as suites and scenarios, parsed once so that every check reads values.

A suite is a folder with an ``agent.toml``; a scenario is a folder of a suite that holds at least one file of a
scenario's. What cannot be read becomes a ``problem`` here, and the checks see only what could.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from llm_replay import FixtureError, SessionLog, parse_log
from msgspec import Struct

from fixture_guard.finding import Finding
from fixture_guard.settings import AgentSettings, Provenance, Settings
from fixture_guard.shapes import Json, items, read_json, table, text
from fixture_guard.surroundings import Surroundings

SESSION = re.compile(r"session(\.[1-9]\d*)?\.jsonl")
SESSION_LIKE = re.compile(r"session\.(?:[^./]+\.)?jsonl")
"""A name that is, or tries to be, a session log's."""


class Row(Struct, frozen=True):
    """One line of a JSON-lines file; ``line`` counts from 1."""

    line: int
    value: Json


class Log(Struct, frozen=True):
    """One session log of a scenario; ``name`` is its file name."""

    name: str
    log: SessionLog


class Scenario(Struct, frozen=True, kw_only=True):
    """One scenario folder whose ``scenario.toml`` could be read. ``path`` is relative to the folder of suites."""

    path: str
    files: Mapping[str, bytes]
    settings: Settings
    provenance: Provenance | None
    prompts: tuple[str, ...]
    logs: tuple[Log, ...]
    requests: tuple[Row, ...]
    frames: tuple[Row, ...]

    @property
    def is_told(self) -> bool:
        """Whether every session log is there and readable; a check of what happened needs them all."""
        named = [name for name in self.files if SESSION_LIKE.fullmatch(name)]
        return len(self.logs) == len(named) > 0

    def at(self, name: str) -> str:
        """Return the path of a file of this scenario as a finding names it."""
        return f"{self.path}/{name}"

    def text(self, name: str) -> str:
        """Return a file's text, ``""`` where it is absent."""
        return self.files.get(name, b"").decode(errors="replace")

    def refresh(self) -> str:
        """Return the command that rewrites this scenario's goldens."""
        return f"nox -s snapshot_refresh -- {self.path} --accept"

    def record(self) -> str:
        """Return the command that records this scenario anew."""
        return f"nox -s snapshot_record -- {self.path}"


class Suite(Struct, frozen=True, kw_only=True):
    """One suite folder: its own files (by name relative to it), and its scenarios."""

    path: str
    files: Mapping[str, bytes]
    agent: AgentSettings
    folders: Mapping[str, Mapping[str, bytes]]
    scenarios: tuple[Scenario, ...]


class Tree(Struct, frozen=True, kw_only=True):
    """Everything a guard looks at. ``strays`` are files in no suite."""

    files: Mapping[str, bytes]
    suites: tuple[Suite, ...]
    strays: tuple[str, ...]
    problems: tuple[Finding, ...]
    surroundings: Surroundings

    @property
    def scenarios(self) -> Iterator[Scenario]:
        """Every readable scenario of every suite."""
        return (scenario for suite in self.suites for scenario in suite.scenarios)

    @property
    def told(self) -> Iterator[Scenario]:
        """The scenarios whose logs are all readable."""
        return (scenario for scenario in self.scenarios if scenario.is_told)


def read_tree(files: Mapping[str, bytes], surroundings: Surroundings | None = None) -> Tree:
    """Parse ``files`` (POSIX paths relative to the folder of suites)."""
    problems: list[Finding] = []
    by_suite: dict[str, dict[str, bytes]] = defaultdict(dict)
    for path, data in sorted(files.items()):
        suite, _, name = path.partition("/")
        by_suite[suite][name] = data
    suites = {path: read_suite(path, inner, problems) for path, inner in by_suite.items() if "agent.toml" in inner}
    return Tree(
        files=files,
        suites=tuple(suites.values()),
        strays=tuple(path for path in sorted(files) if path.partition("/")[0] not in suites),
        problems=tuple(problems),
        surroundings=surroundings or Surroundings(),
    )


def read_suite(path: str, files: Mapping[str, bytes], problems: list[Finding]) -> Suite:
    """Parse one suite; ``files`` by name relative to it."""
    folders: dict[str, dict[str, bytes]] = defaultdict(dict)
    own: dict[str, bytes] = {}
    for name, data in files.items():
        folder, _, rest = name.partition("/")
        if rest and is_scenario(folder, files):
            folders[folder][rest] = data
        else:
            own[name] = data
    read = (read_scenario(f"{path}/{folder}", inner, problems) for folder, inner in folders.items())
    return Suite(
        path=path,
        files=own,
        agent=read_toml(f"{path}/agent.toml", own["agent.toml"], AgentSettings, problems) or AgentSettings(),
        folders=folders,
        scenarios=tuple(scenario for scenario in read if scenario),
    )


def is_scenario(folder: str, files: Mapping[str, bytes]) -> bool:
    """Whether a suite's folder holds any file that only a scenario has."""
    return any(f"{folder}/{name}" in files for name in SCENARIO_MARKS)


def read_scenario(path: str, files: Mapping[str, bytes], problems: list[Finding]) -> Scenario | None:
    """Parse one scenario folder; ``None`` if there is no readable ``scenario.toml`` to judge it by."""
    declared = files.get("scenario.toml")
    settings = declared and read_toml(f"{path}/scenario.toml", declared, Settings, problems)
    if not settings:
        return None
    made = files.get("provenance.toml")
    return Scenario(
        path=path,
        files=files,
        settings=settings,
        provenance=read_toml(f"{path}/provenance.toml", made, Provenance, problems) if made is not None else None,
        prompts=read_prompts(f"{path}/input.json", files.get("input.json", b'{"steps":[]}'), problems),
        logs=tuple(read_logs(path, files, problems)),
        requests=read_rows(files.get("requests.golden.jsonl", b"")),
        frames=read_rows(files.get("stdout.golden.jsonl", b"")),
    )


def read_toml(path: str, data: bytes, kind: Any, problems: list[Finding]) -> Any:
    """Return ``data`` as ``kind``, or note the problem and return ``None``."""
    try:
        return msgspec.toml.decode(data, type=kind)
    except ValueError as error:
        line = re.search(r"at line (\d+)", str(error))
        mend = "write what DESIGN's schema of this file says; the message names the key"
        if kind is Provenance:
            mend = f"nox -s snapshot_refresh -- {path.rpartition('/')[0]} --accept"
        problems.append(Finding(path, int(line[1]) if line else None, "UNREADABLE", str(error), mend))
        return None


def read_prompts(path: str, data: bytes, problems: list[Finding]) -> tuple[str, ...]:
    """Return the text of every prompt that an ``input.json`` wants answered in full."""
    try:
        script = read_json(data)
    except ValueError:
        return ()  # the JSON and encoding checks name the place
    steps = items(table(script).get("steps"))
    if not all(text(table(step).get("op")) for step in steps) or "steps" not in table(script):
        mend = 'write {"steps": [{"op": ...}, ...]}, as the committed JSON Schema says'
        problems.append(Finding(path, None, "UNREADABLE", "not a script: a list of steps, each with its op", mend))
    return tuple(said for step in steps if text(table(step).get("op")) in PROMPTS for said in step_texts(step))


def step_texts(step: Mapping[str, Json]) -> Iterator[str]:
    """Return the texts a prompt step says: its ``text``, or the text blocks of its ``content``."""
    blocks = [step, *map(table, items(step.get("content")))]
    return filter(None, (text(block.get("text")) for block in blocks))


def read_logs(path: str, files: Mapping[str, bytes], problems: list[Finding]) -> Iterator[Log]:
    """Parse every well-named session log: the primary first, then the children by number."""
    for name in sorted(filter(SESSION.fullmatch, files), key=child_number):
        try:
            yield Log(name, parse_log(files[name].decode(), name))
        except UnicodeDecodeError:
            continue  # the encoding check names the byte
        except FixtureError as error:
            mend = error.mend or f"nox -s snapshot_record -- {path}"
            problems.append(Finding(f"{path}/{name}", error.line, "UNREADABLE", error.what, mend))


def child_number(name: str) -> int:
    """Return a session log's number: 0 for ``session.jsonl``, N for ``session.N.jsonl``."""
    number = name.split(".")[1]
    return int(number) if number.isdigit() else 0


def read_rows(data: bytes) -> tuple[Row, ...]:
    """Return the JSON lines of ``data``; a line that is not JSON is left out (the canonical check names it)."""
    return tuple(rows(data.decode(errors="replace").split("\n")))


def rows(lines: Iterable[str]) -> Iterator[Row]:
    """Parse each line that can be parsed."""
    for number, line in enumerate(lines, 1):
        try:
            yield Row(number, read_json(line))
        except ValueError:
            continue


PROMPTS = frozenset(("prompt", "promptContent", "promptAndWaitForAgentMessage"))
"""Not those that are cancelled or must fail: nothing is demanded of their answer."""
SCENARIO_MARKS = ("scenario.toml", "input.json", "session.jsonl", "stdout.golden.jsonl", "provenance.toml")
