"""What each dialect calls the settings of a model call, as members of its requests. Pure."""

from collections.abc import Callable

from llm_dialects import Json

from acp_agent.config import DialectName, ModelConfig


def request_params(config: ModelConfig) -> dict[str, Json]:
    """Return the parameters of every request: which model, streamed, how long an answer, how free."""
    return PARAMS[config.dialect](config)


def openai_chat(config: ModelConfig) -> dict[str, Json]:
    """Limit, and token counts at the end of the stream."""
    limited = {"model": config.name, "max_tokens": config.max_tokens, "stream": True}
    return limited | temperature(config) | {"stream_options": {"include_usage": True}}


def openai_responses(config: ModelConfig) -> dict[str, Json]:
    """Limit, thinking included."""
    return {"model": config.name, "max_output_tokens": config.max_tokens, "stream": True} | temperature(config)


def anthropic_messages(config: ModelConfig) -> dict[str, Json]:
    """Limit, without which the provider takes no request."""
    return {"model": config.name, "max_tokens": config.max_tokens, "stream": True} | temperature(config)


def gemini(config: ModelConfig) -> dict[str, Json]:
    """Limit in an object of its own; model, stream and the framing of its events go into the URL."""
    settings = {"maxOutputTokens": config.max_tokens} | temperature(config)
    return {"model": config.name, "stream": True, "alt": "sse", "generationConfig": settings}


def temperature(config: ModelConfig) -> dict[str, Json]:
    """Return the temperature, where there is one."""
    return {} if config.temperature is None else {"temperature": config.temperature}


PARAMS: dict[DialectName, Callable[[ModelConfig], dict[str, Json]]] = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic-messages": anthropic_messages,
    "gemini": gemini,
}
