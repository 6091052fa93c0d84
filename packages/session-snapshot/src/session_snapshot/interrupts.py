"""Ctrl-C and requests to terminate: heard whatever was inherited, once, and never in the middle of something.

asyncio's own way is to raise a second Ctrl-C wherever the loop is, which may be in the middle of hearing that a process
has gone, and to cancel every task then, those that connect a new process' pipes too: whoever waits for either would
wait for ever.
"""

import asyncio
import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

PATIENCE_SECONDS = 10.0
"""How long after a signal others are not heard: time enough to end what runs. After that the first was of no use."""

INTERRUPTED = 130
"""The exit code of an interrupted command, as shells have it."""

NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Ear:
    """A signal handler that raises ``KeyboardInterrupt``; where an event loop runs, it has the loop do so."""

    def __init__(self) -> None:
        """Nothing was heard yet."""
        self.heard = -math.inf
        self.task: asyncio.Task[object] | None = None

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """Hear a signal."""
        if self.impatient():
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise KeyboardInterrupt from None
        loop.call_soon_threadsafe(self.interrupt)

    def impatient(self) -> bool:
        """Whether another signal was heard just before."""
        now = time.monotonic()
        if now < self.heard + PATIENCE_SECONDS:
            return True
        self.heard = now
        return False

    def interrupt(self) -> None:
        """What the loop does: it cancels the one task that ends all others in good order, or else it stops."""
        if self.task is None:
            raise KeyboardInterrupt
        self.task.cancel()


def hear() -> None:
    """Hear both signals from now on. A shell starts a background job deaf to Ctrl-C, and so would be what it starts."""
    ear = Ear()
    for number in NUMBERS:
        signal.signal(number, ear)


def hear_nothing() -> None:
    """Hear neither signal any more."""
    for number in NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def was_heard() -> bool:
    """Whether one of them was heard so far."""
    ear = signal.getsignal(signal.SIGINT)
    return isinstance(ear, Ear) and ear.heard > -math.inf


@contextmanager
def hearing() -> Iterator[None]:
    """Hear Ctrl-C in the block, unless it is not heard at all or somebody has a way of his own."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or not in_main_thread():
        yield
        return
    signal.signal(signal.SIGINT, Ear())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def cancelled_by_signals() -> Iterator[None]:
    """Have a signal cancel this task, and make a ``KeyboardInterrupt`` of that at the end of the block."""
    ear = signal.getsignal(signal.SIGINT)
    task = current_task()
    if not isinstance(ear, Ear) or task is None or not in_main_thread():
        yield
        return
    ear.task = task
    try:
        yield
    except asyncio.CancelledError:
        if ear.heard > -math.inf:
            raise KeyboardInterrupt from None
        raise
    finally:
        ear.task = None


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put a signal off to the end of the block (only the main thread ever hears one)."""
    if not in_main_thread():
        yield
        return
    put_off: list[int] = []
    before = {number: signal.getsignal(number) for number in NUMBERS}
    for number in before:
        signal.signal(number, lambda number, _frame: put_off.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if put_off:
            catch_up(put_off[0])


def catch_up(number: int) -> None:
    """Hear what was put off, at once: nothing is in the middle of anything here."""
    handler = signal.getsignal(number)
    if not isinstance(handler, Ear):
        signal.raise_signal(number)
    elif not handler.impatient():
        raise KeyboardInterrupt


def current_task() -> asyncio.Task[object] | None:
    """The task this runs in, if any."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def in_main_thread() -> bool:
    """Whether this is the thread that hears signals."""
    return threading.current_thread() is threading.main_thread()
