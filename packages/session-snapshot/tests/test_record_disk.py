"""A disk that is full and folders that are closed: said before a model is asked where that is known, and nothing lost.

Root may write everywhere, so these tests mount a small file system, or become somebody else.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from session_snapshot.errors import Refused
from session_snapshot.staging import LOCK, STAGING, staging_root, swap

LAST = [["respond", {"stopReason": "end_turn"}]]
TURN = [["hear"], ["call"], ["say"], *LAST]
SIZE = 4 << 20
NOBODY = 65534


@pytest.fixture
def disk(tmp_path):
    """A file system of its own, of SIZE bytes."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("linux only: mounts a tmpfs, as root")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = mount("-t", "tmpfs", "-o", f"size={SIZE},mode=755", "tmpfs", str(folder))
    if mounted.returncode != 0:
        pytest.skip(f"linux only: this one lets no file system be mounted ({mounted.stderr.strip()})")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def mount(*arguments):
    return subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)


@pytest.fixture
def small(disk, suite, monkeypatch):
    """The suite on the small disk; temporary folders are elsewhere."""
    moved = type(suite)(disk)
    monkeypatch.chdir(disk)
    moved.script("hello once more")
    return moved


def fill(folder, spare=0):
    """Leave so many bytes free; what fills the rest."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 10, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue
    if spare:
        os.truncate(filler, filler.stat().st_size - spare)
    return filler


def record(suite, elsewhere):
    """Record by the command; temporary folders are ``elsewhere``."""
    elsewhere.mkdir(exist_ok=True)
    places = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(elsewhere))
    return suite.command("record", "turn", SCRIPTED_KEY=suite.key, **places)


def check_refused(done, *said):
    assert done.returncode == 2, done.stdout + done.stderr
    assert [part for part in said if part not in done.stderr] == [], done.stderr
    assert done.stderr.splitlines()[-1].startswith("mend: ")
    assert "Traceback" not in done.stderr


def check_recorded(suite, elsewhere):
    done = record(suite, elsewhere)
    assert (done.returncode, done.stderr) == (0, "")
    assert b"hello once more" in suite.tree()["scripted/turn/session.jsonl"]


# ── full ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("spare", [0, 512 << 10], ids=["full", "almost full"])
def test_a_full_disk_is_told_before_a_model_is_asked(small, tmp_path, spare):
    marks = tmp_path / "marks"
    small.plan(start=[["mark", str(marks)]])
    before = small.tree()
    filler = fill(small.root, spare)
    check_refused(
        record(small, tmp_path / "tmp"),
        "No space left on device",
        f"; {small.root} is full (",
        "of 4,096 KiB free); no model was asked, and nothing was changed",
        f"mend: make room on {small.root}, then nox -s snapshot_record -- scripted/turn",
    )
    assert not marks.exists()
    filler.unlink()
    small.plan()
    assert {name: text for name, text in small.tree().items() if "plan.json" not in name} == {
        name: text for name, text in before.items() if "plan.json" not in name
    }
    check_recorded(small, tmp_path / "tmp")


def test_a_disk_that_fills_up_meanwhile_loses_nothing(small, tmp_path):
    """The agent itself fills it. What was paid for is kept where there is room."""
    small.plan(session_prompt=TURN, eof=[["fill", str(small.root / "filler")]])
    before = small.tree()
    done = record(small, tmp_path / "tmp")
    check_refused(
        done,
        f"{small.root} is full (",
        "nothing was changed",
        f"kept: what the run brought is in {tmp_path.as_posix()}/tmp/snapshot-kept-",
        f"mend: make room on {small.root}, then nox -s snapshot_record -- scripted/turn",
    )
    assert small.tree() == before
    folder = Path(done.stderr.splitlines()[-2].partition(" is in ")[2])
    assert "hello once more" in (folder / "run" / "calls.jsonl").read_text(encoding="utf-8")
    assert "hello once more" in (folder / "session.jsonl").read_text(encoding="utf-8")
    (small.root / "filler").unlink()
    small.plan()
    check_recorded(small, tmp_path / "tmp")


def test_a_swap_on_a_disk_with_so_much_room_is_whole_or_not_at_all(disk):
    """However much room there is, from none to enough."""
    old = {name: b"old" * 1000 for name in "abcd"}
    new = {name: b"new!" * 3000 for name in "abce"}
    folder = disk / "snapshots" / "s" / "t"
    done = []
    for spare in range(0, 96 << 10, 4 << 10):
        shutil.rmtree(disk / "snapshots", ignore_errors=True)
        shutil.rmtree(staging_root(disk / "snapshots"), ignore_errors=True)
        folder.mkdir(parents=True)
        for name, content in old.items():
            (folder / name).write_bytes(content)
        filler = fill(disk, spare)
        done.append(swapped(disk, folder, new))
        filler.unlink()
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == (new if done[-1] else old), spare
    assert done[0] is False and done[-1] is True and done == sorted(done)


def swapped(disk, folder, files):
    """Whether a swap was done; where it was not, it says why."""
    try:
        swap(disk / "snapshots", folder, files, ["d"])
    except Refused as error:
        assert f"{disk} is full (" in str(error) and "nothing was changed" in str(error)
        return False
    return True


# ── closed ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_read_only_checkout_can_be_replayed_and_not_recorded(small, tmp_path):
    (small.root / "tmp").mkdir()
    before = small.tree()
    assert mount("-o", "remount,ro", str(small.root)).returncode == 0
    check_refused(record(small, tmp_path / "tmp"), "cannot be written", "mend: make the folder writable; nothing was")
    places = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(tmp_path / "tmp"))
    replayed = small.command("replay", "-n", "0", **places)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert mount("-o", "remount,rw", str(small.root)).returncode == 0
    assert small.tree() == before
    check_recorded(small, tmp_path / "tmp")


AS_NOBODY = f"""
import os, pathlib, sys
import encodings.utf_16_le, filelock, watchfiles, session_snapshot.recording.record  # while they can be read
from session_snapshot.errors import Refused
from session_snapshot.suites import find_places
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
snapshots = pathlib.Path("snapshots")
try:
    record_all = session_snapshot.recording.record.record_all
    record_all(find_places(snapshots), snapshots, {{"SCRIPTED_KEY": "k" * 9}}, False, print)
except Refused as error:
    print("refused:", error)
"""


@contextmanager
def reachable():
    """A temporary folder that everybody may enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def shared(suite, monkeypatch):
    """The suite where somebody else may read it, and write as a test says."""
    if sys.platform == "win32" or os.geteuid() != 0:
        pytest.skip("posix only: becomes another user, as root")
    with reachable() as folder:
        monkeypatch.chdir(folder)
        moved = type(suite)(folder)
        moved.script("hello once more")
        yield moved
        monkeypatch.undo()


def check_refused_to_nobody(suite, *said):
    before = suite.tree()
    environment = suite.environment(HOME=str(suite.root), SNAPSHOT_MODE="")
    (suite.root / "tmp").chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY],
        cwd=suite.root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused: "), done.stdout
    assert [part for part in said if part not in done.stdout] == [], done.stdout
    assert "\nmend: make " in done.stdout
    assert suite.tree() == before


def test_a_closed_scenario_is_told_before_a_model_is_asked(shared):
    shared.root.chmod(0o777)
    check_refused_to_nobody(shared, "snapshots/scripted/turn cannot be written", "mend: make the folder writable")
    assert not (shared.root / STAGING).exists()
    shared.record()


def test_a_closed_checkout_is_told_before_a_model_is_asked(shared):
    """The scenario may be written, and what lies beside ``snapshots/`` may not."""
    shared.turn.chmod(0o777)
    check_refused_to_nobody(
        shared,
        f"{STAGING} cannot be written: Permission denied; no model was asked, and nothing was changed",
        f"mend: make {shared.root} writable, then nox -s snapshot_record -- scripted/turn",
    )
    shared.record()


def test_a_lock_of_somebody_else_is_told_by_name(shared):
    shared.turn.chmod(0o777)
    (shared.root / STAGING).mkdir()
    (shared.root / STAGING).chmod(0o777)
    (shared.root / STAGING / "scripted--turn.lock").touch(mode=0o600)
    check_refused_to_nobody(shared, "scripted--turn.lock cannot be written: Permission denied")
    (shared.root / STAGING / LOCK).unlink(missing_ok=True)
    shared.record()
