"""The inventory: every file a scenario needs, no file nobody reads, names that every system can hold."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from fixture_guard.digest import OVERRIDE
from fixture_guard.finding import Finding
from fixture_guard.layout import SESSION, SESSION_LIKE, Scenario, Suite, Tree, child_number
from fixture_guard.settings import Settings, line_of_key


class Sidecar(Struct, frozen=True):
    """A file (or folder, ending in ``/``) that is there exactly where ``scenario.toml`` declares it.

    ``make`` is how one comes by it; ``{}`` is the scenario.
    """

    name: str
    declaration: str
    declared: Callable[[Settings], bool]
    make: str


def check_missing(tree: Tree) -> Iterator[Finding]:
    """A file every scenario needs is not there."""
    for suite in tree.suites:
        for folder, files in suite.folders.items():
            for name, mend in REQUIRED.items():
                if name not in files:
                    path = f"{suite.path}/{folder}"
                    # Without a recording there is nothing to refresh from.
                    act = RECORD if mend is REFRESH and "session.jsonl" not in files else mend
                    yield Finding(f"{path}/{name}", None, "MISSING", "the file is missing", act.format(path))
    for scenario in tree.scenarios:
        if calls_model(scenario) and "requests.golden.jsonl" not in scenario.files:
            what = "the file is missing, though the session log holds model calls"
            yield Finding(scenario.at("requests.golden.jsonl"), None, "MISSING", what, scenario.refresh())


def check_sidecars(tree: Tree) -> Iterator[Finding]:
    """A sidecar is declared and not there, or there and not declared."""
    for scenario in tree.scenarios:
        for sidecar in SIDECARS:
            declared = sidecar.declared(scenario.settings)
            if declared == has(scenario, sidecar.name):
                continue
            what = f"scenario.toml declares {sidecar.declaration}, but there is no {sidecar.name}"
            mend = f"{sidecar.make.format(scenario.path)}, or take {sidecar.declaration} back"
            if not declared:
                what = f"{sidecar.name} is there, but scenario.toml does not declare {sidecar.declaration}"
                mend = f"remove {sidecar.name}, or declare {sidecar.declaration}"
            yield Finding(scenario.at(sidecar.name.rstrip("/")), None, "SIDECAR", what, mend)


def check_orphans(tree: Tree) -> Iterator[Finding]:
    """A file that no part of the harness reads."""
    for path in tree.strays:
        mend = "git rm it, or give its folder an agent.toml"
        yield Finding(path, None, "ORPHAN", "the file belongs to no suite", mend)
    for suite in tree.suites:
        yield from suite_orphans(suite)
        for folder, files in suite.folders.items():
            for name in files:
                if not known_name(name):
                    what = "no part of the harness reads this file"
                    yield Finding(f"{suite.path}/{folder}/{name}", None, "ORPHAN", what, "git rm it")


def suite_orphans(suite: Suite) -> Iterator[Finding]:
    """Files beside the scenarios that are neither known nor named by ``agent.toml``."""
    agent = suite.files["agent.toml"].decode(errors="replace")
    for name in suite.files:
        top = name.partition("/")[0]
        if top not in SUITE_FILES and top not in agent:
            what = f"neither a scenario's file nor named by {suite.path}/agent.toml"
            mend = "git rm it, or give its folder a scenario.toml"
            yield Finding(f"{suite.path}/{name}", None, "ORPHAN", what, mend)


def check_legacy(tree: Tree) -> Iterator[Finding]:
    """A file under a name of an earlier layout."""
    for suite in tree.suites:
        for folder, files in suite.folders.items():
            for name in files:
                if name in LEGACY:
                    path = f"{suite.path}/{folder}/{name}"
                    mend = f"move its content to {LEGACY[name]} (git mv where the format is the same)"
                    yield Finding(path, None, "LEGACY", f"the name is of an earlier layout; now {LEGACY[name]}", mend)


def check_numbering(tree: Tree) -> Iterator[Finding]:
    """A child log out of the row ``session.1.jsonl``, ``session.2.jsonl``, ..."""
    for suite in tree.suites:
        for folder, files in suite.folders.items():
            path = f"{suite.path}/{folder}"
            children = [name for name in files if SESSION_LIKE.fullmatch(name) and name != "session.jsonl"]
            good = sorted(filter(SESSION.fullmatch, children), key=child_number)
            for name in sorted(set(children) - set(good)):
                what = "a child log is named session.N.jsonl, N from 1 without leading zeros"
                yield Finding(f"{path}/{name}", None, "NUMBERING", what, f"git mv it to session.{len(good) + 1}.jsonl")
            for expected, name in enumerate(good, 1):
                if child_number(name) != expected:
                    what = f"child logs are numbered without a gap, and session.{expected}.jsonl is not there"
                    mend = f"git mv {name} session.{expected}.jsonl, in requests.golden.jsonl too"
                    yield Finding(f"{path}/{name}", None, "NUMBERING", what, mend)
                    break


def check_names(tree: Tree) -> Iterator[Finding]:
    """A path that a Windows checkout cannot hold, or two that it cannot tell apart."""
    twins: dict[str, list[str]] = defaultdict(list)
    for path in tree.files:
        twins[unicodedata.normalize("NFC", path).casefold()].append(path)
        fault = next((fault for part in path.split("/") if (fault := name_fault(part))), "")
        if len(path) > LONGEST_PATH:
            fault = f"the path has {len(path)} characters, more than {LONGEST_PATH}"
        if fault:
            mend = "rename it (make such a file in the run instead, if the scenario is about its name)"
            yield Finding(path, None, "NAME", f"Windows cannot hold this name: {fault}", mend)
    for paths in twins.values():
        for path in sorted(paths)[1:]:
            what = f"Windows and macOS take this name and {sorted(paths)[0]} for one"
            yield Finding(path, None, "NAME", what, "rename one of the two")


def name_fault(part: str) -> str:
    """Say why Windows refuses one component of a path; ``""`` if it does not.

    Source: Windows, "Naming Files, Paths, and Namespaces".
    """
    if match := FORBIDDEN.search(part):
        return f"it holds {match[0]!r}"
    if part.endswith((" ", ".")):
        return "it ends in a space or a dot"
    stem = part.partition(".")[0].rstrip().upper()
    return f"{stem} is a device" if stem in DEVICES else ""


def check_expect(tree: Tree) -> Iterator[Finding]:
    """An ``[expect]`` no wrong run could fail."""
    for scenario in tree.scenarios:
        if not scenario.settings.expect.asserts_something():
            line = line_of_key(scenario.text("scenario.toml"), "expect")
            what = "[expect] asserts nothing, so a golden that pins the wrong behaviour would pass"
            mend = "say what must happen: tools_called, answer_contains, stop_reason, error_codes or model_calls"
            yield Finding(scenario.at("scenario.toml"), line, "EXPECT", what, mend)


def calls_model(scenario: Scenario) -> bool:
    """Whether a model was called: a log holds a piece of its answer, or an override says how a call ended."""
    answered = any(event.type in MODEL_EVENTS for log in scenario.logs for event in log.log.events)
    return answered or OVERRIDE in scenario.files


def has(scenario: Scenario, name: str) -> bool:
    """Whether a file, or a folder with a file in it, is there."""
    if name.endswith("/"):
        return any(path.startswith(name) for path in scenario.files)
    return name in scenario.files


def known_name(name: str) -> bool:
    """Whether a scenario's file plays a part (misnumbered logs and legacy names are other checks' business)."""
    sidecars: Iterable[str] = (sidecar.name for sidecar in SIDECARS)
    folder = name.startswith(FOLDERS)
    return folder or name in REQUIRED or name in LEGACY or name in OTHERS or name in sidecars or is_session(name)


def is_session(name: str) -> bool:
    """Whether a name is, or tries to be, a session log's."""
    return SESSION_LIKE.fullmatch(name) is not None


MODEL_EVENTS = frozenset(("assistant/chunk", "llm/call", "llm/aux"))
FOLDERS = ("workspace/", "workspace.expected/")
OTHERS = frozenset(("requests.golden.jsonl", "README.md"))
SUITE_FILES = frozenset(
    ("agent.toml", "README.md", "pyproject.toml", "uv.lock", "package.json", "package-lock.json", ".python-version")
)
FORBIDDEN = re.compile(r'[<>:"|?*\\\x00-\x1f\ud800-\udfff]')
DEVICES = frozenset(("CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$")) | {
    f"{device}{digit}" for device in ("COM", "LPT") for digit in "123456789¹²³"
}
LONGEST_PATH = 180
"""Of 259 usable characters, the rest is for where the repository lies."""

RECORD, REFRESH, WRITE = "nox -s snapshot_record -- {}", "nox -s snapshot_refresh -- {} --accept", "write it"

REQUIRED = {
    "scenario.toml": "write it: description, recording and [expect] at least",
    "input.json": 'write the script: {{"steps": [{{"op": "initialize"}}, ...]}}',
    "session.jsonl": RECORD,
    "stdout.golden.jsonl": REFRESH,
    "provenance.toml": REFRESH,
}
"""What every scenario has, and how one comes by it; ``{}`` is the scenario."""

SIDECARS = (
    Sidecar("upstream.json", 'recording = "scripted"', lambda settings: settings.recording == "scripted", WRITE),
    Sidecar("replay.override.json", "overridden = true", lambda settings: settings.overridden, RECORD),
    Sidecar("header.system.md", "[header] pin = true", lambda settings: settings.header.pin, RECORD),
    Sidecar("header.tools.json", "[header] pin = true", lambda settings: settings.header.pin, RECORD),
    Sidecar("workspace.expected/", "[workspace] final = true", lambda settings: settings.workspace.final, WRITE),
)

LEGACY = {
    "snapshot.yml": "scenario.toml",
    "stdout.expected.jsonl": "stdout.golden.jsonl",
    "stdout.expected.win32.jsonl": "stdout.golden.jsonl",
    "stream-json.expected.jsonl": "stdout.golden.jsonl",
    "requests.expected.jsonl": "requests.golden.jsonl",
    "script.expected.json": "session.jsonl (the script is derived from it)",
    "system-prompt.md": "header.system.md",
    "tool-schemas.json": "header.tools.json",
}
