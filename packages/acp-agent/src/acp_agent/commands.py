"""Running a command: a process group, its output up to a bound, and its end. The same on every system, hence threads.

(asyncio's own subprocesses wait for pipes that a background process may hold open for ever.)
"""

import asyncio
import contextlib
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import cast

from msgspec import Struct

from acp_agent.process_group import group_options, kill_group

DRAIN_SECONDS = 1.0
"""How long output may still trickle in after the group is dead; only a process that left the group makes us wait."""

OUTPUT_CAP = 32 * 1024 * 1024
"""Bytes of output kept; more is counted and thrown away."""


class Finished(Struct, frozen=True):
    """What became of a command: its raw output, bytes dropped beyond the cap, and its exit code unless it timed out."""

    output: bytes
    dropped: int
    exit_code: int | None


async def run_command(words: Sequence[str], cwd: Path, environment: Mapping[str, str], seconds: float) -> Finished:
    """Run ``words`` and wait for the end, at most ``seconds``; then whatever it started is dead.

    Standard output and error come as one stream, in the order written; standard input is empty.
    Cancelling kills the group. Raises ``OSError`` where the program cannot be started.
    """
    process = subprocess.Popen(
        words,
        cwd=cwd,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        **group_options(),
    )
    pipe = cast("BufferedReader", process.stdout)
    output = Output()
    drained = in_thread(lambda: output.read_all(pipe))
    exited = in_thread(process.wait)
    try:
        await asyncio.wait({exited}, timeout=seconds)
        timed_out = not exited.done()
    finally:
        kill_group(process.pid)
        # Cancelled or not, nobody goes on before the group is dead.
        await asyncio.wait({exited, drained}, timeout=DRAIN_SECONDS)
    code: int | None = process.returncode
    return output.finished(None if timed_out or code is None else shell_exit_code(code))


class Output:
    """What a command wrote, bounded."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._dropped = 0

    def read_all(self, pipe: BufferedReader) -> None:
        """Read to the end of ``pipe``; runs in a thread of its own."""
        with pipe:
            while data := pipe.read1(65536):
                room = OUTPUT_CAP - len(self._kept)
                self._kept += data[:room]
                self._dropped += max(0, len(data) - room)

    def finished(self, exit_code: int | None) -> Finished:
        """Return what was read up to now."""
        return Finished(bytes(self._kept), self._dropped, exit_code)


def in_thread(work: Callable[[], object]) -> asyncio.Future[None]:
    """Do blocking ``work`` in a daemon thread, so that one which never returns cannot keep the agent from leaving."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def finish() -> None:
        if not done.done():
            done.set_result(None)

    def body() -> None:
        try:
            work()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop is gone, and with it whoever asked
                loop.call_soon_threadsafe(finish)

    threading.Thread(target=body, daemon=True).start()
    return done


def shell_exit_code(returncode: int) -> int:
    """Return the exit code as a shell tells it: death by signal N is 128 + N."""
    return returncode if returncode >= 0 else 128 - returncode
