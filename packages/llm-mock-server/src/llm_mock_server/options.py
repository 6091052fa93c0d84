"""What a behaviour says and how fast: texts, tools and delays, read from JSON and checked. Pure."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec
from llm_dialects import EntryError, Json
from llm_dialects.entries import SaidCall, say_from_json
from llm_dialects.wire import compact, read_object
from msgspec import Struct

from llm_mock_server.fields import a_count, a_text, a_word, an_object, shown, wrong

MAX_DELAY_MS = 2**31 - 1
"""The longest delay: 24 days. More is a mistake in units, not a wish."""

MAX_BYTES = 2**28
"""The largest single event: 256 MiB, which is written at once."""


class Options(Struct, frozen=True, kw_only=True):
    """The parameters of the behaviours; in JSON their names are in camel case.

    Attributes:
        success_text: What an answer says.
        partial_text: What is said before a fault in the middle of an answer.
        reasoning_text: What is thought before an answer, where thinking is shown.
        chunk_size: Code points in one piece of a stream.
        chunk_delay_ms: Pause before each piece of ``slow_success``.
        disconnect_delay_ms: Pause before a connection is reset in the middle of an answer. Without it (0) the reset
            may overtake what was said before.
        headers_delay_ms: Pause before the head of ``slow_headers``.
        retry_after_ms: When ``rate_limit`` says to come again; at least 1.
        request_id: The id in the header that the provider uses for it; ``None``: one made from the call's token.
        tool_name: The tool that is called.
        tool_arguments: Its arguments, a JSON object as text.
        tool_calls: Several calls of one turn, instead of the two above.
        huge_bytes: Bytes of text in the one event of ``huge_event``.
        redirect_to: Where ``redirect`` points; ``None``: to the path that was asked, so that it is asked again.

    Raises:
        EntryError: a value that is none.
    """

    success_text: str = "mock response recovered"
    partial_text: str = "discarded partial response"
    reasoning_text: str = "mock reasoning"
    chunk_size: int = 8
    chunk_delay_ms: int = 25
    disconnect_delay_ms: int = 10
    headers_delay_ms: int = 1000
    retry_after_ms: int = 1000
    request_id: str | None = None
    tool_name: str = "mock_tool"
    tool_arguments: str = "{}"
    tool_calls: tuple[SaidCall, ...] = ()
    huge_bytes: int = 2**20
    redirect_to: str | None = None

    def __post_init__(self) -> None:
        """Check what Python code wrote as what JSON says."""
        for field in self.__struct_fields__:
            CHECKS[field](getattr(self, field), f"Options.{field}")


def options_from_json(value: Json, where: str, base: Options | None = None) -> Options:
    """Read options over those of ``base``; ``where`` is their place, for messages.

    Raises:
        EntryError: an unknown key (the nearest known one is named), or a value that is none.
    """
    read = {_field(key, where): _read(key, given, where) for key, given in an_object(value, where).items()}
    return msgspec.structs.replace(Options() if base is None else base, **read)


def options_to_json(options: Options) -> dict[str, Json]:
    """Return what differs from the defaults; the inverse of ``options_from_json``."""
    plain: dict[str, Any] = msgspec.to_builtins(options)
    told = {key: plain[field] for key, field in FIELDS.items() if getattr(options, field) != getattr(DEFAULT, field)}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in told.items()}


def _field(key: str, where: str) -> str:
    return FIELDS[a_word(key, tuple(FIELDS), where, "no option is called")]


def _read(key: str, value: Json, where: str) -> Any:
    """Return the value of one option. Arguments may be written as the object they are."""
    place = f"{where}.{key}"
    if key == "toolCalls":
        value = _read_calls(value, where)
    elif key == "toolArguments" and isinstance(value, dict):
        value = compact(value)
    CHECKS[FIELDS[key]](value, place)
    return value


def _read_calls(value: Json, where: str) -> tuple[SaidCall, ...]:
    try:
        return say_from_json({"kind": "say", "toolCalls": value}, where).tool_calls
    except EntryError as error:
        raise EntryError(f'{error}\nmend: write [{{"name": ..., "arguments": {{...}}, "id"?: ...}}, ...]') from None


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


# ── Checks: each raises EntryError ──────────────────────────────────────────────────────────────────────────────────


def _header(value: Any, where: str) -> None:
    """Refuse what would end a header's line, or begin another."""
    if value is None:
        return
    a_text(value, where)
    if not (value.isascii() and value.isprintable() and " " not in value):
        what = f"must be printable ASCII without spaces, since it goes into a header; it is {shown(value)}"
        raise wrong(where, what, "percent-encode what is not")


def _arguments(value: Any, where: str) -> None:
    if read_object(a_text(value, where)) is None:
        raise wrong(where, f"must be a JSON object, it is {shown(value)}", 'write {} or {"name": value}')


def _calls(value: Any, where: str) -> None:
    for at, call in enumerate(value):
        _arguments(call.arguments, f"{where}[{at}].arguments")


_delay = partial(a_count, least=0, most=MAX_DELAY_MS)

CHECKS: Mapping[str, Callable[[Any, str], object]] = {
    "success_text": a_text,
    "partial_text": a_text,
    "reasoning_text": a_text,
    "chunk_size": partial(a_count, most=MAX_DELAY_MS),
    "chunk_delay_ms": _delay,
    "disconnect_delay_ms": _delay,
    "headers_delay_ms": _delay,
    "retry_after_ms": partial(a_count, most=MAX_DELAY_MS),
    "request_id": _header,
    "tool_name": a_text,
    "tool_arguments": _arguments,
    "tool_calls": _calls,
    "huge_bytes": partial(a_count, most=MAX_BYTES),
    "redirect_to": _header,
}

FIELDS: Mapping[str, str] = {_camel(name): name for name in CHECKS}
"""JSON key -> field."""

DEFAULT = Options()
