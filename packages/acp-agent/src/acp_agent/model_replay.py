"""The replay seam: ``llm_replay`` tells a recording again in this process, no HTTP in between."""

from collections.abc import AsyncGenerator, Mapping

from llm_dialects import Dialect, ProviderError, Request, StreamChunk, status_of
from llm_replay import FixtureError, ReplayAdapter, ReplayedProviderError

from acp_agent.errors import ConfigError, ModelError


class ReplayModel:
    """A recording named by ``SNAPSHOT_FILE`` and its companions; a ``Model``.

    A request is asked as the provider would get it: what the dialect cannot say (that a tool result is an error, in
    openai-chat) was not recorded either.
    """

    def __init__(self, environment: Mapping[str, str], dialect: Dialect) -> None:
        self._dialect = dialect
        try:
            self._adapter = ReplayAdapter.from_environment(environment)
        except FixtureError as error:
            raise ConfigError(error.what, str(error.path), error.line, error.mend or "") from None

    async def stream(self, request: Request, session_key: str) -> AsyncGenerator[StreamChunk, None]:
        """Yield what was recorded for this request. A failure before any chunk has the status a provider gives it."""
        begun = False
        try:
            async for chunk in self._adapter.stream(self._as_sent(request), session_key):
                begun = True
                yield chunk
        except ReplayedProviderError as error:
            status = None if begun else status_of(ProviderError(error.code, error.message, error.status))
            raise ModelError(error.code, error.message, status) from None

    def _as_sent(self, request: Request) -> Request:
        return self._dialect.parse_request(self._dialect.render_request(request))

    async def aclose(self) -> None:
        """Report what was consumed and what was not."""
        self._adapter.write_report()
