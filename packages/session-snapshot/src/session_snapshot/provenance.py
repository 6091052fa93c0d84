"""``provenance.toml``: who, what and when made a fixture. A machine writes it; a person reads it."""

import datetime
import hashlib
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import tomli_w
from fixture_guard import machine_digest, machine_files
from llm_dialects.entries import entry_to_json
from llm_replay import Recording
from msgspec import Struct, field
from normalizer import canonical_lines

from session_snapshot.pacing import Pace
from session_snapshot.strict import parse_toml
from session_snapshot.suites import Loaded, read

HEADING = "# Written by a machine: nox -s snapshot_record, or nox -s snapshot_refresh -- --accept.\n"


class AgentId(Struct, frozen=True, forbid_unknown_fields=True):
    """The agent as it named itself in ``initialize``."""

    name: str = ""
    version: str = ""


class Frames(Struct, frozen=True, forbid_unknown_fields=True):
    """How many frames of each kind belong to each step."""

    steps: list[dict[str, int]] = []


class Provenance(Struct, frozen=True, forbid_unknown_fields=True):
    """One ``provenance.toml``. Digests are sha256 in hex.

    ``upstream``: who answered, a model or a script. ``source``: where it was asked, as
    :func:`session_snapshot.urls.source_of` words it, or the name of the script. ``answers`` is :func:`answers_digest`.
    """

    made_by: Literal["record", "refresh", "hand"]
    upstream: Literal["model", "script", "none"]
    source: str = ""
    made_on: str = ""
    harness: str = ""
    model: str = ""
    dialect: str = ""
    platform: str = ""
    lock: str = ""
    digest: str = ""
    answers: str = ""
    agent: AgentId = AgentId()
    frames: Frames = field(default_factory=Frames)


def read_provenance(folder: Path) -> Provenance | None:
    """The provenance of a scenario, or ``None`` where it has none yet.

    Raises:
        FixtureError: it is not UTF-8, not TOML, or not a provenance.
    """
    path = folder / "provenance.toml"
    return parse_toml(*read(path), Provenance) if path.is_file() else None


def pace_of(provenance: Provenance | None) -> Pace:
    """The recorded pace of a scenario."""
    return Pace(provenance.frames.steps if provenance is not None and provenance.frames.steps else None)


def make_provenance(
    made_by: Literal["record", "refresh", "hand"],
    upstream: Literal["model", "script", "none"],
    agent_info: Mapping[str, Any],
    model: str,
    dialect: str,
    lock: Path | None,
    files: Mapping[str, bytes],
    counts: Sequence[Mapping[str, int]],
    source: str = "",
    answers: str = "",
) -> Provenance:
    """Describe the fixtures ``files`` (name -> bytes) made just now by this process."""
    return Provenance(
        made_by=made_by,
        upstream=upstream,
        source=source,
        made_on=datetime.datetime.now(datetime.UTC).date().isoformat(),
        harness=version("session-snapshot"),
        model=model,
        dialect=dialect,
        platform=f"{sys.platform} {platform.machine()} python {platform.python_version()}",
        lock=hashlib.sha256(lock.read_bytes()).hexdigest() if lock is not None and lock.is_file() else "",
        digest=machine_digest(files),
        answers=answers,
        agent=AgentId(str(agent_info.get("name", "")), str(agent_info.get("version", ""))),
        frames=Frames([dict(sorted(step.items())) for step in counts]),
    )


def lock_of(loaded: Loaded) -> Path | None:
    """The lock the agent was installed from: its own, else the workspace's."""
    suite = loaded.place.suite_folder
    locks = (suite / "uv.lock", suite.resolve().parent.parent / "uv.lock")
    return next((lock for lock in locks if lock.is_file()), None)


def answers_digest(recording: Recording) -> str:
    """What the model said, as a digest: sha256 over the recorded entries as canonical JSON Lines, by call.

    A refresh never changes it, so that one which differs was changed by hand.
    """
    lines = canonical_lines([entry_to_json(call.entry) for call in recording.calls])
    return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()


def edit_notes(provenance: Provenance | None, folder: Path, recording: str) -> list[str]:
    """A note where the machine-written files of a scenario are not those that its provenance was written for."""
    if provenance is None:
        return [MISSING]
    if not provenance.digest:
        return []
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    return [] if machine_digest(machine_files(files, recording)) == provenance.digest else [EDITED]


MISSING = (
    "provenance.toml is missing: nobody can tell who made the machine-written files; "
    "restore it, or have it made by nox -s snapshot_refresh -- NAME --accept"
)
EDITED = (
    "machine-written files were edited by hand since they were made (provenance.toml holds another digest): "
    "restore them, or take the edit in by nox -s snapshot_refresh -- NAME --accept"
)


def format_provenance(provenance: Provenance) -> str:
    """The file's text; a source that nobody told is left out."""
    values = {
        "made_by": provenance.made_by,
        "upstream": provenance.upstream,
        **({"source": provenance.source} if provenance.source else {}),
        "made_on": provenance.made_on,
        "harness": provenance.harness,
        "model": provenance.model,
        "dialect": provenance.dialect,
        "platform": provenance.platform,
        "lock": provenance.lock,
        "digest": provenance.digest,
        "answers": provenance.answers,
        "agent": {"name": provenance.agent.name, "version": provenance.agent.version},
        "frames": {"steps": provenance.frames.steps},
    }
    return HEADING + tomli_w.dumps(values)
