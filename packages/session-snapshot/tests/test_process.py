"""An agent's process: its exit code is its own, however it ended."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest
from session_snapshot.leftovers import Leftovers
from session_snapshot.process import AgentProcess, boot

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="posix only: signals")

TIMES = 20
"""How often what two may do is done: who comes first is chance."""


async def started(folder: Path, code: str) -> AgentProcess:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    process = await boot([sys.executable, "-I", "-S", "-c", code], folder, env, Leftovers(folder))
    process.start_reading(lambda _: None)
    return process


def test_a_killed_agent_is_said_to_be_killed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The event loop alone takes an agent's exit code: it would be 255 if anyone else did."""

    async def kill() -> int | None:
        process = await started(tmp_path, "import time; time.sleep(600)")
        await process.kill()
        return process.exit_code

    async def kill_many() -> list[int | None]:
        return [await kill() for _ in range(TIMES)]

    assert asyncio.run(kill_many()) == [-signal.SIGKILL] * TIMES
    assert caplog.text == ""


def test_an_agent_that_went_by_itself_is_stopped_with_its_own_code(tmp_path: Path) -> None:
    async def stop() -> int | None:
        process = await started(tmp_path, "raise SystemExit(7)")
        with contextlib.suppress(ChildProcessError):  # it is gone, and the loop has not heard of it yet
            os.waitid(os.P_PID, process.process.pid, os.WEXITED | os.WNOWAIT)
        await process.stop("terminate", 20, 7)
        return process.exit_code

    assert asyncio.run(stop()) == 7


def test_an_agent_whose_start_is_cancelled_is_ended(tmp_path: Path) -> None:
    leftovers = Leftovers(tmp_path)

    async def cancel() -> None:
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        start = asyncio.ensure_future(boot([sys.executable, "-c", "input()"], tmp_path, env, leftovers))
        await asyncio.sleep(0)
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start

    asyncio.run(cancel())
    (agent,) = leftovers.roots
    assert not psutil.pid_exists(agent)
