"""Provenance: who made the machine-written files, from what, and whether they still are what was made."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from hashlib import sha256

from fixture_guard.digest import machine_digest, machine_files
from fixture_guard.finding import Finding
from fixture_guard.layout import Scenario, Suite, Tree
from fixture_guard.settings import Provenance, line_of_key

FILE = "provenance.toml"


def check_agreement(tree: Tree) -> Iterator[Finding]:
    """``made_by`` and ``upstream`` say another thing than ``recording``, or nobody is named."""
    for scenario, made in made_scenarios(tree):
        recording = scenario.settings.recording
        for key, value, allowed in (
            ("upstream", made.upstream, UPSTREAM[recording]),
            ("made_by", made.made_by, MADE_BY[recording]),
        ):
            if value not in allowed:
                what = f'{key} = "{value}", but recording = "{recording}" means {" or ".join(allowed)}'
                mend = f"{scenario.record()}, or say in scenario.toml how it was made"
                yield at_key(scenario, key, "PROVENANCE", what, mend)
        if made.upstream == "model" and not (made.model and made.dialect):
            what = "a model answered, and provenance does not say which (model, dialect)"
            yield at_key(scenario, "upstream", "PROVENANCE", what, scenario.record())


def check_digest(tree: Tree) -> Iterator[Finding]:
    """A machine-written file was changed after it was made."""
    for scenario, made in made_scenarios(tree):
        actual = machine_digest(machine_files(scenario.files, scenario.settings.recording))
        if made.digest != actual:
            what = f"the machine-written files are not those that were made (digest {actual[:12]}... is not recorded)"
            mend = f"undo the edit by hand, or: {scenario.refresh()}"
            yield at_key(scenario, "digest", "PROVENANCE_DIGEST", what, mend)


def check_lock(tree: Tree) -> Iterator[Finding]:
    """A suite with a lock of its own: the recording was made by another version of the agent than the locked one."""
    for suite in tree.suites:
        for scenario in suite.scenarios:
            fault = scenario.provenance and lock_fault(suite, scenario.provenance)
            if fault:
                yield at_key(scenario, fault[0], "PROVENANCE_LOCK", fault[1], scenario.refresh())


def lock_fault(suite: Suite, made: Provenance) -> tuple[str, str] | None:
    """Return the key and the sentence of what disagrees with the suite's lock; ``None`` where there is no lock.

    The agent's own version decides; where the lock does not hold the agent by name, the digest of the lock does.
    """
    name = next((name for name in LOCKS if name in suite.files), "")
    if not name:
        return None
    version = locked_versions(name, suite.files[name]).get(canonical_name(made.agent.name))
    if version is not None and version != made.agent.version:
        return "version", f"made by {made.agent.name} {made.agent.version}, but {name} holds {version}"
    digest = sha256(suite.files[name]).hexdigest()
    if version is None and made.lock.removeprefix("sha256:") != digest:
        return "lock", f"made under another {name} (this one's sha256 is {digest[:12]}...)"
    return None


def locked_versions(name: str, raw: bytes) -> Mapping[str, str]:
    """Return the version of every package a lock holds; an unreadable lock holds none."""
    try:
        if name == "uv.lock":
            packages = tomllib.loads(raw.decode())["package"]
            return {canonical_name(package["name"]): str(package.get("version", "")) for package in packages}
        packages = json.loads(raw)["packages"].items()
        return {canonical_name(path.rpartition("node_modules/")[2]): str(p.get("version", "")) for path, p in packages}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def canonical_name(name: str) -> str:
    """Return a package's name as locks spell it: lower case, runs of ``-_.`` as one ``-``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def made_scenarios(tree: Tree) -> Iterator[tuple[Scenario, Provenance]]:
    """Return the scenarios that have a readable provenance."""
    return ((scenario, scenario.provenance) for scenario in tree.scenarios if scenario.provenance)


def at_key(scenario: Scenario, key: str, code: str, what: str, mend: str) -> Finding:
    """Return a finding at a key of the scenario's provenance."""
    return Finding(scenario.at(FILE), line_of_key(scenario.text(FILE), key), code, what, mend)


LOCKS = ("uv.lock", "package-lock.json")
UPSTREAM = {"live": ("model",), "scripted": ("script",), "authored": ("none",)}
MADE_BY = {"live": ("record", "refresh"), "scripted": ("record", "refresh"), "authored": ("hand", "refresh")}
