"""``session-snapshot view``."""

import webbrowser
from pathlib import Path

import click

from session_snapshot.commands.choosing import NAMES, SNAPSHOTS, choose_named, finish_interrupted
from session_snapshot.errors import Refused
from session_snapshot.mode import Mode, demand


@click.command()
@NAMES
@SNAPSHOTS
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the page to this file.")
@click.option("--open", "open_it", is_flag=True, help="Open the page in a browser.")
@click.option("--committed", is_flag=True, help="Show the committed files only, and run nothing.")
@click.option("--dialect", default="", help="Have the agent speak this dialect, and tell the recording in it.")
def view(
    names: tuple[str, ...], snapshots: Path, output: Path | None, open_it: bool, committed: bool, dialect: str
) -> None:
    """Replay NAMES without a key and show each run as one HTML page that needs nothing else.

    Lanes for editor, agent, models and files; every frame, call and group of chunks opens; what is not as committed
    is marked. The page's path is printed; it lies under .snapshot-actual/ unless --output says where.
    """
    demand(Mode.REPLAY)
    if not names:
        raise Refused("no scenario is named", "session-snapshot view NAME")
    from session_snapshot.view.write import Wish, view_all

    finish_interrupted(snapshots)
    places = choose_named(snapshots, names, "snapshot")
    if output is not None and len(places) > 1:
        told = ", ".join(place.full_name for place in places)
        raise Refused(f"--output is one file, and there are {len(places)} scenarios ({told})", "name one, or leave it")
    if dialect:
        from session_snapshot.dialects import demand_spoken

        demand_spoken(places, dialect)
    for path in view_all(places, Wish(output, committed, dialect), lambda line: click.echo(line, err=True)):
        click.echo(path.as_posix())
        if open_it and not webbrowser.open(path.resolve().as_uri()):
            click.echo("no browser could be started; open the file yourself", err=True)
