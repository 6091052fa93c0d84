"""Ctrl-C, a request to terminate, and a killed worker: no process and no folder of the run is left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import watchfiles
from session_snapshot.runroot import is_stale, machine

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="posix only: signals and process groups")

PATIENCE = 60
INTERRUPTED = 130


@contextmanager
def beginning_with(disposition) -> Iterator[None]:
    """What is started in the block begins with this disposition of SIGINT, however this test run itself was started."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, disposition)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.fixture(autouse=True)
def terminal():
    """Commands are started as from a terminal."""
    with beginning_with(signal.default_int_handler):
        yield


@pytest.fixture
def in_the_background():
    """Commands are started as a script's background jobs are: deaf to SIGINT."""
    with beginning_with(signal.SIG_IGN):
        yield


@pytest.fixture
def hanging(suite):
    """Two scenarios whose agents leave a marker, start two processes and hang, deaf to everything."""
    marks = suite.root / "marks"
    marks.mkdir()
    suite.plan(
        start=[["deaf"]],
        session_prompt=[["spawn", "child"], ["spawn", "daemon"], ["mark", str(marks)], ["hang"]],
        eof=[["hang"]],
    )
    suite.copy("other")
    return suite


def start(suite, *arguments, command="replay"):
    command = [sys.executable, "-m", "session_snapshot", command, *arguments]
    return subprocess.Popen(
        command,
        cwd=suite.root,
        env=suite.environment(SCRIPTED_KEY=suite.key),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def wait_for_agents(suite, count):
    """Wait until so many agents hang; their process numbers."""
    marks = suite.root / "marks"
    end = time.monotonic() + PATIENCE
    if len(found := agents_in(marks)) < count:
        for _ in watchfiles.watch(marks, rust_timeout=500, yield_on_timeout=True, debounce=20, step=10):
            if len(found := agents_in(marks)) >= count or time.monotonic() > end:
                break
    assert len(found) == count
    return found


def agents_in(marks: Path):
    return [int(mark.name) for mark in marks.iterdir() if not mark.suffix]


def check_nothing_left(suite):
    """No process whose home lies in the run's folder, and no folder of the run."""
    left = [path.name for path in (suite.root / "tmp").iterdir() if path.name.startswith("snaprun-")]
    assert left == []
    assert suite.survivors() == []


def check_interrupted(suite, command):
    output, _ = command.communicate(timeout=PATIENCE)
    assert command.returncode == INTERRUPTED, output
    assert "Traceback" not in output
    assert "child process" not in output, "asyncio was not the one who took the agent's exit code"
    check_nothing_left(suite)
    return output


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize(
    ("number", "group"), [(signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGTERM, False)], ids=str
)
def test_an_interrupted_run_leaves_nothing(hanging, workers, number, group):
    command = start(hanging, "-n", workers)
    agents = wait_for_agents(hanging, max(int(workers), 1))
    assert len(hanging.survivors()) == 3 * len(agents)
    (os.killpg if group else os.kill)(command.pid, number)
    check_interrupted(hanging, command)


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_a_background_job_is_ended_as_well(hanging, in_the_background, workers, number):
    command = start(hanging, "-n", workers)
    wait_for_agents(hanging, max(int(workers), 1))
    os.kill(command.pid, number)
    check_interrupted(hanging, command)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_impatient_second_interrupt_leaves_nothing(hanging, workers):
    command = start(hanging, "-n", workers)
    wait_for_agents(hanging, max(int(workers), 1))
    for _ in range(3):
        os.kill(command.pid, signal.SIGINT)
    check_interrupted(hanging, command)


def test_what_a_killed_command_left_goes_with_the_next_one(hanging):
    command = start(hanging, "-n", "0")
    wait_for_agents(hanging, 1)
    command.kill()
    command.communicate(timeout=PATIENCE)
    assert len(hanging.survivors()) == 3
    hanging.plan()
    assert hanging.command("replay", "-n", "0").returncode == 0
    check_nothing_left(hanging)


def test_a_worker_that_is_killed_leaves_nothing(hanging):
    command = start(hanging, "-n", "2")
    one, other = wait_for_agents(hanging, 2)
    psutil.Process(one).parent().kill()
    psutil.Process(other).kill()
    output, _ = command.communicate(timeout=PATIENCE)
    assert command.returncode == 1
    assert "crashed while running" in output
    check_nothing_left(hanging)


def test_the_folder_of_a_command_that_may_still_run_stays(tmp_path):
    here = f"{os.getpid()} {psutil.Process().create_time()} {machine()}"
    for owner in ("", "nonsense", "4194999 1.0 another machine", here):
        (tmp_path / "owner").write_text(owner, encoding="utf-8")
        assert not is_stale(tmp_path)
    (tmp_path / "owner").write_text(f"4194999 1.0 {machine()}", encoding="utf-8")
    assert is_stale(tmp_path)


WRITING = pytest.mark.parametrize(
    ("command", "arguments"), [("record", ["turn"]), ("refresh", ["--all", "--accept"])], ids=["record", "refresh"]
)
AT_ONCE = {"record": 1, "refresh": min(os.cpu_count() or 1, 2)}


@WRITING
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)
@pytest.mark.parametrize("times", [1, 3])
def test_an_interrupted_command_that_writes_has_written_nothing(hanging, command, arguments, number, times):
    check_writes_nothing(hanging, command, arguments, number, times)


@WRITING
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_a_background_job_that_writes_is_ended_as_well(hanging, in_the_background, command, arguments, number):
    check_writes_nothing(hanging, command, arguments, number)


def check_writes_nothing(suite, command, arguments, number, times=1):
    suite.write("upstream.json", '{"entries": [{"kind": "say", "text": "hello"}]}\n')
    before = suite.tree()
    started = start(suite, *arguments, command=command)
    wait_for_agents(suite, AT_ONCE[command])
    for _ in range(times):
        os.kill(started.pid, number)
    output = check_interrupted(suite, started).splitlines()
    assert output[-1] == "session-snapshot: interrupted" and "child process" not in "".join(output)
    assert len(output) <= 2, output
    assert suite.tree() == before


def test_load_ends_with_the_run(suite):
    command = start(suite, "-n", "0", "--load", "--shuffle", "7", "--repeat", "2")
    output, _ = command.communicate(timeout=PATIENCE)
    assert command.returncode == 0 and "2 passed" in output
    assert [
        process for process in psutil.process_iter(["cmdline"]) if f"parent = {command.pid}" in burner(process)
    ] == []


def burner(process):
    """What a process was started with."""
    return " ".join(process.info["cmdline"] or [])
