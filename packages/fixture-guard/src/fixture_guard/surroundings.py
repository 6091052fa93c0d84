"""What must not leak from the machine a fixture was made on."""

from collections.abc import Mapping

from msgspec import Struct


class Surroundings(Struct, frozen=True):
    """The environment, home folder and host name of the machine that checks; empty ones are not looked for."""

    environment: Mapping[str, str] = {}
    home: str = ""
    hostname: str = ""
