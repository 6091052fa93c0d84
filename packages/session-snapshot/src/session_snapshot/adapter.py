"""The seam inside a Python agent: it replays its own model, and writes an account of what it consumed.

The agent gets a copy of the recording in its sandbox, by the variables of :func:`variables`, and an overlay over its
live configuration that swaps the provider (``[adapter]`` of ``agent.toml``). What it prints, logs and leaves behind is
compared as usual. What this seam does not prove: how requests are serialised, answers parsed, failures retried and
usage counted; that headers are as pinned, but for what the agent's log tells of them; and the wire invariants. Requests
are compared by the adapter itself, by meaning, and what drifted is in its account.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from llm_dialects.render import escape
from llm_replay import RecordedCall
from llm_replay.files import OVERRIDE, PRIMARY, REQUESTS
from msgspec import Struct

from session_snapshot.calls import LiveCall
from session_snapshot.errors import FixtureError
from session_snapshot.fixtures import is_log, log_number
from session_snapshot.report import Failure
from session_snapshot.sandbox import Sandbox
from session_snapshot.steps import PromptAndCancel
from session_snapshot.suites import Loaded, short
from session_snapshot.tokens import json_text
from session_snapshot.told import Extra, places, render_all, write_files

FOLDER = "replay"
"""Where the recording's copy lies, beside cwd, home and temp."""

ACCOUNT = "account.json"


class Shown(Struct, frozen=True):
    """One difference, ready to be shown."""

    path: str
    shown: list[str]


class Stray(Struct, frozen=True):
    """A call that nobody recorded, and the nearest one that somebody did."""

    nearest: str | None
    differences: list[Shown]


class Repeat(Struct, frozen=True):
    """A call that asked again what request ``of`` asked."""

    source: str
    of: int


class Drifted(Struct, frozen=True):
    """A call whose request is not as recorded; it was answered all the same."""

    source: str
    differences: list[Shown]


class Account(Struct, frozen=True):
    """What became of the recording: ``consumed`` sources (``session.jsonl#0``) in the order they were asked for, and
    all that is wrong."""

    consumed: list[str]
    unconsumed: list[str]
    unrecorded: list[Stray]
    repeated: list[Repeat]
    drifted: list[Drifted]


# ── before boot ─────────────────────────────────────────────────────────────────────────────────────────────────────


def prepare(loaded: Loaded, folder: Path, box: Sandbox, known: Mapping[str, str]) -> Extra:
    """Put the recording of ``folder`` and the overlay where the agent finds them.

    ``known`` are the values of tokens without a number: the copy has them expanded, because only the harness knows
    all of them. Numbered ones are learned by the adapter, request by request.

    Raises:
        FixtureError: the suite does not say how its agent is told, or a step needs to see the wire.
    """
    adapter = loaded.agent.adapter
    if adapter is None:
        where = f"{short(loaded.place.suite_folder)}/agent.toml"
        mend = "add [adapter] with the arguments that swap the agent's provider"
        raise FixtureError('seam = "adapter", and the agent does not say how to use it', where, None, mend)
    refuse_blind(loaded)
    target = box.root / FOLDER
    target.mkdir()
    for name in recording_files(folder):
        text = (folder / name).read_text(encoding="utf-8")
        (target / name).write_text(expand_file(name, text, known), encoding="utf-8", newline="")
    write_files(adapter.files, box, places(loaded, box))
    return Extra(tuple(adapter.arguments), variables(loaded, target, box), target / ACCOUNT)


def refuse_blind(loaded: Loaded) -> None:
    """Refuse a step that waits for what is only seen on the wire."""
    for step in loaded.script.steps:
        if isinstance(step, PromptAndCancel) and not (step.wait_for_file or step.wait_for_update):
            raise FixtureError(
                "promptAndCancel waits for a model call, which nobody sees inside the agent",
                f"{short(loaded.place.folder)}/input.json",
                None,
                "name waitForUpdate or waitForFile",
            )


def recording_files(folder: Path) -> list[str]:
    """The names of the files a recording consists of, main session first, children by number."""
    logs = sorted((path.name for path in folder.iterdir() if is_log(path.name)), key=log_number)
    return [*logs, *(name for name in (REQUESTS, OVERRIDE) if (folder / name).is_file())]


def variables(loaded: Loaded, target: Path, box: Sandbox) -> dict[str, str]:
    """The variables by which the agent finds its recording (DESIGN section 6)."""
    names = recording_files(target)
    children = [str(target / name) for name in names if is_log(name) and name != PRIMARY]
    values = {
        "SNAPSHOT_FILE": str(target / PRIMARY),
        "SNAPSHOT_CHILD_FILES": os.pathsep.join(children),
        "SNAPSHOT_SESSIONS_ROOT": sessions_root(loaded, box),
        "SNAPSHOT_REPORT": str(target / ACCOUNT),
    }
    files = {"SNAPSHOT_OVERRIDE": OVERRIDE, "SNAPSHOT_REQUESTS": REQUESTS}
    return values | {variable: str(target / name) for variable, name in files.items() if name in names}


def sessions_root(loaded: Loaded, box: Sandbox) -> str:
    """The folder the agent's own logs land in: what stands before the first wildcard of ``[persistence] log``."""
    (pattern,) = render_all([loaded.agent.persistence.log], places(loaded, box))
    fixed = re.split(r"[*?\[]", pattern)[0]
    return fixed if fixed == pattern else str(Path(f"{fixed}x").parent)


# ── tokens ──────────────────────────────────────────────────────────────────────────────────────────────────────────

ADAPTERS_OWN = frozenset({"cwd", "home", "tmp"})
"""Places that the adapter puts tokens for in live requests: in recorded ones they stay tokens."""

TOKEN = re.compile(r"\{\{\{\{|\{\{([A-Za-z][A-Za-z0-9]*)\}\}")


def expand_file(name: str, text: str, known: Mapping[str, str]) -> str:
    """A recording's file with the ``known`` tokens expanded; all else, escapes too, stays as it is stored."""
    values = {key: value for key, value in known.items() if name != REQUESTS or key not in ADAPTERS_OWN}
    if name == OVERRIDE:
        return encode(expand(msgspec.json.decode(text), values))
    lines = (expand(msgspec.json.decode(line), values) for line in text.split("\n") if line)
    return "".join(encode(line) for line in lines)


def encode(value: Any) -> str:
    """A JSON line."""
    return msgspec.json.encode(value).decode() + "\n"


def expand(value: Any, known: Mapping[str, str], key: str = "") -> Any:
    """``value`` with known tokens replaced in every string; text that is itself JSON gets them escaped."""
    match value:
        case str():
            fill = json_text if key in STORED_JSON_TEXT else str
            return TOKEN.sub(lambda found: filled(found, known, fill), value)
        case dict():
            return {name: expand(item, known, name) for name, item in value.items()}
        case list():
            return [expand(item, known, key) for item in value]
        case _:
            return value


def filled(found: re.Match[str], known: Mapping[str, str], fill: Callable[[str], str]) -> str:
    """The live value of a token as it is stored; the token itself where it is not known, or is an escape."""
    return escape(fill(known[found[1]])) if found[1] in known else found[0]


STORED_JSON_TEXT = frozenset({"arguments", "argumentsDelta", "args"})
"""Members of stored logs and entries whose text is itself JSON; ``args`` is that of packed rows."""


# ── after the run ───────────────────────────────────────────────────────────────────────────────────────────────────


def read_account(data: bytes | None) -> Account | Failure:
    """What the agent wrote, or what is wrong with it."""
    if data is None:
        detail = "mend: have the agent write SNAPSHOT_REPORT when it exits (ReplayAdapter does)"
        return Failure("consumed", "the agent wrote no account of what it replayed", detail)
    try:
        return msgspec.json.decode(data, type=Account)
    except msgspec.MsgspecError as error:
        return Failure("consumed", f"the agent's account of what it replayed is none: {error}", "see SNAPSHOT_REPORT")


def calls_of(account: Account, recorded: Sequence[RecordedCall]) -> list[LiveCall]:
    """The calls the agent made, as they were recorded: for facts about the run, not for comparison."""
    by_source = {call.source: call for call in recorded if call.request is not None}
    made = [by_source[source] for source in account.consumed if source in by_source]
    return [
        LiveCall(number, call.request, b"", call.index, call.entry)
        for number, call in enumerate(made)
        if call.request is not None
    ]


def strange(account: Account) -> Iterable[Failure]:
    """Model calls that nothing recorded answers, or that are not as recorded."""
    for stray in account.unrecorded:
        what = f"a model call is not in the recording; the nearest is {stray.nearest or 'none: it is used up'}"
        yield Failure("requests", what, lines(stray.differences), mended_by=None)
    for repeat in account.repeated:
        what = f"a model call repeats request {repeat.of}, which {repeat.source} answered"
        yield Failure("requests", what, "nobody recorded the repeat; the same answer was given again", mended_by=None)
    for drift in account.drifted:
        yield Failure("requests", f"the request of {drift.source} is not as recorded", lines(drift.differences))


def missing(account: Account) -> Iterable[Failure]:
    """Recorded calls that the agent never made."""
    for source in account.unconsumed:
        what = f"recorded call {source} was never asked for"
        yield Failure("consumed", what, "mend: record the scenario again if the agent rightly makes fewer calls")


def lines(differences: Sequence[Shown]) -> str:
    """Differences as text."""
    return "\n".join(line for difference in differences for line in difference.shown)
