"""One question to the model, asked again where the first attempts came to nothing."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from llm_dialects import Request, StreamChunk

from acp_agent.config import ModelConfig
from acp_agent.errors import ModelError
from acp_agent.model import Model

OnRetry = Callable[[ModelError, int, int], None]
"""Called before a wait with the failure, the number of the coming retry (from 1) and the delay in milliseconds."""


async def ask(
    model: Model, request: Request, session_key: str, config: ModelConfig, on_retry: OnRetry
) -> AsyncGenerator[StreamChunk, None]:
    """Yield the answer's chunks. A failure before the first chunk is retried, if waiting can mend it.

    Raises:
        ModelError: the last attempt's failure.
    """
    for retry in range(1, config.retries + 2):
        begun = False
        try:
            async with aclosing(model.stream(request, session_key)) as chunks:
                async for chunk in chunks:
                    begun = True
                    yield chunk
            return
        except ModelError as failure:
            if begun or retry > config.retries or failure.code not in RETRYABLE:
                raise
            delay_ms = config.backoff_ms * 2 ** (retry - 1)
            on_retry(failure, retry, delay_ms)
        await asyncio.sleep(delay_ms / 1000)


RETRYABLE = frozenset({"RATE_LIMIT", "SERVER_ERROR", "UNAVAILABLE", "OVERLOADED", "TIMEOUT", "STREAM_CLOSED"})
