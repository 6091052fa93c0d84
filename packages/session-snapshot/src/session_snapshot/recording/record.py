"""Record mode: gate, run once against the provider, stage, prove by replaying, then swap the files in.

The real key is in this process and in the recorder alone: never in the agent's environment, its logs, a written file,
or anything that is printed.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from session_snapshot.errors import AgentError, FixtureError, Refused
from session_snapshot.fixtures import STDOUT, pins_of
from session_snapshot.pacing import Pace
from session_snapshot.recording.faults import refuse_failed_calls, refuse_faulty, refuse_leaks, refuse_unanswered
from session_snapshot.recording.files import Attempt, add_provenance, prove, refuse_unguarded, swap_in
from session_snapshot.recording.gate import (
    refuse_authored,
    refuse_edited,
    refuse_key_in_files,
    refuse_live_unkept,
    refuse_no_oracle,
    refuse_under_ci,
    refuse_unguarded_by_hand,
    url_of,
)
from session_snapshot.recording.key import Key, key_of
from session_snapshot.recording.newfixtures import new_fixtures
from session_snapshot.recording.outward import client_for
from session_snapshot.recording.progress import Progress, Say, shown
from session_snapshot.recording.recorder import RecordModel
from session_snapshot.recording.secrets import blanked, find_key
from session_snapshot.recording.upstream import upstream_of
from session_snapshot.run import Capture, run_scenario
from session_snapshot.runroot import run_root
from session_snapshot.sandbox import Sandbox
from session_snapshot.staging import recover, refuse_unwritable, scenario_lock
from session_snapshot.suites import Loaded, Place, load

OURS = (Refused, FixtureError, AgentError)


class Job(Struct, frozen=True):
    """One scenario to record: what a person wrote, the key to show, and where (``""``: a script answers)."""

    loaded: Loaded
    key: Key
    url: str

    @property
    def name(self) -> str:
        """``suite/scenario``."""
        return self.loaded.place.full_name


def record_all(
    places: Sequence[Place],
    snapshots: Path,
    environment: Mapping[str, str],
    force: bool,
    say: Say,
    upstream: str | None = None,
    complain: Say | None = None,
) -> int:
    """Record every place; the exit code: 0 all were recorded, 1 some, 2 none.

    ``say`` prints progress, ``complain`` what went wrong with one of several; with one alone it is raised.

    Raises:
        Refused: under CI, without the suite's key, for a scenario that is written by hand, and so on: nothing was
            asked then, and nothing written.
    """
    for folder in recover(snapshots):
        say(f"finished what an interrupted command began in {folder}")
    refuse_under_ci(environment)
    jobs = [job_of(load(place), environment, upstream) for place in places]
    for job in jobs:
        with withheld(job.key.secret):
            refuse(job, snapshots, force)
    failed = set()
    for job in sorted(jobs, key=lambda job: not job.loaded.scenario.header.pin):
        try:
            record_job(job, snapshots, say)
        except OURS as error:
            if len(jobs) == 1:
                raise
            failed.add(job.name)
            (complain or say)(f"session-snapshot: {job.name}: {error}\n")
    names = [job.name for job in jobs]
    return conclude([name for name in names if name not in failed], [name for name in names if name in failed], say)


def conclude(recorded: Sequence[str], failed: Sequence[str], say: Say) -> int:
    """Say what became of several scenarios; the exit code."""
    if failed:
        say(f"recorded: {', '.join(recorded) or 'none'}; failed, and as they were: {', '.join(failed)}")
    return 0 if not failed else 1 if recorded else 2


# ── before anything is asked ────────────────────────────────────────────────────────────────────────────────────────


def job_of(loaded: Loaded, environment: Mapping[str, str], upstream: str | None) -> Job:
    """What is to be done for a scenario.

    Raises:
        Refused, FixtureError: no model can be asked for it.
    """
    refuse_authored(loaded)
    url = url_of(loaded, upstream) if loaded.agent.record is not None else ""
    return Job(loaded, key_of(loaded, environment, Path.cwd(), url), url)


def refuse(job: Job, snapshots: Path, force: bool) -> None:
    """Refuse what must not be recorded, or could not be kept.

    Raises:
        Refused: why.
    """
    refuse_no_oracle(job.loaded)
    refuse_live_unkept(job.loaded)
    if not force:
        refuse_edited(job.loaded)
    refuse_key_in_files(job.loaded, job.key.secret)
    refuse_unguarded_by_hand(job.loaded, snapshots)
    refuse_unwritable(snapshots, job.loaded.place.folder, f"nox -s snapshot_record -- {job.name}")


# ── one scenario ────────────────────────────────────────────────────────────────────────────────────────────────────


def record_job(job: Job, snapshots: Path, say: Say) -> None:
    """Record one scenario, whatever else records meanwhile; nothing that is said shows the key.

    Raises:
        AgentError, FixtureError, Refused: it cannot be; the old recording is untouched then.
    """
    prices = job.loaded.agent.record.prices if job.loaded.agent.record else {}
    secret = job.key.secret
    progress = Progress(job.name, prices, say, secret)
    with withheld(secret), scenario_lock(snapshots, job.loaded.place):
        attempt = Attempt(job.loaded, snapshots, secret, job.url)
        with kept(attempt, say), shown(progress):
            asyncio.run(record_one(job, attempt, progress))
    pins_of.cache_clear()
    progress.say(f"{job.name}: recorded: {progress.summary()}")


@contextmanager
def withheld(secret: str) -> Iterator[None]:
    """Let no error out that shows the key; not even one of the harness's own defects."""
    try:
        yield
    except Exception as error:
        if not find_key(str(error), secret):
            raise
        what, _, mend = blanked(str(error), secret).rpartition("\nmend: ")
        raise Refused(what or mend, mend if what else "report this defect") from None


@contextmanager
def kept(attempt: Attempt, say: Say) -> Iterator[None]:
    """Keep what a failed recording brought, and say where, before the line that mends it."""
    try:
        yield
    except OURS as error:
        if where := attempt.keep(str(error)):
            raise with_more(error, where) from error
        raise
    except BaseException as error:  # Ctrl-C as well: what was answered by then was paid for
        if where := attempt.keep(repr(error)):
            say(where)
        raise


def with_more(error: Exception, more: str) -> Exception:
    """An error of ours with a sentence before the line that mends it."""
    match error:
        case FixtureError(what=what, path=path, line=line, mend=mend):
            return FixtureError(f"{what}\n{more}", path, line, mend)
        case AgentError(what=what, mend=mend):
            return AgentError(f"{what}\n{more}", mend)
        case _:
            what, _, mend = str(error).rpartition("\nmend: ")
            return Refused(f"{what}\n{more}", mend)


async def record_one(job: Job, attempt: Attempt, progress: Progress) -> None:
    """Run, stage, prove, swap in."""
    progress.enter("recording")
    with run_root() as base:
        async with upstream_of(job.loaded, job.key.value, job.url or None) as upstream:
            capture = await record_run(job, attempt, base, upstream.url, progress)
        upstream.refuse_exhausted(capture.calls)
        variable = job.loaded.agent.record.key_env if job.loaded.agent.record else ""
        refuse_failed_calls(job.loaded, capture.calls, variable, job.url)
        refuse_leaks(capture, {}, job.key.secret)
        refuse_faulty(job.loaded, capture, job.url)
        upstream.refuse_leftovers()
        refuse_unanswered(job.loaded, capture.calls)
        files, counts = new_fixtures(job.loaded, capture)
        attempt.files = files
        refuse_leaks(capture, files, job.key.secret)
        attempt.stage(files)
        add_provenance(attempt, capture, counts, job.url)
        stdout = await prove(attempt, base, progress)
    progress.begin("writing")
    attempt.add(STDOUT, stdout)
    add_provenance(attempt, capture, counts, job.url)
    refuse_leaks(capture, attempt.staged(), job.key.secret)
    refuse_unguarded(attempt)
    swap_in(attempt)


async def record_run(job: Job, attempt: Attempt, base: Path, url: str, progress: Progress) -> Capture:
    """One run against the provider."""
    async with client_for(job.url) as client:
        model = RecordModel(client, url, job.key.value)
        model.progress = progress.call_done
        attempt.calls = progress.calls = model.calls

        def make_model(_box: Sandbox, _driver: object) -> RecordModel:
            return model

        attempt.capture = await run_scenario(job.loaded, base, make_model, Pace(None))
        await model.settled()
    return attempt.capture
