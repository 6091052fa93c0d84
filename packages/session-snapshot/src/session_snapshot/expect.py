"""``[expect]``: hold what a run, or a recording, shows against what its author said it must show."""

from collections.abc import Iterable, Sequence

from llm_dialects.chunks import BlockEnd, StreamChunk, TextBlock, ToolCallBlock
from llm_dialects.entries import Chunks, Entry, Throw
from llm_dialects.fold import indexed
from msgspec import Struct

from session_snapshot.scenario import Expect


class Facts(Struct, frozen=True):
    """What was seen. ``None`` where this evidence cannot tell."""

    tools: Sequence[str]
    answer: str
    model_calls: int
    error_codes: Sequence[str]
    exit_codes: Sequence[int] | None = None
    stop_reason: str | None = None
    compactions: int | None = None


def check_expect(expect: Expect, facts: Facts) -> list[str]:
    """Every breach as a sentence; empty when the facts are as expected."""
    return [sentence for check in CHECKS for sentence in check(expect, facts)]


def tools_called(expect: Expect, facts: Facts) -> Iterable[str]:
    """The model called exactly these tools, in this order."""
    if expect.tools_called is not None and list(facts.tools) != expect.tools_called:
        yield f"tools_called: expected {expect.tools_called}, the model called {list(facts.tools)}"


def tools_not_called(expect: Expect, facts: Facts) -> Iterable[str]:
    """The model called none of these."""
    for tool in expect.tools_not_called:
        if tool in facts.tools:
            yield f"tools_not_called: the model called {tool!r}"


def exit_codes(expect: Expect, facts: Facts) -> Iterable[str]:
    """No tool ended with a code that nobody expects."""
    for code in sorted(set(facts.exit_codes or ())):
        if code not in expect.exit_codes:
            yield f"exit_codes: a tool ended with {code}, allowed are {expect.exit_codes}"


def stop_reason(expect: Expect, facts: Facts) -> Iterable[str]:
    """The last prompt ended for this reason."""
    if expect.stop_reason is not None and facts.stop_reason not in (None, expect.stop_reason):
        yield f"stop_reason: expected {expect.stop_reason!r}, got {facts.stop_reason!r}"


def error_codes(expect: Expect, facts: Facts) -> Iterable[str]:
    """The model's endpoint failed with exactly these codes, in this order; with none unless some are expected."""
    if list(facts.error_codes) != (expect.error_codes or []):
        yield f"error_codes: expected {expect.error_codes or []}, got {list(facts.error_codes)}"


def answer_contains(expect: Expect, facts: Facts) -> Iterable[str]:
    """The answer holds each of these texts."""
    for text in expect.answer_contains:
        if text not in facts.answer:
            yield f"answer_contains: {text!r} is not in the answer {abridged(facts.answer)!r}"


def model_calls(expect: Expect, facts: Facts) -> Iterable[str]:
    """So many model calls were made."""
    if expect.model_calls is not None and facts.model_calls != expect.model_calls:
        yield f"model_calls: expected {expect.model_calls}, there are {facts.model_calls}"


def compactions(expect: Expect, facts: Facts) -> Iterable[str]:
    """The history was rewritten so many times."""
    if facts.compactions is not None and facts.compactions != expect.compactions:
        yield f"compactions: expected {expect.compactions}, there were {facts.compactions}"


def facts_of_entries(entries: Iterable[Entry]) -> Facts:
    """What a recording's model calls show, before anything runs."""
    tools, texts, codes, calls = [], [], [], 0
    for entry in entries:
        calls += 1
        tools += [block.name for block in blocks(entry) if isinstance(block, ToolCallBlock)]
        said = (item.block for item in indexed(entry.chunks))  # also of what broke off, or fell silent
        texts += [block.text for block in said if isinstance(block, TextBlock)]
        codes += [entry.code] if isinstance(entry, Throw) else []
    return Facts(tools, "\n".join(texts), calls, codes)


def blocks(entry: Entry) -> list[object]:
    """The finished blocks of one call's answer."""
    chunks: Sequence[StreamChunk] = entry.chunks if isinstance(entry, Chunks | Throw) else ()
    return [chunk.block for chunk in chunks if isinstance(chunk, BlockEnd)]


def abridged(text: str, most: int = 120) -> str:
    """The beginning of a text."""
    return text if len(text) <= most else text[:most] + "…"


CHECKS = (
    tools_called,
    tools_not_called,
    exit_codes,
    stop_reason,
    error_codes,
    answer_contains,
    model_calls,
    compactions,
)
