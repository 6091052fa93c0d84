import json
import os
from pathlib import Path

import pytest
from llm_replay import (
    FixtureError,
    Header,
    child_logs,
    format_rows,
    load_recording,
    load_scenario_recording,
    load_scripts,
    requests_to_rows,
)

HEADER = '{"type":"session","format":"session-snapshot","version":1,"id":"s","createdAt":0}\n'


def log(*texts):
    events = [
        {"type": "assistant/chunk", "data": {"turn": turn, "step": 1, "chunk": chunk}}
        for turn, text in enumerate(texts, 1)
        for chunk in (
            {"type": "text-delta", "index": 0, "text": text},
            {"type": "finish", "reason": {"kind": "stop"}},
        )
    ]
    return HEADER + "".join(json.dumps(event) + "\n" for event in events)


def texts(recording):
    return [getattr(call.entry.chunks[0], "text", "") for call in recording.calls]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "session.jsonl").write_text(log("a", "b"), "utf-8")
    (tmp_path / "session.10.jsonl").write_text(log("k"), "utf-8")
    (tmp_path / "session.2.jsonl").write_text(log("c"), "utf-8")
    (tmp_path / "session.01.jsonl").write_text("no child", "utf-8")
    return tmp_path


def test_children_come_by_number(folder):
    assert [path.name for path in child_logs(folder)] == ["session.2.jsonl", "session.10.jsonl"]
    recording = load_scenario_recording(folder)
    assert texts(recording) == ["a", "b", "c", "k"]
    assert [call.source for call in recording.calls][-1] == "session.10.jsonl#0"


def test_override_and_rows_are_read_where_they_stand(folder, kit):
    for path in child_logs(folder):
        path.unlink()
    recording = kit.record(kit.request("u a"), kit.request("u a", "a a", "u b"))
    (folder / "requests.golden.jsonl").write_text(format_rows(requests_to_rows(recording.calls, lambda _: "main")))
    (folder / "replay.override.json").write_text('{"patches":[{"at":1,"entry":{"kind":"hang"}}]}')
    header = Header(("You are an agent.",), kit.request().tools)
    loaded = load_scenario_recording(folder, {"main": header})
    assert [call.request for call in loaded.calls] == [call.request for call in recording.calls]
    assert texts(loaded) == ["a", ""]
    assert not load_scenario_recording(folder).calls[0].headed


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FixtureError, match="is missing") as caught:
        load_scenario_recording(tmp_path)
    assert caught.value.path == str(tmp_path / "session.jsonl")
    (tmp_path / "session.jsonl").write_text(log("a"))
    with pytest.raises(FixtureError, match="the file is missing"):
        load_recording(tmp_path / "session.jsonl", override=tmp_path / "replay.override.json")


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "session.jsonl").write_bytes(HEADER.encode() + b"\xff\n")
    with pytest.raises(FixtureError, match="not UTF-8"):
        load_scripts(tmp_path / "session.jsonl")


def test_line_ends_of_windows_are_read(tmp_path):
    (tmp_path / "session.jsonl").write_bytes(log("a").replace("\n", "\r\n").encode())
    assert texts(load_scenario_recording(tmp_path)) == ["a"]


@pytest.mark.skipif(not os.environ.get("SNAPSHOT_CASES"), reason="SNAPSHOT_CASES is not set")
def test_historical_scenarios_load_whole():
    folder = Path(os.environ["SNAPSHOT_CASES"], "dsh", "acp-agent", "subagent-parallel")
    assert [call.lane for call in load_scenario_recording(folder).calls] == [0, 0, 1, 2]
