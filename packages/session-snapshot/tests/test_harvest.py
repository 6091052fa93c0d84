"""An agent's own logs, as found on disk: in the order of the conversation, and only if they are right."""

import json
from pathlib import Path

import pytest
from session_snapshot.agent import Agent, Persistence
from session_snapshot.errors import AgentError
from session_snapshot.harvest import harvest_logs, log_names
from session_snapshot.sandbox import Sandbox, make_sandbox

AGENT = Agent(["a"], persistence=Persistence("{{home}}/.agent/*/log.jsonl", "session-snapshot"))


def header(number: str, created: object = 0, **more: object) -> dict:
    return {
        "type": "session",
        "format": "session-snapshot",
        "version": 1,
        "id": number,
        "createdAt": created,
        "cwd": "/",
    } | more


def write(box: Sandbox, name: str, *values: object) -> None:
    folder = box.home / ".agent" / name
    folder.mkdir(parents=True)
    (folder / "log.jsonl").write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")


def event(seq: int) -> dict:
    return {"type": "turn/start", "seq": seq, "time": 1, "data": {}}


def test_main_sessions_as_opened_then_children_by_creation(tmp_path: Path) -> None:
    box = make_sandbox(tmp_path, False, None)
    write(box, "1", header("kid-b", 5, parentSession="two"))
    write(box, "2", header("kid-c", 4, parentSession="one"))
    write(box, "3", header("one", 9))
    write(box, "4", header("two", 8))
    write(box, "5", header("unknown", 1))
    write(box, "6", header("kid-a", 5, parentSession="two"))
    logs = harvest_logs(AGENT, box, ["two", "one"])
    assert [log.header["id"] for log in logs] == ["two", "one", "unknown", "kid-c", "kid-a", "kid-b"]


def test_an_agent_without_our_format_is_not_harvested(tmp_path: Path) -> None:
    box = make_sandbox(tmp_path, False, None)
    write(box, "1", "nonsense")
    assert harvest_logs(Agent(["a"]), box, []) == []


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([header("a"), event(0), event(2)], "seq"),
        ([header("a"), event(1)], "seq"),
        (["nonsense"], "log.jsonl:1"),
        ([], "log.jsonl"),
    ],
)
def test_a_wrong_log_is_the_agents_fault(tmp_path: Path, values: list, said: str) -> None:
    box = make_sandbox(tmp_path, False, None)
    write(box, "1", *values)
    with pytest.raises(AgentError) as caught:
        harvest_logs(AGENT, box, [])
    assert said in str(caught.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    box = make_sandbox(tmp_path, False, None)
    write(box, "1")
    (box.home / ".agent" / "1" / "log.jsonl").write_bytes(b"\xff\n")
    with pytest.raises(AgentError, match="session log is wrong"):
        harvest_logs(AGENT, box, [])


def test_a_creation_time_that_is_none(tmp_path: Path) -> None:
    box = make_sandbox(tmp_path, False, None)
    write(box, "1", header("b", "yesterday"))
    write(box, "2", header("a", None))
    assert [log.header["id"] for log in harvest_logs(AGENT, box, [])] == ["a", "b"]


def test_folders_named_like_a_pattern(tmp_path: Path) -> None:
    odd = tmp_path / "a[bc]*"
    odd.mkdir()
    box = make_sandbox(odd, False, None)
    write(box, "1", header("one"))
    assert len(harvest_logs(AGENT, box, ["one"])) == 1


@pytest.mark.parametrize(("count", "names"), [(0, []), (1, ["session.jsonl"]), (3, ["session.jsonl", "session.1.jsonl", "session.2.jsonl"])])  # fmt: skip  # noqa: E501
def test_names(count: int, names: list[str]) -> None:
    assert log_names(count) == names
