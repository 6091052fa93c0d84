"""Tokens of a recording (``{{cwd}}``, ``{{sessionId:1}}``) and the live values they stand for.

A recorded request and the live one bound to it say the same, but for tokens: laid side by side they teach what a token
stands for in this run. So an answer that repeats an id is served with the live one. This is for an adapter inside the
agent, where no normaliser is at hand; it knows places (working directory, home, temp) and takes the rest as it comes.
"""

import re
from collections.abc import Iterator, Mapping

from llm_dialects import Json, RenderError, escape, substitute


class Tokens:
    """What is known of tokens: places from the beginning, the rest as requests are bound."""

    def __init__(self, places: Mapping[str, str]) -> None:
        """Take the places by name, e.g. ``{"cwd": "/work"}``."""
        self._values = dict(places)
        longest_first = sorted(places.items(), key=lambda place: -len(place[1]))
        self._names = {escape(path): name for name, path in reversed(longest_first)}
        paths = "|".join(re.escape(escape(path)) for _, path in longest_first)
        self._places = re.compile(rf"(?:{paths})(?![\w-])") if paths else None

    def hide(self, text: str) -> str:
        """Return live ``text`` as it would be stored: tokens for places, literal braces escaped."""
        text = escape(text)
        return self._places.sub(lambda path: f"{{{{{self._names[path[0]]}}}}}", text) if self._places else text

    def lookup(self, name: str) -> str:
        """Return the live value of the token ``name``.

        Raises:
            RenderError: nothing was learned of it.
        """
        try:
            return self._values[name]
        except KeyError:
            raise RenderError(f"{{{{{name}}}}}: no request so far tells what this stands for") from None

    def learn(self, recorded: Json, live: Json) -> None:
        """Take what ``live`` has where ``recorded`` has tokens; what was learned first stays."""
        if isinstance(recorded, str) and isinstance(live, str):
            for name, value in self._taught(recorded, live):
                self._values.setdefault(name, value)
        elif isinstance(recorded, dict) and isinstance(live, dict):
            for key, value in recorded.items():
                self.learn(value, live.get(key))
        elif isinstance(recorded, list) and isinstance(live, list):
            for left, right in zip(recorded, live, strict=False):
                self.learn(left, right)

    def same(self, recorded: Json, hidden: Json) -> bool:
        """Tell whether a recorded leaf and a live one after ``hide`` are equal; a token not known fits any text."""
        if isinstance(recorded, str) and isinstance(hidden, str):
            live = substitute(hidden, self.lookup)
            return recorded == hidden or _pattern(recorded, self._values).fullmatch(live) is not None
        return bool(recorded == hidden) and isinstance(recorded, bool) is isinstance(hidden, bool)

    def _taught(self, recorded: str, live: str) -> Iterator[tuple[str, str]]:
        found = _pattern(recorded, self._values).fullmatch(live) if "{{" in recorded else None
        if found is not None:
            unknown = [token for token in TOKEN.findall(recorded) if token and token not in self._values]
            yield from zip(unknown, found.groups(), strict=True)


def _pattern(recorded: str, values: Mapping[str, str]) -> re.Pattern[str]:
    """Return a pattern of what ``recorded`` may be in a run: known tokens have their value, others match any text."""
    parts: list[str] = []
    end = 0
    for token in TOKEN.finditer(recorded):
        parts.append(re.escape(recorded[end : token.start()]))
        name = token["name"]
        known = "{{" if name is None else values.get(name)
        parts.append("(.+?)" if known is None else re.escape(known))
        end = token.end()
    return re.compile("".join(parts) + re.escape(recorded[end:]), re.DOTALL)


# An escaped brace (no name), or a token.
TOKEN = re.compile(r"\{\{\{\{|\{\{(?P<name>[A-Za-z][A-Za-z0-9_-]*(?::[0-9]+)?)\}\}")
