"""What a review is about: fresh replays, listed or walked through."""

from collections.abc import Callable, Sequence
from pathlib import Path

from session_snapshot.changes.drift import group_lines
from session_snapshot.changes.pending import Pending, Say, replay_all
from session_snapshot.changes.refresh import pinned_elsewhere, unmendable, unsteady
from session_snapshot.changes.review import list_lines, walk_of
from session_snapshot.report import format_failures
from session_snapshot.suites import Place


def list_pending(places: Sequence[Place], say: Say, tell: Say) -> int:
    """List what is pending, a line each; the exit code. ``tell`` is told of the progress. 0: nothing is pending."""
    red = red_of(places, tell)
    for line in list_lines(walk_of({one.name: one.changes for one in red})):
        say(line)
    for one in red:
        for line in left_out(one, red):
            say(f"{one.name}  red  {line}")
    return int(bool(red))


def walk_pending(places: Sequence[Place], snapshots: Path, say: Say, press: Callable[[], str]) -> int:
    """Walk through what is pending; the exit code. 0: nothing is left pending."""
    red = red_of(places, say)
    if not red:
        say("nothing is pending")
        return 0
    say("")
    for line in group_lines({one.name: one.changes for one in red}):
        say(line)
    for one in red:
        for line in left_out(one, red):
            say(f"\nleft out: {line}" + (f"\n{format_failures(one.report)}" if unmendable(one) else ""))
    from session_snapshot.changes.walk import Review, make_console

    mendable = [one for one in red if not unmendable(one) and one.changes]
    code = Review(mendable, snapshots, make_console(), press).run()
    return code or int(any(left_out(one, red) for one in red))


def red_of(places: Sequence[Place], say: Say) -> list[Pending]:
    """The scenarios that are red now."""
    return [one for one in replay_all(places, say) if not one.report.green]


def left_out(one: Pending, red: Sequence[Pending]) -> list[str]:
    """Why a scenario is red for something that no accepted difference of these scenarios mends; at most one reason."""
    by_name = {other.name: other for other in red}
    reason = unmendable(one) or unsteady(one) or pinned_elsewhere(one, by_name)
    return [reason] if reason else []
