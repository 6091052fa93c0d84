"""Spans: which part of a text is replaced by what. Found on the old text, so that no rule sees another's work."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from normalizer.tokens import Token, has_token


class Span(Struct, frozen=True):
    """``text[start:end]`` becomes ``before`` + token + ``after`` (token may be None); ``rule`` says who wants it."""

    start: int
    end: int
    token: Token | None = None
    before: str = ""
    after: str = ""
    rule: str = ""


Render = Callable[[Token], str]


class Claims:
    """The spans of one text that do not overlap; whoever comes first has the place."""

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self._starts: list[int] = []

    def add(self, spans: Iterable[Span], rule: str) -> None:
        """Claim each span whose place is free, for ``rule``."""
        for span in spans:
            at = bisect_left(self._starts, span.start)
            if span.start < span.end and self._free(at, span):
                self._spans.insert(at, replace(span, rule=span.rule or rule))
                self._starts.insert(at, span.start)

    def spans(self) -> list[Span]:
        """The claimed spans from left to right."""
        return self._spans

    def _free(self, at: int, span: Span) -> bool:
        before, after = self._spans[at - 1 : at] if at else [], self._spans[at : at + 1]
        return all(other.end <= span.start for other in before) and all(span.end <= other.start for other in after)


def masked(text: str, spans: Iterable[Span]) -> str:
    """The text with a word in place of each claimed value, a path in place of a folder; escapes stay braces."""
    parts, done = [], 0
    for span in spans:
        word = _word(span)
        if word:
            parts += [text[done : span.start], word]
            done = span.end
    return "".join(parts) + text[done:] if parts else text


def written(span: Span, render: Render) -> str:
    """What stands in the new text for this span."""
    return span.before + (render(span.token) if span.token else "") + span.after


def recut(pieces: Sequence[str], spans: Sequence[Span], render: Render) -> list[str]:
    """The new text of ``"".join(pieces)``, cut at the old places; a token across a cut stays whole, before it."""
    out, offset, left = [], 0, list(reversed(spans))
    text = "".join(pieces)
    done = 0
    for piece in pieces:
        offset += len(piece)
        parts = []
        while left and left[-1].start < offset:
            span = left.pop()
            parts += [text[done : span.start], written(span, render)]
            done = span.end
        parts.append(text[done:offset])
        done = max(done, offset)
        out.append("".join(parts))
    return out


def _word(span: Span) -> str | None:
    new, size = span.before + (span.token.text() if span.token else "") + span.after, span.end - span.start
    if new == "/":
        return "/" * size
    if not has_token(new):
        return None
    return ("/" if new.startswith(_FOLDERS) else "x") + "x" * (size - 1)


_FOLDERS = ("{{cwd}}", "{{home}}", "{{tmp}}", "{{agent}}")
