"""What a replay costs, against what booting the agent alone costs: ratios taken in one run.

    python bench/replay.py [--copies 1 10 100]

Wall and CPU seconds (user and system, children included). The absolute figures are this machine's; compare ratios.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOOTS = 20
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


class Cost:
    """Wall and CPU seconds of a ``with`` block."""

    def __enter__(self) -> "Cost":
        """Start both clocks."""
        self._wall, self._cpu = time.perf_counter(), cpu()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop both clocks."""
        self.wall, self.cpu = time.perf_counter() - self._wall, cpu() - self._cpu

    def per(self, count: int) -> str:
        """Both, for one of ``count``."""
        return f"wall {self.wall / count:6.3f} s   CPU {self.cpu / count:6.3f} s"


def cpu() -> float:
    """CPU seconds of this process and of its ended children so far."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def boot(home: Path) -> None:
    """Boot our agent to its answer to ``initialize``, and end it by the end of its stdin."""
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "SYSTEMROOT")}
    process = subprocess.Popen(
        [sys.executable, "-m", "acp_agent"],
        env=environment | {"HOME": str(home), "USERPROFILE": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
    process.stdin.flush()
    assert b'"result"' in process.stdout.readline()
    process.communicate()


def replay(*arguments: str) -> None:
    """Run the command; a red replay is no measurement."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "-m", "session_snapshot", "replay", *arguments]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"PATH": path}, stdout=subprocess.DEVNULL, check=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 10, 100], metavar="N")
    copies = parser.parse_args().copies
    with tempfile.TemporaryDirectory() as home:
        boot(Path(home))
        with Cost() as boots:
            for _ in range(BOOTS):
                boot(Path(home))
    print(f"boot to initialize, alone      {boots.per(BOOTS)}")
    for count in copies:
        with Cost() as cost:
            replay("session/text-turn", "--repeat", str(count), *(() if count > 1 else ("--workers", "")))
        ratio = (cost.cpu / count) / (boots.cpu / BOOTS)
        print(f"text-turn x {count:<4}               {cost.per(1)}   CPU of one / boot {ratio:5.2f}")
    with Cost() as whole:
        replay("--suite", "session")
    print(f"suite session, in parallel     {whole.per(1)}")


if __name__ == "__main__":
    main()
