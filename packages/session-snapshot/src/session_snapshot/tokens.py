"""From the tokens of a recording to the live values of a run: what the Player expands when it serves."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from llm_dialects.render import substitute

from session_snapshot.errors import FixtureError

NUMBERED = re.compile(r"([A-Za-z][A-Za-z0-9]*):([0-9]+)")

JSON_TEXT = frozenset({"arguments", "argumentsDelta", "body"})
"""Members whose text is itself JSON: what is put into it must be escaped as JSON is."""


class LiveTokens:
    """Live values by token, for one run."""

    def __init__(self, places: Mapping[str, str], seen: Callable[[str], list[str]]) -> None:
        """``places``: cwd, home, tmp, agent, dates. ``seen(kind)``: the live ids of a kind in order of first sight."""
        self.places = places
        self.seen = seen

    def expand(self, value: Any, key: str = "") -> Any:
        """``value`` with every token in every string replaced, and literal braces restored."""
        match value:
            case str() if key in JSON_TEXT:
                return substitute(value, lambda name: json_text(self.value_of(name)))
            case str():
                return substitute(value, self.value_of)
            case dict():
                return {name: self.expand(item, name) for name, item in value.items()}
            case list():
                return [self.expand(item, key) for item in value]
            case _:
                return value

    def value_of(self, name: str) -> str:
        """The live value of one token.

        Raises:
            FixtureError: the run has no such value (yet).
        """
        if name in self.places:
            return self.places[name]
        found = NUMBERED.fullmatch(name)
        values = self.seen(found[1]) if found else []
        if found and 1 <= int(found[2]) <= len(values):
            return values[int(found[2]) - 1]
        raise FixtureError(
            f"the recording says {{{{{name}}}}}, which this run has no value for when it is served",
            "session.jsonl",
            None,
            "record the scenario again",
        )


def json_text(text: str) -> str:
    """A text as it stands inside a JSON string."""
    return json.dumps(text)[1:-1]
