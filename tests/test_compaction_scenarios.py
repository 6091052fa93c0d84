"""What ``compaction-recovery`` and ``compaction-summary-headroom`` are named for stands in their committed files, and
an agent that does otherwise makes them red."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from llm_dialects import Message, Request, TextBlock, honest_usage
from llm_dialects.dialects import DIALECTS
from llm_replay import Player, Served
from llm_replay.files import load_scenario_recording
from session_snapshot.fixtures import pins_of

from ci.projects import ROOT

SUITE = ROOT / "snapshots" / "session"
RECOVERY, HEADROOM = "compaction-recovery", "compaction-summary-headroom"
LEFT_OUT = "characters left out]"


def recorded(name: str) -> list[Request]:
    """The requests of a scenario, rebuilt from the committed rows."""
    headers = {label: pin.header for label, pin in pins_of(SUITE).items()}
    calls = load_scenario_recording(SUITE / name, headers).calls
    assert all(call.request is not None for call in calls)
    return [call.request for call in calls if call.request is not None]


def said(request: Request) -> str:
    """All that a request tells the model of the conversation."""
    return msgspec.json.encode(request.messages).decode()


def prompts(name: str) -> list[str]:
    """What the editor's user types."""
    steps = json.loads((SUITE / name / "input.json").read_text(encoding="utf-8"))["steps"]
    return [step["text"] for step in steps if step["op"] == "prompt"]


def summary_of(name: str) -> str:
    """What the provider answers when it is asked for a summary."""
    entries = json.loads((SUITE / name / "upstream.json").read_text(encoding="utf-8"))["entries"]
    return str(entries[2]["text"])


# ── The committed files ─────────────────────────────────────────────────────────────────────────────────────────────


def test_after_the_compaction_the_original_text_is_gone_and_the_summary_stands_in_its_place() -> None:
    first, refused, summary, again = recorded(RECOVERY)
    logbook, question = prompts(RECOVERY)
    for before in (first, refused, summary):
        assert logbook in said(before)
    assert logbook not in said(again)
    assert "ENTRY 1:" not in said(again)
    assert [message.role for message in again.messages] == ["user", "user"]
    assert summary_of(RECOVERY) in said(again)
    assert again.messages[-1] == refused.messages[-1] == Message(role="user", content=(TextBlock(text=question),))
    assert (again.system, again.tools, again.params) == (first.system, first.tools, first.params)
    rows = [json.loads(line) for line in (SUITE / RECOVERY / "requests.golden.jsonl").read_text("utf-8").splitlines()]
    assert (rows[3]["parent"], rows[3]["lane"], rows[3]["keep"]) == (1, 0, 0)


def test_the_request_for_a_summary_is_shortened_to_what_leaves_room_for_it() -> None:
    _, whole, summary, again = recorded(HEADROOM)
    survey = (SUITE / HEADROOM / "workspace" / "survey.txt").read_text(encoding="utf-8").splitlines()
    assert all(line in said(whole) for line in survey)
    gone = [line for line in survey if line not in said(summary)]
    assert 0 < len(gone) < len(survey)
    assert survey[0] not in gone
    assert survey[-1] not in gone
    assert said(summary).count(LEFT_OUT) == 1
    body = DIALECTS["openai-chat"].render_request(summary)
    assert honest_usage(body, ()).input_tokens + body["max_tokens"] <= WINDOW
    assert not any(line in said(again) for line in survey)
    assert summary_of(HEADROOM) in said(again)


WINDOW = 2000


def test_a_rewritten_history_that_has_drifted_is_still_bound_to_its_call() -> None:
    calls = recorded(RECOVERY)
    player = Player(load_scenario_recording(SUITE / RECOVERY, {n: p.header for n, p in pins_of(SUITE).items()}))
    found = [player.ask(request) for request in calls[:3]]
    checkpoint = Message(role="user", content=(TextBlock(text="The story so far: ships."),))
    outcome = player.ask(msgspec.structs.replace(calls[3], messages=(checkpoint, *calls[3].messages[1:])))
    assert isinstance(outcome, Served)
    assert (outcome.call.index, outcome.rank) == (3, 6)
    assert [difference.path for difference in outcome.differences] == ["/messages/0/content/0/text"]
    assert all(isinstance(served, Served) and served.rank == 1 for served in found)
    assert player.unconsumed() == ()


# ── Agents that do otherwise ────────────────────────────────────────────────────────────────────────────────────────

MUTANTS = {
    "keeps the text beside the summary": (
        "from acp_agent.session import Session\n"
        "Session.shorten = lambda self, count, message: self.messages.insert(0, message)\n",
        {RECOVERY: "/3", HEADROOM: "/3"},
    ),
    "forgets the summary": (
        "from acp_agent.session import Session\n"
        "Session.shorten = lambda self, count, message: self.messages.__delitem__(slice(count))\n",
        {RECOVERY: "/3", HEADROOM: "/3"},
    ),
    "summarises without heed to the window": (
        "import acp_agent.compacting as compacting\n"
        "fitted = compacting.fitted\n"
        "compacting.fitted = lambda messages, fits: fitted(messages, lambda text: True)\n",
        {HEADROOM: LEFT_OUT},
    ),
    "gives up when it is refused": (
        "import acp_agent.compacting as compacting\ncompacting.OVERFLOW = frozenset()\n",
        {RECOVERY: "was never asked for"},
    ),
    "logs no end": (
        "import acp_agent.session_log as log\n"
        "append = log.SessionLog.append\n"
        "log.SessionLog.append = lambda self, type, **data: type != 'compaction/end' and append(self, type, **data)\n",
        {RECOVERY: "compaction/end", HEADROOM: "compaction/end"},
    ),
}


@pytest.fixture
def snapshots(tmp_path: Path) -> Path:
    """A copy of suite ``session`` that a test may spoil."""
    shutil.copytree(SUITE, tmp_path / "snapshots" / "session")
    return tmp_path / "snapshots"


@pytest.mark.parametrize("name", MUTANTS)
def test_an_agent_that_does_otherwise_is_red(snapshots: Path, name: str) -> None:
    code, red = MUTANTS[name]
    run = f"{code}import sys\nimport acp_agent.__main__ as agent\nsys.exit(agent.main())\n"
    (snapshots.parent / "mutant.py").write_text(run, encoding="utf-8")
    settings = snapshots / "session" / "agent.toml"
    command = f'command = ["python", {str(snapshots.parent / "mutant.py")!r}]'
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.replace('command = ["acp-agent"]', command), encoding="utf-8")
    for scenario in (RECOVERY, HEADROOM):
        status, output = replay(snapshots, scenario)
        assert status == (1 if scenario in red else 0), output
        assert red.get(scenario, "") in output


@pytest.mark.parametrize("scenario", [RECOVERY, HEADROOM])
def test_the_scenarios_replay_inside_the_agent_too(snapshots: Path, scenario: str) -> None:
    settings = snapshots / "session" / scenario / "scenario.toml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.replace("\n[header]", 'seam = "adapter"\n\n[header]', 1), encoding="utf-8")
    status, output = replay(snapshots, scenario)
    assert status == 0, output


@pytest.mark.parametrize("dialect", ["openai-responses", "anthropic-messages", "gemini"])
def test_the_scenarios_replay_in_every_dialect(snapshots: Path, dialect: str) -> None:
    status, output = replay(snapshots, RECOVERY, HEADROOM, "--dialect", dialect)
    assert status == 0, output
    assert "2 passed" in output


def replay(snapshots: Path, *arguments: str) -> tuple[int, str]:
    """Replay some scenarios: exit code and output."""
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    result = subprocess.run(
        [sys.executable, "-m", "session_snapshot", "replay", *arguments, "--workers", "0"],
        cwd=snapshots.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, result.stdout
