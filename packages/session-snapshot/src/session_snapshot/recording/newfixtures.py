"""From the capture of a recording run to the files it makes."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from llm_dialects.chunks import to_json
from llm_dialects.entries import Chunks, Entry, Hang, Throw, entry_to_json
from llm_dialects.errors import ProviderError, finish_of
from llm_replay import Event, SessionLog, Unfinished, derive_calls
from llm_replay.files import OVERRIDE, PRIMARY
from msgspec import UNSET
from normalizer import Document, canonical_line

from session_snapshot.calls import LiveCall
from session_snapshot.errors import FixtureError
from session_snapshot.fixtures import STDOUT, Pin, pins_of
from session_snapshot.harvest import log_names
from session_snapshot.headers import SYSTEM_FILE, TOOLS_FILE, format_system, format_tools
from session_snapshot.recording.heard import MALFORMED
from session_snapshot.run import Capture
from session_snapshot.suites import Loaded
from session_snapshot.surfaces import Placed, Surfaces, place_new, surfaces_of

HEADER = {"type": "session", "format": "session-snapshot", "version": 1}


def new_fixtures(loaded: Loaded, capture: Capture) -> tuple[dict[str, str], list[dict[str, int]]]:
    """The machine-written files of a recording (but ``stdout.golden.jsonl``), and the frames of each step.

    Raises:
        FixtureError: the run holds what the scenario does not declare (an override, a header class).
    """
    own_log = loaded.agent.persistence.format == "session-snapshot"
    if not own_log:
        capture = with_wire_log(capture)
    sources = sources_of(capture)
    if own_log:
        capture = as_logged(capture, sources)
    placed = place_new(capture.calls, sources)
    pins = dict(pins_of(loaded.place.suite_folder))
    if loaded.scenario.header.pin:
        pins.pop(loaded.scenario.header.class_, None)
    patches = patches_of(placed)
    surfaces = surfaces_of(loaded, capture, placed, pins, more=[patch_document(patches)])
    files = {name: text for name, text in surfaces.files.items() if name != STDOUT}
    files |= pin_files(loaded, surfaces, pins) | override_file(loaded, rewritten(patches, surfaces.more[0]))
    return files, capture.counts


# ── which entry of which file answers which call ────────────────────────────────────────────────────────────────────


def sources_of(capture: Capture) -> list[str]:
    """The ``source`` of every call, in order of arrival: the file and the entry derived from it.

    Raises:
        FixtureError: the agent's log holds a call that was never made, or lacks one that was answered.
    """
    left = list(derived(capture).items())
    sources = taken_from(left, [call.entry for call in capture.calls])
    if left:
        raise FixtureError(
            f"the agent's log tells of a model call that was never made ({left[0][0]})",
            PRIMARY,
            None,
            "correct its log",
        )
    return sources


def derived(capture: Capture) -> dict[str, Entry | Unfinished]:
    """What the agent's logs say of its model calls, by source."""
    return {
        f"{name}#{at}": entry
        for name, log in zip(log_names(len(capture.logs)), capture.logs, strict=True)
        for at, entry in enumerate(derive_calls(log))
    }


def taken_from(left: list[tuple[str, Entry | Unfinished]], taken: Sequence[Entry | None]) -> list[str]:
    """The source of each call, taken out of ``left``: first of all those that are certain. A call that failed may have
    left nothing in the log, and the override answers it.

    Raises:
        FixtureError: an answer is not in the log.
    """
    sources: dict[int, str] = {}
    for tells in (tells_of, may_tell_of):
        for number, entry in enumerate(taken):
            found = next((at for at, (_, logged) in enumerate(left) if tells(logged, entry)), None)
            if number not in sources and found is not None:
                sources[number] = left.pop(found)[0]
    for number, entry in enumerate(taken):
        if number not in sources and isinstance(entry, Chunks):
            what = f"the agent's log does not hold the answer of model call {number}"
            raise FixtureError(what, PRIMARY, None, "have the agent log it")
    return [sources.get(number, f"{OVERRIDE}#{number}") for number in range(len(taken))]


def tells_of(logged: Entry | Unfinished, taken: Entry | None) -> bool:
    """Whether a log's entry is about this call: it says the same. (How it was put on the wire no log says.)"""
    match taken:
        case None:
            return False
        case Throw() if not isinstance(logged, Unfinished):
            return logged.chunks == (*taken.chunks, finish_of(ProviderError(taken.code, taken.message)))
        case Throw() | Hang():
            said = logged.chunks if isinstance(logged, Unfinished) else ()
            return bool(said) and taken.chunks[: len(said)] == said
        case Chunks():
            return not isinstance(logged, Unfinished) and logged.chunks == taken.chunks


def may_tell_of(logged: Entry | Unfinished, taken: Entry | None) -> bool:
    """Whether a log's entry may be about this call: it broke off as well, or its agent made more of garbage than we."""
    if isinstance(logged, Unfinished):
        return not isinstance(taken, Chunks) and (taken is None or bool(taken.chunks) or not logged.chunks)
    if not isinstance(taken, Throw) or taken.code != MALFORMED:
        return False
    return logged.chunks[: len(taken.chunks)] == taken.chunks


def as_logged(capture: Capture, sources: Sequence[str]) -> Capture:
    """The capture with those silences told only so far as their agent logged them: what was on its way to an agent that
    had given up already is no part of the run, and in a replay would come in time."""
    logged = derived(capture)
    calls = [
        msgspec.structs.replace(call, entry=cut_to(call.entry, logged.get(source)))
        for call, source in zip(capture.calls, sources, strict=True)
    ]
    return msgspec.structs.replace(capture, calls=calls)


def cut_to(taken: Entry | None, logged: Entry | Unfinished | None) -> Entry | None:
    """An entry with no more chunks than the log holds of it, if it is a silence in a stream."""
    if not isinstance(taken, Hang) or taken.wire is not UNSET or not isinstance(logged, Unfinished):
        return taken
    said = logged.chunks
    return msgspec.structs.replace(taken, chunks=said) if taken.chunks[: len(said)] == said else taken


# ── the override ────────────────────────────────────────────────────────────────────────────────────────────────────


def patches_of(placed: Sequence[Placed]) -> list[dict[str, Any]]:
    """What a log cannot hold, as patches: failures and silences, and answers told as no dialect tells them."""
    patches: list[dict[str, Any]] = []
    lengths: dict[int, int] = {}
    for place in placed:
        at = lengths.get(place.lane, 0)
        lengths[place.lane] = at + 1
        entry = place.call.entry
        if entry is not None and not (isinstance(entry, Chunks) and entry.wire is UNSET):
            lane = {"lane": place.lane} if place.lane else {}
            patches.append({"at": at, "entry": entry_to_json(entry)} | lane)
    return patches


def patch_document(patches: Sequence[Mapping[str, Any]]) -> Document:
    """The model's words in patches, as the normaliser reads them: like those in a log."""
    return Document(OVERRIDE, "session", [patch_row(number, patch["entry"]) for number, patch in enumerate(patches)])


AS_TEXT = "told: "
"""What no JSON text begins with."""


def patch_row(number: int, entry: Mapping[str, Any]) -> dict[str, Any]:
    """One patch as an event of a log; ``texts`` are its message and its body.

    They are read as text, also where they are JSON: ids in them are the provider's, who gives them again in a replay.
    """
    texts = [AS_TEXT + entry.get("message", ""), AS_TEXT + entry.get("wire", {}).get("body", "")]
    return {"type": "llm/aux", "data": {"patch": number, "chunks": entry.get("chunks", []), "texts": texts}}


def rewritten(patches: Sequence[Mapping[str, Any]], normal: Document) -> list[dict[str, Any]]:
    """The patches with their words normalised."""
    return [
        dict(patch, entry=with_words(patch["entry"], value["data"]))
        for patch, value in zip(patches, normal.values, strict=True)
    ]


def with_words(entry: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with other words in the places of its own."""
    message, body = (text.removeprefix(AS_TEXT) for text in data["texts"])
    told = {"chunks": data["chunks"], "message": message}
    if "wire" in entry:
        told["wire"] = dict(entry["wire"], body=body) if "body" in entry["wire"] else entry["wire"]
    return {name: told.get(name, value) for name, value in entry.items()}


def override_file(loaded: Loaded, patches: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """``replay.override.json``: what a log cannot hold, as patches.

    Raises:
        FixtureError: there is some and the scenario does not declare it, or the other way round.
    """
    if bool(patches) != loaded.scenario.overridden:
        found = "a failure or a silence that a log cannot hold" if patches else "nothing that needs an override"
        value = "true" if patches else "false"
        where = f"{loaded.place.full_name}/scenario.toml"
        raise FixtureError(f"the run holds {found}", where, None, f"set overridden = {value}, then record again")
    return {OVERRIDE: format_override(patches)} if patches else {}


def format_override(patches: Sequence[Mapping[str, Any]]) -> str:
    """The file's text, one patch a line."""
    lines = ",\n".join(f"    {canonical_line(patch)}" for patch in patches)
    return f'{{\n  "patches": [\n{lines}\n  ]\n}}\n'


# ── header pins ─────────────────────────────────────────────────────────────────────────────────────────────────────


def pin_files(loaded: Loaded, surfaces: Surfaces, pins: Mapping[str, Pin]) -> dict[str, str]:
    """The files of the pin, where this scenario pins its class.

    Raises:
        FixtureError: a header that neither a pin of the suite nor this one holds.
    """
    strange = [header for header in surfaces.headers if header not in [pin.header for pin in pins.values()]]
    if not loaded.scenario.header.pin:
        if strange:
            raise unpinned(loaded, pins)
        return {}
    if len(strange) != 1:
        where = f"{loaded.place.full_name}/scenario.toml"
        what = f"it pins one header class, and the run has {len(strange)} headers that nobody else pins"
        raise FixtureError(what, where, None, "pin each class in a scenario that makes calls of that class alone")
    return {SYSTEM_FILE: format_system(strange[0].system), TOOLS_FILE: format_tools(strange[0].tools)}


def unpinned(loaded: Loaded, pins: Mapping[str, Pin]) -> FixtureError:
    """The error for a header that is nobody's."""
    name = loaded.scenario.header.class_
    where = f"{loaded.place.full_name}/scenario.toml"
    if name in pins:
        what, mend = (
            f"its header is not as {pins[name].folder} pins class {name!r}",
            "record the pinning scenario first",
        )
    else:
        what, mend = f"no scenario of the suite pins header class {name!r}", "set [header] pin = true in one of them"
    return FixtureError(what, where, None, f"{mend}, then this one")


# ── the log of an agent that writes none of ours ────────────────────────────────────────────────────────────────────


def with_wire_log(capture: Capture) -> Capture:
    """The capture with a session log written from the wire: ``llm/call`` and ``assistant/chunk`` rows."""
    session = capture.sessions[0] if capture.sessions else ""
    header = HEADER | {"id": session, "createdAt": 0, "cwd": str(capture.box.cwd)}
    rows = [row for number, call in enumerate(capture.calls) for row in wire_rows(number, call)]
    events = tuple(
        Event(type=kind, data=data, seq=seq, time=0, rest={}, line=seq + 2) for seq, (kind, data) in enumerate(rows)
    )
    log = SessionLog(PRIMARY, header, events, True)
    return msgspec.structs.replace(capture, logs=[log])


def wire_rows(number: int, call: LiveCall) -> list[tuple[str, dict[str, Any]]]:
    """The rows of one call."""
    chunks = call.entry.chunks if isinstance(call.entry, Chunks) else ()
    opened = ("llm/call", {"call": number, "model": str(call.request.params.get("model", ""))})
    return [opened, *(("assistant/chunk", {"call": number, "chunk": to_json(chunk)}) for chunk in chunks)]
