"""What a body must say to be a model call of its dialect. Pure.

``Dialect.parse_request`` reads foreign traffic too and lets much pass; a provider does not. What is checked is what
every provider refuses: who is asked, whether for a stream, and what about.
"""

from collections.abc import Mapping

from llm_dialects import DialectError, Json

from llm_mock_server.fields import shown


def check_call(dialect: str, body: Mapping[str, Json]) -> None:
    """Refuse a body that no provider would answer.

    Raises:
        DialectError: naming the JSON path.
    """
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise DialectError(f"$.model: must be the name of a model{found(body, 'model')}")
    if not isinstance(body.get("stream"), bool | None):
        raise DialectError(f"$.stream: must be true or false{found(body, 'stream')}")
    if dialect in CONVERSATION:
        key, kinds, words = CONVERSATION[dialect]
        elsewhere = key not in body and any(body.get(other) for other in INSTEAD.get(dialect, ()))
        if not elsewhere and not isinstance(body.get(key), kinds):
            raise DialectError(f"$.{key}: must be {words}{found(body, key)}")


def found(body: Mapping[str, Json], key: str) -> str:
    """Return the words on what stands there instead."""
    return f", it is {shown(body[key])}" if key in body else ", it is missing"


# dialect -> the member that holds the conversation, what it may be, and the words on that
CONVERSATION: Mapping[str, tuple[str, tuple[type, ...], str]] = {
    "openai-chat": ("messages", (list,), "an array"),
    "openai-responses": ("input", (str, list), "a string or an array"),
    "anthropic-messages": ("messages", (list,), "an array"),
    "gemini": ("contents", (list,), "an array"),
}

# dialect -> members by which the provider knows the conversation where the body lacks it
INSTEAD: Mapping[str, tuple[str, ...]] = {"openai-responses": ("previous_response_id", "conversation", "prompt")}
