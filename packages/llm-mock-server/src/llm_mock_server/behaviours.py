"""Every way a provider can answer or fail, by name; the table at the foot is the whole of it. Pure."""

from collections.abc import Iterator
from difflib import get_close_matches

from llm_dialects import Action, EntryError, Say

from llm_mock_server.answer import chunks_reply
from llm_mock_server.situation import Behaviour, Situation

RANDOM = "random"
"""Not a behaviour: one drawn by ``dice.Dice``."""

CONNECTION_REFUSED = "connection_refused"
"""Not a behaviour of a call: a phase before the server listens."""


def behave(name: str, situation: Situation) -> Iterator[Action]:
    """Return the actions of the behaviour ``name``.

    Raises:
        KeyError: there is none of that name (``check_name`` says so kindly).
    """
    return BEHAVIOURS[name].act(situation)


def check_name(name: str, where: str) -> str:
    """Return ``name`` if it is in ``NAMES``; ``where`` is its place, for messages.

    Raises:
        EntryError: it is not; the nearest known name is named.
    """
    if name in NAMES:
        return name
    near = get_close_matches(name, NAMES, n=1, cutoff=0.0)[0]
    raise EntryError(f"{where}: no behaviour is called {name!r}; the nearest is {near!r}\nmend: write {near!r}")


def success(situation: Situation) -> Iterator[Action]:
    """Answer with the success text."""
    chunks = situation.said(Say(text=situation.options.success_text))
    return chunks_reply(situation.dialect, situation.request, chunks, situation.answer(chunks))


# In the order of the README; those that are no acts stand where they belong.
NAMES: tuple[str, ...] = (
    "connection_reset",
    "stream_disconnect",
    "stream_eof",
    "partial_eof",
    "partial_disconnect",
    "stall",
    "malformed_json",
    "malformed_event",
    "wrong_content_type",
    "rate_limit",
    "server_error",
    "service_unavailable",
    "quota_exceeded",
    "auth_error",
    "invalid_request",
    "context_overflow",
    "max_tokens",
    "success",
    "reasoning_success",
    "tool_call_success",
    "slow_success",
    "empty",
    "empty_body",
    RANDOM,
    CONNECTION_REFUSED,
    "overloaded",
    "mid_stream_error",
    "slow_headers",
    "trickle",
    "duplicate_event",
    "reordered_tool_deltas",
    "huge_event",
    "gzip",
    "keepalive_comments",
    "redirect",
)

BEHAVIOURS: dict[str, Behaviour] = {
    row.name: row
    for row in (Behaviour(name="success", act=success, summary="The success text, in pieces of `chunkSize`."),)
}
