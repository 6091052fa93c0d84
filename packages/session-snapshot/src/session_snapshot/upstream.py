"""What a recording is taken from: the real provider, or ``upstream.json`` on a server that stands in for it."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from llm_dialects import EntryError, Throw
from llm_dialects.words import nearest
from llm_mock_server import ScriptedProvider, read_upstream, serve
from msgspec import Struct

from session_snapshot.calls import LiveCall
from session_snapshot.errors import FixtureError, Refused
from session_snapshot.strict import line_of
from session_snapshot.suites import Loaded, read, short

EXHAUSTED = "MOCK_SCRIPT_EXHAUSTED"
"""The code with which the stand-in answers a call it has no entry for."""

UNFILLED = "MOCK_PLACEHOLDER_UNFILLED"
"""The code with which it answers a call whose entry asks the request for what is not in it."""

EXAMPLE = "https://api.openai.com/v1"

KINDS = ("say", "chunks", "throw", "hang")
KEYS = (
    "entries", "kind", "text", "reasoning", "toolCalls", "usage", "finish", "chunkSize", "chunks", "message", "code",
    "status", "accepted", "readyFile", "name", "arguments", "id",
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
        FixtureError: ``upstream.json`` is missing or wrong, or ``agent.toml`` has no URL of a provider.
        Refused: ``url`` is none.
    """
    assert loaded.agent.record is not None and loaded.agent.model is not None
    if url is not None:
        yield Upstream(given_url(url))
        return
    if loaded.scenario.recording == "live":
        yield Upstream(declared_url(loaded))
        return
    path = loaded.place.folder / "upstream.json"
    if not path.is_file():
        mend = 'write it (README, "Your own agent"), or set recording = "live" in scenario.toml'
        raise FixtureError("the script that stands in for the model is missing", short(path), None, mend)
    text, where = read(path)
    provider = scripted(text, where)
    async with serve(provider, api_key=key) as server:
        yield Upstream(server.base_url(loaded.agent.model.dialect), provider, where)


def given_url(url: str) -> str:
    """The URL of the command line.

    Raises:
        Refused: no calls can be forwarded to it.
    """
    if wrong := wrong_url(url):
        raise Refused(f"--upstream {shown_url(url)}: {wrong}", f"--upstream {EXAMPLE}")
    return url


def declared_url(loaded: Loaded) -> str:
    """The URL that ``agent.toml`` names.

    Raises:
        FixtureError: it names none, or no calls can be forwarded to it.
    """
    assert loaded.agent.record is not None
    url, path = loaded.agent.record.upstream_url, loaded.place.suite_folder / "agent.toml"
    if wrong := wrong_url(url):
        text, where = read(path)
        line = line_of(text, "upstream_url") or line_of(text, "record")
        raise FixtureError(f"[record] upstream_url: {wrong}", where, line, f'write upstream_url = "{EXAMPLE}"')
    return url


def wrong_url(url: str) -> str:
    """What is wrong with the base URL of a provider; nothing where it can be used."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"this is no URL ({error})"
    if not url:
        return "there is none, and a live recording is taken from a provider"
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return "this is no http:// or https:// URL"
    if parts.username is not None or parts.password is not None:
        return "it holds a user or a password; the key comes from its variable alone"
    return ""


def shown_url(url: str) -> str:
    """A URL without what may be a secret in it: user, password, query."""
    return re.sub(r"//[^/@]*@", "//...@", url).partition("?")[0]


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
