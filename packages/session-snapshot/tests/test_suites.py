"""Scenarios by name, and the nearest names where there is none."""

from pathlib import Path

import pytest
from session_snapshot.errors import FixtureError, Refused
from session_snapshot.suites import Place, choose, find_places, load, meant, place_of, read, short

ROOT = Path("snapshots")
NAMES = ["own/cancel", "own/text-turn", "other/text-turn", "other/write-file"]
PLACES = sorted(Place(*name.split("/"), ROOT / name) for name in NAMES)


def test_a_place() -> None:
    place = place_of(ROOT / "own" / "cancel" / "scenario.toml")
    assert (place.full_name, place.folder, place.suite_folder) == ("own/cancel", ROOT / "own/cancel", ROOT / "own")


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        ([], NAMES),
        (["cancel"], ["own/cancel"]),
        (["own/text-turn"], ["own/text-turn"]),
        (["text-turn"], ["other/text-turn", "own/text-turn"]),
        (["other"], ["other/text-turn", "other/write-file"]),
        (["cancel", "own", "own/cancel"], ["own/cancel", "own/text-turn"]),
    ],
)
def test_choose(names: list[str], chosen: list[str]) -> None:
    assert [place.full_name for place in choose(PLACES, names)] == sorted(chosen)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("text-trun", "the nearest are: text-turn, "),
        ("own/cancle", "the nearest are: own/cancel"),
        (
            "zzz",
            "there are: cancel, other/text-turn, other/write-file, own/cancel, own/text-turn, text-turn, write-file",
        ),
    ],
)
def test_nobody_is_called_so(name: str, nearest: str) -> None:
    with pytest.raises(Refused) as caught:
        choose(PLACES, ["cancel", name])
    assert str(caught.value).startswith(f"no scenario is called {name!r}\nmend: {nearest}")


def test_names_where_there_is_nothing() -> None:
    with pytest.raises(Refused, match="there are: none"):
        choose([], ["a"])


@pytest.mark.parametrize("name", ["session/*", "text-*", "/", "/tmp", "**", "[a]", "a/b/c", "..", "."])
def test_a_name_is_no_pattern_and_no_path_elsewhere(tmp_path: Path, name: str) -> None:
    (tmp_path / "session" / "text-turn").mkdir(parents=True)
    (tmp_path / "session" / "agent.toml").write_text("")
    with pytest.raises(Refused, match="no scenario is called"):
        choose([], [meant(tmp_path, [], [], name)])


def test_find_places(tmp_path: Path) -> None:
    for name in ("b/two", "a/one", "a/not", "deep/er/scenario"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("b/two", "a/one", "deep/er/scenario"):
        (tmp_path / name / "scenario.toml").touch()
    assert [place.full_name for place in find_places(tmp_path)] == ["a/one", "b/two"]


def test_load_names_the_missing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "s" / "a"
    folder.mkdir(parents=True)
    place = Place("s", "a", folder)
    texts = {
        tmp_path / "s" / "agent.toml": 'command = ["x"]\n',
        folder / "scenario.toml": 'description = ""\nrecording = "live"\n[expect]\nmodel_calls = 0\n',
        folder / "input.json": '{"steps": [{"op": "initialize"}]}',
    }
    for path, text in texts.items():
        with pytest.raises(FixtureError) as caught:
            load(place)
        assert str(caught.value).startswith(
            f"{path.relative_to(tmp_path).as_posix()}: the file is missing\nmend: write"
        )
        path.write_text(text)
    assert load(place).agent.command == ["x"]


def test_what_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a\xff")
    with pytest.raises(FixtureError, match=r"not UTF-8 \(byte 1\)"):
        read(tmp_path / "f")


def test_short_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert short(tmp_path / "a" / "b") == "a/b"
    assert short(tmp_path.parent / "x") == (tmp_path.parent / "x").as_posix()
