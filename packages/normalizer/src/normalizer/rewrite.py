"""Rewriting values: rules find spans, tokens are numbered as they are written, from left to right and top to bottom."""

from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from normalizer.blocks import Address, blocks, model_paths
from normalizer.context import Document, Field, Kind
from normalizer.jsontext import Part, escape_text, parse_container, parts
from normalizer.lines import Json
from normalizer.rules import RULES, Lens, text_claims
from normalizer.spans import Claims, Span, masked, recut, written
from normalizer.tokens import LITERAL, Token, has_token, marks, strip_numbers
from normalizer.walk import Path, under


class Change(Struct, frozen=True):
    """One rewrite, for ``explain``: where (the value's index in its document, the leaf's path), by which rule, what."""

    document: str
    row: int
    path: Path
    rule: str
    before: str
    after: str


Trace = Callable[[Change], None]


class Manner(Struct, frozen=True, kw_only=True):
    """How to write: ``stored`` text holds tokens already; without ``numbered`` a token is its kind alone."""

    stored: bool = False
    numbered: bool = True
    issued: frozenset[str] = frozenset()
    """Tool call ids the recorded model gave out: its own words keep them, since replay says them again."""
    trace: Trace | None = None


class Rewriter:
    """Rewrites the values of one document."""

    def __init__(self, lens: Lens, document: Document, manner: Manner) -> None:
        self._lens, self._document, self._manner = lens, document, manner
        self._row = 0
        self._model: tuple[Path, ...] = ()
        self._blocks = {address: block for block in blocks(document) for address in block}
        self._pieces: dict[Address, str] = {}
        self._names: dict[str, list[Span]] = {}

    def values(self) -> list[Json]:
        """The document's values, rewritten."""
        return [self._top(row, value) for row, value in enumerate(self._document.values)]

    def pieces(self, texts: list[str]) -> list[str]:
        """One block's text, rewritten as a whole and cut at the old places."""
        return self._recut(texts, Field("".join(texts), (), None, self._document.kind))

    def _top(self, row: int, value: Json) -> Json:
        self._row = row
        self._model = model_paths(value) if self._document.kind == "session" else ()
        return self._value(value, (), None)

    def _value(self, value: Json, path: Path, parent: Json) -> Json:
        if isinstance(value, dict):
            return self._object(value, path)
        if isinstance(value, list):
            return [self._value(child, (*path, at), value) for at, child in enumerate(value)]
        if value is None or isinstance(value, bool):
            return value
        return self._leaf(Field(value, path, parent, self._document.kind, under(path, self._model)))

    def _object(self, value: dict[str, Json], path: Path) -> Json:
        out: dict[str, Json] = {}
        for name, child in value.items():
            new = self._name(name, Field(name, (*path, name), value, self._document.kind))
            out[name if new in out else new] = self._value(child, (*path, name), value)
        return out

    def _leaf(self, field: Field) -> Json:
        if not isinstance(field.value, str):
            found = self._whole(field)
            return field.value if found is None else self._write(found, field, str(field.value))
        block = self._blocks.get((self._row, field.path))
        if block is None:
            return self._text(field)
        if (self._row, field.path) not in self._pieces:
            texts = [_at(self._document.values[row], path) for row, path in block]
            new = self._recut(texts, replace(field, value="".join(texts)))
            self._pieces |= dict(zip(block, new, strict=True))
        return self._pieces[(self._row, field.path)]

    def _name(self, name: str, field: Field) -> str:
        if name not in self._names:
            self._names[name] = self._claimed(name, field)
        return self._written(field, self._names[name])

    def _text(self, field: Field) -> str:
        return self._written(field, self._spans(field.value, field))

    def _written(self, field: Field, spans: list[Span]) -> str:
        text: str = field.value
        return recut([text], spans, self._renderer(text, field, spans))[0] if spans else text

    def _recut(self, texts: list[str], field: Field) -> list[str]:
        spans = self._spans(field.value, field)
        return recut(texts, spans, self._renderer(field.value, field, spans))

    def _renderer(self, text: str, field: Field, spans: list[Span]) -> Callable[[Token], str]:
        if self._manner.trace:
            for span in spans:
                self._write(span, field, text[span.start : span.end])
        return self._render

    def _write(self, span: Span, field: Field, before: str) -> str:
        after = written(span, self._render)
        if self._manner.trace and before != after:
            self._manner.trace(Change(self._document.name, self._row, field.path, span.rule, before, after))
        return after

    def _render(self, token: Token) -> str:
        if token.value is None or not self._manner.numbered:
            return token.text()
        return token.text(self._lens.ledger.number(token))

    def _spans(self, text: str, field: Field) -> list[Span]:
        whole = self._whole(field)
        if whole:
            return [replace(whole, end=len(text))]
        root = parse_container(text)
        if root is None:
            return self._claimed(text, field)
        return [span for part in parts(text, root) for span in self._inside(part, field)]

    def _inside(self, part: Part, field: Field) -> Iterator[Span]:
        """The spans of a leaf of JSON text, in the places and the escapes of that text."""
        inner = Field(part.value, field.path + part.path, part.parent, field.document, field.model)
        if isinstance(part.value, str):
            for span in self._claimed(part.value, inner) if part.name else self._spans(part.value, inner):
                yield replace(
                    span,
                    start=part.offsets[span.start],
                    end=part.offsets[span.end],
                    before=escape_text(span.before),
                    after=escape_text(span.after),
                )
        elif part.value is not None and not isinstance(part.value, bool):
            whole = self._whole(inner)
            if whole:
                yield replace(whole, start=part.start, end=part.end, before='"', after='"')

    def _whole(self, field: Field) -> Span | None:
        """The token that a field rule puts in place of the whole leaf; it spans nothing yet."""
        if isinstance(field.value, str) and self._manner.stored and has_token(field.value):
            return None
        for rule in RULES:
            token = rule.field(field, self._lens) if rule.field and (rule.expands or not field.model) else None
            if token and not self._kept(token, field):
                return Span(0, 0, token, rule=rule.name)
        return None

    def _claimed(self, text: str, field: Field) -> list[Span]:
        claims = Claims()
        if self._manner.stored and LITERAL in text:
            claims.add(self._stored(text), "stored")
        while True:
            # Again, with a word in each claimed place: what stands beside a token is judged alike live and stored.
            found = len(claims.spans())
            self._claim(claims, masked(text, claims.spans()), field)
            if len(claims.spans()) == found:
                return claims.spans()

    def _claim(self, claims: Claims, text: str, field: Field) -> None:
        for rule, spans in text_claims(text, self._lens):
            if (rule.expands or not field.model) and not (self._manner.stored and rule.name == "literal"):
                claims.add((span for span in spans if not (span.token and self._kept(span.token, field))), rule.name)

    def _stored(self, text: str) -> Iterator[Span]:
        for mark in marks(text):
            old = text[mark.start : mark.end]
            yield Span(mark.start, mark.end, before=old if self._manner.numbered else strip_numbers(old))

    def _kept(self, token: Token, field: Field) -> bool:
        return field.model and token.value in self._manner.issued


def issued_ids(document: Document) -> Iterator[str]:
    """The tool call ids in the chunks of a session log."""
    if document.kind == "session":
        for value in document.values:
            for prefix in model_paths(value):
                yield from _ids(_at(value, prefix))


def rewriter(lens: Lens, name: str, kind: Kind, value: Json, manner: Manner) -> Rewriter:
    """A rewriter of a single value."""
    return Rewriter(lens, Document(name, kind, [value]), manner)


def _ids(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("id"), str):
            yield value["id"]
        for child in value.values():
            yield from _ids(child)
    elif isinstance(value, list):
        for child in value:
            yield from _ids(child)


def _at(value: Json, path: Path) -> Json:
    for key in path:
        value = value[key]
    return value
