"""Servers for tests: a script in, a running server out, and what is left of the script said in the end.

Made for the fixture of ``pytest_llm_mock_server``; it needs no pytest, so other test frameworks can use it.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from llm_dialects import Json

from llm_mock_server.conditions import shortened
from llm_mock_server.options import Options, options_to_json
from llm_mock_server.provider import Refusal, ScriptedProvider
from llm_mock_server.script import Script, script_from_json
from llm_mock_server.threaded import ThreadedServer

Start = Callable[..., "ScriptedServer"]
"""``Servers.start``."""


class ScriptedServer(ThreadedServer):
    """A running server that plays a script.

    Attributes:
        provider: What plays the script: ``served``, ``remaining``, ``load``.
    """

    def __init__(
        self, script: Script, *, unconsumed_ok: bool = False, refused_ok: bool = False, **options: Any
    ) -> None:
        self.provider = ScriptedProvider(script)
        self.unconsumed_ok = unconsumed_ok
        self.refused_ok = refused_ok
        super().__init__(self.provider, {"listen": not script.refuse_first} | options)

    @property
    def values(self) -> dict[str, Json]:
        """What fills ``{{name}}`` in the script; to be changed at any time."""
        return self.provider.values

    def faults(self) -> list[str]:
        """Return what a test should not have left behind: exceptions, calls that the script had nothing for, entries
        that nobody asked for.
        """
        raised = [f"the mock server caught {type(error).__name__}: {error}" for error in self.failures]
        refused = [] if self.refused_ok else [refusal_words(refusal) for refusal in self.provider.refused]
        return [*raised, *refused, *self._leftovers()]

    def _leftovers(self) -> list[str]:
        count = self.provider.remaining
        if self.unconsumed_ok or not count:
            return []
        left = ", ".join(unasked(self.provider)) or "all those of a session that never came"
        number = "1 answer of the script was" if count == 1 else f"{count} answers of the script were"
        asked = [str(captured.label) for captured in self.requests if captured.kind == "call"]
        answers = f"answered were {listed(asked)}" if asked else "no call came"
        mend = "ask for what is left, take it out of the script, or say unconsumed_ok=True"
        return [f"{number} asked for by nobody: {left}; {answers}\nmend: {mend}"]


class Servers:
    """The servers of one test."""

    def __init__(self) -> None:
        self._servers: list[ScriptedServer] = []
        self._running = ExitStack()

    def start(
        self,
        *entries: Json,
        unconsumed_ok: bool = False,
        refused_ok: bool = False,
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
            refused_ok: Whether calls may come that the script has nothing for: none left, or one that nothing fills.
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
        server = ScriptedServer(
            script_from_json(script, "script"), unconsumed_ok=unconsumed_ok, refused_ok=refused_ok, **serve_options
        )
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


def refusal_words(refusal: Refusal) -> str:
    """Return the words on a call that the script had nothing for."""
    why, _, mend = refusal.why.partition("\nmend: ")
    call = "" if refusal.call in why else f", asked by {refusal.call}"
    said = f"; its last user message is {shortened(repr(refusal.said))}" if refusal.said is not None else ""
    return f"the mock server refused a call ({refusal.label}): {why}{call}{said}\nmend: {mend}, or say refused_ok=True"


def listed(words: list[str]) -> str:
    """Return ``words`` as one text, of many the first."""
    return ", ".join(words[:LISTED]) + (f" and {len(words) - LISTED} more" if len(words) > LISTED else "")


def plain(value: Any) -> Json:
    """Return a mapping as the dict that JSON has."""
    return dict(value) if isinstance(value, Mapping) else value


LISTED = 10
"""Labels of calls that are listed."""
