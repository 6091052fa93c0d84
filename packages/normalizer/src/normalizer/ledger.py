"""The ledger of one run: which values are identities, of what kind, and the number of each."""

import re
from collections import Counter
from collections.abc import Iterator

from normalizer.identity import UUID, looks_random, precedence
from normalizer.spans import Span
from normalizer.tokens import Token


class Ledger:
    """Learned values. Learning is order-free; numbers go by first use, so assign them last."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}
        self._numbers: dict[Token, int] = {}
        self._last: Counter[str] = Counter()
        self._index: _Index | None = None

    def learn(self, kind: str, value: str | int) -> None:
        """This value is an identity of this kind. Under several kinds it takes the first in IDENTITIES."""
        text = canonical(str(value))
        if not is_free(text):
            return
        known = self._kinds.get(text)
        if known is None or precedence(kind) < precedence(known):
            self._kinds[text] = kind
            self._index = None

    def token(self, kind: str, value: str | int) -> Token:
        """The token of a value that stands in a field of this kind."""
        text = canonical(str(value))
        return Token(self._kinds.get(text, kind) if is_free(text) else kind, text)

    def number(self, token: Token) -> int:
        """The number of this token's value: 1 for the first of its kind that was asked for."""
        if token not in self._numbers:
            self._last[token.kind] += 1
            self._numbers[token] = self._last[token.kind]
        return self._numbers[token]

    def reserve(self, kind: str, number: int) -> None:
        """Numbers of this kind up to ``number`` are taken by stored text."""
        self._last[kind] = max(self._last[kind], number)

    def spans(self, text: str) -> Iterator[Span]:
        """Where learned values stand in a text, whole words only; a composite value is its parts."""
        if self._index is None:
            self._index = _index(self._kinds)
        return self._index.spans(text)


def is_free(value: str) -> bool:
    """Whether a value is long and odd enough to be replaced wherever it stands, not in its own field alone."""
    return len(value) >= 6 and not value.isdigit() and any(char.isalnum() for char in value)


def canonical(value: str) -> str:
    """A uuid in lower case, everything else as it is."""
    return value.lower() if UUID.fullmatch(value) else value


class _Index:
    """Spellings by their first word, so that a text costs one look-up per word and not one search per value."""

    def __init__(self) -> None:
        self._by_word: dict[str, list[tuple[int, str, Token]]] = {}

    def add(self, token: Token) -> None:
        for spelling in spellings(token.value or ""):
            word = _WORD.search(spelling)
            if word:
                entry = self._by_word.setdefault(word.group(), [])
                entry.append((word.start(), spelling, token))
                entry.sort(key=lambda row: -len(row[1]))

    def spans(self, text: str) -> Iterator[Span]:
        end = 0
        for word in _WORD.finditer(text):
            span = self._at(text, word) if word.start() >= end else None
            if span:
                end = span.end
                yield span

    def _at(self, text: str, word: re.Match[str]) -> Span | None:
        for before, spelling, token in self._by_word.get(word.group(), ()):
            start = word.start() - before
            end = start + len(spelling)
            if start >= 0 and text.startswith(spelling, start) and not text[end : end + 1].isalnum():
                return Span(start, end, token)
        return None


def _index(kinds: dict[str, str]) -> _Index:
    """Short values first, so that a longer one that holds them is known to be made of parts."""
    index = _Index()
    for value in sorted(kinds, key=lambda value: (len(value), value)):
        parts = [(span.start, span.end) for span in index.spans(value)] + [m.span() for m in UUID.finditer(value)]
        if not parts or (0, len(value)) in parts:
            index.add(Token(kinds[value], value))
        else:
            for segment in _remains(value, parts):
                index.add(Token(kinds[value], segment))
    return index


def _remains(value: str, parts: list[tuple[int, int]]) -> Iterator[str]:
    """The random words of a composite value beside the parts that are known."""
    for word in _WORD.finditer(value):
        outside = all(word.end() <= start or end <= word.start() for start, end in parts)
        if outside and is_free(word.group()) and looks_random(word.group()):
            yield word.group()


def spellings(value: str) -> set[str]:
    """The ways a program writes a value: as it is, as a slug, and a uuid also without dashes and in upper case."""
    found = {value, _NOT_WORD.sub("-", value), _NOT_WORD.sub("_", value)}
    if _HEX32.fullmatch(value):
        found.add("-".join((value[:8], value[8:12], value[12:16], value[16:20], value[20:])))
    if UUID.fullmatch(value):
        found.add(value.replace("-", ""))
    if UUID.fullmatch(value) or _HEX32.fullmatch(value):
        found |= {spelling.upper() for spelling in found}
    return found


_HEX32 = re.compile(r"[0-9a-f]{32}")
_WORD = re.compile(r"[^\W_]+")
_NOT_WORD = re.compile(r"[\W_]")
