"""Where answers come from: the one interface the turn loop knows, and the table of what stands behind it."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Protocol

from llm_dialects import Request, StreamChunk

from acp_agent.config import ModelConfig


class Model(Protocol):
    """Something that answers requests."""

    def stream(self, request: Request, session_key: str) -> AsyncGenerator[StreamChunk, None]:
        """Answer ``request`` chunk by chunk; ``session_key`` tells concurrent conversations apart.

        The last chunk is a ``Finish``. Raises ``ModelError`` before or amid the chunks. Cancelling the consumer
        frees what the call held.
        """
        ...

    async def aclose(self) -> None:
        """Give up connections."""
        ...


Environment = Mapping[str, str]


def open_model(config: ModelConfig, environment: Environment) -> Model:
    """Return the model behind the configured seam."""
    return SEAMS[config.seam](config, environment)


def http_model(config: ModelConfig, environment: Environment) -> Model:
    """A provider, spoken to over HTTP in its dialect."""

    def open_now() -> Model:
        from acp_agent.model_http import HttpModel

        return HttpModel(config, environment)

    return DeferredModel(open_now)


def replay_model(config: ModelConfig, environment: Environment) -> Model:
    """A recording, told again by ``llm_replay`` in this process."""
    from llm_dialects import DIALECTS

    from acp_agent.model_replay import ReplayModel

    return ReplayModel(environment, DIALECTS[config.dialect])


class DeferredModel:
    """A model that is opened when it is first asked, so that starting the agent does not pay for an HTTP client."""

    def __init__(self, open_now: Callable[[], Model]) -> None:
        self._open_now = open_now
        self._model: Model | None = None

    async def stream(self, request: Request, session_key: str) -> AsyncGenerator[StreamChunk, None]:
        """Pass on what the opened model answers."""
        self._model = self._model or self._open_now()
        async with aclosing(self._model.stream(request, session_key)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def aclose(self) -> None:
        """Close the model if it was opened."""
        if self._model is not None:
            await self._model.aclose()


SEAMS: dict[str, Callable[[ModelConfig, Environment], Model]] = {
    "http": http_model,
    "replay": replay_model,
}
