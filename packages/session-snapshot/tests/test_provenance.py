"""``provenance.toml``: what was written is what is read, by any TOML reader."""

import hashlib
import tomllib
from pathlib import Path

import msgspec
import pytest
from fixture_guard import machine_digest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_snapshot.errors import FixtureError
from session_snapshot.pacing import Pace
from session_snapshot.provenance import (
    AgentId,
    Frames,
    Provenance,
    format_provenance,
    make_provenance,
    pace_of,
    read_provenance,
)
from session_snapshot.strict import parse_toml

TEXT = st.text(st.characters(codec="utf-8"))
PROVENANCES = st.builds(
    Provenance,
    made_by=st.sampled_from(["record", "refresh", "hand"]),
    upstream=st.sampled_from(["model", "script", "none"]),
    source=st.text(st.characters(codec="utf-8"), min_size=1),
    made_on=TEXT, harness=TEXT, model=TEXT, dialect=TEXT, platform=TEXT, lock=TEXT, digest=TEXT,
    agent=st.builds(AgentId, name=TEXT, version=TEXT),
    frames=st.builds(Frames, st.lists(st.dictionaries(TEXT, st.integers(0, 9), max_size=3), max_size=3)),
)  # fmt: skip


@given(PROVENANCES)
@settings(deadline=None, max_examples=80)
def test_round_trip(provenance: Provenance) -> None:
    text = format_provenance(provenance)
    assert text.startswith("# Written by a machine")
    assert tomllib.loads(text) == msgspec.to_builtins(provenance)
    assert parse_toml(text, "p", Provenance) == provenance


def test_what_it_says(tmp_path: Path) -> None:
    files = {"session.jsonl": b"{}\n"}
    (tmp_path / "uv.lock").write_bytes(b"lock")
    made = make_provenance(
        "record", "script", {"name": "a", "version": "1"}, "m", "openai-chat", tmp_path / "uv.lock", files,
        [{"b": 1, "a": 2}, {}], "upstream.json",
    )  # fmt: skip
    assert (made.lock, made.digest) == (hashlib.sha256(b"lock").hexdigest(), machine_digest(files))
    assert (made.upstream, made.source) == ("script", "upstream.json")
    assert (made.agent, made.frames.steps) == (AgentId("a", "1"), [{"a": 2, "b": 1}, {}])
    assert list(made.frames.steps[0]) == ["a", "b"]
    (tmp_path / "provenance.toml").write_text(format_provenance(made), encoding="utf-8")
    assert read_provenance(tmp_path) == made
    assert pace_of(made) == Pace([{"a": 2, "b": 1}, {}])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"made_by = 'hand'\n# \xff\n", "provenance.toml:2: not UTF-8 (byte 19)"),
        (b"made_by = 'hand'\nupstream\n", "provenance.toml:2: not TOML"),
        (b"made_by = 'hand'\nupstream = 'none'\nmodle = 'm'\n", "provenance.toml:3: unknown key 'modle'; the nearest"),
        (
            b"made_by = 'hand'\nupstream = 'none'\n[agent]\nnam = 'm'\n",
            "provenance.toml:4: unknown key 'nam' in $.agent",
        ),
        (b"made_by = 'hand'\nupstream = 'none'\n[frames]\nstep = []\n", "provenance.toml:4: unknown key 'step'"),
    ],
)
def test_what_is_no_provenance(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "provenance.toml").write_bytes(content)
    with pytest.raises(FixtureError) as caught:
        read_provenance(tmp_path)
    assert said in str(caught.value)
    assert "\nmend: " in str(caught.value)


def test_where_there_is_none(tmp_path: Path) -> None:
    assert read_provenance(tmp_path) is None
    assert pace_of(None) == Pace(None)
    assert pace_of(Provenance("hand", "none")) == Pace(None)
    no_lock = make_provenance("hand", "none", {}, "", "", tmp_path / "uv.lock", {}, [])
    assert (no_lock.lock, no_lock.agent) == ("", AgentId())
    assert "source" not in format_provenance(no_lock)
