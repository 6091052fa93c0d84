"""``session-snapshot refresh``."""

import sys
from pathlib import Path
from typing import Any

import click
from llm_dialects.words import nearest

from session_snapshot.changes.drift import KINDS, Kind
from session_snapshot.commands.choosing import NAMES, SNAPSHOTS, choose_all, choose_named, finish_interrupted
from session_snapshot.errors import Refused
from session_snapshot.mode import Mode, demand, under_ci


def read_kinds(_ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> frozenset[Kind]:
    """The kinds named: a list with commas, as often as one likes."""
    words = [word.strip() for value in values for word in value.split(",")]
    return frozenset(map(read_kind, words))


def read_kind(word: str) -> Kind:
    """One kind by its name.

    Raises:
        Refused: there is no such kind.
    """
    for kind in KINDS:
        if kind == word:
            return kind
    near: Any = nearest(word, KINDS)
    mend = f"write {near!r}" if near else f"one of: {', '.join(KINDS)}"
    raise Refused(f"no kind of change is called {word!r}" + (f"; the nearest is {near!r}" if near else ""), mend)


@click.command()
@NAMES
@SNAPSHOTS
@click.option("--all", "everything", is_flag=True, help="All scenarios.")
@click.option("--accept", is_flag=True, help="Write all changes.")
@click.option(
    "--accept-kind",
    "kinds",
    metavar="KIND",
    multiple=True,
    callback=read_kinds,
    help=f"Write changes of this kind only (repeatable, or with commas): {', '.join(KINDS)}.",
)
def refresh(names: tuple[str, ...], snapshots: Path, everything: bool, accept: bool, kinds: frozenset[Kind]) -> None:
    """Show what keyless replays of NAMES do differently now; write it with --accept, or some with --accept-kind."""
    demand(Mode.REFRESH)
    if under_ci():
        raise Refused(
            "refresh rewrites goldens, and this is CI", "run it on your machine and commit what you have read"
        )
    if accept and kinds:
        raise Refused("--accept writes every kind of change, --accept-kind only some", "give one of them")
    if everything and names:
        raise Refused("--all is every scenario, and some are named", "give names, or --all")
    from session_snapshot.changes.refresh import refresh_all

    finish_interrupted(snapshots)
    places = choose_all(snapshots) if everything else choose_named(snapshots, names, "snapshot_refresh")
    sys.exit(refresh_all(places, snapshots, frozenset(KINDS) if accept else kinds, click.echo))
