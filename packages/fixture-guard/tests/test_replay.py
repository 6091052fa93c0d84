"""Logs, override and requests make one recording."""

import json

import pytest

LOG_ENTRY = {
    "kind": "chunks",
    "chunks": [
        {"type": "block-start", "index": 0, "blockType": "text"},
        {"type": "block-end", "index": 0, "block": {"type": "text", "text": "DONE"}},
        {"type": "finish", "reason": {"kind": "stop"}},
    ],
}
FAILURE = {"kind": "throw", "chunks": [], "message": "busy", "code": "OVERLOADED"}


def overriding(clean, *patches):
    scenario = clean["s/one/scenario.toml"].replace("[header]", "overridden = true\n[header]")
    override = json.dumps({"patches": patches} if patches else [], indent=1) + "\n"
    return {"s/one/scenario.toml": scenario, "s/one/replay.override.json": override}


@pytest.mark.parametrize(
    ("patch", "findings"),
    [
        ({"at": 1, "entry": FAILURE}, []),
        ({"at": 1, "entry": LOG_ENTRY}, ["one/replay.override.json:4 OVERRIDE"]),
        ({"at": 0, "entry": LOG_ENTRY}, []),
        ({"at": 2, "entry": FAILURE}, ["one/replay.override.json UNPLAYABLE"]),
        ({"at": 3, "entry": FAILURE}, ["one/replay.override.json UNPLAYABLE"]),
        ({"at": 0, "lane": 1, "entry": FAILURE}, ["one/replay.override.json UNPLAYABLE"]),
        ({"at": 0, "entry": {"kind": "shout"}}, ["one/replay.override.json UNPLAYABLE"]),
        ({"at": 0, "entry": FAILURE, "why": "x"}, ["one/replay.override.json UNPLAYABLE"]),
    ],
)
def test_an_override_fits_and_is_needed(check_guard, clean, patch, findings):
    check_guard(overriding(clean, patch), findings)


def test_a_failure_no_log_can_hold_is_a_call_of_its_own(check_guard, clean):
    """The third call failed before it said anything: its row names the override as what answers it."""
    rows = clean["s/one/requests.golden.jsonl"]
    third = json.loads(rows.splitlines()[1]) | {
        "call": 2,
        "parent": 1,
        "source": "replay.override.json#2",
        "append": [],
    }
    rows += json.dumps(third, separators=(",", ":")) + "\n"
    patch = {"at": 2, "entry": FAILURE}
    check_guard({"s/one/requests.golden.jsonl": rows} | overriding(clean, patch), [])
    check_guard({"s/one/requests.golden.jsonl": rows}, ["one/requests.golden.jsonl:3 UNPLAYABLE"])


def test_a_call_without_an_end_needs_an_override(check_guard, clean):
    log = clean["s/one/session.jsonl"].splitlines(keepends=True)
    cut = "".join((*log[:9], *log[10:]))
    check_guard({"s/one/session.jsonl": cut}, ["one/session.jsonl:8 UNPLAYABLE"])
    check_guard({"s/one/session.jsonl": cut} | overriding(clean, {"at": 1, "entry": FAILURE}), [])


def test_every_recorded_call_was_asked_for(check_guard, clean):
    rows = clean["s/one/requests.golden.jsonl"].splitlines(keepends=True)
    check_guard({"s/one/requests.golden.jsonl": rows[0]}, ["one/requests.golden.jsonl UNPLAYABLE"])


def test_a_replacement_that_says_the_same_is_not_needed(check_guard, clean):
    log = [json.loads(line) for line in clean["s/one/session.jsonl"].splitlines()]
    chunks = [row["data"]["chunk"] for row in log if row["type"] == "assistant/chunk"]
    same = [{"kind": "chunks", "chunks": chunks[:3]}, {"kind": "chunks", "chunks": chunks[3:]}]
    changes = overriding(clean)
    check_guard(
        changes | {"s/one/replay.override.json": json.dumps(same) + "\n"}, ["one/replay.override.json:1 OVERRIDE"]
    )
    other = [same[0], FAILURE]
    check_guard(changes | {"s/one/replay.override.json": json.dumps(other) + "\n"}, [])
