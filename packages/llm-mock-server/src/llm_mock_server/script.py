"""The format of scripts: what a stand-in for a provider says to which call. Pure.

A script is a superset of ``upstream.json``: ``{"entries": [...]}``, where an entry may also be a behaviour, by its name
or as an object, and may be for certain requests only (``conditions``). The README tells the whole format.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from llm_dialects import (
    Chunks,
    Entry,
    EntryError,
    Json,
    Request,
    Say,
    entry_from_json,
    fill_from_request,
    say_to_chunks,
    upstream_from_json,
)
from llm_dialects.entries import ENTRY_KEYS, SAY_KEYS, say_from_json
from llm_dialects.wire import compact, decode_json
from msgspec import Struct

from llm_mock_server.behaviours import CONNECTION_REFUSED, check_name
from llm_mock_server.conditions import ALWAYS, When, when_from_json
from llm_mock_server.cursors import CursorRule, Shared, cursor_from_json
from llm_mock_server.dice import DEFAULT_WEIGHTS, weights_from_json
from llm_mock_server.fields import a_count, a_list, a_text, a_truth, a_word, an_object
from llm_mock_server.options import Options, options_from_json
from llm_mock_server.placeholders import VALUE_NAME, any_values, fill, has_placeholders, live_values

MAX_SEED = 2**32 - 1


class Named(Struct, frozen=True):
    """A call is answered by the behaviour ``name``."""

    name: str
    options: Options


Act = Entry | Say | Named
"""What an entry does."""

Filler = Callable[[Json, Mapping[str, Json], Request], Json]
"""Fills an entry from live values and the request; raises ``RenderError``."""


class ScriptEntry(Struct, frozen=True, kw_only=True):
    """One entry of a script.

    Attributes:
        where: Its place in the script, e.g. ``entries[2]``.
        label: The name of its behaviour, or its kind.
        json: What it does, as JSON, the options of the script under its own.
        act: The same, read; with stand-ins for what is filled in.
        when: Which requests it is for.
        times: How many calls it answers; ``None``: any number.
        burst: Whether events between which nothing happens leave in one write.
        filler: How it is filled, ``None`` where nothing is.
    """

    where: str
    label: str
    json: Json
    act: Act
    when: When = ALWAYS
    times: int | None = 1
    burst: bool = False
    filler: Filler | None = None

    def filled(self, values: Mapping[str, Json], request: Request) -> Act:
        """Return what it does, placeholders filled.

        Raises:
            RenderError: a placeholder cannot be filled.
            EntryError: what it is filled with makes no entry.
        """
        return self.act if self.filler is None else act_from_json(self.filler(self.json, values, request), self.where)


class Script(Struct, frozen=True, kw_only=True):
    """What is said to whom.

    Attributes:
        where: Its name, for messages.
        seed: What ``random`` is decided by, with ``weights``.
        repeat_last: Whether a cursor that has no entry for a call repeats the one it took last.
        cursor: How requests are told apart.
        values: What placeholders are filled with unless the provider's own ``values`` say otherwise.
        refuse_first: Whether connections are refused at first: the server is to be started with ``listen=False``.
    """

    where: str
    entries: tuple[ScriptEntry, ...]
    seed: int = 0
    weights: Mapping[str, float] = msgspec.field(default_factory=lambda: DEFAULT_WEIGHTS)
    repeat_last: bool = False
    cursor: CursorRule = Shared()
    values: Mapping[str, Json] = {}
    refuse_first: bool = False


def read_script(text: str | bytes, where: str) -> Script:
    """Return the script that ``text`` holds; ``where`` names the file.

    Raises:
        EntryError: not JSON, or as ``script_from_json``.
    """
    return script_from_json(read_json(text, where), where)


def script_from_json(value: Json, where: str) -> Script:
    """Read a script; ``where`` is its name, for messages.

    Raises:
        EntryError: something in it cannot be meant; the message names the place and, for a wrong word, the nearest
            known one.
    """
    script = an_object(value, where, ("entries", *SETTINGS))
    if "entries" not in script:
        raise EntryError(f"{where}: the key 'entries' is missing")
    settings = {key: SETTINGS[key](said, f"{where}: {key}") for key, said in script.items() if key in SETTINGS}
    options = settings.pop("options", {})
    entries = a_list(script["entries"], f"{where}: entries")
    refuse_first = bool(entries) and name_of(entries[0]) == CONNECTION_REFUSED
    if refuse_first:
        check_refusal(entries, f"{where}: entries[0]")
    read = tuple(
        script_entry(entry, f"{where}: entries[{at}]", options)
        for at, entry in enumerate(entries)
        if at or not refuse_first
    )
    if "repeatLast" in settings:
        settings["repeat_last"] = settings.pop("repeatLast")
    script_read = Script(where=where, entries=read, refuse_first=refuse_first, **settings)
    check_sessions(script_read)
    return script_read


def read_upstream(text: str | bytes, where: str) -> Script:
    """Return the script of an ``upstream.json`` alone: no behaviours, no conditions, and of placeholders only
    ``{{fromRequest:...}}``; other braces are text.

    Raises:
        EntryError: not JSON, or an entry is wrong.
    """
    value = read_json(text, where)
    acts = upstream_from_json(value, where)
    entries = (
        ScriptEntry(
            where=f"{where}: entries[{at}]",
            label=entry["kind"],
            json=entry,
            act=settled(act),
            filler=from_request_only if "{{fromRequest:" in compact(entry) else None,
        )
        for at, (entry, act) in enumerate(zip(value["entries"], acts, strict=True))
    )
    return Script(where=where, entries=tuple(entries))


def act_from_json(entry: Json, where: str) -> Act:
    """Read what an entry does, ``when``, ``times`` and ``burst`` left out.

    Raises:
        EntryError: an unknown kind, key or behaviour (the nearest known one is named), or a wrong member.
    """
    kind = a_word(a_text(entry.get("kind"), f"{where}.kind"), tuple(KINDS), f"{where}.kind", "no entry is of kind")
    an_object(entry, where, KINDS[kind])
    match kind:
        case "behaviour":
            name = check_name(a_text(entry.get("name"), f"{where}.name"), f"{where}.name")
            return Named(name, options_from_json(entry.get("options", {}), f"{where}.options"))
        case "say":
            return say_from_json(entry, where)
        case _:
            return entry_from_json(entry, where)


# ── Helpers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def script_entry(value: Json, where: str, options: dict[str, Json]) -> ScriptEntry:
    """Read one entry; ``options`` are those of the script."""
    named: dict[str, Json] = {"kind": "behaviour", "name": value}
    said = named if isinstance(value, str) else dict(an_object(value, where))
    when = when_from_json(said.pop("when", {}), f"{where}.when")
    times = times_from_json(said.pop("times", 1), f"{where}.times")
    burst = a_truth(said.pop("burst", False), f"{where}.burst")
    if name_of(value) == CONNECTION_REFUSED:
        raise EntryError(f"{where}: {CONNECTION_REFUSED!r} may stand first only: it is before any call")
    if said.get("kind") == "behaviour":
        options_from_json(checkable(said.get("options", {})), f"{where}.options")
        said["options"] = merged(options, said.get("options", {}))
    act = settled(act_from_json(checkable(said), where))
    label = act.name if isinstance(act, Named) else said["kind"]
    filler = from_values_and_request if has_placeholders(said) else None
    return ScriptEntry(where=where, label=label, json=said, act=act, when=when, times=times, burst=burst, filler=filler)


def settled(act: Act) -> Act:
    """Return ``act``, the shorthand written out where no id is to be invented: the same chunks each time are quick."""
    if isinstance(act, Say) and all(isinstance(call.id, str) for call in act.tool_calls):
        return Chunks(chunks=say_to_chunks(act, str))
    return act


def merged(options: dict[str, Json], own: dict[str, Json]) -> dict[str, Json]:
    """Return an entry's options over those of the script. One call of its own replaces the script's several."""
    hidden = {"toolCalls"} if {"toolName", "toolArguments"} & own.keys() else set()
    return {key: value for key, value in options.items() if key not in hidden} | own


def checkable(value: Json) -> Json:
    """Return ``value`` with something in place of each placeholder, so that it can be checked."""
    return fill(value, any_values) if has_placeholders(value) else value


def from_values_and_request(entry: Json, values: Mapping[str, Json], request: Request) -> Json:
    """The filler of scripts."""
    return fill(entry, live_values(values, request))


def from_request_only(entry: Json, _: Mapping[str, Json], request: Request) -> Json:
    """The filler of an ``upstream.json``."""
    return fill_from_request(entry, request)


def name_of(entry: Json) -> Json:
    """Return the name of the behaviour that ``entry`` asks for, if it asks for one."""
    return entry.get("name") if isinstance(entry, dict) and entry.get("kind") == "behaviour" else entry


def check_refusal(entries: list[Json], where: str) -> None:
    """Refuse a refusal that nothing follows, or that has members: no request is there that they could be about."""
    if isinstance(entries[0], dict):
        an_object(entries[0], where, ("kind", "name"))
    if len(entries) == 1:
        raise EntryError(f"{where}: {CONNECTION_REFUSED!r} must be followed by what is said once the server listens")


def check_sessions(script: Script) -> None:
    """Refuse conditions on the session where there is but one."""
    for entry in script.entries:
        if isinstance(script.cursor, Shared) and entry.when.session is not None:
            what = f"{entry.where}.when.session: all callers share one cursor"
            raise EntryError(f'{what}; tell them apart first, e.g. by "cursor": {{"header": NAME}}')


def times_from_json(value: Json, where: str) -> int | None:
    """Read how many calls an entry answers: a number, or ``"any"``."""
    return None if value == "any" else a_count(value, f'{where} (or "any")', most=2**31 - 1)


def values_from_json(value: Json, where: str) -> dict[str, Json]:
    """Read values for placeholders, ``{name: value}``.

    Raises:
        EntryError: not an object, or a name that no placeholder can have.
    """
    values = an_object(value, where)
    for name in values:
        if not VALUE_NAME.fullmatch(name) or name.startswith("fromRequest:"):
            raise EntryError(f"{where}: {name!r} cannot be the name of a placeholder: a letter, then letters, - and _")
    return values


def raw_options(value: Json, where: str) -> dict[str, Json]:
    """Check the options of a script; they are read with those of each entry."""
    options_from_json(checkable(value), where)
    return dict(value)


def read_json(text: str | bytes, where: str) -> Json:
    """Return the JSON value of a file."""
    try:
        return decode_json(text)
    except ValueError as error:
        raise EntryError(f"{where}: not JSON: {error}") from None


# kind -> its keys, but for "when", "times" and "burst".
KINDS: Mapping[str, frozenset[str]] = {
    "behaviour": frozenset({"kind", "name", "options"}),
    **{kind: required | optional for kind, (required, optional) in (SAY_KEYS | ENTRY_KEYS).items()},
}

# key of a script besides "entries" -> its reader
SETTINGS: Mapping[str, Callable[[Json, str], Any]] = {
    "options": raw_options,
    "seed": lambda value, where: a_count(value, where, 0, MAX_SEED),
    "weights": weights_from_json,
    "repeatLast": a_truth,
    "cursor": cursor_from_json,
    "values": values_from_json,
}
