"""The files of one recording on their way: staged, proved by replaying, swapped in; kept where that fails."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from fixture_guard import check, render, surroundings
from llm_dialects.chunks import to_json
from llm_dialects.entries import entry_to_json
from normalizer import canonical_line

from session_snapshot.calls import LiveCall
from session_snapshot.disk import writing
from session_snapshot.errors import AgentError, FixtureError
from session_snapshot.fixtures import PROVENANCE, STDOUT, load_committed
from session_snapshot.provenance import answers_digest, format_provenance, lock_of, make_provenance
from session_snapshot.recording.faults import again
from session_snapshot.recording.gate import MACHINE_WRITTEN, SCRIPT_OF_PROVIDER, by_hand
from session_snapshot.recording.progress import Progress
from session_snapshot.recording.secrets import blanked
from session_snapshot.replay import replay_loaded
from session_snapshot.report import Report, format_failures
from session_snapshot.run import Capture
from session_snapshot.sandbox import remove_tree
from session_snapshot.staging import staging_root, swap
from session_snapshot.suites import Loaded, short
from session_snapshot.urls import source_of

PROOFS = 3
"""A recording must replay identically this often, each time in a fresh sandbox, before it replaces the old one."""

SEED = "PYTHONHASHSEED"


class Attempt:
    """What there is of a recording so far: whatever comes of it, what was paid for is not thrown away."""

    def __init__(self, loaded: Loaded, snapshots: Path, secret: str, url: str = "") -> None:
        """Nothing yet; what an earlier attempt left goes. ``url`` is the provider's, ``""`` a script's."""
        self.url = url
        self.loaded = loaded
        self.snapshots = snapshots
        self.secret = secret
        self.folder = staging_root(snapshots) / f"new--{loaded.place.suite}--{loaded.place.name}"
        self.calls: Sequence[LiveCall] = ()
        self.capture: Capture | None = None
        self.files: Mapping[str, str] = {}
        self.actual: Mapping[str, str | bytes] = {}
        with writing(self.folder, self.again, "no model was asked, and nothing was changed"):
            remove_tree(self.folder)

    @property
    def again(self) -> str:
        """The command that records once more."""
        return again(self.loaded, self.url)

    def stage(self, files: Mapping[str, str]) -> None:
        """Write the new machine-written files into a folder of their own."""
        self.files = files
        with writing(self.folder, self.again):
            self.folder.mkdir(parents=True)
            for name, text in files.items():
                write(self.folder / name, text)

    def add(self, name: str, text: str) -> None:
        """Write one more, or one anew."""
        with writing(self.folder, self.again):
            write(self.folder / name, text)

    def staged(self) -> dict[str, bytes]:
        """The staged files."""
        return {path.name: path.read_bytes() for path in self.folder.iterdir() if path.is_file()}

    # ── where it fails ──

    def keep(self, why: str) -> str:
        """Keep what there is, the key blanked; where, as a sentence, or ``""`` where there is nothing to keep."""
        kept = self.evidence()
        if not kept:
            return ""
        kept |= {"why.txt": why + "\n"}
        try:
            return self.keep_in(self.folder, kept)
        except OSError:
            try:
                return self.keep_in(Path(tempfile.mkdtemp(prefix="snapshot-kept-")), kept)
            except OSError as error:
                return f"what the run brought could not be kept: {error.strerror or error}"

    def evidence(self) -> dict[str, str]:
        """What the run brought, by file name, with the key in it."""
        files: dict[str, str] = dict(self.files)
        if self.calls:
            files["run/calls.jsonl"] = "".join(f"{call_line(call)}\n" for call in self.calls)
        if self.capture is not None:
            files["run/stdout.jsonl"] = self.capture.stdout.decode("utf-8", "replace")
            files["run/stderr.txt"] = self.capture.stderr
        for name, content in self.actual.items():
            files[f"replayed/{name}"] = content if isinstance(content, str) else content.decode("utf-8", "replace")
        return files

    def keep_in(self, folder: Path, files: Mapping[str, str]) -> str:
        """Write what is kept into a folder."""
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write(folder / name, blanked(text, self.secret))
        return f"kept: what the run brought is in {short(folder)}"


def call_line(call: LiveCall) -> str:
    """A model call as it is kept: what was asked and what was answered."""
    answer = entry_to_json(call.entry) if call.entry is not None else None
    return canonical_line({"call": call.number, "request": to_json(call.request), "answer": answer})


def write(path: Path, text: str) -> None:
    """Write a text as it is."""
    path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")


# ── who made them ───────────────────────────────────────────────────────────────────────────────────────────────────


def add_provenance(attempt: Attempt, capture: Capture, counts: Sequence[Mapping[str, int]], url: str) -> None:
    """Write who made the staged files, from what (``url``: the provider's, ``""`` a script), and their digest."""
    loaded = attempt.loaded
    assert loaded.agent.model is not None
    provenance = make_provenance(
        "record",
        "model" if url else "script",
        capture.agent_info,
        model_name(loaded, capture.calls),
        loaded.agent.model.dialect,
        lock_of(loaded),
        {name: content for name, content in attempt.staged().items() if name != PROVENANCE},
        counts,
        source_of(url) if url else SCRIPT_OF_PROVIDER,
        answers_digest(load_committed(loaded, attempt.folder).recording),
    )
    attempt.add(PROVENANCE, format_provenance(provenance))


def model_name(loaded: Loaded, calls: Sequence[LiveCall]) -> str:
    """The model that was asked for."""
    asked = [str(call.request.params.get("model")) for call in calls if call.request.params.get("model")]
    assert loaded.agent.model is not None
    return asked[0] if asked else loaded.agent.model.name


# ── proofs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def prove(attempt: Attempt, base: Path, progress: Progress) -> str:
    """Replay the staged recording until it is proved; the stdout surface, which a keyless replay and no live run makes.

    Raises:
        AgentError: a replay is red, or two replays differ.
    """
    stdout = ""
    for number in range(1, PROOFS + 1):
        progress.begin(f"replay {number} of {PROOFS}")
        loaded = hashing_otherwise(attempt.loaded, number)
        report, _ = await replay_loaded(loaded, load_committed(loaded, attempt.folder), base)
        if number == 1:
            stdout = str(report.actual[STDOUT])
            attempt.add(STDOUT, stdout)
            report = Report(report.name, [f for f in report.failures if f.surface != "stdout"], report.actual)
        if not report.green:
            attempt.actual = report.actual
            raise AgentError(
                f"replay {number} of {PROOFS} of the new recording is not identical\n\n{format_failures(report)}\n",
                UNSTEADY,
            )
        progress.enter(f"replay {number} of {PROOFS} is identical")
    return stdout


UNSTEADY = "correct the agent, or declare what varies: [[normalize]] and [[ordering]] in agent.toml"


def hashing_otherwise(loaded: Loaded, number: int) -> Loaded:
    """The scenario with another hash seed for agents in Python, unless its author has chosen one."""
    scenario = loaded.scenario
    if SEED in loaded.agent.env or SEED in scenario.env:
        return loaded
    other = msgspec.structs.replace(scenario, env=scenario.env | {SEED: str(number)})
    return msgspec.structs.replace(loaded, scenario=other)


def refuse_unguarded(attempt: Attempt) -> None:
    """Refuse a recording in which the fixture guard finds something.

    Raises:
        FixtureError: it does.
    """
    scenario = attempt.loaded.place.full_name
    files = by_hand(attempt.snapshots, scenario)
    files |= {f"{scenario}/{name}": content for name, content in attempt.staged().items()}
    findings = check(files, surroundings(), under=scenario)
    if findings:
        raise FixtureError(
            "the guard refuses the new recording\n" + render(findings, "human"),
            f"{scenario}/session.jsonl",
            None,
            "mend what it names, then record again",
        )


def swap_in(attempt: Attempt) -> None:
    """Put the proved files in the old ones' place and remove machine-written files that are no more."""
    files, folder = attempt.staged(), attempt.loaded.place.folder
    old = {path.name for pattern in MACHINE_WRITTEN for path in folder.glob(pattern)}
    swap(attempt.snapshots, folder, files, sorted(old - files.keys()))
    with writing(attempt.folder, "remove it", "the recording is in place"):
        remove_tree(attempt.folder)
