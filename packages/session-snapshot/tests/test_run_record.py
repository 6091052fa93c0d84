"""Recording whole runs: its gates, what it writes, and that a recording which fails leaves everything as it was."""

import asyncio
import json

import filelock
import pytest
from session_snapshot.errors import AgentError, FixtureError, Refused
from session_snapshot.replay import replay_scenario
from session_snapshot.runroot import run_root
from session_snapshot.suites import Place

LAST = [["respond", {"stopReason": "end_turn"}]]
TURN = [["hear"], ["call"], ["say"], *LAST]


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
    assert scripted.record(CI="false")


def test_an_authored_scenario_is_refused(scripted):
    scripted.edit("scenario.toml", '"scripted"', '"authored"')
    scripted.unrecorded(Refused, "scripted/turn is authored", "mend: edit session.jsonl by hand")


def test_a_suite_that_says_nothing_of_recording(scripted):
    scripted.agent(record=False)
    scripted.unrecorded(Refused, "suite 'scripted' says nothing about recording", "mend: add [record]")


def test_two_recordings_of_one_scenario_at_a_time_are_refused(scripted):
    folder = scripted.root / ".snapshot-staging"
    folder.mkdir()
    with filelock.FileLock(folder / "scripted--turn.lock"):
        scripted.unrecorded(Refused, "scripted/turn is being recorded already", "mend: wait")


# ── what it writes ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_recording_is_whole_replays_and_holds_no_key(scripted):
    seen = scripted.root / "seen.json"
    scripted.plan(start=[["dump-environment", str(seen)]])
    said = scripted.record()
    assert said[0] == "scripted/turn: recording" and said[-1].startswith("scripted/turn: recorded: 1 model call, ")
    tree = {name.removeprefix("scripted/turn/"): text for name, text in scripted.tree().items()}
    assert b"hello once more" in tree["session.jsonl"] and b"hello once more" in tree["stdout.golden.jsonl"]
    assert b'made_by = "record"' in tree["provenance.toml"]
    assert b'upstream = "script"\nsource = "upstream.json"\n' in tree["provenance.toml"]
    assert b"{ agent_message_chunk = 1, response = 1 }" in tree["provenance.toml"]
    assert not [name for name, content in tree.items() if b"sk-real" in content]
    assert "sk-real" not in seen.read_text(encoding="utf-8")
    scripted.plan()
    scripted.green()


def test_the_real_key_is_what_the_provider_is_shown(scripted):
    """The script demands it, as a provider would: an agent that overrode it with the dummy would be refused."""
    assert any(line == "scripted/turn: model call 0 answered" for line in scripted.record())


def test_the_command_records(scripted):
    done = scripted.command("record", "turn", SCRIPTED_KEY=scripted.key)
    assert (done.returncode, done.stderr) == (0, "")
    assert "replay 3 of 3 is identical" in done.stdout


def test_failures_become_an_override_where_it_is_declared(scripted):
    throw = {"kind": "throw", "chunks": [], "code": "SERVER_ERROR", "message": "boom"}
    scripted.script(throw, "hello again")
    scripted.plan(session_prompt=[["hear"], ["call"], ["call"], ["say"], *LAST])
    scripted.edit("scenario.toml", "[expect]", '[expect]\nerror_codes = ["SERVER_ERROR"]')
    scripted.unrecorded(FixtureError, "a failure or a silence that a log cannot hold", "overridden = true")
    scripted.edit("scenario.toml", 'recording = "scripted"', 'recording = "scripted"\noverridden = true')
    scripted.record()
    assert '"code":"SERVER_ERROR"' in scripted.tree()["scripted/turn/replay.override.json"].decode()
    scripted.green()


def test_files_of_an_earlier_recording_that_are_no_more_go(scripted):
    scripted.write("session.1.jsonl", scripted.log_header)
    scripted.record()
    assert "scripted/turn/session.1.jsonl" not in scripted.tree()


# ── what it refuses ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("spoil", "error", "said"),
    [
        (lambda suite: suite.script("good bye"), FixtureError, ["the run breaks [expect]", "'hello' is not in"]),
        (lambda suite: suite.script(), FixtureError, ["turn/upstream.json", "model call 0 has no entry"]),
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
    scripted.unrecorded(error, *said)


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
    suite.script("hello, I am here", "hello again, I remember")
    opened = [{"op": "initialize"}, {"op": "newSession"}, {"op": "prompt", "text": "Remember this."}]
    suite.steps(
        *opened, {"op": "restart"}, {"op": "initialize"}, {"op": "loadSession"}, {"op": "prompt", "text": "Well?"}
    )
    suite.edit("scenario.toml", 'answer_contains = ["hello"]', "model_calls = 2")
    suite.record()
    rows = [json.loads(line) for line in suite.tree()["scripted/turn/requests.golden.jsonl"].splitlines()]
    assert [(row["parent"], len(row["append"])) for row in rows] == [(None, 1), (0, 2)]
    golden = suite.tree()["scripted/turn/stdout.golden.jsonl"].decode()
    assert golden.count("user_message_chunk") == 1 and golden.count("hello, I am here") == 2
    suite.green()
    with run_root() as base:
        report = asyncio.run(replay_scenario(Place("scripted", "turn", suite.turn), base))
    assert report.green, "an absolute path to the scenario changes nothing"
