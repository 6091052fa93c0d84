"""A message of the client, whatever the protocol."""

from typing import Any

from msgspec import Struct


class Call(Struct, frozen=True):
    """One request (or notification) of the client."""

    method: str
    params: dict[str, Any]
    notification: bool = False
