"""``session-snapshot refresh``."""

import sys
from pathlib import Path

import click

from session_snapshot.commands.choosing import NAMES, SNAPSHOTS, choose_named, finish_interrupted
from session_snapshot.errors import Refused
from session_snapshot.mode import Mode, demand, under_ci
from session_snapshot.suites import find_places


@click.command()
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
