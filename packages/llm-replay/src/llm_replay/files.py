"""Reads a scenario's recording from its folder, or from the files that an agent under test is told of. Writes none."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from llm_replay.calls import Header, Recording
from llm_replay.derive import Script, derive_scripts
from llm_replay.errors import FixtureError
from llm_replay.override import parse_override
from llm_replay.recording import Rows, build_recording
from llm_replay.request_rows import parse_rows
from llm_replay.session_log import SessionLog, parse_log

PRIMARY = "session.jsonl"
OVERRIDE = "replay.override.json"
REQUESTS = "requests.golden.jsonl"
CHILD = re.compile(r"session\.([1-9][0-9]*)\.jsonl")
MEND = "restore the file from version control, or record the scenario"


def load_scenario_recording(folder: Path, headers: Mapping[str, Header] | None = None) -> Recording:
    """Read the recording in a scenario's folder.

    ``headers`` are the pinned header classes; without them the calls' requests have no system texts and no tools.

    Raises:
        FixtureError: ``session.jsonl`` is missing, a file is wrong, or the files do not fit together.
    """
    override, requests = folder / OVERRIDE, folder / REQUESTS
    return load_recording(
        folder / PRIMARY,
        child_logs(folder),
        override=override if override.exists() else None,
        requests=requests if requests.exists() else None,
        headers=headers,
    )


def load_recording(
    primary: Path,
    children: Iterable[Path] = (),
    *,
    override: Path | None = None,
    requests: Path | None = None,
    headers: Mapping[str, Header] | None = None,
) -> Recording:
    """Read a recording from single files; ``override`` and ``requests`` must exist where they are named.

    Raises:
        FixtureError: as ``load_scenario_recording``.
    """
    scripts = load_scripts(primary, children)
    rows = None if requests is None else Rows(parse_rows(_text(requests), str(requests)), str(requests), headers)
    patches = None if override is None else parse_override(_text(override), str(override))
    return build_recording(scripts, rows, patches)


def load_scripts(primary: Path, children: Iterable[Path] = ()) -> tuple[Script, ...]:
    """Read logs and return their scripts, the primary first."""
    return derive_scripts(load_log(primary), [load_log(child) for child in children])


def load_log(path: Path) -> SessionLog:
    """Read one session log."""
    return parse_log(_text(path), str(path))


def child_logs(folder: Path) -> list[Path]:
    """Return the logs of sub-agents in ``folder``, by their number."""
    found = ((CHILD.fullmatch(path.name), path) for path in folder.iterdir())
    return [path for _, path in sorted((int(match[1]), path) for match, path in found if match)]


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        raise FixtureError("the file is missing", str(path), mend=MEND) from None
    except UnicodeDecodeError as error:
        raise FixtureError(f"not UTF-8 (byte {error.start})", str(path), mend=MEND) from None
