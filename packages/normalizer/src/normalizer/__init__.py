"""Volatile values become tokens, equality kept; canonical JSON lines; the canonical order of frames."""

from normalizer.context import Context, Declared, Document, Kind
from normalizer.identity import IDENTITIES, identity_kind, looks_random
from normalizer.ledger import Ledger
from normalizer.lines import Json, LineError, canonical_line, canonical_lines, parse_lines
from normalizer.normalize import canon_value, erased_share, learn, normalize, normalize_pieces, normalize_text
from normalizer.order import ORDERINGS, Ordered, Ordering, OrderRule, canonical_order, frame_kind, traced_order
from normalizer.paths import slug
from normalizer.rewrite import Change
from normalizer.rules import RULES, Rule
from normalizer.table import identities_table, rules_table
from normalizer.times import render_date
from normalizer.tokens import escape, has_token, strip_numbers, unescape
from normalizer.walk import leaves

__all__ = [
    "IDENTITIES", "ORDERINGS", "RULES", "Change", "Context", "Declared", "Document", "Json", "Kind", "Ledger",
    "LineError", "OrderRule", "Ordered", "Ordering", "Rule", "canon_value", "canonical_line", "canonical_lines",
    "canonical_order", "erased_share", "escape", "frame_kind", "has_token", "identities_table", "identity_kind",
    "learn", "leaves", "looks_random", "normalize", "normalize_pieces", "normalize_text", "parse_lines", "render_date",
    "rules_table", "slug", "strip_numbers", "traced_order", "unescape",
]  # fmt: skip
