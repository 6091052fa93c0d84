"""Reading JSON whose shape somebody else decides: what is not there, or is of another kind, reads as empty.

The guard must say something about any file; which shapes are right, the readers of ``llm_replay`` and the harness say.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

Json = Any


def read_json(data: str | bytes) -> Json:
    """Return the value of a JSON text.

    Raises:
        ValueError: not UTF-8, not JSON; ``NaN`` and the infinities are not.
    """
    return json.loads(data, parse_constant=refuse)


def refuse(constant: str) -> NoReturn:
    """Refuse a constant that is not JSON."""
    raise ValueError(f"{constant} is not JSON")


def table(value: Json) -> Mapping[str, Json]:
    """Return an object, ``{}`` for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: Json) -> Sequence[Json]:
    """Return an array, ``[]`` for anything else."""
    return value if isinstance(value, list) else []


def text(value: Json) -> str:
    """Return a string, ``""`` for anything else."""
    return value if isinstance(value, str) else ""
