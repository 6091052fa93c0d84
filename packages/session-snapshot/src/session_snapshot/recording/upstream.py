"""What a recording is taken from: the real provider, or ``upstream.json`` on a server that stands in for it."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from llm_dialects import EntryError, Throw
from llm_dialects.words import nearest
from llm_mock_server import ScriptedProvider, read_upstream, serve
from msgspec import Struct

from session_snapshot.calls import LiveCall
from session_snapshot.errors import FixtureError
from session_snapshot.strict import line_of
from session_snapshot.suites import Loaded, read, short

EXHAUSTED = "MOCK_SCRIPT_EXHAUSTED"
"""The code with which the stand-in answers a call it has no entry for."""

UNFILLED = "MOCK_PLACEHOLDER_UNFILLED"
"""The code with which it answers a call whose entry asks the request for what is not in it."""

KINDS = ("say", "chunks", "throw", "hang")
KEYS = (
    "entries", "kind", "text", "reasoning", "toolCalls", "usage", "finish", "chunkSize", "chunks", "message", "code",
    "status", "accepted", "readyFile", "name", "arguments", "id", "wire", "headers", "end", "dialect", "body",
    "bodyBase64",
)  # fmt: skip


class Upstream(Struct, frozen=True):
    """Where calls are forwarded to: a base URL for the agent's dialect, and the script where one stands in."""

    url: str
    provider: ScriptedProvider | None = None
    where: str = ""

    def refuse_exhausted(self, calls: Sequence[LiveCall]) -> None:
        """Refuse a script that has no answer to what the run asked for: what the agent made of that is not its fault.

        Raises:
            FixtureError: it does.
        """
        for call in calls:
            if isinstance(call.entry, Throw) and call.entry.code == EXHAUSTED and self.provider is not None:
                raise FixtureError(
                    f"model call {call.number} has no entry: the script holds {self.provider.served}",
                    self.where,
                    None,
                    "add an entry for it, or let the script (input.json) ask for less",
                )
            if isinstance(call.entry, Throw) and call.entry.code == UNFILLED and self.provider is not None:
                what = call.entry.message.partition("\n")[0].removeprefix(f"{self.where}: ")
                raise FixtureError(
                    f"model call {call.number}: {what}",
                    self.where,
                    None,
                    "let its pattern match what the agent sends",
                )

    def refuse_leftovers(self) -> None:
        """Refuse a script that holds more than the run asked for.

        Raises:
            FixtureError: it does.
        """
        if self.provider is not None and self.provider.remaining:
            left, served = self.provider.remaining, self.provider.served
            raise FixtureError(
                f"{left} of {left + served} entries were never asked for: the run made {served} model call(s)",
                self.where,
                None,
                "remove them, or let the script (input.json) ask for them",
            )


@asynccontextmanager
async def upstream_of(loaded: Loaded, key: str, url: str | None = None) -> AsyncIterator[Upstream]:
    """What the run's calls are forwarded to: ``url`` where one is given, else what the scenario says; a stand-in
    demands the key.

    Raises:
        FixtureError: ``upstream.json`` is missing or wrong.
    """
    assert loaded.agent.record is not None and loaded.agent.model is not None
    if url is not None or loaded.scenario.recording == "live":
        yield Upstream(url or loaded.agent.record.upstream_url)
        return
    path = loaded.place.folder / "upstream.json"
    if not path.is_file():
        mend = 'write it (README, "Your own agent"), or set recording = "live" in scenario.toml'
        raise FixtureError("the script that stands in for the model is missing", short(path), None, mend)
    text, where = read(path)
    provider = scripted(text, where)
    async with serve(provider, api_key=key) as server:
        yield Upstream(server.base_url(loaded.agent.model.dialect), provider, where)


def scripted(text: str, where: str) -> ScriptedProvider:
    """The stand-in for a provider.

    Raises:
        FixtureError: the script is wrong, where, and the nearest right word.
    """
    try:
        # A ready file belongs into the agent's folder; this process's own is another.
        return ScriptedProvider(read_upstream(text, where), ready_root=None)
    except EntryError as error:
        raise explained(str(error), text, where) from error


def explained(message: str, text: str, where: str) -> FixtureError:
    """A fault of a script with its line and the nearest right word."""
    what = message.partition("\nmend: ")[0].removeprefix(f"{where}: ").replace("none of chunks", "none of say, chunks")
    if found := re.search(r"line (\d+) column", what):
        return FixtureError(what, where, int(found[1]), "correct the file")
    word = next(iter(re.findall(r"'([^']+)'", what)), "")
    near = "" if word in KEYS else nearest(word, (*KINDS, *KEYS))
    mend = f"write {near!r}" if near else f"an entry is one of {', '.join(KINDS)} (README, 'Your own agent')"
    return FixtureError(what, where, line_of(text, word) if word else None, mend)
