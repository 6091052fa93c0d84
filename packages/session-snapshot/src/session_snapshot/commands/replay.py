"""``session-snapshot replay``."""

import sys
from pathlib import Path

import click

from session_snapshot.commandline import ReplayFlags, pytest_arguments
from session_snapshot.commands.choosing import NAMES, SNAPSHOTS, select
from session_snapshot.interrupts import INTERRUPTED, was_heard
from session_snapshot.mode import Mode, demand


@click.command()
@NAMES
@SNAPSHOTS
@click.option("--suite", "suites", multiple=True, help="Only this suite (repeatable).")
@click.option("--agents", is_flag=True, help="Every suite but our own agent's.")
@click.option("--repeat", type=click.IntRange(1), default=1, show_default=True, help="Replay each scenario N times.")
@click.option("--shuffle", type=int, help="Shuffle the order by this seed.")
@click.option("--load", is_flag=True, help="Burn every core beside the replay.")
@click.option("--dialect", default="", help="Have the agent speak this dialect, and tell the recording in it.")
@click.option("-n", "--workers", default="", help="Worker processes (auto, or a number; 0 for none).")
def replay(
    names: tuple[str, ...],
    snapshots: Path,
    suites: tuple[str, ...],
    agents: bool,
    repeat: int,
    shuffle: int | None,
    load: bool,
    dialect: str,
    workers: str,
) -> None:
    """Replay scenarios without a key and without a network, and compare everything with what is committed.

    NAMES are scenarios (`text-turn`, `session/text-turn`) or suites; none means all of them.
    """
    demand(Mode.REPLAY)
    places = select(snapshots, names, suites, agents)
    if dialect:
        from session_snapshot.dialects import demand_spoken

        demand_spoken(places, dialect)
    arguments = pytest_arguments(places, bool(names), ReplayFlags(repeat, shuffle, load, workers, dialect))
    import pytest

    code = pytest.main(arguments)
    sys.exit(INTERRUPTED if was_heard() else code)  # pytest has one code for an interrupt and for what cannot begin
