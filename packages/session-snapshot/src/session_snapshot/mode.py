"""The three modes: one switch, ``SNAPSHOT_MODE``, set by the nox session. The default never writes into
``snapshots/``."""

import enum
import os
from collections.abc import Mapping

from session_snapshot.errors import Refused


class Mode(enum.Enum):
    """What a run is for."""

    REPLAY = "replay"
    RECORD = "record"
    REFRESH = "refresh"


def mode_from(environment: Mapping[str, str] = os.environ) -> Mode:
    """The mode the environment asks for.

    Raises:
        Refused: a value that is none of the three.
    """
    value = environment.get("SNAPSHOT_MODE") or Mode.REPLAY.value
    try:
        return Mode(value)
    except ValueError:
        known = ", ".join(mode.value for mode in Mode)
        raise Refused(f"SNAPSHOT_MODE is {value!r}", f"set it to one of {known}, or leave it unset") from None


def demand(mode: Mode, environment: Mapping[str, str] = os.environ) -> None:
    """Check that the switch does not contradict what a command does; one that is not set contradicts nothing.

    Raises:
        Refused: it does, or its value is none of the three.
    """
    asked = mode_from(environment)
    if environment.get("SNAPSHOT_MODE") and asked is not mode:
        raise Refused(
            f"SNAPSHOT_MODE is {asked.value!r}, and this is {mode.value}", f"unset it, or set it to {mode.value}"
        )


def under_ci(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this is CI: ``CI`` is set and is not ``false``."""
    return environment.get("CI", "").lower() not in ("", "false", "0")
