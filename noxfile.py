"""The contributor's map: `nox -l` lists the sessions, `nox` alone runs the everyday ones in this order.

Each session runs on exactly its dependency group of uv.lock, from `wheelhouse/`, offline. `python ci/bootstrap.py`
takes the same arguments as nox and needs nothing installed.
"""

import os
import signal
import sys
from pathlib import Path
from types import FrameType

import nox

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from ci import bootstrap  # noqa: E402
from ci.projects import UV_ELSEWHERE, UV_OFFLINE, projects  # noqa: E402

if Path(sys.prefix).resolve() != bootstrap.TOOLS.resolve():
    # Some other nox was called: the pinned one takes over, with the same arguments.
    sys.exit(bootstrap.main(sys.argv[1:]))

from uv import find_uv_bin  # noqa: E402

nox.options.default_venv_backend = "uv"
nox.options.reuse_venv = "yes"
nox.options.error_on_external_run = True

os.environ.update(UV_OFFLINE)


def terminated(_number: int, _frame: FrameType | None) -> None:
    """A request to terminate is Ctrl-C: nox then ends what it started, instead of leaving it to run on."""
    raise KeyboardInterrupt


signal.signal(signal.SIGTERM, terminated)

# Seconds for pytest to free its children and ports after Ctrl-C, before nox ends it.
INTERRUPT, TERMINATE = 12, 10

SNAPSHOTS = ROOT / "snapshots"

# Foreign test data lies beside some checkouts; tests that read it skip elsewhere, and say so.
CASES = ROOT.parent / "shared" / "cases"


@nox.session
def lint(session: nox.Session) -> None:
    """Formatting, lint and strict types."""
    sync(session, "lint")
    run(session, "ruff", "format", "--check", ".")
    run(session, "ruff", "check", ".")
    run(session, "mypy", "noxfile.py", "conftest.py", "ci", *map(str, sorted(ROOT.glob("packages/*/src"))))


@nox.session
def tests(session: nox.Session) -> None:
    """Unit tests of all packages and of the workspace; `-- packages/normalizer -k uuid` runs some."""
    sync(session, "tests")
    # Starting xdist costs seconds: a chosen part runs without it.
    everything = ["packages", "tests", "-n", "auto", "--dist", "worksteal"]
    run(session, "pytest", *(session.posargs or everything), env=cases())


@nox.session(venv_backend="none")
def purity(session: nox.Session) -> None:
    """The locks: hashed, host-free, released, closed, and equal to the pinned closures."""
    run(session, sys.executable, "-m", "ci.lock_purity")


@nox.session
def guard(session: nox.Session) -> None:
    """What a committed fixture may look like."""
    sync(session, "guard")
    run(session, "fixture-guard", *(session.posargs or ["snapshots"]))


@nox.session
def snapshot(session: nox.Session) -> None:
    """Keyless replay of our own agent's suite; `-- text-turn` replays some of it."""
    sync(session, "snapshot")
    run(session, "session-snapshot", "replay", "--suite", "session", *session.posargs, env=mode("replay"))


@nox.session
def snapshot_agents(session: nox.Session) -> None:
    """Keyless replay of the third-party agents' suites, each agent in its own environment."""
    sync(session, "snapshot")
    for project in projects()[1:]:
        sync_agent(session, project)
    run(session, "session-snapshot", "replay", "--agents", *session.posargs, env=mode("replay"))


@nox.session(default=False)
def snapshot_record(session: nox.Session) -> None:
    """Record scenarios anew from the live model (needs its key): `-- text-turn`."""
    sync(session, "snapshot")
    sync_named_agents(session)
    run(session, "session-snapshot", "record", *session.posargs, env=mode("record"))


@nox.session(default=False)
def snapshot_refresh(session: nox.Session) -> None:
    """Show, keyless, what changed against the goldens and why; `--accept` writes it."""
    sync(session, "snapshot")
    sync_named_agents(session)
    run(session, "session-snapshot", "refresh", *session.posargs, env=mode("refresh"))


@nox.session(default=False)
def snapshot_review(session: nox.Session) -> None:
    """Walk, keyless, through what changed, one difference after the other: `-- text-turn`; `-- --list` lists it."""
    sync(session, "snapshot")
    sync_agents_in(session)
    run(session, "session-snapshot", "review", *session.posargs, env=mode("refresh"))


@nox.session(default=False)
def snapshot_view(session: nox.Session) -> None:
    """Show a run as one page: `-- cancel`."""
    sync(session, "snapshot")
    sync_named_agents(session)
    run(session, "session-snapshot", "view", *session.posargs, env=mode("replay"))


@nox.session(default=False)
def snapshot_init(session: nox.Session) -> None:
    """Make a new suite from a command line, or a scenario in one: `-- my-agent`, `-- my-agent/first-turn`."""
    sync(session, "snapshot")
    run(session, "session-snapshot", "init", *session.posargs, env=mode(None))


@nox.session(default=False, venv_backend="none")
def lock(session: nox.Session) -> None:
    """Make the host-free locks, the pinned closures and ci/tools.txt (the one session that needs an index)."""
    run(session, sys.executable, "-m", "ci.lock", *session.posargs)


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Speed, as ratios taken in one run: `-- mock_server --quick` (its peers need npm), `-- replay`."""
    sync(session, "bench")
    name, *options = session.posargs or ["mock_server"]
    if name == "mock_server":
        session.chdir(ROOT / "bench" / "peers")
        session.run_install("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", external=True)
        session.chdir(ROOT)
    run(session, "python", f"bench/{name}.py", *options)


@nox.session(default=False)
def stress(session: nox.Session) -> None:
    """The long tests: hundreds of repeats, soaks."""
    sync(session, "tests")
    chosen = session.posargs or ["packages", "tests"]
    run(session, "pytest", "-m", "stress", "-o", "faulthandler_timeout=0", *chosen, env=cases())


def sync(session: nox.Session, group: str) -> None:
    """Make the session's environment hold exactly `group` of uv.lock."""
    uv_sync(session, ROOT, Path(session.virtualenv.location), "--no-default-groups", "--group", group)


def sync_named_agents(session: nox.Session) -> None:
    """Install the third-party agents whose scenarios the arguments name."""
    for project in projects()[1:]:
        names = {project.name, *(f"{project.name}/{folder.name}" for folder in project.iterdir())}
        own = {folder.name for folder in project.iterdir()} - {path.name for path in (SNAPSHOTS / "session").iterdir()}
        if {"--all", *names, *own} & set(session.posargs):
            sync_agent(session, project)


def sync_agents_in(session: nox.Session) -> None:
    """Install the third-party agents whose scenarios the arguments name: all of them where none is named."""
    if any(not word.startswith("-") for word in session.posargs):
        sync_named_agents(session)
        return
    for project in projects()[1:]:
        sync_agent(session, project)


def sync_agent(session: nox.Session, project: Path) -> None:
    """Make `.agents/<suite>/` hold exactly what the agent's own lock says."""
    uv_sync(session, project, ROOT / ".agents" / project.name)


def uv_sync(session: nox.Session, project: Path, environment: Path, *options: str) -> None:
    """Fill the wheelhouse for the project's lock if need be, then sync from it and from nothing else."""
    session.run_install(sys.executable, "-m", "ci.wheelhouse", str(project), external=True)
    where = ["--project", str(project), "--python", sys.executable]
    env: dict[str, str | None] = dict.fromkeys(UV_ELSEWHERE)
    env["UV_PROJECT_ENVIRONMENT"] = str(environment)
    command = [find_uv_bin(), "sync", "--quiet", "--locked", "--offline", *where, *options]
    try:
        session.run_install(*command, env=env, external=True)
    except nox.command.CommandFailed:
        session.error(f"{project.name}: uv.lock does not fit pyproject.toml (uv's message is above)\nmend: nox -s lock")


def run(session: nox.Session, *command: str, env: dict[str, str | None] | None = None) -> None:
    """Run a command of the session's environment, with time to clean up after Ctrl-C."""
    session.run(*command, env=env, interrupt_timeout=INTERRUPT, terminate_timeout=TERMINATE)


def mode(name: str | None) -> dict[str, str | None]:
    """The environment of a snapshot session: its mode (``None``: none at all), whatever the shell had set."""
    return {"SNAPSHOT_MODE": name}


def cases() -> dict[str, str | None]:
    """The environment of a test session: no mode, and the foreign cases where they are."""
    found = os.environ.get("SNAPSHOT_CASES") or (str(CASES) if CASES.is_dir() else None)
    return {"SNAPSHOT_CASES": found, "SNAPSHOT_MODE": None}
