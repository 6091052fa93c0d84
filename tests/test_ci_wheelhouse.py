"""The wheelhouse is filled by pip from a folder of wheels, by hash, once, and says what mends it when it cannot be."""

import os

import pytest

from ci.wheelhouse import WheelhouseError, fill, main

ROWS = """
[package.dev-dependencies]
tests = [{{ name = "thing" }}, {{ name = "elsewhere", marker = "sys_platform == 'plan9'" }}]

[[package]]
name = "thing"
version = "1.0"
source = {{ registry = "wheelhouse" }}
wheels = [{{ path = "{name}", hash = "sha256:{sha256}" }}]

[[package]]
name = "elsewhere"
version = "1.0"
source = {{ registry = "wheelhouse" }}
wheels = [{{ path = "elsewhere-1.0-cp311-cp311-plan9.whl", hash = "sha256:{sha256}" }}]
"""


@pytest.fixture
def index(tmp_path, monkeypatch):
    """pip configured for a folder and nothing else."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return tmp_path / "index"


@pytest.fixture
def project(tmp_path, index, lock_text, make_wheel):
    """A project whose lock names one wheel of the index for this platform, and one for another."""
    name, sha256 = make_wheel(index, "thing", "1.0")
    (tmp_path / "uv.lock").write_text(lock_text(ROWS.format(name=name, sha256=sha256)), encoding="utf-8")
    return tmp_path


def wheels(folder):
    return sorted(path.name for path in folder.glob("*.whl"))


def test_it_holds_what_this_platform_needs_and_no_more(project):
    fill(project, project / "house")
    assert wheels(project / "house") == ["thing-1.0-py3-none-any.whl"]


def test_a_filled_one_asks_pip_for_nothing(project, index, capfd):
    fill(project, project / "house")
    (index / "thing-1.0-py3-none-any.whl").unlink()
    capfd.readouterr()
    fill(project, project / "house")
    assert capfd.readouterr().out == ""


def test_a_copied_folder_without_stamp_is_a_filled_one(project, index, capfd):
    index.rename(project / "house")
    fill(project, project / "house")
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("damage", ["deleted", "truncated"])
def test_a_damaged_folder_is_filled_again(project, damage):
    fill(project, project / "house")
    wheel = project / "house" / "thing-1.0-py3-none-any.whl"
    size = wheel.stat().st_size
    if damage == "deleted":
        wheel.unlink()
    else:
        wheel.write_bytes(b"half a download")
        (project / "house" / ".filled").rename(project / "no stamps")
    fill(project, project / "house")
    assert wheel.stat().st_size == size


def test_without_an_index_the_error_names_what_is_missing_and_the_mend(project, index):
    (index / "thing-1.0-py3-none-any.whl").unlink()
    with pytest.raises(WheelhouseError, match=r"1 wheels are missing .* thing-1.0.*\nmend: connect"):
        fill(project, project / "house")
    assert wheels(project / "house") == []


def test_a_file_of_another_hash_is_refused(project, index, make_wheel):
    make_wheel(index, "thing", "1.0")
    (index / "thing-1.0-py3-none-any.whl").write_bytes((index / "thing-1.0-py3-none-any.whl").read_bytes() + b"!")
    with pytest.raises(WheelhouseError, match="missing"):
        fill(project, project / "house")


def test_a_package_without_a_wheel_for_this_platform_is_named(project):
    text = (project / "uv.lock").read_text(encoding="utf-8").replace("'plan9'", "'linux'").replace("==", "!=")
    (project / "uv.lock").write_text(text.replace("!= 'linux'", "!= 'plan9'"), encoding="utf-8")
    with pytest.raises(WheelhouseError, match=r"elsewhere 1\.0 has no wheel for .*\nmend: "):
        fill(project, project / "house")


def test_the_command_prints_the_error_and_exits_1(tmp_path, monkeypatch, lock_text, capsys):
    (tmp_path / "uv.lock").write_text(lock_text(ROWS.format(name="thing-1.0-py2-none-any.whl", sha256="0")), "utf-8")
    monkeypatch.setattr("ci.wheelhouse.wheelhouse", lambda: tmp_path / "house")
    assert main([str(tmp_path)]) == 1
    assert "thing 1.0 has no wheel for" in capsys.readouterr().err
