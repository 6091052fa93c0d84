"""One agent process: boot it in its own process group, feed it lines, tee what it writes, and leave nothing behind.

This module and :mod:`session_snapshot.leftovers` are the only ones that know about operating systems.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from session_snapshot.errors import AgentError
from session_snapshot.leftovers import Leftovers

READ_BYTES = 1 << 18
STDERR_KEPT = 1 << 20
"""How much of the end of stderr is kept, in bytes."""

if sys.platform == "win32":
    REQUEST, END = signal.CTRL_BREAK_EVENT, signal.SIGTERM  # the latter ends a process at once there
else:
    REQUEST, END = signal.SIGTERM, signal.SIGKILL

PIPE_SECONDS = 1.0
"""How long stdout may stay open after the process itself has gone (a grandchild may hold it)."""


class Streams(asyncio.subprocess.SubprocessStreamProtocol):
    """The standard one, which also tells when the process itself is gone.

    ``Process.wait()`` may not return before the pipes are closed, and a grandchild can hold them open.
    """

    def __init__(self) -> None:
        """For one process."""
        super().__init__(limit=READ_BYTES, loop=asyncio.get_running_loop())
        self.gone = asyncio.Event()

    def process_exited(self) -> None:
        """The process is gone; its pipes may live on."""
        super().process_exited()
        self.gone.set()


class AgentProcess:
    """A running agent. ``on_output`` gets stdout's bytes as they arrive, and ``None`` at its end."""

    def __init__(self, transport: asyncio.SubprocessTransport, streams: Streams, leftovers: Leftovers) -> None:
        """Use :func:`boot`."""
        self.process = asyncio.subprocess.Process(transport, streams, asyncio.get_running_loop())
        self.leftovers = leftovers
        self.stderr = bytearray()
        self.raw = bytearray()
        self._transport = transport
        self._gone = streams.gone
        self._readers: list[asyncio.Task[None]] = []
        self._killed = False

    @property
    def exit_code(self) -> int | None:
        """The exit code (negative: killed by that signal), or ``None`` while it runs."""
        return self.process.returncode

    def write(self, line: bytes) -> None:
        """Write one line to the agent's stdin; an agent that has closed it is found out by what it does not answer."""
        stdin = self.process.stdin
        assert stdin is not None
        if not stdin.is_closing():
            stdin.write(line + b"\n")

    async def gone(self, seconds: float) -> bool:
        """Wait for the process itself to go, whoever holds its pipes; whether it went in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._gone.wait()
        except TimeoutError:
            return False
        return True

    async def stop(self, how: str, seconds: float, exit_code: int) -> None:
        """End the agent gracefully: ``eof`` closes stdin, ``terminate`` asks; then wait for it and for its pipes.

        Raises:
            AgentError: it did not go within ``seconds`` (it has been killed then), or not with ``exit_code``.
        """
        if self.exit_code is None:
            await self._end(how, seconds)
        if self.exit_code != exit_code and not self._killed:
            raise AgentError(
                f"the agent exited with code {self.exit_code}, declared is {exit_code}",
                "read its stderr below, or correct exit_code in agent.toml",
            )

    async def _end(self, how: str, seconds: float) -> None:
        self.leftovers.look()
        self._close_stdin()
        if how == "terminate":
            self._signal(REQUEST)
        if not await self.gone(seconds):
            await self.kill()
            told = "a request to terminate" if how == "terminate" else "the end of its stdin"
            raise AgentError(
                f"the agent ignored {told} for {seconds:g} s and was killed",
                'make it exit, or declare stop = "terminate" in agent.toml if it needs a signal',
            )
        await self._drain()

    async def kill(self) -> None:
        """Kill the agent and everything it started, at once; its exit code says nothing any more."""
        self._killed = True
        self.leftovers.look()
        self.leftovers.kill_all()
        self._signal(END)
        await self._gone.wait()
        self._close_stdin()
        await self._drain()

    def _close_stdin(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()

    def _signal(self, number: int) -> None:
        """Send a signal. Not by the process' own methods on POSIX: they look first whether it has gone, which takes the
        exit code from the loop's watcher (it would say 255, and complain of an unknown child)."""
        if self.exit_code is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            if sys.platform == "win32":
                self.process.send_signal(number)
            else:
                os.kill(self.process.pid, number)

    async def _drain(self) -> None:
        """Read both pipes to their end; a grandchild that holds one open is not waited for long."""
        _, pending = await asyncio.wait(self._readers, timeout=PIPE_SECONDS)
        for task in pending:
            task.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        self._transport.close()

    def start_reading(self, on_output: Callable[[bytes | None], None]) -> None:
        """Begin to read both pipes."""
        self._readers = [
            asyncio.create_task(self._read_stdout(on_output)),
            asyncio.create_task(self._read_stderr()),
        ]

    async def _read_stdout(self, on_output: Callable[[bytes | None], None]) -> None:
        assert self.process.stdout is not None
        while data := await self.process.stdout.read(READ_BYTES):
            self.raw += data
            on_output(data)
        on_output(None)

    async def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        while data := await self.process.stderr.read(READ_BYTES):
            self.stderr += data
            del self.stderr[:-STDERR_KEPT]


async def boot(command: Sequence[str], cwd: Path, env: Mapping[str, str], leftovers: Leftovers) -> AgentProcess:
    """Start the agent.

    Raises:
        AgentError: the program is not there or cannot be started.
    """
    program = shutil.which(command[0], path=env["PATH"])
    if program is None:
        raise AgentError(
            f"the agent's program {command[0]!r} was not found",
            "install it (nox does, from the suite's own lock), or correct command in agent.toml",
        )
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            Streams, program, *command[1:], cwd=cwd, env=dict(env), **own_group()
        )
    )
    try:
        await asyncio.shield(starting)
    except OSError as error:
        raise AgentError(f"the agent cannot start: {error}", "correct command in agent.toml") from error
    except asyncio.CancelledError:
        await asyncio.wait({starting})
        await end_unborn(starting, leftovers)
        raise
    return born(starting.result(), leftovers)


def born(started: tuple[asyncio.SubprocessTransport, Streams], leftovers: Leftovers) -> AgentProcess:
    """Note an agent that was started."""
    transport, streams = started
    leftovers.started(transport.get_pid())
    return AgentProcess(transport, streams, leftovers)


async def end_unborn(
    starting: asyncio.Future[tuple[asyncio.SubprocessTransport, Streams]], leftovers: Leftovers
) -> None:
    """End an agent whose start was cancelled. It starts wholly first: asyncio waits for ever if that is cancelled."""
    if starting.exception() is None:
        process = born(starting.result(), leftovers)
        process.start_reading(lambda _: None)
        await process.kill()


def own_group() -> dict[str, Any]:
    """What puts a child into a process group of its own, so that Ctrl-C at the terminal is ours to handle."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}
