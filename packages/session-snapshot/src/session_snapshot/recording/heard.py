"""What came of one model call while it was forwarded, and the entry that tells it again. Pure.

``Heard`` takes in what is sent on to the agent, as it is sent, and reads it beside. An entry says what an answer means;
where its dialect would tell that otherwise than the provider did, so that a client could see it, the entry's ``wire``
keeps how it was told (``wire_of``). So a replay gives a client what it had, also of what no dialect provides for.
"""

from collections.abc import Iterable

import msgspec
from llm_dialects.actions import Action, Body, Head, Reset, Stall
from llm_dialects.chunks import Finish, StreamChunk
from llm_dialects.dialect import Dialect, DialectError, answer_to, is_streamed
from llm_dialects.entries import Chunks, Entry, Hang, Throw
from llm_dialects.errors import ProviderError, classify, failure_in, status_of
from llm_dialects.requests import Request
from llm_dialects.sse import SseDecoder
from llm_dialects.telling import HEADER_VALUE, End, Wire
from llm_dialects.wire import decode_json
from llm_mock_server import entry_reply, failure_reply
from msgspec import UNSET, Struct

RETOLD = ("retry-after", "retry-after-ms", "x-should-retry")
"""Headers that a client acts on and a replay gives back; the others tell of an account, a clock or a request's id."""

MALFORMED = "MALFORMED_ANSWER"
"""The code of an answer that cannot be read."""

CLOSED = "STREAM_CLOSED"
TIMEOUT = "TIMEOUT"
UNREACHABLE = "UNREACHABLE"
"""The code of a call that never reached a provider."""

REDIRECTED = "REDIRECTED"
"""The code of a call that the provider wants asked of somebody else."""

LONGEST = 300
"""Characters of a page that is no error body of a provider, in a message."""

UNREADABLE = (DialectError, RecursionError)


class Reading(Struct, frozen=True):
    """A body as a client reads it: its chunks, how many of them came before what cannot be read, and why that cannot.

    ``events`` is how many events, or array items, the body holds; ``left``, the beginning of one that has no end.
    """

    chunks: tuple[StreamChunk, ...]
    wrong: str = ""
    whole_until: int = 0
    events: int = 0
    left: bytes = b""

    @property
    def said(self) -> tuple[StreamChunk, ...]:
        """The chunks before a failure, or before what cannot be read."""
        chunks = self.chunks[: self.whole_until] if self.wrong else self.chunks
        ends = (at for at, chunk in enumerate(chunks) if isinstance(chunk, Finish))
        return chunks[: next(ends, len(chunks))]

    @property
    def finished(self) -> bool:
        """Whether the answer came to its end, one way or another."""
        return any(isinstance(chunk, Finish) for chunk in self.chunks)


class Told(Struct):
    """A response as it is told, action by action; ``status`` is ``None`` until it has begun."""

    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    pieces: list[bytes] = msgspec.field(default_factory=list)
    end: End = "complete"

    def take(self, action: Action) -> None:
        """Take in one action."""
        match action:
            case Head():
                self.status, self.headers = action.status, action.headers
            case Body():
                self.pieces.append(action.data)
            case Stall():
                self.end = "silence"
            case Reset(how=how):
                self.end = "reset" if how == "rst" else "cut"
            case _:
                pass

    @property
    def body(self) -> bytes:
        """All of the body that was told."""
        return b"".join(self.pieces)

    def header(self, name: str) -> str:
        """The value of a header, \"\" where there is none."""
        return dict(self.headers).get(name, "")

    @property
    def content_type(self) -> str:
        """The content type without its parameters."""
        return self.header("content-type").partition(";")[0].strip().lower()

    @property
    def retold(self) -> tuple[tuple[str, str], ...]:
        """The headers that are told again, each once."""
        told = {name: value for name, value in self.headers if name in RETOLD and HEADER_VALUE.fullmatch(value)}
        return tuple(told.items())


class Heard:
    """One call while it is forwarded; what was not told yet when the agent went counts as a silence."""

    def __init__(self, dialect: Dialect, request: Request) -> None:
        self.dialect = dialect
        self.request = request
        self.told = Told(end="silence")
        self.failure: Throw | None = None
        """Why the recorder itself could not forward the call."""
        self._reader = Reader(dialect) if is_streamed(request) else None

    def take(self, action: Action) -> Action:
        """Take in what is about to be sent to the agent."""
        self.told.take(action)
        if isinstance(action, Body) and self._reader is not None and self.answered:
            self._reader.feed(action.data)
        return action

    def over(self) -> None:
        """Nothing more will be sent; without a reset the response ended as HTTP wants it."""
        if self.told.end == "silence":
            self.told.end = "complete"

    def fail(self, code: str, message: str) -> tuple[Action, ...]:
        """Keep why the recorder cannot pass on an answer, or the rest of it; what the agent is told instead."""
        begun = self.told.status is not None
        self.failure = Throw(chunks=(), message=message, code=CLOSED if begun and code == TIMEOUT else code)
        return (Reset("fin"),) if begun else failure_reply(self.dialect, ProviderError(code, message))

    @property
    def answered(self) -> bool:
        """Whether the provider took the call."""
        return self.told.status is not None and self.told.status < 300

    @property
    def left_for_garbage(self) -> bool:
        """Whether the agent is gone, and something came before that cannot be read."""
        return self.told.end == "silence" and self._reader is not None and bool(self._reader.wrong)

    def reading(self) -> Reading:
        """The body as far as it came."""
        if self._reader is None:
            return read_whole(self.dialect, self.told.body)
        return self._reader.reading(over=self.told.end == "complete")

    def entry(self) -> Entry:
        """What the call was; to be asked once, when it is over."""
        if self.failure is not None and self.told.status is None:
            return self.failure
        if self.told.status is not None and not self.answered:
            self.told.end = "complete" if self.told.end == "silence" else self.told.end
            meant: Entry = self.failure or failed(self.told.status, self.told.body)
        else:
            meant = self.meant(self.reading())
        wire = wire_of(self.dialect, self.request, meant, self.told)
        return meant if wire is None else msgspec.structs.replace(meant, wire=wire)

    def meant(self, reading: Reading) -> Entry:
        """What an answer means, in the words of any dialect."""
        end = self.told.end
        if reading.wrong and (end == "complete" or self._reader is not None):
            self.told.end = "complete" if end == "silence" else end  # it left because of what it could not read
            return self.broken(reading, MALFORMED, reading.wrong)
        if (error := failure_in(reading.chunks)) is not None:
            self.told.end = "complete" if end == "silence" else end
            return self.broken(reading, error.code, error.message)
        if reading.finished:
            self.told.end = "complete" if end == "silence" else end  # whoever has it all may go
            return Chunks(chunks=reading.chunks)
        if end == "silence":
            return Hang(chunks=reading.chunks) if self._reader is not None else Hang()
        if end == "complete" and not reading.events and self.told.body.strip():
            error = other_body(self.told.body, self.told.content_type)
            return self.broken(reading, error.code, error.message)
        why = WHY[self.told.status is not None, end]
        code, message = (self.failure.code, self.failure.message) if self.failure else (CLOSED, why)
        return self.broken(reading, code, message)

    def broken(self, reading: Reading, code: str, message: str) -> Throw:
        """An answer that failed after what it said; without any words, but after its head, the call was accepted."""
        begun = self.told.status is not None and not reading.said
        return Throw(chunks=reading.said, message=message, code=code, accepted=True if begun else UNSET)


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Reader:
    """Reads a streamed body as it comes, line by line: so an event that cannot be read costs no other, and how the body
    was cut on its way makes no difference."""

    def __init__(self, dialect: Dialect) -> None:
        self._decoder = dialect.decoder()
        self._events = SseDecoder()
        self._line: list[bytes] = []  # the pieces of the one that has no end yet
        self._chunks: list[StreamChunk] = []
        self.wrong = ""
        self._whole_until = 0
        self._count = 0

    def feed(self, data: bytes) -> None:
        """Read more."""
        self._count += len(self._events.feed(data))
        if b"\n" not in data:
            self._line.append(data)
            return
        *lines, rest = b"".join([*self._line, data]).split(b"\n")
        self._line = [rest]
        for line in lines:
            self._read(line + b"\n")

    def reading(self, *, over: bool) -> Reading:
        """What was read so far, and what the end of the body would complete. To be asked once, at the end."""
        self._read(b"".join(self._line))
        chunks = list(self._chunks)
        try:
            chunks += self._decoder.close()
        except UNREADABLE as error:
            if over:
                self._note(error)
        left = self._events.close().strip()
        left = b"" if left.startswith(b"[") else left  # an array has no events
        return Reading(tuple(chunks), self.wrong, self._whole_until, self._count or len(chunks), left)

    def _read(self, line: bytes) -> None:
        try:
            self._chunks += self._decoder.feed(line)
        except UNREADABLE as error:
            self._note(error)

    def _note(self, error: Exception) -> None:
        if not self.wrong:
            self.wrong, self._whole_until = str(error) or type(error).__name__, len(self._chunks)


def read_whole(dialect: Dialect, body: bytes) -> Reading:
    """Read the body of an answer that is not streamed."""
    try:
        return Reading(dialect.decode_message(body), events=1)
    except UNREADABLE as error:
        return Reading((), str(error) or type(error).__name__, events=1)


def read_stream(dialect: Dialect, body: bytes) -> Reading:
    """Read a whole streamed body."""
    reader = Reader(dialect)
    reader.feed(body)
    return reader.reading(over=True)


def failed(status: int, body: bytes) -> Throw:
    """An HTTP error as an entry."""
    error = classify(status, body)
    own = status_of(ProviderError(error.code, error.message))
    message = shortened(error.message, status) if not is_json(body) else error.message
    return Throw(chunks=(), message=message, code=error.code, status=UNSET if status == own else status)


def other_body(body: bytes, content_type: str) -> ProviderError:
    """What a body means that holds no answer although the head promised one: an error after all, or anything else."""
    if is_json(body):
        value = decode_json(body)
        if isinstance(value, dict) and value.get("error"):
            return classify(None, value)
    what = content_type or "something without a content type"
    return ProviderError(MALFORMED, shortened(f"{what} came instead of a stream: {body.decode('utf-8', 'replace')}"))


def is_json(body: bytes) -> bool:
    """Whether a body is JSON."""
    try:
        decode_json(body)
    except (ValueError, RecursionError):
        return False
    return True


def is_same_json(one: bytes, other: bytes) -> bool:
    """Whether two bodies are the same JSON."""
    return is_json(one) and is_json(other) and bool(decode_json(one) == decode_json(other))


def shortened(text: str, status: int | None = None) -> str:
    """A text that nobody wrote as a message, in one line of bearable length."""
    line = " ".join(text.split())
    line = line if len(line) <= LONGEST else line[:LONGEST] + "..."
    return line or f"HTTP {status}"


# ── telling it again ────────────────────────────────────────────────────────────────────────────────────────────────


def told_by(actions: Iterable[Action]) -> Told:
    """The response that these actions make."""
    told = Told()
    for action in actions:
        told.take(action)
    return told


def wire_of(dialect: Dialect, request: Request, entry: Entry, told: Told) -> Wire | None:
    """What of a response its dialect would tell otherwise, so that a client could see it; None where nothing."""
    answer = answer_to(dialect, request, token="0", created=0, exact=isinstance(entry, Chunks))
    own = told_by(entry_reply(dialect, request, entry, answer))
    same = reads_the_same(dialect, request, own, told)
    other = told.status if isinstance(told.status, int) and (not same or told.status != own.status) else UNSET
    label = told.header("content-type")
    labelled = told.status is None or told.content_type == own.content_type or not HEADER_VALUE.fullmatch(label)
    wire = Wire(
        headers=told.retold if labelled else (("content-type", label), *told.retold),
        end=UNSET if told.end == own.end else told.end,
        dialect=UNSET if other is UNSET else dialect.name,
        status=other,
        body=UNSET if same else told.body,
    )
    return None if wire == Wire() else wire


def reads_the_same(dialect: Dialect, request: Request, own: Told, told: Told) -> bool:
    """Whether a client reads of both bodies the same."""
    if own.body == told.body:
        return True
    if told.status is None or told.status >= 300:
        return is_same_json(own.body, told.body)
    if not is_streamed(request):
        ours, theirs = read_whole(dialect, own.body), read_whole(dialect, told.body)
        if failure_in(theirs.chunks) is not None:
            return is_same_json(own.body, told.body)
    elif own.body.lstrip()[:1] == b"[" != told.body.lstrip()[:1]:
        return False  # events, where an array was asked for
    else:
        ours, theirs = read_stream(dialect, own.body), read_stream(dialect, told.body)
    if theirs.wrong or ours.chunks != theirs.chunks:
        return False
    if theirs.finished:
        return True
    # Not every client waits for the end of an event. Of an answer without a word it sees how many events begin it.
    return ours.left == theirs.left and (bool(theirs.chunks) or ours.events == theirs.events)


# whether the response had begun, and how it ended -> what is said of it
WHY: dict[tuple[bool, str], str] = {
    (False, "reset"): "the connection was reset before the answer began",
    (False, "cut"): "the connection was closed before the answer began",
    (True, "reset"): "the connection was reset in the middle of the answer",
    (True, "cut"): "the connection was closed in the middle of the answer",
    (True, "complete"): "the answer ended before its finish",
}
