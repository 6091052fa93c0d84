"""Recording whole runs: its gates, what it writes, and that a recording which fails leaves everything as it was."""

import asyncio
import base64
import json
import subprocess
import sys
from contextlib import contextmanager
from urllib.parse import quote

import filelock
import pytest
from session_snapshot.errors import AgentError, FixtureError, Refused
from session_snapshot.record import record_all
from session_snapshot.replay import replay_scenario
from session_snapshot.runroot import run_root
from session_snapshot.staging import recover
from session_snapshot.suites import Place

LAST = [["respond", {"stopReason": "end_turn"}]]
TURN = [["hear"], ["call"], ["say"], *LAST]


@pytest.fixture
def scripted(suite):
    """The turn, with a script that stands in for the provider; what it says is new."""
    say(suite, "hello once more")
    return suite


def say(suite, *texts):
    script(suite, *({"kind": "say", "text": text} for text in texts))


def script(suite, *entries):
    suite.write("upstream.json", json.dumps({"entries": list(entries)}) + "\n")


def record(suite, force=False, **variables):
    """Record the turn here; what it said on the way."""
    said = []
    record_all([suite.place], suite.snapshots, {"SCRIPTED_KEY": suite.key} | variables, force, said.append)
    return said


def check_nothing_written(suite, error, *said, **more):
    """Recording fails with a sentence that says all this, and everything is as it was."""
    before = suite.tree()
    with pytest.raises(error) as caught:
        record(suite, **more)
    text = str(caught.value)
    assert all(part in text for part in said), text
    assert suite.key not in text
    assert suite.tree() == before


# ── gates ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("variables", "arguments", "said"),
    [
        ({}, ["turn"], ["needs a key: SCRIPTED_KEY is not set", "mend: SCRIPTED_KEY=... nox -s snapshot_record -- "]),
        ({"SCRIPTED_KEY": "k" * 9, "CI": "true"}, ["turn"], ["and this is CI", "mend: record on your machine"]),
        ({"SCRIPTED_KEY": "short"}, ["turn"], ["SCRIPTED_KEY has 5 characters, which is no key"]),
        ({"SCRIPTED_KEY": "k" * 9}, ["trun"], ["no scenario is called 'trun'", "mend: the nearest are: turn"]),
        ({"SCRIPTED_KEY": "k" * 9}, [], ["no scenario is named", "mend: nox -s snapshot_record -- NAME"]),
        ({"SCRIPTED_KEY": "k" * 9, "SNAPSHOT_MODE": "replay"}, ["turn"], ["SNAPSHOT_MODE is 'replay'"]),
    ],
)
def test_the_command_refuses_with_the_reason_and_code_2(scripted, variables, arguments, said):
    before = scripted.tree()
    done = scripted.command("record", *arguments, **variables)
    assert (done.returncode, done.stdout) == (2, "")
    assert all(part in done.stderr for part in said), done.stderr
    assert "Traceback" not in done.stderr and scripted.tree() == before


def test_ci_may_be_said_to_be_false(scripted):
    assert record(scripted, CI="false")


def test_an_authored_scenario_is_refused(scripted):
    scripted.edit("scenario.toml", '"scripted"', '"authored"')
    check_nothing_written(scripted, Refused, "scripted/turn is authored", "mend: edit session.jsonl by hand")


def test_a_suite_that_says_nothing_of_recording(scripted):
    scripted.agent(record=False)
    check_nothing_written(scripted, Refused, "suite 'scripted' says nothing about recording", "mend: add [record]")


def test_an_edited_golden_is_not_overwritten_without_force(scripted):
    git(scripted, "init", "-q")
    git(scripted, "add", ".")
    git(scripted, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "-m", "x")
    scripted.edit("stdout.golden.jsonl", "there", "their")
    check_nothing_written(scripted, Refused, "not as in the last commit: stdout.golden.jsonl", "--force")
    record(scripted, force=True)
    assert "hello once more" in scripted.tree()["scripted/turn/stdout.golden.jsonl"].decode()


def git(suite, *arguments):
    subprocess.run(["git", *arguments], cwd=suite.root, check=True)


def test_two_recordings_of_one_scenario_at_a_time_are_refused(scripted):
    folder = scripted.root / ".snapshot-staging"
    folder.mkdir()
    with filelock.FileLock(folder / "scripted--turn.lock"):
        check_nothing_written(scripted, Refused, "scripted/turn is being recorded already", "mend: wait")


# ── what it writes ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_recording_is_whole_replays_and_holds_no_key(scripted):
    seen = scripted.root / "seen.json"
    scripted.plan(start=[["dump-environment", str(seen)]])
    said = record(scripted)
    assert said[0] == "scripted/turn: recording" and said[-1] == "scripted/turn: recorded, 1 model call(s)"
    tree = {name.removeprefix("scripted/turn/"): text for name, text in scripted.tree().items()}
    assert b"hello once more" in tree["session.jsonl"] and b"hello once more" in tree["stdout.golden.jsonl"]
    assert b'made_by = "record"' in tree["provenance.toml"] and b'upstream = "script"' in tree["provenance.toml"]
    assert b"{ agent_message_chunk = 1, response = 1 }" in tree["provenance.toml"]
    assert not [name for name, content in tree.items() if b"sk-real" in content]
    assert "sk-real" not in seen.read_text(encoding="utf-8")
    scripted.plan()
    scripted.green()


def test_the_real_key_is_what_the_provider_is_shown(scripted):
    """The script demands it, as a provider would: an agent that overrode it with the dummy would be refused."""
    assert "scripted/turn: model call 0 chunks" in record(scripted)


def test_a_live_recording_goes_to_the_provider_with_the_real_key(scripted, monkeypatch):
    """The provider is a process of its own here, and knows no key but the real one."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    scripted.edit("scenario.toml", '"scripted"', '"live"')
    with provider(scripted) as url:
        scripted.agent(f'[record]\nkey_env = "SCRIPTED_KEY"\nupstream_url = "{url}"\n')
        scripted.remove("upstream.json")
        record(scripted)
    tree = scripted.tree()
    assert b'upstream = "model"' in tree["scripted/turn/provenance.toml"]
    assert b"hello once more" in tree["scripted/turn/session.jsonl"]
    scripted.green()


@contextmanager
def provider(suite):
    """A provider in a process of its own; its base URL."""
    options = ["--script", str(suite.turn / "upstream.json"), "--api-key", suite.key]
    command = [sys.executable, "-m", "llm_mock_server", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield next(url for url in json.loads(process.stdout.readline()).values() if "/v1" in str(url))
        finally:
            process.terminate()


def test_the_command_records(scripted):
    done = scripted.command("record", "turn", SCRIPTED_KEY=scripted.key)
    assert (done.returncode, done.stderr) == (0, "")
    assert "replay 3 of 3 is identical" in done.stdout


def test_failures_become_an_override_where_it_is_declared(scripted):
    throw = {"kind": "throw", "chunks": [], "code": "SERVER_ERROR", "message": "boom"}
    script(scripted, throw, {"kind": "say", "text": "hello again"})
    scripted.plan(session_prompt=[["hear"], ["call"], ["call"], ["say"], *LAST])
    scripted.edit("scenario.toml", "[expect]", '[expect]\nerror_codes = ["SERVER_ERROR"]')
    check_nothing_written(scripted, FixtureError, "a failure or a silence that a log cannot hold", "overridden = true")
    scripted.edit("scenario.toml", 'recording = "scripted"', 'recording = "scripted"\noverridden = true')
    record(scripted)
    assert '"code":"SERVER_ERROR"' in scripted.tree()["scripted/turn/replay.override.json"].decode()
    scripted.green()


def test_files_of_an_earlier_recording_that_are_no_more_go(scripted):
    scripted.write("session.1.jsonl", scripted.log_header)
    record(scripted)
    assert "scripted/turn/session.1.jsonl" not in scripted.tree()


# ── what it refuses ─────────────────────────────────────────────────────────────────────────────────────────────────

KEY = '"sk-real-+/\\"quoted\\"-0123456789abcdef"'


@pytest.mark.parametrize(
    ("spoil", "error", "said"),
    [
        (lambda suite: say(suite, "good bye"), FixtureError, ["the run breaks [expect]", "'hello' is not in"]),
        (lambda suite: say(suite), FixtureError, ["turn/upstream.json", "model call 0 has no entry"]),
        (lambda suite: suite.remove("upstream.json"), FixtureError, ["turn/upstream.json", "is missing"]),
        (lambda suite: suite.plan(session_prompt=[["exit", 3]]), AgentError, ["the agent exited (code 3)"]),
        (lambda suite: suite.plan(session_new=[["raw", "x\n"], ["open"]]), AgentError, ["stdout line 2 is not JSON"]),
        (lambda suite: suite.plan(eof=[["exit", 3]]), AgentError, ["the agent exited with code 3"]),
        (
            lambda suite: suite.plan(session_prompt=[["hear", "<random>"], *TURN[1:]]),
            AgentError,
            ["replay 1 of 3 of the new recording is not identical", "requests.golden.jsonl:1"],
        ),
        (
            lambda suite: suite.plan(session_prompt=[*TURN[:3], ["say", "<random>"], *LAST]),
            AgentError,
            ["replay 2 of 3 of the new recording is not identical", "stdout.golden.jsonl:3"],
        ),
        (
            lambda suite: suite.edit("scenario.toml", "pin = true", 'class = "other"'),
            FixtureError,
            ["no scenario of the suite pins header class 'other'"],
        ),
    ],
)
def test_a_recording_that_fails_leaves_everything_as_it_was(scripted, spoil, error, said):
    spoil(scripted)
    check_nothing_written(scripted, error, *said)


@pytest.mark.parametrize(
    "form",
    [
        str,
        json.dumps,
        lambda key: base64.b64encode(key.encode()).decode(),
        lambda key: base64.b64encode(f"user:{key}".encode()).decode(),
        lambda key: quote(key, safe=""),
    ],
    ids=["raw", "json", "base64", "base64-behind", "url"],
)
def test_the_key_in_any_form_is_refused_and_never_shown(scripted, form):
    leak = form(scripted.key)
    say(scripted, f"hello, your key is {leak}.")
    check_nothing_written(scripted, AgentError, "the real key shows in ", "the file session.jsonl", "revoke the key")


@pytest.mark.parametrize(
    ("acts", "where"),
    [
        ([["write", "leak.txt", KEY]], "leak.txt in the agent's folder"),
        ([["stderr", KEY]], "the agent's stderr"),
        ([["update", "x", {"text": KEY}]], "the agent's stdout"),
    ],
)
def test_the_key_anywhere_near_the_agent_is_refused(scripted, acts, where):
    acts = json.loads(json.dumps(acts).replace(json.dumps(KEY)[1:-1], json.dumps(scripted.key)[1:-1]))
    scripted.plan(session_prompt=[*acts, *TURN])
    check_nothing_written(scripted, AgentError, where, "nothing was written")


def test_the_key_in_the_agents_environment_is_refused(scripted):
    scripted.agent(f"[env]\nLEAK = {json.dumps(scripted.key)}\n")
    check_nothing_written(scripted, AgentError, "the agent's variable LEAK", "nothing was written")


# ── a kill while files are swapped ──────────────────────────────────────────────────────────────────────────────────

KILLED_SWAP = """
import os, pathlib, sys
from session_snapshot import staging
left = int(sys.argv[1])
def watch(event, _):
    global left
    if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"):
        left -= 1
        if left < 0:
            os._exit(9)
files = {f"{name}.jsonl": b"new\\n" for name in "abc"}
sys.addaudithook(watch)
staging.swap(pathlib.Path("snapshots"), pathlib.Path("snapshots/scripted/turn"), files, ["session.jsonl"])
"""


def test_a_kill_at_every_moment_leaves_the_old_files_or_rolls_the_new_ones_forward(suite):
    suite.write("a.jsonl", "old\n")
    old = suite.tree()
    seen = set()
    for moment in range(100):
        killed = swap_killed_at(suite, moment)
        recover(suite.snapshots)
        after = {name for name in old.keys() | suite.tree().keys() if suite.tree().get(name) != old.get(name)}
        assert after in (set(), {f"scripted/turn/{name}.jsonl" for name in ("a", "b", "c", "session")}), moment
        seen.add(bool(after))
        assert not list((suite.root / ".snapshot-staging").glob("*/journal.json"))
        if not killed:
            break
        suite.restore(old)
    assert seen == {True, False} and moment > 10


def swap_killed_at(suite, moment):
    """Swap three files and remove one in a process that dies before its operation number ``moment``."""
    done = subprocess.run([sys.executable, "-c", KILLED_SWAP, str(moment)], cwd=suite.root)
    assert done.returncode in (0, 9)
    return done.returncode == 9


# ── our own agent ───────────────────────────────────────────────────────────────────────────────────────────────────

OWN_AGENT = """\
command = ["acp-agent"]
[model]
dialect = "openai-chat"
base_url_env = "OPENAI_BASE_URL"
key_env = "OPENAI_API_KEY"
[record]
key_env = "SCRIPTED_KEY"
[persistence]
format = "session-snapshot"
log = "{{home}}/.acp-agent/sessions/*/session.jsonl"
"""


def test_a_session_is_loaded_after_a_restart(suite):
    """Our own agent: what it persisted before it was restarted comes back as updates, and the model is told it."""
    (suite.folder / "agent.toml").write_text(OWN_AGENT, encoding="utf-8")
    say(suite, "hello, I am here", "hello again, I remember")
    opened = [{"op": "initialize"}, {"op": "newSession"}, {"op": "prompt", "text": "Remember this."}]
    suite.steps(
        *opened, {"op": "restart"}, {"op": "initialize"}, {"op": "loadSession"}, {"op": "prompt", "text": "Well?"}
    )
    suite.edit("scenario.toml", 'answer_contains = ["hello"]', "model_calls = 2")
    record(suite)
    rows = [json.loads(line) for line in suite.tree()["scripted/turn/requests.golden.jsonl"].splitlines()]
    assert [(row["parent"], len(row["append"])) for row in rows] == [(None, 1), (0, 2)]
    golden = suite.tree()["scripted/turn/stdout.golden.jsonl"].decode()
    assert golden.count("user_message_chunk") == 1 and golden.count("hello, I am here") == 2
    suite.green()
    with run_root() as base:
        report = asyncio.run(replay_scenario(Place("scripted", "turn", suite.turn), base))
    assert report.green, "an absolute path to the scenario changes nothing"
