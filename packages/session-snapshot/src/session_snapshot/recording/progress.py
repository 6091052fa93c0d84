"""What a recording says on its way: a line for each thing that happened; on a terminal a live one as well."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from llm_dialects.entries import Chunks, Entry, Hang, Throw

from session_snapshot.agent import Price
from session_snapshot.calls import LiveCall
from session_snapshot.recording.prices import Spent, format_spent, spent
from session_snapshot.recording.secrets import blanked

Say = Callable[[str], None]

PER_SECOND = 4


class Progress:
    """One scenario's recording as it goes; ``say`` takes whole lines, in which the key never shows."""

    def __init__(
        self,
        name: str,
        prices: Mapping[str, Price],
        say: Say,
        secret: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``secret`` is the key; the clock is in seconds from anywhere."""
        self.name = name
        self.prices = prices
        self.say: Say = lambda line: say(blanked(line, secret))
        self.secret = secret
        self.clock = clock
        self.began = clock()
        self.calls: Sequence[LiveCall] = ()
        self.stage = "recording"
        self.draw: Callable[[], None] = lambda: None

    def begin(self, stage: str) -> None:
        """Show what is done now, and say nothing of it."""
        self.stage = stage
        self.draw()

    def enter(self, stage: str) -> None:
        """Say what is done now."""
        self.stage = stage
        self.say(f"{self.name}: {stage}")

    def call_done(self, call: LiveCall) -> None:
        """Say how a model call went."""
        took = spent([call], {})
        tokens = f" ({took.tokens_in:,} tokens in, {took.tokens_out:,} out)" if took.tokens_in else ""
        self.say(f"{self.name}: model call {call.number} {outcome(call.entry)}{tokens}")

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return self.clock() - self.began

    @property
    def spent(self) -> Spent:
        """What it has taken so far."""
        return spent(self.calls, self.prices)

    def line(self) -> str:
        """Where it is, on one line."""
        minutes, seconds = divmod(int(self.seconds), 60)
        took = blanked(format_spent(self.spent), self.secret)
        return f"{self.name}  {minutes:02}:{seconds:02}  {self.stage}  {took}"

    def summary(self) -> str:
        """What it took, when it is over."""
        return f"{format_spent(self.spent)}, {self.seconds:.1f} s"


def outcome(entry: Entry | None) -> str:
    """How a call went, in a word."""
    match entry:
        case Chunks():
            return "answered"
        case Throw(code=code):
            return f"failed ({code})"
        case Hang():
            return "left without an end"
        case None:
            return "refused"


@contextmanager
def shown(progress: Progress) -> Iterator[None]:
    """Show the live line during the block, where stderr is a terminal (one that cannot move its cursor shows none)."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    def render() -> Any:
        return Text(progress.line(), style="cyan", no_wrap=True, overflow="ellipsis")

    console = Console(stderr=True)
    with Live(
        get_renderable=render,
        console=console,
        refresh_per_second=PER_SECOND,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as live:
        plain, progress.draw = progress.say, live.refresh
        if sys.stdout.isatty():
            # Lines go above the live one, and so by way of what draws it.
            progress.say = lambda line: console.print(Text(blanked(line, progress.secret)), soft_wrap=True)
        try:
            yield
        finally:
            progress.say, progress.draw = plain, lambda: None
