"""What a recording took: calls, tokens as the provider counted them, and their price where ``agent.toml`` says it."""

from collections.abc import Mapping, Sequence

from llm_dialects.chunks import Usage, UsageChunk
from llm_dialects.entries import Chunks
from msgspec import UNSET, Struct, UnsetType

from session_snapshot.agent import Price
from session_snapshot.calls import LiveCall

MILLION = 1_000_000


class Spent(Struct, frozen=True):
    """``calls`` were asked, ``done`` are over. ``uncounted`` were answered without a word about tokens; ``unpriced``
    are the models without a price; ``cost`` is in US dollars, ``None`` where no price is configured."""

    calls: int = 0
    done: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    uncounted: int = 0
    cost: float | None = None
    unpriced: tuple[str, ...] = ()


def spent(calls: Sequence[LiveCall], prices: Mapping[str, Price]) -> Spent:
    """What these calls took so far; a call without an entry is in flight."""
    done = [call for call in calls if call.entry is not None]
    usages = [(str(call.request.params.get("model", "")), usage_of(call)) for call in done]
    counted = [(model, usage) for model, usage in usages if usage is not None]
    priced = [(price_of(model, prices), usage) for model, usage in counted]
    return Spent(
        calls=len(calls),
        done=len(done),
        tokens_in=sum(prompt_tokens(usage) for _, usage in counted),
        tokens_out=sum(usage.output_tokens for _, usage in counted),
        uncounted=sum(isinstance(call.entry, Chunks) and usage_of(call) is None for call in done),
        cost=sum(cost_of(usage, price) for price, usage in priced if price is not None) if prices else None,
        unpriced=tuple(sorted({model for model, _ in counted if price_of(model, prices) is None})) if prices else (),
    )


def usage_of(call: LiveCall) -> Usage | None:
    """What the provider counted for a call: the last count is the whole."""
    chunks = call.entry.chunks if call.entry is not None else ()
    return next((chunk.usage for chunk in reversed(chunks) if isinstance(chunk, UsageChunk)), None)


def prompt_tokens(usage: Usage) -> int:
    """All tokens of the prompt, fresh, read from a cache and written to it."""
    return usage.input_tokens + number(usage.cache_read_tokens) + number(usage.cache_write_tokens)


def cost_of(usage: Usage, price: Price) -> float:
    """The price of one call in US dollars."""
    cached = price.input if price.cached_input is None else price.cached_input
    fresh = usage.input_tokens + number(usage.cache_write_tokens)
    read, told = number(usage.cache_read_tokens), usage.output_tokens
    return (fresh * price.input + read * cached + told * price.output) / MILLION


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """A model's price: by its own name, else the longest that it begins with (``gpt-x`` for ``gpt-x-2026-05``)."""
    names = [name for name in prices if model == name or model.startswith(f"{name}-")]
    return prices[max(names, key=len)] if names else None


def number(count: int | UnsetType) -> int:
    """A count that a provider may leave out."""
    return 0 if count is UNSET else count


# ── in words ────────────────────────────────────────────────────────────────────────────────────────────────────────


def format_spent(took: Spent) -> str:
    """``2 calls, 1,234 tokens in, 56 out, $0.0012``; what is not known is said."""
    flying = took.calls - took.done
    parts = [f"{took.calls} model call{'s'[: took.calls != 1]}"]
    parts += [f"{flying} in flight"] if flying else []
    parts += [f"{took.tokens_in:,} tokens in, {took.tokens_out:,} out"] if took.tokens_in or took.tokens_out else []
    parts += [f"tokens of {took.uncounted} not told"] if took.uncounted else []
    parts += [money(took)] if took.cost is not None else []
    return ", ".join(parts)


def money(took: Spent) -> str:
    """The cost, and which models it leaves out."""
    without = f" without {', '.join(took.unpriced)} ([record.prices] has no such model)" if took.unpriced else ""
    return f"${took.cost:.4f}{without}"
