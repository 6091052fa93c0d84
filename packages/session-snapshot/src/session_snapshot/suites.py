"""Find suites and scenarios under ``snapshots/``, and read one scenario's files into values."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct

from session_snapshot.agent import Agent, parse_agent
from session_snapshot.errors import FixtureError, Refused
from session_snapshot.lines import line_within
from session_snapshot.report import session_of
from session_snapshot.scenario import Scenario, parse_scenario
from session_snapshot.steps import Script, parse_script, refuse_log_ops


class Place(Struct, frozen=True, order=True):
    """Where a scenario is: ``folder`` = ``<snapshots>/<suite>/<scenario>``."""

    suite: str
    name: str
    folder: Path

    @property
    def full_name(self) -> str:
        """``suite/scenario``, as commands take it."""
        return f"{self.suite}/{self.name}"

    @property
    def suite_folder(self) -> Path:
        """The folder that holds ``agent.toml``."""
        return self.folder.parent


class Loaded(Struct, frozen=True):
    """A scenario's written half: what a person wrote."""

    place: Place
    agent: Agent
    scenario: Scenario
    script: Script


def place_of(scenario_toml: Path) -> Place:
    """The place of a ``scenario.toml``."""
    folder = scenario_toml.parent
    return Place(folder.parent.name, folder.name, folder)


def find_places(root: Path) -> list[Place]:
    """Every scenario under ``root``, sorted by suite and name."""
    return sorted(place_of(path) for path in root.glob("*/*/scenario.toml"))


def choose(places: Sequence[Place], names: Sequence[str]) -> list[Place]:
    """The scenarios that ``names`` name (``scenario``, ``suite/scenario`` or ``suite``); all of them for no names.

    Raises:
        Refused: a name that names none, with the nearest ones.
    """
    if not names:
        return list(places)
    chosen = {place for name in names for place in matching(places, name)}
    return sorted(chosen)


def matching(places: Sequence[Place], name: str) -> list[Place]:
    """The scenarios one name means."""
    found = named(places, name)
    if not found:
        known = sorted({place.name for place in places} | {place.full_name for place in places})
        raise Refused(f"no scenario is called {name!r}", nearest(name, known))
    return found


def named(places: Sequence[Place], name: str) -> list[Place]:
    """The scenarios one name means, if any."""
    return [place for place in places if name in (place.name, place.full_name, place.suite)]


def nearest(name: str, known: Sequence[str]) -> str:
    """What to write instead of a name that nothing has."""
    close = difflib.get_close_matches(name, known, 3, 0.5)
    return f"the nearest are: {', '.join(close)}" if close else f"there are: {', '.join(known) or 'none'}"


# ── names that mean something else than was asked for ───────────────────────────────────────────────────────────────


def meant(snapshots: Path, places: Sequence[Place], wanted: Sequence[Place], name: str) -> str:
    """``name`` as scenarios are called: a path to a folder of ``snapshots`` names what lies there.

    Raises:
        Refused: it names scenarios of ``places`` that are none of ``wanted``, or a suite without any.
        FixtureError: it names a folder in which the file is missing that would make it one.
    """
    name = name.replace("\\", "/").rstrip("/").removeprefix(f"{snapshots.as_posix()}/")
    if named(wanted, name):
        return name
    if others := named(places, name):
        told = name if name == others[0].suite else " ".join(place.full_name for place in others)
        raise Refused(
            f"{told} is not in the suites asked for, it lies in {short(others[0].suite_folder)}",
            f"nox -s {session_of(told)} -- {told}",
        )
    for folder in folders_called(snapshots, name):
        if folder.is_dir() and folder.parent == snapshots:
            refuse_no_suite(snapshots, name)
            raise Refused(f"there is no scenario in {short(folder)}", "write one (README, 'Your own agent')")
        if folder.is_dir() and folder.parent.parent == snapshots:
            raise missing(folder / "scenario.toml")
    return name


def folders_called(snapshots: Path, name: str) -> list[Path]:
    """The folders that a name may mean: ``scenario`` in any suite, ``suite/scenario``, ``suite``."""
    wanted = PurePosixPath(name).parts
    folders = [path for depth in ("*", "*/*") for path in sorted(snapshots.glob(depth))]
    return [path for path in folders if wanted in (path.parts[-1:], path.relative_to(snapshots).parts)]


def refuse_no_suite(snapshots: Path, suite: str) -> None:
    """Refuse a name that is no suite's.

    Raises:
        Refused: there is no such folder, with the nearest ones.
        FixtureError: the folder has no ``agent.toml``.
    """
    if not (snapshots / suite).is_dir():
        known = sorted(path.parent.name for path in snapshots.glob("*/agent.toml"))
        raise Refused(f"no suite is called {suite!r}", nearest(suite, known))
    if not (snapshots / suite / "agent.toml").is_file():
        raise missing(snapshots / suite / "agent.toml")


def complete(snapshots: Path, places: list[Place], everything: bool) -> list[Place]:
    """``places``, whose suites are complete; with ``everything``, every folder of those suites that is half a scenario
    is found.

    Raises:
        FixtureError: ``agent.toml`` or ``scenario.toml`` is missing in one.
    """
    for suite in sorted({place.suite for place in places}):
        refuse_no_suite(snapshots, suite)
        halves = [
            path.parent for name in ("input.json", "session.jsonl") for path in snapshots.glob(f"{suite}/*/{name}")
        ]
        for folder in sorted(halves) if everything else ():
            if not (folder / "scenario.toml").is_file():
                raise missing(folder / "scenario.toml")
    return places


def load(place: Place) -> Loaded:
    """Read ``agent.toml``, ``scenario.toml`` and ``input.json``.

    Raises:
        FixtureError: a file is missing or wrong.
    """
    agent = parse_agent(*read(place.suite_folder / "agent.toml"))
    scenario = parse_scenario(*read(place.folder / "scenario.toml"))
    text, name = read(place.folder / "input.json")
    script = parse_script(text, name)
    if agent.persistence.format != "session-snapshot":
        refuse_log_ops(script, text, name)
    return Loaded(place, agent, scenario, script)


def unused_allowances(suite: Path, used: Mapping[Path, Sequence[str]]) -> list[str]:
    """The entries of a suite's ``[wire] allow`` that no scenario needed, as sentences.

    ``used`` has the checks that each green scenario (its ``scenario.toml``) needed. None is said to be unused while
    a scenario of the suite did not run, or was red.
    """
    if any(path not in used for path in suite.glob("*/scenario.toml")):
        return []
    text, name = read(suite / "agent.toml")
    needed = {check for path, checks in used.items() if path.parent.parent == suite for check in checks}
    what = "is not used by any scenario"
    return [
        f"{name}:{line_within(text, ('wire',), entry.check)}: [wire] allow {entry.check!r} {what}\nmend: remove it"
        for entry in parse_agent(text, name).wire.allow
        if entry.check not in needed
    ]


def read(path: Path) -> tuple[str, str]:
    """A committed file's text, line ends and all, and the name errors call it by.

    Raises:
        FixtureError: it is missing, a folder, or not UTF-8.
    """
    name = short(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise missing(path) from error
    except OSError as error:
        raise FixtureError(f"cannot be read: {error.strerror}", name, None, how_to_make(path)) from error
    try:
        return content.decode(), name
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FixtureError(f"not UTF-8 (byte {error.start})", name, line, "save the file as UTF-8") from error


def missing(path: Path) -> FixtureError:
    """The error for a file that is not there."""
    return FixtureError("the file is missing", short(path), None, how_to_make(path))


def how_to_make(path: Path) -> str:
    """How a file comes to be: a person writes it, or a recording."""
    if path.name in BY_HAND:
        return f"write {path.name} (README, 'Your own agent')"
    return f"nox -s snapshot_record -- {path.parent.parent.name}/{path.parent.name}"


BY_HAND = frozenset({"agent.toml", "scenario.toml", "input.json"})
"""The files of a suite that a person writes; a machine writes the others."""


def short(path: Path) -> str:
    """A path relative to where the command runs, with forward slashes, where it lies below that."""
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_posix()
