"""The model, replayed inside a Python agent: an async iterator of chunks in place of the provider's.

``ReplayAdapter.from_environment`` finds its files where the harness says: ``SNAPSHOT_FILE`` (the primary log),
``SNAPSHOT_CHILD_FILES`` (joined by the platform's path separator), ``SNAPSHOT_OVERRIDE``, ``SNAPSHOT_REQUESTS``; at
exit it writes what was consumed, unconsumed, unrecorded, repeated and drifted to ``SNAPSHOT_REPORT``.
"""

import asyncio
import atexit
import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import assert_never

import msgspec
from llm_dialects import (
    Chunks,
    Entry,
    Hang,
    Json,
    Request,
    StreamChunk,
    Throw,
    entry_from_json,
    entry_to_json,
    escape,
    expand,
    fill_from_request,
    map_strings,
    to_json,
)
from msgspec import UNSET

from llm_replay.calls import RecordedCall, Recording
from llm_replay.difference import Difference, format_difference
from llm_replay.errors import FixtureError
from llm_replay.files import load_recording
from llm_replay.messages import request_from_json
from llm_replay.player import Player, Repeated, Served, Unrecorded
from llm_replay.tokens import Tokens


class ReplayedProviderError(Exception):
    """The provider failed, as the recording says: ``code``, and ``status`` where one is given."""

    def __init__(self, code: str, message: str, status: int | None = None) -> None:
        """Keep the parts; ``str()`` is the message."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


class UnrecordedCallError(ReplayedProviderError):
    """The agent asked what nobody recorded. The run is red whether or not the agent minds."""


class ReplayAdapter:
    """Streams a recording's answers, and keeps account of them."""

    def __init__(self, recording: Recording, places: Mapping[str, str], report: Path | None = None) -> None:
        """Take the recording, the live places by token name (``cwd``, ``home``, ``tmp``), and where to report."""
        self._tokens = Tokens(places)
        self._cwd = places.get("cwd", ".")
        self._player = Player(recording, self._hide, self._tokens.same)
        self._recording = recording
        self._report = report
        self._unrecorded: list[Json] = []
        self._repeated: list[Json] = []
        self._drifted: list[Json] = []

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "ReplayAdapter":
        """Load what the environment names, and report when the process exits.

        Raises:
            FixtureError: ``SNAPSHOT_FILE`` is not set, or a file is wrong.
        """
        primary = environment.get("SNAPSHOT_FILE")
        if not primary:
            raise FixtureError("SNAPSHOT_FILE is not set", "environment", mend="start the agent through the harness")
        children = filter(None, environment.get("SNAPSHOT_CHILD_FILES", "").split(os.pathsep))
        recording = load_recording(
            Path(primary),
            map(Path, children),
            override=_path(environment, "SNAPSHOT_OVERRIDE"),
            requests=_path(environment, "SNAPSHOT_REQUESTS"),
        )
        adapter = cls(recording, live_places(), _path(environment, "SNAPSHOT_REPORT"))
        atexit.register(adapter.write_report)
        return adapter

    async def stream(self, request: Request, session_key: str | None = None) -> AsyncIterator[StreamChunk]:
        """Yield the chunks that answer ``request``; a hang waits for its cancellation.

        Raises:
            UnrecordedCallError: nobody recorded such a call.
            ReplayedProviderError: the recorded call failed.
        """
        entry = self._entry(self._bind(request, session_key), request)
        for chunk in entry.chunks:
            yield chunk
        match entry:
            case Chunks():
                return
            case Throw():
                raise ReplayedProviderError(entry.code, entry.message, None if entry.status is UNSET else entry.status)
            case Hang():
                if entry.ready_file is not UNSET:
                    Path(self._cwd, entry.ready_file).touch()
                await asyncio.Event().wait()
            case _:
                assert_never(entry)

    def report(self) -> dict[str, Json]:
        """Return the account so far. All lists but ``consumed`` must be empty at the end of a green run."""
        calls = self._recording.calls
        return {
            "consumed": [calls[call].source for _, call in self._player.bound],
            "unconsumed": [call.source for call in self._player.unconsumed()],
            "unrecorded": self._unrecorded,
            "repeated": self._repeated,
            "drifted": self._drifted,
        }

    def write_report(self) -> None:
        """Write the account as JSON to where it was asked for, whole or not at all."""
        if self._report is not None:
            part = self._report.with_name(self._report.name + ".part")
            part.write_bytes(msgspec.json.encode(self.report()) + b"\n")
            part.replace(self._report)

    def _bind(self, request: Request, session_key: str | None) -> RecordedCall:
        outcome = self._player.ask(request, session_key)
        match outcome:
            case Served():
                if outcome.differences:
                    self._drifted.append({"source": outcome.call.source, "differences": _shown(outcome.differences)})
            case Repeated():
                self._repeated.append({"source": outcome.call.source, "of": outcome.of})
            case Unrecorded():
                raise self._refusal(outcome)
            case _:
                assert_never(outcome)
        return outcome.call

    def _refusal(self, outcome: Unrecorded) -> UnrecordedCallError:
        nearest = None if outcome.nearest is None else outcome.nearest.source
        self._unrecorded.append({"nearest": nearest, "differences": _shown(outcome.differences)})
        message = f"nobody recorded this model call; the nearest recorded one is {nearest or 'none at all'}"
        return UnrecordedCallError("UNRECORDED_CALL", message, 400)

    def _entry(self, call: RecordedCall, request: Request) -> Entry:
        """Return the entry of ``call`` as it is to be said in this run."""
        if call.request is not None:
            self._tokens.learn(to_json(call.request), to_json(request))
        filled = fill_from_request(entry_to_json(call.entry), request, change=escape)
        return entry_from_json(expand(filled, self._tokens.lookup), call.source)

    def _hide(self, request: Request) -> Request:
        return request_from_json(map_strings(to_json(request), self._tokens.hide))


def live_places() -> dict[str, str]:
    """Return the places that this process works in, by their token's name."""
    return {"cwd": str(Path.cwd()), "home": str(Path.home()), "tmp": tempfile.gettempdir()}


def _path(environment: Mapping[str, str], name: str) -> Path | None:
    return Path(environment[name]) if environment.get(name) else None


def _shown(differences: tuple[Difference, ...]) -> list[Json]:
    return [{"path": found.path, "kind": found.kind, "shown": list(format_difference(found))} for found in differences]
