"""Nothing that opens a door: key shapes, values of this machine's key variables, random values under a key's name.

A finding never repeats what it found.
"""

import base64
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus

from fixture_guard.finding import Finding
from fixture_guard.layout import Tree

MEND = "revoke the key, then take it out of the file and of the history"


def check_key_shapes(tree: Tree) -> Iterator[Finding]:
    """A text of a known provider's key shape."""
    for path, text in tree_texts(tree):
        for kind, pattern in SHAPES.items():
            for match in pattern.finditer(text):
                if not PLACEHOLDER.search(match[0]):
                    yield Finding(path, line_at(text, match.start()), "SECRET_SHAPE", f"looks like {kind}", MEND)


def check_key_values(tree: Tree) -> Iterator[Finding]:
    """The value of a key variable of this machine's environment, in any of its spellings."""
    wanted = [
        (name, spelling, text)
        for name, value in sorted(tree.surroundings.environment.items())
        if is_key_variable(name, value)
        for spelling, text in spellings(value).items()
    ]
    for path, text in tree_texts(tree) if wanted else ():
        for name, spelling, secret in wanted:
            if (start := text.find(secret)) >= 0:
                what = f"holds the value of ${name} ({spelling})"
                yield Finding(path, line_at(text, start), "SECRET_VALUE", what, MEND)


def check_entropy(tree: Tree) -> Iterator[Finding]:
    """A random-looking value under a key's name (``"token": "..."``, ``api_key = "..."``, ``Authorization: ...``)."""
    for path, text in tree_texts(tree):
        for match in ASSIGNED.finditer(text):
            if len(match[2]) >= 16 and entropy(match[2]) >= 3.3 and not PLACEHOLDER.search(match[2]):
                what = f"a random-looking value of {len(match[2])} characters is assigned to {match[1]}"
                yield Finding(path, line_at(text, match.start(2)), "SECRET_ENTROPY", what, MEND)


def tree_texts(tree: Tree) -> Iterator[tuple[str, str]]:
    """Return every file as text: bytes that are not UTF-8 read as Latin-1, so that an ASCII key in them still shows."""
    for path, data in tree.files.items():
        try:
            yield path, data.decode()
        except UnicodeDecodeError:
            yield path, data.decode("latin-1")


def line_at(text: str, offset: int) -> int:
    """Return the line (from 1) of an offset."""
    return text.count("\n", 0, offset) + 1


def is_key_variable(name: str, value: str) -> bool:
    """Whether a variable holds a secret: by its name, and by a value long and varied enough to mean something alone."""
    return bool(KEY_NAME.search(name)) and len(value) >= 8 and len(set(value)) >= 5 and not PLACEHOLDER.search(value)


def spellings(value: str) -> Mapping[str, str]:
    """Return the texts under which ``value`` could stand in a file, each once, by the name of the spelling."""
    raw = value.encode()
    found = {
        "raw": value,
        "JSON-escaped": json.dumps(value)[1:-1],
        "JSON-escaped twice": json.dumps(json.dumps(value)[1:-1])[1:-1],
        "URL-encoded": quote(value, safe=""),
        "form-encoded": quote_plus(value),
    }
    for shift in range(3):
        found[f"base64 at {shift}"] = base64_inside(raw, shift)
        found[f"URL-safe base64 at {shift}"] = base64_inside(raw, shift).translate(URL_SAFE)
    unique = dict(zip(reversed(found.values()), reversed(found), strict=True))
    return {name: text for text, name in reversed(unique.items())}


def base64_inside(raw: bytes, shift: int) -> str:
    """Return the part of base64 text that only ``raw`` decides when ``shift`` bytes (mod 3) stand before it.

    ``Basic`` credentials encode ``user:key``: the key's own base64 is not in there, this is.
    """
    encoded = base64.b64encode(bytes(shift) + raw).decode()
    end = (shift + len(raw)) * 8 // 6
    return encoded[-(-shift * 8 // 6) : end]


def entropy(text: str) -> float:
    """Return the Shannon entropy in bits per character."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


URL_SAFE = str.maketrans("+/", "-_")
KEY_NAME = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|CREDENTIALS?|PAT)(?:_|$)", re.IGNORECASE
)
PLACEHOLDER = re.compile(
    r"\{\{|\$\{|<[a-z -]+>|dummy|example|fake|placeholder|redacted|xxxx|\*\*\*\*|\.\.\.", re.IGNORECASE
)

ASSIGNED = re.compile(
    r"""(?ix) \b ( [\w-]{0,30}? (?: api[_-]?key | secret | password | passwd | access[_-]?token | auth[_-]?token
        | refresh[_-]?token | session[_-]?token | private[_-]?key | authorization | \btoken ) )
        \\{0,3} ["']? \s* [:=] \s* \\{0,3} ["']? (?: (?:bearer|basic) \s+ )? ( [A-Za-z0-9+/=_.~-]{16,512} ) """
)

SHAPES = {
    "an Anthropic key": re.compile(r"\bsk-ant-[\w-]{20,}"),
    "an OpenRouter key": re.compile(r"\bsk-or-v1-[0-9a-f]{32,}"),
    "an OpenAI key": re.compile(r"\bsk-(?:proj-|svcacct-|admin-)[\w-]{20,}|\bsk-[A-Za-z0-9]{32,}\b"),
    "a Google API key": re.compile(r"\bAIza[\w-]{35}\b"),
    "a Google OAuth token": re.compile(r"\bya29\.[\w-]{20,}"),
    "an xAI key": re.compile(r"\bxai-[A-Za-z0-9]{40,}"),
    "a Groq key": re.compile(r"\bgsk_[A-Za-z0-9]{40,}"),
    "a Hugging Face token": re.compile(r"\bhf_[A-Za-z0-9]{30,}"),
    "a Perplexity key": re.compile(r"\bpplx-[A-Za-z0-9]{40,}"),
    "an AWS access key id": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a GitHub token": re.compile(r"\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_\w{50,}"),
    "a GitLab token": re.compile(r"\bglpat-[\w-]{20,}"),
    "a Slack token": re.compile(r"\bxox[abeprs]-[A-Za-z0-9-]{10,}"),
    "an npm token": re.compile(r"\bnpm_[A-Za-z0-9]{36}\b"),
    "a package index token": re.compile(r"\bpypi-[\w-]{50,}"),
    "a Stripe key": re.compile(r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{20,}"),
    "a JSON Web Token": re.compile(r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    "a private key": re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----"),
    "credentials in a URL": re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@\"'\\{}<>]{1,64}:[^\s/:@\"'\\{}<>]{6,}@[\w.-]+"),
}
