"""Header pins: the system texts and tools of every live call are held against the pin of its class."""

import json

import pytest

LAST = [["respond", {"stopReason": "end_turn"}]]
PEST = {"system": "You are a pest."}
NOT_AS = "the header of class 'default' is not as snapshots/scripted/turn/header.system.md pins it"
CALLS = ["call_7Hq2vXz", "call_9Rw4bTc"]


def turn(*changes):
    """A turn of as many calls, each with its changes; all but the last end in a tool call."""
    calls = [[["call", change], ["results", "done"]] for change in changes]
    return [*[["hear"], *(act for call in calls for act in call)][:-1], ["say"], *LAST]


@pytest.fixture
def three(suite):
    """A turn of three calls, as recorded."""
    suite.log(*map(suite.tool_answer, range(2), CALLS), suite.text_answer(2, "hello there world"))
    for number in (1, 2):
        call = {"type": "tool-call", "id": f"{{{{toolCallId:{number}}}}}", "name": "touch", "arguments": "{}"}
        result = {"type": "tool-result", "callId": call["id"], "content": [{"type": "text", "text": "done"}]}
        row = {"call": number, "lane": 0, "parent": number - 1, "source": f"session.jsonl#{number}"}
        row |= {"header": "default", "params": {"model": "fake-model", "stream": True}}
        append = [{"role": "assistant", "content": [call]}, {"role": "tool", "content": [result]}]
        suite.append("requests.golden.jsonl", suite.rows(row | {"append": append}))
    suite.plan(session_prompt=turn({}, {}, {}))
    suite.green()
    return suite


def check_red(suite, scenario, *said):
    """The command finds this scenario red, and says all this."""
    done = suite.command("replay", scenario)
    assert done.returncode == 1
    assert [part for part in said if part not in done.stdout] == [], done.stdout
    return done.stdout


def test_another_header_in_the_scenario_that_pins_it(suite):
    suite.plan(session_prompt=turn(PEST))
    check_red(
        suite, "turn", NOT_AS, "changed /system", "You are a [-test-].", "You are a {+pest+}.", "in: scripted/turn"
    )


def test_another_header_in_a_scenario_that_does_not_pin_it(suite):
    suite.copy("other")
    suite.plan(session_prompt=turn(PEST))
    check_red(suite, "other", NOT_AS, "You are a {+pest+}.", "in: scripted/other")


def test_one_changed_header_of_two_scenarios_is_shown_once(suite):
    suite.copy("other")
    suite.plan(session_prompt=turn(PEST))
    output = check_red(suite, "scripted", "in: scripted/other, scripted/turn")
    assert output.count("You are a {+pest+}.") == 1


@pytest.mark.parametrize("which", range(3))
def test_another_header_in_one_call_alone(three, which):
    three.plan(session_prompt=turn(*(PEST if number == which else {} for number in range(3))))
    check_red(three, "turn", NOT_AS, "You are a {+pest+}.")


def test_a_class_that_nobody_pins(suite):
    """The rows name it: there is nothing to hold their headers against, and nothing is run."""
    suite.edit("requests.golden.jsonl", '"header":"default"', '"header":"strange"')
    said = "turn/requests.golden.jsonl:1: no scenario of the suite pins the header class 'strange'"
    output = check_red(suite, "turn", said, "mend: set [header] pin = true in one scenario")
    assert "Traceback" not in output


def test_a_header_in_a_scenario_whose_class_nobody_pins(suite):
    """Its own class has no pin, and the header is nobody's: it is held against the class that its row names."""
    suite.copy("other")
    place = suite.folder / "other" / "scenario.toml"
    text = place.read_text(encoding="utf-8").replace("[limits]", '[header]\nclass = "strange"\n[limits]')
    place.write_text(text, encoding="utf-8")
    suite.plan(session_prompt=turn(PEST))
    check_red(suite, "other", NOT_AS, "You are a {+pest+}.", "in: scripted/other")


def test_the_header_of_another_class(suite):
    """It is pinned, and not what was recorded for this call."""
    suite.copy("second")
    place = suite.folder / "second"
    text = (place / "scenario.toml").read_text(encoding="utf-8")
    pinned = text.replace("[limits]", '[header]\nclass = "second"\npin = true\n[limits]')
    (place / "scenario.toml").write_text(pinned, encoding="utf-8")
    (place / "header.system.md").write_text("You are a pest.\n", encoding="utf-8")
    (place / "header.tools.json").write_text((suite.turn / "header.tools.json").read_text(), encoding="utf-8")
    rows = (place / "requests.golden.jsonl").read_text(encoding="utf-8").replace('"default"', '"second"')
    (place / "requests.golden.jsonl").write_text(rows, encoding="utf-8")
    suite.plan(session_prompt=turn(PEST))
    assert suite.command("replay", "second").returncode == 0
    check_red(suite, "turn", "changed /0/header", "- [-default-]", "+ {+second+}")


def test_a_tool_more(suite):
    tool = {"type": "function", "function": {"name": "more", "description": "", "parameters": {"type": "object"}}}
    pinned = json.loads((suite.turn / "header.tools.json").read_text(encoding="utf-8"))
    touch = {"name": "touch", "description": "Touch a file.", "parameters": pinned[0]["inputSchema"]}
    suite.plan(session_prompt=turn({"tools": [{"type": "function", "function": touch}, tool]}))
    check_red(suite, "turn", "turn/header.tools.json pins it", "added /tools/1", '"name":"more"')
