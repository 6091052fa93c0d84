"""The pytest plugin: every ``scenario.toml`` is a test, one scenario a work item.

It replays, and refuses to where the mode variable asks for anything else: recording and refreshing are commands, never
a side effect of a test run.
"""

import asyncio
import contextlib
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from session_snapshot.errors import AgentError, FixtureError, Refused
from session_snapshot.interrupts import cancelled_by_signals, hearing
from session_snapshot.mode import Mode, demand
from session_snapshot.report import format_report, grouped
from session_snapshot.runroot import make_run_root, sweep
from session_snapshot.staging import recover
from session_snapshot.suites import Place, place_of, unused_allowances
from session_snapshot.visible import visible

if TYPE_CHECKING:
    from session_snapshot.replay import Seen

ROOT_KEY = pytest.StashKey[Path]()
UNUSED_KEY = pytest.StashKey[list[str]]()
FINISHED_KEY = pytest.StashKey[list[str]]()
GROUPS = "snapshot_group"
ALLOWANCES = "snapshot_allowances"
NOTES = "snapshot_notes"


class ScenarioFailed(Exception):
    """A replay that is not as committed."""

    def __init__(self, text: str) -> None:
        """``text`` is the whole report."""
        super().__init__(text)
        self.text = text


class ScenarioFile(pytest.File):
    """A ``scenario.toml``."""

    def collect(self) -> Iterator["ScenarioItem"]:
        """One item, or as many as ``--snapshot-repeat`` says."""
        try:
            demand(Mode.REPLAY)
            refuse_unknown_dialect(self.config.getoption("snapshot_dialect"))
            finish_swaps(self.config, place_of(self.path))
        except Refused as error:
            raise self.CollectError(str(error)) from None
        place = place_of(self.path)
        repeat = self.config.getoption("snapshot_repeat")
        for number in range(1, repeat + 1):
            name = place.full_name if repeat == 1 else f"{place.full_name}[{number}]"
            yield ScenarioItem.from_parent(self, name=name, place=place)


class ScenarioItem(pytest.Item):
    """One replay of one scenario."""

    def __init__(self, *, place: Place, **rest: Any) -> None:
        """``place`` is where the scenario lies."""
        super().__init__(**rest)
        self.place = place

    def runtest(self) -> None:
        """Replay; raise with the report when something is not as committed."""
        from session_snapshot.replay import ACTUAL, keep_actual  # the harness itself, only where it runs

        with hearing():
            seen = asyncio.run(self.replay(root_of(self.config)))
        report = seen.report
        folder = keep_actual(report, self.name)
        self.user_properties += [(GROUPS, [f.group, self.place.full_name]) for f in report.failures if f.group]
        self.user_properties.append((ALLOWANCES, [str(self.path), list(report.allowances)]))
        self.user_properties += [(NOTES, [note, self.place.full_name]) for note in report.notes]
        if not report.green:
            from session_snapshot.view.write import keep_page  # what makes pages, only where one is made

            raise ScenarioFailed(format_report(report, folder, keep_page(seen, Path(ACTUAL) / self.name)))

    async def replay(self, root: Path) -> "Seen":
        """Replay; an interrupt cancels just this."""
        from session_snapshot.replay import replay_seen

        with cancelled_by_signals():
            return await replay_seen(self.place, root, self.config.getoption("snapshot_dialect"))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ARG002
        """Our own failures as they are; anything else is a defect of the harness and keeps its traceback."""
        match excinfo.value:
            case ScenarioFailed(text=text):
                return text
            case FixtureError() | AgentError() as error:
                return f"{self.place.full_name}: {error}"
            case _:
                return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where pytest says the test is."""
        return self.path, 0, self.name


def finish_swaps(config: pytest.Config, place: Place) -> None:
    """Finish what a killed record or refresh began: a run of pytest is a command like any other.

    Raises:
        Refused: it cannot be finished.
    """
    said = config.stash.setdefault(FINISHED_KEY, [])
    said += [f"finished what an interrupted command began in {name}" for name in recover(place.suite_folder.parent)]


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Say what was finished."""
    return config.stash.get(FINISHED_KEY, [])


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options that ``session-snapshot replay`` passes on."""
    group = parser.getgroup("session-snapshot")
    group.addoption("--snapshot-repeat", type=int, default=1, help="replay every scenario N times")
    group.addoption("--snapshot-shuffle", type=int, default=None, help="shuffle the order by this seed")
    group.addoption("--snapshot-dialect", default="", help="have the agent speak this dialect")
    group.addoption("--snapshot-load", action="store_true", help="burn every core beside the replay")


def refuse_unknown_dialect(name: str) -> None:
    """Refuse a dialect that is none, before every scenario does."""
    if name:
        from session_snapshot.dialects import known_dialect

        known_dialect(name)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    """Collect every ``scenario.toml`` that lies where a scenario lies."""
    is_scenario = file_path.name == "scenario.toml" and (file_path.parent.parent / "agent.toml").is_file()
    return ScenarioFile.from_parent(parent, path=file_path) if is_scenario else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle by seed: the same seed gives the same order in every worker."""
    seed = config.getoption("snapshot_shuffle")
    if seed is not None:
        random.Random(seed).shuffle(items)


# ── one run root for all workers; load beside them ──────────────────────────────────────────────────────────────────


def pytest_configure(config: pytest.Config) -> None:
    """A worker is told where the run root is; the controller starts the load."""
    if hasattr(config, "workerinput"):
        config.stash[ROOT_KEY] = Path(config.workerinput["snapshot_run_root"])
    elif config.getoption("snapshot_load"):
        config.add_cleanup(start_load())


def root_of(config: pytest.Config) -> Path:
    """The run root, made when it is first needed: a test run without scenarios makes none."""
    if ROOT_KEY not in config.stash:
        config.stash[ROOT_KEY] = make_run_root()
    return config.stash[ROOT_KEY]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker where the run root is."""
    node.workerinput["snapshot_run_root"] = str(root_of(node.config))


def pytest_keyboard_interrupt(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Pass Ctrl-C on to the workers: a terminal tells the whole group, ``kill`` and CI tell this process alone."""
    if type(excinfo.value) is KeyboardInterrupt and sys.platform != "win32":
        import psutil

        for child in psutil.Process().children():
            with contextlib.suppress(psutil.Error):
                child.send_signal(signal.SIGINT)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """The controller ends whatever is left: processes first, then folders."""
    if not hasattr(config, "workerinput") and ROOT_KEY in config.stash:
        sweep(config.stash[ROOT_KEY])


def start_load() -> Any:
    """Burn every core until the returned function is called; the burners also end with this process."""
    import psutil

    burn = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100000))"
    burners = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(psutil.cpu_count() or 1)]

    def stop() -> None:
        for burner in burners:
            burner.kill()
            burner.wait()

    return stop


# ── what is one and the same across scenarios is said once ──────────────────────────────────────────────────────────


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print each grouped failure once, with the scenarios it is in; then the allowances nobody needed."""
    pairs = [tuple(value) for value in properties(terminalreporter, GROUPS, "failed")]
    for text, names in grouped(pairs).items():
        terminalreporter.section("one change" if len(names) == 1 else f"one change, {len(names)} scenarios")
        terminalreporter.write_line(visible(text))
        terminalreporter.write_line(f"in: {', '.join(names)}")
    notes = [tuple(value) for value in properties(terminalreporter, NOTES, "passed")]
    for text, names in grouped(notes).items():
        terminalreporter.write_line(f"note: {text}\n  in: {', '.join(names)}")
    for line in terminalreporter.config.stash.get(UNUSED_KEY, []):
        terminalreporter.write_line(line)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """An allowance that no scenario of a wholly green suite needed is an error of the whole run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    used = {Path(toml): checks for toml, checks in properties(reporter, ALLOWANCES, "passed")}
    lines = [line for suite in sorted({toml.parent.parent for toml in used}) for line in unused_allowances(suite, used)]
    session.config.stash[UNUSED_KEY] = lines
    if lines:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def properties(reporter: Any, name: str, outcome: str) -> list[Any]:
    """The values of a property that tests of an outcome have."""
    reports = reporter.stats.get(outcome, [])
    return [value for report in reports for key, value in report.user_properties if key == name]
