"""What a script makes the harness do, when it goes on to the next step, and in which order frames are compared."""

import json
import sys

import pytest

LAST = [["respond", {"stopReason": "end_turn"}]]
TURN = [["hear"], ["call"], ["say"], *LAST]
OPENING = [{"op": "initialize"}, {"op": "newSession"}]
PROMPT = {"op": "prompt", "text": "Say hello."}
COMMANDS = ["available_commands_update", {"availableCommands": []}]


def frame(kind, **members):
    """A golden update of the first session."""
    update = {"sessionUpdate": kind, **members}
    params = {"sessionId": "{{sessionId:1}}", "update": update}
    return line({"jsonrpc": "2.0", "method": "session/update", "params": params})


def line(value):
    return json.dumps(value, separators=(",", ":")) + "\n"


def goldens(suite):
    """The golden frames, a line each."""
    return (suite.turn / "stdout.golden.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)


def insert(suite, at, *frames):
    """Put golden frames in front of line ``at`` (from 0)."""
    lines = goldens(suite)
    suite.write("stdout.golden.jsonl", "".join([*lines[:at], *frames, *lines[at:]]))


def result(number, value):
    return line({"jsonrpc": "2.0", "id": number, "result": value})


# ── pacing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def late(suite):
    """The agent tells its commands a while after it has opened the session, as real ones do."""
    if sys.platform == "win32":
        pytest.skip("posix only: the scripted agent waits for its pipe with select")
    suite.plan(session_new=[["open"], ["late", *COMMANDS, 0.2]])
    suite.counts(
        {"response": 1}, {"response": 1, "available_commands_update": 1}, {"agent_message_chunk": 1, "response": 1}
    )
    insert(suite, 2, frame(COMMANDS[0], **COMMANDS[1]))
    return suite


def test_a_late_notification_stays_in_its_step(late):
    late.edit("scenario.toml", "settle_seconds = 0.3", "settle_seconds = 10")
    late.green()


def test_without_the_recorded_counts_it_would_not(late):
    late.counts({"response": 1}, {"response": 1}, {"agent_message_chunk": 1, "response": 1})
    late.red("stdout", "stdout.golden.jsonl:3: ", "available_commands_update")


def test_a_missing_notification_is_told_once_a_step_and_later_waits_are_short(late):
    late.plan()
    late.counts({"response": 1}, {"response": 1, "x": 2}, {"agent_message_chunk": 1, "response": 1, "x": 1})
    report = late.red("stdout", "step 2 (newSession): 2 x expected and not seen within 0.3 s")
    notes = [failure.what for failure in report.failures if "expected and not seen" in failure.what]
    assert notes[1:] == ["step 3 (prompt): 1 x expected and not seen within 0.075 s"]


def test_an_extra_notification_is_red(suite):
    suite.plan(session_prompt=[["update", *COMMANDS], *TURN])
    suite.red("stdout", "added /2", "available_commands_update")


def test_a_notification_after_the_last_response_is_seen(suite):
    suite.plan(eof=[["update", *COMMANDS]])
    suite.red("stdout", "added /4", "available_commands_update")


# ── canonical order ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("pieces", [["hello ", "there world"], list("hello there world")])
def test_how_an_agent_cuts_its_text_is_no_content(suite, pieces):
    suite.plan(session_prompt=[["hear"], ["call"], *(["say", piece] for piece in pieces), *LAST])
    suite.green()
    suite.agent('[[ordering]]\nexpand = true\nreason = "raw"\n')
    suite.red("stdout", "/2/params/update/content/text")


def test_a_tool_call_that_is_still_pending_is_told_once(suite):
    first = {"toolCallId": "call_9Rw4bTc", "status": "pending", "title": "to"}
    second = {"toolCallId": "call_9Rw4bTc", "status": "pending", "title": "touch"}
    suite.plan(session_prompt=[["update", "tool_call", first], ["update", "tool_call_update", second], *TURN])
    folded = {"toolCallId": "{{toolCallId:1}}", "status": "pending", "title": "touch"}
    insert(suite, 2, frame("tool_call", **folded))
    suite.green()


@pytest.mark.parametrize(
    ("rule", "places"),
    [("float", [-2]), ("drop", []), ("last", [2])],
)
def test_declared_ordering(suite, rule, places):
    usage = ["usage_update", {"used": 5, "size": 10}]
    suite.plan(session_prompt=[["update", *usage], ["update", *usage], *TURN])
    suite.agent(f'[[ordering]]\nkind = "usage_update"\nrule = "{rule}"\nreason = "it is a race"\n')
    for place in places:
        insert(suite, place if place > 0 else 4, *[frame(usage[0], **usage[1])] * (2 if rule == "float" else 1))
    suite.green()


# ── permissions and other requests of the agent ─────────────────────────────────────────────────────────────────────

ASK = [["hear"], ["call"], ["ask", ["allow_once", "reject_once"]], ["say-outcome"], *LAST]


@pytest.fixture
def asking(suite):
    """The agent asks for a permission, and says what it was told."""
    suite.plan(session_prompt=ASK)
    suite.edit("scenario.toml", 'answer_contains = ["hello"]', "model_calls = 1")
    return suite


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("allow_once", '{"outcome": {"optionId": "option-allow_once", "outcome": "selected"}}'),
        ("reject_once", '{"outcome": {"optionId": "option-reject_once", "outcome": "selected"}}'),
        ("cancelled", '{"outcome": {"outcome": "cancelled"}}'),
    ],
)
def test_a_scripted_answer_reaches_the_agent(asking, kind, outcome):
    asking.steps(*OPENING, PROMPT, answers=[kind])
    asking.edit("stdout.golden.jsonl", '"hello there world"', json.dumps(outcome))
    options = [{"optionId": f"option-{name}", "kind": name, "name": name} for name in ("allow_once", "reject_once")]
    tool = {"toolCallId": "{{toolCallId:1}}", "title": "touch a file"}
    params = {"sessionId": "{{sessionId:1}}", "toolCall": tool, "options": options}
    head = {"jsonrpc": "2.0", "id": "{{rpcId:1}}", "method": "session/request_permission"}
    insert(asking, 2, line(head | {"params": params}))
    asking.green()


def test_a_permission_nobody_scripted_is_never_given(asking):
    report = asking.red("agent", "nobody scripted an answer for ('touch a file') was cancelled")
    assert any('"cancelled' in failure.detail for failure in report.failures)


def test_an_answer_that_is_not_offered(asking):
    asking.steps(*OPENING, PROMPT, answers=["allow_always"])
    said = "'allow_always' was not offered for 'touch a file' (offered: ['allow_once', 'reject_once'])"
    asking.red("agent", said)


def test_a_request_the_client_does_not_offer(suite):
    suite.plan(session_prompt=[["ask-client", "terminal/create", {"command": "ls"}], *TURN])
    suite.red("agent", "the agent asked for 'terminal/create', which this client does not offer")


def test_files_the_client_has(suite):
    suite.write("workspace/notes.txt", "one\ntwo\nthree\n")
    suite.agent("[capabilities.fs]\nreadTextFile = true\n")
    read = {"path": "notes.txt", "line": 2, "limit": 1}
    suite.plan(session_prompt=[["hear"], ["call"], ["ask-client", "fs/read_text_file", read], ["say-outcome"], *LAST])
    suite.edit("scenario.toml", '"hello"', '"two"')
    suite.edit("session.jsonl", "hello", "two", times=2)
    suite.red("stdout", "fs/read_text_file", '{\\"content\\": \\"two\\\\n\\"}')


# ── steps ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_files_written_and_removed_beside_the_agent(suite):
    suite.write("workspace/old.txt", "old\n")
    suite.write("workspace.expected/sub/new.txt", "new\n")
    suite.edit("scenario.toml", "[limits]", "[workspace]\nfinal = true\n[limits]")
    new, old = {"op": "writeFile", "path": "sub/new.txt", "text": "new\n"}, {"op": "removeFile", "path": "old.txt"}
    suite.steps(*OPENING, new, old, PROMPT)
    suite.counts({"response": 1}, {"response": 1}, {}, {}, {"agent_message_chunk": 1, "response": 1})
    suite.green()


def test_a_prompt_in_the_background_is_waited_for_by_file_by_update_and_by_its_end(suite):
    suite.plan(
        session_prompt=[["write", "ready.txt", "now"], ["update", *COMMANDS], ["await-line"], *TURN],
        go=[["say", "gone"]],
    )
    suite.steps(
        *OPENING,
        PROMPT | {"background": True},
        {"op": "waitForTurnStart"},
        {"op": "waitForFile", "path": "ready.txt", "contains": "now"},
        {"op": "waitForUpdate", "kind": "available_commands_update", "contains": "[]"},
        {"op": "sendRaw", "text": '{"jsonrpc":"2.0","method":"go"}'},
        {"op": "waitForTurnEnd"},
        {"op": "removeFile", "path": "ready.txt"},
    )
    suite.counts({"response": 1}, {"response": 1}, {}, {}, {}, {}, {}, {"response": 1}, {})
    insert(suite, 2, frame(COMMANDS[0], **COMMANDS[1]))
    insert(suite, 5, frame("agent_message_chunk", content={"type": "text", "text": "gone"}))
    suite.green()


def test_an_update_is_waited_for_in_vain_until_the_deadline(suite):
    suite.edit("scenario.toml", "step_seconds = 20", "step_seconds = 0.4")
    suite.steps({"op": "waitForUpdate", "kind": "plan"})
    suite.red("agent", "step 1 (waitForUpdate) was not done within 0.4 s")


def test_a_death_ends_the_wait_for_a_file(suite):
    suite.plan(session_new=[["open"], ["exit", 3]])
    suite.steps(*OPENING, {"op": "waitForFile", "path": "never.txt"})
    suite.red("agent", "the agent exited (code 3) while the harness waited for the file 'never.txt'")


def test_a_raw_line_that_is_no_frame(suite):
    suite.steps(*OPENING, {"op": "sendRaw", "text": "{oops", "replies": 1}, PROMPT)
    suite.counts({"response": 1}, {"response": 1}, {"response": 1}, {"agent_message_chunk": 1, "response": 1})
    error = {"code": -32700, "message": "Parse error"}
    insert(suite, 2, line({"jsonrpc": "2.0", "id": None, "error": error}))
    suite.green()


def test_a_raw_request_is_answered_under_its_own_id(suite):
    suite.steps(*OPENING, {"op": "sendRaw", "text": '{"jsonrpc":"2.0","id":"x","method":"foo"}', "replies": 1}, PROMPT)
    suite.counts({"response": 1}, {"response": 1}, {"response": 1}, {"agent_message_chunk": 1, "response": 1})
    insert(suite, 2, line({"jsonrpc": "2.0", "id": "x", "error": {"code": -32601, "message": "Method not found"}}))
    suite.green()


@pytest.mark.parametrize(
    ("step", "acts", "said"),
    [
        ({"op": "promptExpectError", "text": "x"}, TURN, "promptExpectError was answered by a result"),
        ({"op": "promptExpectError", "text": "x", "code": -1}, [["refuse", -2]], 'expects code -1, got {"code": -2'),
        (
            {"op": "prompt", "text": "x"},
            [["refuse", -32603, "boom"]],
            'prompt was answered by an error: {"code": -32603',
        ),
        ({"op": "setMode", "modeId": "wild"}, TURN, "setMode was answered by an error"),
    ],
)
def test_an_answer_of_the_wrong_kind(suite, step, acts, said):
    suite.plan(session_prompt=acts)
    suite.steps(*OPENING, step)
    suite.red("agent", said, "mend: ")


def test_an_expected_error(suite):
    suite.plan(session_prompt=[["refuse", -32603, "boom"]], session_prompt__2=TURN)
    suite.steps(*OPENING, {"op": "promptExpectError", "text": "x", "code": -32603}, PROMPT)
    suite.counts({"response": 1}, {"response": 1}, {"response": 1}, {"agent_message_chunk": 1, "response": 1})
    suite.edit("stdout.golden.jsonl", '"id":2', '"id":3')
    insert(suite, 2, line({"jsonrpc": "2.0", "id": 2, "error": {"code": -32603, "message": "boom"}}))
    suite.green()


def test_sessions_by_alias(suite):
    suite.steps(
        {"op": "initialize"},
        {"op": "newSession", "as": "a"},
        {"op": "newSession", "as": "b"},
        {"op": "prompt", "text": "In {{sessionId:b}}.", "session": "a"},
    )
    suite.counts({"response": 1}, {"response": 1}, {"response": 1}, {"agent_message_chunk": 1, "response": 1})
    suite.edit("stdout.golden.jsonl", '"id":2', '"id":3')
    insert(suite, 2, result(2, {"sessionId": "{{sessionId:2}}"}))
    suite.edit("requests.golden.jsonl", "Say hello.", "In {{sessionId:2}}.")
    suite.green()
    suite.steps(*json.loads((suite.turn / "input.json").read_text(encoding="utf-8"))["steps"][:3], PROMPT)
    suite.red("stdout", "/3/params/sessionId", "[-1-]", "{+2+}")


@pytest.mark.parametrize("ops", [["restart"], ["kill", "restart"]])
def test_a_new_process_in_the_same_sandbox(suite, ops):
    suite.plan(start=[["write", "boots.txt", "x"]], eof=[["say", "bye"]])
    suite.steps(
        *OPENING, PROMPT, *({"op": op} for op in ops), {"op": "initialize"}, {"op": "removeFile", "path": "boots.txt"}
    )
    lines = goldens(suite)
    again = lines[0].replace('"id":0', '"id":3')
    bye = frame("agent_message_chunk", content={"type": "text", "text": "bye"})
    nobody = bye.replace("{{sessionId:1}}", "")
    suite.write("stdout.golden.jsonl", "".join([*lines, *([bye] if ops == ["restart"] else []), again, nobody]))
    suite.green()


def test_a_restart_checks_how_the_agent_went(suite):
    suite.plan(eof=[["exit", 9]])
    suite.steps(*OPENING, PROMPT, {"op": "restart"}, {"op": "initialize"})
    suite.red("agent", "the agent exited with code 9, declared is 0")


# ── the sandbox ─────────────────────────────────────────────────────────────────────────────────────────────────────

ALLOWED = {
    "PATH", "TZ", "LANG", "LC_ALL", "PYTHONUTF8", "HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
    "XDG_CACHE_HOME", "TMPDIR", "TMP", "TEMP", "NO_PROXY", "no_proxy", "HTTP_PROXY", "http_proxy", "HTTPS_PROXY",
    "https_proxy", "ALL_PROXY", "all_proxy", "OPENAI_BASE_URL", "OPENAI_API_KEY",
}  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="posix only: Windows programs need more variables")
def test_the_agent_sees_no_variable_of_its_parent(suite, monkeypatch):
    for name in (
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "SCRIPTED_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "HTTPS_PROXY",
        "PYTHONPATH",
    ):
        monkeypatch.setenv(name, "a-real-secret")
    (suite.root / ".env").write_text("OPENAI_API_KEY=a-real-secret\n", encoding="utf-8")
    suite.plan(start=[["dump-environment", str(suite.root / "seen.json")]])
    suite.agent('[env]\nMINE = "{{home}}"\n')
    suite.edit("scenario.toml", "[limits]", '[env]\nTHIS = "{{key}}"\n[limits]')
    suite.green()
    seen = json.loads((suite.root / "seen.json").read_text(encoding="utf-8"))
    assert seen.keys() - {"LC_CTYPE"} == ALLOWED | {"MINE", "THIS"}
    assert not [name for name, value in seen.items() if "a-real-secret" in value]
    assert seen["MINE"] == seen["HOME"] and seen["THIS"] == seen["OPENAI_API_KEY"] == "sk-dummy-0000000000000000"
    assert seen["HTTPS_PROXY"] == "http://127.0.0.1:9" and (seen["TZ"], seen["LANG"]) == ("UTC", "C.UTF-8")


# ── the agent's own log ─────────────────────────────────────────────────────────────────────────────────────────────

HEADER = {
    "type": "session",
    "format": "session-snapshot",
    "version": 1,
    "id": "{{session}}",
    "createdAt": 1,
    "cwd": "/",
}


def event(seq, kind="turn/start", **data):
    return {"type": kind, "seq": seq, "time": 5, "data": data}


def logged(suite, *rows, name="session.jsonl"):
    suite.plan(eof=[["log", list(rows), name]])
    suite.agent('[persistence]\nformat = "session-snapshot"\nlog = "{{home}}/log/*.jsonl"\n')


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([HEADER, event(0), event(2)], "session.jsonl:3"),
        ([HEADER, event(1)], "session.jsonl:2"),
        ([HEADER, "nonsense"], "session.jsonl:2"),
        ([HEADER, {"type": "turn/start"}], "session.jsonl:2"),
        (["nonsense"], "session.jsonl:1"),
        ([HEADER | {"version": 99}], "session.jsonl:1"),
    ],
)
def test_a_log_that_is_wrong_is_the_agents_fault(suite, rows, said):
    logged(suite, *rows)
    suite.red("agent", "the agent's session log is wrong", said, "mend: ")


@pytest.mark.parametrize(
    "odd", [{"createdAt": "yesterday"}, {"id": None}, {"id": [1]}, {"parentSession": 5}, {"cwd": {}}]
)
def test_an_odd_header_never_breaks_the_harness(suite, odd):
    logged(suite, HEADER | odd)
    suite.red("session", "session.jsonl:1: ")


def test_a_log_that_is_missing_is_a_difference(suite):
    logged(suite, HEADER, name="elsewhere.txt")
    suite.red("session", "snapshots/scripted/turn/session.jsonl:1: ")


def test_a_child_session_that_is_missing_is_a_difference(suite):
    logged(suite, HEADER)
    suite.write("session.1.jsonl", suite.log_header.replace(":1}}", ":2}}"))
    suite.red("session", "snapshots/scripted/turn/session.1.jsonl:1: ", "removed /0")
