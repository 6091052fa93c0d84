"""What is refused before a model is asked: edits that would be lost, as git sees them; and a golden edited by hand."""

import os
import subprocess
import sys

import pytest
from session_snapshot.errors import FixtureError, Refused

IDENTITY = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false")


@pytest.fixture(autouse=True)
def own_git(monkeypatch):
    """No configuration but the checkout's own."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)


def git(suite, *arguments):
    subprocess.run(["git", *IDENTITY, *arguments], cwd=suite.root, check=True, capture_output=True)


@pytest.fixture
def committed(scripted):
    git(scripted, "init", "-q")
    git(scripted, "add", ".")
    git(scripted, "commit", "-q", "-m", "x")
    return scripted


def check_refused(suite, *names):
    suite.unrecorded(
        Refused,
        f"scripted/turn: not as in the last commit: {', '.join(names)}; recording would overwrite that",
        "mend: commit or restore them, or nox -s snapshot_record -- scripted/turn --force",
    )


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        "stdout.golden.jsonl",
        "session.jsonl",
        "requests.golden.jsonl",
        "header.system.md",
        "header.tools.json",
        "provenance.toml",
    ],
)
def test_an_edited_machine_written_file_is_not_overwritten_without_force(committed, name, staged):
    committed.append(name, "\n")
    if staged:
        git(committed, "add", ".")
    check_refused(committed, name)
    committed.record(force=True)
    assert "hello once more" in committed.tree()["scripted/turn/stdout.golden.jsonl"].decode()


def test_an_edit_that_is_staged_alone(committed):
    """What the index holds is an edit as well, although the folder is as in the last commit."""
    before = (committed.turn / "session.jsonl").read_bytes()
    committed.append("session.jsonl", "\n")
    git(committed, "add", ".")
    (committed.turn / "session.jsonl").write_bytes(before)
    check_refused(committed, "session.jsonl")


def test_a_file_that_waits_for_a_merge(committed):
    git(committed, "checkout", "-q", "-b", "other")
    committed.edit("stdout.golden.jsonl", "there", "their")
    git(committed, "commit", "-q", "-a", "-m", "other")
    git(committed, "checkout", "-q", "-")
    committed.edit("stdout.golden.jsonl", "there", "over there")
    git(committed, "commit", "-q", "-a", "-m", "one")
    with pytest.raises(subprocess.CalledProcessError):
        git(committed, "merge", "other")
    check_refused(committed, "stdout.golden.jsonl")


def test_the_edits_of_another_scenario_are_its_own_affair(committed):
    committed.copy("other")
    git(committed, "add", ".")
    git(committed, "commit", "-q", "-m", "other")
    (committed.folder / "other" / "stdout.golden.jsonl").write_text("", encoding="utf-8")
    committed.record()


@pytest.mark.parametrize(
    "change",
    [
        lambda suite: suite.edit("input.json", "Say hello.", "Do say hello."),
        lambda suite: suite.append("scenario.toml", "\n"),
        lambda suite: suite.remove("stdout.golden.jsonl"),
        lambda suite: suite.write("session.1.jsonl", suite.log_header),
        lambda suite: (suite.write("session.1.jsonl", suite.log_header), git(suite, "add", ".")),
    ],
    ids=["input", "scenario", "a file that is gone", "a new file", "a new file, staged"],
)
def test_what_is_no_edit_to_lose(committed, change):
    change(committed)
    committed.record()


def test_a_new_scenario_is_fine_staged_or_not(scripted):
    scripted.copy("other")
    git(scripted, "init", "-q")
    git(scripted, "add", "snapshots/scripted/other")
    git(scripted, "commit", "-q", "-m", "x")
    scripted.record()
    git(scripted, "add", ".")
    scripted.append("stdout.golden.jsonl", "\n")
    scripted.record()


def test_without_a_commit_and_without_git_there_is_nothing_to_lose(scripted, monkeypatch):
    scripted.record()
    git(scripted, "init", "-q")
    scripted.record()
    git(scripted, "add", ".")
    scripted.append("session.jsonl", "\n")
    scripted.record()
    monkeypatch.setenv("PATH", str(scripted.root))
    scripted.agent(command=[sys.executable, "-I", "-S", *scripted_agent(scripted)])
    scripted.record()


def scripted_agent(suite):
    """The rest of the agent's command."""
    text = (suite.folder / "agent.toml").read_text(encoding="utf-8").splitlines()[0]
    return [word for word in text.partition("[")[2].rstrip("]").replace('"', "").split(", ")][3:]


def test_a_git_that_does_not_say_is_refused(committed):
    """A broken checkout: what is in the last commit cannot be known."""
    (committed.root / ".git" / "HEAD").write_text("ref: refs/heads/../../x\n")
    (committed.root / ".git" / "config").write_text("[core\n")
    committed.unrecorded(
        Refused,
        "scripted/turn: git does not say whether its files are as in the last commit: ",
        "mend: mend that, or nox -s snapshot_record -- scripted/turn --force",
    )
    committed.record(force=True)


# ── what the guard would refuse ─────────────────────────────────────────────────────────────────────────────────────

READ_HOME = '{"steps": [{"op": "initialize"}, {"op": "newSession"},\n{"op": "prompt", "text": "Read %s/x"}]}\n'


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("notes of é.txt", "x", "scripted/turn/notes of é.txt: ORPHAN"),
        ("input.json", READ_HOME % "/home/carla", "scripted/turn/input.json:2: PERSONAL_PATH"),
        ("workspace/a.txt", "see http://192.168.1.7/\n", "scripted/turn/workspace/a.txt:1: HOST"),
    ],
)
def test_files_that_the_guard_would_refuse_cost_no_call(scripted, name, text, said):
    scripted.write(name, text)
    marks = scripted.root / "marks"
    scripted.plan(start=[["mark", str(marks)]])
    scripted.unrecorded(
        FixtureError, "the guard would refuse a recording with these files, so no model was asked", said
    )
    assert not marks.exists()


# ── a golden edited by hand ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["stdout.golden.jsonl", "session.jsonl", "requests.golden.jsonl", "header.system.md"])
def test_a_file_edited_by_hand_after_its_recording_shows_in_the_guard(scripted, name):
    scripted.record()
    assert guard(scripted).returncode == 0
    text = (scripted.turn / name).read_text(encoding="utf-8")
    scripted.write(name, text.replace("hello", "hallo").replace("You are", "Thou art"))
    done = guard(scripted)
    assert done.returncode == 1
    assert "scripted/turn/provenance.toml" in done.stdout and "PROVENANCE_DIGEST" in done.stdout, done.stdout
    assert "the machine-written files are not those that were made" in done.stdout
    assert "undo the edit by hand" in done.stdout


@pytest.mark.parametrize("seen", [True, False], ids=["red", "green"])
def test_a_golden_edited_by_hand_shows_in_a_replay(scripted, seen):
    """Also where the edit is one that the replay does not see: a name in the log that nothing asks for."""
    scripted.record()
    done = scripted.command("replay", "-n", "0")
    assert done.returncode == 0 and "edited by hand" not in done.stdout
    if seen:
        scripted.edit("stdout.golden.jsonl", "hello", "hallo")
    else:
        scripted.edit("session.jsonl", '"model":"fake-model"', '"model":"real-model"')
    done = scripted.command("replay", "-n", "0")
    assert done.returncode == int(seen), done.stdout
    assert "machine-written files were edited by hand since they were made" in done.stdout


def guard(suite):
    command = [sys.executable, "-m", "fixture_guard", "snapshots"]
    return subprocess.run(
        command, cwd=suite.root, env=suite.environment(), capture_output=True, text=True, timeout=100, check=False
    )
