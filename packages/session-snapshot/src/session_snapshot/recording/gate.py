"""What is checked before a model is asked: a recording that could not be kept, or must not be made, costs nothing."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path

from fixture_guard import check, read_files, render, surroundings

from session_snapshot.errors import FixtureError, Refused
from session_snapshot.fixtures import PROVENANCE, pinning_folders
from session_snapshot.mode import under_ci
from session_snapshot.recording.secrets import lines_with
from session_snapshot.sandbox import capture_tree
from session_snapshot.steps import SCRIPT
from session_snapshot.strict import line_of
from session_snapshot.suites import Loaded, read, short
from session_snapshot.urls import UrlError, base_url

MACHINE_WRITTEN = ("session*.jsonl", "*.golden.jsonl", "header.system.md", "header.tools.json", "replay.override.json")
WRITTEN_BY_HAND = (SCRIPT, "scenario.toml", "upstream.json")
SEEDS = ("workspace", "workspace.expected")
SCRIPT_OF_PROVIDER = "upstream.json"


def refuse_under_ci(environment: Mapping[str, str]) -> None:
    """Refuse to record where nobody looks."""
    if under_ci(environment):
        raise Refused("recording needs a real key and rewrites fixtures, and this is CI", "record on your machine")


def url_of(loaded: Loaded, given: str | None) -> str:
    """The provider's base URL: ``given`` on the command line, else the suite's; ``""`` where a script stands in for it.

    Raises:
        Refused: a script answers and a URL is given, or it is none.
        FixtureError: ``agent.toml`` has none, or names one that is none.
    """
    name, live = loaded.place.full_name, loaded.scenario.recording == "live"
    if given is not None and not live:
        raise Refused(
            f"{name} is {loaded.scenario.recording}: --upstream asks a model, and what is recorded then is no script's",
            'leave --upstream out, or set recording = "live" in scenario.toml and remove upstream.json',
        )
    if given is not None:
        return given_url(given)
    return declared_url(loaded) if live else ""


def given_url(text: str) -> str:
    """The URL of the command line.

    Raises:
        Refused: it is none.
    """
    try:
        return base_url(text)
    except UrlError as error:
        raise Refused(f"--upstream: {error.what}", error.mend) from None


def declared_url(loaded: Loaded) -> str:
    """The URL in ``agent.toml``.

    Raises:
        FixtureError: there is none, or it is none.
    """
    url = loaded.agent.record.upstream_url if loaded.agent.record else ""
    try:
        if url:
            return base_url(url)
        what, mend = "[record] has no upstream_url", 'add upstream_url = "https://...", or give --upstream URL'
    except UrlError as error:
        what, mend = f"[record] upstream_url: {error.what}", error.mend
    text, where = read(loaded.place.suite_folder / "agent.toml")
    raise FixtureError(what, where, line_of(text, "upstream_url") or line_of(text, "record"), mend)


def refuse_authored(loaded: Loaded) -> None:
    """Refuse a scenario whose recording a person wrote."""
    if loaded.scenario.recording == "authored":
        raise Refused(
            f"{loaded.place.full_name} is authored: a person wrote its recording, and record would overwrite it",
            'edit session.jsonl by hand, or set recording = "live" or "scripted"',
        )


def refuse_no_oracle(loaded: Loaded) -> None:
    """Refuse a scenario that changes files and says nowhere how they must be in the end."""
    if loaded.scenario.workspace.final and not (loaded.place.folder / "workspace.expected").is_dir():
        raise Refused(
            f"{loaded.place.full_name} says [workspace] final = true and has no workspace.expected/",
            "write the files the agent must leave there, by hand: no mode ever writes them",
        )


# ── the key where it must not be ────────────────────────────────────────────────────────────────────────────────────


def refuse_key_in_files(loaded: Loaded, key: str) -> None:
    """Refuse a key in what a person wrote: it would be sent to the model, and stand in every file of the recording.

    Raises:
        Refused: it shows, and where.
    """
    found = [f"{name}:{line}" for name, content in written(loaded) for line in lines_with(content, key)]
    if found:
        raise Refused(
            f"the real key shows in {', '.join(found)}; nothing was sent",
            "take it out there (the agent is given a dummy key by itself), and revoke it where that was committed",
        )


def written(loaded: Loaded) -> Iterator[tuple[str, bytes]]:
    """What a person wrote of a scenario and its suite, by the name errors call it by."""
    folder, suite = loaded.place.folder, loaded.place.suite_folder
    for path in (suite / "agent.toml", *(folder / name for name in WRITTEN_BY_HAND)):
        if path.is_file():
            yield short(path), path.read_bytes()
    for seed in SEEDS:
        for name, content in capture_tree(folder / seed, []).items():
            yield f"{short(folder)}/{seed}/{name}", content


# ── what a live recording could not be kept with ────────────────────────────────────────────────────────────────────


def refuse_live_unkept(loaded: Loaded) -> None:
    """Refuse to ask a model for a recording that would be refused afterwards, whatever it answers.

    Raises:
        FixtureError: a script is left over, or no scenario of the suite pins the header class.
    """
    if loaded.scenario.recording != "live":
        return
    place, header_class = loaded.place, loaded.scenario.header.class_
    script = place.folder / SCRIPT_OF_PROVIDER
    if script.is_file():
        what = 'it is there, and recording = "live" has no script stand in for the model, so no model was asked'
        raise FixtureError(what, short(script), None, 'remove it, or set recording = "scripted" in scenario.toml')
    if header_class not in pinning_folders(place.suite_folder):
        raise FixtureError(
            f"no scenario of the suite pins the header class {header_class!r}, so no model was asked",
            f"{short(place.folder)}/scenario.toml",
            None,
            "write [header] and pin = true in this one, or in another that is recorded first",
        )


# ── what the guard would refuse afterwards ──────────────────────────────────────────────────────────────────────────


def refuse_unguarded_by_hand(loaded: Loaded, snapshots: Path) -> None:
    """Refuse a person's files in which the guard finds what would be found in them after the recording as well.

    Raises:
        FixtureError: it does.
    """
    scenario = loaded.place.full_name
    found = check(by_hand(snapshots, scenario), surroundings(), under=scenario)
    findings = [finding for finding in found if finding.code in OF_ONE_FILE]
    if findings:
        raise FixtureError(
            "the guard would refuse a recording with these files, so no model was asked\n" + render(findings, "human"),
            f"{scenario}/scenario.toml",
            None,
            f"mend what it names, then nox -s snapshot_record -- {scenario}",
        )


def by_hand(snapshots: Path, scenario: str) -> dict[str, bytes]:
    """All files of the suites but those that recording this scenario replaces."""
    return {name: content for name, content in read_files(snapshots).items() if not replaced(name, scenario)}


def replaced(name: str, scenario: str) -> bool:
    """Whether a file is one that recording this scenario replaces."""
    folder, _, file = name.rpartition("/")
    return folder == scenario and any(fnmatch(file, pattern) for pattern in (*MACHINE_WRITTEN, PROVENANCE))


OF_ONE_FILE = frozenset(
    {"ORPHAN", "LEGACY", "NAME", "ENCODING", "NEWLINE", "JSON", "SECRET_SHAPE", "SECRET_VALUE", "SECRET_ENTROPY",
     "PERSONAL_PATH", "PORT", "HOST"}
)  # fmt: skip
"""The findings that are about a file by itself, whatever is recorded beside it."""


# ── edits that would be lost ────────────────────────────────────────────────────────────────────────────────────────


def refuse_edited(loaded: Loaded) -> None:
    """Refuse a scenario whose machine-written files differ from the last commit: recording would lose the edit.

    Raises:
        Refused: they do; or git does not say.
    """
    git = shutil.which("git")
    if git is None or not has_commits(git, loaded):
        return
    # Neither is an edit to lose: a file that is gone, and one that the last commit does not have (a new scenario).
    options = ["--name-only", "-z", "--no-renames", "--diff-filter=MTU", "--relative"]
    patterns = ["--", *MACHINE_WRITTEN, PROVENANCE]
    outputs = [ask(git, loaded, "diff", *options, *which, *patterns) for which in (["HEAD"], ["--cached", "HEAD"])]
    edited = sorted({name for output in outputs for name in output.stdout.split("\0") if name})
    if edited:
        name = loaded.place.full_name
        raise Refused(
            f"{name}: not as in the last commit: {', '.join(edited)}; recording would overwrite that",
            f"commit or restore them, or nox -s snapshot_record -- {name} --force",
        )


def has_commits(git: str, loaded: Loaded) -> bool:
    """Whether the scenario lies in a checkout that has a last commit.

    Raises:
        Refused: git does not say.
    """
    asked = ask(git, loaded, "rev-parse", "--verify", "--quiet", "HEAD")
    if asked.returncode > 1 and "not a git repository" not in asked.stderr:
        name = loaded.place.full_name
        raise Refused(
            f"{name}: git does not say whether its files are as in the last commit: {asked.stderr.strip()}",
            f"mend that, or nox -s snapshot_record -- {name} --force",
        )
    return asked.returncode == 0


def ask(git: str, loaded: Loaded, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git where the scenario lies; it speaks English then."""
    command = [git, "-C", str(loaded.place.folder), *arguments]
    environment = os.environ | {"LC_ALL": "C", "LANGUAGE": "C"}
    return subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", env=environment)
