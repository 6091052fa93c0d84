"""A scenario's committed half: the recording, the goldens, the header pins of its suite, its provenance."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from llm_replay import Header, Recording, load_scenario_recording, parse_rows
from llm_replay.files import OVERRIDE, PRIMARY, REQUESTS
from msgspec import Struct

from session_snapshot.errors import FixtureError
from session_snapshot.headers import SYSTEM_FILE, TOOLS_FILE, parse_header
from session_snapshot.provenance import Provenance, read_provenance
from session_snapshot.report import Surface
from session_snapshot.retelling import Retelling
from session_snapshot.scenario import parse_scenario
from session_snapshot.steps import SCRIPT
from session_snapshot.suites import Loaded, how_to_make, read, short

STDOUT = "stdout.golden.jsonl"
PROVENANCE = "provenance.toml"
PIN_FILES = (SYSTEM_FILE, TOOLS_FILE)


class Pin(Struct, frozen=True):
    """One header class's pinned content, and the folder of the scenario that pins it."""

    header_class: str
    header: Header
    folder: str


class Committed(Struct, frozen=True):
    """What a replay is held against. ``texts`` are the machine-written files by name, those of ``folder``.

    ``own_log``: the agent writes the session log itself. ``wire``: requests are seen, and so compared.
    ``retelling``: it is told in another dialect, and ``texts``, ``pins`` and requests are in the form compared then.
    """

    recording: Recording
    texts: Mapping[str, str]
    pins: Mapping[str, Pin]
    provenance: Provenance | None
    own_log: bool
    folder: Path = Path()
    wire: bool = True
    retelling: Retelling | None = None

    def surfaces(self, actual: Mapping[str, str]) -> Iterator[tuple[Surface, str, str | None]]:
        """``(surface, file name, expected text)`` of everything compared line by line, on either side."""
        yield "stdout", STDOUT, self.texts.get(STDOUT)
        if self.own_log:
            logs = sorted(name for name in actual.keys() | self.texts.keys() if is_log(name))
            yield from (("session", name, self.texts.get(name)) for name in logs)
        if self.wire and (REQUESTS in actual or REQUESTS in self.texts):
            yield "requests", REQUESTS, self.texts.get(REQUESTS)


def is_log(name: str) -> bool:
    """Whether a file name is a session log's."""
    return name.startswith("session") and name.endswith(".jsonl")


def load_committed(loaded: Loaded, folder: Path | None = None) -> Committed:
    """Read the committed half of a scenario (of ``folder``, where a staged one is meant).

    Raises:
        FixtureError: ``session.jsonl`` is missing, or a file is wrong.
    """
    folder = folder or loaded.place.folder
    if not (folder / PRIMARY).is_file():
        raise FixtureError(
            "there is no recording",
            f"{short(folder)}/{PRIMARY}",
            None,
            f"nox -s snapshot_record -- {loaded.place.full_name}",
        )
    texts = {path.name: read_lines(path) for path in sorted([*folder.glob("*.jsonl"), *folder.glob(OVERRIDE)])}
    refuse_undeclared_override(loaded, folder)
    pins = dict(pins_of(loaded.place.suite_folder)) | own_pin(loaded, folder)
    headers = {name: pin.header for name, pin in pins.items()}
    check_rows_pinned(loaded, folder, headers)
    provenance = read_provenance(folder)
    refuse_other_script(loaded, provenance)
    return Committed(
        recording=load_scenario_recording(Path(short(folder)), headers),
        texts={name: text for name, text in texts.items() if name != OVERRIDE},
        pins=pins,
        provenance=provenance,
        own_log=loaded.agent.persistence.format == "session-snapshot",
        folder=folder,
        wire=loaded.scenario.seam == "wire",
    )


def read_lines(path: Path) -> str:
    """The text of a machine-written file, whose lines end in LF on every system.

    Raises:
        FixtureError: as ``suites.read``; or all its lines end in CR LF: a checkout made them so.
    """
    text, name = read(path)
    if text.endswith("\r\n") and "\n" not in text.replace("\r\n", ""):
        what = "its lines end in CR LF, and were written with LF: the checkout changed them"
        raise FixtureError(what, name, 1, f"{LINE_ENDS} >> .gitattributes, then git checkout -- {name}")
    return text


LINE_ENDS = 'echo "snapshots/** -text"'
"""What keeps git from touching line ends below ``snapshots/``."""


def log_number(name: str) -> int:
    """The number in ``session.<n>.jsonl``; 0 for the main session's."""
    middle = name.removeprefix("session").removesuffix(".jsonl").strip(".")
    return int(middle) if middle.isdigit() else 0


def refuse_undeclared_override(loaded: Loaded, folder: Path) -> None:
    """An override is there exactly where ``scenario.toml`` says so."""
    there, declared = (folder / OVERRIDE).is_file(), loaded.scenario.overridden
    if there != declared:
        what = "is there, but scenario.toml does not say overridden = true" if there else "is declared and missing"
        again = f"nox -s snapshot_record -- {loaded.place.full_name}"
        mend = "set overridden = true" if there else f"restore it, or set overridden = false and {again}"
        raise FixtureError(f"the override {what}", f"{short(folder)}/{OVERRIDE}", None, mend)


def refuse_other_script(loaded: Loaded, provenance: Provenance | None) -> None:
    """A script still has as many steps as it had when it was recorded, where the recording says how many."""
    recorded = len(provenance.frames.steps) if provenance is not None else 0
    steps = len(loaded.script.steps)
    if recorded not in (0, steps):
        raise FixtureError(
            f"the script has {steps} step{'s'[: steps != 1]}, and had {recorded} when it was recorded",
            f"{short(loaded.place.folder)}/{SCRIPT}",
            None,
            f"nox -s snapshot_record -- {loaded.place.full_name}",
        )


def check_rows_pinned(loaded: Loaded, folder: Path, headers: Mapping[str, Header]) -> None:
    """Every header class that the requests name has a pin in the suite."""
    path = folder / REQUESTS
    if not path.is_file():
        return
    for row in parse_rows(read(path)[0], short(path)):
        if row.header not in headers:
            raise missing_pin(loaded.place.suite_folder, row.header, short(path), row.line)


def missing_pin(suite: Path, header_class: str, path: str, line: int) -> FixtureError:
    """The error for a header class of a request that has no pin: the file that is gone, else nobody pins it."""
    for folder in pinning_folders(suite).get(header_class, []):
        name = next(name for name in PIN_FILES if not (folder / name).is_file())
        what = f"the file is missing, and with it the pin of header class {header_class!r}"
        return FixtureError(what, f"{short(folder)}/{name}", None, how_to_make(folder / name))
    what = f"no scenario of the suite pins the header class {header_class!r}"
    mend = f"set [header] pin = true in one scenario, and nox -s snapshot_record -- {suite.name}/NAME"
    return FixtureError(what, path, line, mend)


def pinning_folders(suite: Path) -> Mapping[str, list[Path]]:
    """The scenarios of a suite that say ``pin = true``, by header class."""
    folders: dict[str, list[Path]] = {}
    for path in sorted(suite.glob("*/scenario.toml")):
        text, name = read(path)
        if "pin" in text and (header := parse_scenario(text, name).header).pin:
            folders.setdefault(header.class_, []).append(path.parent)
    return folders


@lru_cache(maxsize=64)
def pins_of(suite: Path) -> Mapping[str, Pin]:
    """Every header pin of a suite. Suites do not change under a run; writing commands clear the cache."""
    return {
        header_class: read_pin(folder, header_class)
        for header_class, folders in pinning_folders(suite).items()
        for folder in filter(has_pin, folders)
    }


def has_pin(folder: Path) -> bool:
    """Whether both files of a pin are in a folder."""
    return all((folder / name).is_file() for name in PIN_FILES)


def own_pin(loaded: Loaded, folder: Path) -> dict[str, Pin]:
    """The pin a staged scenario brings itself."""
    header = loaded.scenario.header
    staged = header.pin and has_pin(folder)
    return {header.class_: read_pin(folder, header.class_)} if staged else {}


def read_pin(folder: Path, header_class: str) -> Pin:
    """Read both files of a pin."""
    system = read_lines(folder / SYSTEM_FILE)
    tools, tools_name = read(folder / TOOLS_FILE)
    return Pin(header_class, parse_header(system, tools, tools_name), short(folder))
