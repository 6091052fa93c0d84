"""Which behaviour ``random`` is, this time: seeded, weighted, the same on every platform. Pure."""

from collections.abc import Mapping

from llm_dialects import Json


class Dice:
    """Throws behaviours by their weights; the same seed and weights throw the same ones for ever."""

    def __init__(self, seed: int, weights: Mapping[str, float]) -> None:
        self.seed = seed
        self.weights = dict(weights)

    def throw(self) -> str:
        """Return the name of the next behaviour."""
        raise NotImplementedError


def weights_from_json(value: Json, where: str) -> dict[str, float]:
    """Read weights, ``{behaviour: share}``; ``where`` is their place, for messages.

    Raises:
        EntryError: not an object, an unknown behaviour (the nearest known one is named), ``random`` or
            ``connection_refused``, a share that is negative or no number, or all of them zero.
    """
    raise NotImplementedError


DEFAULT_WEIGHTS: dict[str, float] = {
    "success": 48,
    "slow_success": 10,
    "partial_disconnect": 10,
    "connection_reset": 5,
    "stream_disconnect": 5,
    "empty": 5,
    "rate_limit": 5,
    "server_error": 4,
    "max_tokens": 2,
    "stall": 2,
    "service_unavailable": 2,
    "partial_eof": 1,
    "malformed_json": 1,
}
"""Test pressure, not how often a real provider fails. They sum to 100."""
