"""The hollow checks against recordings of another project, where some goldens are known to be hollow.

Those folders have another layout and no ``[expect]``, so the checks run on the parsed logs alone.
"""

import json
import os
from pathlib import Path

import pytest
from fixture_guard.checks import hollow
from fixture_guard.evidence import read_evidence
from fixture_guard.finding import render
from fixture_guard.layout import read_prompts
from llm_replay import parse_log

CASES = os.environ.get("SNAPSHOT_CASES")
pytestmark = pytest.mark.skipif(not CASES, reason="SNAPSHOT_CASES is not set")

HOLLOW = {
    ("background-job-admission", "EXIT_CODE"),  # the cap under test is ignored, and the check of it fails
    ("subagent-list-agents", "UNCALLED_TOOL"),  # interrupt_agent is demanded and never called
    ("workspace-edit", "LINE_COUNT"),  # two lines are demanded, three are shown
    ("fs-policy-reject", "FORBIDDEN_TOOL"),  # reading is forbidden, and the model reads
}


def read_case(folder: Path, tools: frozenset[str] | None = None) -> hollow.Story:
    logs = [(path.name, parse_log(path.read_text(), str(path))) for path in sorted(folder.glob("session*.jsonl"))]
    prompts = read_prompts(f"{folder.name}/input.json", (folder / "input.json").read_bytes(), [])
    script = f"{folder.name}/input.json"
    return hollow.Story(path=folder.name, script=script, prompts=prompts, evidence=read_evidence(logs), tools=tools)


def called(folders: list[Path]) -> frozenset[str]:
    return frozenset(call.name for folder in folders for call in read_case(folder).evidence.calls)


@pytest.mark.parametrize("offer", ["unknown", "known"])
def test_the_known_hollow_goldens_are_found_and_no_others(offer):
    folders = sorted(path.parent for path in Path(CASES or "", "dsh").glob("*/*/input.json"))
    assert len(folders) > 40
    tools = None if offer == "unknown" else called(folders) | {"interrupt_agent", "job_list", "mcp", "skill", "search"}
    found = {
        (folder.name, finding.code): finding
        for folder in folders
        for check in HOLLOW_CHECKS
        for finding in check(read_case(folder, tools))
    }
    for (name, _), finding in found.items():
        print(name, render([finding], "human"), end="")
    assert set(found) == HOLLOW


def test_the_offer_of_a_log_that_names_its_tools_is_not_needed():
    story = read_case(Path(CASES or "", "dsh/acp-agent/subagent-list-agents"))
    (finding,) = hollow.check_uncalled_tools(story)
    assert "interrupt_agent" in finding.what
    assert json.loads(render([finding], "json"))[0]["code"] == "UNCALLED_TOOL"


HOLLOW_CHECKS = (
    hollow.check_exit_codes,
    hollow.check_unknown_tools,
    hollow.check_uncalled_tools,
    hollow.check_forbidden_tools,
    hollow.check_answers,
    hollow.check_line_counts,
)
