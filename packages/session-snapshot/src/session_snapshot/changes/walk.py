"""Walk through pending differences with somebody at a terminal; what is accepted is written as refresh writes it."""

import asyncio
import io
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from session_snapshot.changes import screen
from session_snapshot.changes.drift import counted
from session_snapshot.changes.goldens import Accepted, Files, NotWritten, chosen_files, prove, write
from session_snapshot.changes.pending import Pending
from session_snapshot.changes.review import Verdict, Walk, walk_of
from session_snapshot.interrupts import INTERRUPTED
from session_snapshot.runroot import run_root

Press = Callable[[], str]
"""Waits for a key and says which; ``""`` where there will be none any more."""


class Quit(Exception):
    """Somebody has seen enough."""


class Review:
    """One walk. ``press`` reads a key, ``console`` is drawn on."""

    def __init__(self, red: Sequence[Pending], snapshots: Path, console: Console, press: Press) -> None:
        """Begin with nothing decided and nothing written."""
        self.pending: Mapping[str, Pending] = {one.name: one for one in red}
        self.snapshots = snapshots
        self.console = console
        self.press = press
        self.walk: Walk = walk_of({one.name: one.changes for one in red})
        self.settled: set[str] = set()
        self.failed: list[str] = []

    def run(self) -> int:
        """Walk to the end, or until somebody quits; the exit code. 0: nothing is left pending."""
        interrupted = False
        try:
            while (place := self.walk.open()) is not None:
                self.step(place)
                self.settle(self.walk.finished())
        except Quit:
            self.say("")
        except KeyboardInterrupt:
            interrupted = True
            self.say("\ninterrupted: what was accepted is written, nothing else is")
        try:
            self.settle(list(self.pending))
        except KeyboardInterrupt:
            interrupted = True
            self.say(self.lost())
        self.sum_up()
        return INTERRUPTED if interrupted else int(self.left())

    # ── one difference ──

    def step(self, place: int) -> None:
        """Show one difference until something is said of it."""
        item, walk = self.walk.items[place], self.walk
        twins = walk.twins(place)
        others = list(dict.fromkeys(walk.items[twin].scenario for twin in twins))
        self.console.print(screen.heading(item, place + 1, len(walk.items), others))
        self.console.print(screen.difference(item.change, self.console.width))
        while place in self.walk.undecided():
            self.answer(place, self.key(KEYS))

    def answer(self, place: int, key: str) -> None:
        """Do what a key says."""
        item = self.walk.items[place]
        if key in ("a", "A") and not item.acceptable:
            self.say(f"the model's words cannot be accepted; nox -s snapshot_record -- {item.scenario}")
        elif key in ONE:
            self.decide([place, *self.shared(place, ONE[key])], ONE[key])
        elif key.lower() in ONE:
            self.rest(place, ONE[key.lower()])
        elif key == "f":
            texts = self.pending[item.scenario].texts[item.change.file]
            self.console.print(screen.frames(item.change, texts, self.console.width))
        elif key == "q":
            raise Quit
        else:
            self.say(HELP)

    def shared(self, place: int, verdict: Verdict) -> list[int]:
        """The same change elsewhere, where somebody wants to decide it at once."""
        twins = self.walk.twins(place)
        if not twins:
            return []
        others = dict.fromkeys(self.walk.items[twin].scenario for twin in twins)
        count = len(twins)
        self.say(f"the same stands in {count} more place{'s'[: count != 1]} ({', '.join(others)})")
        return twins if self.key(f"{verdict} there as well? [y]es [n]o") == "y" else []

    def rest(self, place: int, verdict: Verdict) -> None:
        """Decide what is left of a kind, or of a scenario."""
        item = self.walk.items[place]
        kind, scenario = self.walk.of_kind(place), self.walk.of_scenario(place)
        key = self.key(
            f"{verdict}: the rest of [k]ind {item.change.kind} ({len(kind)}), "
            f"of [s]cenario {item.scenario} ({len(scenario)}), [n]either"
        )
        places = {"k": kind, "s": scenario}.get(key)
        if places is not None:
            self.decide(places, verdict)

    def decide(self, places: Sequence[int], verdict: Verdict) -> None:
        """Say so of some, and that it was said."""
        before = len(self.walk.verdicts)
        self.walk = self.walk.decide(places, verdict)
        count = len(self.walk.verdicts) - before
        self.say(f"{verdict}{f': {count} differences' if count != 1 else ''}")

    # ── writing ──

    def settle(self, names: Sequence[str]) -> None:
        """Write what was accepted of scenarios, each once."""
        for name in names:
            if name not in self.settled:
                if not self.write(self.pending[name]):
                    self.failed.append(name)
                self.settled.add(name)

    def write(self, one: Pending) -> bool:
        """Write what was accepted of one scenario; whether nothing stood against it."""
        accepted = self.walk.chosen(one.name)
        if not accepted:
            return True
        try:
            files = chosen_files(one, accepted)
            self.say(f"{one.name}: replaying with the new files")
            asyncio.run(prove_alone(one, files, accepted))
            write(one, files, self.snapshots)
        except NotWritten as error:
            return self.write_more(one, error)
        self.say(f"{one.name}: wrote {len(accepted)} of {len(one.changes)}")
        return True

    def write_more(self, one: Pending, error: NotWritten) -> bool:
        """Ask whether to accept what a choice needs as well."""
        self.say(error.what)
        if error.also and self.agrees("accept these too? [y]es [n]o, then nothing of this scenario is written"):
            self.walk = self.walk.accept_also(one.name, error.also)
            return self.write(one)
        self.say(f"{one.name}: nothing was written")
        return False

    def agrees(self, question: str) -> bool:
        """Whether somebody says yes; who is gone does not."""
        try:
            return self.key(question) == "y"
        except Quit:
            return False

    # ── the end ──

    def left(self) -> bool:
        """Whether anything stays red."""
        return bool(self.failed) or len(self.walk.with_verdict("accepted")) < len(self.walk.items)

    def lost(self) -> str:
        """What was accepted and could not be written any more."""
        names = [name for name in self.pending if name not in self.settled and self.walk.chosen(name)]
        return f"not written: what was accepted of {', '.join(names)}" if names else ""

    def sum_up(self) -> None:
        """What became of the differences."""
        for verdict, meaning in MEANINGS.items():
            if found := self.walk.with_verdict(verdict):
                self.say(f"{verdict or 'not looked at'}: {counted(found)}{meaning}")
        if self.failed:
            self.say(f"not written: {', '.join(self.failed)}")

    # ── the terminal ──

    def say(self, text: str) -> None:
        """A line."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def key(self, prompt: str) -> str:
        """Ask for a key.

        Raises:
            Quit: there will be none.
        """
        self.console.print(f"{prompt} > ", markup=False, highlight=False, soft_wrap=True, end="")
        key = self.press()
        self.say(key if key.isprintable() else "")
        if not key:
            raise Quit
        return key


async def prove_alone(one: Pending, files: Files, accepted: Accepted) -> None:
    """Replay with the new files, in a place of their own."""
    with run_root() as base:
        await prove(one, files, accepted, base)


ONE: Mapping[str, Verdict] = {"a": "accepted", "r": "rejected", "s": "skipped"}
KEYS = "[a]ccept [r]eject [s]kip [f]rames [A]/[R]/[S] the rest [?] help [q]uit"
HELP = """\
a  accept: the golden becomes what it is now; written when the scenario is done
r  reject: the golden stays, and red, until the agent is corrected
s  skip: the golden stays; decide another time
f  frames: the rows around in both files, and the difference in full
A R S  the same for the rest: of this kind in all scenarios, or of this scenario
q  quit, as Ctrl-C: what was accepted so far is written, nothing else is"""
MEANINGS: Mapping[Verdict | None, str] = {
    "accepted": "",
    "rejected": ", red until the agent is corrected",
    "skipped": ", still pending",
    None: ", still pending",
}


def make_console() -> Console:
    """The terminal; a letter that it cannot write is written out. ``NO_COLOR`` is heeded."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return Console(highlight=False)
