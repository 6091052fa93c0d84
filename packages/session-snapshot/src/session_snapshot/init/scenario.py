"""``session-snapshot init SUITE/SCENARIO``: the written half of a new scenario, ready to be recorded."""

from pathlib import Path

from session_snapshot.agent import parse_agent
from session_snapshot.errors import Refused
from session_snapshot.fixtures import pinning_folders
from session_snapshot.init.answers import HANDSHAKE, check_name
from session_snapshot.init.files import scenario_json, scenario_toml, upstream_json
from session_snapshot.init.write import put, stage, staging
from session_snapshot.scenario import Header, parse_scenario
from session_snapshot.steps import SCRIPT, Authenticate, parse_script
from session_snapshot.suites import Place, read, refuse_no_suite, short


def place_for(snapshots: Path, suite: str, name: str) -> Place:
    """Where a new scenario will lie.

    Raises:
        Refused: there is no such suite (the nearest is named), it has such a scenario, or no folder can have the name.
    """
    refuse_no_suite(snapshots, suite)
    check_name(name)
    place = Place(suite, name, snapshots / suite / name)
    if place.folder.exists():
        raise Refused(f"{place.full_name} is there already ({short(place.folder)})", "choose another name")
    return place


def init_scenario(place: Place, snapshots: Path, prompt: str, answer: str | None) -> list[str]:
    """Write it; the lines that say so. ``answer``: a script says this in the provider's place.

    Raises:
        Refused: it cannot be written.
        FixtureError: a file of the suite is wrong.
    """
    pin = Header().class_ not in pinning_folders(place.suite_folder)
    texts = {
        "scenario.toml": scenario_toml(prompt, pin, answer is not None),
        SCRIPT: scenario_json(prompt, login_of(place.suite_folder)),
    }
    parse_scenario(texts["scenario.toml"], f"{short(place.folder)}/scenario.toml")
    parse_script(texts[SCRIPT], f"{short(place.folder)}/{SCRIPT}")
    if answer is not None:
        texts["upstream.json"] = upstream_json(answer)
    with staging(snapshots) as staged:
        stage(staged, texts)
        put(staged, place.folder)
    written = [f"{short(place.folder)}/{name} written" for name in texts]
    return [*written, f"next: session-snapshot record {place.full_name}   ({key_of(place, answer is not None)})"]


def key_of(place: Place, scripted: bool) -> str:
    """Which key a recording needs."""
    record = parse_agent(*read(place.suite_folder / "agent.toml")).record
    if record is None:
        return "agent.toml has to say in [record] which key that needs"
    what = "any word of 8 letters or more" if scripted else "the real key"
    return f"needs {record.key_env}, here or in .env: {what}"


def login_of(suite: Path) -> str:
    """The login that the suite's handshake begins with, if it does."""
    path = suite / HANDSHAKE / SCRIPT
    if not path.is_file():
        return ""
    steps = parse_script(*read(path)).steps
    return next((step.method_id for step in steps if isinstance(step, Authenticate)), "")
