"""``[guard] allow`` of ``agent.toml``: findings a suite's author has looked at and takes, each with a reason."""

from collections.abc import Iterable, Iterator

from fixture_guard.finding import Finding
from fixture_guard.layout import Suite, Tree
from fixture_guard.settings import Allow, line_of_key


def without_allowed(tree: Tree, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Return the findings nobody allowed, and one for each ``allow`` that no longer allows anything or never may."""
    left = list(findings)
    for suite in tree.suites:
        for allow in suite.agent.guard.allow:
            taken = [finding for finding in left if covers(suite, allow, finding)]
            left = [finding for finding in left if finding not in taken]
            if not taken:
                left.append(useless(suite, allow))
    yield from left


def covers(suite: Suite, allow: Allow, finding: Finding) -> bool:
    """Whether an ``allow`` is about a finding."""
    below = f"{suite.path}/{allow.path}".rstrip("/")
    inside = finding.path == below or finding.path.startswith(f"{below}/")
    return inside and finding.code == allow.code and allow.code not in NEVER and allow.contains in finding.what


def useless(suite: Suite, allow: Allow) -> Finding:
    """Return the finding about an ``allow`` that allows nothing."""
    what = f"allow of {allow.code} ({allow.reason}) allows nothing"
    if allow.code in NEVER:
        what = f"{allow.code} cannot be allowed"
    line = line_of_key(suite.files["agent.toml"].decode(errors="replace"), "guard")
    return Finding(f"{suite.path}/agent.toml", line, "ALLOW", what, "take the entry out of [guard] allow")


NEVER = frozenset(("ALLOW", "SECRET_VALUE", "UNREADABLE", "PROVENANCE_DIGEST"))
"""A real key, an unreadable file and an edited recording have no good reason."""
