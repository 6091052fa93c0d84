"""What a check has to say, and the three ways to say it: to a person, to a program, to a pull request."""

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Struct

Format = Literal["human", "json", "github"]


class Finding(Struct, frozen=True, order=True):
    """One thing wrong with a committed file.

    ``path`` is POSIX, relative to the folder that was checked; ``line`` counts from 1 and is ``None`` where the finding
    is about the file as a whole (or about a file that is not there); ``mend`` is the command or act that mends it.
    """

    path: str
    line: int | None
    code: str
    what: str
    mend: str


def finding_key(finding: Finding) -> tuple[str, int, str, str]:
    """Sort by place, then by code."""
    return (finding.path, finding.line or 0, finding.code, finding.what)


def render(findings: Iterable[Finding], form: Format) -> str:
    """Return the findings as text that ends in a newline; nothing for none, but an empty list in JSON."""
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(list(findings)), indent=2).decode() + "\n"
    line = human_line if form == "human" else github_line
    return "".join(line(finding) + "\n" for finding in findings)


def human_line(finding: Finding) -> str:
    """Return ``path:line: CODE what`` and, indented on the next line, ``mend: ...``."""
    place = finding.path if finding.line is None else f"{finding.path}:{finding.line}"
    return f"{place}: {finding.code} {finding.what}\n    mend: {finding.mend}"


def github_line(finding: Finding) -> str:
    """Return the workflow command that GitHub shows as an annotation of the line.

    Format: GitHub Actions, "Workflow commands", ``::error file=...,line=...,title=...::message``; a property escapes
    ``%``, CR, LF, ``:`` and ``,``, a message the first three.
    """
    line = f",line={finding.line}" if finding.line else ""
    place = f"file={escape_property(finding.path)}{line},title={escape_property(finding.code)}"
    message = escape_message(f"{finding.what}\nmend: {finding.mend}")
    return f"::error {place}::{message}"


def escape_message(text: str) -> str:
    """Escape what would end a workflow command's message."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Escape what would end a workflow command's property."""
    return escape_message(text).replace(":", "%3A").replace(",", "%2C")
