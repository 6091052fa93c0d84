"""What JSON can say and a script cannot mean: refused when it is read, not when a client meets it. Pure.

Recordings and an ``upstream.json`` may hold what a provider once said, whatever it was; ``llm_dialects.entries`` reads
those. A script is written by a person, who mistypes.
"""

import math
from collections.abc import Iterator, Sequence
from typing import assert_never

from llm_dialects import Chunks, Entry, Hang, Json, Say, StreamChunk, Throw, Usage
from llm_dialects.chunks import BlockStart, Failure, Finish, FinishReason, UsageChunk
from llm_dialects.errors import ERRORS
from llm_dialects.wire import read_object
from llm_dialects.words import nearest
from msgspec import UNSET

from llm_mock_server.fields import LIKE, a_count, a_text, a_word, shown, wrong


def check_json(value: Json, where: str) -> None:
    """Refuse what Python knows and JSON does not, and what is nested too deeply to be walked.

    Raises:
        EntryError: it is either.
    """
    level = [(value, "")]
    for _ in range(MAX_DEPTH):
        level = [inner for each, path in level for inner in members(each, where, path)]
        if not level:
            return
    raise wrong(where, f"nested deeper than {MAX_DEPTH} levels", "say it with fewer levels")


def check_act(act: Entry | Say, where: str) -> None:
    """Refuse an entry that no provider could mean.

    Raises:
        EntryError: a finish, code or block type that is none, a count below zero, arguments that are no JSON object, a
            file that no system could name.
    """
    match act:
        case Say():
            check_say(act, where)
        case Chunks():
            check_chunks(act.chunks, f"{where}.chunks")
        case Throw():
            check_chunks(act.chunks, f"{where}.chunks")
            check_code(act.code, has_status=act.status is not UNSET, where=f"{where}.code")
        case Hang():
            check_chunks(act.chunks, f"{where}.chunks")
            if isinstance(act.ready_file, str):
                printable(act.ready_file, f"{where}.readyFile", "the name of a file")
        case _:
            assert_never(act)


# ── Helpers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def members(value: Json, where: str, path: str) -> Iterator[tuple[Json, str]]:
    """Yield what is in ``value``, each with its path, after a look at ``value`` itself."""
    match value:
        case dict():
            for key, inner in value.items():
                if not isinstance(key, str):
                    raise wrong(
                        place_of(where, path), f"a key must be a string, it is {shown(key)}", "write it in quotes"
                    )
                yield inner, f"{path}.{key}"
        case list():
            for at, inner in enumerate(value):
                yield inner, f"{path}[{at}]"
        case str() | bool() | None:
            return
        case int() if value.bit_length() <= MAX_BITS:
            return
        case float() if math.isfinite(value):
            return
        case _:
            raise wrong(
                place_of(where, path), f"must be JSON, it is {shown(value)}", "write a string, number, list or dict"
            )


def place_of(where: str, path: str) -> str:
    """Return the place of ``path`` in the document ``where``."""
    return f"{where}: {path.removeprefix('.')}" if path else where


def check_say(say: Say, where: str) -> None:
    """Refuse an answer of which a part says what none can."""
    if say.finish is not UNSET:
        check_finish(say.finish, f"{where}.finish")
    if say.usage is not UNSET:
        check_usage(say.usage, f"{where}.usage")
    for at, call in enumerate(say.tool_calls):
        check_arguments(call.arguments, f"{where}.toolCalls[{at}].arguments")


def check_finish(finish: FinishReason, where: str) -> None:
    """Refuse a kind that not every dialect has a word for."""
    if finish.kind not in FINISHES:
        what = f"no finish is of kind {shown(finish.kind)}; known are {', '.join(FINISHES)}"
        near = PROVIDERS_FINISHES.get(finish.kind.lower()) or nearest(finish.kind, FINISHES, 0.5) or "stop"
        raise wrong(where, what, f"write {near!r}, or let an entry of chunks say a provider's own word")
    if isinstance(finish.failure, Failure):
        check_code(finish.failure.code, where=f"{where}.failure.code")


def check_arguments(text: str, where: str) -> None:
    """Refuse arguments that no tool can read; none at all may be the empty string."""
    if text and read_object(text) is None:
        mend = 'write an object, {"name": value}, or let an entry of chunks say what is none'
        raise wrong(where, f"must be a JSON object, it is {shown(text)}", mend)


def check_code(code: str, *, has_status: bool = False, where: str) -> None:
    """Refuse a code that nobody knows how to tell."""
    if has_status:
        printable(code, where, "a code")
    elif code not in CODES:
        what = f"no failure has the code {shown(code)}; known are {', '.join(CODES)}"
        near = nearest(code.upper(), CODES, LIKE)
        word = repr(near) if near else "one of these"
        raise wrong(where, what, f'write {word}, or say by "status" how a code of your own is told')


def check_chunks(chunks: Sequence[StreamChunk], where: str) -> None:
    """Refuse chunks that no stream has."""
    for at, chunk in enumerate(chunks):
        place = f"{where}[{at}]"
        match chunk:
            case UsageChunk():
                check_usage(chunk.usage, f"{place}.usage")
            case Finish():
                printable(chunk.reason.kind, f"{place}.reason.kind", "a word")
            case _:
                a_count(chunk.index, f"{place}.index", 0, MAX_INDEX)
        if isinstance(chunk, BlockStart):
            a_word(chunk.block_type, BLOCKS, f"{place}.blockType", "no block is of type")


def check_usage(usage: Usage, where: str) -> None:
    """Refuse counts below zero."""
    for key, field in USAGE.items():
        count = getattr(usage, field)
        if count is not UNSET:
            a_count(count, f"{where}.{key}", 0)


def printable(text: str, where: str, what: str) -> None:
    """Refuse what cannot be shown, so that nobody meant it."""
    if not a_text(text, where).isprintable():
        raise wrong(where, f"{shown(text)} is not {what}", "write it with characters that can be printed")


FINISHES = ("stop", "tool-calls", "max-tokens", "content-filter", "error")
"""The kinds of finish that every dialect has a word for."""

# What providers call them.
PROVIDERS_FINISHES = {
    "end_turn": "stop",
    "completed": "stop",
    "stop_sequence": "stop",
    "tool_calls": "tool-calls",
    "tool_use": "tool-calls",
    "length": "max-tokens",
    "max_tokens": "max-tokens",
    "max_output_tokens": "max-tokens",
    "content_filter": "content-filter",
    "safety": "content-filter",
    "refusal": "content-filter",
}

BLOCKS = ("text", "reasoning", "tool-call")

CODES = tuple(row.code for row in ERRORS)
"""The codes of failures that every dialect has a word and a status for."""

# Member of a usage, of which the first two are obligatory -> field.
USAGE = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cacheReadTokens": "cache_read_tokens",
    "cacheWriteTokens": "cache_write_tokens",
    "reasoningTokens": "reasoning_tokens",
}

MAX_DEPTH = 100
"""Levels of nesting; beyond, what walks a value may come to the end of its stack."""

MAX_INDEX = 2**31 - 1

MAX_BITS = 10_000
"""Of a number: no more than 3,100 digits. Python writes no more than 4,300."""
