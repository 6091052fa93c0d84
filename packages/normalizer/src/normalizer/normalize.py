"""Normalising: learn identities from all documents, rewrite, number last."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from normalizer.context import Context, Document, Kind
from normalizer.ledger import Ledger
from normalizer.lines import Json, canonical_line
from normalizer.rewrite import Manner, Rewriter, Trace, issued_ids, rewriter
from normalizer.rules import lens, taught_kind
from normalizer.tokens import escape, has_token, numbers
from normalizer.walk import fields, leaves


def normalize(
    documents: Sequence[Document],
    context: Context,
    *,
    known: Sequence[tuple[str, str]] = (),
    stored: bool = False,
    trace: Trace | None = None,
) -> list[Document]:
    """Put tokens in place of everything volatile in ``documents``, which come in canonical order.

    The same value gets the same token in all of them. Numbers go by first appearance, in the order of ``documents``
    and of their values; ``known`` ``(kind, value)`` pairs come first. ``stored`` documents hold tokens and escapes
    already: normalising them changes nothing.
    """
    ledger = Ledger()
    for kind, value in known:
        ledger.learn(kind, value)
    for document in documents:
        learn(ledger, document, context, stored=stored)
    for kind, value in known:
        ledger.number(ledger.token(kind, value))
    if stored:
        _reserve(ledger, documents)
    issued = frozenset(value for document in documents for value in issued_ids(document))
    manner = Manner(stored=stored, issued=issued, trace=trace)
    seen = lens(context, ledger)
    return [replace(document, values=Rewriter(seen, _lines(document), manner).values()) for document in documents]


def learn(ledger: Ledger, document: Document, context: Context, *, stored: bool = False) -> None:
    """Teach the ledger every identity that a document's fields hold."""
    for field in fields(document):
        kind = taught_kind(field, context)
        if kind and not (stored and isinstance(field.value, str) and has_token(field.value)):
            ledger.learn(kind, field.value)


def canon_value(
    value: Json, ledger: Ledger, context: Context, *, kind: Kind = "requests", stored: bool = False
) -> Json:
    """One value with unnumbered tokens (``{{sessionId}}``), for comparing while a run is still going on.

    The ledger learns what the value teaches. ``stored`` values lose the numbers of their tokens.
    """
    learn(ledger, Document("", kind, [value]), context, stored=stored)
    return rewriter(lens(context, ledger), "", kind, value, Manner(stored=stored, numbered=False)).values()[0]


def normalize_text(text: str, context: Context, *, ledger: Ledger | None = None, stored: bool = False) -> str:
    """One text, e.g. a file; ``ledger`` holds what is learned already."""
    seen = lens(context, ledger or Ledger())
    document = _lines(Document("", "text", [text]))
    new: str = Rewriter(seen, document, Manner(stored=stored)).values()[0]
    return new


def normalize_pieces(
    texts: Sequence[str], context: Context, *, ledger: Ledger | None = None, stored: bool = False
) -> list[str]:
    """The pieces of one text, normalised as a whole and cut again at the old places; a token is never cut."""
    seen = lens(context, ledger or Ledger())
    return rewriter(seen, "", "text", "", Manner(stored=stored)).pieces(list(texts))


def erased_share(before: Iterable[Json], after: Iterable[Json]) -> float:
    """The share of leaves that normalising changed, 0 to 1; an escape is no change."""
    pairs = [
        (a, b) for x, y in zip(before, after, strict=True) for (_, a), (_, b) in zip(leaves(x), leaves(y), strict=True)
    ]
    changed = sum(b != (escape(a) if isinstance(a, str) else a) for a, b in pairs)
    return changed / len(pairs) if pairs else 0.0


def _lines(document: Document) -> Document:
    """Text has LF line ends on every platform."""
    if document.kind != "text":
        return document
    return replace(document, values=[value.replace("\r\n", "\n") for value in document.values])


def _reserve(ledger: Ledger, documents: Sequence[Document]) -> None:
    for document in documents:
        for value in document.values:
            for kind, number in numbers(canonical_line(value)):
                ledger.reserve(kind, number)
