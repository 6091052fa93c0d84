"""RULES: what is volatile. Field rules first, by name and meaning; then text rules: who claims a place first has it."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from normalizer.context import Context, Declared, Field, snake
from normalizer.identity import IDENTITIES, UUID, identity_kind, is_kind
from normalizer.ledger import Ledger, canonical, is_free
from normalizer.lines import Json
from normalizer.paths import Root, compile_roots, path_spans
from normalizer.spans import Span
from normalizer.times import DATES, compile_dates, date_spans, duration_spans, moment_spans, weekday_spans
from normalizer.tokens import ESCAPED, LITERAL, Token


class Lens(Struct, frozen=True):
    """What rules look through: the known values, compiled, and the learned ones."""

    context: Context
    roots: tuple[Root, ...]
    dates: tuple[tuple[str, re.Pattern[str]], ...]
    port: re.Pattern[str] | None
    version: re.Pattern[str] | None
    ledger: Ledger


def lens(context: Context, ledger: Ledger) -> Lens:
    """The lens of one run."""
    return Lens(context, *_compiled(context), ledger)


FieldRule = Callable[[Field, Lens], Token | None]
TextRule = Callable[[str, Lens], Iterable[Span]]


class Rule(Struct, frozen=True, kw_only=True):
    """One row of the table. ``expands``: replay can put the live value back, so the rule also holds in model text."""

    name: str
    tokens: tuple[str, ...]
    what: str
    field: FieldRule | None = None
    text: TextRule | None = None
    expands: bool = False


def text_claims(text: str, lens: Lens) -> Iterator[tuple[Rule, Iterable[Span]]]:
    """What each text rule wants of a text, in the order of the table."""
    known = dict(_without_ledger(text, lens.context)) if len(text) > 1 else {}
    for place, rule in enumerate(RULES):
        if rule.text is learned:
            yield rule, learned(text, lens)
        elif place in known:
            yield rule, known[place]


@lru_cache(maxsize=8192)
def _without_ledger(text: str, context: Context) -> tuple[tuple[int, tuple[Span, ...]], ...]:
    """The same without what is learned. Kept, because a history is said again with every request."""
    plain = lens(context, Ledger())
    rules = ((at, rule.text) for at, rule in enumerate(RULES) if rule.text and rule.text is not learned)
    found = ((place, tuple(find(text, plain))) for place, find in rules)
    return tuple((place, spans) for place, spans in found if spans)


# ── declared ────────────────────────────────────────────────────────────────────────────────────────────────────────


def declared_field(field: Field, lens: Lens) -> Token | None:
    """A whole leaf that ``[[normalize]]`` names by path or key."""
    for rule in lens.context.declared:
        if _names(rule, field) and re.fullmatch(rule.pattern or r"(?s:.*)", str(field.value)):
            return _declared_token(rule, field.value, lens)
    return None


def taught_kind(field: Field, context: Context) -> str | None:
    """The kind of identity a leaf teaches: as declared, else by its name."""
    for rule in context.declared:
        if is_kind(rule.token) and _names(rule, field) and re.fullmatch(rule.pattern or r"(?s:.*)", str(field.value)):
            return rule.token
    return identity_kind(field)


def declared_text(text: str, lens: Lens) -> Iterator[Span]:
    """What a ``[[normalize]]`` pattern finds in any text."""
    for rule in lens.context.declared:
        if rule.pattern and rule.path is None and rule.key is None:
            for match in re.finditer(rule.pattern, text):
                group = 1 if match.re.groups and match[1] is not None else 0
                yield Span(match.start(group), match.end(group), _declared_token(rule, match[group], lens))


def _declared_token(rule: Declared, value: Json, lens: Lens) -> Token:
    """Declared as an identity, a value keeps its equality; else the token says only that it varies."""
    return lens.ledger.token(rule.token, value) if is_kind(rule.token) else Token(rule.token)


def _names(rule: Declared, field: Field) -> bool:
    if rule.path is not None:
        wanted = rule.path.strip("/").split("/")
        return len(wanted) == len(field.path) and all(
            a in ("*", str(b)) for a, b in zip(wanted, field.path, strict=True)
        )
    return rule.key is not None and snake(rule.key) == field.key


# ── identities ──────────────────────────────────────────────────────────────────────────────────────────────────────


def rpc_id(field: Field, _: Lens) -> Token | None:
    """The ``id`` of a request the agent made, in its frame and in the client's answer. The client's own ids stay."""
    if field.path != ("id",) or isinstance(field.value, bool) or not isinstance(field.value, int | str):
        return None
    made_here = "method" in field.parent
    agents = made_here if field.document == "stdout" else field.document == "client" and not made_here
    return Token("rpcId", str(field.value)) if agents else None


def short_identity(field: Field, lens: Lens) -> Token | None:
    """An identity too short to be searched for elsewhere: it is replaced in its own field only."""
    kind = identity_kind(field)
    if kind is None or (isinstance(field.value, str) and is_free(canonical(field.value))):
        return None
    return lens.ledger.token(kind, field.value)


def learned(text: str, lens: Lens) -> Iterable[Span]:
    """Identities wherever they stand."""
    return lens.ledger.spans(text)


def uuid(text: str, _: Lens) -> Iterator[Span]:
    """Any other uuid but the nil one, which means "none"."""
    for match in UUID.finditer(text):
        if match.group().strip("0-"):
            yield Span(match.start(), match.end(), Token("uuid", match.group().lower()))


def labelled_id(text: str, _: Lens) -> Iterator[Span]:
    """An id that text labels as one."""
    for match in _LABELLED.finditer(text):
        yield Span(match.start(1), match.end(1), Token("id", match[1]))


# ── what the harness knows ──────────────────────────────────────────────────────────────────────────────────────────


def paths(text: str, lens: Lens) -> Iterable[Span]:
    """The run's folders."""
    return path_spans(text, lens.roots)


def port_field(field: Field, lens: Lens) -> Token | None:
    """One of the harness's ports in a field named so."""
    known = any(str(field.value) == str(number) for number in lens.context.ports)
    return Token("port", str(field.value)) if known and _PORT_KEY.search(field.key) else None


def port(text: str, lens: Lens) -> Iterator[Span]:
    """One of the harness's ports behind a host, a colon or the word."""
    for match in lens.port.finditer(text) if lens.port else ():
        yield Span(match.start(1), match.end(1), Token("port", match[1]))


def dates(text: str, lens: Lens) -> Iterable[Span]:
    """The run's dates."""
    return date_spans(text, lens.dates)


def agent_version_field(field: Field, lens: Lens) -> Token | None:
    """The agent's version in a field named so."""
    known = lens.context.agent_version
    return Token("agentVersion") if known and field.value == known and field.key.endswith("version") else None


def agent_version(text: str, lens: Lens) -> Iterator[Span]:
    """The agent's version behind a name: ``agent/1.2.3``, ``v1.2.3``."""
    for match in lens.version.finditer(text) if lens.version else ():
        yield Span(match.start(), match.end(), Token("agentVersion"))


# ── by meaning and shape ────────────────────────────────────────────────────────────────────────────────────────────


def event_time(field: Field, _: Lens) -> Token | None:
    """A number in a field that means a moment, if it can be one (seconds to nanoseconds since 1970)."""
    value = field.value
    if (isinstance(value, str) and not value.isdigit()) or isinstance(value, bool) or value is None:
        return None
    return Token("eventTime") if _TIME_KEY.search(field.key) and _is_epoch(float(value)) else None


def weekdays(text: str, lens: Lens) -> Iterable[Span]:
    """Weekdays beside a moment or a date."""
    return weekday_spans(text, lens.dates)


def moments(text: str, _: Lens) -> Iterable[Span]:
    """Full timestamps."""
    return moment_spans(text)


def duration_ms(field: Field, _: Lens) -> Token | None:
    """A number in a field that means a measured duration. 0 and -1 stay, and so do a tool's arguments."""
    value = field.value
    if isinstance(value, bool) or not isinstance(value, int | float) or value in (0, -1):
        return None
    keys = [snake(part) for part in field.path if isinstance(part, str)]
    inside = field.key in _PARTS and any(_DURATION_KEY.search(key) for key in keys[:-1])
    if not (inside or _DURATION_KEY.search(field.key)) or (field.key in _BARE and _ARGUMENTS & set(keys)):
        return None
    return Token("durationMs")


def durations(text: str, _: Lens) -> Iterable[Span]:
    """Durations that text labels as measured."""
    return duration_spans(text)


def pid_field(field: Field, _: Lens) -> Token | None:
    """A process or process group number."""
    value = str(field.value)
    number = value.isdigit() and value != "0" and not isinstance(field.value, bool)
    return Token("pid", value) if number and _PID_KEY.search(field.key) else None


def pid(text: str, _: Lens) -> Iterator[Span]:
    """A process number that text labels as one."""
    for match in _PID.finditer(text):
        yield Span(match.start(1), match.end(1), Token("pid", match[1]))


def literal(text: str, _: Lens) -> Iterator[Span]:
    """A literal ``{{``, so that it is not read as a token."""
    start = text.find(LITERAL)
    while start >= 0:
        yield Span(start, start + 2, before=ESCAPED)
        start = text.find(LITERAL, start + 2)


def _is_epoch(value: float) -> bool:
    return any(1e9 <= value / unit < 4.2e9 for unit in (1, 1e3, 1e6, 1e9))


@lru_cache(maxsize=16)
def _compiled(
    context: Context,
) -> tuple[tuple[Root, ...], tuple[tuple[str, re.Pattern[str]], ...], re.Pattern[str] | None, re.Pattern[str] | None]:
    folders = (("cwd", context.cwd), ("home", context.home), ("tmp", context.tmp), ("agent", context.agent))
    ports = "|".join(str(number) for number in context.ports)
    version = re.escape(context.agent_version or "")
    return (
        compile_roots(folders),
        compile_dates(context.dates),
        re.compile(rf"(?i)(?:(?<=[0-9a-z\]]:)|\bport(?: |=|: ?))({ports})(?![0-9A-Za-z])") if ports else None,
        re.compile(rf"(?<=[0-9A-Za-z][/@ ])v?{version}(?![0-9A-Za-z.+-])") if version.count(".") >= 2 else None,
    )


_LABELLED = re.compile(r"\b(?:Chunk|Trace|Request|Session|Job|Task|Run|Span|Correlation) ID: ([0-9A-Za-z][\w-]{5,})")
_PORT_KEY = re.compile(r"(^|_)port$")
_PID_KEY = re.compile(r"(^|_)(pid|pgid|ppid|process_id)$")
_PID = re.compile(
    r"(?i)\b(?:pid|pgid|ppid|process group(?: id)?|process id)(?: ?[:=] ?| )(\d+)\b|(?<=running with session ID )\d+\b"
)
_TIME_KEY = re.compile(
    r"(^|_)(at|time|timestamp|ts|created|updated|modified|started|completed|now)(_?(ms|s|us|ns|0))?$"
)
_DURATION_KEY = re.compile(
    r"(^|_)(duration|elapsed|latency|wall_time|took|runtime|time_to_first_token|ttft)(_time)?(_(ms|s|secs|seconds|us|ns|nanos))?$"
)
_PARTS = {"secs", "nanos", "seconds", "nanoseconds", "ms", "micros"}
_BARE = {"duration", "elapsed", "latency", "runtime", "took"} | _PARTS
_ARGUMENTS = {"arguments", "args", "input", "raw_input", "parameters", "params_schema", "input_schema"}

# The order: declared before generic; known and learned values before shapes; a longer claim before what it would hold.
RULES: tuple[Rule, ...] = (
    Rule(
        name="declared",
        tokens=("usedTokens",),
        what="what `[[normalize]]` of `agent.toml` names, e.g. a token count that depends on volatile text",
        field=declared_field,
        text=declared_text,
    ),
    Rule(
        name="rpcId",
        tokens=("rpcId",),
        what="JSON-RPC ids of the agent's own requests, by direction; the client's own stay",
        field=rpc_id,
    ),
    Rule(
        name="paths",
        tokens=("cwd", "home", "tmp", "agent", "cwdSlug", "homeSlug", "tmpSlug", "agentSlug"),
        what="the run's folders and the agent's install root, in every spelling, and as slugs",
        text=paths,
        expands=True,
    ),
    Rule(
        name="identity",
        tokens=tuple(kind for kind, _, _ in IDENTITIES),
        what="values of identity fields, wherever they stand; under 6 characters or all digits, in their field only",
        field=short_identity,
        text=learned,
        expands=True,
    ),
    Rule(name="uuid", tokens=("uuid",), what="any uuid but the nil one", text=uuid),
    Rule(
        name="port",
        tokens=("port",),
        what="ports the harness opened, behind a colon or the word",
        field=port_field,
        text=port,
        expands=True,
    ),
    Rule(
        name="eventTime",
        tokens=("eventTime",),
        what="full timestamps by shape; epoch numbers in fields that mean a moment",
        field=event_time,
        text=moments,
    ),
    Rule(
        name="date",
        tokens=tuple(kind for kind, _, _ in DATES),
        what="the run's dates in every rendering",
        text=dates,
        expands=True,
    ),
    Rule(
        name="weekday",
        tokens=("weekday",),
        what="a weekday right beside a timestamp or one of the run's dates",
        text=weekdays,
    ),
    Rule(
        name="durationMs",
        tokens=("durationMs",),
        what="measured durations: by field, or labelled in text (`Wall time: N`); 0 and -1 stay",
        field=duration_ms,
        text=durations,
    ),
    Rule(
        name="pid",
        tokens=("pid",),
        what="process numbers: by field, or labelled in text (`PID: N`, `PGID: N`)",
        field=pid_field,
        text=pid,
    ),
    Rule(name="labelledId", tokens=("id",), what="ids labelled in text (`Chunk ID: N`)", text=labelled_id),
    Rule(
        name="agentVersion",
        tokens=("agentVersion",),
        what="the version of the agent under test, in fields named so and behind a name",
        field=agent_version_field,
        text=agent_version,
    ),
    Rule(name="literal", tokens=(), what="a literal `{{` in live text becomes `{{{{`", text=literal, expands=True),
)
