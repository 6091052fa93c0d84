"""The format of scripts: what a stand-in for a provider says to which call. Pure.

A script is a superset of ``upstream.json``: ``{"entries": [...]}``, where an entry may also be a behaviour, by its name
or as an object, and may be for certain requests only (``conditions``). The README tells the whole format.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from llm_dialects import (
    Chunks,
    Entry,
    EntryError,
    Json,
    RenderError,
    Request,
    Say,
    entry_from_json,
    fill_from_request,
    say_to_chunks,
    upstream_from_json,
)
from llm_dialects.entries import ENTRY_KEYS, SAY_KEYS, say_from_json
from llm_dialects.render import FROM_REQUEST
from llm_dialects.wire import compact
from llm_dialects.words import nearest
from msgspec import Struct

from llm_mock_server.behaviours import CONNECTION_REFUSED, NAMES, check_name
from llm_mock_server.conditions import ALWAYS, When, when_from_json
from llm_mock_server.cursors import ByHeader, CursorRule, Shared, cursor_from_json
from llm_mock_server.dice import DEFAULT_WEIGHTS, weights_from_json
from llm_mock_server.fields import a_count, a_list, a_text, a_truth, a_word, an_object, shown, wrong
from llm_mock_server.meaning import USAGE, check_act, check_json
from llm_mock_server.options import Options, options_from_json
from llm_mock_server.placeholders import VALUE_NAME, any_values, fill, has_placeholders, live_values
from llm_mock_server.redaction import key_of_header

MAX_SEED = 2**32 - 1


class Named(Struct, frozen=True):
    """A call is answered by the behaviour ``name``."""

    name: str
    options: Options


Act = Entry | Say | Named
"""What an entry does."""

Filler = Callable[["ScriptEntry", Mapping[str, Json], Request], Act]
"""Fills an entry from live values and the request; raises ``RenderError`` and ``EntryError``."""


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
        return self.act if self.filler is None else self.filler(self, values, request)


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
    check_json(value, where)
    script = an_object(value, where, ("entries", *SETTINGS))
    if "entries" not in script:
        raise wrong(where, "the key 'entries' is missing", 'write {"entries": [...]}')
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
    return with_keys(script_read)


def read_upstream(text: str | bytes, where: str) -> Script:
    """Return the script of an ``upstream.json`` alone: no behaviours, no conditions, and of placeholders only
    ``{{fromRequest:...}}``; other braces are text.

    Raises:
        EntryError: not JSON, or an entry is wrong.
    """
    value = read_json(text, where)
    check_json(value, where)
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
    kind = kind_of(entry, where)
    an_object(entry, where, KINDS[kind])
    if kind == "behaviour":
        name = check_name(a_text(entry.get("name"), f"{where}.name"), f"{where}.name")
        return Named(name, options_from_json(entry.get("options", {}), f"{where}.options"))
    if kind == "say":
        for key, known in SAID.items():
            if isinstance(entry.get(key), dict):
                an_object(entry[key], f"{where}.{key}", known)
    try:
        return say_from_json(entry, where) if kind == "say" else entry_from_json(entry, where)
    except EntryError as error:
        raise EntryError(f"{error}\nmend: write {FORMS[kind]}") from None


# ── Helpers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def script_entry(value: Json, where: str, options: dict[str, Json]) -> ScriptEntry:
    """Read one entry; ``options`` are those of the script."""
    said = written_out(value, where)
    when = when_from_json(said.pop("when", {}), f"{where}.when")
    times = times_from_json(said.pop("times", 1), f"{where}.times")
    burst = a_truth(said.pop("burst", False), f"{where}.burst")
    if name_of(value) == CONNECTION_REFUSED:
        what = f"{CONNECTION_REFUSED!r} may stand first only: it is before any call"
        raise wrong(where, what, "put it first, or write 'connection_reset' for a call that fails")
    if said["kind"] == "behaviour":
        options_from_json(checkable(said.get("options", {}), where), f"{where}.options")
        said["options"] = merged(options, said.get("options", {}))
    act = settled(meant(checkable(said, where), where))
    label = act.name if isinstance(act, Named) else said["kind"]
    filler = from_values_and_request if has_placeholders(said) else None
    return ScriptEntry(where=where, label=label, json=said, act=act, when=when, times=times, burst=burst, filler=filler)


def written_out(value: Json, where: str) -> dict[str, Json]:
    """Return an entry as the object that it is, or is short for."""
    if isinstance(value, str):
        if value in KINDS:
            raise wrong(where, f"{value!r} is no behaviour but a kind of entry", f"write {FORMS[value]}")
        return {"kind": "behaviour", "name": value}
    if not isinstance(value, dict):
        what = f"must be an object or the name of a behaviour, it is {shown(value)}"
        raise wrong(where, what, 'write "success", say, or {"kind": "say", "text": ...}')
    return ({"chunks": []} if value.get("kind") == "throw" else {}) | value | {"kind": kind_of(value, where)}


def kind_of(entry: dict[str, Json], where: str) -> str:
    """Return the kind of an entry. That of a behaviour may have been taken for its name."""
    kind, place = entry.get("kind"), f"{where}.kind"
    if kind is None and isinstance(entry.get("name"), str):
        form = compact({"kind": "behaviour"} | entry)
        raise wrong(place, "must be a string that is not empty, it is missing", f"write {form}")
    if kind is None:
        raise wrong(place, "must be a string that is not empty, it is missing", f"write one of {', '.join(KINDS)}")
    if a_text(kind, place) not in KINDS and (name := nearest(kind, NAMES, MEANT)):
        what = f"no entry is of kind {shown(kind)}; the nearest known is a behaviour, {name!r}"
        raise wrong(place, what, f'write "{name}" alone, or {{"kind": "behaviour", "name": "{name}"}}')
    return a_word(kind, tuple(KINDS), place, "no entry is of kind")


def meant(entry: Json, where: str) -> Act:
    """Read what an entry does, and refuse what nobody means."""
    act = act_from_json(entry, where)
    if not isinstance(act, Named):
        check_act(act, where)
    return act


def settled(act: Act) -> Act:
    """Return ``act``, the shorthand written out where no id is to be invented: the same chunks each time are quick."""
    if isinstance(act, Say) and all(isinstance(call.id, str) for call in act.tool_calls):
        return Chunks(chunks=say_to_chunks(act, str))
    return act


def merged(options: dict[str, Json], own: dict[str, Json]) -> dict[str, Json]:
    """Return an entry's options over those of the script. One call of its own replaces the script's several."""
    hidden = {"toolCalls"} if {"toolName", "toolArguments"} & own.keys() else set()
    return {key: value for key, value in options.items() if key not in hidden} | own


def checkable(value: Json, where: str) -> Json:
    """Return ``value`` with something in place of each placeholder, so that it can be checked.

    Raises:
        EntryError: a placeholder that nothing could ever fill, or braces that begin none.
    """
    try:
        return fill(value, any_values) if has_placeholders(value) else value
    except RenderError as error:
        mend = "correct the pattern, or its end" if str(error).startswith(FROM_REQUEST) else BRACES
        raise wrong(where, str(error), mend) from None


def from_values_and_request(entry: ScriptEntry, values: Mapping[str, Json], request: Request) -> Act:
    """The filler of scripts."""
    return meant(fill(entry.json, live_values(values, request)), entry.where)


def from_request_only(entry: ScriptEntry, _: Mapping[str, Json], request: Request) -> Act:
    """The filler of an ``upstream.json``."""
    return act_from_json(fill_from_request(entry.json, request), entry.where)


def name_of(entry: Json) -> Json:
    """Return the name of the behaviour that ``entry`` asks for, if it asks for one."""
    return entry.get("name") if isinstance(entry, dict) and entry.get("kind") == "behaviour" else entry


def check_refusal(entries: list[Json], where: str) -> None:
    """Refuse a refusal that nothing follows, or that has members: no request is there that they could be about."""
    if isinstance(entries[0], dict):
        an_object(entries[0], where, ("kind", "name"))
    if len(entries) == 1:
        what = f"{CONNECTION_REFUSED!r} must be followed by what is said once the server listens"
        raise wrong(where, what, 'add an entry, e.g. "success"')


def with_keys(script: Script) -> Script:
    """Return a script whose conditions name sessions by their cursors' keys: what a secret header says is not kept."""
    if not isinstance(script.cursor, ByHeader):
        return script
    return msgspec.structs.replace(
        script, entries=tuple(with_key(entry, script.cursor.name) for entry in script.entries)
    )


def with_key(entry: ScriptEntry, header: str) -> ScriptEntry:
    """Return an entry whose session is named by the key that its ``header`` makes."""
    if entry.when.session is None:
        return entry
    when = msgspec.structs.replace(entry.when, session=key_of_header(header, entry.when.session))
    return msgspec.structs.replace(entry, when=when)


def check_sessions(script: Script) -> None:
    """Refuse conditions on the session where there is but one."""
    for entry in script.entries:
        if isinstance(script.cursor, Shared) and entry.when.session is not None:
            mend = 'tell them apart by "cursor", e.g. {"header": "x-session"}'
            raise wrong(f"{entry.where}.when.session", "all callers share one cursor", mend)


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
            what = f"{shown(name)} cannot be the name of a placeholder"
            raise wrong(where, what, "begin with a letter; then come letters, digits, - and _")
    return values


def raw_options(value: Json, where: str) -> dict[str, Json]:
    """Check the options of a script; they are read with those of each entry."""
    options_from_json(checkable(value, where), where)
    return dict(value)


def read_json(text: str | bytes, where: str) -> Json:
    """Return the JSON value of a file.

    Raises:
        EntryError: it is none, or says a thing twice.
    """
    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=refuse_constant)
    except RecursionError:
        raise wrong(where, "nested too deeply", "say it with fewer levels") from None
    except EntryError as error:
        raise wrong(where, str(error), "keep one of the two") from None
    except ValueError as error:
        raise wrong(where, f"not JSON: {error}", "correct the text there") from None


def once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return an object whose keys must be different ones."""
    read = dict(pairs)
    if len(read) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in read if keys.count(key) > 1)
        raise EntryError(f"an object has the key {shown(twice)} twice")
    return read


def refuse_constant(name: str) -> Json:
    """Refuse ``NaN`` and the infinities, which Python reads."""
    raise ValueError(f"{name} is no number of JSON")


# kind -> its keys, but for "when", "times" and "burst".
KINDS: Mapping[str, frozenset[str]] = {
    "behaviour": frozenset({"kind", "name", "options"}),
    **{kind: required | optional for kind, (required, optional) in (SAY_KEYS | ENTRY_KEYS).items()},
}

# kind -> what is to be written
FORMS: Mapping[str, str] = {
    "behaviour": '{"kind": "behaviour", "name": NAME, "options"?: {...}}',
    "say": '{"kind": "say", "text"?, "reasoning"?, "toolCalls"?: [{"name", "arguments", "id"?}], '
    '"usage"?: {"inputTokens", "outputTokens"}, "finish"?, "chunkSize"?}',
    "chunks": '{"kind": "chunks", "chunks": [{"type": ..., ...}, ...]}',
    "throw": '{"kind": "throw", "message", "code", "status"?, "chunks"?: [...]}',
    "hang": '{"kind": "hang", "readyFile"?}',
}

# Members of a "say" that are objects -> their keys
SAID: Mapping[str, tuple[str, ...]] = {"usage": tuple(USAGE), "finish": ("kind", "failure")}

BRACES = "write {{name}} or {{fromRequest:regex}}, and {{{{ for braces that are text"

MEANT = 0.75
"""How like a behaviour's name a wrong kind is if it was meant to be one."""

# key of a script besides "entries" -> its reader
SETTINGS: Mapping[str, Callable[[Json, str], Any]] = {
    "options": raw_options,
    "seed": lambda value, where: a_count(value, where, 0, MAX_SEED),
    "weights": weights_from_json,
    "repeatLast": a_truth,
    "cursor": cursor_from_json,
    "values": values_from_json,
}
