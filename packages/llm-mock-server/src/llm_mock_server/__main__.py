"""The command ``llm-mock-server``: a provider that plays a script until it is told to stop.

On stdout is one JSON line per event: ``unavailable`` while connections are refused at first, ``ready``, then
``request`` and ``result`` for every request. SIGINT ends it with exit status 130, SIGTERM with 143, the end of whoever
reads its stdout with 0; a script that is wrong, or an address that cannot be listened on, with 2.
"""

import argparse
import asyncio
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

from llm_dialects import EntryError, Json

from llm_mock_server.command import parse, script_of, seed_of
from llm_mock_server.events import EventWriter, request_event, result_event, stdout_descriptor
from llm_mock_server.journal import CapturedRequest, Journal
from llm_mock_server.listener import TAKEN
from llm_mock_server.provider import ScriptedProvider
from llm_mock_server.script import Script
from llm_mock_server.server import MockServer, serve


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    options = parse(argv)
    try:
        script = script_of(options)
    except EntryError as error:
        return complain(with_mend(str(error), mend_of(str(error))))
    except OSError as error:
        return complain(f"{error}\nmend: name a script that can be read")
    if stdout_descriptor() is None and options.port == 0:
        return complain("stdout is closed: nobody can learn the port\nmend: leave stdout open, or say --port")
    warnings.showwarning = show_warning  # type: ignore[assignment]  # the rest of its arguments is not shown
    events = EventWriter(stdout_descriptor())
    try:
        return asyncio.run(run(options, script, events))
    except ValueError as error:
        return complain(str(error))
    except OSError as error:
        return complain(with_mend(str(error), TAKEN.removeprefix("mend: ")))
    finally:
        events.close()


async def run(options: argparse.Namespace, script: Script, events: EventWriter) -> int:
    """Serve until the end is called for; return the exit status that goes with it."""
    stopped = exit_status_of_signal()
    events.watch(partial(settle, stopped, 0))
    provider = ScriptedProvider(script)
    async with serve(
        provider,
        host=options.host,
        port=options.port,
        api_key=options.api_key,
        max_body=options.max_body,
        keep=options.journal_limit,
        keep_bytes=options.journal_bytes,
        listen=False,
        allow_remote=options.allow_remote,
        control_port=options.control_port,
        listed_model=options.model,
    ) as server:
        server.journal.observers.append(partial(report, events, server.journal, provider))
        place = place_of(options, script, server)
        if script.refuse_first:
            events.emit("unavailable", place | {"listenDelayMs": options.listen_delay_ms})
            await refuse(server, options.listen_delay_ms / 1000, stopped)
        if not stopped.done():
            await server.start_listening()
            events.emit("ready", place)
        return await stopped


async def refuse(server: MockServer, seconds: float, stopped: asyncio.Future[int]) -> None:
    """Be down until the time is over, the control API lets clients in, or the end is called for."""
    let_in = asyncio.ensure_future(server.listening.wait())
    await asyncio.wait((let_in, stopped), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    let_in.cancel()


def place_of(options: argparse.Namespace, script: Script, server: MockServer) -> dict[str, Json]:
    """Return where the server is, its base URL first."""
    return {
        "baseURL": server.base_url(options.dialect),
        "dialect": options.dialect,
        "baseURLs": server.base_urls,
        "seed": seed_of(script),
        "controlURL": server.control_url or None,
    }


def report(events: EventWriter, journal: Journal, provider: ScriptedProvider, captured: CapturedRequest) -> None:
    """Tell that a request has begun, or has ended."""
    if captured.outcome is None:
        events.write(request_event(captured))
    else:
        events.write(result_event(captured, journal.dropped, provider.dropped_cursors))


def exit_status_of_signal() -> asyncio.Future[int]:
    """Return a future of 128 + the number of the first SIGINT or SIGTERM."""
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()

    def handle(number: int, _: FrameType | None) -> None:
        # Not the loop's own handlers: those are not there on Windows.
        with suppress(RuntimeError):  # it has ended: so does the process
            loop.call_soon_threadsafe(settle, stopped, 128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
    return stopped


def settle(stopped: asyncio.Future[int], status: int) -> None:
    """Call for the end, once."""
    if not stopped.done():
        stopped.set_result(status)


def show_warning(message: Warning | str, *_: Any) -> None:
    """Print a warning as the command prints everything else."""
    say(f"warning: {message}")


def with_mend(message: str, mend: str) -> str:
    """Return a message whose last line says what mends it."""
    return message if message.splitlines()[-1].startswith("mend: ") else f"{message}\nmend: {mend}"


def mend_of(message: str) -> str:
    """Return what mends a script that is wrong, where what is wrong does not say it: to correct the place it names."""
    place = message.partition(": ")[0]
    return f"correct {place}" + ("; llm-mock-server --help tells what it takes" if place.startswith("--") else "")


def complain(message: str) -> int:
    """Say what is wrong; return the exit status."""
    say(message)
    return 2


def say(message: str) -> None:
    """Write to stderr, where there is one."""
    if sys.stderr is not None:
        sys.stderr.write(f"llm-mock-server: {message}\n")


if __name__ == "__main__":
    sys.exit(main())
