"""The folder an agent runs in, the environment it sees, the tree it leaves."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from session_snapshot.sandbox import (
    NO_PROXY,
    NOWHERE,
    Sandbox,
    capture_tree,
    environment,
    make_sandbox,
    remove_tree,
    spellings,
)

posix = pytest.mark.skipif(sys.platform == "win32", reason="posix only: links, modes and pipes")

ALLOWED = {
    "PATH", "TZ", "LANG", "LC_ALL", "PYTHONUTF8", "HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
    "XDG_CACHE_HOME", "TMPDIR", "TMP", "TEMP", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy",
    "https_proxy", "all_proxy", "no_proxy",
}  # fmt: skip


def box_in(base: Path, in_home: bool = False, seed: Path | None = None) -> Sandbox:
    return make_sandbox(base, in_home, seed)


@pytest.mark.parametrize("in_home", [False, True])
def test_places_are_constant_but_for_one_name_of_fixed_length(tmp_path: Path, in_home: bool) -> None:
    boxes = [box_in(tmp_path, in_home) for _ in range(5)]
    assert len({box.root for box in boxes}) == 5
    assert len({len(str(box.root)) for box in boxes}) == 1
    places = {tuple(place.relative_to(box.root).as_posix() for place in (box.cwd, box.home, box.tmp)) for box in boxes}
    assert places == {("home/work" if in_home else "work", "home", "tmp")}


def test_the_seed_is_copied(tmp_path: Path) -> None:
    seed = tmp_path / "seed"
    (seed / "d").mkdir(parents=True)
    (seed / "d" / "f").write_bytes(b"\x00\r\n")
    assert capture_tree(box_in(tmp_path, seed=seed).cwd, []) == {"d/f": b"\x00\r\n"}
    assert capture_tree(box_in(tmp_path, seed=tmp_path / "none").cwd, []) == {}


def test_the_environment_is_an_allowlist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "real")
    monkeypatch.setenv("http_proxy", "http://real:1")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    box = box_in(tmp_path)
    env = environment(box, [tmp_path / "bin"], {"KEY": "dummy", "TZ": "X"})
    if sys.platform != "win32":
        assert env.keys() == ALLOWED | {"KEY"}
    assert "real" not in " ".join(env.values())
    assert (env["KEY"], env["TZ"], env["HTTPS_PROXY"], env["no_proxy"]) == ("dummy", "X", NOWHERE, NO_PROXY)
    assert env["PATH"].split(os.pathsep)[0] == str(tmp_path / "bin")
    assert all(Path(env[name]).is_relative_to(box.root) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME"))


def test_a_program_sees_just_that(tmp_path: Path) -> None:
    env = environment(box_in(tmp_path), [], {"SNAPSHOT_X": "1"})
    show = "import os; print('\\n'.join(os.environ))"
    seen = subprocess.run([sys.executable, "-c", show], env=env, capture_output=True, text=True, check=True).stdout
    assert set(seen.split()) - {"LC_CTYPE"} == set(env)


@posix
def test_what_a_tree_holds(tmp_path: Path) -> None:
    (tmp_path / "d" / "empty").mkdir(parents=True)
    (tmp_path / "d" / "binary").write_bytes(bytes(range(256)))
    (tmp_path / "empty-file").touch()
    (tmp_path / "to-file").symlink_to("d/binary")
    (tmp_path / "to-folder").symlink_to("d")
    (tmp_path / "to-nowhere").symlink_to("gone")
    (tmp_path / "d" / "up").symlink_to("..")
    os.mkfifo(tmp_path / "pipe")
    assert capture_tree(tmp_path, []) == {
        "d/binary": bytes(range(256)),
        "d/empty/": b"",
        "d/up": b"-> ..",
        "empty-file": b"",
        "pipe": b"-> a device, pipe or socket",
        "to-file": b"-> d/binary",
        "to-folder": b"-> d",
        "to-nowhere": b"-> gone",
    }


@pytest.mark.parametrize(
    ("ignore", "left"),
    [
        ([".state"], {"d/.state/f", "file", ".stated/f"}),
        ([".state*"], {"d/.state/f", "file"}),
        (["d", "file"], {".state/f", ".stated/f"}),
        ([], {"d/.state/f", "file", ".state/f", ".stated/f"}),
    ],
)
def test_state_folders_are_left_out_at_the_top_only(tmp_path: Path, ignore: list[str], left: set[str]) -> None:
    for name in ("d/.state/f", "file", ".state/f", ".stated/f"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert set(capture_tree(tmp_path, ignore)) == left


@pytest.fixture
def unprivileged():
    """Run the test as nobody: root may write anywhere, and so proves nothing."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


@posix
def test_read_only_trees_go(tmp_path: Path, unprivileged: None) -> None:
    import tempfile

    folder = Path(tempfile.mkdtemp()) / "box"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "file").touch(mode=0o400)
    (folder / "deep" / "link").symlink_to("nowhere")
    for path in (folder / "deep" / "er", folder / "deep", folder):
        path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(PermissionError):
        (folder / "deep" / "er" / "file").unlink()
    remove_tree(folder)
    assert not folder.exists()
    remove_tree(folder)
    folder.parent.rmdir()


@posix
def test_removing_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "f").touch()
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "link").symlink_to(tmp_path / "mine")
    remove_tree(tmp_path / "box")
    assert (tmp_path / "mine" / "f").exists()


@posix
def test_spellings(tmp_path: Path) -> None:
    real = (tmp_path / "real").resolve()
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    assert spellings(tmp_path / "link") == (str(tmp_path / "link"), str(real))
    assert spellings(real) == (str(real),)


def test_a_seed_from_a_read_only_checkout_can_be_written_in_the_sandbox(tmp_path: Path) -> None:
    seed = tmp_path / "workspace"
    (seed / "inner").mkdir(parents=True)
    (seed / "inner" / "file").write_text("x")
    (seed / "inner" / "file").chmod(0o444)
    (seed / "inner").chmod(0o555)

    box = make_sandbox(tmp_path, False, seed)

    assert [oct(path.stat().st_mode & 0o200) for path in sorted(box.cwd.rglob("*"))] == ["0o200", "0o200"]
