"""The model's side of a replay: the Player decides what is said, the server says it, and every call is kept.

A call nobody recorded gets an error in the dialect *and* is a failure of the run, so that an agent which swallows the
error cannot hide it.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from llm_dialects.actions import Action, Body
from llm_dialects.chunks import Usage, UsageChunk, to_json
from llm_dialects.dialect import Answer, Dialect, answer_to
from llm_dialects.dialects import DIALECTS
from llm_dialects.entries import Chunks, Entry, Hang, entry_from_json, entry_to_json
from llm_dialects.errors import ProviderError
from llm_dialects.fold import fold
from llm_dialects.render import RenderError, escape, fill_from_request
from llm_dialects.requests import Request
from llm_dialects.usage import honest_usage
from llm_mock_server import HttpRequest, entry_reply, failure_reply
from llm_replay import Player, RecordedCall, Repeated, Served, Unrecorded
from llm_replay.messages import request_from_json
from msgspec import UNSET

from session_snapshot.calls import LiveCall
from session_snapshot.errors import FixtureError
from session_snapshot.files import inside
from session_snapshot.tokens import LiveTokens
from session_snapshot.trace import Asked, Ended, Trace

CREATED = 1_767_225_600
"""When every replayed answer says it was made (2026-01-01 UTC): a replay says the same bytes every time."""

SESSION_HEADERS = ("x-session-id", "session-id", "x-session-affinity", "session_id", "x-client-request-session")
SESSION_MEMBERS = ("prompt_cache_key", "session_id")


class ReplayModel:
    """A responder that replays. ``calls`` keeps what came; ``unrecorded`` what nothing recorded answers."""

    def __init__(
        self,
        player: Player,
        tokens: LiveTokens,
        cwd: Path,
        session_header: str = "",
        dialects: Mapping[str, Dialect] = DIALECTS,
        trace: Trace | None = None,
        from_wire: bool = False,
        spoken: str = "",
    ) -> None:
        """``session_header`` is the header in which this agent names its conversation, where ``agent.toml`` says so.

        What happens is taken down in ``trace``. ``from_wire``: the recording was made at the wire, so that an answer
        which holds no usage had none there. ``spoken`` is the one dialect that calls may come in ("": any).
        """
        self.player = player
        self.tokens = tokens
        self.cwd = cwd
        self.session_header = session_header
        self.dialects = dialects
        self.trace = trace or Trace()
        self.from_wire = from_wire
        self.spoken = spoken
        self.foreign: list[tuple[int, str]] = []
        self.calls: list[LiveCall] = []
        self.unrecorded: list[tuple[int, Unrecorded | Repeated]] = []

    def __call__(self, http: HttpRequest) -> Iterator[Action]:
        """Answer one model call."""
        dialect = self.dialects[http.dialect]
        if self.spoken not in ("", dialect.name):
            self.foreign.append((http.number, dialect.name))
        request = dialect.parse_request(http.json)
        outcome = self.player.ask(request, session_key(http, self.session_header))
        match outcome:
            case Served(call=call):
                return iter(self.serve(dialect, http, request, call))
            case Repeated(call=call):
                self.unrecorded.append((http.number, outcome))
                return iter(self.serve(dialect, http, request, call, consume=False))
            case Unrecorded():
                self.unrecorded.append((http.number, outcome))
                self.calls.append(LiveCall(http.number, request, http.body, None, None))
                return self.told(failure_reply(dialect, refusal(http.number)))

    def serve(
        self, dialect: Dialect, http: HttpRequest, request: Request, call: RecordedCall, consume: bool = True
    ) -> Iterator[Action]:
        """The recorded entry with its tokens expanded, in the request's dialect."""
        entry = self.fill(call, request)
        answer = self.answer(dialect, http, request, call, entry)
        index = call.index if consume else None
        self.calls.append(LiveCall(http.number, request, http.body, index, entry, told_usage(entry, answer)))
        return self.told(entry_reply(dialect, request, entry, answer, lambda: self.ready(entry)))

    def told(self, actions: Iterable[Action]) -> Iterator[Action]:
        """Take down that the newest call came in; then what it is told, as it is told."""
        call = len(self.calls) - 1
        self.trace.add(Asked(call))
        return self.telling(call, actions)

    def telling(self, call: int, actions: Iterable[Action]) -> Iterator[Action]:
        """The actions of an answer; each piece is taken down just before it is sent."""
        try:
            for action in actions:
                if isinstance(action, Body):
                    self.trace.told(call, action.data)
                yield action
        finally:
            self.trace.add(Ended(call))

    def fill(self, call: RecordedCall, request: Request) -> Entry:
        """Put live values for the tokens of a recorded entry, and what it takes from the request.

        Raises:
            FixtureError: a token that has no value.
        """
        try:
            filled = fill_from_request(entry_to_json(call.entry), request, change=escape)
            return entry_from_json(self.tokens.expand(filled), "the recording")
        except RenderError as error:
            file, _, at = call.source.partition("#")
            mend = "correct the placeholder (README, 'Overrides'), or record the scenario again"
            raise FixtureError(f"answer {at} cannot be served: {error}", file, None, mend) from error

    def answer(self, dialect: Dialect, http: HttpRequest, request: Request, call: RecordedCall, entry: Entry) -> Answer:
        """What the answer says about itself: recorded usage, else honest usage; none where a provider told none."""
        counted = any(isinstance(chunk, UsageChunk) for chunk in entry.chunks)
        exact = self.from_wire and isinstance(entry, Chunks)
        usage = None if counted or exact else honest_usage(http.json, entry.chunks)
        token = digest(f"answer {call.index}")
        return answer_to(dialect, request, token=token, created=CREATED, usage=usage, exact=exact)

    def ready(self, entry: Entry) -> None:
        """A hang has said all it will say: write its ready file."""
        if isinstance(entry, Hang) and entry.ready_file is not UNSET:
            inside(self.cwd, entry.ready_file, "replay.override.json").write_bytes(b"")


def told_usage(entry: Entry, answer: Answer) -> Usage | None:
    """The usage that an answer tells; one that fails or breaks off does not come that far."""
    if not answer.include_usage or not isinstance(entry, Chunks):
        return None
    return fold(entry.chunks).usage or answer.usage


def session_key(http: HttpRequest, header: str) -> str | None:
    """The provider session key a request carries, in a header or in its body."""
    headers = dict(http.headers)
    for name in (header.lower(), *SESSION_HEADERS):
        if headers.get(name):
            return headers[name]
    for member in SESSION_MEMBERS:
        if isinstance(http.json.get(member), str):
            return str(http.json[member])
    return None


def refusal(number: int) -> ProviderError:
    """What an agent is told whose call nobody recorded."""
    message = f"session-snapshot: model call {number} is not in the recording"
    return ProviderError("NOT_RECORDED", message, 400)


def digest(text: str) -> str:
    """24 hex digits that look random and are always the same."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def canon_of(canon_json: Callable[[object], object]) -> Callable[[Request], Request]:
    """Normalise a request through its JSON."""
    return lambda request: request_from_json(canon_json(to_json(request)))
