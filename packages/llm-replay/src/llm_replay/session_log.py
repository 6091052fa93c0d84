"""The session log: a header line, then one event per line; what an agent persists and what a fixture commits.

Read are our own format (``"format": "session-snapshot", "version": 1``) and the historical one of the DeepSeek Harness
(``"version": 0``, no ``format``). A live log carries ``seq`` and ``time`` in every event (complete envelopes); a
committed fixture carries them in none (projected), so that an inserted event does not churn every later line. Nothing
here knows what the events mean.
"""

from llm_dialects import Json
from msgspec import Struct

from llm_replay.errors import FixtureError
from llm_replay.lines import encode_lines, read_objects
from llm_replay.packed import Malformed, is_packed, pack, unpack

FORMAT = "session-snapshot"
VERSION = 1
HISTORICAL_VERSION = 0
MEND = "restore the file from version control, or record the scenario again"


class Event(Struct, frozen=True):
    """One event. ``seq`` and ``time`` (ms) of a projected log are made up: both count from 0.

    ``rest`` are the envelope's other members (``surfaceOp``, ...); ``line`` is where it stands, counted from 1.
    """

    type: str
    data: dict[str, Json]
    seq: int
    time: int
    rest: dict[str, Json]
    line: int


class SessionLog(Struct, frozen=True):
    """A whole log. ``complete`` tells whether its envelopes were; ``name`` is the file's, for messages."""

    name: str
    header: dict[str, Json]
    events: tuple[Event, ...]
    complete: bool

    @property
    def historical(self) -> bool:
        """Whether this is the format of the older system and not ours."""
        return "format" not in self.header


def parse_log(text: str, name: str) -> SessionLog:
    """Read a log; packed rows come out as the events they stand for.

    Raises:
        FixtureError: a malformed line, another format, mixed or partial envelopes, a gap in ``seq``.
    """
    rows = read_objects(text, name, MEND)
    header = _header(next(rows, None), name)
    events: list[Event] = []
    complete: bool | None = None
    for line, row in rows:
        found = _is_complete(row, name, line)
        if complete not in (None, found):
            raise FixtureError("mixes events with and without seq and time", name, line, MEND)
        complete = found
        members = _members(row, line, name, clocked=found or "format" not in header)
        due = events[-1].seq + 1 if events else None
        events += _clocked(members, row, line) if found else _numbered(members, due or 0, line)
        _check_seq(events[-len(members)], due, name)
    return SessionLog(name=name, header=header, events=tuple(events), complete=bool(complete))


def check_live(log: SessionLog) -> None:
    """Check that ``log`` is one an agent wrote: complete envelopes, ``seq`` from 0 without a gap.

    Raises:
        FixtureError: it is not. (It is named so because the log is about to become a fixture.)
    """
    if log.events and not log.complete:
        raise FixtureError("events have no seq and time", log.name, log.events[0].line, "have the agent write them")
    if log.events and log.events[0].seq != 0:
        seq = log.events[0].seq
        raise FixtureError(
            f"seq begins at {seq}, not at 0", log.name, log.events[0].line, "have the agent count from 0"
        )


def format_fixture(log: SessionLog) -> str:
    """Return ``log`` in its committed form: projected, runs of deltas packed, compact, LF.

    Parsing that gives the same events, clocks aside, and formatting them again the same text.
    """
    events = [{"type": event.type, "data": event.data, **event.rest} for event in log.events]
    return encode_lines([log.header, *pack(events, clocked=log.historical)])


def _header(first: tuple[int, dict[str, Json]] | None, name: str) -> dict[str, Json]:
    """Return the header row after checking that it is one and that its format is known."""
    if first is None:
        raise FixtureError("is empty: a session log begins with its header line", name, 1, MEND)
    line, header = first
    if header.get("type") != "session":
        raise FixtureError(f'must begin with {{"type":"session",...}}, has {header.get("type")!r}', name, line, MEND)
    found = (header.get("format"), header.get("version"))
    known = (FORMAT, VERSION) if "format" in header else (None, HISTORICAL_VERSION)
    if found != known or type(found[1]) is not int:
        text = f"format {found[0]!r} version {found[1]!r} is not known here"
        raise FixtureError(text, name, line, f"record it with this version, which writes {FORMAT!r} version {VERSION}")
    return header


def _is_complete(row: dict[str, Json], name: str, line: int) -> bool:
    """Tell whether a row carries its clocks; one of two is a mistake."""
    seq, time = ("seq0", "time0") if is_packed(row.get("type")) else ("seq", "time")
    found = [key for key in (seq, time) if key in row]
    if len(found) == 1:
        raise FixtureError(f"has {found[0]!r} but not both {seq!r} and {time!r}", name, line, MEND)
    for key in found:
        if type(row[key]) not in CLOCK_TYPES[key]:
            raise FixtureError(f"{key} must be a number", name, line, MEND)
    return bool(found)


def _check_seq(event: Event, due: int | None, name: str) -> None:
    if due is not None and event.seq != due:
        raise FixtureError(f"seq is {event.seq} where {due} was due", name, event.line, MEND)


Member = tuple[str, dict[str, Json], dict[str, Json], int]
"""Type, data, rest, and milliseconds after the row's own time."""


def _clocked(members: list[Member], row: dict[str, Json], line: int) -> list[Event]:
    """Return the events of a complete row."""
    seq0: int = row["seq"] if "seq" in row else row["seq0"]
    time0: int = row["time"] if "time" in row else row["time0"]
    return [
        Event(type=kind, data=data, seq=seq, time=time0 + later, rest=rest, line=line)
        for seq, (kind, data, rest, later) in enumerate(members, seq0)
    ]


def _numbered(members: list[Member], seq0: int, line: int) -> list[Event]:
    """Return the events of a projected row, with clocks made up."""
    return [
        Event(type=kind, data=data, seq=seq, time=seq, rest=rest, line=line)
        for seq, (kind, data, rest, _) in enumerate(members, seq0)
    ]


def _members(row: dict[str, Json], line: int, name: str, clocked: bool) -> list[Member]:
    return _packed(row, line, name, clocked) if is_packed(row.get("type")) else _single(row, line, name)


def _single(row: dict[str, Json], line: int, name: str) -> list[Member]:
    kind, data = row.get("type"), row.get("data")
    if not isinstance(kind, str) or not kind or kind == "session":
        raise FixtureError(f"type must name an event, is {kind!r}", name, line, MEND)
    if not isinstance(data, dict):
        raise FixtureError("data must be an object", name, line, MEND)
    return [(kind, data, {key: value for key, value in row.items() if key not in ENVELOPE}, 0)]


def _packed(row: dict[str, Json], line: int, name: str, clocked: bool) -> list[Member]:
    unknown = set(row) - {"type", "seq0", "time0", "data"}
    if unknown:
        raise FixtureError(f"{row['type']} row has unknown key {min(unknown)!r}", name, line, MEND)
    try:
        members = unpack(row["type"], row.get("data"), clocked)
    except Malformed as error:
        raise FixtureError(f"{row['type']} row: {error}", name, line, MEND) from None
    return [("assistant/chunk", data, {}, later) for data, later in members]


ENVELOPE = frozenset({"type", "seq", "time", "data"})
CLOCK_TYPES = {"seq": (int,), "seq0": (int,), "time": (int, float), "time0": (int, float)}
