"""What a prompt demands, read crudely on purpose: a tool to call, a tool not to call, a word to answer, a line count.

English only. A demand is found where it is plain, and missed where it is not: a guard that cries wolf is switched off.
Measured over the 46 historical cases by ``test_history.py``.
"""

import re
from collections.abc import Iterator, Set


def tools_demanded(prompt: str, known: Set[str] | None) -> tuple[str, ...]:
    """Return the tools the prompt tells the model to call, in order.

    ``known`` are the tools the model is offered; without them a tool is what stands where only a tool can
    (``call list_agents``, ``the bash tool``).
    """
    clauses = [clause for clause in split_clauses(prompt) if not NEGATION.search(clause)]
    return tuple(dict.fromkeys(name for clause in clauses for name in tools_in(clause, known)))


def tools_forbidden(prompt: str, known: Set[str] | None) -> tuple[str, ...]:
    """Return the tools the prompt forbids without a condition; ``"*"`` for ``do not use any tools``."""
    clauses = [clause for clause in split_clauses(prompt) if NEGATION.search(clause) and not CONDITION.search(clause)]
    names = [name for clause in clauses for name in tools_in(clause, known)]
    names += ["*" for clause in clauses if NO_TOOLS.search(clause)]
    return tuple(dict.fromkeys(names))


def answer_demanded(prompt: str) -> str:
    """Return the literal the prompt wants as the reply (``reply with exactly the single word DONE``), or ``""``."""
    found: list[str] = REPLY.findall(prompt)
    return found[-1] if found else ""


def lines_demanded(prompt: str) -> int | None:
    """Return how many lines the prompt says a file will have; ``None`` if it says nothing or more than one thing."""
    counts = {NUMBERS.get(word.lower()) or int(word) for match in LINES.findall(prompt) if (word := max(match))}
    return counts.pop() if len(counts) == 1 else None


def split_clauses(prompt: str) -> Iterator[str]:
    """Cut a prompt where a negation ends: at sentence marks before a space, brackets, line ends and contrasts."""
    return (clause for clause in CLAUSE_END.split(prompt) if clause.strip())


def tools_in(clause: str, known: Set[str] | None) -> Iterator[str]:
    """Return the tools that a clause speaks of as tools."""
    for match in CALLED.finditer(clause):
        name = match[1] or match[2]
        if name.lower() not in NOT_A_TOOL:
            yield from named(name, known, phrase=match[0])
    for name in sorted(known or ()):
        if "_" in name and re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", clause):
            yield name


def named(name: str, known: Set[str] | None, phrase: str) -> Iterator[str]:
    """Return the tool that ``name`` stands for: the offered one, or without an offer what can only be a tool."""
    if known is not None:
        yield from (tool for tool in sorted(known) if tool.lower() == name.lower())
    elif "_" in name or phrase.endswith("tool"):
        yield name


CLAUSE_END = re.compile(r"(?<=[.;:!?])\s+|[()\n]|\s(?=but\b|then\b|and do\b)|,\s+(?=then\b|instead\b)", re.IGNORECASE)
NEGATION = re.compile(
    r"\b(?:not|never|no|without|avoid|don't|cannot)\b|\b(?:instead|rather) (?:of|than)\b", re.IGNORECASE
)
CONDITION = re.compile(
    r"\b(?:without|unless|until|before|after|except|more than|twice|again|first|if|instead|rather)\b", re.IGNORECASE
)
NO_TOOLS = re.compile(r"\b(?:any|no) tools\b", re.IGNORECASE)
TOOL_WORD = r"\s+tool\b(?!\s+(?:calls?|results?|outputs?|use|messages?)\b)"
CALLED = re.compile(
    rf"\b(?:call|calls|calling|use|using|invoke|run)\s+(?:the\s+)?`?([A-Za-z][\w-]*)`?(?!\w)(?:{TOOL_WORD})?"
    rf"|\b([A-Za-z][\w-]*){TOOL_WORD}",
    re.IGNORECASE,
)
NOT_A_TOOL = frozenset(
    (
        "a",
        "all",
        "an",
        "any",
        "each",
        "it",
        "its",
        "native",
        "no",
        "one",
        "only",
        "other",
        "same",
        "single",
        "that",
        "the",
    )
)
REPLY = re.compile(
    r"\b[Rr]epl(?:y|ying) with (?:only |exactly )?(?:the )?(?:exact )?(?:single )?(?:words?:? )?"
    r"['\"`]?([A-Z][A-Z0-9]*(?:[_ ][A-Z0-9]+)*)\b"
)
LINES = re.compile(
    r"\b(?:has|have|having|contains|containing|with) (?:exactly )?(one|two|three|four|five|six|\d{1,4}) lines?\b"
    r"|\b(one|two|three|four|five|six|\d{1,4})-line file\b",
    re.IGNORECASE,
)
NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
