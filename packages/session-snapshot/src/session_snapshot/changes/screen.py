"""How a difference is drawn in a terminal: both sides beside one another, the words that differ marked."""

import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from re import compile as pattern
from typing import Any

from msgspec import UNSET
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from session_snapshot.changes.drift import Change
from session_snapshot.changes.review import Item
from session_snapshot.hunks import Hunk, Texts
from session_snapshot.rows import Row, table

GOLDEN, NOW = "golden", "now"
OLD, NEW, FAINT, STRONG = "bold red", "bold green", "dim", "bold"
KIND_STYLES = {
    "clock": "cyan", "identity": "cyan", "order": "blue", "additive": "green", "wording": "yellow", "semantic": "red",
}  # fmt: skip

NARROW = 76
"""Columns below which both sides stand below one another."""
AROUND = 3
"""How many rows before and after a difference are shown."""
LONG = 24
"""Lines of a value that are shown before somebody asks for all of it."""
CONTEXT = 60
"""Characters around what differs that are shown of a long text."""
MOST_WORDS = 4000

WORD = pattern(r"\w+|\s+|[^\w\s]")


def heading(item: Item, number: int, total: int, also: Sequence[str]) -> Text:
    """Which difference this is; ``also``: the other scenarios that have it."""
    change = item.change
    text = Text(f"\n[{number}/{total}] ", STRONG)
    text.append(f"{item.id}  ", STRONG)
    text.append(change.kind, f"bold {KIND_STYLES[change.kind]}")
    text.append(f"  {change.file}:{change.line}\n")
    text.append(visible(change.phrase))
    if also:
        text.append(f"\nthe same in {', '.join(also)}", FAINT)
    if not item.acceptable:
        text.append("\nthese are the model's own words: only a recording changes them", FAINT)
    return text


def difference(change: Change, width: int, whole: bool = False) -> RenderableType:
    """Both sides of a difference; a long value is cut, unless ``whole``."""
    hunk = change.hunk
    if hunk.how == "moved":
        return sides(*marked(hunk, whole), width, f"{GOLDEN}, line {hunk.old_line}", f"{NOW}, line {hunk.new_line}")
    return sides(*marked(hunk, whole), width)


def sides(old: Text, new: Text, width: int, left: str = GOLDEN, right: str = NOW) -> RenderableType:
    """Two texts beside one another, wrapped; below one another where there is no room."""
    if width < NARROW:
        return Group(Text(f"{left}:", FAINT), indented(old), Text(f"{right}:", FAINT), indented(new))
    drawn = Table(box=box.SQUARE, expand=True, width=width, header_style=FAINT, border_style=FAINT)
    for name in (left, right):
        drawn.add_column(name, ratio=1, overflow="fold")
    drawn.add_row(old, new)
    return drawn


def indented(text: Text) -> Text:
    """A text two columns to the right."""
    return Text("\n").join([Text("  ") + line for line in text.split("\n", allow_blank=True)])


# ── both values, what differs marked ────────────────────────────────────────────────────────────────────────────────


def marked(hunk: Hunk, whole: bool) -> tuple[Text, Text]:
    """Both values as text."""
    if hunk.expected is UNSET or hunk.actual is UNSET:
        nothing = Text("(nothing)", FAINT)
        old = nothing if hunk.expected is UNSET else cut(Text(shown(hunk.expected), OLD), whole)
        new = nothing if hunk.actual is UNSET else cut(Text(shown(hunk.actual), NEW), whole)
        return old, new
    old, new = marked_words(shown(hunk.expected), shown(hunk.actual), whole)
    return cut(old, whole), cut(new, whole)


def shown(value: Any) -> str:
    """A value as people read it: a text as it is, anything else as indented JSON."""
    if isinstance(value, str):
        return visible(value) or '""'
    return visible(json.dumps(value, ensure_ascii=False, indent=2))


def visible(text: str) -> str:
    """A text that does nothing to a terminal: what is no letter, sign or blank is written out."""
    return "".join(letter if is_plain(letter) else f"\\u{ord(letter):04x}" for letter in text)


def is_plain(letter: str) -> bool:
    """Whether a character shows as itself."""
    return letter == "\n" or (letter.isascii() and letter.isprintable()) or unicodedata.category(letter)[0] not in "CZ"


def marked_words(old: str, new: str, whole: bool) -> tuple[Text, Text]:
    """Two texts, the words that only one has marked; ``whole``: with all they share."""
    left, right = Text(), Text()
    for same, a, b in pieces(WORD.findall(old), WORD.findall(new)):
        if same:
            shared = a if whole else shortened(a, first=not left, last=len(left) + len(a) >= len(old))
            left.append(shared)
            right.append(shared)
        else:
            left.append(a, OLD)
            right.append(b, NEW)
    return left, right


def pieces(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[bool, str, str]]:
    """Runs of words that both texts share, and what each has in between."""
    if len(old) + len(new) > MOST_WORDS:
        yield from ends(old, new)
        return
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        yield tag == "equal", "".join(old[a:b]), "".join(new[c:d])


def ends(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[bool, str, str]]:
    """The same of long texts, in which only both ends are told apart from the middle."""
    front = shared(old, new)
    back = shared(old[front:][::-1], new[front:][::-1])
    yield True, "".join(old[:front]), "".join(new[:front])
    yield False, "".join(old[front : len(old) - back]), "".join(new[front : len(new) - back])
    yield True, "".join(old[len(old) - back :]), "".join(new[len(new) - back :])


def shared(one: Iterable[str], other: Iterable[str]) -> int:
    """How many words two lists begin with alike."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def shortened(text: str, first: bool, last: bool) -> str:
    """A run that both texts share, without its middle where it is long."""
    front, back = 0 if first else CONTEXT, 0 if last else CONTEXT
    if len(text) <= front + back + CONTEXT:
        return text
    return f"{text[:front]} … {text[len(text) - back :] if back else ''}"


def cut(text: Text, whole: bool) -> Text:
    """The first lines of a text."""
    lines = text.split("\n", allow_blank=True)
    if whole or len(lines) <= LONG:
        return text
    return Text("\n").join([*lines[:LONG], Text(f"… {len(lines) - LONG} more lines (f shows them)", FAINT)])


# ── the rows around ─────────────────────────────────────────────────────────────────────────────────────────────────


def frames(change: Change, texts: Texts, width: int) -> RenderableType:
    """The rows around a difference in both files, those that differ in full; then the difference in full."""
    hunk = change.hunk
    left, right = places(texts, hunk)
    room = width - 8 if width < NARROW else width // 2 - 10
    columns = (rows_around(texts.old, left, OLD, room), rows_around(texts.new, right, NEW, room))
    around = sides(*columns, width, f"{GOLDEN}: {change.file}", f"{NOW}: {change.file}")
    return Group(around, difference(change, width, True))


def places(texts: Texts, hunk: Hunk) -> tuple[int, int]:
    """Where a difference stands in both files, from 0; where its row is missing, the place it would have."""
    pairs = [pair for pair in texts.pairs if None not in pair]
    old, new = hunk.old_line - 1, hunk.new_line - 1
    if old < 0:
        old = max((i + 1 for i, j in pairs if i is not None and j is not None and j < new), default=0)
    if new < 0:
        new = max((j + 1 for i, j in pairs if i is not None and j is not None and i < old), default=0)
    return old, new


def rows_around(rows: Sequence[Row], place: int, style: str, room: int) -> Text:
    """Some rows, a line of at most so many characters each but for the one at ``place``."""
    text = Text()
    for at in range(max(place - AROUND, 0), min(place + AROUND + 1, len(rows))):
        value = rows[at].text if rows[at].value is UNSET else rows[at].value
        told = shown(value) if at == place else one_line(rows[at], room)
        text.append(f"{at + 1:>4}  ", FAINT)
        text.append(f"{told}\n", style if at == place else "")
    text.rstrip()
    return text if rows else Text("(no rows)", FAINT)


def one_line(row: Row, room: int) -> str:
    """A row on one line: what it is, and the beginning of what it holds."""
    value = table(row.value)
    inside = table(value.get("params")).get("update") or value.get("params") or value.get("data") or value.get("result")
    told = f"{row.name}  {visible(json.dumps(inside, ensure_ascii=False)) if inside else visible(row.text.strip())}"
    return told if len(told) <= room else f"{told[: room - 1]}…"
