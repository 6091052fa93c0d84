"""One run of an agent through a script, whatever answers its model calls: the list of verbs, and what they brought
in."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol

from llm_mock_server import CapturedRequest, HttpRequest, MockServer, serve
from llm_replay import SessionLog
from msgspec import Struct

from session_snapshot.agent import Agent
from session_snapshot.calls import LiveCall
from session_snapshot.drive import Driver
from session_snapshot.errors import AgentError, FixtureError
from session_snapshot.frames import Frame
from session_snapshot.harvest import harvest_logs
from session_snapshot.leftovers import Leftovers
from session_snapshot.pacing import Pace
from session_snapshot.process import AgentProcess, boot
from session_snapshot.runroot import PIDS
from session_snapshot.sandbox import Sandbox, Tree, capture_tree, make_sandbox, remove_tree
from session_snapshot.steps import SCRIPT, step_line
from session_snapshot.strict import line_of
from session_snapshot.suites import Loaded, read
from session_snapshot.told import Extra, Told, tell
from session_snapshot.trace import Moment
from session_snapshot.waiting import Changes, run_deadline

NOT_FOUND = 404

Fault = AgentError | FixtureError
"""What went wrong in a run that came to its end, by whose fault it is."""


class ModelSide(Protocol):
    """What answers model calls in a run, and keeps them in order of arrival."""

    calls: list[LiveCall]

    def __call__(self, http: HttpRequest) -> Any:
        """Answer one."""


class Capture(Struct, frozen=True):
    """All that came out of one run, raw. ``before`` and ``after`` are the tree under cwd.

    ``account`` is what an agent that replays in its own process wrote of it (:mod:`session_snapshot.adapter`);
    ``moments`` say in which order frames and model calls came.
    """

    box: Sandbox
    port: int
    frames: list[Frame]
    counts: list[dict[str, int]]
    stop_reasons: list[str]
    sessions: list[str]
    calls: list[LiveCall]
    requests: list[CapturedRequest]
    logs: list[SessionLog]
    before: Tree
    after: Tree
    stderr: str
    stdout: bytes
    faults: list[Fault]
    notes: list[str]
    environment: dict[str, str]
    account: bytes | None = None
    moments: Sequence[Moment] = ()

    @property
    def agent_info(self) -> dict[str, Any]:
        """What the agent said of itself in ``initialize``."""
        for frame in self.frames:
            result = frame.value.get("result")
            if isinstance(result, dict) and isinstance(result.get("agentInfo"), dict):
                return dict(result["agentInfo"])
        return {}


MakeModel = Callable[[Sandbox, "Driver"], ModelSide]
MakeExtra = Callable[[Sandbox], Extra]


def nothing_extra(_box: Sandbox) -> Extra:
    """What is added where the model is on the wire."""
    return Extra()


async def run_scenario(
    loaded: Loaded, base: Path, make_model: MakeModel, pace: Pace, make_extra: MakeExtra = nothing_extra
) -> Capture:
    """Boot the agent in a fresh sandbox under ``base``, drive the script, stop it, collect all, wipe the sandbox."""
    scenario, agent = loaded.scenario, loaded.agent
    box = make_sandbox(base, scenario.workspace.parent == "home", loaded.place.folder / "workspace")
    try:
        return await in_sandbox(loaded, agent, box, base / PIDS, make_model, pace, make_extra(box))
    finally:
        remove_tree(box.root)


async def in_sandbox(
    loaded: Loaded, agent: Agent, box: Sandbox, pids: Path, make_model: MakeModel, pace: Pace, extra: Extra
) -> Capture:
    """The run itself."""
    changes = Changes()
    before = capture_tree(box.cwd, agent.persistence.state)
    leftovers = Leftovers(box.home, pids if pids.is_dir() else None)
    async with AsyncExitStack() as stack:
        servers: list[MockServer] = []
        driver = Driver(agent, loaded.script, box, loaded.scenario.limits, pace, changes, lambda: in_flight(servers))
        model = make_model(box, driver)
        listed = agent.model.name if agent.model else ""
        server = await stack.enter_async_context(serve(model, on_change=changes.ring, listed_model=listed))
        servers.append(server)
        told = tell(loaded, box, server, extra)
        faults = await drive(loaded, driver, told, leftovers)
        await server.aclose()
    process = driver.connection.process
    return Capture(
        box=box,
        port=int(server.url.rpartition(":")[2]),
        frames=driver.frames,
        counts=driver.counts(),
        stop_reasons=driver.stop_reasons,
        sessions=driver.sessions.ids,
        calls=model.calls,
        requests=list(server.requests),
        logs=harvest(agent, box, driver, faults),
        before=before,
        after=capture_tree(box.cwd, agent.persistence.state),
        stderr=process.stderr.decode(errors="replace") if process else "",
        stdout=bytes(process.raw) if process else b"",
        faults=[*server_faults(server), *faults],
        notes=driver.notes,
        environment=told.environment,
        account=extra.account.read_bytes() if extra.account is not None and extra.account.is_file() else None,
        moments=driver.connection.trace.moments,
    )


def in_flight(servers: list[MockServer]) -> int:
    """How many model calls are being answered; the server starts after the driver is made."""
    return servers[0].in_flight if servers else 0


async def drive(loaded: Loaded, driver: Driver, told: Told, leftovers: Leftovers) -> list[Fault]:
    """Boot, perform the steps, stop; every fault of the agent and of its script. Nothing of it is left running."""
    agent, limits = loaded.agent, loaded.scenario.limits
    faults: list[Fault] = []

    async def start() -> AgentProcess:
        return await boot(told.command(), driver.cwd, told.environment, leftovers)

    try:
        driver.connection.attach(await start())
        async with run_deadline(limits.run_seconds):
            await driver.perform_all(start)
        await driver.connection.running().stop(agent.stop, limits.stop_seconds, agent.exit_code)
        if driver.connection.fault is not None:
            raise driver.connection.fault
    except AgentError as error:
        faults.append(error)
    except FixtureError as error:
        faults.append(located(error, loaded, driver.connection.step))
    finally:
        if driver.connection.process is not None and driver.connection.process.exit_code is None:
            await driver.connection.process.kill()
        left = leftovers.left_behind()
    return [*faults, *map(left_behind, left), *map(AgentError, driver.client.failures), *unused_answers(loaded, driver)]


def left_behind(name: str) -> AgentError:
    """The fault of an agent that goes and leaves a process running."""
    return AgentError(
        f"the agent left a process behind ({name}); it was killed", "have the agent end what it starts before it exits"
    )


def located(error: FixtureError, loaded: Loaded, step: int) -> FixtureError:
    """An error about the script with its file's place and the line of the step that was being performed."""
    if error.path != SCRIPT:
        return error
    text, name = read(loaded.place.folder / SCRIPT)
    return FixtureError(error.what, name, step_line(text, step), error.mend)


def unused_answers(loaded: Loaded, driver: Driver) -> list[Fault]:
    """Permission answers nobody asked for."""
    left = list(driver.client.answers)
    if not left:
        return []
    what = f"{len(left)} scripted permission answer(s) were never asked for: {left}"
    text, name = read(loaded.place.folder / SCRIPT)
    line = line_of(text, "permissionAnswers")
    return [FixtureError(what, name, line, "remove them, or correct the agent if it should have asked")]


def server_faults(server: MockServer) -> list[Fault]:
    """What went wrong at the model's endpoint: a recording that cannot be served, a request no provider would take.

    Raises:
        Exception: a defect of the harness.
    """
    for failure in server.failures:
        if not isinstance(failure, FixtureError):
            raise failure
    wrong = [refused for refused in server.requests if refused.kind == "rejected" and not is_probe(refused)]
    return [*(failure for failure in server.failures if isinstance(failure, FixtureError)), *map(malformed, wrong)]


def is_probe(refused: CapturedRequest) -> bool:
    """Whether a refused request only asked what there is, or was given up before it had an answer."""
    return refused.status is None or (refused.status == NOT_FOUND and refused.method != "POST")


def malformed(refused: CapturedRequest) -> AgentError:
    """The fault of an agent that sent a request no provider would take; it may have swallowed the answer."""
    request = f"{refused.method} {refused.path}"
    why = f": {refused.error}" if refused.error else ""
    return AgentError(
        f"the agent sent its model's endpoint a request that is none: {request}, answered with {refused.status}{why}",
        "correct the request, or [model] in agent.toml (dialect, base URL)",
    )


def harvest(agent: Agent, box: Sandbox, driver: Driver, faults: list[Fault]) -> list[SessionLog]:
    """The agent's session logs; a wrong one is a fault like any other."""
    try:
        return harvest_logs(agent, box, driver.sessions.ids)
    except AgentError as error:
        faults.append(error)
        return []
