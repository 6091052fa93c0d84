"""Binding, end to end: an agent whose conversations race, recorded once, is told the same in every order of arrival.

Sixteen conversations at once: the main call and a title beside it, two sub-agents, eight workers, a retry, a fork, a
compacted history, and a pair of twins. Who is told what stands in the frames and in the histories that are sent next,
so that one wrong binding is red on two surfaces.
"""

import asyncio
import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from llm_dialects.dialect import answer_to
from llm_dialects.dialects import DIALECTS
from llm_dialects.entries import Chunks, SaidCall, Say, Throw, say_to_chunks
from llm_mock_server import HttpRequest, entry_reply, serve_in_thread
from session_snapshot.fixtures import load_committed
from session_snapshot.pytest_plugin import start_load
from session_snapshot.recording.record import record_all
from session_snapshot.replay import replay_loaded
from session_snapshot.report import format_report
from session_snapshot.runroot import run_root
from session_snapshot.suites import Place, load

KEY = "sk-real-0123456789abcdef"
WORKERS = [f"worker-{number}" for number in range(8)]
ALL = ["main", "title", "alpha", "beta", *WORKERS, "retry", "fork", "compaction", "twins"]

PINS = {"pin-agent": ("default", ["main"]), "pin-title": ("title", ["title"]), "pin-sub": ("sub", ["alpha"])}
"""The scenarios that pin a header class: which, and the conversations they hold."""


# ── the suite, and what stands in for the provider ──────────────────────────────────────────────────────────────────


class Provider:
    """Answers each call by what it is about, so that whoever is told another's answer can be seen to be.

    Twins are told apart by a number, and are reminded of it.
    """

    def __init__(self):
        self.asked = {}

    def __call__(self, http: HttpRequest):
        dialect = DIALECTS[http.dialect]
        request = dialect.parse_request(http.json)
        answer = answer_to(dialect, request, token=str(http.number), created=0)
        return entry_reply(dialect, request, self.entry(http.json), answer)

    def entry(self, body):
        """The answer: the opening, what was said last, and which of the calls that asked the same this is."""
        messages = [message["content"] for message in body["messages"] if message["role"] != "assistant"]
        about = f"{messages[0].split()[-1]}, {messages[1]}, {messages[-1]}, {len(body['messages'])}"
        key = json.dumps(body["messages"])
        self.asked[key] = number = self.asked.get(key, 0) + 1
        if "fails at first" in messages[-1] and number == 1:
            return Throw(chunks=(), message="slow down", code="RATE_LIMIT")
        before = [message["content"][-6:-1] for message in body["messages"] if message["role"] == "assistant"]
        text = f"[{about}, {' after '.join([f'no. {number}', *before[:1]])}]"
        look = SaidCall(name="look", arguments="{}", id=f"call_{sum(self.asked.values())}")
        return Chunks(chunks=say_to_chunks(Say(text=text, tool_calls=(look,) if "tools" in body else ()), str))


AGENT = """\
command = {command}
[model]
dialect = "openai-chat"
base_url_env = "OPENAI_BASE_URL"
key_env = "OPENAI_API_KEY"
[record]
key_env = "RACING_KEY"
[install]
kind = "none"
"""

SCENARIO = """\
description = "Conversations that race."
recording = "live"
{more}
[limits]
quiet_seconds = 0.2
settle_seconds = 20

[expect]
{expect}
"""


def write_suite(root: Path) -> Path:
    """The suite ``racing`` under ``root``: one scenario that races, and one for each header class."""
    folder = root / "snapshots" / "racing"
    command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("racing_agent.py"))]
    (folder / "race").mkdir(parents=True)
    (folder / "agent.toml").write_text(AGENT.format(command=json.dumps(command)), encoding="utf-8")
    expect = 'error_codes = ["RATE_LIMIT"]\ncompactions = 1'
    write_scenario(folder / "race", ALL, "overridden = true\n", expect)
    for name, (header, talks) in PINS.items():
        (folder / name).mkdir()
        write_scenario(folder / name, talks, f'\n[header]\nclass = "{header}"\npin = true\n', "")
    return folder


def write_scenario(folder: Path, talks: list[str], more: str, expect: str) -> None:
    text = SCENARIO.format(more=more, expect=expect or 'stop_reason = "end_turn"')
    (folder / "scenario.toml").write_text(text, encoding="utf-8")
    steps = [{"op": "initialize"}, {"op": "newSession"}, {"op": "prompt", "text": " ".join(talks)}]
    (folder / "input.json").write_text(json.dumps({"steps": steps}, indent=2) + "\n", encoding="utf-8")


def recorded(root: Path) -> Path:
    """The suite, recorded by the real recorder."""
    folder = write_suite(root)
    with serve_in_thread(Provider(), api_key=KEY) as server:
        places = [Place("racing", path.name, path) for path in sorted(folder.iterdir()) if path.is_dir()]
        said: list[str] = []
        keys, url = {"RACING_KEY": KEY}, server.base_url("openai-chat")
        code = record_all(places, folder.parent, keys, False, said.append, url, said.append)
    assert code == 0, "\n".join(said)
    return folder


@pytest.fixture(scope="module")
def racing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded suite; nobody writes into it."""
    root = tmp_path_factory.mktemp("racing")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            patch.delenv(name, raising=False)
        return recorded(root)


# ── replays ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Runs:
    """What came of many replays: the orders in which calls arrived, those of the workers' openings, the files."""

    def __init__(self) -> None:
        self.orders: set[tuple[int | None, ...]] = set()
        self.openings: set[tuple[str, ...]] = set()
        self.files: set[tuple[tuple[str, str], ...]] = set()

    async def add(self, folder: Path, base: Path) -> None:
        """Replay once more, and find nothing wrong."""
        loaded = load(Place("racing", folder.name, folder))
        report, capture = await replay_loaded(loaded, load_committed(loaded), base)
        assert report.green, format_report(report, "")
        self.orders.add(tuple(call.recorded for call in capture.calls))
        asked = [str(call.request.messages[-1].content[0].text) for call in capture.calls if opens(call.request)]
        self.openings.add(tuple(text for text in asked if text.startswith("do work")))
        self.files.add(tuple(sorted((name, str(text)) for name, text in report.actual.items())))


def opens(request) -> bool:
    return len(request.messages) == 1


def replayed(folder: Path, times: int) -> Runs:
    """Replay so many times, one after the other."""
    runs = Runs()
    with run_root() as base:
        for _ in range(times):
            asyncio.run(runs.add(folder, base))
    return runs


def check_identical(runs: Runs, least: int) -> None:
    """All were the same to the byte, and at least so many orders of arrival were seen."""
    assert len(runs.files) == 1
    assert len(runs.orders) >= least
    assert len(runs.openings) >= least


def test_racing_conversations_replay_identically(racing: Path) -> None:
    check_identical(replayed(racing / "race", 10), 5)


@pytest.mark.stress
def test_racing_conversations_replay_identically_200_times_under_load(racing: Path) -> None:
    stop = start_load()
    try:
        check_identical(replayed(racing / "race", 200), 50)
    finally:
        stop()


# ── what was recorded ───────────────────────────────────────────────────────────────────────────────────────────────


def heard(folder: Path) -> dict[str, list[list[str]]]:
    """What each conversation heard, by its name: the texts of each of its branches."""
    frames = (folder / "stdout.golden.jsonl").read_text(encoding="utf-8").splitlines()
    updates = [json.loads(frame).get("params", {}).get("update", {}) for frame in frames]
    texts = [update["content"]["text"] for update in updates if update.get("content")]
    pairs = [text.partition(": ")[::2] for text in texts]
    return {name: [branch.split(" | ") for branch in told.split(" / ")] for name, told in pairs}


OPENINGS = {
    "main": "do the main task", "title": "do the main task", "alpha": "do sub-task alpha", "beta": "do sub-task beta",
    **{f"worker-{number}": f"do work {number}" for number in range(8)}, "retry": "try what fails at first",
    "fork": "plan a journey", "compaction": "read a long book", "twins": "do what your twin does",
}  # fmt: skip


def test_each_conversation_hears_its_own_script(racing: Path) -> None:
    told = heard(racing / "race")
    assert list(told) == ALL
    for name, branches in told.items():
        assert all(f", {OPENINGS[name]}, " in text for texts in branches for text in texts), name
    assert [len(texts) for texts in told["fork"]] == [3, 3]
    assert [texts[1].split(", ")[2] for texts in told["fork"]] == ["go by land", "go by sea"]
    assert told["main"][0][0].startswith("[agent.,") and told["title"][0][0].startswith("[words.,")
    assert told["retry"][0][0].endswith("no. 2]")
    assert [[text.split(", ")[-1] for text in texts] for texts in told["twins"]] == [
        ["no. 1]", "no. 1 after no. 1]"],
        ["no. 2]", "no. 1 after no. 2]"],
    ]
    assert len(told["compaction"][0]) == 4 and "chapter three" in told["compaction"][0][-1]


def test_the_recorded_tree(racing: Path) -> None:
    """Lanes are conversations and branches of them; the retry, the fork and the rewrite hang where they belong."""
    rows = [json.loads(line) for line in (racing / "race" / "requests.golden.jsonl").read_text().splitlines()]
    lanes: dict[int, list] = {}
    for row in rows:
        lanes.setdefault(row["lane"], []).append(row)
    assert len(rows) == 2 + 1 + 6 + 16 + 3 + 5 + 4 + 4
    assert sorted(map(len, lanes.values())) == sorted([2, 1, 3, 3, *[2] * 8, 3, 3, 2, 4, 2, 2])
    assert [row for row in rows if "keep" in row] == [lanes[lane][-1] for lane in lanes if len(lanes[lane]) == 4]
    forks = [lane for lane in lanes.values() if lane[0]["parent"] is not None]
    assert len(forks) == 1 and len(forks[0]) == 2
    assert {row["header"] for row in rows} == {"default", "title", "sub"}


# ── one that does not do as recorded, among the others ──────────────────────────────────────────────────────────────


@pytest.fixture
def spoilt(racing: Path, suite, monkeypatch):
    """Replay the race a few times, its agent told these variables; what ``--- SURFACE: ...`` said, and all of it."""

    def replay(**variables: str) -> tuple[list[tuple[str, str]], str]:
        shutil.rmtree(suite.snapshots)
        shutil.copytree(racing.parent, suite.snapshots)
        told = "".join(f"{name} = {json.dumps(value)}\n" for name, value in variables.items())
        agent = suite.snapshots / "racing" / "agent.toml"
        agent.write_text(f"{agent.read_text(encoding='utf-8')}[env]\n{told}", encoding="utf-8")
        done = suite.command("replay", "race", "--repeat", str(TIMES))
        assert done.returncode == 1
        return re.findall(r"--- (\w+): (.*)", done.stdout), done.stdout

    return replay


TIMES = 4


def row_of(racing: Path, text: str, which: int) -> tuple[int, dict]:
    """The place and the row of the first, or the last, call of the lane that says this."""
    lines = (racing / "race" / "requests.golden.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    lane = next(row["lane"] for row in rows if text in json.dumps(row))
    return [(at, row) for at, row in enumerate(rows) if row["lane"] == lane][which]


def test_a_call_nobody_recorded_is_red_although_the_agent_swallows_the_error(racing: Path, spoilt) -> None:
    """Of fifteen other conversations that race with it none is told anything else."""
    failures, output = spoilt(STRAY="1")
    _, last = row_of(racing, "do work 3", -1)
    near = rf"model call \d+ is not in the recording; the nearest is call {last['call']} \(lane {last['lane']}\)"
    assert len(failures) == TIMES
    assert all(surface == "requests" and re.fullmatch(near, said) for surface, said in failures), failures
    assert output.count("added /messages/4\n") == TIMES
    assert output.count("found what nobody recorded") == TIMES


def test_a_conversation_that_drifts_is_told_its_own_script_and_costs_nobody_another(racing: Path, spoilt) -> None:
    failures, output = spoilt(DRIFT=" and more")
    at, _ = row_of(racing, "do work 3", 0)
    assert len(failures) == TIMES
    where = f"snapshots/racing/race/requests.golden.jsonl:{at + 1}: 1 difference"
    assert all(surface == "requests" and said.startswith(where) for surface, said in failures), failures
    assert output.count(f"changed /{at}/append/0/content/0/text\n") == TIMES
    assert output.count("do work 3{+ and more+}") == TIMES
