"""The commands as a person runs them: exit codes, what is printed, what is written and what is not."""

import json

import pytest

LAST = [["respond", {"stopReason": "end_turn"}]]
TURN = [["hear"], ["call"], ["say"], *LAST]


def check_command(suite, code, *said, arguments=("replay", "-n", "0"), **variables):
    """The command ends with this code, says all of this, and shows no traceback; what it said."""
    done = suite.command(*arguments, **variables)
    output = done.stdout + done.stderr
    assert done.returncode == code, output
    assert [part for part in said if part not in output] == [], output
    assert "Traceback" not in output
    return output


# ── replay ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_green_is_0_and_writes_nothing(suite):
    before = suite.tree()
    check_command(suite, 0, "1 passed")
    assert suite.tree() == before
    assert not {".snapshot-actual", ".snapshot-staging", ".pytest_cache"} & {path.name for path in suite.root.iterdir()}
    assert list((suite.root / "tmp").iterdir()) == []


def test_one_changed_word_makes_exactly_that_scenario_red(suite):
    suite.copy("other")
    suite.edit("stdout.golden.jsonl", "there", "their")
    before = suite.tree()
    output = check_command(
        suite,
        1,
        "1 failed, 1 passed",
        "--- stdout: snapshots/scripted/turn/stdout.golden.jsonl:3: 1 difference",
        "- hello [-their-] world",
        "+ hello {+there+} world",
        "actual files: .snapshot-actual/scripted/turn",
        "run again:    nox -s snapshot_agents -- scripted/turn",
        "mend:         nox -s snapshot_refresh -- scripted/turn",
        arguments=("replay", "-n", "2"),
    )
    assert "scripted/other:" not in output
    assert suite.tree() == before
    actual = suite.root / ".snapshot-actual" / "scripted" / "turn" / "stdout.golden.jsonl"
    assert "hello there world" in actual.read_text(encoding="utf-8")
    suite.edit("stdout.golden.jsonl", "their", "there")
    check_command(suite, 0)
    assert not actual.exists(), "a green run takes away what a red one left"


@pytest.mark.parametrize("blocked", [".snapshot-actual", ".snapshot-actual/scripted", ".snapshot-actual/scripted/turn"])
def test_actual_files_that_cannot_be_kept_hide_no_report(suite, blocked):
    """A file stands where their folder would."""
    (suite.root / blocked).parent.mkdir(parents=True, exist_ok=True)
    (suite.root / blocked).write_text("", encoding="utf-8")
    check_command(suite, 0, "1 passed")
    suite.edit("stdout.golden.jsonl", "there", "their")
    check_command(
        suite,
        1,
        "stdout.golden.jsonl:3: 1 difference",
        "actual files: could not be kept in .snapshot-actual/scripted/turn: ",
        "run again:    nox -s snapshot_agents -- scripted/turn",
    )


def test_a_scenario_of_another_platform_is_skipped_by_name(suite):
    suite.edit("scenario.toml", 'recording = "scripted"', 'recording = "scripted"\nplatforms = ["win32", "darwin"]')
    check_command(suite, 0, "1 skipped", "platforms = ['win32', 'darwin'], this is linux")


def test_a_wrong_file_is_one_scenario_red_with_its_sentence_alone(suite):
    suite.copy("other")
    other = suite.folder / "other" / "scenario.toml"
    text = other.read_text(encoding="utf-8")
    other.write_text(text.replace("answer_contains", "answers_contain"), encoding="utf-8")
    output = check_command(
        suite,
        1,
        "1 failed, 1 passed",
        "scripted/other: snapshots/scripted/other/scenario.toml:11: unknown key 'answers_contain'",
        "mend: write 'answer_contains', or remove it",
    )
    assert "0 failures" not in output


def test_one_header_change_in_two_scenarios_is_told_once(suite):
    suite.copy("other")
    suite.plan(session_prompt=[["hear"], ["call", {"system": "You are a pest."}], ["say"], *LAST])
    output = check_command(suite, 1, "2 failed", "one change, 2 scenarios", "in: scripted/other, scripted/turn")
    assert output.count("pest") == 1
    assert output.count("the header of class 'default' is not as snapshots/scripted/turn/header.system.md pins it") == 3


OUTSIDE = ["scripted/turn is not in the suites asked for", "mend: nox -s snapshot_agents -- scripted/turn\n"]
HALF = ["snapshots/scripted/half/scenario.toml: the file is missing", "mend: write scenario.toml"]


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        (["replay", "trun"], {}, ["no scenario is called 'trun'", "mend: the nearest are: turn"]),
        (["replay", "--suite", "scriptd"], {}, ["no suite is called 'scriptd'", "mend: the nearest are: scripted"]),
        (["replay", "--suite", "zzz"], {}, ["no suite is called 'zzz'", "mend: there are: bare, scripted, session"]),
        (
            ["replay", "--suite", "empty"],
            {},
            ["snapshots/empty/agent.toml: the file is missing", "mend: write agent.toml"],
        ),
        (["replay", "--suite", "session", "turn"], {}, OUTSIDE),
        (["replay", "--suite", "session", "scripted/turn"], {}, OUTSIDE),
        (["replay", "--suite", "session", "scripted"], {}, ["mend: nox -s snapshot_agents -- scripted\n"]),
        (["replay", "--agents", "own"], {}, ["session/own is not in", "mend: nox -s snapshot -- session/own\n"]),
        (["replay", "bare"], {}, ["there is no scenario in snapshots/bare", "mend: write one"]),
        (["replay", "empty"], {}, ["snapshots/empty/agent.toml: the file is missing"]),
        (["replay", "half"], {}, HALF),
        (["replay", "snapshots/scripted/half/"], {}, HALF),
        (["replay", "--suite", "scripted"], {}, HALF),
        (["refresh", "half"], {}, HALF),
        (["record", "scripted/half"], {}, HALF),
        (["replay", "lost"], {}, ["snapshots/agentless/agent.toml: the file is missing", "mend: write agent.toml"]),
        (["replay"], {}, ["snapshots/agentless/agent.toml: the file is missing"]),
        (["replay", "--snapshots", "nowhere"], {}, ["there is no scenario in nowhere", "mend: write one"]),
        (["replay"], {"SNAPSHOT_MODE": "record"}, ["SNAPSHOT_MODE is 'record', and this is replay"]),
        (["replay"], {"SNAPSHOT_MODE": "reply"}, ["SNAPSHOT_MODE is 'reply'", "mend: set it to one of replay, record"]),
        (
            ["refresh", "turn"],
            {"CI": "1"},
            ["refresh rewrites goldens, and this is CI", "mend: run it on your machine"],
        ),
        (["refresh"], {}, ["no scenario is named", "mend: nox -s snapshot_refresh -- NAME"]),
        (["refresh", "trun"], {}, ["no scenario is called 'trun'", "the nearest are: turn"]),
    ],
)
def test_what_cannot_be_done_is_2_with_the_mend(suite, arguments, variables, said):
    for name in ("session/agent.toml", "session/own/scenario.toml", "bare/agent.toml", "agentless/lost/scenario.toml"):
        suite.write(f"../../{name}", "")
    suite.write("../half/input.json", "{}")
    (suite.snapshots / "empty").mkdir()
    before = suite.tree()
    check_command(suite, 2, *said, arguments=arguments, **variables)
    assert suite.tree() == before


def test_repeats_that_are_red_keep_their_files_apart(suite):
    suite.edit("stdout.golden.jsonl", "there", "their")
    check_command(suite, 1, "3 failed", arguments=("replay", "--repeat", "3", "-n", "2"))
    kept = sorted(path.name for path in (suite.root / ".snapshot-actual" / "scripted").iterdir())
    assert kept == ["turn[1]", "turn[2]", "turn[3]"]


# ── refresh ─────────────────────────────────────────────────────────────────────────────────────────────────────────

NEW_FRAME = [["update", "usage_update", {"used": 1, "size": 2}], *TURN]


def test_refresh_shows_and_writes_nothing(suite):
    suite.copy("other")
    suite.plan(session_prompt=NEW_FRAME)
    before = suite.tree()
    check_command(
        suite,
        1,
        "additive: stdout: event 'usage_update' added, in 2 scenarios: scripted/other, scripted/turn",
        "nothing was written; add --accept to write it",
        arguments=("refresh", "--all"),
    )
    assert suite.tree() == before


def test_refresh_that_is_accepted_writes_goldens_and_nothing_else(suite):
    suite.plan(session_prompt=NEW_FRAME)
    before = suite.tree()
    output = check_command(suite, 0, "scripted/turn: rewritten", arguments=("refresh", "turn", "--accept"))
    assert "mend: " not in output and "--accept" not in output
    after = suite.tree()
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed == {"scripted/turn/stdout.golden.jsonl", "scripted/turn/provenance.toml"}
    assert b'made_by = "refresh"' in after["scripted/turn/provenance.toml"]
    assert b"usage_update = 1" in after["scripted/turn/provenance.toml"]
    suite.green()
    check_command(suite, 0, "nothing changed", arguments=("refresh", "turn"))


def test_a_drifted_request_is_taken_in(suite):
    suite.plan(session_prompt=[["hear"], ["call", {"temperature": 0.5}], ["say"], *LAST])
    check_command(suite, 0, "/params/temperature added", arguments=("refresh", "turn", "--accept"))
    assert b'"temperature":0.5' in suite.tree()["scripted/turn/requests.golden.jsonl"]
    suite.green()


def test_a_drifted_header_is_taken_in_by_the_scenario_that_pins_it(suite):
    suite.copy("other")
    suite.plan(session_prompt=[["hear"], ["call", {"system": "You are a pest."}], ["say"], *LAST])
    check_command(suite, 0, arguments=("refresh", "--all", "--accept"))
    assert suite.tree()["scripted/turn/header.system.md"] == b"You are a pest.\n"
    suite.green()
    check_command(suite, 0, "2 passed")


@pytest.mark.parametrize(
    ("acts", "said", "surfaces"),
    [
        ([*TURN[:2], ["say", "bye"], *LAST], "answer_contains: 'hello' is not in the answer 'bye'", "expect"),
        ([["write", "new.txt", "x"], *TURN], "added:   new.txt", "workspace"),
        ([*TURN, ["exit", 3]], "the agent exited with code 3", "agent"),
        (
            [["hear"], ["say", "hello"], *LAST],
            "recorded call 0 (lane 0, session.jsonl#0) was never asked for",
            "consumed",
        ),
        ([["hear"], ["call", {"model": "x"}], ["write", "a", ""], *LAST], "added:   a", "expect and workspace"),
    ],
)
def test_what_no_golden_holds_is_never_taken_in(suite, acts, said, surfaces):
    suite.plan(session_prompt=acts)
    before = suite.tree()
    refused = f"refused: scripted/turn is red for {surfaces}, which no golden can mend\nmend: correct the agent; or, if"
    check_command(suite, 1, said, refused, arguments=("refresh", "turn", "--accept"))
    assert suite.tree() == before


def test_a_call_nobody_recorded_is_never_taken_in(suite):
    suite.plan(session_prompt=[["hear"], ["call"], ["say"], ["hear", "A title?"], ["call"], *LAST])
    before = suite.tree()
    check_command(suite, 1, "model call 1 is not in the recording", arguments=("refresh", "turn", "--accept"))
    assert suite.tree() == before


def test_a_header_that_another_scenario_pins_is_not_taken_in_alone(suite):
    suite.copy("other")
    suite.plan(session_prompt=[["hear"], ["call", {"system": "You are a pest."}], ["say"], *LAST])
    before = suite.tree()
    check_command(
        suite,
        1,
        "refused: scripted/other is red for what scripted/turn pins; refresh that as well",
        "mend: nox -s snapshot_refresh -- scripted/other scripted/turn --accept",
        "{+pest+}",
        arguments=("refresh", "other", "--accept"),
    )
    assert suite.tree() == before


def test_what_a_project_says_of_its_own_tests_is_not_meant_for_replays(suite):
    told = '[tool.pytest.ini_options]\naddopts = "--no-such-option -k nothing"\nfaulthandler_timeout = 0.001\n'
    (suite.root / "pyproject.toml").write_text(told, encoding="utf-8")
    check_command(suite, 0, "1 passed")


def test_an_unused_allowance_is_an_error(suite):
    suite.agent('[wire]\nallow = [{check = "envelope", reason = "it was so once"}]\n')
    suite.copy("other")
    check_command(
        suite,
        1,
        "snapshots/scripted/agent.toml:11: ",
        "[wire] allow 'envelope' is not used by any scenario",
        "mend: remove",
    )
    check_command(suite, 0, "1 passed", arguments=("replay", "turn"))


def test_an_interrupted_swap_is_finished_by_the_next_command(suite):
    staged = suite.root / ".snapshot-staging" / "scripted--turn"
    staged.mkdir(parents=True)
    golden = (suite.turn / "stdout.golden.jsonl").read_text(encoding="utf-8")
    (staged / "stdout.golden.jsonl").write_text(golden, encoding="utf-8")
    suite.edit("stdout.golden.jsonl", "there", "their")
    journal = {"folder": "snapshots/scripted/turn", "files": ["stdout.golden.jsonl"], "remove": []}
    (staged / "journal.json").write_text(json.dumps(journal), encoding="utf-8")
    check_command(suite, 0, "1 passed")
    assert not staged.exists()


def test_the_files_that_an_agent_left_are_kept_where_they_are_not_as_expected(suite):
    suite.plan(session_prompt=[["write", "deep/er.txt", "left behind"], ["hear"], ["call"], ["say"], *LAST])
    done = suite.command("replay", "turn")
    assert (done.returncode, "added:   deep/er.txt" in done.stdout) == (1, True), done.stdout
    kept = suite.root / ".snapshot-actual" / "scripted" / "turn" / "workspace"
    assert (kept / "deep" / "er.txt").read_text(encoding="utf-8") == "left behind"
