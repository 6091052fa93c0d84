"""The page as values: every frame, call, group of chunks and file is a row where it came, held against its golden."""

import asyncio
import shutil
from pathlib import Path

import pytest
from session_snapshot.fixtures import pins_of
from session_snapshot.replay import replay_seen
from session_snapshot.runroot import run_root
from session_snapshot.suites import Place, load
from session_snapshot.view.page import page_html
from session_snapshot.view.write import page_of_committed, page_of_seen

OWN = Path(__file__).parents[3] / "snapshots" / "session"
LAST = [["respond", {"stopReason": "end_turn"}]]
TURN = [["hear"], ["call"], ["say"], *LAST]


def run(suite):
    with run_root() as base:
        return asyncio.run(replay_seen(suite.place, base))


def page(suite):
    return page_of_seen(run(suite))


def spelled(rows):
    return [f"{row.lane}: {row.kind}: {row.title}" + (f" [{row.state}]" if row.differs else "") for row in rows]


def differing(rows):
    return [row for row in rows if row.differs]


def lines(row, heading):
    (found,) = [detail for detail in row.details if detail.heading.startswith(heading)]
    return [f"{line.mark}{line.text}" for line in found.lines]


# ── order ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_green_turn_in_the_order_it_happened(suite):
    shown = page(suite)
    assert spelled(shown.rows) == [
        "editor: step: step 1: initialize",
        "editor: sent: initialize session-snapshot",
        "agent: response: initialize · scripted",
        "editor: step: step 2: newSession",
        "editor: sent: session/new",
        "agent: response: session/new",
        "editor: step: step 3: prompt Say hello.",
        "editor: sent: session/prompt Say hello.",
        "model 0: call: call 0: 1 message, the last of user: Say hello.",
        "model 0: chunks: text hello there world (3 chunks)",
        "model 0: chunks: finish stop (1 chunk)",
        "agent: agent_message_chunk: hello there world",
        "agent: response: session/prompt · end_turn",
    ]
    assert [row.step for row in shown.rows] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2]
    assert [lane.name for lane in shown.lanes] == ["editor", "agent", "model", "files"]
    assert {row.state for row in shown.rows} == {"", "same"}
    assert shown.failures == []


def test_the_same_run_makes_the_same_page(suite):
    """Not only the same capture: another run of the scenario, with other ids, folders and ports."""
    suite.edit("stdout.golden.jsonl", "there", "their")
    assert page_html(page(suite)) == page_html(page(suite))


def test_nothing_of_this_machine_is_in_a_page(suite):
    seen = run(suite)
    text = page_html(page_of_seen(seen))
    for volatile in (str(seen.capture.box.root), str(seen.capture.port), *seen.capture.sessions):
        assert volatile not in text


# ── frames ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_changed_field_is_shown_with_both_values(suite):
    suite.edit("stdout.golden.jsonl", "there", "their")
    (row,) = differing(page(suite).rows)
    (difference,) = row.differences
    assert (row.kind, row.state, row.source) == ("agent_message_chunk", "changed", "stdout.golden.jsonl:3")
    assert difference.path == "/params/update/content/text"
    assert (difference.expected, difference.actual) == ("hello their world", "hello there world")
    marked = [line for line in lines(row, "frame") if line[0] != " "]
    assert marked == ['-"text": "hello their world"', '+"text": "hello there world"']


def test_a_frame_that_is_gone_stands_where_it_was(suite):
    suite.edit(
        "stdout.golden.jsonl", '{"jsonrpc":"2.0","id":2', '{"jsonrpc":"2.0","method":"gone"}\n{"jsonrpc":"2.0","id":2'
    )
    rows = page(suite).rows
    assert spelled(rows)[-3:] == [
        "agent: agent_message_chunk: hello there world",
        "agent: gone:  [removed]",
        "agent: response: session/prompt · end_turn",
    ]


def test_a_frame_that_is_new_is_said_to_be(suite):
    suite.plan(session_prompt=[["hear"], ["call"], ["update", "usage_update", {"title": "x"}], ["say"], *LAST])
    (row,) = differing(page(suite).rows)
    assert (row.kind, row.state, row.source) == ("usage_update", "added", "stdout.golden.jsonl:3")


def test_joined_frames_are_one_row_that_opens_to_all_of_them(suite):
    suite.plan(session_prompt=[["hear"], ["call"], ["say", "hello "], ["say", "there "], ["say", "world"], *LAST])
    (row,) = [row for row in page(suite).rows if row.kind == "agent_message_chunk"]
    assert row.title == "hello there world (3 frames)"
    assert (
        lines(row, "as written, 3 frames (stdout lines 3 to 5)").count(' "sessionUpdate": "agent_message_chunk",') == 3
    )


def test_a_frame_that_no_golden_has_to_hold_says_so(suite):
    rule = '[[ordering]]\nkind = "usage_update"\nrule = "drop"\nreason = "x"\n'
    suite.agent(rule)
    suite.plan(session_prompt=[["hear"], ["call"], ["update", "usage_update", {"title": "x"}], ["say"], *LAST])
    rows = page(suite).rows
    assert "agent: usage_update: x (not compared: [[ordering]])" in spelled(rows)
    assert differing(rows) == []


def test_an_agent_that_dies_leaves_what_is_missing(suite):
    suite.plan(session_prompt=[["hear"], ["exit", 3]])
    shown = page(suite)
    assert spelled(differing(shown.rows)) == [
        "agent: agent_message_chunk: hello there world [removed]",
        "agent: response: session/prompt · end_turn [removed]",
        "model 0: call: call 0: 1 message, the last of user: Say hello. [removed]",
    ]
    assert "agent" in {failure.surface for failure in shown.failures}


def test_what_the_editor_answers_is_its_own(suite):
    suite.steps(
        *[{"op": "initialize"}, {"op": "newSession"}, {"op": "prompt", "text": "Say hello."}], answers=["allow_once"]
    )
    suite.plan(session_prompt=[["hear"], ["ask", ["allow_once"]], ["call"], ["say"], *LAST])
    rows = spelled(page(suite).rows)
    at = rows.index("agent: session/request_permission: touch a file · allow_once · option-allow_once [added]")
    assert rows[at + 1] == "editor: sent: answer selected · option-allow_once"


# ── calls ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_drifted_request_is_shown_field_by_field(suite):
    suite.edit("requests.golden.jsonl", "Say hello.", "Say nothing.")
    (row,) = [row for row in page(suite).rows if row.kind == "call"]
    assert (row.state, row.source) == ("changed", "requests.golden.jsonl:1")
    assert [each.path for each in row.differences] == ["/append/0/content/0/text"]
    assert '-"text": "Say nothing."' in lines(row, "request, as what it adds")


def test_a_call_opens_to_its_answer_and_to_what_became_of_it(suite):
    (row,) = [row for row in page(suite).rows if row.kind == "call"]
    assert lines(row, "answer: text") == [" hello there world"]
    assert ' "outcome": "completed"' in lines(row, "on the wire")
    groups = [row for row in page(suite).rows if row.kind == "chunks"]
    assert lines(groups[0], "added up") == [" hello there world"]
    assert ' "type": "text-delta",' in lines(groups[0], "3 chunks")


def test_a_call_nobody_recorded_has_a_lane_of_its_own(suite):
    suite.plan(session_prompt=[["hear"], ["call"], ["say"], ["hear", "And now?"], ["call"], *LAST])
    shown = page(suite)
    (row,) = differing([row for row in shown.rows if row.kind == "call"])
    assert (row.lane, row.state) == ("model", "added")
    assert row.title == "a call nobody recorded: 3 messages, the last of user: And now?"
    assert [lane.name for lane in shown.lanes] == ["editor", "agent", "model: lane 0", "model: not recorded", "files"]


def test_a_repeated_call_shows_the_answer_it_was_given_again(suite):
    suite.plan(session_prompt=[["hear"], ["call"], ["drop-last"], ["call"], ["say"], *LAST])
    rows = page(suite).rows
    assert [row.title for row in rows if row.kind == "chunks"].count("text hello there world (3 chunks)") == 2
    assert [row.state for row in rows if row.kind == "call"] == ["same", "added"]


def test_requests_that_are_no_calls_are_shown_too(suite):
    suite.plan(session_prompt=[["http", "GET", "/models"], *TURN])
    assert "model: side request: GET /v1/models → 200" in spelled(page(suite).rows)


def test_lanes_are_those_of_the_recording(suite):
    """A second opening beside the first is a lane of its own."""
    suite.log(suite.text_answer(0, "hello there world"), suite.text_answer(1, "a title"))
    title = {"role": "user", "content": [{"type": "text", "text": "Name it."}]}
    head = {"call": 1, "lane": 1, "parent": None, "source": "session.jsonl#1", "header": "default"}
    suite.append(
        "requests.golden.jsonl",
        suite.rows(head | {"params": {"model": "fake-model", "stream": True}, "append": [title]}),
    )
    suite.plan(session_prompt=[["hear"], ["call"], ["say"], ["forget", 2], ["hear", "Name it."], ["call"], *LAST])
    shown = page(suite)
    assert shown.failures == []
    assert [lane.name for lane in shown.lanes] == ["editor", "agent", "model: lane 0", "model: lane 1", "files"]
    assert [row.lane for row in shown.rows if row.kind == "call"] == ["model 0", "model 1"]


def test_calls_inside_an_agent_stand_where_their_prompts_and_tools_tell(tmp_path, monkeypatch):
    """Our own agent, its model replayed in its own process: nothing is seen on a wire, and the page says so."""
    monkeypatch.chdir(tmp_path)
    folder = Path(shutil.copytree(OWN / "bash-tool-turn", tmp_path / "snapshots" / "session" / "bash-tool-turn"))
    shutil.copytree(OWN / "text-turn", folder.parent / "text-turn")  # it pins the header
    shutil.copy(OWN / "agent.toml", folder.parent)
    scenario = folder / "scenario.toml"
    scenario.write_text('seam = "adapter"\n' + scenario.read_text(encoding="utf-8"), encoding="utf-8")
    pins_of.cache_clear()
    with run_root() as base:
        shown = page_of_seen(asyncio.run(replay_seen(Place("session", "bash-tool-turn", folder), base)))
    assert shown.failures == []
    assert [row.kind for row in shown.rows if row.step == 2] == [
        *("step", "sent", "call", "chunks", "chunks", "tool_call", "tool_call_update", "tool_call_update"),
        *("call", "chunks", "chunks", "agent_message_chunk", "response"),
    ]
    assert any("inside the agent" in note for note in shown.notes)


# ── files and logs ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_files_are_held_against_what_should_be_there(suite):
    suite.write("workspace/kept.txt", "kept\n")
    suite.write("workspace/edited.txt", "one\ntwo\n")
    suite.plan(
        session_prompt=[
            ["hear"],
            ["call"],
            ["write", "new.bin", "\0x"],
            ["write", "edited.txt", "one\n2\n"],
            ["say"],
            *LAST,
        ]
    )
    files = {row.title: row for row in page(suite).rows if row.kind == "file"}
    states = {title: row.state for title, row in files.items()}
    assert states == {"edited.txt (6 bytes)": "changed", "kept.txt (5 bytes)": "same", "new.bin (2 bytes)": "added"}
    edited = files["edited.txt (6 bytes)"]
    assert (lines(edited, "expected"), lines(edited, "actual")) == ([" one", " two"], [" one", " 2"])
    assert lines(files["new.bin (2 bytes)"], "content") == [" \\u0000x"]


def own_log(suite, event):
    """An agent that writes its own log, and a golden of it."""
    header = {
        "type": "session",
        "format": "session-snapshot",
        "version": 1,
        "id": "{{session}}",
        "createdAt": 5,
        "cwd": "/x",
    }
    said = [{"type": "turn/start", "seq": 0, "time": 9, "data": {"turn": 1}}, event | {"seq": 1, "time": 9}]
    suite.agent('[persistence]\nformat = "session-snapshot"\nlog = "{{home}}/log/*.jsonl"\n')
    suite.plan(session_prompt=[["hear"], ["call"], ["say"], *LAST], eof=[["log", [header, *said]]])


def test_logs_are_rows_of_the_files_lane(suite):
    own_log(suite, {"type": "note", "data": {"text": "as it is"}})
    rows = page(suite).rows
    logs = [row for row in rows if row.kind == "log"]
    assert rows[-len(logs) :] == logs or rows[rows.index(logs[0]) - 1].title == "what is left: logs and files"
    assert "log note as it is" in [row.title for row in logs]
    assert {row.state for row in logs} >= {"added", "removed"}, "the golden holds the model's chunks and no note"


# ── nothing runs ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_committed_files_alone_are_in_the_order_they_tell(suite):
    shown = page_of_committed(load(suite.place), [])
    assert not shown.ran
    assert spelled(shown.rows) == [
        "editor: step: step 1: initialize",
        "agent: response: to 0 · scripted",
        "editor: step: step 2: newSession",
        "agent: response: to 1",
        "editor: step: step 3: prompt Say hello.",
        "model 0: call: call 0: 1 message, the last of user: Say hello.",
        "model 0: chunks: text hello there world (3 chunks)",
        "model 0: chunks: finish stop (1 chunk)",
        "agent: agent_message_chunk: hello there world",
        "agent: response: to 2 · end_turn",
    ]


def test_a_call_comes_after_the_frames_of_the_tools_it_tells_of(suite):
    tool = "{{toolCallId:1}}"
    update = {"sessionUpdate": "tool_call", "toolCallId": tool, "title": "touch", "status": "completed"}
    frame = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "{{sessionId:1}}", "update": update}}
    told = [
        {"role": "assistant", "content": [{"type": "tool-call", "id": tool, "name": "touch", "arguments": "{}"}]},
        {"role": "tool", "content": [{"type": "tool-result", "callId": tool, "content": []}]},
    ]
    head = {"call": 1, "lane": 0, "parent": 0, "source": "session.jsonl#1", "header": "default", "params": {}}
    suite.log(suite.tool_answer(0, tool), suite.text_answer(1, "hello there world"))
    suite.append("requests.golden.jsonl", suite.rows(head | {"append": told}))
    first, second, *rest = suite.frames.splitlines(keepends=True)
    suite.write("stdout.golden.jsonl", "".join([first, second, suite.rows(frame), *rest]))
    suite.counts({"response": 1}, {"response": 1}, {"tool_call": 1, "agent_message_chunk": 1, "response": 1})
    rows = [row.kind for row in page_of_committed(load(suite.place), []).rows if row.step == 2]
    assert rows == [
        "step",
        "call",
        "chunks",
        "chunks",
        "tool_call",
        "call",
        "chunks",
        "chunks",
        "agent_message_chunk",
        "response",
    ]


@pytest.mark.parametrize("counted", [True, False])
def test_committed_frames_belong_to_their_steps(suite, counted):
    if not counted:
        suite.remove("provenance.toml")
    frames = [row.step for row in page_of_committed(load(suite.place), []).rows if row.lane == "agent"]
    assert frames == [0, 1, 2, 2]


def test_files_that_cannot_be_read_are_shown_as_far_as_they_can(suite):
    suite.write("session.jsonl", suite.log_header + "{nonsense\n")
    shown = page_of_committed(load(suite.place), [])
    assert [row.kind for row in shown.rows if row.lane == "agent"] == ["response"] * 2 + [
        "agent_message_chunk",
        "response",
    ]
    assert "session.jsonl:2" in shown.failures[0].what


def test_an_unreadable_golden_is_one_row_that_says_so(suite):
    suite.write("stdout.golden.jsonl", '{"a":1}\n{oops\n')
    removed = [row for row in page(suite).rows if row.state == "removed"]
    (row,) = [row for row in removed if row.source == "stdout.golden.jsonl:2"]
    assert ' "not JSON": "{oops↵' in lines(row, "frame")


def test_a_row_that_moved_says_where(suite):
    first, second, *rest = suite.frames.splitlines(keepends=True)
    notes = [suite.rows({"jsonrpc": "2.0", "method": "_x/note", "params": {"text": f"note {n}"}}) for n in range(2)]
    suite.write("stdout.golden.jsonl", "".join([first, second, *notes, *rest]))
    again = [["raw", note] for note in reversed(notes)]
    suite.plan(session_prompt=[["hear"], ["call"], *again, ["say"], *LAST])
    moved = {(row.state, row.source) for row in page(suite).rows if row.differs}
    assert len(moved) == 2
    assert {state for state, _ in moved} == {"added", "removed"}
    assert all(", moved " in source for _, source in moved)


def test_a_row_that_says_the_same_in_other_bytes_differs(suite):
    suite.edit("stdout.golden.jsonl", '"stopReason":"end_turn"', '"stopReason": "end_turn"')
    shown = page(suite)
    assert [failure.what for failure in shown.failures] == [
        f"{suite.place.folder.as_posix()}/stdout.golden.jsonl says the same in other bytes"
    ]
    (row,) = differing(shown.rows)
    assert (row.state, row.source) == ("changed", "stdout.golden.jsonl:4")


# ── the head ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_expected_and_broken_is_told(suite):
    suite.plan(session_prompt=[["hear"], ["call"], ["say", "bye"], *LAST])
    shown = page(suite)
    assert ('answer_contains = ["hello"]', False) in shown.expect
    assert ("exit_codes = [0]", True) in shown.expect


def test_the_head_counts_what_there_is(suite):
    suite.edit("stdout.golden.jsonl", "there", "their")
    shown = page(suite)
    assert dict(shown.counts) == {
        "steps": "3",
        "sent messages": "3",
        "model calls": "1",
        "chunk groups": "2",
        "frames": "4",
        "differing rows": "1",
    }
    assert ("made by", "hand") in shown.facts
