"""Record mode: gate, run once against the provider, stage, prove by replaying, then swap the files in.

The real key is in this process and in the recorder alone: never in the agent's environment, its logs or a written file.
"""

import asyncio
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

import filelock
import httpx
from fixture_guard import check, read_files, render, surroundings

from session_snapshot.calls import LiveCall
from session_snapshot.drive import Driver
from session_snapshot.errors import AgentError, FixtureError, Refused
from session_snapshot.evidence import intent_breaches
from session_snapshot.fixtures import PROVENANCE, STDOUT, load_committed, pins_of
from session_snapshot.mode import under_ci
from session_snapshot.newfixtures import new_fixtures
from session_snapshot.pacing import Pace
from session_snapshot.provenance import format_provenance, make_provenance
from session_snapshot.recorder import RecordModel
from session_snapshot.replay import agent_failures, replay_loaded
from session_snapshot.report import Report, format_report
from session_snapshot.run import Capture, run_scenario
from session_snapshot.runroot import run_root
from session_snapshot.sandbox import Sandbox, remove_tree
from session_snapshot.secrets import find_key
from session_snapshot.staging import recover, staging_root, swap
from session_snapshot.suites import Loaded, Place, load
from session_snapshot.told import DUMMY_KEY
from session_snapshot.upstream import upstream_of

Say = Callable[[str], None]

PROOFS = 3
"""A recording must replay identically this often, each time in a fresh sandbox, before it replaces the old one."""

TIMEOUT = httpx.Timeout(300.0, connect=30.0)
SHORTEST_KEY = 8
"""A shorter key cannot be searched for in what was written without finding it by chance."""

MACHINE_WRITTEN = ("session*.jsonl", "*.golden.jsonl", "header.system.md", "header.tools.json", "replay.override.json")


def record_all(places: Sequence[Place], snapshots: Path, environment: Mapping[str, str], force: bool, say: Say) -> int:
    """Record every place; the exit code. ``say`` prints progress.

    Raises:
        Refused: under CI, without the suite's key, or for a scenario that is written by hand.
    """
    if under_ci(environment):
        raise Refused("recording needs a real key and rewrites fixtures, and this is CI", "record on your machine")
    loaded = [load(place) for place in places]
    keys = [require_key(one, environment) for one in loaded]
    for one in loaded:
        refuse_authored(one)
        refuse_no_oracle(one)
        if not force:
            refuse_edited(one)
    for folder in recover(snapshots):
        say(f"finished what an interrupted command began in {folder}")
    pins_first = sorted(zip(loaded, keys, strict=True), key=lambda pair: not pair[0].scenario.header.pin)
    for one, key in pins_first:
        with scenario_lock(snapshots, one.place):
            asyncio.run(record_one(one, snapshots, key, say))
        pins_of.cache_clear()
    return 0


def require_key(loaded: Loaded, environment: Mapping[str, str]) -> str:
    """The real key of the suite.

    Raises:
        Refused: ``agent.toml`` has no ``[record]``, or its key variable is not set, or is too short to be one.
    """
    suite, record = loaded.place.suite, loaded.agent.record
    if record is None:
        raise Refused(f"suite {suite!r} says nothing about recording", "add [record] to its agent.toml")
    key = environment.get(record.key_env, "")
    if not key:
        raise Refused(
            f"recording suite {suite!r} needs a key: {record.key_env} is not set",
            f"{record.key_env}=... nox -s snapshot_record -- {loaded.place.full_name}",
        )
    refuse_no_key(key, record.key_env, loaded.scenario.recording)
    return key


def refuse_no_key(key: str, variable: str, recording: str) -> None:
    """Refuse what cannot be a key: it could not be sent, or not be searched for in what was written.

    Raises:
        Refused: it is too short, or holds a space, a line end or a letter that no HTTP header carries.
    """
    mend = "set the real one" if recording == "live" else "a scripted recording takes any value of 8 letters or more"
    if len(key) < SHORTEST_KEY:
        raise Refused(f"{variable} has {len(key)} characters, which is no key", mend)
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise Refused(f"{variable} holds a space, a line end or a letter beyond ASCII, which no key does", mend)


def refuse_authored(loaded: Loaded) -> None:
    """Refuse a scenario whose recording a person wrote."""
    if loaded.scenario.recording == "authored":
        raise Refused(
            f"{loaded.place.full_name} is authored: a person wrote its recording, and record would overwrite it",
            'edit session.jsonl by hand, or set recording = "live" or "scripted"',
        )


def refuse_no_oracle(loaded: Loaded) -> None:
    """Refuse a scenario that changes files and says nowhere how they must be in the end."""
    if loaded.scenario.workspace.final and not (loaded.place.folder / "workspace.expected").is_dir():
        raise Refused(
            f"{loaded.place.full_name} says [workspace] final = true and has no workspace.expected/",
            "write the files the agent must leave there, by hand: no mode ever writes them",
        )


def refuse_edited(loaded: Loaded) -> None:
    """Refuse a scenario whose machine-written files differ from the last commit: recording would lose the edit."""
    git = shutil.which("git")
    if git is None:
        return
    # A file that is gone is no edit to lose: recording makes it again.
    diff = ["diff", "--name-only", "--diff-filter=d", "--relative", "HEAD", "--", *MACHINE_WRITTEN]
    command = [git, "-C", str(loaded.place.folder), *diff]
    edited = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    if edited:
        name = loaded.place.full_name
        raise Refused(
            f"{name}: not as in the last commit: {', '.join(edited)}; recording would overwrite that",
            f"commit or restore them, or nox -s snapshot_record -- {name} --force",
        )


@contextmanager
def scenario_lock(snapshots: Path, place: Place) -> Iterator[None]:
    """One recording at a time per scenario.

    Raises:
        Refused: another process records it.
    """
    folder = staging_root(snapshots)
    folder.mkdir(exist_ok=True)
    lock = filelock.FileLock(folder / f"{place.suite}--{place.name}.lock", timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise Refused(f"{place.full_name} is being recorded already", "wait for the other command, or end it") from None
    try:
        yield
    finally:
        lock.release()


async def record_one(loaded: Loaded, snapshots: Path, key: str, say: Say) -> None:
    """Record one scenario, prove the recording, and put it in the old one's place.

    Raises:
        AgentError, FixtureError, Refused: it cannot be; the old recording is untouched then.
    """
    name = loaded.place.full_name
    say(f"{name}: recording")
    with run_root() as base:
        async with upstream_of(loaded, key) as upstream:
            capture = await record_run(loaded, base, upstream.url, key, say)
        upstream.refuse_exhausted(capture.calls)
        refuse_faulty(loaded, capture)
        upstream.refuse_leftovers()
        files, counts = new_fixtures(loaded, capture)
        refuse_leaks(capture, files, key)
        staged = stage(loaded, snapshots, files)
        write_provenance(loaded, staged, capture, counts)
        stdout = await prove(loaded, staged, base, say)
    (staged / STDOUT).write_text(stdout, encoding="utf-8", newline="")
    write_provenance(loaded, staged, capture, counts)
    refuse_unguarded(loaded, snapshots, staged)
    finish(loaded, snapshots, staged)
    say(f"{name}: recorded, {len(capture.calls)} model call(s)")


async def record_run(loaded: Loaded, base: Path, url: str, key: str, say: Say) -> Capture:
    """One run against the provider."""
    async with httpx.AsyncClient(timeout=TIMEOUT, trust_env=loaded.scenario.recording == "live") as client:
        model = RecordModel(client, url, key)
        model.progress = lambda call: say(f"{loaded.place.full_name}: model call {call.number} {outcome(call)}")

        def make_model(_box: Sandbox, _driver: Driver) -> RecordModel:
            return model

        return await run_scenario(loaded, base, make_model, Pace(None))


def outcome(call: LiveCall) -> str:
    """How a call went, in a word."""
    return type(call.entry).__name__.lower() if call.entry is not None else "refused"


def refuse_faulty(loaded: Loaded, capture: Capture) -> None:
    """Refuse a run in which the agent misbehaved or that does not show what its author says it shows.

    Raises:
        AgentError: it misbehaved.
        FixtureError: ``[expect]`` is broken.
    """
    faults = list(agent_failures(capture))
    if faults:
        raise AgentError(format_report(Report(loaded.place.full_name, faults, {}, capture.stderr), ""))
    breaches = intent_breaches(loaded, capture)
    if breaches:
        raise FixtureError(
            "the run breaks [expect], so it is not recorded: " + "; ".join(breaches),
            f"{loaded.place.full_name}/scenario.toml",
            None,
            "correct upstream.json or the agent, or [expect] if the intent changed",
        )


def refuse_leaks(capture: Capture, files: Mapping[str, str], key: str) -> None:
    """Refuse a run in which the real key got anywhere it must not be.

    Raises:
        AgentError: it did, and where.
    """
    places: dict[str, str | bytes] = {f"the file {name}": text for name, text in files.items()}
    places |= {f"the agent's variable {name}": value for name, value in capture.environment.items()}
    places |= {"the agent's stdout": capture.stdout, "the agent's stderr": capture.stderr}
    places |= {f"{name} in the agent's folder": content for name, content in capture.after.items()}
    found = [where for where, content in places.items() if find_key(content, key)]
    if found:
        raise AgentError(
            f"the real key shows in {', '.join(found)}; nothing was written",
            f"the agent is given {DUMMY_KEY!r} only: find where it took the key from, and revoke the key",
        )


def stage(loaded: Loaded, snapshots: Path, files: Mapping[str, str]) -> Path:
    """Write the new machine-written files, with a person's own beside them, into a folder of their own."""
    staged = staging_root(snapshots) / f"new--{loaded.place.suite}--{loaded.place.name}"
    remove_tree(staged)
    staged.mkdir(parents=True)
    for name, text in files.items():
        (staged / name).write_text(text, encoding="utf-8", newline="")
    return staged


def write_provenance(loaded: Loaded, staged: Path, capture: Capture, counts: Sequence[Mapping[str, int]]) -> None:
    """Write who made the staged files, and their digest."""
    assert loaded.agent.model is not None
    files = {path.name: path.read_bytes() for path in staged.iterdir() if path.name != PROVENANCE}
    provenance = make_provenance(
        "record",
        "model" if loaded.scenario.recording == "live" else "script",
        capture.agent_info,
        model_name(loaded, capture.calls),
        loaded.agent.model.dialect,
        lock_of(loaded),
        files,
        counts,
    )
    (staged / PROVENANCE).write_text(format_provenance(provenance), encoding="utf-8", newline="")


def model_name(loaded: Loaded, calls: Sequence[LiveCall]) -> str:
    """The model that was asked for."""
    asked = [str(call.request.params.get("model")) for call in calls if call.request.params.get("model")]
    assert loaded.agent.model is not None
    return asked[0] if asked else loaded.agent.model.name


def lock_of(loaded: Loaded) -> Path | None:
    """The lock the agent was installed from: its own, else the workspace's."""
    own, workspace = (
        loaded.place.suite_folder / "uv.lock",
        loaded.place.suite_folder.resolve().parent.parent / "uv.lock",
    )
    return own if own.is_file() else workspace if workspace.is_file() else None


async def prove(loaded: Loaded, staged: Path, base: Path, say: Say) -> str:
    """Replay the staged recording until it is proved; the stdout surface, which a keyless replay and no live run makes.

    Raises:
        AgentError: a replay is red, or two replays differ.
    """
    stdout = ""
    for number in range(1, PROOFS + 1):
        committed = load_committed(loaded, staged)
        report, _ = await replay_loaded(loaded, committed, base)
        if number == 1:
            stdout = str(report.actual[STDOUT])
            (staged / STDOUT).write_text(stdout, encoding="utf-8", newline="")
            report = Report(report.name, [f for f in report.failures if f.surface != "stdout"], report.actual)
        if not report.green:
            raise AgentError(
                f"replay {number} of {PROOFS} of the new recording is not identical; it is kept in {staged}\n"
                + format_report(report, "")
            )
        say(f"{loaded.place.full_name}: replay {number} of {PROOFS} is identical")
    return stdout


def refuse_unguarded(loaded: Loaded, snapshots: Path, staged: Path) -> None:
    """Refuse a recording in which the fixture guard finds something.

    Raises:
        FixtureError: it does; the staged files are kept.
    """
    scenario = loaded.place.full_name
    files = {name: content for name, content in read_files(snapshots).items() if not machine_written(name, scenario)}
    files |= {f"{scenario}/{path.name}": path.read_bytes() for path in staged.iterdir()}
    findings = check(files, surroundings(), under=scenario)
    if findings:
        raise FixtureError(
            f"the guard refuses the new recording, which is kept in {staged}\n" + render(findings, "human"),
            f"{scenario}/session.jsonl",
        )


def machine_written(name: str, scenario: str) -> bool:
    """Whether a file is one that recording this scenario replaces."""
    folder, _, file = name.rpartition("/")
    return folder == scenario and any(fnmatch(file, pattern) for pattern in (*MACHINE_WRITTEN, PROVENANCE))


def finish(loaded: Loaded, snapshots: Path, staged: Path) -> None:
    """Put the proved files in the old ones' place and remove machine-written files that are no more."""
    files = {path.name: path.read_bytes() for path in staged.iterdir()}
    folder = loaded.place.folder
    old = {path.name for pattern in MACHINE_WRITTEN for path in folder.glob(pattern)}
    swap(snapshots, folder, files, sorted(old - files.keys()))
    remove_tree(staged)
