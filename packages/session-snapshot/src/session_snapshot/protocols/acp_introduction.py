"""What an agent says of itself when a connection opens and a session is made, in lines a person reads. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

AUTH_REQUIRED = -32000
"""The protocol's error code for a session that needs a login."""


def introduction(frames: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """What the responses to ``initialize`` and ``session/new`` say: a heading and a line each; nothing where there are
    none."""
    results = [frame["result"] for frame in frames if isinstance(frame.get("result"), dict)]
    lines: list[tuple[str, str]] = []
    for result in results:
        lines += [*connection(result)] if "protocolVersion" in result else []
        lines += [*session(result)] if "sessionId" in result else []
    return lines


def wanted_login(frames: Iterable[Mapping[str, Any]]) -> list[str] | None:
    """The ids of the login methods of an agent that makes no session without one; ``None``: it does, or says
    otherwise."""
    values = list(frames)
    refused = any(table(value.get("error")).get("code") == AUTH_REQUIRED for value in values)
    results = [table(value.get("result")) for value in values]
    return [one for result in results for one in names(result.get("authMethods"), "id")] if refused else None


def connection(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The lines of ``initialize``."""
    info = table(result.get("agentInfo"))
    title = f" ({info['title']})" if info.get("title") not in (None, "", info.get("name")) else ""
    name = f"{info.get('name', '')} {info.get('version', '')}".strip()
    yield "agent", f"{name}{title}" if name else "it does not say its name"
    yield "protocol", f"ACP version {result['protocolVersion']}"
    yield "can", ", ".join(abilities(table(result.get("agentCapabilities")))) or "nothing beyond text prompts"
    yield "logins", ", ".join(names(result.get("authMethods"), "id")) or "none"


def session(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The lines of ``session/new``."""
    yield "session id", shape(str(result["sessionId"]))
    modes, models = table(result.get("modes")), table(result.get("models"))
    if modes:
        yield "modes", choices(names(modes.get("availableModes"), "id"), modes.get("currentModeId"))
    if models:
        yield "models", choices(names(models.get("availableModels"), "modelId"), models.get("currentModelId"))
    for option in tables(result.get("configOptions")):
        values = names(option.get("options"), "value")
        yield f"option {option.get('id', '')}", choices(values, option.get("currentValue"))


def abilities(value: Any, above: str = "") -> Iterator[str]:
    """Every capability that is on, by its path; an empty object is one that is on."""
    for name, inner in table(value).items():
        path = f"{above}.{name}" if above else name
        if isinstance(inner, dict) and inner:
            yield from abilities(inner, path)
        elif inner not in (False, None):
            yield path if inner is True or inner == {} else f"{path} = {inner}"


def choices(values: list[str], current: object) -> str:
    """What there is to choose from, the present choice in brackets; of many the first ones."""
    shown = [f"[{value}]" if value == current else value for value in values]
    if current is not None and current not in values:
        shown.insert(0, f"[{current}]")
    more = f", and {len(shown) - MOST} more" if len(shown) > MOST else ""
    return ", ".join(shown[:MOST]) + more


def shape(text: str) -> str:
    """What an id looks like."""
    found = next((words for pattern, words in SHAPES if re.fullmatch(pattern, text)), "text")
    return f"{found} ({len(text)} characters)"


def names(value: Any, key: str) -> list[str]:
    """A member of every object of a list."""
    return [str(one[key]) for one in tables(value) if key in one]


def tables(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; what is none is left out."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def table(value: Any) -> dict[str, Any]:
    """An object, or an empty one for what is none."""
    return value if isinstance(value, dict) else {}


MOST = 8
"""How many choices are shown."""

SHAPES = (
    (r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", "a uuid"),
    (r"\d+", "digits"),
    (r"[0-9a-f]+", "hex digits"),
    (r"[0-9A-HJKMNP-TV-Z]{26}", "a ulid"),
    (r"[A-Za-z]+[_-][A-Za-z0-9_-]+", "a prefix and an id"),
    (r"[A-Za-z0-9_-]+", "letters and digits"),
)
"""What ids look like, the first that fits."""
