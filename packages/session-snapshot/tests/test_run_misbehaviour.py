"""An agent that misbehaves is red with a sentence that names what it did, and nothing of it is left."""

import sys

import pytest

LAST = [["respond", {"stopReason": "end_turn"}]]
TURN = [["hear"], ["call"], ["say"], *LAST]
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="posix only: signals and process groups")


def test_a_well_behaved_agent_is_green(suite):
    suite.green()


# ── what it writes ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("acts", "said"),
    [
        ([["raw", "Loading...\n"]], ["stdout line 3 is not JSON: 'Loading...'", "send logs and prints to stderr"]),
        ([["octets", "7b22fffe227d0a"]], ["stdout line 3 is not UTF-8 (byte 2)"]),
        ([["raw", "[1,2]\n"]], ["stdout line 3 is JSON but not a JSON-RPC object"]),
        ([["raw", "[" * 100_000 + "\n"]], ["stdout line 3 is not JSON"]),
        ([["raw", "\n"]], ["stdout line 3 is not JSON: ''"]),
        ([["big", 50_000_000]], ["stdout line 3 is longer than 16777216 bytes", "limits.frame_bytes", "mend: "]),
        ([["respond", {"stopReason": "end_turn"}], *TURN], ["answers a request", "(id 2)", "answer each request once"]),
        ([["raw", '{"jsonrpc":"2.0","id":77,"result":{}}\n']], ["answers a request nobody made", "(id 77)"]),
        ([["raw", '{"jsonrpc":"2.0","id":[1],"result":{}}\n']], ["answers a request nobody made", "(id [1])"]),
    ],
)
def test_what_is_no_frame_names_the_line(suite, acts, said):
    suite.plan(session_prompt=[*acts, *TURN])
    suite.red("agent", *said)


def test_a_line_over_the_limit_names_the_limit(suite):
    suite.edit("scenario.toml", "step_seconds = 20", "step_seconds = 20\nframe_bytes = 1000")
    suite.plan(session_prompt=[["big", 2000], *TURN])
    suite.red("agent", "stdout line 3 is longer than 1000 bytes (limits.frame_bytes)", "raise [limits] frame_bytes")


def test_a_long_line_within_the_limit_is_a_frame(suite):
    suite.plan(session_prompt=[["big", 1_000_000], *TURN])
    report = suite.red("stdout", "1 difference", "big")
    assert {failure.surface for failure in report.failures} == {"stdout"}


def test_a_partial_last_line_is_shown(suite):
    suite.plan(eof=[["raw", '{"jsonrpc":"2.0","meth']])
    suite.red("agent", "stdout ended in the middle of line 5", '{"jsonrpc":"2.0","meth', "mend: write each frame")


def test_stderr_is_shown_with_a_failure_only(suite):
    suite.plan(session_new=[["stderr", "I am not well"], ["open"]])
    assert suite.green().stderr == ""
    suite.edit("stdout.golden.jsonl", "there", "where")
    assert "I am not well" in suite.red("stdout").stderr


@pytest.mark.parametrize(
    "frame",
    [
        '{"jsonrpc":"2.0","method":"session/update","params":[1]}',
        '{"jsonrpc":"2.0","method":"session/update","params":{"update":"text"}}',
        '{"jsonrpc":"2.0","method":"x_chunk"}',
        '{"jsonrpc":"2.0","method":7,"params":null}',
        '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":[]}',
        '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"toolCall":1,"options":[2]}}',
        '{"jsonrpc":"2.0","id":{},"method":null,"params":"x"}',
        "{}",
    ],
)
def test_an_odd_frame_never_breaks_the_harness(suite, frame):
    suite.plan(session_prompt=[["raw", frame + "\n"], *TURN])
    suite.red("stdout", "difference")


# ── how it dies and how it does not ─────────────────────────────────────────────────────────────────────────────────


def test_a_missing_program_names_it(suite):
    suite.agent(command=["no-such-agent-anywhere"])
    suite.red("agent", "program 'no-such-agent-anywhere' was not found", "mend: ")


@POSIX
def test_a_program_that_cannot_start_says_why(suite):
    broken = suite.root / "broken"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    suite.agent(command=[str(broken)])
    suite.red("agent", "the agent cannot start", "mend: correct command in agent.toml")


def test_a_death_at_boot_names_code_and_stderr(suite):
    suite.plan(start=[["stderr", "no config"], ["exit", 7]])
    report = suite.red("agent", "the agent exited (code 7) while the harness waited for the response to request 0")
    assert "no config" in report.stderr


def test_a_death_in_the_middle_of_a_turn(suite):
    suite.plan(session_prompt=[["hear"], ["call"], ["exit", 3]])
    suite.red("agent", "the agent exited (code 3) while the harness waited for the response to request 2")


@POSIX
def test_a_death_by_signal(suite):
    suite.plan(session_prompt=[["die"]])
    suite.red("agent", "the agent exited (code -9)")


def test_a_death_after_the_last_response_is_no_graceful_end(suite):
    suite.plan(session_prompt=[*TURN, ["exit", 5]])
    suite.red("agent", "the agent exited with code 5, declared is 0", "mend: ")


def test_a_non_zero_exit_at_the_end(suite):
    suite.plan(eof=[["exit", 4]])
    suite.red("agent", "the agent exited with code 4, declared is 0", "exit_code in agent.toml")
    suite.agent("exit_code = 4\n")
    suite.green()


def test_an_agent_that_never_answers_meets_the_step_deadline(suite):
    suite.edit("scenario.toml", "step_seconds = 20", "step_seconds = 0.4")
    suite.plan(initialize=[["hang"]])
    suite.red("agent", "step 1 (initialize) was not done within 0.4 s", "mend: raise [limits] step_seconds (0.4)")


def test_slow_steps_together_meet_the_run_deadline(suite):
    suite.edit("scenario.toml", "step_seconds = 20", "run_seconds = 0.4")
    suite.plan(session_prompt=[["hang"]])
    suite.red("agent", "the run was not done within 0.4 s", "mend: raise [limits] run_seconds")


def test_a_closed_stdout_is_no_silence(suite):
    suite.plan(session_prompt=[["close-stdout"], ["hang"]])
    suite.red("agent", "the agent closed its stdout while the harness waited for the response to request 2")


@POSIX
def test_an_agent_deaf_to_the_end_and_to_signals_is_killed(suite):
    suite.edit("scenario.toml", "step_seconds = 20", "stop_seconds = 0.5")
    suite.plan(start=[["deaf"]], eof=[["hang"]])
    suite.red("agent", "the agent ignored the end of its stdin for 0.5 s and was killed", "mend: make it exit")
    suite.agent('stop = "terminate"\n')
    suite.red("agent", "the agent ignored a request to terminate for 0.5 s and was killed")


@POSIX
def test_stop_by_terminate(suite):
    suite.plan(eof=[["hang"]])
    suite.agent('stop = "terminate"\nexit_code = -15\n')
    suite.green()


# ── what it leaves ──────────────────────────────────────────────────────────────────────────────────────────────────


@POSIX
@pytest.mark.parametrize("how", ["child", "session", "daemon", "nameless", "holding-stdout"])
def test_a_process_left_behind_is_named_and_killed(suite, how):
    suite.plan(session_prompt=[["spawn", how], *TURN])
    report = suite.red("agent", "the agent left a process behind (pid ", "time.sleep(3600)", "it was killed")
    assert [failure.surface for failure in report.failures] == ["agent"]


@POSIX
@pytest.mark.parametrize("end", ["exit", "hang"])
def test_the_descendants_of_an_agent_that_ends_badly_end_too(suite, end):
    suite.edit("scenario.toml", "step_seconds = 20", "step_seconds = 0.4")
    suite.plan(session_prompt=[["spawn", "child"], ["spawn", "daemon"], [end, *([1] if end == "exit" else [])]])
    suite.red("agent")


@POSIX
def test_read_only_files_and_pipes_do_not_survive(suite):
    suite.plan(session_prompt=[["read-only", "locked"], ["fifo", "pipe"], *TURN])
    suite.red("workspace", "added:   locked/file.txt", "added:   pipe ('-> a device, pipe or socket')")
