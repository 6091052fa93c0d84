"""Which fields hold identities. Enumerations (``modeId``, ``optionId``, an ``id`` under ``models``) never do."""

import re
from functools import lru_cache

from normalizer.context import Field
from normalizer.lines import Json


def identity_kind(field: Field) -> str | None:
    """The kind of identity this leaf holds, or None. Sentinels (-1, 0, "") are no identities."""
    value, key = field.value, field.key
    if isinstance(value, bool) or not isinstance(value, int | str) or str(value) in _SENTINELS:
        return None
    if key == "id":
        return _bare_id(field)
    kind = _kind_of_name(key)
    return kind if kind != "id" or looks_random(value) else None


def looks_random(value: Json) -> bool:
    """Whether a machine drew this value.

    The usual shapes (uuids, hex of 12 digits and more, long mixed words) are told by shape alone: a rule that looked at
    how random a single draw happens to look would call the odd one of a thousand a word, and a replay red.
    """
    if not isinstance(value, str):
        return False
    return bool(UUID.search(value)) or any(_random_word(word) for word in _WORD.findall(value))


def precedence(kind: str) -> int:
    """The place of a kind in IDENTITIES; a value seen under several kinds takes the first of them."""
    return _ORDER.get(kind, len(_ORDER))


def is_kind(kind: str) -> bool:
    """Whether this is a kind of identity."""
    return kind in _ORDER


@lru_cache(maxsize=4096)
def _kind_of_name(key: str) -> str | None:
    if _ENUMERATION.search(key):
        return None
    named = next((kind for kind, names, _ in IDENTITIES if names and re.search(names, key)), None)
    return named or ("id" if _ANY_ID.search(key) else None)


def _bare_id(field: Field) -> str | None:
    if field.path == ("id",) and field.document in ("stdout", "client"):
        return None
    if any(isinstance(part, str) and _last_word(part) in _ENUMERATIONS for part in field.path):
        return None
    kind = field.parent.get("type") if isinstance(field.parent, dict) else None
    if kind in _TOOL_CALLS:
        return "toolCallId"
    if kind == "session":
        return "sessionId"
    return "id" if looks_random(field.value) else None


def _last_word(name: str) -> str:
    """The last word of a member name, lower case: ``availableModes`` and ``modes`` are ``modes``."""
    return re.split(r"(?<=[a-z0-9])(?=[A-Z])|[-_. ]+", name)[-1].lower()


def _random_word(word: str) -> bool:
    letters, digits = any(char.isalpha() for char in word), any(char.isdigit() for char in word)
    if _HEX.fullmatch(word):
        return len(word) >= 12 or (len(word) >= 8 and letters and digits)
    mixed = word.lower() != word and word.upper() != word and not _CAPITALISED.fullmatch(word)
    if len(word) >= 16:
        return digits or mixed
    turns = len(_TURN.findall(word))
    return len(word) >= 8 and turns >= 4


UUID = re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Za-z])")
_SENTINELS = {"", "0", "-1"}
_ENUMERATION = re.compile(r"(^|_)(mode|model|option|method|config|provider|command|category|theme|tool|server)_ids?$")
_ENUMERATIONS = {"modes", "models", "options", "methods", "commands", "tools", "providers", "categories"}
_TOOL_CALLS = {"tool-call", "tool-call-delta", "tool_call", "tool_use", "function", "function_call"}
_ANY_ID = re.compile(r"_ids?$")
_WORD = re.compile(r"[0-9A-Za-z]+")
_CAPITALISED = re.compile(r"(?:[A-Z]?[a-z]+)(?:[A-Z][a-z]+)*")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_TURN = re.compile(r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])")

# Kind, the member names that hold it (lower snake case), what it is. The order is the precedence of kinds.
IDENTITIES: tuple[tuple[str, str, str], ...] = (
    ("sessionId", r"(^|_)session_ids?$|^parent_session$", "a session; `id` of a session log's header"),
    ("toolCallId", r"(^|_)(tool_call|tool_use|call)_ids?$", "a tool call; `id` of a tool call block"),
    ("messageId", r"(^|_)message_ids?$", "a message"),
    ("requestId", r"(^|_)(request|response)_ids?$", "a request to a provider, or its response"),
    ("turnId", r"(^|_)(turn|prompt)_ids?$", "a turn"),
    ("threadId", r"(^|_)(thread|conversation)_ids?$", "a thread"),
    ("terminalId", r"(^|_)terminal_ids?$", "a client's terminal"),
    ("cacheKey", r"(^|_)cache_key$", "a provider's cache key"),
    ("uuid", r"(^|_)uuids?$", "a field named so, and any uuid in text"),
    ("id", "", "any other `id` or `...Id`, if its value looks random"),
)
_ORDER = {kind: place for place, (kind, _, _) in enumerate(IDENTITIES)}
