"""Provenance and the digest of what a machine wrote."""

from hashlib import sha256

import pytest
from fixture_guard import machine_digest, machine_files


def test_the_digest_is_that_of_the_document():
    files = {"session.jsonl": b"b", "header.system.md": b"a"}
    parts = ("header.system.md", b"a"), ("session.jsonl", b"b")
    text = "".join(f"{name}\0{sha256(data).hexdigest()}\n" for name, data in parts)
    assert machine_digest(files) == sha256(text.encode()).hexdigest()
    assert machine_digest({}) == sha256(b"").hexdigest()


@pytest.mark.parametrize(
    ("name", "recording", "machine"),
    [
        ("session.jsonl", "live", True),
        ("session.12.jsonl", "live", True),
        ("stdout.golden.jsonl", "authored", True),
        ("requests.golden.jsonl", "scripted", True),
        ("header.system.md", "live", True),
        ("header.tools.json", "live", True),
        ("replay.override.json", "live", True),
        ("replay.override.json", "authored", False),
        ("scenario.toml", "live", False),
        ("input.json", "live", False),
        ("upstream.json", "scripted", False),
        ("workspace.expected/session.jsonl", "live", False),
        ("provenance.toml", "live", False),
    ],
)
def test_which_files_a_machine_writes(name, recording, machine):
    assert bool(machine_files({name: b""}, recording)) is machine


def test_an_edit_by_hand_shows(check_guard, clean, build):
    made = build({})["s/one/provenance.toml"]
    edited = clean["s/one/session.jsonl"].replace("DONE", "FINE")
    check_guard(
        {"s/one/session.jsonl": edited, "s/one/provenance.toml": made}, ["one/provenance.toml:8 PROVENANCE_DIGEST"]
    )
    check_guard({"s/one/input.json": '{"steps":[]}\n', "s/one/provenance.toml": made}, [])


@pytest.mark.parametrize(
    ("recording", "made_by", "upstream", "findings"),
    [
        ("live", "record", "model", []),
        ("live", "refresh", "model", []),
        ("live", "record", "script", ["one/provenance.toml:2 PROVENANCE"]),
        ("live", "hand", "model", ["one/provenance.toml:1 PROVENANCE"]),
        ("scripted", "record", "script", []),
        ("scripted", "record", "model", ["one/provenance.toml:2 PROVENANCE"]),
        ("authored", "hand", "none", []),
        ("authored", "refresh", "none", []),
        ("authored", "record", "none", ["one/provenance.toml:1 PROVENANCE"]),
        ("authored", "hand", "script", ["one/provenance.toml:2 PROVENANCE"]),
    ],
)
def test_provenance_agrees_with_the_recording(check_guard, clean, recording, made_by, upstream, findings):
    made = clean["s/one/provenance.toml"].replace('"record"', f'"{made_by}"').replace('"model"', f'"{upstream}"')
    changes = {
        "s/one/scenario.toml": clean["s/one/scenario.toml"].replace('"live"', f'"{recording}"'),
        "s/one/provenance.toml": made,
    }
    if recording == "scripted":
        changes["s/one/upstream.json"] = '{"entries":[]}\n'
    check_guard(changes, findings)


def test_a_model_that_answered_is_named(check_guard, clean):
    nameless = clean["s/one/provenance.toml"].replace('model = "m-1"\n', "")
    check_guard({"s/one/provenance.toml": nameless}, ["one/provenance.toml:2 PROVENANCE"])


@pytest.mark.parametrize(
    ("name", "lock", "findings"),
    [
        ("uv.lock", '[[package]]\nname = "acp-agent"\nversion = "0.1.0"\n', []),
        ("uv.lock", '[[package]]\nname = "acp-agent"\nversion = "0.2.0"\n', ["one/provenance.toml:12 PROVENANCE_LOCK"]),
        ("uv.lock", '[[package]]\nname = "other"\nversion = "0.2.0"\n', ["one/provenance.toml:7 PROVENANCE_LOCK"]),
        ("uv.lock", "not toml\n", ["one/provenance.toml:7 PROVENANCE_LOCK"]),
        ("package-lock.json", '{"packages":{"node_modules/acp_agent":{"version":"0.1.0"}}}\n', []),
        (
            "package-lock.json",
            '{"packages":{"":{},"node_modules/acp-agent":{"version":"9"}}}\n',
            ["one/provenance.toml:12 PROVENANCE_LOCK"],
        ),
    ],
)
def test_a_recording_is_of_the_locked_version(check_guard, name, lock, findings):
    check_guard({f"s/{name}": lock}, findings)


def test_a_lock_that_does_not_name_the_agent_decides_by_its_digest(check_guard, clean):
    lock = "version = 1\npackage = []\n"
    made = clean["s/one/provenance.toml"].replace('"0000"', f'"{sha256(lock.encode()).hexdigest()}"')
    check_guard({"s/uv.lock": lock, "s/one/provenance.toml": made}, [])
