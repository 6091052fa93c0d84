"""``session-snapshot record``."""

import os
import sys
from pathlib import Path

import click

from session_snapshot.commands.choosing import NAMES, SNAPSHOTS, choose_named
from session_snapshot.mode import Mode, demand


@click.command()
@NAMES
@SNAPSHOTS
@click.option("--force", is_flag=True, help="Record although a machine-written file differs from the last commit.")
def record(names: tuple[str, ...], snapshots: Path, force: bool) -> None:
    """Record the model for NAMES anew (needs the suite's API key) and rewrite those scenarios."""
    demand(Mode.RECORD)
    from session_snapshot.record import record_all

    places = choose_named(snapshots, names, "snapshot_record")
    sys.exit(record_all(places, snapshots, os.environ, force, click.echo))
