"""What the agent takes from the world beside files and sockets: time and fresh identities. Tests bring their own."""

import time
import uuid
from collections.abc import Callable
from datetime import date

from msgspec import Struct


class World(Struct, frozen=True):
    """``now_ms`` is the time since the epoch in milliseconds, ``today`` the local date, ``new_id`` a fresh identity."""

    now_ms: Callable[[], int]
    today: Callable[[], date]
    new_id: Callable[[], str]


def real_world() -> World:
    """Return the clock of this machine and random UUIDs (version 4)."""
    return World(now_ms=lambda: time.time_ns() // 1_000_000, today=date.today, new_id=lambda: str(uuid.uuid4()))
