"""Suite ``session`` in every dialect: green where the agent behaves, red in the one in which it does not."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci.projects import ROOT

SCENARIOS = sorted(path.parent.name for path in (ROOT / "snapshots" / "session").glob("*/scenario.toml"))

OTHERS = {
    "openai-chat": None,
    "openai-responses": "openai-responses cannot say token counts that are not known",
    "anthropic-messages": "requests are compared without messages/*/content/*/isError, which anthropic-messages alone",
    "gemini": "requests are compared without alt, which gemini alone says",
}
"""What a note of a run in a dialect says; it can be said of no other dialect."""


@pytest.mark.parametrize("dialect", OTHERS)
def test_the_suite_is_green_in_every_dialect(dialect: str) -> None:
    code, output = snapshot(ROOT, "replay", "--suite", "session", "--dialect", dialect, "--workers", "2")
    assert code == 0, output
    assert f"{len(SCENARIOS)} passed" in output
    note = OTHERS[dialect]
    assert ("note: " not in output) if note is None else (f"note: {note}" in output)


MUTANT = """\
import json
import sys
from msgspec.structs import replace
from llm_dialects import DIALECTS, ReasoningBlock, ReasoningDelta, TextBlock, ToolResultPart, UsageChunk

name, how = {mutant}
dialect = DIALECTS[name]

def forget(part):
    return replace(part, content=(TextBlock(text="ok"),)) if isinstance(part, ToolResultPart) else part

def forgets_results(request):
    messages = [replace(m, content=tuple(map(forget, m.content))) for m in request.messages]
    return dialect.render_request(replace(request, messages=tuple(messages)))

def forgets_the_limit(request):
    body = dialect.render_request(request)
    return {{key: value for key, value in body.items() if key not in ("generationConfig", "max_output_tokens")}}

class Decoder:
    def __init__(self):
        self.inner = dialect.decoder()
    def feed(self, data):
        return [c for chunk in self.inner.feed(data) for c in CHANGES[how](chunk)]
    def close(self):
        return [c for chunk in self.inner.close() for c in CHANGES[how](chunk)]

def counts_double(chunk):
    twice = lambda usage: replace(usage, input_tokens=usage.input_tokens * 2)
    return [replace(chunk, usage=twice(chunk.usage)) if isinstance(chunk, UsageChunk) else chunk]

def does_not_hear_thinking(chunk):
    block = getattr(chunk, "block", None)
    thought = isinstance(chunk, ReasoningDelta) or isinstance(block, ReasoningBlock)
    return [] if thought or getattr(chunk, "block_type", "") == "reasoning" else [chunk]

CHANGES = {{"counts": counts_double, "thinking": does_not_hear_thinking}}
RENDERS = {{"results": forgets_results, "limit": forgets_the_limit}}
told = {{"render_request": RENDERS[how]}} if how in RENDERS else {{"decoder": Decoder}}
DIALECTS[name] = replace(dialect, **told)
import acp_agent.__main__ as agent
sys.exit(agent.main())
"""
"""The agent, with a defect that is seen in one dialect alone."""


@pytest.mark.parametrize(
    ("dialect", "how", "scenario", "said"),
    [
        ("gemini", "results", "bash-tool-turn", ["--- requests: ", "bash-tool-turn/requests.golden.jsonl:2"]),
        ("openai-responses", "limit", "text-turn", ["--- requests: ", "line 1", "max_tokens"]),
        ("anthropic-messages", "counts", "text-turn", ["--- session: ", "inputTokens"]),
        ("anthropic-messages", "thinking", "text-turn", ["--- stdout: ", "--- session: "]),
    ],
)  # fmt: skip
def test_an_agent_that_misbehaves_in_one_dialect_is_red_there_alone(
    copied: Path, dialect: str, how: str, scenario: str, said: list[str]
) -> None:
    mutant = copied / "mutant.py"
    mutant.write_text(MUTANT.format(mutant=(dialect, how)), encoding="utf-8")
    edit(copied, 'command = ["acp-agent"]', f"command = {json.dumps([sys.executable, str(mutant)])}")
    name = f"session/{scenario}"
    code, output = snapshot(copied, "replay", name, "--dialect", dialect)
    assert code == 1, output
    assert [part for part in said if part not in output] == [], output
    assert f"run again:    nox -s snapshot -- {name} --dialect {dialect}" in output
    assert "snapshot_refresh" not in output, "a refresh replays in the recorded dialect, where nothing is wrong"
    assert "note: requests are compared without stream_options" in output
    assert snapshot(copied, "replay", name)[0] == 0, "in the recorded dialect nothing is wrong"


def test_what_a_dialect_cannot_tell_is_refused(copied: Path) -> None:
    """The model's answer ends as a plain stop beside its call."""
    log = copied / "snapshots" / "session" / "bash-tool-turn" / "session.jsonl"
    text = log.read_text(encoding="utf-8")
    assert text.count('{"kind":"tool-calls"}') >= 1
    log.write_text(text.replace('{"kind":"tool-calls"}', '{"kind":"stop"}'), encoding="utf-8", newline="")
    code, output = snapshot(copied, "replay", "bash-tool-turn", "--dialect", "gemini")
    assert code == 1, output
    what = "answer 0 cannot be told in gemini, which cannot say a plain stop beside tool calls"
    assert f"snapshots/session/bash-tool-turn/session.jsonl: {what}" in output
    assert "mend: replay session/bash-tool-turn in a dialect that can, e.g. --dialect openai-chat" in output


OWN = """\
[model]
dialect = "gemini"
base_url_env = "GOOGLE_GEMINI_BASE_URL"
key_env = "GEMINI_API_KEY"

[[model.files]]
path = "own.toml"
text = '''
[model]
dialect = "gemini"
base_url_env = "GOOGLE_GEMINI_BASE_URL"
api_key_env = "GEMINI_API_KEY"
'''

[dialects.openai-chat]
base_url_env = "OPENAI_BASE_URL"
key_env = "OPENAI_API_KEY"
arguments = ["--overlay", "{{home}}/dialect.toml"]

[[dialects.openai-chat.files]]
path = "dialect.toml"
text = '''
[model]
dialect = "openai-chat"
base_url_env = "OPENAI_BASE_URL"
api_key_env = "OPENAI_API_KEY"
'''

[record]"""


def test_a_recording_made_in_another_dialect_is_told_in_the_usual_one(copied: Path) -> None:
    toml = copied / "snapshots" / "session" / "agent.toml"
    head, _, rest = toml.read_text(encoding="utf-8").partition("[model]")
    record, _, _ = rest.partition("[record]")[2].partition("[dialects.")
    head = head.replace('["acp-agent"]', '["acp-agent", "--overlay", "{{home}}/own.toml"]')
    toml.write_text(head + OWN + record, encoding="utf-8", newline="")
    name = "session/parallel-tool-calls"
    code, output = snapshot(copied, "record", name, "--force", OPENAI_API_KEY="sk-test-key-of-a-script")
    assert code == 0, output
    made = (copied / "snapshots" / name / "provenance.toml").read_text(encoding="utf-8")
    assert 'dialect = "gemini"' in made
    for dialect in ("gemini", "openai-chat"):
        code, output = snapshot(copied, "replay", name, "--dialect", dialect)
        assert (code, "note: requests are compared without alt" in output) == (0, dialect == "openai-chat"), output


# ── the suite, and commands ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with a copy of the suite, which a test may spoil."""
    shutil.copytree(ROOT / "snapshots" / "session", tmp_path / "snapshots" / "session")
    return tmp_path


def edit(folder: Path, old: str, new: str) -> None:
    """Replace a text in the suite's ``agent.toml``."""
    path = folder / "snapshots" / "session" / "agent.toml"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8", newline="")


def snapshot(folder: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    """Run ``session-snapshot``: exit code and output."""
    environment = {key: value for key, value in os.environ.items() if key not in ("CI", "SNAPSHOT_MODE")} | variables
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    command = [sys.executable, "-m", "session_snapshot", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr
