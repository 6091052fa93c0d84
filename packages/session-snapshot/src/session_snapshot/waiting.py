"""Waiting for something to become true: woken by what happens (a frame, a model call, an exit), never by sleeping."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from session_snapshot.errors import AgentError


class Changes:
    """A bell that rings at every change of a run; whoever waits looks again."""

    def __init__(self) -> None:
        """Nobody waits yet."""
        self._waiters: set[asyncio.Future[None]] = set()

    def ring(self) -> None:
        """Wake everyone who waits."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def next(self) -> None:
        """Return at the next change."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)

    async def until(self, true: Callable[[], bool]) -> None:
        """Return once ``true()`` holds; it is asked now and after every change."""
        while not true():
            await self.next()

    async def within(self, seconds: float, true: Callable[[], bool]) -> bool:
        """Like :meth:`until`, but at most ``seconds`` long; whether it holds."""
        try:
            async with asyncio.timeout(seconds):
                await self.until(true)
        except TimeoutError:
            return true()
        return True


async def deadline(
    seconds: float, what: str, work: Coroutine[Any, Any, None], mend: str, waited: Callable[[], str] = lambda: ""
) -> None:
    """Await ``work``; when it takes longer than ``seconds``, say so as the agent's failure.

    ``waited()`` ends that sentence: what the work still waited for.
    """
    try:
        async with asyncio.timeout(seconds) as limit:
            await work
    except TimeoutError:
        if not limit.expired():
            raise
        raise AgentError(f"{what} was not done within {seconds:g} s{waited()}", mend) from None


@contextlib.asynccontextmanager
async def run_deadline(seconds: float) -> AsyncIterator[None]:
    """Bound a whole run; passing it is the agent's failure."""
    try:
        async with asyncio.timeout(seconds) as limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        raise AgentError(
            f"the run was not done within {seconds:g} s", "raise [limits] run_seconds if the agent is only slow"
        ) from None
