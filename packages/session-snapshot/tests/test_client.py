"""What the client answers an agent that asks; nothing an agent sends may break it."""

from collections import deque
from pathlib import Path

import pytest
from session_snapshot.client import ClientSide

FILES = {"fs": {"readTextFile": True, "writeTextFile": True}}
OPTIONS = [{"kind": "allow_once", "optionId": "yes"}, {"kind": "reject_once", "optionId": "no"}]
CANCELLED = {"result": {"outcome": {"outcome": "cancelled"}}}


def chosen(option: str) -> dict:
    return {"result": {"outcome": {"outcome": "selected", "optionId": option}}}


def client_in(cwd: Path, *answers: str, capabilities=FILES) -> ClientSide:
    return ClientSide(cwd, deque(answers), capabilities)


def permission(**params) -> dict:
    return {"id": 1, "method": "session/request_permission", "params": params}


@pytest.mark.parametrize(
    ("answers", "options", "result", "failure"),
    [
        (["allow_once"], OPTIONS, chosen("yes"), None),
        (["reject_once", "allow_once"], OPTIONS, chosen("no"), None),
        (["cancelled"], OPTIONS, CANCELLED, None),
        (["allow_always"], OPTIONS, CANCELLED, "not offered for 'Run' (offered: ['allow_once', 'reject_once'])"),
        (["allow_once"], "nonsense", CANCELLED, "was not offered"),
        (["allow_once"], [1, None], CANCELLED, "was not offered"),
        ([], OPTIONS, CANCELLED, "nobody scripted an answer for ('Run')"),
    ],
)  # fmt: skip
def test_permissions(tmp_path: Path, answers, options, result, failure) -> None:
    client = client_in(tmp_path, *answers)
    assert client.answer(permission(options=options, toolCall={"title": "Run"})) == result
    assert [failure in line for line in client.failures] == ([True] if failure else [])


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ({"method": "session/request_permission", "params": [1]}, -32602),
        ({"method": "fs/read_text_file"}, -32602),
        ({"method": "fs/read_text_file", "params": None}, -32602),
        ({"method": "fs/read_text_file", "params": {"path": 1}}, -32602),
        ({"method": "fs/read_text_file", "params": {"path": "a", "line": "x"}}, -32602),
        ({"method": "fs/write_text_file", "params": {"path": "a"}}, -32602),
        ({"method": "terminal/create", "params": {}}, -32601),
        ({"method": 7}, -32601),
    ],
)
def test_what_nobody_can_answer_is_an_error_and_a_failure(tmp_path: Path, frame, code) -> None:
    client = client_in(tmp_path, "allow_once")
    assert client.answer({"id": 1} | frame)["error"]["code"] == code
    assert len(client.failures) == 1


def test_a_tool_call_that_is_none_has_no_title(tmp_path: Path) -> None:
    client = client_in(tmp_path)
    assert client.answer(permission(toolCall="x")) == CANCELLED


@pytest.mark.parametrize(
    ("params", "content"),
    [
        ({}, "a\r\nb\u2028c\nd"),
        ({"line": 2}, "b\u2028c\nd"),
        ({"line": 2, "limit": 1}, "b\u2028c\n"),
        ({"line": 0, "limit": 1}, "a\r\n"),
        ({"line": 9}, ""),
        ({"limit": 0}, ""),
    ],
)
def test_reading(tmp_path: Path, params, content) -> None:
    (tmp_path / "f").write_bytes("a\r\nb\u2028c\nd".encode())
    asked = {"id": 1, "method": "fs/read_text_file", "params": {"path": str(tmp_path / "f")} | params}
    assert client_in(tmp_path).answer(asked) == {"result": {"content": content}}


def test_files_that_cannot_be_read_or_written_are_the_agents_to_hear_of(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff")
    (tmp_path / "file").write_bytes(b"")
    client = client_in(tmp_path)

    def ask(method: str, **params: str) -> str:
        return client.answer({"id": 1, "method": method, "params": params})["error"]["message"]

    assert ask("fs/read_text_file", path="missing") == "No such file or directory"
    assert ask("fs/read_text_file", path="binary") == "the text is not UTF-8"
    assert ask("fs/write_text_file", path="file/below", content="x")
    assert client.failures == []


def test_writing_makes_folders_and_keeps_bytes(tmp_path: Path) -> None:
    asked = {"id": 1, "method": "fs/write_text_file", "params": {"path": "d/f", "content": "a\r\nb\n"}}
    assert client_in(tmp_path).answer(asked) == {"result": {}}
    assert (tmp_path / "d/f").read_bytes() == b"a\r\nb\n"


@pytest.mark.parametrize("capabilities", [{}, {"fs": {}}, {"fs": {"readTextFile": False}}, {"fs": True}])
def test_what_the_client_did_not_declare_is_not_offered(tmp_path: Path, capabilities) -> None:
    client = client_in(tmp_path, capabilities=capabilities)
    assert client.answer({"id": 1, "method": "fs/read_text_file", "params": {"path": "f"}})["error"]["code"] == -32601
