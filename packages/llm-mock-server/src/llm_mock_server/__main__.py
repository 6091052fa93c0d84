"""The command ``llm-mock-server``: a scripted provider until it is told to stop, one JSON line per event on stdout.

``ready`` comes first and holds the base URL; then ``request`` and ``result`` for every request. SIGINT ends it with
exit status 130, SIGTERM with 143; a script that is wrong, or an address that cannot be listened on, with 2.
"""

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from llm_dialects import DIALECTS, EntryError, Hang, Json

from llm_mock_server.journal import CapturedRequest
from llm_mock_server.provider import ScriptedProvider
from llm_mock_server.script import read_script
from llm_mock_server.server import serve


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    options = parse(argv)
    try:
        provider = read_provider(options.script)
        return asyncio.run(run(options, provider))
    except EntryError as error:
        return complain(f"{error}\nmend: correct {options.script}")
    except (OSError, ValueError) as error:
        return complain(
            f"{error}\nmend: name a script that can be read and a port that is free (0: the system chooses)"
        )


def read_provider(script: Path) -> ScriptedProvider:
    """Read the script."""
    return ScriptedProvider(read_script(script.read_bytes(), str(script)), on_hang=write_ready_file)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="llm-mock-server", description="A scripted model provider on this machine.")
    parser.add_argument("--script", type=Path, required=True, metavar="FILE", help='{"entries": [...]}, one per call')
    parser.add_argument("--dialect", choices=sorted(DIALECTS), default="openai-chat", help="whose base URL is printed")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=0, help="0 lets the system choose")
    parser.add_argument("--api-key", metavar="KEY", help="the only key that is let in; without it every key is")
    return parser.parse_args(argv)


async def run(options: argparse.Namespace, provider: ScriptedProvider) -> int:
    """Serve until a signal comes; return the exit status that goes with it."""
    stopped = exit_status_of_signal()
    async with serve(
        provider, host=options.host, port=options.port, api_key=options.api_key, on_request=report, keep=0
    ) as server:
        emit("ready", {"baseURL": server.base_url(options.dialect), "dialect": options.dialect})
        return await stopped


def exit_status_of_signal() -> asyncio.Future[int]:
    """Return a future of 128 + the number of the first SIGINT or SIGTERM."""
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()

    def settle(number: int) -> None:
        if not stopped.done():
            stopped.set_result(128 + number)

    def handle(number: int, _: FrameType | None) -> None:
        # Not the loop's own handlers: those are not there on Windows.
        loop.call_soon_threadsafe(settle, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
    return stopped


def report(captured: CapturedRequest) -> None:
    """Print the beginning or the end of a request; keys, headers and bodies are not printed."""
    shown = captured.to_json()
    if captured.outcome is None:
        emit("request", {key: shown[key] for key in ("number", "call", "kind", "dialect", "method", "path")})
    else:
        emit("result", {key: shown[key] for key in ("number", "status", "outcome", "bytesSent", "error")})


def emit(kind: str, members: dict[str, Json]) -> None:
    """Print one event."""
    sys.stdout.write(json.dumps({"type": kind} | members, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def write_ready_file(hang: Hang) -> None:
    """Create the file that tells the world that a ``Hang`` has fallen silent."""
    if isinstance(hang.ready_file, str):
        Path(hang.ready_file).touch()


def complain(message: str) -> int:
    """Say what is wrong; return the exit status."""
    sys.stderr.write(f"llm-mock-server: {message}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
