"""Refresh in part: only what is accepted is written, whole, proved; what is refused is refused for every scenario."""

import json
import tomllib

import pytest
from fixture_guard import machine_digest, machine_files
from session_snapshot.staging import scenario_lock

LAST = [["respond", {"stopReason": "end_turn"}]]
TURN = [["hear"], ["call"], ["say"], *LAST]
USAGE = ["update", "usage_update", {"used": 1, "size": 2}]
THREE_KINDS = [USAGE, ["hear"], ["call", {"temperature": 0.5}], ["say", "hello there wide world"], *LAST]
ADDITIVE = "additive: stdout: event 'usage_update' added, in scripted/turn"
WORDING = "wording: stdout: event 'agent_message_chunk': /params/update/content/text changed, in scripted/turn"
SEMANTIC = "semantic: requests: request: /params/temperature added, in scripted/turn"


def refresh(suite, code, *arguments, said=(), unsaid=()):
    """``refresh`` ends with this code and says all of this, and none of that; what it said."""
    done = suite.command("refresh", *arguments)
    output = done.stdout + done.stderr
    assert done.returncode == code, output
    assert [part for part in said if part not in output] == [], output
    assert [part for part in unsaid if part in output] == [], output
    assert "Traceback" not in output
    return output


def lines_of(suite, name):
    return (suite.turn / name).read_text(encoding="utf-8").splitlines()


def check_digest(suite):
    """The provenance has the digest of the files as they are."""
    provenance = tomllib.loads((suite.turn / "provenance.toml").read_text(encoding="utf-8"))
    files = {path.name: path.read_bytes() for path in suite.turn.iterdir() if path.is_file()}
    assert provenance["made_by"] == "refresh"
    assert provenance["digest"] == machine_digest(machine_files(files, "scripted"))
    return provenance["frames"]["steps"]


def test_only_the_accepted_kinds_are_written_and_exactly_they_are_gone(suite):
    suite.plan(session_prompt=THREE_KINDS)
    before = suite.tree()
    old = lines_of(suite, "stdout.golden.jsonl")

    refresh(
        suite, 1, "turn", "--accept-kind", "additive",
        said=[ADDITIVE, WORDING, SEMANTIC, "scripted/turn: wrote 1, 2 left\n", "left red: 1 wording, 1 semantic\n"],
    )  # fmt: skip
    after = suite.tree()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"scripted/turn/stdout.golden.jsonl", "scripted/turn/provenance.toml"}
    new = lines_of(suite, "stdout.golden.jsonl")
    assert [line for line in new if line not in old] == [line for line in new if "usage_update" in line]
    assert [line for line in new if "usage_update" not in line] == old
    assert check_digest(suite)[2] == {"agent_message_chunk": 1, "response": 1, "usage_update": 1}
    said = {(failure.surface, failure.what.partition(": ")[2]) for failure in suite.replay().failures}
    assert said == {
        ("stdout", "1 difference, the first in line 4"),
        ("requests", "1 difference, the first in line 1"),
    }

    refresh(
        suite, 0, "turn", "--accept-kind", "semantic", "--accept-kind", "wording,clock",
        said=["scripted/turn: rewritten"], unsaid=["left red", ADDITIVE],
    )  # fmt: skip
    check_digest(suite)
    suite.green()


def test_a_kind_that_stays_red_keeps_its_pace(suite):
    suite.plan(session_prompt=THREE_KINDS)
    refresh(suite, 1, "turn", "--accept-kind", "wording", said=["left red: 1 additive, 1 semantic\n"])
    assert check_digest(suite)[2] == {"agent_message_chunk": 1, "response": 1}


def tool(number):
    return ["update", "tool_call", {"toolCallId": f"call-number-{number}", "title": f"Tool {number}"}]


def test_what_renumbers_later_rows_is_refused_without_the_numbers(suite):
    suite.plan(session_prompt=[tool(1), tool(3), *TURN])
    refresh(suite, 0, "turn", "--accept")
    assert [line.count("{{toolCallId:2}}") for line in lines_of(suite, "stdout.golden.jsonl")[2:4]] == [0, 1]
    suite.plan(session_prompt=[tool(1), tool(2), tool(3), *TURN])
    before = suite.tree()
    refresh(
        suite, 1, "turn", "--accept-kind", "additive",
        said=[
            "additive: stdout: event 'tool_call' added, in scripted/turn",
            "identity: stdout: event 'tool_call': {{toolCallId}} renumbered, in scripted/turn",
            "refused: scripted/turn: what is accepted cannot be written alone, since a token would mean two things",
            "accept also: 1 identity\n  identity: stdout.golden.jsonl:4: event 'tool_call': {{toolCallId}} renumbered",
            "mend: nox -s snapshot_refresh -- scripted/turn --accept-kind additive,identity",
            "nothing was written, in no scenario",
        ],
    )  # fmt: skip
    assert suite.tree() == before
    refresh(suite, 0, "turn", "--accept-kind", "additive,identity")
    suite.green()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["turn", "--accept-kind", "additiv"], ["no kind of change is called 'additiv'", "mend: write 'additive'"]),
        (["turn", "--accept-kind", "order,sementic"], ["called 'sementic'; the nearest is 'semantic'"]),
        (["turn", "--accept-kind", "xyz"], ["mend: one of: clock, identity, order, additive, wording, semantic"]),
        (["turn", "--accept-kind", ""], ["no kind of change is called ''"]),
        (["turn", "--accept", "--accept-kind", "order"], ["--accept writes every kind", "mend: give one of them"]),
        (["turn", "--all"], ["--all is every scenario, and some are named", "mend: give names, or --all"]),
        (["--all", "--snapshots", "nowhere"], ["there is no scenario in nowhere"]),
    ],
)
def test_what_cannot_be_asked_for(suite, arguments, said):
    suite.plan(session_prompt=THREE_KINDS)
    before = suite.tree()
    refresh(suite, 2, *arguments, said=said)
    assert suite.tree() == before


def test_a_kind_that_nothing_is_of(suite):
    suite.plan(session_prompt=THREE_KINDS)
    before = suite.tree()
    refresh(
        suite, 1, "turn", "--accept-kind", "clock,order", said=["no difference is of kind clock, order", "left red: 1"]
    )
    assert suite.tree() == before


def test_one_scenario_that_is_refused_keeps_all_from_being_written(suite):
    suite.copy("other")
    suite.plan(session_prompt=THREE_KINDS)
    toml = (suite.folder / "other" / "scenario.toml").read_text(encoding="utf-8")
    (suite.folder / "other" / "scenario.toml").write_text(toml.replace('"hello"', '"goodbye"'), encoding="utf-8")
    # The recording itself must hold what [expect] says, so that only the agent breaks it.
    log = suite.folder / "other" / "session.jsonl"
    log.write_text(log.read_text(encoding="utf-8").replace("hello", "goodbye"), encoding="utf-8")
    before = suite.tree()
    refresh(
        suite, 1, "--all", "--accept",
        said=["refused: scripted/other is red for expect, which no golden can mend", "nothing was written, in no"],
        unsaid=["rewritten"],
    )  # fmt: skip
    assert suite.tree() == before
    refresh(suite, 0, "turn", "--accept", said=["scripted/turn: rewritten"])


def test_progress_and_groups_come_before_any_single_difference(suite):
    suite.copy("other")
    suite.plan(session_prompt=THREE_KINDS)
    output = refresh(suite, 1, "--all")
    both = "in 2 scenarios: scripted/other, scripted/turn"
    progress = [output.index(f"[{done}/2] scripted/") for done in (1, 2)]
    groups = [output.index(f"{line.partition(', in ')[0]}, {both}") for line in (ADDITIVE, SEMANTIC, WORDING)]
    assert [*progress, *groups] == sorted([*progress, *groups])
    assert groups[-1] < output.index("scripted/other: 2 failures")


def test_an_agent_that_never_does_the_same_is_never_taken_in(suite):
    suite.plan(session_prompt=[["hear"], ["call"], ["say", "hello <random>"], *LAST])
    before = suite.tree()
    refresh(
        suite, 1, "turn", "--accept",
        said=["refused: scripted/turn: two replays differ, so that no golden can hold: stdout.golden.jsonl:3"],
    )  # fmt: skip
    assert suite.tree() == before


def test_the_pin_that_is_taken_in_is_that_of_the_class_and_not_the_first_header(suite):
    """The scenario asks with two headers: the one that ``other`` pins, then the one that it pins itself."""
    suite.copy("other")
    (suite.folder / "other" / "scenario.toml").write_bytes((suite.turn / "scenario.toml").read_bytes())
    for name in ("header.system.md", "header.tools.json"):
        (suite.folder / "other" / name).write_bytes((suite.turn / name).read_bytes())
    suite.edit("scenario.toml", "pin = true", 'class = "title"\npin = true')
    suite.write("header.system.md", "You are brief.\n")
    suite.log(suite.text_answer(0, "hello there world"), suite.text_answer(1, "Hello"))
    titled = json.loads((suite.turn / "requests.golden.jsonl").read_text(encoding="utf-8"))
    titled |= {"call": 1, "lane": 1, "source": "session.jsonl#1", "header": "title"}
    titled["append"] = [{"role": "user", "content": [{"type": "text", "text": "A title?"}]}]
    suite.append("requests.golden.jsonl", suite.rows(titled))
    ask = [["forget", 2], ["hear", "A title?"]]

    def prompts(first, second):
        suite.plan(
            session_prompt=[["hear"], ["call", {"system": first}], ["say"], *ask, ["call", {"system": second}], *LAST]
        )

    def only(first):
        suite.plan(session_prompt=[["hear"], ["call", {"system": first}], ["say"], *LAST])

    prompts("You are a test.", "You are brief.")
    suite.green()
    prompts("You are a pest.", "You are quite brief.")
    refresh(
        suite, 1, "turn", "--accept",
        said=["refused: scripted/turn is red for what scripted/other pins; refresh that as well"],
    )  # fmt: skip
    refresh(
        suite,
        1,
        "turn",
        "--accept-kind",
        "wording,semantic",
        said=["scripted/turn: rewritten", "left red: what scripted/other pins"],
    )
    assert suite.tree()["scripted/turn/header.system.md"] == b"You are quite brief.\n"
    only("You are a pest.")
    refresh(suite, 0, "other", "--accept", said=["scripted/other: rewritten"])
    assert suite.tree()["scripted/other/header.system.md"] == b"You are a pest.\n"
    prompts("You are a pest.", "You are quite brief.")
    suite.green()


def test_a_pace_that_is_not_the_agents_is_taken_in(suite):
    suite.counts({"response": 1}, {"response": 1}, {"agent_message_chunk": 1, "response": 1, "plan": 1})
    suite.red("stdout", "plan")
    refresh(suite, 1, "turn", said=["order: stdout: the pace: /*/plan removed, in scripted/turn"])
    refresh(suite, 0, "turn", "--accept-kind", "order")
    assert check_digest(suite)[2] == {"agent_message_chunk": 1, "response": 1}
    suite.green()


def test_a_frame_that_comes_late_belongs_to_the_step_it_follows(suite):
    """The committed pace does not know it, so that a replay by that would go on without it."""
    suite.steps({"op": "initialize"}, {"op": "newSession"}, *[{"op": "prompt", "text": "Say hello."}] * 2)
    again = [["say", "hello again"], *LAST]
    suite.plan(session_prompt__1=TURN, session_prompt__2=again)
    refresh(suite, 0, "turn", "--accept")
    suite.plan(session_prompt__1=[*TURN, ["late", "plan", {"entries": []}, 0.05]], session_prompt__2=again)
    refresh(suite, 0, "turn", "--accept", said=["additive: stdout: event 'plan' added"])
    told = [line for line in lines_of(suite, "stdout.golden.jsonl") if "plan" in line or "again" in line]
    assert ["plan" in line for line in told] == [True, False]
    assert [step.get("plan") for step in check_digest(suite)] == [None, None, 1, None]
    suite.green()


def test_a_scenario_of_another_platform_is_left_out(suite):
    suite.edit("scenario.toml", 'recording = "scripted"', 'recording = "scripted"\nplatforms = ["win32", "darwin"]')
    suite.plan(session_prompt=THREE_KINDS)
    refresh(suite, 0, "turn", "--accept", said=["[1/1] scripted/turn: skipped, platforms = ['win32', 'darwin']"])


def test_a_golden_that_is_no_json_is_written_anew(suite):
    suite.edit("stdout.golden.jsonl", '{"jsonrpc":"2.0","id":2', '{oops"id":2')
    refresh(suite, 0, "turn", "--accept", said=["semantic: stdout: line removed", "semantic: stdout: response added"])
    assert "".join(f"{line}\n" for line in lines_of(suite, "stdout.golden.jsonl")) == suite.frames


def test_a_golden_in_other_bytes_is_an_order(suite):
    suite.edit("stdout.golden.jsonl", '"id":2,', '"id": 2,')
    refresh(suite, 0, "turn", "--accept-kind", "order", said=["order: stdout: response: the same in other bytes"])
    suite.green()


def test_an_edit_that_the_agent_agrees_with_is_sealed_and_only_when_told_to(suite):
    suite.plan(session_prompt=THREE_KINDS)
    refresh(suite, 0, "turn", "--accept")
    suite.edit("provenance.toml", 'digest = "', 'digest = "0')
    said = "scripted/turn: green, and provenance.toml does not tell of its files as they are"
    refresh(suite, 1, "turn", said=[said, "nothing was written; add --accept to write it"])
    refresh(suite, 0, "turn", "--accept", said=[said, "scripted/turn: provenance.toml rewritten"])
    check_digest(suite)
    (suite.turn / "provenance.toml").unlink()
    assert "note: provenance.toml is missing" in suite.command("replay", "turn").stdout
    refresh(suite, 0, "turn", "--accept", said=["scripted/turn: provenance.toml rewritten"])
    check_digest(suite)
    refresh(suite, 0, "turn", "--accept", said=["nothing changed"])


def test_an_answer_that_was_edited_by_hand_is_never_sealed(scripted):
    scripted.record()
    for path in scripted.turn.glob("*.jsonl"):
        path.write_text(path.read_text(encoding="utf-8").replace("once", "twice"), encoding="utf-8")
    before = scripted.tree()
    refused = ["refused: scripted/turn: what the model said was edited by hand", "mend: restore it from version"]
    refresh(scripted, 1, "turn", "--accept", said=refused)
    scripted.edit("stdout.golden.jsonl", "twice", "once")
    refresh(scripted, 1, "turn", "--accept", said=refused)
    scripted.edit("stdout.golden.jsonl", "once", "twice")
    assert scripted.tree() == before


def test_a_scenario_that_is_being_recorded_is_not_written(suite):
    suite.plan(session_prompt=THREE_KINDS)
    before = suite.tree()
    with scenario_lock(suite.snapshots, suite.place):
        refresh(suite, 2, "turn", "--accept", said=["scripted/turn is being recorded already"])
    assert suite.tree() == before
    refresh(suite, 0, "turn", "--accept")


# ── an agent's own log, which is the replay source as well ──────────────────────────────────────────────────────────


def own_log(suite, *events, answer=None):
    """The agent writes its own log, with the recorded answer (or these rows instead) between the first two events."""
    header = json.loads(suite.log_header) | {"id": "{{session}}", "createdAt": 1, "cwd": "<cwd>"}
    told = answer or [json.loads(line) for line in suite.text_answer(0, "hello there world").splitlines()]
    numbered = [row | {"seq": at, "time": at} for at, row in enumerate([events[0], *told, *events[1:]])]
    suite.agent('[persistence]\nformat = "session-snapshot"\nlog = "{{home}}/log/*.jsonl"\n')
    suite.plan(eof=[["log", [header, *numbered]]])


def event(kind, **data):
    return {"type": kind, "data": data}


def logged(suite):
    """A green suite whose agent writes its own log."""
    own_log(suite, event("turn/start", turn=1), event("turn/end", reason="completed"))
    refresh(suite, 0, "turn", "--accept")
    suite.green()
    return lines_of(suite, "session.jsonl")


def test_what_the_model_said_stays_byte_for_byte_when_events_around_it_change(suite):
    old = logged(suite)
    own_log(suite, event("turn/start", turn=2), event("step/end"), event("turn/end", reason="completed"))
    refresh(suite, 1, "turn", "--accept-kind", "additive", said=["additive: session: event 'step/end' added"])
    new = lines_of(suite, "session.jsonl")
    assert [line for line in new if line not in old] == ['{"type":"step/end","data":{}}']
    assert [line for line in new if "step/end" not in line] == old
    refresh(suite, 0, "turn", "--accept-kind", "semantic")
    assert '{"type":"turn/start","data":{"turn":2}}' in lines_of(suite, "session.jsonl")
    said = [line for line in old if "assistant/chunk" in line or "llm/call" in line]
    assert [line for line in lines_of(suite, "session.jsonl") if line in said] == said
    suite.green()


def test_a_log_that_says_otherwise_what_the_model_said_is_refused(suite):
    logged(suite)
    told = [json.loads(line) for line in suite.text_answer(0, "hello where world").splitlines()]
    own_log(suite, event("turn/start", turn=2), event("turn/end", reason="completed"), answer=told)
    before = suite.tree()
    refresh(
        suite, 1, "turn", "--accept",
        said=[
            "refused: scripted/turn: the replay's log does not say what the model said: session.jsonl:5: "
            "event 'assistant/chunk': /data/chunk/text changed",
            "mend: correct the agent's log; or nox -s snapshot_record -- scripted/turn",
        ],
    )  # fmt: skip
    assert suite.tree() == before
