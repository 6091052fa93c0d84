"""The command line: replay, record, refresh. Nothing here decides; it reads flags, prints, and exits.

Exit codes: 0 as asked, 1 something is not as committed, 2 refused or wrong usage, 130 interrupted.
"""

import os
import sys
from pathlib import Path
from typing import Any

import click

from session_snapshot.commandline import ReplayFlags, pytest_arguments
from session_snapshot.errors import AgentError, FixtureError, Refused
from session_snapshot.interrupts import hear, hear_nothing, was_heard
from session_snapshot.mode import Mode, demand, under_ci
from session_snapshot.staging import recover
from session_snapshot.suites import Place, choose, complete, find_places, meant, refuse_no_suite

OWN_SUITE = "session"
INTERRUPTED = 130

NAMES = click.argument("names", nargs=-1)
SNAPSHOTS = click.option(
    "--snapshots",
    type=click.Path(path_type=Path),
    default=Path("snapshots"),
    show_default=True,
    help="The folder of suites.",
)


class Commands(click.Group):
    """Turns our own errors into a message and exit code 2, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            try:
                return super().invoke(ctx)
            finally:
                leave_nothing()
        except (Refused, FixtureError, AgentError) as error:
            click.echo(f"session-snapshot: {error}", err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            click.echo("session-snapshot: interrupted", err=True)
            ctx.exit(INTERRUPTED)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="session-snapshot")
def main() -> None:
    """Record-once, replay-forever snapshot tests for AI agents."""
    hear()


def leave_nothing() -> None:
    """The end of a command: what a Ctrl-C kept from being swept goes, and none is heard any more."""
    hear_nothing()
    from session_snapshot.runroot import sweep_own

    sweep_own()


@main.command()
@NAMES
@SNAPSHOTS
@click.option("--suite", "suites", multiple=True, help="Only this suite (repeatable).")
@click.option("--agents", is_flag=True, help="Every suite but our own agent's.")
@click.option("--repeat", type=click.IntRange(1), default=1, show_default=True, help="Replay each scenario N times.")
@click.option("--shuffle", type=int, help="Shuffle the order by this seed.")
@click.option("--load", is_flag=True, help="Burn every core beside the replay.")
@click.option("-n", "--workers", default="", help="Worker processes (auto, or a number; 0 for none).")
def replay(
    names: tuple[str, ...],
    snapshots: Path,
    suites: tuple[str, ...],
    agents: bool,
    repeat: int,
    shuffle: int | None,
    load: bool,
    workers: str,
) -> None:
    """Replay scenarios without a key and without a network, and compare everything with what is committed.

    NAMES are scenarios (`text-turn`, `session/text-turn`) or suites; none means all of them.
    """
    demand(Mode.REPLAY)
    places = select(snapshots, names, suites, agents)
    arguments = pytest_arguments(places, bool(names), ReplayFlags(repeat, shuffle, load, workers))
    import pytest

    code = pytest.main(arguments)
    sys.exit(INTERRUPTED if was_heard() else code)  # pytest has one code for an interrupt and for what cannot begin


@main.command()
@NAMES
@SNAPSHOTS
@click.option("--force", is_flag=True, help="Record although a machine-written file differs from the last commit.")
def record(names: tuple[str, ...], snapshots: Path, force: bool) -> None:
    """Record the model for NAMES anew (needs the suite's API key) and rewrite those scenarios."""
    demand(Mode.RECORD)
    from session_snapshot.record import record_all

    places = choose_named(snapshots, names, "snapshot_record")
    sys.exit(record_all(places, snapshots, os.environ, force, click.echo))


@main.command()
@NAMES
@SNAPSHOTS
@click.option("--all", "everything", is_flag=True, help="All scenarios.")
@click.option("--accept", is_flag=True, help="Write the changes.")
def refresh(names: tuple[str, ...], snapshots: Path, everything: bool, accept: bool) -> None:
    """Show what keyless replays of NAMES do differently now; write it with --accept."""
    demand(Mode.REFRESH)
    if under_ci():
        raise Refused(
            "refresh rewrites goldens, and this is CI", "run it on your machine and commit what you have read"
        )
    from session_snapshot.refresh import refresh_all

    finish_interrupted(snapshots)
    places = find_places(snapshots) if everything else choose_named(snapshots, names, "snapshot_refresh")
    sys.exit(refresh_all(places, snapshots, accept, click.echo))


@main.command()
@click.option("--write", "folder", type=click.Path(path_type=Path), help="Write one file each into this folder.")
def schema(folder: Path | None) -> None:
    """Show the JSON Schemas of agent.toml, scenario.toml and input.json, for editors."""
    from session_snapshot.schema import schema_files

    for name, text in schema_files().items():
        if folder is None:
            click.echo(text, nl=False)
            continue
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8", newline="")
        click.echo(f"{(folder / name).as_posix()} written")


def finish_interrupted(snapshots: Path) -> None:
    """Finish what a killed record or refresh began, and say so: it is the one thing that a replay may write."""
    for folder in recover(snapshots):
        click.echo(f"finished what an interrupted command began in {folder}", err=True)


def select(snapshots: Path, names: tuple[str, ...], suites: tuple[str, ...], agents: bool) -> list[Place]:
    """The scenarios a replay is about."""
    finish_interrupted(snapshots)
    places = find_places(snapshots)
    if not places:
        raise Refused(f"there is no scenario in {snapshots}", "write one (README, 'Your own agent')")
    for suite in suites:
        refuse_no_suite(snapshots, suite)
    wanted = [place for place in places if in_scope(place, suites, agents)]
    found = choose(wanted, [meant(snapshots, places, wanted, name) for name in names])
    return complete(snapshots, found, not names)


def in_scope(place: Place, suites: tuple[str, ...], agents: bool) -> bool:
    """Whether a scenario belongs to the suites asked for."""
    return place.suite in suites or (not suites and (not agents or place.suite != OWN_SUITE))


def choose_named(snapshots: Path, names: tuple[str, ...], session: str) -> list[Place]:
    """The scenarios named; naming none is refused, since these commands rewrite what they are about."""
    if not names:
        raise Refused("no scenario is named", f"nox -s {session} -- NAME")
    places = find_places(snapshots)
    tidy = [meant(snapshots, places, places, name) for name in names]
    found = {place for name in tidy for place in own_first(choose(places, [name]))}
    return complete(snapshots, sorted(found), everything=False)


def own_first(found: list[Place]) -> list[Place]:
    """Of scenarios that share a bare name, the one of our own suite; elsewhere ``suite/scenario`` says which."""
    same_name = len({place.name for place in found}) == 1
    own = [place for place in found if place.suite == OWN_SUITE]
    return own if same_name and own else found


if __name__ == "__main__":
    main()
