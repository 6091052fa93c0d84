"""A recording that fails: the scenario is as it was, what the run brought is kept, and the others are recorded."""

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest
import watchfiles
from session_snapshot.errors import AgentError, FixtureError
from session_snapshot.recording.record import record_all
from session_snapshot.suites import Place

LAST = [["respond", {"stopReason": "end_turn"}]]
TURN = [["hear"], ["call"], ["say"], *LAST]
KEPT = ".snapshot-staging/new--scripted--turn"
PATIENCE = 60
PIPES = pytest.mark.skipif(sys.platform == "win32", reason="posix only: named pipes")


def kept(suite, name="turn"):
    """What is kept of a recording, by name."""
    folder = suite.root / ".snapshot-staging" / f"new--scripted--{name}"
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()
    }


# ── what is kept ────────────────────────────────────────────────────────────────────────────────────────────────────

RUN = {"run/calls.jsonl", "run/stdout.jsonl", "run/stderr.txt", "why.txt"}
MADE = {"session.jsonl", "requests.golden.jsonl", "header.system.md", "header.tools.json"}


@pytest.mark.parametrize(
    ("spoil", "error", "files"),
    [
        (lambda suite: suite.script("good bye"), FixtureError, RUN),
        (lambda suite: suite.plan(session_prompt=[["hear"], ["call"], ["exit", 3]]), AgentError, RUN),
        (lambda suite: suite.edit("scenario.toml", "pin = true", 'class = "other"'), FixtureError, RUN),
        (
            lambda suite: suite.plan(session_prompt=[["hear", "<random>"], *TURN[1:]]),
            AgentError,
            RUN | MADE | {"stdout.golden.jsonl", "provenance.toml", "replayed/requests.golden.jsonl"},
        ),
        (
            lambda suite: suite.plan(session_prompt=[*TURN[:3], ["say", "<random>"], *LAST]),
            AgentError,
            RUN | MADE | {"stdout.golden.jsonl", "provenance.toml", "replayed/stdout.golden.jsonl"},
        ),
        (
            lambda suite: suite.script("hello from /home/carla/x"),
            FixtureError,
            RUN | MADE | {"stdout.golden.jsonl", "provenance.toml"},
        ),
    ],
    ids=["[expect]", "agent dies", "no pin", "first replay", "second replay", "guard"],
)
def test_whatever_fails_what_there_is_is_kept_and_its_place_told(scripted, spoil, error, files, monkeypatch):
    monkeypatch.setattr("session_snapshot.recording.gate.OF_ONE_FILE", frozenset())
    spoil(scripted)
    told = scripted.unrecorded(error, f"\nkept: what the run brought is in {KEPT}\nmend: ")
    found = kept(scripted)
    assert files <= found.keys()
    assert found["why.txt"].splitlines()[0] in told
    (call,) = map(json.loads, found["run/calls.jsonl"].splitlines())
    assert call["request"]["messages"] and call["answer"]["kind"] == "chunks"
    assert '"result"' in found["run/stdout.jsonl"]


def test_nothing_is_kept_of_what_did_not_begin(scripted):
    scripted.remove("upstream.json")
    assert "kept:" not in scripted.unrecorded(FixtureError, "is missing")
    assert kept(scripted) == {}


def test_the_next_recording_takes_it_away(scripted):
    scripted.script("good bye")
    scripted.unrecorded(FixtureError, "kept: ")
    assert kept(scripted)
    scripted.script("hello after all")
    scripted.record()
    assert kept(scripted) == {}
    assert [path.suffix for path in (scripted.root / ".snapshot-staging").iterdir()] == [".lock", ".lock"]
    scripted.green()


def test_a_place_that_cannot_be_written_is_replaced_by_one_that_can(scripted, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("session_snapshot.recording.files.Attempt.stage", blocked)
    told = scripted.unrecorded(FixtureError, "no room", "kept: what the run brought is in snapshot-kept-")
    folder = tmp_path / told.splitlines()[-2].rpartition(" ")[2]
    assert (folder / "run" / "calls.jsonl").is_file() and (folder / "session.jsonl").is_file()


def blocked(attempt, files):
    """A file stands where the folder would."""
    attempt.files = files
    attempt.folder.write_text("")
    raise FixtureError("no room", "x", None, "make some")


# ── three replays, each elsewhere ───────────────────────────────────────────────────────────────────────────────────


def seen(suite):
    """Which hash seed, folder and home each run of the agent had."""
    marks = sorted((suite.root / "seen").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    return [json.loads(path.read_text("utf-8")) for path in marks]


def look(suite):
    (suite.root / "seen").mkdir()
    suite.plan(start=[["look", str(suite.root / "seen")]])


def test_each_replay_has_another_folder_home_and_hash_seed(scripted):
    look(scripted)
    scripted.record()
    recorded, *proofs = seen(scripted)
    assert len(proofs) == 3 and recorded["PYTHONHASHSEED"] == ""
    for name in ("PYTHONHASHSEED", "cwd", "HOME", "TMPDIR"):
        assert len({run[name] for run in [recorded, *proofs]}) == 4, name


def test_a_hash_seed_that_the_author_chose_stays(scripted):
    look(scripted)
    scripted.agent('[env]\nPYTHONHASHSEED = "7"\n')
    scripted.record()
    assert [run["PYTHONHASHSEED"] for run in seen(scripted)] == ["7"] * 4


def test_an_agent_whose_words_hang_on_the_hash_seed_is_not_recorded(scripted):
    scripted.plan(session_prompt=[*TURN[:3], ["say-variable", "PYTHONHASHSEED"], *LAST])
    scripted.unrecorded(AgentError, "replay 2 of 3 of the new recording is not identical", "stdout.golden.jsonl:3")


# ── several in one command ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def three(scripted):
    """Scenarios ``turn`` (which pins), ``other`` and ``third``."""
    for name in ("other", "third"):
        scripted.copy(name)
        (scripted.folder / name / "upstream.json").write_text(
            f'{{"entries": [{{"kind": "say", "text": "hello, I am the {name}"}}]}}\n', encoding="utf-8"
        )
    return scripted


def spoiled(suite, *names):
    for name in names:
        (suite.folder / name / "upstream.json").write_text('{"entries": []}\n', encoding="utf-8")


def test_pins_are_recorded_first(three):
    said: list[str] = []
    places = [Place("scripted", name, three.snapshots / "scripted" / name) for name in ("other", "third", "turn")]
    assert record_all(places, three.snapshots, {"SCRIPTED_KEY": three.key}, False, said.append) == 0
    begun = [line.partition(":")[0] for line in said if line.endswith(": recording")]
    assert begun == ["scripted/turn", "scripted/other", "scripted/third"]


@pytest.mark.parametrize(
    ("failing", "code"), [(["turn"], 1), (["other"], 1), (["third", "other"], 1), (["third", "other", "turn"], 2)]
)
def test_one_that_fails_does_not_lose_the_others(three, failing, code):
    spoiled(three, *failing)
    before = three.tree()
    done = three.command("record", "scripted", SCRIPTED_KEY=three.key)
    assert done.returncode == code, done.stdout + done.stderr
    after = three.tree()
    changed = {name.split("/")[1] for name in after if after[name] != before.get(name)}
    good = [name for name in ("other", "third", "turn") if name not in failing]
    assert changed == set(good)
    bad = [name for name in ("other", "third", "turn") if name in failing]
    names = ", ".join(f"scripted/{name}" for name in good) or "none"
    told = f"recorded: {names}; failed, and as they were: {', '.join(f'scripted/{name}' for name in bad)}"
    assert done.stdout.splitlines()[-1] == told
    for name in failing:
        assert f"session-snapshot: scripted/{name}: " in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_refused_at_the_gate_is_refused_before_anything_is_asked(three):
    text = (three.folder / "third" / "scenario.toml").read_text(encoding="utf-8")
    (three.folder / "third" / "scenario.toml").write_text(text.replace('"scripted"', '"authored"'), encoding="utf-8")
    before = three.tree()
    done = three.command("record", "scripted", SCRIPTED_KEY=three.key)
    assert (done.returncode, done.stdout) == (2, "")
    assert "scripted/third is authored" in done.stderr
    assert three.tree() == before


# ── two at once, and one that is interrupted ────────────────────────────────────────────────────────────────────────


def start(suite, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "session_snapshot", "record", *arguments],
        cwd=suite.root,
        env=suite.environment(SCRIPTED_KEY=suite.key),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for_one(folder):
    """Wait until an agent says that it is there; its process number."""
    for _ in watchfiles.watch(folder, rust_timeout=500, yield_on_timeout=True, debounce=20, step=10):
        if found := [int(mark.name) for mark in folder.iterdir() if not mark.suffix]:
            return found[0]
    raise AssertionError


@pytest.fixture
def waiting(scripted):
    """The agent says that it is there and goes on when it is told to."""
    (scripted.root / "marks").mkdir()
    os.mkfifo(scripted.root / "pipe")
    held = [["mark", str(scripted.root / "marks")], ["hold", str(scripted.root / "pipe")]]
    scripted.plan(session_prompt=[*held, *TURN])
    return scripted


def release(suite):
    """Let the agents go on that wait, and let no other wait."""
    with (suite.root / "pipe").open("wb"):
        (suite.root / "pipe").unlink()


@PIPES
def test_two_at_once_the_second_is_refused_and_the_first_goes_on(waiting):
    first = start(waiting, "turn")
    wait_for_one(waiting.root / "marks")
    before = waiting.tree()
    second = waiting.command("record", "turn", SCRIPTED_KEY=waiting.key)
    assert second.returncode == 2
    assert "scripted/turn is being recorded already\nmend: wait for the other command, or end it" in second.stderr
    assert waiting.tree() == before
    release(waiting)
    output, _ = first.communicate(timeout=PATIENCE)
    assert first.returncode == 0, output
    assert b"hello once more" in waiting.tree()["scripted/turn/session.jsonl"]


@PIPES
def test_two_at_once_of_different_scenarios(waiting):
    waiting.copy("other")
    first = start(waiting, "turn")
    wait_for_one(waiting.root / "marks")
    second = start(waiting, "other")
    release(waiting)
    for command in (first, second):
        output, _ = command.communicate(timeout=PATIENCE)
        assert command.returncode == 0, output
    waiting.green()


@PIPES
def test_a_lock_goes_with_the_process_that_held_it(waiting):
    first = start(waiting, "turn")
    wait_for_one(waiting.root / "marks")
    first.kill()
    first.communicate(timeout=PATIENCE)
    (waiting.root / "pipe").unlink()
    assert waiting.command("record", "turn", SCRIPTED_KEY=waiting.key).returncode == 0
    assert waiting.survivors() == []


@pytest.mark.skipif(sys.platform == "win32", reason="posix only: signals")
def test_an_interrupt_keeps_what_was_paid_for(scripted):
    (scripted.root / "marks").mkdir()
    scripted.plan(session_prompt=[["hear"], ["call"], ["mark", str(scripted.root / "marks")], ["hang"]])
    before = scripted.tree()
    command = start(scripted, "turn")
    wait_for_one(scripted.root / "marks")
    os.kill(command.pid, signal.SIGINT)
    output, _ = command.communicate(timeout=PATIENCE)
    assert command.returncode == 130, output
    assert output.splitlines()[-2:] == [
        f"kept: what the run brought is in {KEPT}",
        "session-snapshot: interrupted",
    ]
    assert "hello once more" in kept(scripted)["run/calls.jsonl"]
    assert scripted.tree() == before and scripted.survivors() == []
    assert not [process for process in psutil.Process().children() if process.pid == command.pid]
    scripted.plan()
    assert scripted.command("record", "turn", SCRIPTED_KEY=scripted.key).returncode == 0
