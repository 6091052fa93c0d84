"""The tables of README.md, written from RULES and IDENTITIES, so that they cannot tell of another code."""

from collections.abc import Iterable

from normalizer.identity import IDENTITIES
from normalizer.rules import RULES, Rule


def rules_table() -> str:
    """RULES as a Markdown table."""
    return _table(("rule", "tokens", "replaces", "looks at", "in model text"), (_row(rule) for rule in RULES))


def identities_table() -> str:
    """IDENTITIES as a Markdown table, in order of precedence."""
    rows = ((f"`{{{{{kind}:N}}}}`", f"`{names}`" if names else "", what) for kind, names, what in IDENTITIES)
    return _table(("token", "member names (snake case)", "what"), rows)


def _row(rule: Rule) -> tuple[str, ...]:
    looks = [word for word, there in (("fields", rule.field), ("text", rule.text)) if there]
    tokens = ", ".join(f"`{token}`" for token in rule.tokens)
    return f"`{rule.name}`", tokens, rule.what, ", ".join(looks), "yes" if rule.expands else "no"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    cells = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in cells)
