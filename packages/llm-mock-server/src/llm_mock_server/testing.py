"""Servers for tests: a script in, a running server out, and what is left of the script said in the end.

Made for the fixture of ``pytest_llm_mock_server``; it needs no pytest, so other test frameworks can use it.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from llm_dialects import Json

from llm_mock_server.options import Options, options_to_json
from llm_mock_server.provider import ScriptedProvider
from llm_mock_server.script import Script, script_from_json
from llm_mock_server.threaded import ThreadedServer

Start = Callable[..., "ScriptedServer"]
"""``Servers.start``."""


class ScriptedServer(ThreadedServer):
    """A running server that plays a script.

    Attributes:
        provider: What plays the script: ``served``, ``remaining``, ``load``.
    """

    def __init__(self, script: Script, *, unconsumed_ok: bool = False, **options: Any) -> None:
        self.provider = ScriptedProvider(script)
        self.unconsumed_ok = unconsumed_ok
        super().__init__(self.provider, {"listen": not script.refuse_first} | options)

    @property
    def values(self) -> dict[str, Json]:
        """What fills ``{{name}}`` in the script; to be changed at any time."""
        return self.provider.values

    def faults(self) -> list[str]:
        """Return what a test should not have left behind: entries that nobody asked for, exceptions."""
        raised = [f"the mock server caught {type(error).__name__}: {error}" for error in self.failures]
        if self.unconsumed_ok or not self.provider.remaining:
            return raised
        left = ", ".join(unasked(self.provider)) or "all those of a session that never came"
        what = f"{self.provider.remaining} answers of the script were asked for by nobody: {left}"
        return [*raised, f"{what}\nmend: ask for them, take them out of the script, or say unconsumed_ok=True"]


class Servers:
    """The servers of one test."""

    def __init__(self) -> None:
        self._servers: list[ScriptedServer] = []
        self._running = ExitStack()

    def start(
        self,
        *entries: Json,
        unconsumed_ok: bool = False,
        options: Options | Mapping[str, Json] | None = None,
        seed: int | None = None,
        weights: Mapping[str, float] | None = None,
        repeat_last: bool = False,
        cursor: Json = None,
        values: Mapping[str, Json] | None = None,
        **serve_options: Any,
    ) -> ScriptedServer:
        """Start a server.

        Args:
            entries: Those of a script: names of behaviours, or objects.
            unconsumed_ok: Whether entries may be left in the end.
            options: What the behaviours say and how fast.
            seed, weights, repeat_last, cursor, values: As in a script.
            serve_options: Those of ``serve``. Where the first entry is ``connection_refused``, connections are refused
                until ``start_listening``.

        Raises:
            EntryError: something in the script cannot be meant.
            OSError: the address cannot be listened on.
        """
        said = options_to_json(options) if isinstance(options, Options) else options
        settings = {"options": said, "seed": seed, "weights": weights, "cursor": cursor, "values": values}
        script = {key: plain(value) for key, value in settings.items() if value is not None}
        script |= {"entries": list(entries), "repeatLast": repeat_last}
        server = ScriptedServer(script_from_json(script, "script"), unconsumed_ok=unconsumed_ok, **serve_options)
        server.start()
        self._running.callback(server.close)
        self._servers.append(server)
        return server

    def close(self) -> list[str]:
        """Close them all; return what is wrong with what they leave behind."""
        self._running.close()
        return [fault for server in self._servers for fault in server.faults()]


def unasked(provider: ScriptedProvider) -> list[str]:
    """Return the places of the entries that are left."""
    entries, cursors = provider.script.entries, provider.state()["cursors"]
    if not cursors:
        return [f"{entry.where} ({entry.label})" for entry in entries if entry.times]
    return [
        f"{entry.where} ({entry.label})" + (f" of cursor {cursor['key']!r}" if cursor["key"] else "")
        for cursor in cursors
        for entry, left in zip(entries, cursor["left"], strict=True)
        if left
    ]


def plain(value: Any) -> Json:
    """Return a mapping as the dict that JSON has."""
    return dict(value) if isinstance(value, Mapping) else value
