"""Whatever is committed, the guard says something about it and does not break."""

import json

import pytest
from fixture_guard import check
from hypothesis import given, settings
from hypothesis import strategies as st

WORDS = ("data", "chunk", "block", "content", "text", "name", "id", "message", "code", "role", "lane")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=6,
)
JSON_FILES = (
    "session.jsonl",
    "stdout.golden.jsonl",
    "requests.golden.jsonl",
    "input.json",
    "header.tools.json",
    "replay.override.json",
)
OVERRIDE = '{"patches":[{"at":1,"entry":{"kind":"throw","chunks":[],"message":"m","code":"c"},"lane":0}]}\n'


def places(value, path=()):
    """Every place in a JSON value, as the path to it."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def planted(value, path, new):
    """The value with what stands at ``path`` replaced."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = planted(copy[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("name", JSON_FILES)
def test_any_value_anywhere_is_a_finding_or_none(build, clean, name):
    overridden = clean["s/one/scenario.toml"].replace("[header]", "overridden = true\n[header]")
    base = {"s/one/replay.override.json": OVERRIDE, "s/one/scenario.toml": overridden}
    text = OVERRIDE if name == "replay.override.json" else clean[f"s/one/{name}"]
    by_line = name.endswith(".jsonl")
    values = [json.loads(line) for line in text.splitlines()] if by_line else json.loads(text)

    # What a ``type`` says decides who reads the rest; every reader takes it for a text.
    anywhere = [path for path in places(values) if "type" not in path[-1:]]

    @given(st.sampled_from(anywhere), VALUES)
    @settings(deadline=None, max_examples=60)
    def plant(path, new):
        changed = planted(values, path, new)
        lines = changed if by_line and isinstance(changed, list) else [changed]
        check(build({**base, f"s/one/{name}": "".join(json.dumps(line) + "\n" for line in lines)}))

    plant()


@given(st.binary(max_size=40))
@settings(deadline=None, max_examples=60)
def test_any_bytes_are_a_finding_or_none(data):
    names = ("agent.toml", "uv.lock", *(f"one/{name}" for name in (*JSON_FILES, "scenario.toml", "provenance.toml")))
    check({f"s/{name}": data for name in names})
    check({"s/agent.toml": b"", **{f"s/{name}": data for name in names[1:]}})
