"""Ctrl-C and requests to terminate: heard whatever was inherited, and once.

asyncio's own way with a second Ctrl-C is to raise it wherever the loop is, which may be in the middle of hearing that a
process has gone: whoever waits for that would wait for ever.
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
"""How long after a signal others are not heard: time enough to end what runs. After that one may be lost, or stuck."""

NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Ear:
    """A signal handler that raises ``KeyboardInterrupt``: between two steps of the event loop where one runs."""

    def __init__(self) -> None:
        """Nothing was heard yet."""
        self.heard = -math.inf

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """Hear a signal."""
        if time.monotonic() < self.heard + PATIENCE_SECONDS:
            return
        self.heard = time.monotonic()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise KeyboardInterrupt from None
        loop.call_soon_threadsafe(interrupt)


def interrupt() -> None:
    """What the event loop calls: it stops, and ``asyncio.run`` cancels every task and waits for their ends."""
    raise KeyboardInterrupt


def hear() -> None:
    """Hear both signals from now on. A shell starts a background job deaf to Ctrl-C, and so would be what it starts."""
    ear = Ear()
    for number in NUMBERS:
        signal.signal(number, ear)


def hear_nothing() -> None:
    """Hear neither signal any more."""
    for number in NUMBERS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def heard_once() -> Iterator[None]:
    """Hear an impatient Ctrl-C but once in the block, where it is heard at all and nobody has a way of his own."""
    default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not default or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, Ear())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put a signal off to the end of the block (only the main thread ever hears one)."""
    if threading.current_thread() is not threading.main_thread():
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
            signal.raise_signal(put_off[0])
