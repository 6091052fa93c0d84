"""``replay --dialect``: the agent is told to speak another dialect, and the recording is told in it."""

from collections.abc import Iterable

import msgspec
from llm_dialects import DIALECTS
from llm_dialects.requests import Request
from llm_dialects.words import nearest
from llm_replay import RecordedCall, Recording, requests_to_rows, row_to_json
from llm_replay.files import PRIMARY, REQUESTS
from msgspec import Struct
from normalizer import canonical_lines

from session_snapshot.agent import Agent, Model, OtherDialect, parse_agent
from session_snapshot.errors import FixtureError, Refused
from session_snapshot.fixtures import Committed, Pin, is_log
from session_snapshot.headers import header_of
from session_snapshot.retelling import Retelling, answer_notes, request_notes, uncounted, untold
from session_snapshot.suites import Loaded, Place, read, short


def known_dialect(name: str) -> str:
    """``name``, which is a dialect's.

    Raises:
        Refused: it is none.
    """
    if name not in DIALECTS:
        near = nearest(name, DIALECTS)
        raise Refused(f"unknown dialect {name!r}", f"write {near!r}" if near else f"one of: {', '.join(DIALECTS)}")
    return name


def demand_spoken(places: Iterable[Place], dialect: str) -> None:
    """Check that every suite of ``places`` says how its agent speaks ``dialect``.

    Raises:
        Refused: it is no dialect.
        FixtureError: one does not.
    """
    known_dialect(dialect)
    for folder, place in {place.suite_folder: place for place in places}.items():
        speaking(parse_agent(*read(folder / "agent.toml")), place, dialect)


def speaking(agent: Agent, place: Place, dialect: str) -> Agent:
    """The agent, told to speak ``dialect``.

    Raises:
        FixtureError: ``agent.toml`` does not say how.
    """
    model, other = agent.model, agent.dialects.get(dialect)
    if model is not None and model.dialect == dialect:
        return agent
    if model is None or other is None:
        what = "does not say how the agent speaks " + dialect
        raise FixtureError(what, f"{short(place.suite_folder)}/agent.toml", None, how_to_say(model, dialect))
    return msgspec.structs.replace(
        agent,
        model=laid_over(model, other, dialect),
        command=[*agent.command, *other.arguments],
        env=agent.env | other.env,
    )


def laid_over(model: Model, other: OtherDialect, dialect: str) -> Model:
    """``[model]`` with what a ``[dialects]`` entry says."""
    names = ("base_url_env", "key_env", "name", "name_env", "session_header")
    said = {name: getattr(other, name) for name in names if getattr(other, name) is not None}
    return msgspec.structs.replace(model, dialect=dialect, files=[*model.files, *other.files], **said)


def how_to_say(model: Model | None, dialect: str) -> str:
    """What to write so that an agent speaks ``dialect``."""
    usual = USUAL[dialect]
    variables = f'base_url_env = "{usual.base_url_env}" and key_env = "{usual.key_env}"'
    if model is None:
        return f'add [model] with dialect = "{dialect}", {variables}'
    return f"add [dialects.{dialect}] with {variables}, and with arguments, env or files that make it speak {dialect}"


def retold(loaded: Loaded, committed: Committed, dialect: str) -> tuple[Loaded, Committed, list[str]]:
    """The scenario with its agent speaking ``dialect`` and its recording told in it; and what is not compared then.

    Raises:
        FixtureError: ``agent.toml`` does not say how, or the dialect cannot say what the model said.
    """
    agent = speaking(loaded.agent, loaded.place, dialect)
    recorded = recorded_dialect(loaded, committed)
    spoken = msgspec.structs.replace(loaded, agent=agent)
    if recorded == dialect:
        return spoken, committed, []
    calls = committed.recording.calls
    refuse_untold(loaded, calls, recorded, dialect)
    retelling = Retelling(recorded, dialect, not uncounted(calls, dialect))
    asked = [call.request for call in calls if call.request is not None]
    notes = [*answer_notes(calls, dialect), *request_notes(asked, recorded, retelling)]
    return spoken, told_again(committed, retelling), notes


def recorded_dialect(loaded: Loaded, committed: Committed) -> str:
    """The dialect a recording was made in: as its provenance says, else the agent's own."""
    told = committed.provenance.dialect if committed.provenance is not None else ""
    own = loaded.agent.model.dialect if loaded.agent.model is not None else ""
    return told if told in DIALECTS else own


def refuse_untold(loaded: Loaded, calls: tuple[RecordedCall, ...], recorded: str, dialect: str) -> None:
    """Refuse a recording in which the model says what ``dialect`` cannot.

    Raises:
        FixtureError: naming the answer, and what cannot be said of it.
    """
    for lost in untold(calls, dialect):
        file, _, at = lost.call.source.partition("#")
        raise FixtureError(
            f"answer {at} cannot be told in {dialect}, which cannot say {lost.why}",
            f"{short(loaded.place.folder)}/{file or PRIMARY}",
            None,
            f"replay {loaded.place.full_name} in a dialect that can, e.g. --dialect {recorded}",
        )


def told_again(committed: Committed, retelling: Retelling) -> Committed:
    """What is committed, in the form that is compared across dialects."""
    calls = tuple(common_call(call, retelling) for call in committed.recording.calls)
    texts = {
        name: retelling.log(text, name) if is_log(name) and committed.own_log else text
        for name, text in committed.texts.items()
    }
    if REQUESTS in texts:
        texts[REQUESTS] = rows_text(calls)
    pins = {name: common_pin(pin, retelling) for name, pin in committed.pins.items()}
    return msgspec.structs.replace(committed, recording=Recording(calls), texts=texts, pins=pins, retelling=retelling)


def common_call(call: RecordedCall, retelling: Retelling) -> RecordedCall:
    """A recorded call with its request as both dialects can say it."""
    return call if call.request is None else msgspec.structs.replace(call, request=retelling.request(call.request))


def common_pin(pin: Pin, retelling: Retelling) -> Pin:
    """A pin with its header as both dialects can say it."""
    bare = Request(system=pin.header.system, tools=pin.header.tools, messages=(), params={})
    return msgspec.structs.replace(pin, header=header_of(retelling.request(bare)))


def rows_text(calls: tuple[RecordedCall, ...]) -> str:
    """The rows of calls, as ``requests.golden.jsonl`` would have them."""
    headers = [(header_of(call.request), call.header) for call in calls if call.request is not None]
    rows = requests_to_rows(calls, lambda wanted: next(name for header, name in headers if header == wanted))
    return canonical_lines([row_to_json(row) for row in rows])


class Usual(Struct, frozen=True):
    """What agents that speak a dialect usually read: variables for the base URL and the key; the provider's own URL."""

    base_url_env: str
    key_env: str
    upstream_url: str


USUAL: dict[str, Usual] = {
    "openai-chat": Usual("OPENAI_BASE_URL", "OPENAI_API_KEY", "https://api.openai.com/v1"),
    "openai-responses": Usual("OPENAI_BASE_URL", "OPENAI_API_KEY", "https://api.openai.com/v1"),
    "anthropic-messages": Usual("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "https://api.anthropic.com"),
    "gemini": Usual("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com"),
}
"""By dialect; the names are those that the providers' own SDKs read."""
