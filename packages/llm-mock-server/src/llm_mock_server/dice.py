"""Which behaviour ``random`` is, this time: seeded, weighted, the same on every platform. Pure.

The numbers are Mulberry32's: a counter of 32 bits goes up by 0x6D2B79F5 and is mixed by xor, shift and multiply. A
throw takes one number, scales it to the sum of the weights and walks along them in the order in which they were given.
"""

import math
from collections.abc import Mapping

from llm_dialects import Json

from llm_mock_server.behaviours import CONNECTION_REFUSED, RANDOM, check_name
from llm_mock_server.fields import an_object, shown, wrong

BITS = 0xFFFF_FFFF


class Dice:
    """Throws behaviours by their weights; the same seed and weights throw the same ones for ever.

    Args:
        seed: Any whole number; its low 32 bits count.
        weights: Name -> share, not negative, of a sum that is finite and not zero.

    Raises:
        ValueError: there is nothing to throw.
    """

    def __init__(self, seed: int, weights: Mapping[str, float]) -> None:
        self.seed = seed & BITS
        self.weights = {name: share for name, share in weights.items() if share > 0}
        if not self.weights:
            raise ValueError("dice need a weight above zero")
        self._total = math.fsum(self.weights.values())
        self._state = self.seed

    def throw(self) -> str:
        """Return the name of the next behaviour."""
        self._state, number = next_uint32(self._state)
        point = number / (BITS + 1) * self._total
        for name, share in self.weights.items():
            point -= share
            if point < 0:
                return name
        return name  # the sum of the shares was rounded up


def next_uint32(state: int) -> tuple[int, int]:
    """Return the next state of the generator and its number, both from 0 to 2**32 - 1."""
    state = (state + 0x6D2B79F5) & BITS
    mixed = (state ^ state >> 15) * (state | 1) & BITS
    mixed ^= mixed + ((mixed ^ mixed >> 7) * (mixed | 61) & BITS) & BITS
    return state, mixed ^ mixed >> 14


def seed_for(seed: int, key: str) -> int:
    """Return a seed for ``key``'s own dice, so that who else throws changes nothing.

    FNV-1a over the four bytes of the seed, the low one first, and the key's UTF-8.
    """
    mixed = 0x811C9DC5
    for byte in (seed & BITS).to_bytes(4, "little") + key.encode("utf-8", "surrogatepass"):
        mixed = (mixed ^ byte) * 0x01000193 & BITS
    return mixed


def weights_from_json(value: Json, where: str) -> dict[str, float]:
    """Read weights, ``{behaviour: share}``; ``where`` is their place, for messages.

    Raises:
        EntryError: not an object, an unknown behaviour (the nearest known one is named), ``random`` or
            ``connection_refused``, a share that is negative or no number, or all of them zero.
    """
    named = an_object(value, where)
    weights = {_thrown(name, where): _share(share, f"{where}.{name}") for name, share in named.items()}
    if not any(weights.values()):
        raise wrong(where, "one share at least must be above zero", 'write {"success": 1}, say')
    if not math.isfinite(sum(weights.values())):
        raise wrong(where, "the shares add up to more than a number holds", "write smaller numbers")
    return weights


def _thrown(name: str, where: str) -> str:
    if name in (RANDOM, CONNECTION_REFUSED):
        raise wrong(where, f"{name!r} is none of the behaviours that are drawn", "leave it out")
    return check_name(name, where)


def _share(share: Json, where: str) -> float:
    try:
        exact = float(share) if type(share) in (int, float) else math.nan
    except OverflowError:
        exact = math.inf
    if not math.isfinite(exact) or exact < 0:
        raise wrong(where, f"must be a finite number, not negative; it is {shown(share)}", "write a number from 0 up")
    return exact


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
