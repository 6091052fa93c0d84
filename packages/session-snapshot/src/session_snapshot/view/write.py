"""Make the page of a scenario: replay it without a key, or take its committed files alone, and write one HTML file."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
from llm_replay.files import REQUESTS
from msgspec import Struct

from session_snapshot.errors import AgentError, FixtureError, Refused
from session_snapshot.fixtures import STDOUT, is_log, load_committed
from session_snapshot.interrupts import cancelled_by_signals
from session_snapshot.replay import ACTUAL, Seen, replay_seen
from session_snapshot.report import Failure, Report
from session_snapshot.runroot import run_root
from session_snapshot.sandbox import Tree, capture_tree
from session_snapshot.suites import Loaded, Place, load
from session_snapshot.view.page import page_html
from session_snapshot.view.parts import Kept, parts_of_files, parts_of_run
from session_snapshot.view.rows import Page
from session_snapshot.view.summary import page_of

PAGE = "view.html"

Say = Callable[[str], None]


class Wish(Struct, frozen=True):
    """What is to be shown: ``output`` is another file than usual, ``committed`` runs nothing, ``dialect`` is the one
    the agent is to speak, where it is not the recorded one."""

    output: Path | None = None
    committed: bool = False
    dialect: str = ""


def view_all(places: list[Place], wish: Wish, say: Say) -> list[Path]:
    """Write the page of every scenario; ``say`` is told how each went. Returns where the pages are.

    Raises:
        FixtureError: a scenario's written half is missing or wrong, so that there is nothing to show.
        Refused: a page cannot be written there.
    """
    targets = [wish.output or Path(ACTUAL) / place.suite / place.name / PAGE for place in places]
    for place, target in zip(places, targets, strict=True):
        refuse_among_suites(target, place.suite_folder.parent)
        page = page_of_place(place, wish)
        write_page(page, target)
        say(f"{place.full_name}: {told(page)}, {len(page.rows)} rows")
    return targets


def told(page: Page) -> str:
    """How a scenario went, in words."""
    if not page.ran:
        why = f" ({page.failures[0].what})" if page.failures else ""
        return f"not run{why}, these are the committed files"
    count = len(page.failures)
    return f"red, {count} failure{'s'[: count != 1]}" if count else "green"


def refuse_among_suites(target: Path, snapshots: Path) -> None:
    """Refuse to write a page where the suites lie.

    Raises:
        Refused: it would lie there.
    """
    if target.resolve().is_relative_to(snapshots.resolve()):
        raise Refused(f"{target.as_posix()} lies among the suites, and a page is no fixture", "name another file")


def write_page(page: Page, target: Path) -> None:
    """Write a page.

    Raises:
        Refused: the system does not let it be written there.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page_html(page), encoding="utf-8", newline="")
    except OSError as error:
        raise Refused(f"{target.as_posix()} cannot be written: {error.strerror}", "name another file") from error


def page_of_place(place: Place, wish: Wish) -> Page:
    """The page of a scenario; of its committed files alone where that is asked for, or it cannot be replayed."""
    loaded = load(place)
    if wish.committed:
        return page_of_committed(loaded, [])
    platforms = loaded.scenario.platforms
    if platforms and sys.platform not in platforms:
        what = f"it runs on {', '.join(platforms)}, and this is {sys.platform}"
        return page_of_committed(loaded, [Failure("fixture", what)])
    try:
        with run_root() as base:
            return page_of_seen(asyncio.run(see(place, base, wish.dialect)))
    except (FixtureError, AgentError) as error:
        what, _, detail = str(error).partition("\n")
        return page_of_committed(loaded, [Failure("fixture", what, detail)])


async def see(place: Place, base: Path, dialect: str) -> Seen:
    """Replay a scenario; an interrupt cancels just this.

    Raises:
        FixtureError: the committed files are wrong, so that nothing can be replayed.
    """
    with cancelled_by_signals():
        return await replay_seen(place, base, dialect)


def page_of_seen(seen: Seen) -> Page:
    """The page of a replay that is over."""
    tree = expected_tree(seen.loaded, seen.capture.before)
    parts = parts_of_run(seen.loaded, seen.committed, seen.capture, seen.report, tree)
    report = seen.report
    if not seen.committed.wire:
        report = msgspec.structs.replace(report, notes=[*report.notes, INSIDE])
    return page_of(seen.loaded, seen.committed.provenance, parts, report, ran=True)


INSIDE = (
    "the model is replayed inside the agent: its calls stand where their prompts and tools tell that they were made"
)
NO_CLOCK = "committed files have no clock: frames and calls stand where counts, prompts and tools tell that they came"


def expected_tree(loaded: Loaded, before: Tree) -> Tree:
    """What the agent's folder should hold at the end."""
    final = loaded.scenario.workspace.final
    return capture_tree(loaded.place.folder / "workspace.expected", []) if final else before


def page_of_committed(loaded: Loaded, failures: list[Failure]) -> Page:
    """The page of a scenario that is not run; what of its files cannot be read is said."""
    folder = loaded.place.folder
    workspace = folder / ("workspace.expected" if loaded.scenario.workspace.final else "workspace")
    tree = capture_tree(workspace, []) if workspace.is_dir() else {}
    own_log = loaded.agent.persistence.format == "session-snapshot"
    try:
        committed = load_committed(loaded)
        provenance = committed.provenance
        calls, texts = committed.recording.calls, committed.texts
    except FixtureError as error:
        what, _, detail = str(error).partition("\n")
        failures = failures or [Failure("fixture", what, detail)]
        provenance, calls, texts = None, (), readable_texts(folder)
    counts = provenance.frames.steps if provenance is not None else []
    parts = parts_of_files(loaded, Kept(texts, calls, counts, own_log, tree))
    report = Report(loaded.place.full_name, failures, {}, notes=[NO_CLOCK])
    return page_of(loaded, provenance, parts, report, ran=False)


def readable_texts(folder: Path) -> dict[str, str]:
    """The machine-written files of a scenario, whatever is in them."""
    names = [path.name for path in folder.glob("*.jsonl") if is_log(path.name) or path.name in (STDOUT, REQUESTS)]
    return {name: (folder / name).read_bytes().decode(errors="replace") for name in sorted(names)}


# ── beside the actual files of a red run ────────────────────────────────────────────────────────────────────────────


def keep_page(seen: Seen, folder: Path) -> str:
    """Write the page of a red run beside its actual files; where it is, or why there is none.

    Nothing that is wrong with a page may hide the report of the run, so that whatever is raised is told instead.
    """
    target = folder / PAGE
    try:
        write_page(page_of_seen(seen), target)
    except Exception as error:
        return f"could not be made ({type(error).__name__}: {error})".replace("\n", " ")
    return target.as_posix()
