"""The committed fixtures of the DeepSeek Harness: ours must derive what theirs derives, and refuse where it refuses."""

import json
import os
from pathlib import Path

import pytest
from llm_dialects.entries import entry_to_json
from llm_replay import (
    FixtureError,
    apply_override,
    demand_finished,
    derive_replay_script,
    derive_scripts,
    format_fixture,
    parse_log,
    parse_override,
)

CASES = os.environ.get("SNAPSHOT_CASES")
FOLDERS = sorted(path.parent for path in Path(CASES, "dsh").glob("*/*/script.expected.json")) if CASES else []
pytestmark = pytest.mark.skipif(not CASES, reason="SNAPSHOT_CASES is not set")


def read_log(path):
    return parse_log(path.read_text("utf-8"), path.name)


def derived(log):
    try:
        return [entry_to_json(entry) for entry in derive_replay_script(log)]
    except FixtureError as error:
        return str(error)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_every_log_derives_what_its_own_project_derives(folder):
    expected = json.loads((folder / "script.expected.json").read_text("utf-8"))["derived"]
    for name, script in expected.items():
        ours = derived(read_log(folder / name))
        if isinstance(script, dict):
            assert "mend: " in ours and "override" in ours
        else:
            assert ours == script


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_scripts_with_overrides_are_those_of_its_own_project(folder):
    expected = json.loads((folder / "script.expected.json").read_text("utf-8"))["scripts"]
    children = [read_log(path) for path in sorted(folder.glob("session.*.jsonl"), reverse=True)]
    scripts = derive_scripts(read_log(folder / "session.jsonl"), children)
    lanes = [script.entries for script in scripts]
    override = folder / "replay.override.json"
    if override.exists():
        lanes = apply_override(lanes, parse_override(override.read_text("utf-8"), override.name))
    ours = [
        {
            "recordedId": script.recorded_id,
            "createdAt": script.created_at,
            "entries": [entry_to_json(entry) for entry in demand_finished(lane)],
            "primary": script.primary,
        }
        for script, lane in zip(scripts, lanes, strict=True)
    ]
    assert ours == expected


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_formatting_changes_nothing_but_clocks(folder):
    for path in folder.glob("session*.jsonl"):
        text = path.read_text("utf-8")
        formatted = format_fixture(parse_log(text, path.name))
        assert without_clocks(formatted) == without_clocks(text)
        assert format_fixture(parse_log(formatted, path.name)) == formatted


def without_clocks(text):
    rows = [json.loads(line) for line in text.split("\n")[:-1]]
    for row in rows:
        if "dt" in row.get("data", {}):
            row["data"]["dt"] = [0] * len(row["data"]["dt"])
    return rows


def test_there_are_cases():
    assert len(FOLDERS) >= 46
