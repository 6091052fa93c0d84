"""How full a conversation's context is: as its provider counted it, else by the honest estimate. Pure."""

from math import ceil

from llm_dialects import Dialect, Request, Usage, honest_usage, to_json
from llm_dialects.wire import compact_length
from msgspec import UNSET, Struct

CHARACTERS = 4
"""How many make a token, by estimate."""


class Meter:
    """Counts tokens of one conversation.

    Where a provider has told the usage of an answer, a request counts as much as was told, and what has come since by
    estimate. Before that it is estimated as the dialect would write it, and after the history was replaced at the
    provider's rate. What has been told once is counted alike in every dialect.

    ``told`` is the context after the last answer (``None``: nobody has told), ``accepted`` the largest input that was
    answered.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.told: int | None = None
        self.accepted = 0
        self._dialect = dialect
        self._heard: Heard | None = None

    def hear(self, usage: Usage, asked: Request, now: Request) -> None:
        """Take in the usage of the answer to ``asked``; ``now`` is the request that would go on from there."""
        self.accepted = max(self.accepted, input_tokens(usage))
        self.told = input_tokens(usage) + usage.output_tokens
        self._heard = Heard(usage, asked, now)

    def forget(self) -> None:
        """Count anew: the history is another one. The provider's rate is still known."""
        self.told = None

    def tokens(self, request: Request) -> int:
        """Return the tokens of ``request``, which goes on from the answer heard last."""
        if self._heard is None:
            return honest_usage(self._dialect.render_request(request), ()).input_tokens
        if self.told is None:
            return self.estimate(request)
        more = size_of(request) - size_of(self._heard.now)
        return self.told + ceil(more * self.ratio / CHARACTERS)

    def estimate(self, request: Request) -> int:
        """Return an estimate of the tokens of any request, at the provider's rate."""
        return ceil(size_of(request) * self.ratio / CHARACTERS)

    @property
    def ratio(self) -> float:
        """How many tokens the provider counts for one that is estimated, to the quarter and at least 1.

        An estimate is no finer than that: what it says must not hang on a few characters in a path.
        """
        if self._heard is None:
            return 1.0
        rate = input_tokens(self._heard.usage) * CHARACTERS / size_of(self._heard.asked)
        return max(1.0, round(rate * 4) / 4)


class Heard(Struct, frozen=True):
    """What a provider told of a call, what had been asked, and what would be asked next. Looked into when needed."""

    usage: Usage
    asked: Request
    now: Request


def input_tokens(usage: Usage) -> int:
    """Return the tokens of a prompt, those from and to a cache included."""
    cached = (usage.cache_read_tokens, usage.cache_write_tokens)
    return usage.input_tokens + sum(count for count in cached if count is not UNSET)


def size_of(request: Request) -> int:
    """Return the characters of all that a request says: system texts, tools, messages."""
    system = [{"role": "system", "content": text} for text in request.system]
    return compact_length([*system, *map(to_json, (*request.tools, *request.messages))])
