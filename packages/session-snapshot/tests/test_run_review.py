"""Review as a person does it, in a real pseudo-terminal: which keys do what, and that files hold what was accepted,
exactly that."""

import codecs
import os
import re
import select
import signal
import struct
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

if sys.platform != "win32":
    import fcntl
    import pty
    import termios

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="posix only: pseudo-terminals")

PATIENCE = 60
PROMPT = "[q]uit > "
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]")

LAST = [["respond", {"stopReason": "end_turn"}]]
TURN = [["hear"], ["call"], ["say"], *LAST]
USAGE = ["update", "usage_update", {"used": 1, "size": 2}]
PLAN = ["update", "plan", {"entries": []}]
CHANGED = [USAGE, PLAN, ["hear"], ["call", {"temperature": 0.5}], ["say", "hello there wide world"], *LAST]
"""Four differences: two additive, one wording, one semantic."""


class Walk:
    """A review that runs in a pseudo-terminal."""

    def __init__(self, suite, *arguments, columns=100, **variables):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = {k: v for k, v in suite.environment().items() if k not in ("NO_COLOR", "COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "session_snapshot", "review", *arguments],
            cwd=suite.root,
            env=environment | {"TERM": "xterm-256color"} | variables,
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            start_new_session=True,
        )
        self.raw = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")()  # a read may end amid a letter
        self.seen = 0

    @property
    def text(self):
        """All that was drawn, without colours."""
        return ESCAPES.sub("", self.raw).replace("\r\n", "\n")

    def until(self, text):
        """Read until this was drawn, after what was looked at last; what was drawn since then."""
        end = time.monotonic() + PATIENCE
        while text not in self.text[self.seen :]:
            assert time.monotonic() < end and self.read(), f"waited for {text!r} in vain:\n{self.text[self.seen :]}"
        found = self.text.index(text, self.seen) + len(text)
        since, self.seen = self.text[self.seen : found], found
        return since

    def read(self):
        """Take in what was drawn; whether there may be more."""
        if select.select([self.master], [], [], 0.2)[0]:
            try:
                self.raw += self.decoder.decode(os.read(self.master, 65536))
            except OSError:
                return False
        return self.process.poll() is None or bool(select.select([self.master], [], [], 0)[0])

    def press(self, key, then=PROMPT):
        """Press a key once keys are read one by one; wait for what comes then, and return what was drawn."""
        end = time.monotonic() + PATIENCE
        while termios.tcgetattr(self.slave)[3] & termios.ICANON:
            assert time.monotonic() < end and self.read(), self.text
        os.write(self.master, key.encode())
        return self.until(then)

    def end(self):
        """Wait for the end; the exit code and what was drawn meanwhile."""
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < end, self.text
            self.read()
        while select.select([self.master], [], [], 0)[0] and self.read():
            pass
        since = self.text[self.seen :]
        self.seen = len(self.text)
        return self.process.returncode, since

    def close(self):
        """End it, whatever it does."""
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@contextmanager
def walking(suite, *arguments, **options):
    walk = Walk(suite, *arguments, **options)
    try:
        yield walk
    finally:
        walk.close()
    assert suite.survivors() == []
    assert list((suite.root / "tmp").iterdir()) == []


def changed_files(before, after):
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def stdout_lines(suite, scenario="turn"):
    return (suite.folder / scenario / "stdout.golden.jsonl").read_text(encoding="utf-8").splitlines()


def kinds(suite):
    """The phrases that are still pending, as the command lists them."""
    done = suite.command("review", "turn", "--list")
    return [line.split("  ")[1] for line in done.stdout.splitlines()]


def test_a_walk_writes_what_is_accepted_and_nothing_else(suite):
    suite.plan(session_prompt=CHANGED)
    before, old = suite.tree(), stdout_lines(suite)
    with walking(suite, "turn") as walk:
        first = walk.until(PROMPT)
        assert "additive: stdout: event 'usage_update' added, in scripted/turn" in first
        assert "[1/4] scripted/turn#1  additive  stdout.golden.jsonl:3\nevent 'usage_update' added" in first
        assert '"sessionUpdate": "usage_update"' in first and "(nothing)" in first
        second = walk.press("a")
        assert "a\naccepted\n" in second and "[2/4] scripted/turn#2  additive" in second
        assert "event 'plan' added" in second
        around = walk.press("f")
        assert "golden: stdout.golden.jsonl" in around and "agent_message_chunk" in around
        third = walk.press("r")
        assert "r\nrejected\n" in third and "[3/4] scripted/turn#3  wording" in third
        assert "wide" in third
        fourth = walk.press("s")
        assert "s\nskipped\n" in fourth and "/params/temperature added" in fourth
        assert suite.tree() == before, "nothing is written before the scenario is done"
        walk.press("a", "a\n")
        code, rest = walk.end()
    assert code == 1
    assert "scripted/turn: wrote 2 of 4" in rest
    assert "accepted: 1 additive, 1 semantic\n" in rest
    assert "rejected: 1 additive, red until the agent is corrected\nskipped: 1 wording, still pending\n" in rest
    names = ("stdout.golden.jsonl", "requests.golden.jsonl", "provenance.toml")
    assert changed_files(before, suite.tree()) == {f"scripted/turn/{name}" for name in names}
    new = stdout_lines(suite)
    assert [line for line in new if line not in old] == [line for line in new if "usage_update" in line]
    assert [line for line in new if "usage_update" not in line] == old
    assert b'"temperature":0.5' in suite.tree()["scripted/turn/requests.golden.jsonl"]
    assert kinds(suite) == ["additive", "wording"]


def test_one_answer_for_the_same_change_everywhere(suite):
    suite.copy("other")
    suite.plan(session_prompt=CHANGED)
    with walking(suite) as walk:
        assert "the same in scripted/turn" in walk.until(PROMPT)
        walk.press("a", "accepted there as well? [y]es [n]o > ")
        assert "accepted: 2 differences" in walk.press("y")
        walk.press("r", "rejected there as well? [y]es [n]o > ")
        assert "rejected\n" in walk.press("n")
        walk.press("A", "[n]either > ")
        walk.press("n")
        walk.press("S", "of [s]cenario scripted/other (2), [n]either > ")
        later = walk.press("s")
        assert "skipped: 2 differences" in later and "scripted/other: wrote 1 of 4" in later
        assert "[6/8] scripted/turn#2" in later, "what was decided for both is not asked again"
        walk.press("R", "of [s]cenario scripted/turn (3), [n]either > ")
        walk.press("s", "s\n")
        code, rest = walk.end()
    assert code == 1 and "scripted/turn: wrote 1 of 4" in rest
    for scenario in ("turn", "other"):
        assert [
            len([line for line in stdout_lines(suite, scenario) if kind in line]) for kind in ("usage", "plan")
        ] == [1, 0]


def test_all_of_a_kind_at_once_in_all_scenarios(suite):
    suite.copy("other")
    suite.plan(session_prompt=[USAGE, PLAN, *TURN])
    with walking(suite) as walk:
        walk.until(PROMPT)
        walk.press("A", "accepted: the rest of [k]ind additive (4), of [s]cenario scripted/other (2), [n]either > ")
        walk.press("k", "k\n")
        code, rest = walk.end()
    assert (code, "accepted: 4 differences" in rest) == (0, True)
    suite.green()
    assert suite.command("review", "--list").returncode == 0


@pytest.mark.parametrize(
    ("key", "code", "said"), [("q", 1, ""), ("\x03", 130, "interrupted: what was accepted is written")]
)
def test_who_leaves_in_the_middle_loses_nothing_and_gets_nothing(suite, key, code, said):
    suite.plan(session_prompt=CHANGED)
    with walking(suite, "turn") as walk:
        walk.until(PROMPT)
        walk.press("a")
        walk.press(key, "scripted/turn: wrote 1 of 4")
        assert walk.end()[0] == code
        assert said in walk.text
        assert "not looked at: 1 additive, 1 wording, 1 semantic, still pending" in walk.text
    assert kinds(suite) == ["additive", "wording", "semantic"]


def test_an_interrupt_while_it_is_written_says_what_is_lost(suite):
    suite.plan(session_prompt=CHANGED)
    before = suite.tree()
    with walking(suite, "turn") as walk:
        walk.until(PROMPT)
        walk.press("a")
        # What is replayed to prove the choice never ends.
        suite.plan(session_prompt=[["hang"]])
        walk.press("q", "replaying with the new files")
        os.kill(walk.process.pid, signal.SIGINT)
        code, rest = walk.end()
    assert (code, "not written: what was accepted of scripted/turn" in rest) == (130, True)
    assert changed_files(before, suite.tree()) == {"scripted/plan.json"}


def test_a_choice_that_needs_more_asks_for_it(suite):
    def tool(number):
        return ["update", "tool_call", {"toolCallId": f"call-number-{number}", "title": f"Tool {number}"}]

    suite.plan(session_prompt=[tool(1), tool(3), *TURN])
    assert suite.command("refresh", "turn", "--accept").returncode == 0
    suite.plan(session_prompt=[tool(1), tool(2), tool(3), *TURN])
    before = suite.tree()
    for answer, code in (("n", 1), ("y", 0)):
        with walking(suite, "turn") as walk:
            assert "event 'tool_call' added" in walk.until(PROMPT)
            assert "{{toolCallId}} renumbered" in walk.press("a")
            assert "a token would mean two things" in walk.press("s", "nothing of this scenario is written > ")
            walk.press(answer, f"{answer}\n")
            assert walk.end()[0] == code, walk.text
        assert (suite.tree() == before) is (answer == "n")
    suite.green()


def test_keys_that_mean_nothing_explain_the_others(suite):
    suite.plan(session_prompt=CHANGED)
    with walking(suite, "turn") as walk:
        walk.until(PROMPT)
        for key in ("?", "x", "\x1b[A", "\n"):
            assert "a  accept: the golden becomes what it is now" in walk.press(key)
        walk.press("\x04", "not looked at: 2 additive")
        assert walk.end()[0] == 1


def test_no_colour_and_a_narrow_terminal(suite):
    suite.plan(session_prompt=CHANGED)
    with walking(suite, "turn", columns=60, NO_COLOR="1") as walk:
        walk.until(PROMPT)
        drawn = walk.press("s")
        assert "golden:\n" in drawn and "now:\n" in drawn and "│" not in drawn
        assert not re.search(r"\x1b\[[0-9;]*3[0-9]", walk.raw), "no colour"
        walk.press("q", "skipped")
    with walking(suite, "turn") as walk:
        assert "│" in walk.until(PROMPT)
        assert re.search(r"\x1b\[[0-9;]*3[0-9]", walk.raw)
        assert max(map(len, walk.text.splitlines())) <= 100
        walk.press("q", "not looked at")


def test_what_an_agent_says_does_nothing_to_the_terminal(suite):
    suite.plan(session_prompt=[["hear"], ["call"], ["say", "hello \x1b[2J\x07\u202e\x9b31m"], *LAST])
    with walking(suite, "turn") as walk:
        drawn = walk.until(PROMPT)
        assert "\\u001b[2J\\u0007\\u202e\\u009b31m" in "".join(drawn.split())
        walk.press("q", "not looked at")
        assert not {"\x1b[2J", "\x07", "\u202e", "\x9b"} & {
            part for part in ("\x1b[2J", "\x07", "\u202e", "\x9b") if part in walk.raw
        }


def test_a_scenario_that_no_golden_mends_is_left_out_and_said_to_be(suite):
    suite.copy("other")
    toml = suite.folder / "other" / "scenario.toml"
    toml.write_text(toml.read_text(encoding="utf-8").replace('"hello"', '"goodbye"'), encoding="utf-8")
    log = suite.folder / "other" / "session.jsonl"
    log.write_text(log.read_text(encoding="utf-8").replace("hello", "goodbye"), encoding="utf-8")
    suite.plan(session_prompt=CHANGED)
    with walking(suite) as walk:
        drawn = walk.until(PROMPT)
        assert "left out: scripted/other is red for expect, which no golden can mend" in drawn
        assert "answer_contains: 'goodbye' is not in the answer" in drawn
        assert "[1/4] scripted/turn#1" in drawn
        walk.press("A", "[n]either > ")
        walk.press("s", "s\n")
        assert walk.end()[0] == 1
    suite.green()


def test_nothing_pending(suite):
    with walking(suite) as walk:
        code, drawn = walk.end()
    assert (code, "nothing is pending" in drawn) == (0, True)
