"""Progress: plain lines where nobody looks, a live line on a terminal; no escape code where none belongs."""

import contextlib
import os
import re
import subprocess
import sys

import pytest
from llm_dialects.chunks import Finish, FinishReason, Usage, UsageChunk
from llm_dialects.entries import Chunks, Hang, Throw
from llm_dialects.requests import Request
from session_snapshot.agent import Price
from session_snapshot.calls import LiveCall
from session_snapshot.recording.progress import Progress, outcome

PRICED = '[record]\nkey_env = "SCRIPTED_KEY"\n[record.prices.fake-model]\ninput = 1000\noutput = 1000\n'
USAGE = {"kind": "say", "text": "hello", "usage": {"inputTokens": 1200, "outputTokens": 34}}
LINES = [
    r"scripted/turn: recording",
    r"scripted/turn: model call 0 answered \(1,200 tokens in, 34 out\)",
    r"scripted/turn: replay 1 of 3 is identical",
    r"scripted/turn: replay 2 of 3 is identical",
    r"scripted/turn: replay 3 of 3 is identical",
    r"scripted/turn: recorded: 1 model call, 1,200 tokens in, 34 out, \$1\.2340, \d+\.\d s",
]
ESCAPE = "\x1b"
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def priced(scripted):
    scripted.agent(PRICED)
    scripted.script(USAGE)
    asked = ["call", {"stream_options": {"include_usage": True}}]
    scripted.plan(session_prompt=[["hear"], asked, ["say"], ["respond", {"stopReason": "end_turn"}]])
    return scripted


# ── one line at a time ──────────────────────────────────────────────────────────────────────────────────────────────


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_the_line_says_what_is_done_how_long_and_what_it_took():
    clock, said = Clock(), []
    progress = Progress("s/t", {}, said.append, clock=clock)
    progress.enter("recording")
    request = Request(system=(), tools=(), messages=(), params={"model": "m"})
    usage = UsageChunk(usage=Usage(1200, 34))
    answered = Chunks(chunks=(usage, Finish(reason=FinishReason(kind="stop"))))
    progress.calls = [LiveCall(0, request, b"", None, answered), LiveCall(1, request, b"", None, None)]
    clock.now += 83.4
    assert progress.line() == "s/t  01:23  recording  2 model calls, 1 in flight, 1,200 tokens in, 34 out"
    progress.call_done(progress.calls[0])
    progress.stage = "replay 1 of 3"
    progress.calls = progress.calls[:1]
    clock.now += 3600
    assert progress.line() == "s/t  61:23  replay 1 of 3  1 model call, 1,200 tokens in, 34 out"
    assert progress.summary() == "1 model call, 1,200 tokens in, 34 out, 3683.4 s"
    assert said == ["s/t: recording", "s/t: model call 0 answered (1,200 tokens in, 34 out)"]


def test_no_line_shows_the_key():
    """A model's name that holds it is said where it has no price."""
    said = []
    key = "sk-proj-Zq81jWm40sKx77Yt"
    progress = Progress("s/t", {"x": Price(1.0, 1.0)}, said.append, key)
    answered = Chunks(chunks=(UsageChunk(usage=Usage(1, 1)),))
    request = Request(system=(), tools=(), messages=(), params={"model": key})
    progress.calls = [LiveCall(0, request, b"", None, answered)]
    progress.say(progress.summary())
    progress.call_done(LiveCall(0, request, b"", None, Throw(chunks=(), message="m", code=key)))
    assert "without [the key] (" in progress.line() and "without [the key] (" in said[0]
    assert said[1] == "s/t: model call 0 failed ([the key])"


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (Chunks(chunks=()), "answered"),
        (Throw(chunks=(), message="m", code="AUTH"), "failed (AUTH)"),
        (Hang(), "left without an end"),
        (None, "refused"),
    ],
)
def test_how_a_call_went(entry, told):
    assert outcome(entry) == told


# ── no terminal ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1", "TERM": "xterm-256color"}], ids=["plain", "forced"])
def test_where_nobody_looks_lines_are_plain(priced, variables):
    done = priced.command("record", "turn", SCRIPTED_KEY=priced.key, **variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert ESCAPE not in done.stdout
    check_lines(done.stdout)


def check_lines(text):
    lines = text.splitlines()
    assert len(lines) == len(LINES), text
    assert [line for line, pattern in zip(lines, LINES, strict=True) if not re.fullmatch(pattern, line)] == []


# ── a terminal ──────────────────────────────────────────────────────────────────────────────────────────────────────


def on_terminal(suite, *, stdout, **variables):
    """Run the command with its stderr on a terminal, and with its stdout there too or in a pipe; what came on each."""
    import pty

    master, slave = pty.openpty()
    environment = suite.environment(SCRIPTED_KEY=suite.key, COLUMNS="100", LINES="30", **variables)
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        if name not in variables:
            environment.pop(name, None)
    process = subprocess.Popen(
        [sys.executable, "-m", "session_snapshot", "record", "turn"],
        cwd=suite.root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=slave if stdout else subprocess.PIPE,
        stderr=slave,
    )
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal on Linux
        while data := os.read(master, 65536):
            shown += data
    os.close(master)
    piped, _ = process.communicate(timeout=100)
    assert process.returncode == 0, shown.decode()
    return shown.decode(), (piped or b"").decode()


TERMINAL = pytest.mark.skipif(sys.platform == "win32", reason="posix only: pseudo terminals")


@TERMINAL
def test_on_a_terminal_a_live_line_says_where_it_is(priced):
    shown, piped = on_terminal(priced, stdout=False, TERM="xterm-256color")
    check_lines(piped)
    assert ESCAPE not in piped
    plain = CODES.sub("", shown)
    assert re.search(r"scripted/turn  00:0\d  recording  0 model calls", plain), shown
    assert re.search(r"replay \d of 3  1 model call, 1,200 tokens in, 34 out, \$1\.2340", plain), shown
    assert COLOURS.search(shown) and "\x1b[?25l" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l"), "the cursor is shown again"


@TERMINAL
def test_on_a_terminal_lines_stand_above_the_live_one(priced):
    shown, _ = on_terminal(priced, stdout=True, TERM="xterm-256color")
    lines = [line.strip() for line in re.split(r"[\r\n]", CODES.sub("\n", shown))]
    for pattern in LINES:
        assert any(re.fullmatch(pattern, line) for line in lines), (pattern, lines)
    before = re.findall(r"(.{1,4})scripted/turn: ", re.sub(r"\x1b\[[\d;]*m", "", shown), re.DOTALL)
    assert before and not [piece for piece in before if piece[-1] not in "\r\nKl"], before


@TERMINAL
def test_without_colours_where_they_are_not_wanted(priced):
    shown, _ = on_terminal(priced, stdout=True, TERM="xterm-256color", NO_COLOR="1")
    assert not [code for code in COLOURS.findall(shown) if code not in ("\x1b[0m", "\x1b[m")]
    assert "replay 3 of 3 is identical" in shown


@TERMINAL
def test_on_a_terminal_that_can_nothing_lines_are_plain(priced):
    shown, _ = on_terminal(priced, stdout=True, TERM="dumb")
    assert ESCAPE not in shown
    check_lines(shown)
