"""Our own agent recorded, end to end, from a provider that answers, fails and falls silent; in every dialect. What was
recorded twice is the same files to the byte, and replays (recording has proved that three times over by then)."""

import json

import pytest
from llm_dialects import DIALECTS
from llm_mock_server import ScriptedProvider, serve_in_thread
from llm_mock_server.script import script_from_json

AGENT = """\
command = ["acp-agent", "--overlay", "{{{{home}}}}/overlay.toml"]
[model]
dialect = "{dialect}"
base_url_env = "OPENAI_BASE_URL"
key_env = "OPENAI_API_KEY"
[[model.files]]
path = "overlay.toml"
text = '''
[model]
dialect = "{dialect}"
retries = 1
backoff_ms = 0
'''
[record]
key_env = "SCRIPTED_KEY"
upstream_url = "{upstream}"
[persistence]
format = "session-snapshot"
log = "{{{{home}}}}/.acp-agent/sessions/*/session.jsonl"
[install]
kind = "none"
"""

SILENT = {
    "kind": "hang",
    "chunks": [
        {"type": "block-start", "index": 0, "blockType": "text"},
        {"type": "text-delta", "index": 0, "text": "I begin with {{{{ and "},
        {"type": "text-delta", "index": 0, "text": "stop there"},
    ],
}

# What is asked, what the provider does (each call one of these), the codes of its failures.
TURNS = [
    ({"op": "prompt", "text": "One."}, ["overloaded", "success"], ["OVERLOADED"]),
    ({"op": "promptExpectError", "text": "Two.", "code": -32603}, ["mid_stream_error"], ["SERVER_ERROR"]),
    ({"op": "promptExpectError", "text": "Three.", "code": -32603}, ["partial_eof"], ["STREAM_CLOSED"]),
    ({"op": "promptExpectError", "text": "Four.", "code": -32603}, ["partial_disconnect"], ["STREAM_CLOSED"]),
    ({"op": "prompt", "text": "Five."}, ["malformed_event", "reasoning_success"], ["MALFORMED_ANSWER"]),
    ({"op": "prompt", "text": "Six."}, ["stream_eof", "max_tokens"], ["STREAM_CLOSED"]),
    (
        {
            "op": "promptAndCancel",
            "text": "Seven.",
            "waitForUpdate": {"kind": "agent_message_chunk", "contains": "stop there"},
        },
        [SILENT],
        [],
    ),
]
SCENARIO = f"""\
description = "All that may go wrong."
recording = "live"
overridden = true
[header]
pin = true
[limits]
settle_seconds = 0.3
quiet_seconds = 0.1
[expect]
answer_contains = ["mock response recovered", "discarded partial", "stop there"]
error_codes = {json.dumps([code for _, _, codes in TURNS for code in codes])}
stop_reason = "cancelled"
model_calls = {sum(len(acts) for _, acts, _ in TURNS)}
"""


def provider(suite):
    """A provider that does all of it, to whom shows the real key."""
    script = script_from_json({"entries": [act for _, acts, _ in TURNS for act in acts]}, "script")
    return serve_in_thread(ScriptedProvider(script), api_key=suite.key)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_whatever_a_provider_does_is_recorded_twice_the_same(suite, dialect):
    suite.write("scenario.toml", SCENARIO)
    suite.steps({"op": "initialize"}, {"op": "newSession"}, *(turn for turn, _, _ in TURNS))
    trees = []
    for _ in range(2):
        with provider(suite) as server:
            agent = AGENT.format(dialect=dialect, upstream=server.base_url(dialect))
            (suite.folder / "agent.toml").write_text(agent, encoding="utf-8")
            suite.record()
        trees.append({name: text for name, text in suite.tree().items() if name.startswith("scripted/turn/")})
    assert trees[0] == trees[1]
    suite.green()
    entries = [patch["entry"] for patch in json.loads(trees[0]["scripted/turn/replay.override.json"])["patches"]]
    assert [entry.get("code", entry["kind"]) for entry in entries] == [
        *(code for _, _, codes in TURNS for code in codes),
        "hang",
    ]
    assert entries[-1]["chunks"][1]["text"] == "I begin with {{{{ and "


FOREIGN = {
    "wrong_content_type": [],
    "partial_eof": ["STREAM_CLOSED"],
    "duplicate_event": [],
    "rate_limit": ["RATE_LIMIT"],
}


@pytest.mark.parametrize("name", FOREIGN)
def test_an_agent_that_keeps_no_log_is_recorded_from_the_wire(suite, name):
    """It makes of an answer what it can, then asks once more; a replay gives it the same to make something of."""
    codes, told_otherwise = FOREIGN[name], name != "duplicate_event"
    suite.edit("scenario.toml", '"scripted"', f'"live"\noverridden = {str(told_otherwise).lower()}')
    suite.edit("scenario.toml", '["hello"]', f'["mock response recovered"]\nerror_codes = {json.dumps(codes)}')
    suite.plan(session_prompt=[["hear"], ["call"], ["say"], ["call"], ["say"], ["respond", {"stopReason": "end_turn"}]])
    script = script_from_json({"entries": [name, "success"]}, "script")
    with serve_in_thread(ScriptedProvider(script), api_key=suite.key) as server:
        suite.agent(f'[record]\nkey_env = "SCRIPTED_KEY"\nupstream_url = "{server.base_url("openai-chat")}"\n')
        suite.record()
    suite.green()
    assert ("scripted/turn/replay.override.json" in suite.tree()) is told_otherwise
