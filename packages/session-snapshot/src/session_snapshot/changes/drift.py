"""What kind of change a difference is, and which scenarios share it: read before any single diff; pure.

The kind is decided by what a field means, never by how much of it changed: a tool's argument is no wording.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from msgspec import UNSET, Struct
from normalizer import leaves, strip_numbers

from session_snapshot.compare import keyed_like
from session_snapshot.hunks import PACE, Hunk, Texts, hunks_of, texts_of
from session_snapshot.report import Surface
from session_snapshot.rows import INDEX, WORDS, shared_words

Kind = Literal["clock", "identity", "order", "additive", "wording", "semantic"]
KINDS: tuple[Kind, ...] = get_args(Kind)

CLOCK = re.compile(r"/(time|createdAt|updatedAt|startedAt|endedAt|timestamp|dt|duration\w*|\w*Ms|\w*_ms)(/|$)")
ARGUMENTS = re.compile(r"/(arguments|argumentsDelta|args|rawInput|input|rawOutput|structuredContent)(/|$)")
"""What goes into a tool and what comes out of it: there every word counts."""
PROSE = re.compile(
    r"/(text|texts|title|description|message|content|summary|reasoning|explanation|detail|label|instructions)"
    r"(/\d+)*$"
)
"""Fields that people (or the model) read, where another word may say the same."""

TOKEN = re.compile(r"(?<!\{)\{\{[A-Za-z]\w*(:[^{}]*)?\}\}")
NUMBERS = re.compile(r"[-+]?\d[\d.,:]*")
WORDING_SHARE = 0.5
"""Two texts that share at least this much of their words are one text, reworded."""
WEIGHTY = frozenset({"true", "false", "yes", "no", "null", "none"})
"""Words that are values: where one comes or goes, more than the wording changed. So it is with numbers."""
NEGATIONS = frozenset(
    {"not", "never", "without", "cannot", "nothing", "nobody", "neither", "nor", "t", "dont", "unless"}
)
"""Words that turn a sentence round (``t`` is the end of ``don't``): said of a wording, so that it is read."""


class Change(Struct, frozen=True):
    """One difference: in which surface, of which kind, and what it is in a phrase that is equal across scenarios.

    ``file`` and ``number`` say which of the file's hunks it is.
    """

    surface: Surface
    kind: Kind
    phrase: str
    file: str
    number: int
    hunk: Hunk

    @property
    def heading(self) -> tuple[str, str, str]:
        """What changes that are listed as one have in common."""
        return self.kind, self.surface, self.phrase

    @property
    def twin(self) -> tuple[Any, ...]:
        """What changes that are one and the same have in common: heading and values, but for tokens' numbers."""
        values = () if self.kind == "identity" else (bare(self.hunk.expected), bare(self.hunk.actual))
        return (*self.heading, *values)

    @property
    def line(self) -> int:
        """The line in the golden, or where one would come to stand."""
        return self.hunk.old_line or self.hunk.new_line


def bare(value: Any) -> str:
    """A value as text, without the numbers of tokens."""
    return strip_numbers(repr(value))


def compared(surface: Surface, name: str, expected: str | None, actual: str | None) -> Texts:
    """Both texts of a surface's file. The order of members is no content of a request: it stays as it was."""
    if surface == "requests" and expected is not None and actual is not None and name.endswith(".jsonl"):
        actual = keyed_like(expected, actual)
    return texts_of(name, expected, actual)


def changes_of(surface: Surface, texts: Texts) -> list[Change]:
    """Every difference between two texts, classified: rows that moved, then in the order of the file."""
    return [
        Change(surface, kind_of(hunk), phrase_of(hunk), texts.name, number, hunk)
        for number, hunk in enumerate(hunks_of(texts))
    ]


# ── kinds ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def kind_of(hunk: Hunk) -> Kind:
    """The kind of one difference. The pace says which frames came in which step."""
    if hunk.row == PACE:
        return "order"
    match hunk.how:
        case "moved" | "bytes":
            return "order"
        case "added":
            means = hunk.path or is_request(hunk.actual) or tells_of_failure(hunk.actual)
            return "semantic" if means else "additive"
        case "removed":
            return "semantic"
        case "changed":
            return kind_of_field(hunk)


def is_request(row: Any) -> bool:
    """Whether a row asks or answers, so that somebody else is part of it: it is more than an event."""
    return isinstance(row, dict) and "id" in row and "type" not in row


def tells_of_failure(row: Any) -> bool:
    """Whether an event says that something failed."""
    if not isinstance(row, dict):
        return False
    update = (row.get("params") or {}).get("update") or {}
    data = row.get("data") or {}
    return update.get("status") == "failed" or bool(data.get("isError")) or "error" in data


def kind_of_field(hunk: Hunk) -> Kind:
    """The kind of a field that changed."""
    expected, actual = hunk.expected, hunk.actual
    in_arguments = ARGUMENTS.search(hunk.path) is not None
    if isinstance(expected, str) and isinstance(actual, str):
        if strip_numbers(expected) == strip_numbers(actual):
            return "identity"
        if in_arguments:
            return "semantic"
        if TOKEN.sub("", expected) == TOKEN.sub("", actual):
            return "clock" if CLOCK.search(hunk.path) else "identity"
        if is_prose(hunk) and is_reworded(expected, actual):
            return "wording"
    return "clock" if CLOCK.search(hunk.path) and not in_arguments and is_time(expected, actual) else "semantic"


def is_prose(hunk: Hunk) -> bool:
    """Whether a field holds words for people or the model; a whole row that is a text is one."""
    return not hunk.path or PROSE.search(hunk.path) is not None


def is_reworded(expected: str, actual: str) -> bool:
    """Whether a text says it in other words: most are the same, and none that is a value came or went."""
    old, new = without_tokens(expected), without_tokens(actual)
    if changed_words(expected, actual) & WEIGHTY or NUMBERS.findall(old) != NUMBERS.findall(new):
        return False
    return shared_words(old.lower(), new.lower()) >= WORDING_SHARE


def without_tokens(text: str) -> str:
    """A text without its tokens, whose numbers are no numbers in it."""
    return TOKEN.sub(" ", text)


def changed_words(expected: str, actual: str) -> set[str]:
    """The words that only one of two texts has, in lower case."""
    old, new = (set(WORDS.findall(without_tokens(text).lower())) for text in (expected, actual))
    return old ^ new


def is_time(*values: Any) -> bool:
    """Whether all values may be points in time or durations; a switch is neither."""
    return all(isinstance(value, (int, float, str)) and not isinstance(value, bool) for value in values)


# ── phrases ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def phrase_of(hunk: Hunk) -> str:
    """A difference without its place: ``event 'plan' added``, ``event 'plan': /params/update/title changed``."""
    row = "request" if hunk.row.startswith("call ") else hunk.row
    if hunk.how == "bytes":
        return f"{row}: the same in other bytes"
    kind = kind_of(hunk)
    if kind == "identity":
        return f"{row}: {tokens_in_words(hunk)}"
    what = f"{row}: {INDEX.sub('/*', hunk.path)} {hunk.how}" if hunk.path else f"{row} {hunk.how}"
    return what + said_of_wording(hunk) if kind == "wording" else what


def tokens_in_words(hunk: Hunk) -> str:
    """Which tokens changed: ``{{sessionId}} renumbered``, ``{{cwd}} became {{home}}``."""
    old, new = ([match.group() for match in TOKEN.finditer(text)] for text in (hunk.expected, hunk.actual))
    kinds_old, kinds_new = list(map(strip_numbers, old)), list(map(strip_numbers, new))
    if kinds_old == kinds_new:
        pairs = zip(old, new, kinds_old, strict=True)
        return f"{', '.join(dict.fromkeys(kind for a, b, kind in pairs if a != b))} renumbered"
    return f"{' '.join(kinds_old) or 'nothing'} became {' '.join(kinds_new) or 'nothing'}"


def said_of_wording(hunk: Hunk) -> str:
    """A warning where the changed words may turn a sentence round."""
    negated = changed_words(hunk.expected, hunk.actual) & NEGATIONS
    return f" (a negation came or went: {', '.join(sorted(negated))})" if negated else ""


# ── tokens that follow from one another ─────────────────────────────────────────────────────────────────────────────


def tokens_in(value: Any) -> Iterator[str]:
    """Every numbered token in a value."""
    if value is not UNSET:
        for path, leaf in leaves(value):
            for text in (leaf, *path):
                if isinstance(text, str):
                    yield from (match.group() for match in TOKEN.finditer(text) if match.group(1))


def renamed_in(hunk: Hunk) -> list[tuple[str, str]]:
    """The tokens of a field that got another number, with the new one."""
    if not (isinstance(hunk.expected, str) and isinstance(hunk.actual, str)) or hunk.how != "changed":
        return []
    old, new = list(tokens_in(hunk.expected)), list(tokens_in(hunk.actual))
    if list(map(strip_numbers, old)) != list(map(strip_numbers, new)):
        return []
    return [(a, b) for a, b in zip(old, new, strict=True) if a != b]


# ── groups and choices ──────────────────────────────────────────────────────────────────────────────────────────────


def group_lines(changes: Mapping[str, Sequence[Change]]) -> list[str]:
    """One line per change with how many scenarios share it, the most shared first."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for name, found in changes.items():
        for heading in dict.fromkeys(change.heading for change in found):
            groups.setdefault(heading, []).append(name)
    ranked = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return [f"{kind}: {surface}: {phrase}, {in_words(names)}" for (kind, surface, phrase), names in ranked]


def in_words(names: Sequence[str]) -> str:
    """``in 3 scenarios: a, b, c``; ``in a``."""
    return f"in {names[0]}" if len(names) == 1 else f"in {len(names)} scenarios: {', '.join(names)}"


def counted(changes: Iterable[Change]) -> str:
    """How many there are of each kind: ``2 additive, 1 semantic``."""
    kinds = [change.kind for change in changes]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in KINDS if kind in kinds)
