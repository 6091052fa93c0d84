"""A small clean suite in memory, and ``check_guard``: change something in it and say what the guard must find."""

import json
from collections.abc import Callable, Mapping

import pytest
from fixture_guard import Surroundings, check, machine_digest, machine_files

Change = str | bytes | None
"""A file's new content; ``None`` removes the file."""


def lines(*values: object) -> str:
    return "".join(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n" for value in values)


def chunk(value: object, turn: int = 1) -> dict:
    return {"type": "assistant/chunk", "data": {"turn": turn, "step": 1, "chunk": value}}


HEADER = {
    "type": "session",
    "format": "session-snapshot",
    "version": 1,
    "id": "{{sessionId:1}}",
    "createdAt": "{{eventTime}}",
    "cwd": "{{cwd}}",
}
CALL = {"type": "tool-call", "id": "{{toolCallId:1}}", "name": "bash", "arguments": '{"command":"echo OK"}'}
SESSION = lines(
    HEADER,
    {"type": "turn/start", "data": {"turn": 1}},
    chunk({"type": "block-start", "index": 0, "blockType": "tool-call"}),
    chunk({"type": "block-end", "index": 0, "block": CALL}),
    chunk({"type": "finish", "reason": {"kind": "tool-calls"}}),
    {
        "type": "tool/call",
        "data": {"turn": 1, "step": 1, "callId": CALL["id"], "name": "bash", "arguments": CALL["arguments"]},
    },
    {"type": "tool/result", "data": {"turn": 1, "step": 1, "callId": CALL["id"], "content": "OK\n", "isError": False}},
    chunk({"type": "block-start", "index": 0, "blockType": "text"}),
    chunk({"type": "block-end", "index": 0, "block": {"type": "text", "text": "DONE"}}),
    chunk({"type": "finish", "reason": {"kind": "stop"}}),
    {"type": "turn/end", "data": {"turn": 1, "reason": {"kind": "completed"}}},
)
REQUESTS = lines(
    {
        "call": 0,
        "lane": 0,
        "parent": None,
        "source": "session.jsonl#0",
        "header": "default",
        "params": {"model": "m"},
        "append": [{"role": "user", "content": [{"type": "text", "text": "go"}]}],
    },
    {
        "call": 1,
        "lane": 0,
        "parent": 0,
        "source": "session.jsonl#1",
        "header": "default",
        "params": {"model": "m"},
        "append": [
            {"role": "assistant", "content": [CALL]},
            {
                "role": "tool",
                "content": [
                    {"type": "tool-result", "callId": CALL["id"], "content": [{"type": "text", "text": "OK\n"}]},
                ],
            },
        ],
    },
)
STDOUT = lines(
    {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1}},
    {"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "end_turn"}},
)
SCENARIO = """description = "one tool call"
recording = "live"

[header]
pin = true

[expect]
tools_called = ["bash"]
"""
TOOLS = json.dumps([{"name": "bash", "description": "", "inputSchema": {}}, {"name": "list_files"}], indent=2) + "\n"
PROVENANCE = """made_by = "record"
upstream = "model"
harness = "0.1.0"
platform = "linux"
model = "m-1"
dialect = "openai-chat"
lock = "0000"
digest = "DIGEST"

[agent]
name = "acp-agent"
version = "0.1.0"

[frames]
"""
INPUT = {
    "steps": [{"op": "initialize"}, {"op": "newSession"}, {"op": "prompt", "text": "Use the bash tool to echo OK."}]
}
CLEAN: dict[str, str] = {
    "s/agent.toml": 'command = ["agent"]\n',
    "s/one/scenario.toml": SCENARIO,
    "s/one/input.json": json.dumps(INPUT, indent=2) + "\n",
    "s/one/session.jsonl": SESSION,
    "s/one/stdout.golden.jsonl": STDOUT,
    "s/one/requests.golden.jsonl": REQUESTS,
    "s/one/header.system.md": "You are an agent in {{cwd}}.\n",
    "s/one/header.tools.json": TOOLS,
    "s/one/provenance.toml": PROVENANCE,
}


def built(changes: Mapping[str, Change]) -> dict[str, bytes]:
    """The clean suite with changes, every digest right again but where a change names one."""
    tree = {path: content for path, content in {**CLEAN, **changes}.items() if content is not None}
    files = {path: content if isinstance(content, bytes) else content.encode() for path, content in tree.items()}
    for path in [path for path in files if path.endswith("/provenance.toml")]:
        folder = path.removesuffix("provenance.toml")
        inside = {name.removeprefix(folder): data for name, data in files.items() if name.startswith(folder)}
        recording = "authored" if b'"authored"' in inside.get("scenario.toml", b"") else "live"
        digest = machine_digest(machine_files(inside, recording))
        files[path] = files[path].replace(b"DIGEST", digest.encode())
    return files


@pytest.fixture
def clean() -> Mapping[str, str]:
    """The clean suite's files as text; ``DIGEST`` stands for the digest."""
    return CLEAN


@pytest.fixture
def build() -> Callable[[Mapping[str, Change]], dict[str, bytes]]:
    """Build the clean suite with changes."""
    return built


@pytest.fixture
def check_guard() -> Callable[..., None]:
    """Check that the clean suite with ``changes`` has exactly ``findings``: ``path:line CODE`` below suite ``s``."""

    def check_changes(
        changes: Mapping[str, Change], findings: list[str], surroundings: Surroundings | None = None
    ) -> None:
        found = check(built(changes), surroundings)
        said = [f"{item.path.removeprefix('s/')}{f':{item.line}' if item.line else ''} {item.code}" for item in found]
        assert said == findings, "\n".join(f"{item.path}:{item.line}: {item.code} {item.what}" for item in found)

    return check_changes
