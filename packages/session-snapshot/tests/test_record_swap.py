"""A kill at every file of a swap: whatever the next command is, the scenario is then as it was or as it should be."""

import json
import signal
import subprocess
import sys

import pytest
from session_snapshot.sandbox import capture_tree
from session_snapshot.staging import JOURNAL, recover

OPERATIONS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree")

KILLED_SWAP = f"""
import json, os, pathlib, signal, sys
from session_snapshot import staging
left, told = int(sys.argv[1]), json.loads(pathlib.Path("new.json").read_text())
def watch(event, _):
    global left
    if event in {OPERATIONS}:
        left -= 1
        if left < 0:
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
files = {{name: bytes.fromhex(digits) for name, digits in told["files"].items()}}
import filelock
sys.addaudithook(watch)
staging.swap(pathlib.Path("snapshots"), pathlib.Path("snapshots/scripted/turn"), files, told["remove"])
"""
"""Swap files in a process that is killed before its operation number so-and-so on a file."""

FORKED_SWAPS = """
import os, pathlib, shutil, sys
root, code = pathlib.Path.cwd(), compile(sys.argv[1], "swap", "exec")
import json, signal, filelock
from session_snapshot import staging
for moment in range(200):
    copy = pathlib.Path(sys.argv[2]) / f"{moment:03}"
    shutil.copytree(root, copy)
    child = os.fork()
    if child == 0:
        os.chdir(copy)
        sys.argv[1:] = [str(moment)]
        exec(code, {})
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        break
"""


@pytest.fixture
def swapping(scripted):
    """A scenario that has been recorded twice: the files of the first time are there, those of the second in a file."""
    scripted.write("session.1.jsonl", scripted.log_header)
    old = scripted.tree()
    scripted.record()
    new = scripted.tree()
    changed = {name: text for name, text in new.items() if old.get(name) != text}
    told = {
        "files": {name.removeprefix("scripted/turn/"): text.hex() for name, text in changed.items()},
        "remove": ["session.1.jsonl"],
    }
    scripted.restore(old)
    (scripted.root / "new.json").write_text(json.dumps(told))
    assert set(told["files"]) == {"provenance.toml", "session.jsonl", "stdout.golden.jsonl"}
    assert "scripted/turn/session.1.jsonl" in old and "scripted/turn/session.1.jsonl" not in new
    return scripted, old, new


def test_a_kill_at_every_moment_leaves_the_old_files_or_the_new_ones(swapping):
    """Each in a process of its own, as every system has them."""
    suite, old, new = swapping
    seen = []
    for moment in range(200):
        killed = subprocess.run([sys.executable, "-c", KILLED_SWAP, str(moment)], cwd=suite.root, check=False)
        recover(suite.snapshots)
        seen.append(suite.tree())
        assert seen[-1] in (old, new), moment
        assert not list((suite.root / ".snapshot-staging").glob(f"*/{JOURNAL}"))
        if killed.returncode == 0:
            break
        assert killed.returncode in (-9, signal.SIGTERM)
        suite.restore(old)
    assert old in seen and new in seen and seen[-1] == new and moment > 10


# ── whatever the next command is ────────────────────────────────────────────────────────────────────────────────────

COMMANDS = {
    "replay": (["session_snapshot", "replay", "-n", "0"], (0,)),
    "record": (["session_snapshot", "record", "turn"], (0,)),
    "record, refused": (["session_snapshot", "record", "turn"], (2,)),
    "refresh": (["session_snapshot", "refresh", "turn"], (0,)),
    "review": (["session_snapshot", "review", "--list", "turn"], (0,)),
    "view": (["session_snapshot", "view", "turn"], (0,)),
    "pytest": (["pytest", "-q", "-p", "no:cacheprovider", "snapshots/scripted/turn/scenario.toml"], (0,)),
    "pytest with workers": (["pytest", "-q", "-p", "no:cacheprovider", "-n", "1", "snapshots"], (0,)),
}


@pytest.mark.skipif(sys.platform == "win32", reason="posix only: forks")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_next_command_of_any_kind_rolls_forward_or_back(swapping, tmp_path_factory, command):
    """Every state of the files in which a kill leaves the scenario; a state that was had already is not had again."""
    suite, old, new = swapping
    copies = tmp_path_factory.mktemp("killed")
    subprocess.run([sys.executable, "-c", FORKED_SWAPS, KILLED_SWAP, str(copies)], cwd=suite.root, check=True)
    told: list[str] = []
    had: list[object] = []
    for killed in sorted(copies.iterdir()):
        state = (capture_tree(killed / "snapshots", []), bool(list(killed.glob(f".snapshot-staging/*/{JOURNAL}"))))
        if state in had or ("workers" in command and state[0] in (old, new)):
            continue  # workers take their time
        had.append(state)
        key = {"SCRIPTED_KEY": suite.key} if command == "record" else {}
        told.append(check_next(suite, killed, *COMMANDS[command], old, new, key))
    assert [tree in (old, new) for tree, _ in had].count(False) == 3, "a mixture after each file but the last"
    assert "workers" in command or len(had) == 7
    assert set(told) == ({"new"} if command == "record" or "workers" in command else {"old", "new"})


def check_next(suite, root, arguments, codes, old, new, key):
    """The command ends as it should and leaves the old files or the new ones; which."""
    mixed = capture_tree(root / "snapshots", []) not in (old, new)
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=root,
        env=suite.environment(SNAPSHOT_MODE="", **key),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode in codes, output
    assert not mixed or "finished what an interrupted command began in " in output or "-n" in arguments, output
    after = capture_tree(root / "snapshots", [])
    assert after in (old, new), output
    assert not list(root.glob(f".snapshot-staging/*/{JOURNAL}"))
    return "new" if after == new else "old"


def test_two_that_find_the_same_journal_do_not_disturb_each_other(swapping):
    """Eight commands at once after a kill: one finishes, the others wait for it and find nothing left."""
    suite, _, new = swapping
    command = [sys.executable, "-c", KILLED_SWAP]
    for moment in range(200):
        subprocess.run([*command, str(moment)], cwd=suite.root, check=False)
        if list((suite.root / ".snapshot-staging").glob(f"*/{JOURNAL}")):
            break
    code = "import pathlib, session_snapshot.staging as s; print(len(s.recover(pathlib.Path('snapshots'))))"
    others = [
        subprocess.Popen([sys.executable, "-c", code], cwd=suite.root, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    finished = [int(other.communicate(timeout=100)[0]) for other in others]
    assert sum(finished) == 1 and [other.returncode for other in others] == [0] * 8
    assert suite.tree() == new
