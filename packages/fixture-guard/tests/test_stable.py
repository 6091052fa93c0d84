"""The fixed point of normalisation."""

import pytest

VOLATILE = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"


@pytest.mark.parametrize(
    ("name", "old", "new", "line"),
    [
        ("stdout.golden.jsonl", '"stopReason":"end_turn"', f'"stopReason":"end_turn","sessionId":"{VOLATILE}"', 2),
        ("session.jsonl", "{{sessionId:1}}", VOLATILE, 1),
        ("session.jsonl", '"content":"OK\\n"', '"content":"at 2026-03-04T05:06:07.123Z\\n"', 7),
        ("requests.golden.jsonl", '"text":"go"', f'"text":"go {VOLATILE}"', 1),
        ("header.system.md", "{{cwd}}.\n", f"{{{{cwd}}}}.\nYou are {VOLATILE}.\n", 2),
    ],
)
def test_a_volatile_value_in_a_golden_is_found(check_guard, clean, name, old, new, line):
    text = clean[f"s/one/{name}"]
    assert old in text
    check_guard({f"s/one/{name}": text.replace(old, new)}, [f"one/{name}:{line} UNSTABLE"])


def test_an_escaped_brace_is_stable(check_guard, clean):
    check_guard({"s/one/header.system.md": "Write {{{{ for a brace, and {{sessionId:7}} is a token.\n"}, [])
