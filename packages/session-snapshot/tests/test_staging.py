"""Swaps are whole or not at all: a kill at any moment is one of the states below, and the next command ends it."""

import json
import shutil
from pathlib import Path

import filelock
import pytest
from session_snapshot.errors import Refused
from session_snapshot.staging import JOURNAL, LOCK, recover, staging_root, swap

OLD = {"keep": b"old keep", "both": b"old both", "gone": b"old gone"}
NEW = {"both": b"new both", "a": b"new a", "z": b"new z"}
AFTER = {"keep": b"old keep"} | NEW


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "snapshots" / "suite" / "scenario"
    made.mkdir(parents=True)
    for name, content in OLD.items():
        (made / name).write_bytes(content)
    return made


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def stage(folder: Path, journal: bool) -> Path:
    """What is on disk at the moment the journal is complete, or just before."""
    snapshots = folder.parent.parent
    staged = staging_root(snapshots) / "suite--scenario"
    staged.mkdir(parents=True)
    for name, data in NEW.items():
        (staged / name).write_bytes(data)
    value = {"folder": folder.relative_to(snapshots.parent).as_posix(), "files": sorted(NEW), "remove": ["gone"]}
    (staged / (JOURNAL if journal else "journal.part")).write_text(json.dumps(value))
    return staged


def test_a_swap_that_nobody_kills(folder: Path) -> None:
    swap(folder.parent.parent, folder, NEW, ["gone"])
    assert content(folder) == AFTER
    assert [path.name for path in staging_root(folder.parent.parent).iterdir()] == [LOCK]


def test_the_journal_is_as_the_states_below_have_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill right after the journal: nothing is rolled forward."""
    monkeypatch.setattr("session_snapshot.staging.roll_forward", lambda staged: None)
    swap(folder.parent.parent, folder, NEW, ["gone"])
    staged = staging_root(folder.parent.parent) / "suite--scenario"
    swapped = content(staged)
    shutil.rmtree(staged)
    assert swapped == content(stage(folder, True))
    assert content(folder) == OLD


@pytest.mark.parametrize("moved", range(len(NEW) + 1))
@pytest.mark.parametrize("removed", [False, True])
def test_a_kill_after_the_journal_is_rolled_forward(folder: Path, moved: int, removed: bool) -> None:
    staged = stage(folder, True)
    for name in sorted(NEW)[:moved]:
        (staged / name).replace(folder / name)
    if removed:
        (folder / "gone").unlink()
    assert recover(folder.parent.parent) == [str(folder)]
    assert content(folder) == AFTER
    assert recover(folder.parent.parent) == []


def test_a_kill_before_the_journal_leaves_the_old(folder: Path) -> None:
    stage(folder, False)
    assert recover(folder.parent.parent) == []
    assert content(folder) == OLD


def test_a_kill_while_the_staging_folder_goes(folder: Path) -> None:
    staged = stage(folder, True)
    for name in NEW:
        (staged / name).replace(folder / name)
    (folder / "gone").unlink()
    (staged / JOURNAL).unlink()
    assert recover(folder.parent.parent) == []
    assert content(folder) == AFTER


def test_leftovers_do_not_get_into_the_next_swap(folder: Path) -> None:
    (stage(folder, False) / "stray").write_bytes(b"")
    swap(folder.parent.parent, folder, NEW, ["gone"])
    assert content(folder) == AFTER


def test_a_checkout_that_moved_in_between(folder: Path, tmp_path: Path) -> None:
    stage(folder, True)
    moved = tmp_path.with_name(tmp_path.name + "-moved")
    tmp_path.rename(moved)
    assert recover(moved / "snapshots") == [str(moved / "snapshots" / "suite" / "scenario")]
    assert content(moved / "snapshots" / "suite" / "scenario") == AFTER
    assert not tmp_path.exists()


def test_a_new_scenario(tmp_path: Path) -> None:
    folder = tmp_path / "snapshots" / "s" / "new"
    swap(tmp_path / "snapshots", folder, {"a": b"1"}, [])
    assert content(folder) == {"a": b"1"}


@pytest.mark.parametrize("spoil", ["the journal", "the target"])
def test_a_swap_that_cannot_be_finished_is_said_and_not_a_traceback(folder: Path, spoil: str) -> None:
    staged = stage(folder, journal=True)
    if spoil == "the journal":
        (staged / JOURNAL).write_text("{")
    else:
        (folder / "a").mkdir()
        (folder / "a" / "in the way").touch()

    with pytest.raises(Refused, match="cannot be finished") as caught:
        recover(folder.parent.parent)

    assert str(caught.value).splitlines()[-1].startswith("mend: make ")


def test_whoever_moves_files_waits_for_whoever_else_does(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("session_snapshot.staging.PATIENCE_SECONDS", 0)
    snapshots = folder.parent.parent
    stage(folder, True)
    with filelock.FileLock(staging_root(snapshots) / LOCK):
        for act in (lambda: recover(snapshots), lambda: swap(snapshots, folder, NEW, ["gone"])):
            with pytest.raises(Refused, match="another command is writing scenarios"):
                act()
            assert content(folder) == OLD
    assert recover(snapshots) == [str(folder)]
