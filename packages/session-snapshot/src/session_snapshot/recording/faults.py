"""What is refused once a recording has run: what went wrong on its way, and where the key shows."""

from collections.abc import Iterator, Mapping, Sequence

from llm_dialects.chunks import ReasoningDelta, TextDelta, ToolCallDelta
from llm_dialects.entries import Chunks, Entry, Hang, Throw, entry_to_json
from llm_dialects.errors import ProviderError, status_of
from llm_mock_server import CapturedRequest
from msgspec import UNSET
from normalizer import canonical_line

from session_snapshot.calls import LiveCall
from session_snapshot.errors import AgentError, FixtureError, Refused
from session_snapshot.evidence import intent_breaches
from session_snapshot.recording.forwarding import mend_unreachable
from session_snapshot.recording.heard import MALFORMED, REDIRECTED, TIMEOUT, UNREACHABLE
from session_snapshot.recording.secrets import find_key
from session_snapshot.replay import agent_failures
from session_snapshot.report import Report, format_failures
from session_snapshot.run import Capture
from session_snapshot.suites import Loaded, short
from session_snapshot.told import DUMMY_KEY
from session_snapshot.urls import bare


def again(loaded: Loaded, url: str = "") -> str:
    """The command that records once more from ``url``, where that is not the suite's own provider."""
    own = loaded.agent.record.upstream_url if loaded.agent.record is not None else ""
    elsewhere = f" --upstream {bare(url)}" if url and url != own else ""
    return f"nox -s snapshot_record -- {loaded.place.full_name}{elsewhere}"


def refuse_failed_calls(loaded: Loaded, calls: Sequence[LiveCall], variable: str, url: str) -> None:
    """Refuse a live recording in which the provider failed, unless ``[expect] error_codes`` says that it is about that.

    Raises:
        Refused: it did: which call, how, and what can be done.
    """
    if loaded.scenario.recording != "live":
        return
    meant = set(loaded.scenario.expect.error_codes or ()) - NEVER_MEANT
    for number, call in enumerate(calls):
        if isinstance(call.entry, Throw) and call.entry.code not in meant:
            what, mend = told_failure(call.entry, variable, url)
            raise Refused(f"the provider failed at model call {number}: {what}", f"{mend}, then {again(loaded, url)}")


def told_failure(failure: Throw, variable: str, url: str) -> tuple[str, str]:
    """A failure of the provider in a sentence, and what mends it."""
    status = status_told(failure)
    shown = f"HTTP {status}, " if status >= BAD_REQUEST and failure.code not in UNTOLD else ""
    if failure.code == UNREACHABLE:
        return failure.message, mend_unreachable(failure.message, url)
    return f"{shown}{failure.code}: {failure.message}", mend_of(failure.code, status, variable, bare(url))


def mend_of(code: str, status: int, variable: str, url: str) -> str:
    """What mends a failure: its code says more than its status, which not every provider uses alike."""
    mends = {
        "AUTH": f"set {variable} to a key that {url} takes",
        "PERMISSION": f"set {variable} to a key that may use this model",
        "NOT_FOUND": f"see that the model's name and the path of {url} are right (most end in /v1)",
        "RATE_LIMIT": "wait, or raise the account's limit",
        "QUOTA": "wait, or raise the account's limit",
        REDIRECTED: "name that base URL instead, if you trust it with the key",
        MALFORMED: f"see that {url} is an API of the agent's dialect",
    }
    by_status = {401: "AUTH", 403: "PERMISSION", 404: "NOT_FOUND", 429: "RATE_LIMIT"}
    return mends.get(code) or mends.get(by_status.get(status, ""), "try once more")


def status_told(failure: Throw) -> int:
    """The status that the provider answered with; 0 where the connection broke."""
    wire = failure.wire.status if failure.wire is not UNSET else UNSET
    if wire is not UNSET:
        return wire
    own = failure.status if failure.status is not UNSET else None
    return (status_of(ProviderError(failure.code, failure.message, own)) or 0) if not failure.chunks else 0


BAD_REQUEST = 400

NEVER_MEANT = frozenset({UNREACHABLE, REDIRECTED})
"""The codes of calls that no provider has taken: there is nothing to record of them."""

UNTOLD = (UNREACHABLE, REDIRECTED, MALFORMED, TIMEOUT)
"""The codes of failures that no provider told with a status."""


def refuse_unanswered(loaded: Loaded, calls: Sequence[LiveCall]) -> None:
    """Refuse to call a recording live in which no model said anything.

    Raises:
        FixtureError: none did.
    """
    if loaded.scenario.recording == "live" and not any(isinstance(call.entry, Chunks) for call in calls):
        raise FixtureError(
            'recording = "live" says that a model answered, and in this run none did',
            f"{short(loaded.place.folder)}/scenario.toml",
            None,
            'set recording = "scripted" and write upstream.json (without a model call: {"entries": []})',
        )


def refuse_faulty(loaded: Loaded, capture: Capture, url: str = "") -> None:
    """Refuse a run in which the agent misbehaved or that does not show what its author says it shows.

    ``url`` is the provider's, ``""`` a script's.

    Raises:
        AgentError: it misbehaved.
        FixtureError: ``[expect]`` is broken.
    """
    faults = list(agent_failures(capture))
    if faults:
        report = Report(loaded.place.full_name, faults, {}, capture.stderr)
        raise AgentError(
            f"the run went wrong, so it is not recorded\n\n{format_failures(report)}\n{silences(capture.calls)}",
            f"correct what is named there, then {again(loaded, url)}",
        )
    breaches = intent_breaches(loaded, capture)
    if breaches:
        raise FixtureError(
            "the run breaks [expect], so it is not recorded: " + "; ".join(breaches),
            f"{loaded.place.full_name}/scenario.toml",
            None,
            f"correct {'the agent' if url else 'upstream.json or the agent'}, or [expect] if the intent changed",
        )


def silences(calls: Sequence[LiveCall]) -> str:
    """The calls whose answer had not ended when the run did: the provider may be what is slow, and not the agent."""
    numbers = [str(call.number) for call in calls if isinstance(call.entry, Hang)]
    return f"model call {', '.join(numbers)}: the provider had not ended its answer by then\n" if numbers else ""


# ── the key ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def refuse_leaks(capture: Capture, files: Mapping[str, str | bytes], key: str) -> None:
    """Refuse a run in which the real key got anywhere it must not be.

    Raises:
        AgentError: it did, and where.
    """
    answers = list(showing(answers_of(capture.calls), key))
    others = list(showing([*of_the_agent(capture), *((f"the file {name}", text) for name, text in files.items())], key))
    if answers or others:
        asked = f"the agent is given {DUMMY_KEY!r} only: find where it took the key from, and revoke the key"
        told = "the provider tells it: use another key or endpoint, and revoke this one"
        raise AgentError(
            f"the real key shows in {', '.join([*answers, *others])}; nothing of it was written",
            told if answers else asked,
        )


def showing(places: Iterator[tuple[str, str | bytes]] | Sequence[tuple[str, str | bytes]], key: str) -> Iterator[str]:
    """The names of the places in which the key shows."""
    return (where for where, content in places if find_key(content, key))


def answers_of(calls: Sequence[LiveCall]) -> Iterator[tuple[str, str | bytes]]:
    """What the provider said, as it came and put together."""
    for number, call in enumerate(calls):
        if call.entry is not None:
            content = f"{canonical_line(entry_to_json(call.entry))}\n{joined(call.entry)}"
            yield f"the provider's answer to model call {number}", content


def joined(entry: Entry) -> str:
    """All pieces of text of an answer in one: a key may be cut between them."""
    pieces = []
    for chunk in entry.chunks:
        match chunk:
            case TextDelta(text=text) | ReasoningDelta(text=text) | ToolCallDelta(arguments_delta=text):
                pieces.append(text)
            case _:
                pass
    return "".join(pieces)


def of_the_agent(capture: Capture) -> Iterator[tuple[str, str | bytes]]:
    """All that the agent was told, said, asked and left."""
    for name, value in capture.environment.items():
        yield f"the agent's variable {name}", value
    yield "the agent's stdout", capture.stdout
    yield "the agent's stderr", capture.stderr
    for request in capture.requests:
        yield f"the agent's request {request.method} {request.path}", request.body
        yield f"the headers of the agent's request {request.method} {request.path}", told(request)
    for name, content in capture.after.items():
        yield f"{name} in the agent's folder", content
    for log in capture.logs:
        yield f"the agent's log {log.name}", canonical_line([log.header, *(event.data for event in log.events)])


def told(request: CapturedRequest) -> str:
    """What a request tells outside its body."""
    return "\n".join([request.query, *(f"{name}: {value}" for name, value in request.headers)])
