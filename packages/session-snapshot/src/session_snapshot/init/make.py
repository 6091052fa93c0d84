"""``session-snapshot init``: a new suite from a command line. The agent is started at once, and what it says is shown
and pinned; nothing is written unless all of that is well (or ``keep`` says so)."""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from fixture_guard import check, machine_files, read_files, render, surroundings
from llm_replay import Player, Recording
from llm_replay.files import PRIMARY
from msgspec import Struct
from normalizer import canonical_lines

from session_snapshot.agent import parse_agent
from session_snapshot.drive import Driver
from session_snapshot.errors import AgentError, FixtureError, Refused
from session_snapshot.fixtures import PROVENANCE, STDOUT, load_committed, pins_of
from session_snapshot.init.answers import HANDSHAKE, Answers
from session_snapshot.init.files import agent_toml, handshake_json, handshake_toml
from session_snapshot.init.said import introduction, kept_commands, left_behind, next_commands, wrong
from session_snapshot.init.write import put, stage, staging, there
from session_snapshot.known import fixed_tokens
from session_snapshot.mode import under_ci
from session_snapshot.model import ReplayModel
from session_snapshot.pacing import Pace
from session_snapshot.protocols import PROTOCOLS
from session_snapshot.provenance import answers_digest, format_provenance, lock_of, make_provenance
from session_snapshot.recording.newfixtures import HEADER, new_fixtures
from session_snapshot.replay import replay_loaded
from session_snapshot.report import Report, format_failures
from session_snapshot.run import Capture, run_scenario
from session_snapshot.runroot import run_root
from session_snapshot.sandbox import Sandbox
from session_snapshot.scenario import Limits, parse_scenario
from session_snapshot.steps import SCRIPT, parse_script
from session_snapshot.suites import Loaded, Place, short
from session_snapshot.surfaces import surfaces_of
from session_snapshot.tokens import LiveTokens
from session_snapshot.told import install_root

Say = Callable[[str], None]


class Draft(Struct, frozen=True):
    """A suite that is not there yet. ``description`` and ``state`` are known once its agent has run."""

    answers: Answers
    snapshots: Path
    description: str = ""
    state: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where the suite will lie."""
        return self.snapshots / self.answers.suite

    def texts(self) -> dict[str, str]:
        """What a person would have written, by path relative to the suite."""
        return {
            "agent.toml": agent_toml(self.answers, self.description, self.state),
            f"{HANDSHAKE}/scenario.toml": handshake_toml(),
            f"{HANDSHAKE}/{SCRIPT}": handshake_json(self.answers.login),
        }

    def loaded(self) -> Loaded:
        """The handshake, read from these texts by the parsers of every other command."""
        texts = self.texts()
        agent, scenario, script = texts.values()
        place = Place(self.answers.suite, HANDSHAKE, self.folder / HANDSHAKE)
        return Loaded(
            place,
            parse_agent(agent, f"{short(self.folder)}/agent.toml"),
            parse_scenario(scenario, f"{short(place.folder)}/scenario.toml"),
            parse_script(script, f"{short(place.folder)}/{SCRIPT}"),
        )


def init_suite(answers: Answers, snapshots: Path, seconds: float, keep: Callable[[str], bool], say: Say) -> None:
    """Make a suite: start its agent, show what it says, pin that, write it all.

    ``seconds`` is how long each step of the handshake may take. ``keep`` is asked where the handshake cannot be
    pinned, and told why: whether to write what a person would have written all the same.

    Raises:
        Refused: under CI, or the suite cannot be written.
        AgentError, FixtureError: the handshake cannot be pinned; nothing was written, or what was kept is said.
    """
    refuse_under_ci()
    making = Making(Draft(answers, snapshots), seconds, say)
    with staging(snapshots) as staged, there(making.draft.folder):
        try:
            with run_root() as base:
                asyncio.run(making.make(staged, base))
        except (AgentError, FixtureError) as error:
            if not keep(error.what.partition("\n")[0]):
                raise with_more(error, "nothing was written") from error
            stage(staged, making.draft.texts() | {f"{HANDSHAKE}/{PRIMARY}": canonical_lines([EMPTY_LOG])})
            put_suite(staged, making.draft)
            raise with_more(error, "\n".join(kept_commands(answers.suite, making.draft.folder.as_posix()))) from error
        put_suite(staged, making.draft)
    golden = f"{making.draft.folder.as_posix()}/{HANDSHAKE}/{STDOUT}"
    say(f"pinned in {golden}: read it, it is what the suite holds the agent to")
    for line in next_commands(answers.suite, answers):
        say(line)


def refuse_under_ci() -> None:
    """Refuse to make a golden where nobody reads it."""
    if under_ci(os.environ):
        raise Refused("init makes a golden that somebody has to read, and this is CI", "run it on your machine")


def with_more(error: AgentError | FixtureError, more: str) -> AgentError | FixtureError:
    """An error with a sentence before the line that mends it."""
    what = f"{error.what}\n{more}"
    return (
        FixtureError(what, error.path, error.line, error.mend)
        if isinstance(error, FixtureError)
        else AgentError(what, error.mend)
    )


def put_suite(staged: Path, draft: Draft) -> None:
    """Put a staged suite in its place; what was known of the suites' pins is forgotten."""
    put(staged, draft.folder)
    pins_of.cache_clear()


class Making:
    """One suite on its way."""

    def __init__(self, draft: Draft, seconds: float, say: Say) -> None:
        """Nothing is known of the agent yet."""
        self.draft = draft
        self.seconds = seconds
        self.say = say

    async def make(self, staged: Path, base: Path) -> None:
        """Run the handshake, stage its files, and prove by a replay that it is the same again.

        Raises:
            AgentError, FixtureError: the agent does not do what can be pinned.
        """
        loaded = self.draft.loaded()
        self.say(f"starting {' '.join(loaded.agent.command)}")
        capture = await first_run(loaded, base, self.seconds)
        protocol = PROTOCOLS[loaded.agent.protocol]
        for line in introduction(capture, protocol):
            self.say(line)
        self.draft = learned(self.draft, capture)
        if error := wrong(capture, protocol, self.seconds):
            raise error
        loaded = self.draft.loaded()
        stage(staged, self.draft.texts() | in_handshake(pinned(loaded, capture)))
        report, _ = await replay_loaded(loaded, load_committed(loaded, staged / HANDSHAKE), base)
        refuse_unsteady(report, self.draft)
        refuse_unguarded(staged, self.draft)


async def first_run(loaded: Loaded, base: Path, seconds: float) -> Capture:
    """The handshake with nothing behind the model's endpoint."""

    def make_model(box: Sandbox, _driver: Driver) -> ReplayModel:
        tokens = LiveTokens(fixed_tokens(box, install_root(loaded)), lambda _: [])
        return ReplayModel(Player(Recording(())), tokens, box.cwd)

    limits = Limits(step_seconds=seconds, run_seconds=STEPS * (seconds + Limits().quiet_seconds))
    hasty = msgspec.structs.replace(loaded, scenario=msgspec.structs.replace(loaded.scenario, limits=limits))
    return await run_scenario(hasty, base, make_model, Pace(None))


def learned(draft: Draft, capture: Capture) -> Draft:
    """The draft with what the run showed: the agent's name, and what it leaves behind."""
    info = capture.agent_info
    name = str(info.get("title") or info.get("name") or draft.answers.suite)
    return msgspec.structs.replace(draft, description=name, state=tuple(left_behind(capture)))


def pinned(loaded: Loaded, capture: Capture) -> dict[str, str]:
    """The machine-written files of a handshake."""
    files, counts = new_fixtures(loaded, capture)
    files[STDOUT] = surfaces_of(loaded, capture, [], {}).files[STDOUT]
    content = {name: text.encode() for name, text in files.items()}
    provenance = make_provenance(
        "refresh",
        "none",
        capture.agent_info,
        "",
        loaded.agent.model.dialect if loaded.agent.model else "",
        lock_of(loaded),
        machine_files(content, loaded.scenario.recording),
        counts,
        answers=answers_digest(Recording(())),
    )
    return files | {PROVENANCE: format_provenance(provenance)}


def in_handshake(files: Mapping[str, str]) -> dict[str, str]:
    """The handshake's files by path relative to the suite."""
    return {f"{HANDSHAKE}/{name}": text for name, text in files.items()}


def refuse_unsteady(report: Report, draft: Draft) -> None:
    """Refuse an agent that says something else when it is started again.

    Raises:
        AgentError: with what differs.
    """
    if not report.green:
        raise AgentError(
            f"the agent, started again, is not the same:\n{format_failures(report)}",
            f"--keep, then say in {short(draft.folder)}/agent.toml what varies and why ([[normalize]], [[ordering]])",
        )


def refuse_unguarded(staged: Path, draft: Draft) -> None:
    """Refuse a suite in which the fixture guard finds something.

    Raises:
        FixtureError: with the findings.
    """
    suite = draft.answers.suite
    new = {f"{suite}/{name}": content for name, content in read_files(staged).items()}
    findings = check(read_files(draft.snapshots) | new, surroundings(), under=suite)
    if findings:
        raise FixtureError(
            f"the guard refuses the new suite\n{render(findings, 'human').rstrip()}",
            f"{short(draft.folder)}/agent.toml",
            None,
            "see the mends above; --keep writes the suite as it is, to be edited",
        )


STEPS = 4
"""The handshake has no more steps than that, the agent's start and end counted."""

EMPTY_LOG = HEADER | {"id": "{{sessionId:1}}", "createdAt": 0, "cwd": "{{cwd}}"}
"""The recording of a scenario that asks no model."""
