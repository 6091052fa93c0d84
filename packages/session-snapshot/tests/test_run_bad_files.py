"""Committed files that are wrong: the replay names file and line, what is wrong, and what mends it."""

import json

import pytest
from session_snapshot.errors import FixtureError
from session_snapshot.fixtures import load_committed
from session_snapshot.suites import Place, load

WHERE = "snapshots/scripted"
STEPS = [{"op": "initialize"}, {"op": "newSession"}, {"op": "prompt", "text": "Say hello."}]


def check_refused(suite, *said):
    """The replay is refused before anything runs, with a sentence that says all of this, the mend last."""
    with pytest.raises(FixtureError) as caught:
        suite.replay()
    text = str(caught.value)
    assert all(part in text for part in said), text
    assert text.splitlines()[-1].startswith("mend: ")


# ── what a person writes ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("scenario.toml", 'recording = "scr', 'overriden = true\nrecording = "scr', ["scenario.toml:2", "'overriden'"]),
        ("scenario.toml", "answer_contains", "answers_contain", ["scenario.toml:13", "'answer_contains'"]),
        ("scenario.toml", '"scripted"', '"scriptd"', ["scenario.toml:2", "'scriptd'", "write 'scripted'"]),
        ("scenario.toml", "[limits]", "[limits", ["scenario.toml:7", "not TOML", "mend: correct the file"]),
        ("scenario.toml", "= 20", '= "20"', ["scenario.toml:8", "Expected `float`"]),
        ("scenario.toml", 'description = "A turn."\n', "", ["scenario.toml:1", "description", "mend: add description"]),
        ("scenario.toml", 'answer_contains = ["hello"]\n', "", ["scenario.toml:12", "[expect] asserts nothing"]),
        ("input.json", '"newSession"', '"newSesion"', ["input.json:4", "'newSesion'", "write 'newSession'"]),
        ("input.json", '"op": "prompt"', '"op": "xyzzy"', ["input.json:5", "unknown value 'xyzzy'", "mend: one of: "]),
        ("input.json", '"text": "Say', '"txt": "Say', ["input.json:5", "unknown key 'txt'", "write 'text'"]),
        ("input.json", '"newSession"},', '"newSession"}', ["input.json:5", "not JSON"]),
        ("input.json", '"op": "prompt"', '"op": "waitForEvent"', ["input.json:5"]),
        ("../agent.toml", "[install]", "[instal]", ["agent.toml:8", "unknown key 'instal'", "write 'install'"]),
        ("../agent.toml", "key_env = ", "key_evn = ", ["agent.toml:5", "unknown key 'key_evn'", "write 'key_env'"]),
        ("provenance.toml", '"hand"', '"foot"', ["provenance.toml:1", "'foot'", "mend: one of: hand, "]),
        ("header.tools.json", '"name": "touch"', '"nam": "touch"', ["header.tools.json", "not a list of tools"]),
    ],
)
def test_a_wrong_word_is_named_with_its_line_and_the_nearest_right_one(suite, name, old, new, said):
    suite.edit(name, old, new, times=(suite.turn / name).read_text(encoding="utf-8").count(old) if "key" in old else 1)
    check_refused(suite, f"{WHERE}/", *said)


def test_an_op_that_needs_a_log_says_so_where_none_is_declared(suite):
    suite.steps({"op": "initialize"}, {"op": "waitForEvent", "type": "turn/end"})
    said = "waitForEvent reads the agent's own session log, and agent.toml declares none"
    check_refused(suite, f"{WHERE}/turn/input.json:4: {said}", "or use waitForUpdate or waitForFile")


def test_a_script_without_steps_proves_nothing(suite):
    suite.write("input.json", '{"steps": []}\n')
    check_refused(suite, f"{WHERE}/turn/input.json:1: a script without steps proves nothing")


@pytest.mark.parametrize("name", ["scenario.toml", "input.json", "session.jsonl", "../agent.toml", "header.tools.json"])
def test_a_missing_file_is_named(suite, name):
    suite.remove(name)
    check_refused(suite, name.removeprefix("../"))


def test_no_recording_names_the_command_that_makes_one(suite):
    suite.remove("session.jsonl")
    check_refused(suite, f"{WHERE}/turn/session.jsonl: ", "mend: nox -s snapshot_record -- scripted/turn")


TEXTS = ["scenario.toml", "input.json", "session.jsonl", "requests.golden.jsonl", "stdout.golden.jsonl"]
TEXTS += ["provenance.toml", "header.system.md", "header.tools.json", "replay.override.json"]


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_that_is_no_text_is_named(suite, name):
    if name == "replay.override.json":
        override(suite, '{"patches": []}\n')
    content = (suite.turn / name).read_bytes()
    (suite.turn / name).write_bytes(content + b"\xff\n")
    check_refused(suite, f"{WHERE}/turn/{name}:{len(content.splitlines()) + 1}: not UTF-8 (byte {len(content)})")


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([*STEPS, {"op": "prompt", "text": "Say hello."}], "the script has 4 steps, and had 3 when it was recorded"),
        (STEPS[:1], "the script has 1 step, and had 3 when it was recorded"),
    ],
)
def test_a_script_that_is_not_the_recorded_one(suite, steps, said):
    recorded = suite.counted
    suite.steps(*steps)
    suite.counts(*recorded)
    check_refused(suite, f"{WHERE}/turn/input.json: {said}\nmend: nox -s snapshot_record -- scripted/turn")


def test_a_script_of_which_no_frames_are_recorded(suite):
    suite.counts()
    suite.green()


@pytest.mark.parametrize("name", ["header.system.md", "header.tools.json"])
def test_a_missing_pin_is_made_by_recording_the_scenario_that_pins(suite, name):
    suite.copy("other")
    suite.remove(name)
    said = f"{WHERE}/turn/{name}: the file is missing, and with it the pin of header class 'default'"
    check_refused(suite, said, "mend: nox -s snapshot_record -- scripted/turn")
    with pytest.raises(FixtureError, match=r"mend: nox -s snapshot_record -- scripted/turn$"):
        load_committed(load(Place("scripted", "other", suite.folder / "other")))


def test_a_class_that_nobody_pins(suite):
    suite.edit("scenario.toml", "pin = true", "pin = false")
    said = f"{WHERE}/turn/requests.golden.jsonl:1: no scenario of the suite pins the header class 'default'"
    check_refused(suite, said, "mend: set [header] pin = true in one scenario")


def test_missing_requests_are_named(suite):
    suite.remove("requests.golden.jsonl")
    suite.red("requests", f"{WHERE}/turn/requests.golden.jsonl is missing", "mend: record the scenario")


# ── what a machine writes ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["session.jsonl", "requests.golden.jsonl"])
@pytest.mark.parametrize("line", ['{"call":', "[]", "null", '{"unknown": 1}'])
def test_a_malformed_line_is_named_by_number(suite, name, line):
    number = (suite.turn / name).read_text(encoding="utf-8").count("\n") + 1
    suite.append(name, line + "\n")
    check_refused(suite, f"{WHERE}/turn/{name}:{number}: ")


def test_a_malformed_line_of_the_frames_is_named_by_number(suite):
    suite.edit("stdout.golden.jsonl", '{"jsonrpc":"2.0","id":1,', '{"jsonrpc":"2.0",id:1,')
    suite.red("stdout", f"{WHERE}/turn/stdout.golden.jsonl:2: not JSON")


def test_a_missing_golden_says_how_to_get_one(suite):
    suite.remove("stdout.golden.jsonl")
    suite.red("stdout", "stdout.golden.jsonl is missing", "mend: record the scenario, or refresh it")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"call":0', '"call":1', "call is 1 where 0 was due"),
        ('"parent":null', '"parent":3', "parent 3 does not stand before call 0"),
        ('"source":"session.jsonl#0"', '"source":"session.jsonl#4"', "'session.jsonl#4' is no recorded answer"),
        ('"header":"default"', '"header":"other"', "no scenario of the suite pins the header class 'other'"),
        ('"role":"user"', '"role":"usher"', "not a message"),
    ],
)
def test_rows_that_do_not_fit_are_named(suite, old, new, said):
    suite.edit("requests.golden.jsonl", old, new)
    check_refused(suite, f"{WHERE}/turn/requests.golden.jsonl:1: ", said)


def test_a_recorded_answer_that_no_row_names(suite):
    suite.append("session.jsonl", suite.text_answer(1, "nobody asks for this"))
    check_refused(suite, f"{WHERE}/turn/requests.golden.jsonl: no row names the recorded answer 'session.jsonl#1'")


def test_line_ends_of_another_system_mean_nothing_in_what_a_person_writes(suite):
    for name in ("input.json", "scenario.toml"):
        text = (suite.turn / name).read_text(encoding="utf-8")
        suite.write(name, text.replace("\n", "\r\n"))
    suite.green()


def test_a_golden_that_says_the_same_in_other_bytes_is_red(suite):
    suite.edit("stdout.golden.jsonl", '"id":1,"result"', '"id": 1,"result"')
    suite.red("stdout", "says the same in other bytes", "line 2")


# ── overrides ───────────────────────────────────────────────────────────────────────────────────────────────────────


def override(suite, document, declared=True):
    if declared:
        suite.edit("scenario.toml", 'recording = "scripted"', 'recording = "scripted"\noverridden = true')
    suite.write("replay.override.json", document if isinstance(document, str) else json.dumps(document))


HANG = {"kind": "hang"}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("{", "not JSON"),
        ({"patchs": []}, "must be an array of entries"),
        ({"patches": [{"at": 0}]}, "patches[0]: must be an object with at, entry"),
        ({"patches": [{"at": -1, "entry": HANG}]}, "patches[0].at: must be a whole number from 0"),
        ({"patches": [{"at": 0, "entry": {"kind": "thrw"}}]}, "patches[0].entry"),
        ({"patches": [{"at": 0, "entry": HANG}, {"at": 0, "entry": HANG}]}, "is patched twice"),
        ({"patches": [{"at": 9, "entry": HANG}]}, "a patch is at call 9 of lane 0, which has 1 calls"),
        ({"patches": [{"at": 1, "entry": HANG}]}, "lane 0 has 2 answers and"),
        ({"patches": [{"at": 0, "entry": HANG, "lane": 2}]}, "a patch names lane 2, the recording has 1"),
        ([], "lane 0 has 0 answers and"),
    ],
)
def test_a_wrong_or_unused_override_is_named(suite, document, said):
    override(suite, document)
    check_refused(suite, f"{WHERE}/turn/replay.override.json", said)


def test_an_override_that_nobody_declared(suite):
    override(suite, {"patches": []}, declared=False)
    check_refused(suite, f"{WHERE}/turn/replay.override.json", "does not say overridden = true")


def test_an_override_that_is_declared_and_missing(suite):
    override(suite, {"patches": []})
    suite.remove("replay.override.json")
    check_refused(suite, f"{WHERE}/turn/replay.override.json: the override is declared and missing")


def test_an_override_of_a_call_that_is_never_made_is_red(suite):
    answer = {"kind": "chunks", "chunks": [{"type": "finish", "reason": {"kind": "stop"}}]}
    suite.append("requests.golden.jsonl", second_row("replay.override.json#1"))
    override(suite, {"patches": [{"at": 1, "entry": answer}]})
    suite.red("consumed", "recorded call 1 (lane 0, replay.override.json#1) was never asked for", "mend: ")


def second_row(source):
    said = {"role": "assistant", "content": [{"type": "text", "text": "hello there world"}]}
    again = {"role": "user", "content": [{"type": "text", "text": "Again."}]}
    params = {"model": "fake-model", "stream": True}
    row = {"call": 1, "lane": 0, "parent": 0, "source": source, "header": "default", "params": params}
    return json.dumps(row | {"append": [said, again]}) + "\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{fromRequest:nothing like it}}", "fromRequest:nothing like it"),
        ("{{fromRequest:(}}", "fromRequest:("),
        ("{{fromRequest:Say", "fromRequest:Say"),
        ("{{sessionId:7}}", "{{sessionId:7}}, which this run has no value for"),
    ],
)
def test_a_placeholder_that_cannot_be_filled_is_the_recordings_fault(suite, text, said):
    block = [{"type": "block-start", "index": 0, "blockType": "text"}, {"type": "text-delta", "index": 0, "text": text}]
    block += [{"type": "block-end", "index": 0, "block": {"type": "text", "text": text}}]
    chunks = [*block, {"type": "finish", "reason": {"kind": "stop"}}]
    override(suite, {"patches": [{"at": 0, "entry": {"kind": "chunks", "chunks": chunks}}]})
    suite.edit("scenario.toml", 'answer_contains = ["hello"]', "model_calls = 1")
    suite.red("fixture", "session.jsonl", said, "mend: ")


# ── the script against the run ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"op": "removeFile", "path": "gone.txt"}, "removeFile 'gone.txt': No such file"),
        ({"op": "removeFile", "path": "../../outside.txt"}, "'../../outside.txt' is not under the run's cwd"),
        ({"op": "writeFile", "path": "../../outside.txt", "text": ""}, "is not under the run's cwd"),
        ({"op": "writeFile", "path": "/outside.txt", "text": ""}, "is not under the run's cwd"),
        ({"op": "writeFile", "path": ".", "text": ""}, "writeFile 'work': Is a directory"),
        ({"op": "prompt", "text": "x", "session": "bob"}, "no session 'bob'"),
    ],
)
def test_a_step_that_cannot_be_performed_is_named_by_line(suite, step, said):
    suite.steps({"op": "initialize"}, {"op": "newSession"}, step)
    suite.red("fixture", f"{WHERE}/turn/input.json:5: ", said, "mend: ")


def test_a_prompt_before_any_session(suite):
    suite.steps({"op": "initialize"}, {"op": "prompt", "text": "x"})
    suite.red("fixture", f"{WHERE}/turn/input.json:4: prompt before newSession", "mend: ")


def test_an_unused_permission_answer_is_red(suite):
    suite.steps(*json.loads((suite.turn / "input.json").read_text())["steps"], answers=["allow_once"])
    suite.red("fixture", f"{WHERE}/turn/input.json:2: ", "1 scripted permission answer(s) were never asked for")


def test_a_recording_that_breaks_its_own_intent_is_refused(suite):
    suite.edit("scenario.toml", '"hello"', '"bonjour"')
    said = "scenario.toml:13: the recording breaks its own [expect]"
    check_refused(
        suite, f"{WHERE}/turn/{said}", "'bonjour' is not in the answer", "mend: nox -s snapshot_record -- scr"
    )


def test_an_unknown_wire_check_is_named(suite):
    suite.agent('[wire]\nallow = [{check = "envelop", reason = "x"}]\n')
    check_refused(suite, "agent.toml:", "unknown value 'envelop'", "write 'envelope'")


def test_an_unknown_placeholder_of_the_command_is_named(suite):
    suite.agent(command=["agent", "{{hme}}"])
    check_refused(suite, f"{WHERE}/agent.toml:1: unknown placeholder {{{{hme}}}}", "{{home}}")


def test_an_unknown_placeholder_of_the_environment_is_named(suite):
    suite.agent('[env]\nA = "{{bseUrl}}"\n')
    check_refused(suite, "agent.toml:11: unknown placeholder {{bseUrl}}", "{{baseUrl}}")


@pytest.mark.parametrize("name", ["session.jsonl", "stdout.golden.jsonl", "requests.golden.jsonl", "header.system.md"])
def test_line_ends_that_a_checkout_changed_are_named(suite, name):
    path = suite.turn / name
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    said = "its lines end in CR LF, and were written with LF: the checkout changed them"
    check_refused(suite, f"{WHERE}/turn/{name}:1: {said}", "mend: echo", ">> .gitattributes, then git checkout -- ")
