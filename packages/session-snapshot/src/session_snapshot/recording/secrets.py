"""Where a key shows in a text, in any of the forms it may take on its way, whole or in part; and the text without it.

What counts as showing:

* The key, raw, JSON-escaped (nested, too), URL- or form-encoded, in hex, in base64 at any offset, in UTF-16.
* A part of it: any RUN consecutive characters in one of these forms. What every key of a provider begins with
  (``sk-proj-``, ``sk-ant-api03-``) is public and counts for nothing, nor does a run of few different characters.
* The key as providers mask it: its beginning, dots or asterisks, its end (``sk-proj-ab***wxyz``), or asterisks and its
  end (``****wxyz``), or its beginning, some characters past the public ones, and dots or asterisks.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import quote, quote_plus

from msgspec import Struct

Span = tuple[int, int]
"""Where a match begins, and where it ends, in bytes."""

BLANK = "[the key]"
"""What stands in the place of a key in whatever is printed or kept of a recording that failed."""

RUN = 12
"""So many consecutive characters of a key are taken for no coincidence: of letters and digits, one in 10^21."""

VARIED = 6
"""Fewer different characters than that are a ruler, a row of zeros, but no part of a key."""

RUN_OF_BASE64 = 14
"""What is left of RUN bytes in base64, wherever they begin: the characters that a neighbour has a part in are not."""

MASKABLE = 16
"""A key of fewer characters is not looked for in masked form: too little of it is left."""

NESTED = 3
"""How often JSON text within JSON text is looked through."""

URL_SAFE = bytes.maketrans(b"+/", b"-_")
PUBLIC = re.compile(r"(?:[a-z]{1,8}\d{0,2}[-_]){1,4}|AIza")
"""What the keys of a provider have in common."""

MASK = re.compile(rb"\*{2,}|\.{3,}|[xX]{4,}|(?:\xe2\x80\xa6)+|(?:\xe2\x80\xa2){2,}|(?:\\u2026)+|(?:\\u2022){2,}")
"""Asterisks, dots, crosses, ellipses, bullets."""


class Form(Struct, frozen=True):
    """A key in one of its forms; ``least`` characters of it in a row give it away."""

    text: bytes
    least: int


def find_key(content: str | bytes, key: str) -> bool:
    """Whether ``content`` holds ``key``, in any form, whole or in part."""
    return bool(key) and any(True for _ in spans(octets(content), key))


def lines_with(content: str | bytes, key: str) -> list[int]:
    """The numbers (from 1) of the lines in which the key begins to show."""
    data = octets(content)
    return [data.count(b"\n", 0, first) + 1 for first, _ in merged(spans(data, key))] if key else []


def blanked(text: str, key: str) -> str:
    """The text with BLANK in the place of the key; withheld whole where that would not do."""
    if not key:
        return text
    data, told, end = octets(text), b"", 0
    for first, last in merged(spans(data, key)):
        told, end = told + data[end:first] + BLANK.encode(), last
    left = (told + data[end:]).decode("utf-8", "replace")
    return left if not find_key(left, key) else "(withheld: the key shows in it)"


def octets(content: str | bytes) -> bytes:
    """The bytes of a content."""
    return content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content


# ── where it shows ──────────────────────────────────────────────────────────────────────────────────────────────────


def spans(data: bytes, key: str) -> Iterator[Span]:
    """Where the key shows, in no order, and with overlaps."""
    for form in forms(key):
        yield from runs(data, form)
    if len(key) >= MASKABLE:
        yield from masked(data, key)


def merged(found: Iterable[Span]) -> list[Span]:
    """Spans in order, with those that touch each other made one."""
    whole: list[Span] = []
    for first, last in sorted(found):
        if whole and first <= whole[-1][1]:
            whole[-1] = (whole[-1][0], max(last, whole[-1][1]))
        else:
            whole.append((first, last))
    return whole


def runs(data: bytes, form: Form) -> Iterator[Span]:
    """Where all of a form stands, or ``form.least`` consecutive characters of it and more.

    A run of that length holds one of the form's blocks of half the length, which are what is searched for.
    """
    yield from ((at, at + len(form.text)) for at in found(data, form.text, len(form.text)))
    half = form.least // 2
    for start in range(0, len(form.text) - half + 1, half):
        block = form.text[start : start + half]
        if len(set(block)) == 1:
            continue  # a ruler: it would be found at every place of another
        for at in found(data, block, 1):
            first, last = grown(data, at, form.text, start, half)
            if last - first >= form.least and len(set(data[first:last])) >= VARIED:
                yield first, last


def masked(data: bytes, key: str) -> Iterator[Span]:
    """Where the key stands as a provider masks it: what stands before and behind the mask tells."""
    raw, past = key.encode("utf-8", "surrogatepass"), max(len(public_part(key)) + 4, 6)
    alone = len(set(raw[-4:])) >= 3
    for match in MASK.finditer(data):
        first, last = match.span()
        head = max((size for size in range(3, len(raw) // 2) if data.endswith(raw[:size], 0, first)), default=0)
        tail = max((size for size in range(4, len(raw) // 2) if data.startswith(raw[-size:], last)), default=0)
        stars = match[0].startswith(b"****")
        if (head and tail) or head >= past or (tail and stars and alone):
            yield first - head, last + tail


def found(data: bytes, text: bytes, step: int) -> Iterator[int]:
    """Where a text stands; the next one is looked for ``step`` bytes on."""
    at = data.find(text)
    while at >= 0:
        yield at
        at = data.find(text, at + step)


def grown(data: bytes, at: int, form: bytes, start: int, size: int) -> Span:
    """How far the data at ``at`` and the form at ``start``, which agree for ``size`` characters, agree around them."""
    first, last = at, at + size
    while first > 0 and start > 0 and data[first - 1] == form[start - 1]:
        first, start, size = first - 1, start - 1, size + 1
    while last < len(data) and start + size < len(form) and data[last] == form[start + size]:
        last, size = last + 1, size + 1
    return first, last


# ── its forms ───────────────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=8)
def forms(key: str) -> tuple[Form, ...]:
    """The byte strings that give a key away, or the private part of one."""
    private = key[len(public_part(key)) :]
    raw = private.encode("utf-8", "surrogatepass")
    whole = {Form(text, len(text)) for text in plain(key)}  # so that its beginning goes, too
    wide = [raw.hex().encode(), raw.hex().upper().encode(), private.encode("utf-16-le", "surrogatepass")]
    packed = [encoded(raw, shift).encode() for shift in range(3)]
    unpacked = {Form(text, least_of(text, private)) for text in (*plain(private), *wide)}
    urls = [text.translate(URL_SAFE) for text in packed]
    return (*whole | unpacked, *{Form(text, least_of(text, private, RUN_OF_BASE64)) for text in (*packed, *urls)})


def plain(text: str) -> set[bytes]:
    """A text as texts hold it, character by character."""
    quoted = {quote(text, safe=""), quote_plus(text)}
    told = {*escaped(text, True), *escaped(text, False), *quoted, *map(lowered, quoted)}
    return {form.encode("utf-8", "surrogatepass") for form in told}


def public_part(key: str) -> str:
    """What a key begins with as all of its provider do, where enough is left behind it."""
    match = PUBLIC.match(key)
    return match[0] if match and len(key) - match.end() >= RUN else ""


def least_of(form: bytes, private: str, run: int = 0) -> int:
    """How much of a form gives it away: all of it, where the key is short; else what RUN characters of the key make."""
    return len(form) if len(private) < RUN else min(run or RUN * len(form) // len(private), len(form))


def escaped(key: str, ascii_only: bool) -> list[str]:
    """The key as JSON text holds it, and as JSON text holds that where it is itself a string (a tool's arguments).

    Some writers escape the slash as well, so that what they write may stand in a page.
    """
    texts = [key]
    for _ in range(NESTED):
        texts.append(json.dumps(texts[-1], ensure_ascii=ascii_only)[1:-1])
    return [*texts, *(text.replace("/", "\\/") for text in texts[1:])]


def lowered(text: str) -> str:
    """URL-encoded text with the digits of its escapes in lower case."""
    return re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), text)


def encoded(raw: bytes, shift: int) -> str:
    """The part of a base64 text that is the same whatever stands before (``shift`` bytes into a group) and after."""
    text = base64.b64encode(b"\0" * shift + raw).decode()
    start = (0, 2, 3)[shift]
    end = (len(raw) + shift) * 8 // 6
    return text[start:end]
