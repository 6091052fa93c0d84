"""``session-snapshot record``."""

import os
import sys
from pathlib import Path

import click

from session_snapshot.commands.choosing import NAMES, SNAPSHOTS, choose_named
from session_snapshot.mode import Mode, demand
from session_snapshot.visible import visible


@click.command()
@NAMES
@SNAPSHOTS
@click.option("--upstream", metavar="URL", help="Ask the model at this base URL instead of the suite's provider.")
@click.option("--force", is_flag=True, help="Record although a machine-written file differs from the last commit.")
def record(names: tuple[str, ...], snapshots: Path, upstream: str | None, force: bool) -> None:
    """Record the model for NAMES anew and rewrite those scenarios.

    The suite's API key (agent.toml, [record] key_env) is read from the environment, else from .env here or above, up to
    the root of the checkout; a model server on this machine needs none. A new recording must satisfy [expect], pass the
    guard and replay identically three times; if it does not, the scenario stays as it was, and what the run brought is
    kept in .snapshot-staging/.
    """
    demand(Mode.RECORD)
    from session_snapshot.recording.record import record_all

    places = choose_named(snapshots, names, "snapshot_record")

    def complain(line: str) -> None:
        click.echo(visible(line), err=True)

    sys.exit(record_all(places, snapshots, os.environ, force, click.echo, upstream, complain))
