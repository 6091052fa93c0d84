"""The control API: what a test in any language asks of a running server, over HTTP and JSON on a port of its own.

It is on this machine's loopback whatever the server itself listens on. Whatever is wrong with a request is answered
with ``{"error": {"code", "message", "mend"}}``, and changes nothing. ``ROUTES`` at the foot is all there is.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from llm_dialects import Action, Body, EntryError, Hang, Head, Json, Reply
from llm_dialects.wire import encode_json
from llm_dialects.words import nearest
from msgspec import Struct

from llm_mock_server.answer import whole
from llm_mock_server.exchange import Exchange
from llm_mock_server.gate import trespass
from llm_mock_server.http1 import Headers, RawRequest, Refused, split_target
from llm_mock_server.journal import CapturedRequest, Journal
from llm_mock_server.listener import Listener
from llm_mock_server.provider import ScriptedProvider
from llm_mock_server.script import read_json, script_from_json, values_from_json

if TYPE_CHECKING:
    from llm_mock_server.server import MockServer


class ControlError(Exception):
    """What is wrong with a control request, and the status that says so."""

    def __init__(
        self, status: int, code: str, message: str, mend: str, *, headers: Headers = (), beside: Mapping[str, Json] = {}
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.body = {"error": {"code": code, "message": message, "mend": mend}} | dict(beside)


class Ask(Struct, frozen=True):
    """A control request: what it is about, its parameters, its body as sent."""

    server: "MockServer"
    query: dict[str, str]
    body: bytes

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """Return a parameter that is a number."""
        said = self.query.get(name)
        if said is None:
            return default
        if not (said.isascii() and said.isdecimal() and len(said) < 20 and low <= int(said) <= high):
            raise ControlError(
                400, "BAD_QUERY", f"{name}={said[:40]!r} is no number from {low} to {high}", f"say {name}={default}"
            )
        return int(said)

    def page(self) -> tuple[int, int]:
        """Return the number of the first thing that is asked for, and how many are."""
        return self.number("from", 0, 0, 2**53), self.number("limit", 100, 1, 10_000)

    def json(self) -> Json:
        """Return the value of the body."""
        try:
            return read_json(self.body, "the body")
        except EntryError as error:
            if not self.body:
                raise ControlError(400, "BAD_JSON", "the body is empty", "send JSON as the body") from None
            raise unmeant("BAD_JSON", error, "send JSON as the body") from None

    @property
    def provider(self) -> ScriptedProvider:
        """What plays the script."""
        if not isinstance(self.server.responder, ScriptedProvider):
            raise ControlError(
                409, "NOT_SCRIPTED", "the server does not play a script", "start it with a ScriptedProvider"
            )
        return self.server.responder


Handler = Callable[[Ask], Awaitable[Reply]]


class Route(Struct, frozen=True):
    """What answers a path, its parameters, and what it is for."""

    handler: Handler
    parameters: tuple[str, ...]
    summary: str


class ControlServer(Listener):
    """The control API of one server. Its own journal keeps nothing."""

    def __init__(self, server: "MockServer") -> None:
        super().__init__(Journal(keep=0), server.max_body)
        self._server = server

    def open(self, event: RawRequest | Refused) -> Exchange:
        """Find the answer to a request."""
        raw = event.request if isinstance(event, Refused) else event
        return Exchange(raw, self._capture(raw), self._answer(event), keep_alive=raw is event and raw.keep_alive)

    def abandon(self, partial: RawRequest) -> None:
        """Forget a request whose body never came whole."""

    def apologise(self, exchange: Exchange, error: Exception) -> Reply:  # noqa: ARG002 - Listener names it
        """Say what is wrong."""
        if not isinstance(error, ControlError):
            message = f"{type(error).__name__}: {error}"
            error = ControlError(500, "INTERNAL", message, "report this as a fault of llm-mock-server")
        return told(error.body, error.status, error.headers)

    async def _answer(self, event: RawRequest | Refused) -> Reply:
        if isinstance(event, Refused):
            raise ControlError(event.status, "BAD_REQUEST", event.message, "send HTTP/1.1, within the bounds it names")
        why = trespass(event.headers)
        if why is not None:
            raise ControlError(403, "FORBIDDEN", why, f"ask {self._server.control_url}, from a program")
        path, query = split_target(event.target)
        route = find_route(event.method, path)
        return await route.handler(Ask(self._server, read_query(query, route.parameters), event.body))

    def _capture(self, raw: RawRequest) -> CapturedRequest:
        return self.journal.open(
            kind="side", dialect="", method=raw.method, path=raw.target, query="", headers=(), body=b""
        )


def find_route(method: str, path: str) -> Route:
    """Return the route of a request."""
    allowed = [known for known, at in ROUTES if at == path]
    if method in allowed:
        return ROUTES[method, path]
    mend = "GET / lists what there is"
    if allowed:
        allow = ", ".join(allowed)
        raise ControlError(
            405, "WRONG_METHOD", f"{path} takes {allow}, not {method}", mend, headers=(("allow", allow),)
        )
    near = nearest(path, [at for _, at in ROUTES])
    hint = f", the nearest is {near}" if near else ""
    raise ControlError(404, "NO_SUCH_PATH", f"there is no {path[:200]}{hint}", mend)


def read_query(query: str, known: tuple[str, ...]) -> dict[str, str]:
    """Return the parameters of a request; one that is not known is an error."""
    given = dict(parse_qsl(query, keep_blank_values=True))
    for name in given:
        if name not in known:
            mend = f"say one of {', '.join(known)}" if known else "leave it out"
            raise ControlError(400, "BAD_QUERY", f"there is no parameter {name[:40]!r} here", mend)
    return given


def unmeant(code: str, error: Exception, mend: str) -> ControlError:
    """Return what is said of something that cannot be meant; its own mend goes before ``mend``."""
    message, _, own = str(error).partition("\nmend: ")
    return ControlError(400, code, message or type(error).__name__, own or mend)


def told(value: Json, status: int = 200, headers: Headers = ()) -> Reply:
    """Return an answer of JSON."""
    return whole(status, encode_json(value), headers)


# ── The handlers ────────────────────────────────────────────────────────────────────────────────────────────────────


async def get_index(ask: Ask) -> Reply:
    """Say where the server is and what can be asked here."""
    routes = {
        f"{method} {path}" + (f"?{'=&'.join(route.parameters)}=" if route.parameters else ""): route.summary
        for (method, path), route in ROUTES.items()
    }
    return told({"server": "llm-mock-server", **where(ask.server), "routes": routes})


async def get_script(ask: Ask) -> Reply:
    """Say how far the script has been played."""
    return told(ask.provider.state(*ask.page()))


async def put_script(ask: Ask) -> Reply:
    """Play another script from its beginning."""
    provider, value = ask.provider, ask.json()
    try:
        script = script_from_json(value, "script")
    except (EntryError, RecursionError) as error:
        raise unmeant("BAD_SCRIPT", error, "correct the script; nothing has been changed") from None
    written = [entry.where for entry in script.entries if isinstance(entry.act, Hang) and entry.act.ready_file]
    if written:
        mend = "leave it out, and learn of the silence by GET /wait or GET /requests"
        raise ControlError(400, "BAD_SCRIPT", f"{written[0]}.readyFile: a script sent here writes no files", mend)
    if script.refuse_first and ask.server.listening.is_set():
        raise ControlError(
            409,
            "LISTENING",
            "connection_refused is a phase before the server listens, and it listens",
            "leave it out, or start the server with it",
        )
    provider.load(script)
    return told(provider.state())


async def put_values(ask: Ask) -> Reply:
    """Take the values that fill ``{{name}}``, in place of those there were."""
    provider, value = ask.provider, ask.json()
    try:
        values = values_from_json(value, "values")
    except EntryError as error:
        raise unmeant("BAD_VALUES", error, 'send {"name": "value"}') from None
    provider.values.clear()
    provider.values.update(values)
    return told({"values": values})


async def get_requests(ask: Ask) -> Reply:
    """Show the journal."""
    first, limit = ask.page()
    entries = tuple(islice((entry for entry in ask.server.journal.entries if entry.number >= first), limit))
    following = entries[-1].number + 1 if entries else max(first, ask.server.journal.opened)
    return journal_reply(entries, ask.server.dropped, following)


def journal_reply(entries: tuple[CapturedRequest, ...], dropped: int, following: int) -> Iterator[Action]:
    """Yield journal entries one by one: together they may be more than the memory."""
    yield Head(200, (("content-type", "application/json"),))
    yield Body(b'{"dropped":%d,"next":%d,"requests":[' % (dropped, following))
    for at, entry in enumerate(entries):
        yield Body((b"," if at else b"") + entry_bytes(entry))
    yield Body(b"]}")


def entry_bytes(entry: CapturedRequest) -> bytes:
    """Return an entry as JSON, with what its body says."""
    try:
        return encode_json(entry.to_json() | {"json": entry.json})
    except RecursionError:  # what can just be read cannot always be written
        return encode_json(entry.to_json() | {"json": None})


async def get_wait(ask: Ask) -> Reply:
    """Wait for model calls to have ended."""
    journal = ask.server.journal
    wanted, patience = ask.number("requests", 1, 0, 2**53), ask.number("timeoutMs", 10_000, 0, 3_600_000)
    try:
        async with asyncio.timeout(patience / 1000):
            await ask.server.wait(lambda: journal.ended >= wanted)
    except TimeoutError:
        message = f"{journal.ended} of {wanted} model calls had ended after {patience} ms"
        mend = "look at GET /requests for those in flight, or say a greater timeoutMs"
        raise ControlError(408, "TIMEOUT", message, mend, beside=counts(journal)) from None
    return told(counts(journal))


async def post_reset(ask: Ask) -> Reply:
    """Begin anew: script, journal, counts."""
    await ask.server.reset()
    return told(counts(ask.server.journal))


async def post_listen(ask: Ask) -> Reply:
    """Let clients in."""
    try:
        await ask.server.start_listening()
    except OSError as error:
        raise ControlError(409, "PORT_TAKEN", str(error), "start the server on another port") from None
    return told(where(ask.server))


def where(server: "MockServer") -> dict[str, Json]:
    """Return where clients go, and whether they are let in."""
    return {"baseURLs": server.base_urls, "listening": server.listening.is_set()}


def counts(journal: Journal) -> dict[str, Json]:
    """Return how many model calls there have been since the last reset."""
    return {"ended": journal.ended, "inFlight": journal.in_flight, "dropped": journal.dropped}


ROUTES: dict[tuple[str, str], Route] = {
    ("GET", "/"): Route(get_index, (), "this list, and where the server is"),
    ("GET", "/script"): Route(get_script, ("from", "limit"), "how far the script has been played, by cursor"),
    ("PUT", "/script"): Route(put_script, (), "play this script from its beginning"),
    ("PUT", "/values"): Route(put_values, (), "what fills {{name}}: an object of all of them"),
    ("GET", "/requests"): Route(get_requests, ("from", "limit"), "the journal, from a number on"),
    ("GET", "/wait"): Route(get_wait, ("requests", "timeoutMs"), "wait until so many model calls have ended"),
    ("POST", "/reset"): Route(
        post_reset, (), "drop what is in flight; empty the journal; begin script and values anew"
    ),
    ("POST", "/listen"): Route(post_listen, (), "end the phase in which connections are refused"),
}
