"""Review without a terminal: what is pending, a line each; and where nobody could answer."""

import pytest

TURN = [["hear"], ["call"], ["say"], ["respond", {"stopReason": "end_turn"}]]
CHANGED = [
    ["update", "usage_update", {"used": 1, "size": 2}],
    ["update", "plan", {"entries": []}],
    ["hear"],
    ["call", {"temperature": 0.5}],
    ["say", "hello there wide world"],
    TURN[-1],
]


def check_command(suite, code, *arguments, out=(), err=(), **variables):
    done = suite.command("review", *arguments, **variables)
    assert done.returncode == code, done.stdout + done.stderr
    assert [part for part in out if part not in done.stdout] == [], done.stdout
    assert [part for part in err if part not in done.stderr] == [], done.stderr
    return done.stdout


def test_the_list(suite):
    suite.copy("other")
    suite.plan(session_prompt=CHANGED)
    before = suite.tree()
    progress = ["[1/2] scripted/", "[2/2] scripted/"]
    out = check_command(suite, 1, "--list", err=progress, CI="true", SNAPSHOT_MODE="replay")
    phrase = "event 'agent_message_chunk': /params/update/content/text changed"
    assert out.splitlines() == [
        f"scripted/{name}#{line}"
        for name in ("other", "turn")
        for line in (
            "1  additive  stdout  event 'usage_update' added  (stdout.golden.jsonl:3)",
            "2  additive  stdout  event 'plan' added  (stdout.golden.jsonl:4)",
            f"3  wording  stdout  {phrase}  (stdout.golden.jsonl:3)",
            "4  semantic  requests  request: /params/temperature added  (requests.golden.jsonl:1)",
        )
    ]
    assert suite.tree() == before
    suite.plan()
    assert check_command(suite, 0, "--list", SNAPSHOT_MODE="refresh") == ""


def test_the_list_says_what_no_golden_can_mend(suite):
    suite.plan(session_prompt=[*TURN, ["exit", 3]])
    check_command(
        suite, 1, "turn", "--list", out=["scripted/turn  red  scripted/turn is red for agent, which no golden"]
    )


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        ([], {}, ["review asks at a terminal, and this is none", "mend: session-snapshot review --list"]),
        (["turn"], {"CI": "1"}, ["review rewrites goldens, and this is CI", "mend: session-snapshot review --list"]),
        (["trun", "--list"], {}, ["no scenario is called 'trun'", "the nearest are: turn"]),
        (["--list"], {"SNAPSHOT_MODE": "record"}, ["SNAPSHOT_MODE is 'record', and this is refresh"]),
        (["turn"], {"SNAPSHOT_MODE": "replay"}, ["SNAPSHOT_MODE is 'replay', and this is refresh"]),
    ],
)
def test_what_is_refused(suite, arguments, variables, said):
    before = suite.tree()
    check_command(suite, 2, *arguments, err=said, **variables)
    assert suite.tree() == before
