"""Each purity rule, seen green on a pure lock and red on the fault it is for."""

import re

import pytest

from ci.closures import closures_of
from ci.lock_purity import ENVIRONMENTS, RULES, Subject, check, parse_lock, stray_closures

HASH = "sha256:" + "0" * 64

PURE = f"""
dependencies = []

[package.dev-dependencies]
tests = [{{ name = "member" }}, {{ name = "family-one" }}, {{ name = "family-two" }}]
tools = [{{ name = "nox" }}]

[[package]]
name = "member"
version = "0.1"
source = {{ editable = "packages/member" }}

[[package]]
name = "family-one"
version = "1.0"
source = {{ registry = "wheelhouse" }}
sdist = {{ path = "family_one-1.0.tar.gz", hash = "{HASH}" }}
wheels = [{{ path = "family_one-1.0-py3-none-any.whl", hash = "{HASH}" }}]

[[package]]
name = "family-two"
version = "1.0"
source = {{ registry = "wheelhouse" }}
wheels = [{{ path = "family_two-1.0+local-py3-none-any.whl", hash = "{HASH}" }}]

[[package]]
name = "nox"
version = "2026.1"
source = {{ registry = "wheelhouse" }}
wheels = [{{ path = "nox-2026.1-py3-none-any.whl", hash = "{HASH}" }}]
"""
TOOLS = f"# pins\nnox==2026.1 ; sys_platform != 'emscripten' \\\n    --hash={HASH}\n"
SECOND_NOX = f"""
[[package]]
name = "nox"
version = "2025.1"
source = {{ registry = "wheelhouse" }}
wheels = [{{ path = "nox-2025.1-py3-none-any.whl", hash = "{HASH}" }}]
"""


def needs_both(first, second):
    rows = f'{{ name = "nox", version = "2026.1"{first} }}, {{ name = "nox", version = "2025.1"{second} }}'
    return PURE.replace('{ name = "nox" }', rows) + SECOND_NOX


OVERLAP = needs_both("", ", marker = \"python_full_version < '3.12'\"")
NO_OVERLAP = needs_both(", marker = \"python_full_version >= '3.12'\"", ", marker = \"python_full_version < '3.12'\"")
# (text of PURE, its replacement, the rules it breaks, what the finding says)
FAULTS = [
    ('"nox-2026', '"https://host/nox-2026', ["names_no_host", "has_hashes"], "names a host"),
    ('{ registry = "wheelhouse" }', '{ registry = "other" }', ["comes_from_the_wheelhouse"], "registry 'other'"),
    ('{ registry = "wheelhouse" }', '{ git = "g?rev=1" }', ["comes_from_the_wheelhouse"], "comes from git"),
    ('{ registry = "wheelhouse" }', '{ path = "family.whl" }', ["comes_from_the_wheelhouse"], "comes from path"),
    ('"packages/member"', '"../elsewhere"', ["comes_from_the_wheelhouse"], "editable '../elsewhere'"),
    ("path = ", "url = ", ["has_hashes"], "no file name"),
    ("path = ", "filename = 'x', url = ", ["has_hashes"], "no file name"),
    (f', hash = "{HASH}"', "", ["has_hashes"], "has no sha256"),
    ("sha256:", "md5:", ["has_hashes"], "has no sha256"),
    ("wheels = [{", "sdists = [{", ["has_hashes"], "no wheel"),
    ('version = "1.0"', 'version = "1.0rc1"', ["is_released", "keeps_families_together"], "pre-release"),
    ('version = "1.0"', 'version = "1.1"', ["keeps_families_together"], "family family is mixed"),
]
ORPHAN = PURE + SECOND_NOX.replace('"nox"', '"orphan"')


@pytest.fixture
def subject(lock_text):
    def make(rows, **fields):
        text = lock_text(rows)
        lock = parse_lock(text)
        pins = {"pinned": closures_of(lock), "tools": TOOLS} | fields
        return Subject("uv.lock", "", text, lock, "wheelhouse", **pins)

    return make


def rules_broken(subject):
    return [rule.__name__ for rule in RULES if list(rule(subject))]


def test_a_pure_lock_has_no_findings(subject):
    assert check(subject(PURE, families=("family",))) == []


@pytest.mark.parametrize(("old", "new", "broken", "what"), FAULTS)
def test_a_fault_is_found_by_its_rule(subject, old, new, broken, what):
    assert old in PURE
    faulty = subject(PURE.replace(old, new, 1), families=("family",))
    assert rules_broken(faulty) == broken
    assert any(re.search(re.escape(what), finding.what) for finding in check(faulty))


def test_a_package_of_no_session_is_found(subject):
    (finding,) = check(subject(ORPHAN))
    assert finding.what == "orphan 2025.1 is in no session's closure"


def test_two_versions_are_found_only_where_an_environment_installs_both(subject):
    tools = TOOLS + "nox==2025.1\n"
    (finding,) = check(subject(OVERLAP, tools=tools))
    assert finding.what == "nox: versions 2025.1, 2026.1 meet in one environment"
    assert check(subject(NO_OVERLAP, tools=tools)) == []
    assert len(ENVIRONMENTS) == 120


def test_a_prerelease_is_allowed_by_name_and_an_idle_allowance_is_found(subject):
    rows = PURE.replace('version = "1.0"', 'version = "1.0rc1"')
    assert check(subject(rows, prereleases=("family-one", "family-two"))) == []
    (finding,) = check(subject(PURE, prereleases=("family-one",)))
    assert finding.what == "prereleases allows family-one, which is locked at none"


def test_a_family_of_which_nothing_is_locked_is_found(subject):
    (finding,) = check(subject(PURE, families=("gone",)))
    assert "nothing is locked" in finding.what


@pytest.mark.parametrize(
    ("pinned", "what"),
    [
        ({}, "it is not pinned"),
        (
            {"packages": {"family-one": "0.9"}, "workspace": ["member"]},
            "family-one 0.9 -> 1.0, family-two absent -> 1.0",
        ),
        (
            {"packages": {"family-one": "1.0", "family-two": "1.0", "gone": "2"}, "workspace": []},
            "gone 2 -> absent, member absent -> workspace",
        ),
    ],
)
def test_a_closure_that_differs_from_its_pin_is_found_with_the_difference(subject, pinned, what):
    actual = closures_of(parse_lock(subject(PURE).text))
    files = {"tools": actual["tools"]} | ({"tests": pinned} if pinned else {})
    (finding,) = check(subject(PURE, pinned=files))
    assert (finding.where, finding.what) == ("ci/closures/tests.toml", f"differs from uv.lock: {what}")


def test_a_pinned_closure_of_no_session_is_found(subject):
    (finding,) = stray_closures(["tests", "tools", "old"], [subject(PURE)])
    assert finding.where == "ci/closures/old.toml"


def test_tools_that_differ_from_the_lock_are_found(subject):
    found = check(subject(PURE, tools="nox==2025.9 \\\n    --hash=x\n"))
    assert [finding.what for finding in found] == [
        "nox 2025.9 is only in ci/tools.txt",
        "nox 2026.1 is only in uv.lock",
    ]


def test_every_rule_is_seen_red_here(subject):
    faulty = [subject(OVERLAP), subject(ORPHAN), subject(PURE, tools=""), subject(PURE, pinned={})]
    red = {name for row in FAULTS for name in row[2]} | {name for each in faulty for name in rules_broken(each)}
    assert red == {rule.__name__ for rule in RULES}
