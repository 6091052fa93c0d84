"""One question to the model, asked again where the first attempts came to nothing."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from llm_dialects import Request, StreamChunk

from acp_agent.config import ModelConfig
from acp_agent.errors import ModelError
from acp_agent.model import Model
from acp_agent.opening import Opening

OnRetry = Callable[[ModelError, int, int], None]
"""Called before a wait with the failure, the number of the coming retry (from 1) and the delay in milliseconds."""


async def ask(
    model: Model, request: Request, session_key: str, config: ModelConfig, on_retry: OnRetry
) -> AsyncGenerator[StreamChunk, None]:
    """Yield the answer's chunks. A failure of an answer that has said nothing is retried, if waiting can mend it.

    Of an attempt that is made again no chunk is yielded; of the last one all are.

    Raises:
        ModelError: the last attempt's failure; an answer without content is one.
    """
    for retry in range(1, config.retries + 2):
        opening = Opening()
        try:
            async with aclosing(model.stream(request, session_key)) as chunks:
                async for chunk in chunks:
                    for ready in opening.add(chunk):
                        yield ready
            return
        except ModelError as failure:
            if opening.over or retry > config.retries or failure.code not in RETRYABLE:
                for held in opening.held:
                    yield held
                raise
            delay_ms = delay_before(retry, failure, config)
            on_retry(failure, retry, delay_ms)
        await asyncio.sleep(delay_ms / 1000)


def delay_before(retry: int, failure: ModelError, config: ModelConfig) -> int:
    """Return how many milliseconds to wait before a retry: as long as the provider asks for, within bounds."""
    asked = min(failure.retry_after_ms or 0, config.retry_after_max_ms)
    return max(config.backoff_ms << (retry - 1), asked)


RETRYABLE = frozenset({"RATE_LIMIT", "SERVER_ERROR", "UNAVAILABLE", "OVERLOADED", "TIMEOUT", "STREAM_CLOSED"})
