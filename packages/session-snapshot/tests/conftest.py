# ruff: noqa: E501 - goldens are to the letter
"""What the tests of whole runs share: a small suite in a temporary folder, its agent scripted, its goldens written by
hand below."""

import asyncio
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from llm_mock_server import ScriptedProvider, ThreadedServer, read_upstream, serve_in_thread
from session_snapshot.fixtures import load_committed, pins_of
from session_snapshot.recording.record import record_all
from session_snapshot.replay import replay_loaded, replay_scenario
from session_snapshot.report import Report, format_report
from session_snapshot.run import Capture
from session_snapshot.runroot import run_root
from session_snapshot.sandbox import capture_tree
from session_snapshot.suites import Place, load

AGENT = Path(__file__).with_name("scripted_agent.py")

# ── a turn as it is committed, to the letter ──

STEPS = [{"op": "initialize"}, {"op": "newSession"}, {"op": "prompt", "text": "Say hello."}]
COUNTS = [{"response": 1}, {"response": 1}, {"agent_message_chunk": 1, "response": 1}]

SCENARIO = """\
description = "A turn."
recording = "scripted"

[header]
pin = true

[limits]
step_seconds = 20
settle_seconds = 0.3
quiet_seconds = 0.1

[expect]
answer_contains = ["hello"]
"""

FRAMES = """\
{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"scripted","version":"{{agentVersion}}"},"agentCapabilities":{}}}
{"jsonrpc":"2.0","id":1,"result":{"sessionId":"{{sessionId:1}}"}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{{sessionId:1}}","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello there world"}}}}
{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}
"""

LOG_HEADER = (
    '{"type":"session","format":"session-snapshot","version":1,"id":"{{sessionId:1}}","createdAt":0,"cwd":"{{cwd}}"}\n'
)

REQUESTS = """\
{"call":0,"lane":0,"parent":null,"source":"session.jsonl#0","header":"default","params":{"model":"fake-model","stream":true},"append":[{"role":"user","content":[{"type":"text","text":"Say hello."}]}]}
"""

SYSTEM = "You are a test.\n"
TOOLS = """\
[
  {
    "name": "touch",
    "description": "Touch a file.",
    "inputSchema": {
      "type": "object",
      "properties": {
        "path": {
          "type": "string"
        }
      }
    }
  }
]
"""

KEY = 'sk-real-+/"quoted"-0123456789abcdef'
"""A key that looks different in every form it may take."""


def text_answer(call: int, text: str) -> str:
    """The log rows of a model call that answered with a text."""
    return rows(
        {"type": "llm/call", "data": {"call": call, "model": "fake-model"}},
        *chunks(
            call,
            {"type": "block-start", "index": 0, "blockType": "text"},
            {"type": "text-delta", "index": 0, "text": text},
            {"type": "block-end", "index": 0, "block": {"type": "text", "text": text}},
            {"type": "finish", "reason": {"kind": "stop"}},
        ),
    )


def tool_answer(call: int, *ids: str) -> str:
    """The log rows of a model call that asked for tools."""
    blocks = []
    for index, number in enumerate(ids):
        tool = {"type": "tool-call", "id": number, "name": "touch", "arguments": "{}"}
        delta = {"type": "tool-call-delta", "index": index, "id": number, "name": "touch", "argumentsDelta": "{}"}
        blocks += [{"type": "block-start", "index": index, "blockType": "tool-call"}, delta]
        blocks += [{"type": "block-end", "index": index, "block": tool}]
    opened = {"type": "llm/call", "data": {"call": call, "model": "fake-model"}}
    return rows(opened, *chunks(call, *blocks, {"type": "finish", "reason": {"kind": "tool-calls"}}))


def chunks(call: int, *values: dict) -> list[dict]:
    return [{"type": "assistant/chunk", "data": {"call": call, "chunk": value}} for value in values]


def rows(*values: dict) -> str:
    """JSON Lines."""
    return "".join(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n" for value in values)


class Suite:
    """A suite ``scripted`` with a scenario ``turn`` under ``snapshots/`` of a temporary folder."""

    rows = staticmethod(rows)
    text_answer = staticmethod(text_answer)
    tool_answer = staticmethod(tool_answer)
    key = KEY
    frames = FRAMES
    log_header = LOG_HEADER

    def __init__(self, root: Path) -> None:
        pins_of.cache_clear()  # kept by path for the length of a command, and every test has the same relative one
        self.root = root
        self.snapshots = root / "snapshots"
        self.folder = self.snapshots / "scripted"
        self.turn = self.folder / "turn"
        self.turn.mkdir(parents=True)
        self.plan()
        self.agent()
        self.counts(*COUNTS)
        self.steps(*STEPS)
        self.write("scenario.toml", SCENARIO)
        self.write("stdout.golden.jsonl", FRAMES)
        self.write("requests.golden.jsonl", REQUESTS)
        self.write("session.jsonl", LOG_HEADER + text_answer(0, "hello there world"))
        self.write("header.system.md", SYSTEM)
        self.write("header.tools.json", TOOLS)

    # ── the files ──

    def agent(self, more: str = "", command: Sequence[str] | None = None, record: bool = True) -> None:
        """``agent.toml``; ``more`` is TOML that follows."""
        told = command or [sys.executable, "-I", "-S", str(AGENT), str(self.folder / "plan.json")]
        text = f"command = {json.dumps(told)}\n"
        keys = "" if "[record]" in more or not record else '[record]\nkey_env = "SCRIPTED_KEY"\n'
        model = (
            '[model]\ndialect = "openai-chat"\nbase_url_env = "OPENAI_BASE_URL"\nkey_env = "OPENAI_API_KEY"\n'
            f'{keys}[install]\nkind = "none"\n'
        )
        top, tables = (more, "") if more and not more.startswith("[") else ("", more)
        (self.folder / "agent.toml").write_text(text + top + model + tables, encoding="utf-8")

    def plan(self, **moments: list) -> None:
        """What the agent does; ``session_prompt`` stands for ``session/prompt``, ``session_prompt__2`` for its second."""
        plan = {}
        for moment, acts in moments.items():
            name, _, number = moment.partition("__")
            plan[name.replace("_", "/", 1) + (f"#{number}" if number else "")] = acts
        (self.folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")

    def steps(self, *steps: dict, answers: Sequence[str] = ()) -> None:
        """``input.json``, a step a line; of steps that are new no frames are recorded."""
        lines = ",\n".join(f"    {json.dumps(step)}" for step in steps)
        told = f'  "permissionAnswers": {json.dumps([{"kind": kind} for kind in answers])},\n' if answers else ""
        self.write("input.json", f'{{\n{told}  "steps": [\n{lines}\n  ]\n}}\n')
        if len(self.counted) != len(steps):
            self.counts(*[*self.counted, *({} for _ in steps)][: len(steps)])

    def counts(self, *steps: dict) -> None:
        """``provenance.toml`` with these frames a step."""
        self.counted = steps
        lines = "".join(
            "    { " + ", ".join(f"{kind} = {count}" for kind, count in step.items()) + " },\n" for step in steps
        )
        self.write("provenance.toml", f'made_by = "hand"\nupstream = "none"\n\n[frames]\nsteps = [\n{lines}]\n')

    def write(self, name: str, text: str) -> None:
        """Write a file of the scenario."""
        (self.turn / name).parent.mkdir(parents=True, exist_ok=True)
        (self.turn / name).write_text(text, encoding="utf-8", newline="")

    def log(self, *answers: str) -> None:
        """``session.jsonl`` with the rows of these answers."""
        self.write("session.jsonl", LOG_HEADER + "".join(answers))

    def edit(self, name: str, old: str, new: str, times: int = 1) -> None:
        """Replace a text that stands ``times`` times in a file of the scenario."""
        text = (self.turn / name).read_text(encoding="utf-8")
        assert text.count(old) == times, f"{old!r} stands {text.count(old)} times in {name}"
        self.write(name, text.replace(old, new))

    def append(self, name: str, text: str) -> None:
        """Write behind what is there."""
        with (self.turn / name).open("a", encoding="utf-8", newline="") as file:
            file.write(text)

    def copy(self, name: str) -> None:
        """A second scenario like the first, of the header class it pins."""
        shutil.copytree(self.turn, self.folder / name)
        text = (self.folder / name / "scenario.toml").read_text(encoding="utf-8")
        (self.folder / name / "scenario.toml").write_text(text.replace("[header]\npin = true\n", ""), encoding="utf-8")
        for pin in ("header.system.md", "header.tools.json"):
            (self.folder / name / pin).unlink()

    def remove(self, name: str) -> None:
        """Remove a file of the scenario."""
        (self.turn / name).unlink()

    def script(self, *entries: dict | str) -> None:
        """``upstream.json``; a string is what the model says."""
        self.write("upstream.json", entries_text(*entries))

    @contextmanager
    def provider(self, *entries: dict | str) -> Iterator[ThreadedServer]:
        """A provider of its own, which knows no key but the real one; the scenario is live then, without a URL."""
        self.edit("scenario.toml", 'recording = "scripted"', 'recording = "live"')
        (self.turn / "upstream.json").unlink(missing_ok=True)
        with serve_in_thread(scripted_provider(*entries), api_key=self.key) as server:
            yield server

    def survivors(self) -> list[str]:
        """The processes of a command's runs that still run."""
        return survivors(self.root / "tmp")

    def tree(self) -> dict[str, bytes]:
        """Everything under ``snapshots/``."""
        return capture_tree(self.snapshots, [])

    def restore(self, tree: dict[str, bytes]) -> None:
        """Put ``snapshots/`` back as it was."""
        shutil.rmtree(self.snapshots)
        for name, content in tree.items():
            (self.snapshots / name).parent.mkdir(parents=True, exist_ok=True)
            (self.snapshots / name).write_bytes(content)

    # ── running ──

    def record(self, force: bool = False, upstream: str | None = None, **variables: str) -> list[str]:
        """Record the turn here; what it said on the way."""
        said: list[str] = []
        environment = {"SCRIPTED_KEY": self.key} | variables
        assert record_all([self.place], self.snapshots, environment, force, said.append, upstream) == 0
        return said

    def unrecorded(self, error: type[Exception], *said: str, **more: Any) -> str:
        """Recording fails with a sentence that says all this and not the key, and everything is as it was."""
        before = self.tree()
        with pytest.raises(error) as caught:
            self.record(**more)
        text = str(caught.value)
        assert [part for part in said if part not in text] == [], text
        assert self.key not in text
        assert text.splitlines()[-1].startswith("mend: "), text
        assert self.tree() == before
        return text

    @property
    def place(self) -> Place:
        """The scenario's place."""
        return Place("scripted", "turn", Path("snapshots/scripted/turn"))

    def replay(self) -> Report:
        """Replay the scenario here; whatever happens, nothing is written, and no process and no folder is left."""
        before = self.tree()
        pins_of.cache_clear()
        with run_root() as base:
            try:
                return asyncio.run(replay_scenario(self.place, base))
            finally:
                assert survivors(base) == []
                assert sorted(entry.name for entry in base.iterdir()) == ["owner", "pids"]
                assert self.tree() == before

    def capture(self) -> tuple[Report, Capture]:
        """Replay the scenario here; its report, and all that came out of the run."""
        pins_of.cache_clear()
        loaded = load(self.place)
        with run_root() as base:
            return asyncio.run(replay_loaded(loaded, load_committed(loaded), base))

    def green(self) -> Report:
        """Replay, and find nothing wrong."""
        report = self.replay()
        assert report.green, format_report(report, "")
        return report

    def red(self, surface: str, *texts: str) -> Report:
        """Replay, and find a failure of this surface that says all of ``texts``."""
        report = self.replay()
        said = [
            f"{failure.what}\n{failure.detail}\n{failure.group}"
            for failure in report.failures
            if failure.surface == surface
        ]
        assert any(all(text in one for text in texts) for one in said), format_report(report, "")
        return report

    def command(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        """Run ``session-snapshot`` with these arguments and further environment variables."""
        return subprocess.run(
            [sys.executable, "-m", "session_snapshot", *arguments],
            cwd=self.root,
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            timeout=100,
        )

    def environment(self, **variables: str) -> dict[str, str]:
        """The environment of a command: temporary folders go where a test can look at them."""
        temporary = self.root / "tmp"
        temporary.mkdir(exist_ok=True)
        places = {name: str(temporary) for name in ("TMPDIR", "TMP", "TEMP")}
        inherited = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTEST_ADDOPTS")}
        return inherited | places | variables


def entries_text(*entries: dict | str) -> str:
    """The text of an ``upstream.json``."""
    told = [{"kind": "say", "text": entry} if isinstance(entry, str) else entry for entry in entries]
    return json.dumps({"entries": told}) + "\n"


def scripted_provider(*entries: dict | str) -> ScriptedProvider:
    """A provider that says these."""
    return ScriptedProvider(read_upstream(entries_text(*entries), "upstream.json"), ready_root=None)


def survivors(base: Path) -> list[str]:
    """The processes whose home lies under a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            home = process.environ().get("HOME", "")
        except psutil.Error:
            continue
        if home.startswith(str(base)) and process.status() != psutil.STATUS_ZOMBIE:
            found.append(f"{process.pid} {process.cmdline()}")
    return found


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A green suite to spoil; the working directory is the folder above ``snapshots/``."""
    monkeypatch.chdir(tmp_path)
    return Suite(tmp_path)


@pytest.fixture
def scripted(suite: Suite) -> Suite:
    """The turn, with a script that stands in for the provider; what it says is new."""
    suite.script("hello once more")
    return suite


@pytest.fixture(scope="session")
def kit() -> Any:
    """What tests of the recorder share: the module ``recorder_kit.py`` beside this one."""
    spec = importlib.util.spec_from_file_location("recorder_kit", Path(__file__).with_name("recorder_kit.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
