"""``[guard] allow``."""

import pytest

PORT = {"s/one/workspace/notes.txt": "http://localhost:8080\n"}


@pytest.mark.parametrize(
    ("allow", "findings"),
    [
        ("code = 'PORT'", []),
        ("code = 'PORT', path = 'one'", []),
        ("code = 'PORT', path = 'one/workspace/notes.txt', contains = '8080'", []),
        ("code = 'PORT', contains = '9090'", ["agent.toml:2 ALLOW", "one/workspace/notes.txt:1 PORT"]),
        ("code = 'PORT', path = 'on'", ["agent.toml:2 ALLOW", "one/workspace/notes.txt:1 PORT"]),
        ("code = 'HOST'", ["agent.toml:2 ALLOW", "one/workspace/notes.txt:1 PORT"]),
    ],
)
def test_a_finding_may_be_allowed_where_it_is(check_guard, allow, findings):
    agent = f"command = ['agent']\n[guard]\nallow = [{{{allow}, reason = 'the page is the point'}}]\n"
    check_guard({"s/agent.toml": agent, **PORT}, findings)


def test_an_edited_recording_is_never_allowed(check_guard, clean):
    agent = "command = ['agent']\n[guard]\nallow = [{code = 'PROVENANCE_DIGEST', reason = 'none'}]\n"
    made = clean["s/one/provenance.toml"].replace("DIGEST", "0")
    findings = ["agent.toml:2 ALLOW", "one/provenance.toml:8 PROVENANCE_DIGEST"]
    check_guard({"s/agent.toml": agent, "s/one/provenance.toml": made}, findings)
