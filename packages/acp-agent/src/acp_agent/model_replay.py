"""The replay seam: ``llm_replay`` tells a recording again in this process, no HTTP in between."""

from collections.abc import AsyncGenerator

from llm_dialects import Request, StreamChunk
from llm_replay import adapter

from acp_agent.errors import ModelError


class ReplayModel:
    """A recording named by ``SNAPSHOT_FILE`` and its companions; a ``Model``."""

    async def stream(self, request: Request, session_key: str) -> AsyncGenerator[StreamChunk, None]:
        """Yield what was recorded for this request."""
        try:
            async for chunk in adapter.stream(request, session_key):
                yield chunk
        except adapter.ReplayedProviderError as error:
            raise ModelError(error.code, error.message, error.status) from None

    async def aclose(self) -> None:
        """Report what was consumed and what was not."""
        adapter.write_report()
