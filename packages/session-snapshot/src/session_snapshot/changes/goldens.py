"""Take accepted differences into a scenario's goldens: coherent, proved by a replay of their own, all files together.

What the model said, overrides, ``[expect]`` and ``workspace.expected/`` are the author's or the provider's: never
touched.
"""

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from fixture_guard import machine_files
from llm_replay.files import OVERRIDE
from msgspec import Struct
from normalizer import frame_kind

from session_snapshot.changes.coherence import breach_of, needed
from session_snapshot.changes.drift import Change, changes_of, compared, counted
from session_snapshot.changes.pending import Pending
from session_snapshot.fixtures import PROVENANCE, STDOUT, load_committed, pins_of
from session_snapshot.headers import SYSTEM_FILE, TOOLS_FILE
from session_snapshot.hunks import apply, unchanged_fields
from session_snapshot.provenance import Provenance, answers_digest, format_provenance, lock_of, make_provenance
from session_snapshot.replay import replay_loaded
from session_snapshot.report import INTENT, Report, format_failures
from session_snapshot.staging import scenario_lock, swap

Accepted = AbstractSet[int]
"""Which of a scenario's changes are taken in: places in ``Pending.changes``."""


class NotWritten(Exception):
    """A choice that cannot be written: ``what`` in a sentence, ``mend``, and what would have to be accepted as well."""

    def __init__(self, what: str, mend: str, also: Accepted = frozenset()) -> None:
        """Keep the parts; ``str()`` shows them, the mend as the last line."""
        super().__init__(f"{what}\nmend: {mend}")
        self.what = what
        self.also = also


class Files(Struct, frozen=True):
    """A scenario's machine-written files after a choice: those that change by name, and those that go."""

    changed: Mapping[str, bytes]
    removed: Sequence[str]


def chosen_files(one: Pending, accepted: Accepted) -> Files:
    """The files with the accepted changes taken in.

    Raises:
        NotWritten: they would not be whole without others, or would change what the model said.
    """
    refuse_edited_answers(one)
    refuse_model(one, accepted)
    refuse_ambiguous(one, accepted)
    texts = {name: apply(texts, numbers(one, name, accepted)) for name, texts in one.texts.items()}
    steps = texts.pop(PROVENANCE, None)
    refuse_unreadable(one, accepted, texts)
    changed = {
        name: text.encode() for name, text in texts.items() if text is not None and text != one.texts[name].expected
    }
    removed = [name for name, text in texts.items() if text is None and one.texts[name].expected is not None]
    counts = new_counts(one, accepted) if steps is None else json.loads(steps)
    provenance = new_provenance(one, {**old_files(one), **changed}, removed, counts)
    return Files({**changed, PROVENANCE: format_provenance(provenance).encode()}, removed)


def numbers(one: Pending, name: str, accepted: Accepted) -> set[int]:
    """The accepted hunks of one file."""
    return {one.changes[at].number for at in accepted if one.changes[at].file == name}


def old_files(one: Pending) -> dict[str, bytes]:
    """The machine-written files as they are."""
    folder = one.loaded.place.folder
    others = (OVERRIDE, SYSTEM_FILE, TOOLS_FILE)
    files = {name: (folder / name).read_bytes() for name in others if (folder / name).is_file()}
    return files | {name: text.encode() for name, text in one.committed.texts.items()}


def new_counts(one: Pending, accepted: Accepted) -> list[dict[str, int]]:
    """The frames of each step: as counted now, but for kinds of which a frame that came, went or moved stays red."""
    old = one.committed.provenance.frames.steps if one.committed.provenance is not None else []
    red = {
        frame_kind(row)
        for at, change in enumerate(one.changes)
        if at not in accepted and change.file == STDOUT and not change.hunk.path and change.hunk.how != "bytes"
        for row in (change.hunk.expected, change.hunk.actual)
        if isinstance(row, dict)
    }
    if len(old) != len(one.capture.counts):
        return one.capture.counts
    pairs = zip(old, one.capture.counts, strict=True)
    return [
        {
            kind: count
            for step, keep in ((now, False), (was, True))
            for kind, count in step.items()
            if (kind in red) is keep
        }
        for was, now in pairs
    ]


def new_provenance(
    one: Pending, files: Mapping[str, bytes], removed: Sequence[str], counts: Sequence[Mapping[str, int]]
) -> Provenance:
    """The old provenance, made by refresh now."""
    old = one.committed.provenance
    model = one.loaded.agent.model
    left = {name: content for name, content in files.items() if name not in removed}
    return make_provenance(
        "refresh",
        old.upstream if old else "none",
        one.capture.agent_info,
        old.model if old else "",
        old.dialect if old else (model.dialect if model else ""),
        lock_of(one.loaded),
        machine_files(left, one.loaded.scenario.recording),
        counts,
        old.source if old else "",
        answers_digest(one.committed.recording),
    )


# ── refusals ────────────────────────────────────────────────────────────────────────────────────────────────────────


def refuse_edited_answers(one: Pending) -> None:
    """Refuse to put a seal on what the model never said; what a person wrote is a person's to change."""
    old = one.committed.provenance
    if one.loaded.scenario.recording == "authored" or old is None or not old.answers:
        return
    if old.answers != answers_digest(one.committed.recording):
        raise NotWritten(
            f"{one.name}: what the model said was edited by hand since it was recorded (provenance.toml holds another "
            "digest of the answers)",
            f"restore it from version control, or nox -s snapshot_record -- {one.name}",
        )


def refuse_model(one: Pending, accepted: Accepted) -> None:
    """Refuse to change what the model said: that is the recording's."""
    said = [one.changes[at] for at in sorted(accepted) if one.changes[at].hunk.model]
    if said:
        raise NotWritten(
            f"{one.name}: the replay's log does not say what the model said: {place_of(said[0])}: {said[0].phrase}",
            f"correct the agent's log; or nox -s snapshot_record -- {one.name}",
        )


def refuse_ambiguous(one: Pending, accepted: Accepted) -> None:
    """Refuse a choice after which a token would mean two things."""
    unchanged = (leaf for texts in one.texts.values() for leaf in unchanged_fields(texts))
    also = needed(one.changes, unchanged, accepted)
    if also:
        refuse_alone(one, accepted, also, "a token would mean two things: what was inserted renumbers others")


def refuse_unreadable(one: Pending, accepted: Accepted, texts: Mapping[str, str | None]) -> None:
    """Refuse a choice after which a file could not be replayed; what else must be accepted is what is in that file."""
    headers = {name: pin.header for name, pin in one.committed.pins.items()}
    new = {**one.committed.texts, **{name: text for name, text in texts.items() if text is not None}}
    file, why = breach_of(one.committed.texts, new, headers)
    if file:
        also = {at for at, change in enumerate(one.changes) if change.file == file and at not in accepted}
        if not also:
            raise NotWritten(f"{one.name}/{file}: {why}", f"nox -s snapshot_record -- {one.name}")
        refuse_alone(one, accepted, also, f"{file} could not be replayed: {why}")


def refuse_alone(one: Pending, accepted: Accepted, also: Accepted, why: str) -> None:
    """Say what has to be accepted along with a choice."""
    changes = [one.changes[at] for at in sorted(also)]
    kinds = dict.fromkeys(one.changes[at].kind for at in sorted([*accepted, *also]))
    lines = "".join(f"\n  {change.kind}: {place_of(change)}: {change.phrase}" for change in changes[:SHOWN])
    more = f"\n  and {len(changes) - SHOWN} more" if len(changes) > SHOWN else ""
    raise NotWritten(
        f"{one.name}: what is accepted cannot be written alone, since {why}\n"
        f"accept also: {counted(changes)}{lines}{more}",
        f"nox -s snapshot_refresh -- {one.name} --accept-kind {','.join(kinds)}",
        also,
    )


SHOWN = 5


def place_of(change: Change) -> str:
    """Where a change is: ``stdout.golden.jsonl:5``."""
    return f"{change.file}:{change.line}"


# ── proof and writing ───────────────────────────────────────────────────────────────────────────────────────────────


async def prove(one: Pending, files: Files, accepted: Accepted, base: Path) -> None:
    """Replay with the new files before they are written: it must show what the first replay showed, to the letter.

    So exactly the accepted differences are gone. What another scenario pins is that one's to mend.

    Raises:
        NotWritten: it shows something else.
    """
    staged = base / "proof" / one.loaded.place.suite / one.loaded.place.name
    staged.mkdir(parents=True)
    content = {name: data for name, data in {**old_files(one), **files.changed}.items() if name not in files.removed}
    for name, data in content.items():
        (staged / name).write_bytes(data)
    report, _ = await replay_loaded(one.loaded, load_committed(one.loaded, staged), base)
    if changed := differs(one, report):
        raise NotWritten(
            f"{one.name}: two replays differ, so that no golden can hold: {changed}",
            f"have the agent do the same each time, or declare what varies: {one.loaded.place.suite}/agent.toml",
        )
    own = ("", one.name) if len(accepted) == len(one.changes) else ()
    wrong = [
        failure
        for failure in report.failures
        if failure.surface in INTENT or failure.mended_by is None or failure.mended_by in own
    ]
    if wrong:
        told = format_failures(Report(one.name, wrong, {}, report.stderr))
        raise NotWritten(f"{one.name}: a replay of the new files is red\n{told}", "correct the agent")


def differs(one: Pending, again: Report) -> str:
    """The first difference between what two replays showed; ``""`` for none."""
    for name in sorted(one.report.actual.keys() | again.actual.keys()):
        first, second = one.report.actual.get(name), again.actual.get(name)
        if first != second:
            texts = compared("stdout", name, *(None if text is None else str(text) for text in (first, second)))
            change = changes_of("stdout", texts)[0]
            return f"{place_of(change)}: {change.phrase}"
    return ""


def write(one: Pending, files: Files, snapshots: Path) -> None:
    """Swap the new files in.

    Raises:
        Refused: the scenario is being recorded: that would be written over these.
    """
    with scenario_lock(snapshots, one.loaded.place):
        swap(snapshots, one.loaded.place.folder, files.changed, list(files.removed))
    pins_of.cache_clear()
