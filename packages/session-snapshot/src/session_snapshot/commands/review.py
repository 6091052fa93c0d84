"""``session-snapshot review``."""

import sys
from functools import partial
from pathlib import Path

import click

from session_snapshot.commands.choosing import NAMES, SNAPSHOTS, choose_all, choose_named, finish_interrupted
from session_snapshot.errors import Refused
from session_snapshot.mode import Mode, demand, mode_from, under_ci

LIST = "session-snapshot review --list"


@click.command()
@NAMES
@SNAPSHOTS
@click.option("--list", "listing", is_flag=True, help="List what is pending, a line each, and write nothing; 1 if any.")
def review(names: tuple[str, ...], snapshots: Path, listing: bool) -> None:
    """Walk through what keyless replays of NAMES do differently now, and accept it or not, one by one.

    No NAMES means all scenarios. What is accepted is written, as `refresh --accept` would, when a scenario is done.
    """
    demand(mode_from() if listing and mode_from() is not Mode.RECORD else Mode.REFRESH)
    if not listing:
        refuse_unseen()
    from session_snapshot.changes.terminal import list_pending, walk_pending

    finish_interrupted(snapshots)
    places = choose_named(snapshots, names, "snapshot_review") if names else choose_all(snapshots)
    if listing:
        sys.exit(list_pending(places, click.echo, partial(click.echo, err=True)))
    sys.exit(walk_pending(places, snapshots, click.echo, press))


def refuse_unseen() -> None:
    """Refuse to ask where nobody answers.

    Raises:
        Refused: under CI, and where there is no terminal to draw on and read keys from.
    """
    if under_ci():
        raise Refused("review rewrites goldens, and this is CI", f"{LIST}, or review on your machine")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused("review asks at a terminal, and this is none", LIST)


def press() -> str:
    """Wait for a key; ``""`` where there will be none any more. Of keys that were typed ahead the first counts."""
    try:
        typed = click.getchar()
    except EOFError:
        return ""
    return typed[:1]
