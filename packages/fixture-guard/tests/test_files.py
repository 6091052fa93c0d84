"""The inventory checks."""

import pytest

CHILD = '{"type":"session","format":"session-snapshot","version":1,"id":"{{sessionId:2}}"}\n'
QUIET = "turn/end"


def test_the_clean_suite_is_clean(check_guard):
    check_guard({}, [])


@pytest.mark.parametrize(
    ("changes", "findings"),
    [
        ({"s/one/scenario.toml": None}, ["one/scenario.toml MISSING"]),
        ({"s/one/input.json": None}, ["one/input.json MISSING"]),
        ({"s/one/session.jsonl": None}, ["one/session.jsonl MISSING"]),
        ({"s/one/stdout.golden.jsonl": None}, ["one/stdout.golden.jsonl MISSING"]),
        ({"s/one/provenance.toml": None}, ["one/provenance.toml MISSING"]),
        ({"s/one/requests.golden.jsonl": None}, ["one/requests.golden.jsonl MISSING"]),
    ],
)
def test_what_every_scenario_needs_is_there(check_guard, changes, findings):
    check_guard(changes, findings)


def test_without_a_model_call_no_requests_are_needed(check_guard, clean):
    scenario = clean["s/one/scenario.toml"].replace('tools_called = ["bash"]', "model_calls = 0")
    silent = {
        "s/one/session.jsonl": CHILD,
        "s/one/requests.golden.jsonl": None,
        "s/one/input.json": '{"steps": []}\n',
        "s/one/scenario.toml": scenario,
    }
    check_guard(silent, [])


@pytest.mark.parametrize(
    ("name", "declared"),
    [
        ("upstream.json", {'recording = "live"': 'recording = "scripted"'}),
        ("replay.override.json", {"[header]": "overridden = true\n[header]"}),
        ("workspace.expected/out.txt", {"[expect]": "[workspace]\nfinal = true\n[expect]"}),
    ],
)
def test_a_sidecar_is_there_exactly_where_it_is_declared(check_guard, clean, name, declared):
    content = '{"patches":[{"at":1,"entry":{"kind":"hang"}}]}\n' if "override" in name else '{"entries":[]}\n'
    scenario = clean["s/one/scenario.toml"]
    for old, new in declared.items():
        scenario = scenario.replace(old, new)
    made = clean["s/one/provenance.toml"]
    if "scripted" in scenario:
        made = made.replace('"model"', '"script"')
    shown = name.split("/")[0]
    check_guard({f"s/one/{name}": content}, [f"one/{shown} SIDECAR"])
    check_guard({"s/one/scenario.toml": scenario, "s/one/provenance.toml": made}, [f"one/{shown} SIDECAR"])


@pytest.mark.parametrize(
    ("changes", "findings"),
    [
        ({"s/one/header.system.md": None}, ["one/header.system.md SIDECAR"]),
        ({"s/one/header.tools.json": None}, ["one/header.tools.json SIDECAR"]),
    ],
)
def test_a_pin_has_both_of_its_files(check_guard, changes, findings):
    check_guard(changes, findings)


@pytest.mark.parametrize(
    ("path", "finding"),
    [
        ("s/one/notes.txt", "one/notes.txt ORPHAN"),
        ("s/one/stdout.golden.jsonl.orig", "one/stdout.golden.jsonl.orig ORPHAN"),
        ("s/leftover/data.bin", "leftover/data.bin ORPHAN"),
        ("lonely/file.txt", "lonely/file.txt ORPHAN"),
        ("s/one/stdout.expected.jsonl", "one/stdout.expected.jsonl LEGACY"),
        ("s/one/snapshot.yml", "one/snapshot.yml LEGACY"),
        ("s/one/session.0.jsonl", "one/session.0.jsonl NUMBERING"),
        ("s/one/session.01.jsonl", "one/session.01.jsonl NUMBERING"),
        ("s/one/session.child.jsonl", "one/session.child.jsonl NUMBERING"),
        ("s/one/session.2.jsonl", "one/session.2.jsonl NUMBERING"),
        ("s/one/workspace/aux.txt", "one/workspace/aux.txt NAME"),
        ("s/one/workspace/LPT1", "one/workspace/LPT1 NAME"),
        ("s/one/workspace/a:b", "one/workspace/a:b NAME"),
        ("s/one/workspace/what?.md", "one/workspace/what?.md NAME"),
        ("s/one/workspace/dots...", "one/workspace/dots... NAME"),
        ("s/one/workspace/ends in space /x", "one/workspace/ends in space /x NAME"),
        ("s/one/workspace/" + "long/" * 40 + "x", "one/workspace/" + "long/" * 40 + "x NAME"),
    ],
)
def test_no_file_nobody_reads_and_no_name_that_cannot_be(check_guard, path, finding):
    check_guard({path: CHILD}, [finding])


@pytest.mark.parametrize(
    "path",
    [
        "s/one/README.md",
        "s/one/workspace/any thing.bin",
        "s/one/session.1.jsonl",
        "s/uv.lock",
        "s/one/workspace/auxiliary",
    ],
)
def test_a_file_that_plays_a_part_is_no_orphan(check_guard, path):
    if path == "s/uv.lock":
        check_guard({path: '[[package]]\nname = "acp-agent"\nversion = "0.1.0"\n'}, [])
    else:
        check_guard({path: CHILD}, [])


def test_a_file_that_agent_toml_names_is_no_orphan(check_guard):
    check_guard({"s/agent.toml": 'command = ["node", "shim/run.js"]\n', "s/shim/run.js": "\n"}, [])


def test_names_that_differ_by_case_alone_are_one_name_elsewhere(check_guard):
    changes = {"s/one/workspace/Read.me": "", "s/one/workspace/read.me": ""}
    check_guard(changes, ["one/workspace/read.me NAME"])


@pytest.mark.parametrize(
    ("expect", "clean"),
    [
        ("", False),
        ("tools_not_called = ['bash']", False),
        ("exit_codes = [0]", False),
        ("answer_contains = []", False),
        ("model_calls = 0", True),
        ("stop_reason = 'end_turn'", True),
        ("answer_contains = ['DONE']", True),
        ("error_codes = ['X']", True),
    ],
)
def test_an_expectation_must_be_able_to_fail(check_guard, expect, clean):
    scenario = f"description = 'd'\nrecording = 'live'\n[header]\npin = true\n[expect]\n{expect}\n"
    check_guard({"s/one/scenario.toml": scenario}, [] if clean else ["one/scenario.toml:5 EXPECT"])


@pytest.mark.parametrize(
    ("changes", "findings"),
    [
        ({"s/one/input.json": "{\n"}, ["one/input.json:2 JSON"]),
        ({"s/one/input.json": '{"steps": [1]}\n'}, ["one/input.json UNREADABLE"]),
        ({"s/one/scenario.toml": "recording = 'taped'\n"}, ["one/scenario.toml UNREADABLE"]),
        ({"s/one/scenario.toml": "a = 1\nb\n"}, ["one/scenario.toml:2 UNREADABLE"]),
        ({"s/agent.toml": "[guard\n"}, ["agent.toml:1 UNREADABLE"]),
        ({"s/one/session.jsonl": "nonsense\n"}, ["one/session.jsonl:1 UNREADABLE"]),
        ({"s/one/provenance.toml": "made_by = 'record'\n"}, ["one/provenance.toml UNREADABLE"]),
    ],
)
def test_what_cannot_be_read_is_said_at_its_line(check_guard, changes, findings):
    check_guard(changes, findings)
