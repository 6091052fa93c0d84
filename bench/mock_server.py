"""Our mock server as shipped against its peers: ratios taken in one run, server by server in turns.

    (cd bench/peers && npm ci)
    python bench/mock_server.py [--quick]

Each row is measured in rounds; in a round every server has its turn, and the ratio is the median over the rounds of
theirs to ours (or ours to theirs): above 1 ours is better. Servers run on one core, the load client on another. The
absolute figures are this machine's. Exit status 1: behind aimock in some row; indented rows are for information.

A *chunk* is one piece of an answer, ``CHUNK_SIZE`` characters in an event of its own. Ours writes each to the socket by
itself, as a provider does. In a *burst* (``"burst": true`` of a script's entry) all leave in one write, which is what
the Node servers do: they send nothing until the last chunk is made. They write each chunk by itself only with a delay
between them, the least being 1 ms. So like is held against like, burst against burst and writes apart against writes
apart; ours apart against their bursts is told, and not judged: its bound is the ceiling, which writes as often.

The ceiling is a server that does nothing but write (``mock_server_ceiling.py``). Where it is not far above the others
it is the load client or the machine that is measured; so the server's CPU seconds are told beside each rate.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mock_server_peers
from mock_server_peers import AIMOCK, CEILING, CHUNKS, DEEPSEEK, OURS, Running, Server, on_core, running

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Scale:
    """How long a measurement takes."""

    rounds: int
    seconds: float
    streams: int
    soak: int


@dataclass(frozen=True)
class Row:
    """A figure of every server, round by round. ``more`` is better, or less is."""

    name: str
    unit: str
    more: bool
    figures: dict[str, list[float]]
    judged: bool = True

    def ratio(self, peer: str) -> float:
        """How much better ours is: the median of the rounds' ratios."""
        pairs = zip(self.figures[OURS.name], self.figures[peer], strict=True)
        return statistics.median(mine / theirs if self.more else theirs / mine for mine, theirs in pairs)

    def median(self, name: str) -> float | None:
        """The figure of a server, None where it has none."""
        return statistics.median(self.figures[name]) if self.figures.get(name) else None


class Client:
    """The load client, in its own process."""

    def __init__(self, core: int | None) -> None:
        with on_core(core):
            self._process = subprocess.Popen(
                [sys.executable, str(HERE / "mock_server_load.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )

    def tell(self, order: str, **members: Any) -> dict[str, Any]:
        """Give an order; return what came of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": order} | members).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the load client ended, see above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End it."""
        self._process.communicate()


@dataclass(frozen=True)
class Bench:
    """What all measurements share."""

    client: Client
    servers: Sequence[Server]
    scale: Scale
    folder: Path
    core: int | None

    @contextmanager
    def all_running(self, kind: str) -> Iterator[dict[str, Running]]:
        """Run every server at once; those that are not asked cost nothing."""
        with ExitStack() as stack:
            yield {
                server.name: stack.enter_context(running(server, kind, self.folder, self.core))
                for server in self.servers
            }

    def in_turns(self, handles: dict[str, Running], measure: Callable[[Running], dict[str, float]]) -> dict[str, Any]:
        """Measure every server in every round; return figure -> server -> rounds. The first turns warm up."""
        figures: dict[str, dict[str, list[float]]] = {}
        for number in range(self.scale.rounds + 1):
            for name, handle in handles.items():
                for figure, value in measure(handle).items() if number else warm(measure, handle):
                    figures.setdefault(figure, {}).setdefault(name, []).append(value)
        return figures


def warm(measure: Callable[[Running], object], handle: Running) -> tuple[()]:
    """Measure and forget."""
    measure(handle)
    return ()


# ── Measurements ────────────────────────────────────────────────────────────────────────────────────────────────────


def requests(bench: Bench) -> Iterator[Row]:
    """Whole answers a second, and the server's CPU for one."""
    with bench.all_running("short") as handles:
        for connections in (1, 32):

            def measure(handle: Running, connections: int = connections) -> dict[str, float]:
                before = handle.cpu()
                told = bench.client.tell("ask", port=handle.port, connections=connections, seconds=bench.scale.seconds)
                cpu = (handle.cpu() - before) / told["requests"]
                return {"rate": told["requests"] / told["seconds"], "p50": told["p50"] * 1e6, "cpu": cpu * 1e6}

            figures = bench.in_turns(handles, measure)
            yield Row(f"requests/s, {connections} connections", "/s", True, figures["rate"])
            yield Row(f"  time of one, p50, {connections} connections", "µs", False, figures["p50"], judged=False)
            yield Row(f"  server CPU of one, {connections} connections", "µs", False, figures["cpu"], judged=False)


def streams(bench: Bench) -> Iterator[Row]:
    """Chunks a second, and the time to the first."""

    def measure(handle: Running, runs: int = bench.scale.streams) -> dict[str, float]:
        before = handle.cpu()
        told = bench.client.tell("stream", port=handle.port, runs=runs)
        cpu = (handle.cpu() - before) / runs / CHUNKS
        if min(told["events"]) < CHUNKS:
            raise SystemExit(f"only {min(told['events'])} of {CHUNKS} chunks came")
        rate = CHUNKS / statistics.median(told["seconds"])
        reads = statistics.median(told["reads"])
        return {"rate": rate, "first": statistics.median(told["first"]) * 1e3, "cpu": cpu * 1e6, "reads": reads}

    with bench.all_running("long") as handles:
        figures = bench.in_turns(handles, measure)
        yield Row("  chunks/s, ours apart, theirs in bursts", "/s", True, figures["rate"], judged=False)
        yield Row("  server CPU of one", "µs", False, figures["cpu"], judged=False)
        yield Row("  reads of the client (more: not held back)", "", True, figures["reads"], judged=False)
        yield Row("first byte of that stream, p50", "ms", False, figures["first"])
    with bench.all_running("burst") as handles:
        figures = bench.in_turns(handles, measure)
        yield Row("chunks/s, in a burst", "/s", True, figures["rate"])
        yield Row("  first byte, p50", "ms", False, figures["first"], judged=False)
    with bench.all_running("apart") as handles:
        figures = bench.in_turns(handles, lambda handle: measure(handle, runs=1))
        yield Row("chunks/s, one write a chunk", "/s", True, figures["rate"])
        yield Row("  reads of the client", "", True, figures["reads"], judged=False)


def starts(bench: Bench) -> Iterator[Row]:
    """Start of the process to its first 200."""
    boots: dict[str, list[float]] = {server.name: [] for server in bench.servers}
    for number in range(bench.scale.rounds + 1):
        for server in bench.servers:
            with running(server, "short", bench.folder, bench.core) as handle:
                boots[server.name] += [handle.boot * 1e3] if number else []
    yield Row("start to the first 200", "ms", False, boots)


def memories(bench: Bench) -> Iterator[Row]:
    """Memory when idle, and after many requests; one turn: memory is not noisy."""
    idle: dict[str, list[float]] = {server.name: [] for server in bench.servers}
    half: dict[str, list[float]] = {server.name: [] for server in bench.servers}
    soaked: dict[str, list[float]] = {server.name: [] for server in bench.servers}
    for server in bench.servers:
        with running(server, "short", bench.folder, bench.core) as handle:
            idle[server.name].append(handle.memory())
            for figures in (half, soaked):
                bench.client.tell("ask", port=handle.port, connections=32, requests=bench.scale.soak // 2)
                figures[server.name].append(handle.memory())
    yield Row("memory, idle", "MiB", False, idle)
    yield Row(f"  memory after {bench.scale.soak // 2:,} requests", "MiB", False, half, judged=False)
    yield Row(f"memory after {bench.scale.soak:,} requests", "MiB", False, soaked)


# ── The command ─────────────────────────────────────────────────────────────────────────────────────────────────────


def show(row: Row, peers: Sequence[Server]) -> str:
    """Return a line of the table."""
    cells = [f"{row.name:<44}"]
    for server in (OURS, *peers, CEILING):
        figure = row.median(server.name)
        cells.append(f"{'-' if figure is None else number(figure):>10}")
    cells += [f"{row.ratio(peer.name):>11.2f}" for peer in peers]
    return " ".join(cells) + f"  {row.unit}"


def number(figure: float) -> str:
    """Return three digits or more."""
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def cores() -> tuple[int | None, int | None]:
    """Return the core of the servers and that of the client, None where they cannot be chosen or are one."""
    if not hasattr(os, "sched_getaffinity"):
        return None, None
    mine = sorted(os.sched_getaffinity(0))
    return (mine[0], mine[1]) if len(mine) > 1 else (None, None)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a minute's worth: fewer rounds, a tenth of the requests")
    parser.add_argument("--only", choices=sorted(MEASUREMENTS), nargs="+", default=list(MEASUREMENTS))
    parser.add_argument("--command", nargs="+", help="our command, where it is not the installed one")
    return parser.parse_args()


def main() -> int:
    """Measure and print; return 1 where we are behind."""
    options = parse()
    if options.command:
        mock_server_peers.COMMAND[:] = options.command
    peers = [server for server in (AIMOCK, DEEPSEEK) if server.is_there()]
    if AIMOCK not in peers:
        raise SystemExit("aimock is not installed\nmend: (cd bench/peers && npm ci)")
    server_core, client_core = cores()
    if client_core is not None:
        os.sched_setaffinity(0, {client_core})
    client = Client(client_core)
    behind = []
    print(f"{'':<44} {'ours':>10} {'aimock':>10} {'deepseek':>10} {'ceiling':>10} {'x aimock':>11} {'x deepseek':>11}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(client, [OURS, *peers, CEILING], QUICK if options.quick else FULL, Path(folder), server_core)
        for name in options.only:
            for row in MEASUREMENTS[name](bench):
                print(show(row, peers), flush=True)
                behind += [row.name] if row.judged and row.ratio(AIMOCK.name) < 1 else []
    client.close()
    print(f"behind aimock: {', '.join(behind)}" if behind else "ahead of aimock in every row")
    return bool(behind)


MEASUREMENTS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "requests": requests,
    "streams": streams,
    "starts": starts,
    "memories": memories,
}
FULL = Scale(rounds=9, seconds=0.7, streams=15, soak=100_000)
QUICK = Scale(rounds=3, seconds=0.4, streams=7, soak=10_000)

if __name__ == "__main__":
    sys.exit(main())
