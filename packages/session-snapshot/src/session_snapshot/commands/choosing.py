"""What commands share: the arguments that name scenarios, and the scenarios they name."""

from pathlib import Path

import click

from session_snapshot.errors import Refused
from session_snapshot.staging import recover
from session_snapshot.suites import Place, choose, complete, find_places, meant, refuse_no_suite

OWN_SUITE = "session"

NAMES = click.argument("names", nargs=-1)
SNAPSHOTS = click.option(
    "--snapshots",
    type=click.Path(path_type=Path),
    default=Path("snapshots"),
    show_default=True,
    help="The folder of suites.",
)


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


def choose_all(snapshots: Path) -> list[Place]:
    """Every scenario there is; a folder that is half a one is found.

    Raises:
        Refused: there is none.
        FixtureError: ``agent.toml`` or ``scenario.toml`` is missing in one.
    """
    places = find_places(snapshots)
    if not places:
        raise Refused(f"there is no scenario in {snapshots}", "write one (README, 'Your own agent')")
    return complete(snapshots, places, everything=True)


def own_first(found: list[Place]) -> list[Place]:
    """Of scenarios that share a bare name, the one of our own suite; elsewhere ``suite/scenario`` says which."""
    same_name = len({place.name for place in found}) == 1
    own = [place for place in found if place.suite == OWN_SUITE]
    return own if same_name and own else found
