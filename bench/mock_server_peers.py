"""The servers that bench/mock_server.py measures: how each is started on the same answers, and what it uses.

Every server answers ``ping`` with ``pong`` (``short``) or streams ``CHUNKS`` pieces of ``CHUNK_SIZE`` characters
(``long``; ``burst`` is the same answer said at once and ``apart`` the same with each piece written by itself, where
that is a choice). All write their telemetry, if they have any, to the null device.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from mock_server_load import connect, is_whole, questions

HERE = Path(__file__).resolve().parent
PEERS = HERE / "peers"
CHUNKS = 2_000
CHUNK_SIZE = 20
LONG = ("The quick brown fox. " * CHUNKS)[: CHUNKS * CHUNK_SIZE]
BOOT_SECONDS = 20.0


@dataclass(frozen=True)
class Server:
    """A server: its name in the table, and the command for a port, a kind of answer and a folder for its files."""

    name: str
    command: Callable[[int, str, Path], list[str]]
    is_there: Callable[[], bool] = lambda: True


def ours(port: int, kind: str, folder: Path) -> list[str]:
    """Return the command as shipped: journal, capture, usage and one JSON line an event are on."""
    text = "pong" if kind == "short" else LONG
    said = {"kind": "say", "text": text, "chunkSize": CHUNK_SIZE, "burst": kind == "burst"}
    script = folder / f"ours-{kind}.json"
    script.write_text(json.dumps({"entries": [said], "repeatLast": True}))
    return [*COMMAND, "--script", str(script), "--port", str(port)]


def aimock(port: int, kind: str, folder: Path) -> list[str]:
    """Return the command of aimock, its log off: the setting that is fastest."""
    answer = {"match": {"userMessage": "ping"}, "response": {"content": "pong" if kind == "short" else LONG}}
    fixtures = folder / f"aimock-{kind}.json"
    fixtures.write_text(json.dumps({"fixtures": [answer]}))
    command = [node(), str(PEERS / "node_modules/@copilotkit/aimock/dist/cli.js"), "--log-level", "silent"]
    command += ["--latency", "1"] if kind == "apart" else []
    return [*command, "-p", str(port), "-c", str(CHUNK_SIZE), "-f", str(fixtures)]


def deepseek(port: int, kind: str, _: Path) -> list[str]:
    """Return a launcher of the DeepSeek server, which streams whatever is asked."""
    said = {"successText": "pong" if kind == "short" else LONG, "chunkSize": CHUNK_SIZE}
    delayed = {"sequence": ["slow_success"], "chunkDelayMs": 1} if kind == "apart" else {"sequence": ["success"]}
    options = {"repeatLast": True} | delayed | said
    return [node(), str(PEERS / "dsh.mjs"), str(port), json.dumps(options)]


def ceiling(port: int, _: str, __: Path) -> list[str]:
    """Return the command of the server that does nothing."""
    return [sys.executable, str(HERE / "mock_server_ceiling.py"), str(port), str(CHUNKS)]


def node() -> str:
    """Return the path of Node."""
    return shutil.which("node") or "node"


# ── Running ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Running:
    """A server that has answered 200 once."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, boot: float) -> None:
        self.port = port
        self.boot = boot
        self._tree = psutil.Process(process.pid)

    def memory(self) -> float:
        """MiB of resident memory, children included."""
        return sum(process.memory_info().rss for process in self._processes()) / (1 << 20)

    def cpu(self) -> float:
        """CPU seconds used so far, children included."""
        return sum(sum(process.cpu_times()[:2]) for process in self._processes())

    def _processes(self) -> list[psutil.Process]:
        return [self._tree, *self._tree.children(recursive=True)]


@contextmanager
def running(server: Server, kind: str, folder: Path, core: int | None) -> Iterator[Running]:
    """Start ``server`` and wait for its first 200; end it with the block."""
    port = free_port()
    command = server.command(port, kind, folder)
    with on_core(core):
        began = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        first_answer(port, process, command)
        yield Running(process, port, time.perf_counter() - began)
    finally:
        process.terminate()
        process.wait()


def first_answer(port: int, process: subprocess.Popen[bytes], command: list[str]) -> None:
    """Ask until somebody answers."""
    question = next(questions(port, stream=False))
    until = time.monotonic() + BOOT_SECONDS
    while True:
        try:
            with connect(port) as link:
                link.sendall(question)
                data = link.recv(65536)
                while not is_whole(data):
                    data += link.recv(65536)
                return
        except ConnectionError:
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"no answer from: {' '.join(command)}") from None
            time.sleep(0.0002)


def free_port() -> int:
    """Return a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def on_core(core: int | None) -> Iterator[None]:
    """Have what is started in the block run on one core, where the system lets us choose."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


COMMAND = [str(Path(sys.executable).parent / "llm-mock-server")]
"""Our command; ``--command`` replaces it."""

OURS = Server("ours", ours)
AIMOCK = Server("aimock", aimock, (PEERS / "node_modules/@copilotkit/aimock").is_dir)
DEEPSEEK = Server("deepseek", deepseek, (PEERS / "node_modules/@deepseek-ai/dsh-llm-mock-server").is_dir)
CEILING = Server("ceiling", ceiling)
