"""What the placeholders of ``input.json`` stand for while it is performed; pure."""

from collections.abc import Mapping
from typing import Any

from session_snapshot import steps as ops
from session_snapshot.errors import FixtureError


class Sessions:
    """The sessions a script opened: their ids in order, by alias, and which one is the last."""

    def __init__(self) -> None:
        """None is open yet."""
        self.ids: list[str] = []
        self.aliases: dict[str, str] = {}

    def opened(self, alias: str, number: str) -> None:
        """Note a session; ``alias`` may be empty."""
        self.ids.append(number)
        if alias:
            self.aliases[alias] = number

    def of(self, step: ops.Step) -> str:
        """The id of the session a step is about: the one it names, else the last.

        Raises:
            FixtureError: no session was opened yet, or none by that alias.
        """
        if step.session in self.aliases:
            return self.aliases[step.session]
        if self.ids and not step.session:
            return self.ids[-1]
        known = ", ".join(sorted(self.aliases)) or "none"
        what = f"no session {step.session!r}" if self.ids else f"{ops.op_of(step)} before newSession"
        raise FixtureError(what, ops.SCRIPT, None, f"open one with newSession (aliases so far: {known})")

    def variables(self, cwd: str) -> dict[str, str]:
        """What the script's placeholders stand for now."""
        named = {f"sessionId:{alias}": number for alias, number in self.aliases.items()}
        last = {"sessionId": self.ids[-1]} if self.ids else {}
        return {"cwd": cwd} | last | named


def fill(value: Any, variables: Mapping[str, str]) -> Any:
    """``value`` with ``{{cwd}}``, ``{{sessionId}}`` and ``{{sessionId:alias}}`` filled in every string."""
    match value:
        case str():
            for name, text in variables.items():
                value = value.replace(f"{{{{{name}}}}}", text)
            return value
        case dict():
            return {key: fill(item, variables) for key, item in value.items()}
        case list():
            return [fill(item, variables) for item in value]
        case _:
            return value
