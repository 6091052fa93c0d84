"""Nothing of the machine a fixture was made on: personal folders, its home and name, fixed ports, private hosts."""

import re
from collections.abc import Iterator

from fixture_guard.checks.secrets import line_at, tree_texts
from fixture_guard.finding import Finding
from fixture_guard.layout import Tree


def check_personal_paths(tree: Tree) -> Iterator[Finding]:
    """A path into somebody's home, or the home of this machine."""
    mend = "record where the sandbox is the home (its paths become {{home}}), or write {{home}} by hand"
    home = tree.surroundings.home.rstrip("/\\")
    own = re.compile(re.escape(home) + r"(?![\w.-])") if len(home) >= 5 else NOTHING
    for path, text in tree_texts(tree):
        for pattern in (HOME, own):
            for match in pattern.finditer(text):
                if match.lastindex is None or match[match.lastindex].lower() not in NOBODY:
                    what = f"a personal path: {match[0]}"
                    yield Finding(path, line_at(text, match.start()), "PERSONAL_PATH", what, mend)


def check_ports(tree: Tree) -> Iterator[Finding]:
    """A fixed port on this machine: two runs at once cannot both have it."""
    for path, text in tree_texts(tree):
        for match in PORT.finditer(text):
            if int(match[1]) not in NO_PORT:
                mend = "listen on port 0 and write {{port}} where the run's port stands"
                yield Finding(path, line_at(text, match.start()), "PORT", f"a fixed local port: {match[0]}", mend)


def check_hosts(tree: Tree) -> Iterator[Finding]:
    """A host that only the recorder's network knows, or this machine's own name."""
    hostname = tree.surroundings.hostname
    own = re.compile(rf"(?<![\w-]){re.escape(hostname)}(?![\w-])") if TELLING.fullmatch(hostname) else NOTHING
    for path, text in tree_texts(tree):
        for pattern in (PRIVATE_ADDRESS, PRIVATE_NAME, own):
            for match in pattern.finditer(text):
                mend = "reach nothing but loopback in a scenario, or replace the name by one under example.com"
                yield Finding(path, line_at(text, match.start()), "HOST", f"a private host: {match[0]}", mend)


NOTHING = re.compile(r"(?!)")
HOME = re.compile(
    r"(?<![\w.}])/(?:home|Users)/([A-Za-z_][\w.-]*)|\b[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/)([A-Za-z_][\w.-]*)"
    r"|(?<![\w.}/])/root/(?=[\w.])|/var/folders/\w\w/\w+"
)
NOBODY = frozenset(
    (
        "user",
        "username",
        "you",
        "your",
        "me",
        "name",
        "someone",
        "example",
        "alice",
        "bob",
        "shared",
        "public",
        "default",
    )
)
PORT = re.compile(r"(?:\b127\.0\.0\.1|\b0\.0\.0\.0|\blocalhost|\[::1?\]):(\d{1,5})\b")
NO_PORT = frozenset((0, 1, 9))
"""0 asks for any; 1 and 9 (discard) are where a proxy that leads nowhere points."""
PRIVATE_ADDRESS = re.compile(
    r"(?<![\w.])(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}(?:(?=[:/])|(?![\w.]))"
)
PRIVATE_NAME = re.compile(r"(?<=://)[\w.-]+\.(?:local|internal|intranet|lan|corp|home\.arpa)(?![\w-])", re.IGNORECASE)
TELLING = re.compile(r"(?=.*[\d.-])[\w.-]{8,}")
"""A host name worth looking for: long, and with a mark no ordinary word has."""
