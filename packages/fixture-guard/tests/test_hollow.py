"""Recordings that pin a run which did not do what it was written to show."""

import json

import pytest
from fixture_guard.prompts import answer_demanded, lines_demanded, tools_demanded, tools_forbidden


def asking(clean, *prompts):
    steps = [{"op": "initialize"}, {"op": "newSession"}, *({"op": "prompt", "text": prompt} for prompt in prompts)]
    return {"s/one/input.json": json.dumps({"steps": steps}) + "\n"}


def expecting(clean, line):
    return {"s/one/scenario.toml": clean["s/one/scenario.toml"] + line + "\n"}


def resulting(clean, **changes):
    """The clean log whose one tool result is changed, in the log and in the request that carries it on."""
    old = '"content":"OK\\n","isError":false'
    new = json.dumps({"content": "OK\n", "isError": False, **changes}, separators=(",", ":"))[1:-1]
    assert old in clean["s/one/session.jsonl"]
    return {"s/one/session.jsonl": clean["s/one/session.jsonl"].replace(old, new)}


@pytest.mark.parametrize(
    ("text", "expect", "findings"),
    [
        ("no such file\n[exit code: 2]", "", ["one/session.jsonl:7 EXIT_CODE"]),
        ("no such file\n[exit code: 2]", "exit_codes = [0, 2]", []),
        ("no such file\n[exit code: 2]", "exit_codes = [0, 1]", ["one/session.jsonl:7 EXIT_CODE"]),
        ("Command exited with code 1", "", ["one/session.jsonl:7 EXIT_CODE"]),
        ('{"output":"","exit_code":127}', "", ["one/session.jsonl:7 EXIT_CODE"]),
        ("[exit code: 0]", "", []),
        ("the exit code is explained in chapter 3", "", []),
    ],
)
def test_a_failure_is_expected_or_found(check_guard, clean, text, expect, findings):
    check_guard(resulting(clean, content=text) | expecting(clean, expect), findings)


@pytest.mark.parametrize(
    ("result", "expect", "findings"),
    [
        ({"isError": True, "error": {"code": "UNKNOWN_TOOL"}}, "", ["one/session.jsonl:7 UNKNOWN_TOOL"]),
        ({"isError": True, "error": {"code": "UNKNOWN_TOOL"}}, "error_codes = ['UNKNOWN_TOOL']", []),
        ({"isError": True, "content": "Unknown tool: bsh"}, "", ["one/session.jsonl:7 UNKNOWN_TOOL"]),
        ({"isError": False, "content": "the docs speak of UNKNOWN_TOOL"}, "", []),
        ({"isError": True, "error": {"code": "DENIED"}}, "", []),
    ],
)
def test_a_call_of_an_unknown_tool_is_expected_or_found(check_guard, clean, result, expect, findings):
    check_guard(resulting(clean, **result) | expecting(clean, expect), findings)


@pytest.mark.parametrize(
    ("prompt", "expect", "findings"),
    [
        ("Call list_files, then use the bash tool.", "", ["one/input.json UNCALLED_TOOL"]),
        ("Call list_files, then use the bash tool.", "tools_not_called = ['list_files']", []),
        ("Call frobnicate.", "", []),
        ("Use the bash tool.", "", []),
        ("Do not use the bash tool.", "", ["one/session.jsonl:6 FORBIDDEN_TOOL"]),
        ("Do not use any tools.", "", ["one/session.jsonl:6 FORBIDDEN_TOOL"]),
        ("Do not use the list_files tool.", "", []),
    ],
)
def test_the_tools_a_prompt_speaks_of(check_guard, clean, prompt, expect, findings):
    scenario = {"s/one/scenario.toml": clean["s/one/scenario.toml"].replace("tools_called = ['bash']", "")}
    scenario["s/one/scenario.toml"] = scenario["s/one/scenario.toml"].replace(
        'tools_called = ["bash"]', "model_calls = 2"
    )
    scenario["s/one/scenario.toml"] += expect + "\n"
    check_guard(asking(clean, prompt) | scenario, findings)


def test_a_call_the_author_expects_is_not_forbidden(check_guard, clean):
    check_guard(asking(clean, "Do not use the bash tool."), [])


@pytest.mark.parametrize(
    ("prompt", "expect", "findings"),
    [
        ("Reply with exactly the single word DONE.", "", []),
        ("Reply with exactly PONG.", "", ["one/input.json ANSWER"]),
        ("Reply with exactly PONG.", "answer_contains = ['DONE']", []),
        ("Reply politely.", "", []),
    ],
)
def test_the_answer_a_prompt_wants(check_guard, clean, prompt, expect, findings):
    check_guard(asking(clean, prompt) | expecting(clean, expect), findings)


@pytest.mark.parametrize(
    ("content", "final", "findings"),
    [
        ("a\n\nb\n", False, ["one/session.jsonl:7 LINE_COUNT"]),
        ("a\nb\n", False, []),
        ("a\n\nb\n", True, []),
    ],
)
def test_the_lines_a_prompt_promises(check_guard, clean, content, final, findings):
    changes = resulting(clean, content=content)
    changes["s/one/session.jsonl"] = changes["s/one/session.jsonl"].replace("echo OK", "cat list.txt")
    changes["s/one/requests.golden.jsonl"] = clean["s/one/requests.golden.jsonl"].replace("echo OK", "cat list.txt")
    if final:
        changes |= expecting(clean, "[workspace]\nfinal = true") | {"s/one/workspace.expected/list.txt": content}
    check_guard(asking(clean, "Append to list.txt (so it has two lines).") | changes, findings)


def test_a_forbidden_tool_nobody_offers_forbids_nothing(check_guard, clean):
    check_guard(expecting(clean, "tools_not_called = ['lst_files']"), ["one/scenario.toml EXPECT"])
    check_guard(expecting(clean, "tools_not_called = ['list_files']"), [])


FOREIGN = (
    '{"type":"session","format":"session-snapshot","version":1,"id":"{{sessionId:1}}"}\n'
    '{"type":"llm/call","data":{"call":0,"lane":0}}\n'
    '{"type":"assistant/chunk","data":{"call":0,"chunk":{"type":"block-start","index":0,"blockType":"tool-call"}}}\n'
    '{"type":"assistant/chunk","data":{"call":0,"chunk":{"type":"block-end","index":0,"block":{"type":"tool-call",'
    '"id":"{{toolCallId:1}}","name":"bash","arguments":"{}"}}}}\n'
    '{"type":"assistant/chunk","data":{"call":0,"chunk":{"type":"finish","reason":{"kind":"tool-calls"}}}}\n'
    '{"type":"llm/call","data":{"call":1,"lane":0}}\n'
    '{"type":"assistant/chunk","data":{"call":1,"chunk":{"type":"finish","reason":{"kind":"stop"}}}}\n'
)
FAILED = (
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{{sessionId:1}}","update":'
    '{"sessionUpdate":"tool_call_update","toolCallId":"{{toolCallId:1}}","status":"failed"}}}\n'
)


@pytest.mark.parametrize(
    ("result", "frame", "expect", "findings"),
    [
        ("OK\\n", "", "", []),
        ("Exit code: 1", "", "", ["one/requests.golden.jsonl:2 EXIT_CODE"]),
        ("OK\\n", FAILED, "", ["one/stdout.golden.jsonl:3 EXIT_CODE"]),
        ("OK\\n", FAILED, "exit_codes = [0, 1]", []),
        ("OK\\n", FAILED, "error_codes = ['DENIED']", []),
    ],
)
def test_an_agent_we_did_not_write_is_read_from_the_wire(check_guard, clean, result, frame, expect, findings):
    changes = {
        "s/one/session.jsonl": FOREIGN,
        "s/one/stdout.golden.jsonl": clean["s/one/stdout.golden.jsonl"] + frame,
        "s/one/requests.golden.jsonl": clean["s/one/requests.golden.jsonl"].replace(
            '"text":"OK\\n"', f'"text":"{result}"'
        ),
    }
    check_guard(changes | expecting(clean, expect), findings)


OFFER = frozenset(("bash", "read", "write", "list_agents", "Edit"))


@pytest.mark.parametrize(
    ("prompt", "known", "demanded", "forbidden"),
    [
        ("Use the bash tool to run: ls. Then stop.", OFFER, ("bash",), ()),
        ("Then read the file and write a note.", OFFER, (), ()),
        ("Use the read tool (NOT bash) on a.txt.", OFFER, ("read",), ()),
        ("Do NOT use the read tool and do NOT use bash. Use the edit tool.", OFFER, ("Edit",), ("bash", "read")),
        ("Do not call write without permission first.", OFFER, (), ()),
        ("Observe list_agents closely.", OFFER, ("list_agents",), ()),
        ("Set list_agents_limit to 4.", OFFER, (), ()),
        ("Call spawn_agent once with run_in_background set to true.", None, ("spawn_agent",), ()),
        ("Read the newest tool result.", None, (), ()),
        ("Do not call any other tool.", None, (), ()),
        ("Reply PONG. Do not use any tools.", None, (), ("*",)),
        ("Instead of the write tool, use the bash tool.", OFFER, (), ()),
    ],
)
def test_reading_tools_out_of_a_prompt(prompt, known, demanded, forbidden):
    assert tools_demanded(prompt, known) == demanded
    assert set(tools_forbidden(prompt, known)) == set(forbidden)


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("reply with the single word DONE and stop", "DONE"),
        ("reply with exactly the word: PONG.", "PONG"),
        ("finish with exactly TITLE_DONE", ""),
        ("Reply with that output only", ""),
        ("Reply with exactly COMPACTION RECOVERED.", "COMPACTION RECOVERED"),
    ],
)
def test_reading_the_wanted_answer(prompt, answer):
    assert answer_demanded(prompt) == answer


@pytest.mark.parametrize(
    ("prompt", "count"),
    [
        ("so it has two lines", 2),
        ("a 12-line file", 12),
        ("has one line or has two lines", None),
        ("lines 5 to 8", None),
    ],
)
def test_reading_the_promised_lines(prompt, count):
    assert lines_demanded(prompt) == count
