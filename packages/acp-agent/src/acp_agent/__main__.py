"""The command: ``acp-agent [--config FILE] [--overlay FILE ...]``. Reads the configuration, then serves on stdio.

Overlays that ``$ACP_AGENT_OVERLAY`` names (joined as ``$PATH`` is) come before those of the command line: who starts
the agent through an editor may have no say in its arguments.

Exit codes: 0 after the client closed the pipe, 2 for a wrong configuration, 130 and 143 after SIGINT and SIGTERM.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from io import FileIO
from pathlib import Path

from acp_agent import __version__
from acp_agent.agent import Agent
from acp_agent.config import Config, Source, parse_config, sessions_root
from acp_agent.connection import Connection
from acp_agent.errors import ConfigError
from acp_agent.world import real_world

OVERLAYS = "ACP_AGENT_OVERLAY"
"""The variable that names overlays."""

SHIPPED = Path(__file__).with_name("config.toml")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the agent to its end and return the exit code."""
    arguments = parse_arguments(argv)
    try:
        paths = (arguments.config, *overlays_in(os.environ), *arguments.overlay)
        config = parse_config([read_source(path) for path in paths])
        return asyncio.run(serve(config))
    except ConfigError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2


async def serve(config: Config) -> int:
    """Serve one client on standard input and output."""
    root = Path(sessions_root(config, os.environ, str(Path.home())))
    with claim_stdout() as sink:
        connection = Connection(sys.stdin.fileno(), sink)
        ended_by = stop_on_signals(connection)
        await Agent(config, root, connection, real_world(), os.environ).run()
    return 128 + ended_by[0] if ended_by else 0


# ── Helpers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="acp-agent", description="A small coding agent speaking ACP on stdio.")
    parser.add_argument("--config", type=Path, default=SHIPPED, metavar="FILE", help="a complete configuration")
    told = f"changes single keys; repeatable, the later file wins, and all win over those that ${OVERLAYS} names"
    parser.add_argument("--overlay", type=Path, action="append", default=[], metavar="FILE", help=told)
    parser.add_argument("--version", action="version", version=f"acp-agent {__version__}")
    return parser.parse_args(argv)


def overlays_in(environment: Mapping[str, str]) -> list[Path]:
    """Return the overlays that the environment names."""
    return [Path(name) for name in environment.get(OVERLAYS, "").split(os.pathsep) if name]


def read_source(path: Path) -> Source:
    """Read one configuration file."""
    try:
        return Source(str(path), path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read it: {error}", str(path), mend="name a readable TOML file") from None


def claim_stdout() -> FileIO:
    """Return standard output for the protocol alone; whatever else is printed from here on goes to standard error."""
    sys.stdout.flush()
    sink = FileIO(os.dup(1), "wb")
    os.dup2(2, 1)
    return sink


def stop_on_signals(connection: Connection) -> list[int]:
    """Make SIGINT and SIGTERM end the agent in good order; the list returned then holds the signal's number."""
    received: list[int] = []
    loop = asyncio.get_running_loop()

    def stop(number: int, _frame: object) -> None:
        received.append(number)
        loop.call_soon_threadsafe(connection.stop)

    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGBREAK", signal.SIGINT)):
        signal.signal(number, stop)
    return received


if __name__ == "__main__":
    sys.exit(main())
