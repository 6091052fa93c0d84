"""Every tool, really executed."""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path

import msgspec
import pytest
from acp_agent.__main__ import SHIPPED
from acp_agent.config import Source, parse_config
from acp_agent.toolbox import ToolContext, ToolError
from acp_agent.tools import TOOLS, offered_tools, parse_call, use_tool
from llm_dialects import ToolCallBlock

ALL = tuple(TOOLS)
posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX shells and signals")


@pytest.fixture
def context(tmp_path, cwd):
    config = parse_config([Source("config.toml", SHIPPED.read_text("utf-8"))]).tools
    return ToolContext(cwd, tmp_path / "spill", config, {"PATH": os.environ["PATH"], "MARK": "m"})


def limited(context, **settings):
    return msgspec.structs.replace(context, config=msgspec.structs.replace(context.config, **settings))


def use(context, name, **arguments):
    call = ToolCallBlock(id="c", name=name, arguments=json.dumps(arguments))
    return asyncio.run(use_tool(context, parse_call(call, ALL)))


def check(outcome, text, code=None):
    assert (outcome.text, outcome.code) == (text, code)


# ── bash ────────────────────────────────────────────────────────────────────────────────────────────────────────────

COMMANDS = [
    ("echo hi", "hi\n", None),
    ("echo out; echo err >&2; echo out", "out\nerr\nout\n", None),
    ("true", "[no output]", None),
    ("exit 3", "[exit code: 3]", None),
    ("echo hi; exit 3", "hi\n[exit code: 3]", None),
    ("printf hi; exit 3", "hi\n[exit code: 3]", None),
    ("kill -9 $$", "[exit code: 137]", None),
    ("cat", "[no output]", None),
    ("no-such-program 2>/dev/null", "[exit code: 127]", None),
    ("printf '\\377ok'", "\ufffdok", None),
    ("env | sort | grep -v -e ^_= -e ^SHLVL= -e ^PWD= -e ^OLDPWD= | cut -d= -f1", "MARK\nPATH\n", None),
    ("shopt -q login_shell && echo login || echo plain", "plain\n", None),
]


@posix
@pytest.mark.parametrize(("command", "text", "code"), COMMANDS)
def test_a_command(context, command, text, code):
    check(use(context, "bash", command=command), text, code)


@posix
def test_a_command_runs_in_the_session_directory(context):
    check(use(context, "bash", command="pwd -P"), f"{context.cwd.resolve()}\n")


@posix
def test_a_background_process_ends_with_its_command(context):
    outcome = use(context, "bash", command="sleep 600 & echo $!")
    assert dies(int(outcome.text))


@posix
@posix
def test_a_process_that_left_the_group_does_not_hold_the_turn(context):
    leaver = "setsid sh -c 'echo $$ > pid; exec sleep 600' & while [ ! -s pid ]; do :; done; echo done"
    check(use(context, "bash", command=leaver), "done\n")
    os.kill(int((context.cwd / "pid").read_text()), signal.SIGKILL)


@posix
def test_a_command_that_takes_too_long_is_killed_whole(context):
    outcome = use(limited(context, bash_timeout_seconds=0.3), "bash", command="sleep 600 & echo $!; wait")
    pid, note = outcome.text.splitlines()
    assert (note, outcome.code) == ("[timed out after 0.3 s]", "TIMEOUT")
    assert dies(int(pid))


def test_a_command_that_cannot_start_is_a_result(context):
    outcome = use(context, "bash", command="echo \0")
    assert outcome.code == "NOT_STARTED"


@posix
def test_a_long_output_is_cut_and_kept_whole(context):
    command = "printf 'A%.0s' {1..60}; printf 'B%.0s' {1..60}"
    outcome = use(limited(context, output_limit_bytes=40), "bash", command=command)
    head, note, tail = outcome.text.split("\n")
    path = context.spill / "bash-1.txt"
    assert (head, tail) == ("A" * 20, "B" * 20)
    assert note == f"[80 of 120 bytes left out; read them in {path}]"
    assert path.read_text() == "A" * 60 + "B" * 60
    check(use(context, "read_file", path=str(path)), "A" * 60 + "B" * 60)
    use(limited(context, output_limit_bytes=40), "bash", command=command)
    assert sorted(file.name for file in context.spill.iterdir()) == ["bash-1.txt", "bash-2.txt"]


def dies(pid):
    """Whether a process is dead, or only waits for its parent; the kernel may still be at it."""
    deadline = time.monotonic() + 30
    while running(pid) and time.monotonic() < deadline:
        os.sched_yield()
    return not running(pid)


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────

NUMBERED = "".join(f"line {n}\n" for n in range(1, 6))

READS = [
    ({}, NUMBERED),
    ({"offset": 4}, "line 4\nline 5\n"),
    ({"limit": 2}, "line 1\nline 2\n\n[lines 1 to 2 of 5; read on with offset 3]"),
    ({"offset": 2, "limit": 1}, "line 2\n\n[lines 2 to 2 of 5; read on with offset 3]"),
    ({"offset": 9}, "[the file has 5 lines]"),
]


@pytest.mark.parametrize(("window", "text"), READS)
def test_reading_a_window(context, window, text):
    (context.cwd / "f").write_bytes(NUMBERED.encode())
    check(use(context, "read_file", path="f", **window), text)


def test_reading_keeps_to_the_limit(context):
    (context.cwd / "f").write_bytes(NUMBERED.encode())
    small = limited(context, output_limit_bytes=15)
    check(use(small, "read_file", path="f"), "line 1\nline 2\n\n[lines 1 to 2 of 5; read on with offset 3]")
    (context.cwd / "g").write_bytes("ä".encode() * 20)
    check(use(small, "read_file", path="g"), "ä" * 7 + "\n[the rest of line 1 is left out]")


def test_reading_keeps_line_endings_and_empty_files(context):
    (context.cwd / "crlf").write_bytes(b"a\r\nb")
    (context.cwd / "empty").write_bytes(b"")
    check(use(context, "read_file", path="crlf"), "a\r\nb")
    check(use(context, "read_file", path="empty"), "[empty file]")


def test_writing_makes_folders_and_replaces(context):
    check(use(context, "write_file", path="a/b/c.txt", content="ä\r\n"), "wrote 4 bytes to a/b/c.txt")
    assert (context.cwd / "a/b/c.txt").read_bytes() == b"\xc3\xa4\r\n"
    outcome = use(context, "write_file", path="a/b/c.txt", content="new")
    assert (outcome.change.old, outcome.change.new) == ("ä\r\n", "new")


def test_editing_replaces_the_one_place(context):
    (context.cwd / "f").write_bytes(b"one\r\ntwo\r\n")
    check(use(context, "edit_file", path="f", old_text="two", new_text="2"), "edited f")
    assert (context.cwd / "f").read_bytes() == b"one\r\n2\r\n"


ERRORS = [
    ("read_file", {"path": "nope"}, "NOT_FOUND"),
    ("read_file", {"path": "."}, "IS_DIRECTORY"),
    ("read_file", {"path": "binary"}, "NOT_TEXT"),
    ("read_file", {"path": "twice", "offset": 0}, "INVALID_ARGUMENTS"),
    ("read_file", {"path": "../x"}, "OUTSIDE_CWD"),
    ("read_file", {"path": "/etc/passwd"}, "OUTSIDE_CWD"),
    ("read_file", {"path": "escape/x"}, "OUTSIDE_CWD"),
    ("read_file", {"path": "a\0b"}, "IO_ERROR"),
    ("write_file", {"path": "../x", "content": ""}, "OUTSIDE_CWD"),
    ("write_file", {"path": "escape/x", "content": ""}, "OUTSIDE_CWD"),
    ("write_file", {"path": ".", "content": ""}, "IO_ERROR"),
    ("write_file", {"path": "twice/x", "content": ""}, "IO_ERROR"),
    ("edit_file", {"path": "nope", "old_text": "a", "new_text": "b"}, "NOT_FOUND"),
    ("edit_file", {"path": "twice", "old_text": "b", "new_text": "c"}, "NO_MATCH"),
    ("edit_file", {"path": "twice", "old_text": "", "new_text": "c"}, "NO_MATCH"),
    ("edit_file", {"path": "twice", "old_text": "a", "new_text": "c"}, "NOT_UNIQUE"),
    ("edit_file", {"path": "../x", "old_text": "a", "new_text": "c"}, "OUTSIDE_CWD"),
]


@pytest.mark.parametrize(("name", "arguments", "code"), ERRORS)
def test_what_a_file_tool_refuses(context, name, arguments, code):
    (context.cwd / "twice").write_text("a a")
    (context.cwd / "binary").write_bytes(b"\xff\xfe\x00")
    (context.cwd / "escape").symlink_to(context.cwd.parent)
    assert use(context, name, **arguments).code == code
    assert sorted(path.name for path in context.cwd.iterdir()) == ["binary", "escape", "twice"]
    assert (context.cwd / "twice").read_text() == "a a"


# ── the table ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ALL)
def test_the_schema_is_the_arguments(name):
    spec = TOOLS[name]
    fields = msgspec.structs.fields(spec.arguments)
    assert list(spec.input_schema["properties"]) == [field.name for field in fields]
    assert spec.input_schema["required"] == [field.name for field in fields if field.required]


def test_only_enabled_tools_are_offered_and_usable():
    assert [tool.name for tool in offered_tools(["read_file", "bash"])] == ["bash", "read_file"]
    with pytest.raises(ToolError, match="no tool named 'write_file'; there are bash"):
        parse_call(ToolCallBlock(id="c", name="write_file", arguments="{}"), ["bash"])
