"""A conversation: its directory, its history as the model sees it, and the log all of it goes into."""

from pathlib import Path

from llm_dialects import Json, Message, Request, Tool, to_json

from acp_agent.config import ModelConfig
from acp_agent.meter import Meter
from acp_agent.model_params import request_params
from acp_agent.session_log import SessionLog


class Session:
    """One conversation. ``messages`` is what the next model call says; ``mode`` is one of ``acp.MODES``.

    ``meter`` counts how full its context is.
    """

    def __init__(
        self,
        id: str,
        cwd: Path,
        log: SessionLog,
        system: str,
        tools: tuple[Tool, ...],
        meter: Meter,
        *,
        resumed: bool = False,
    ) -> None:
        self.id, self.cwd, self.log = id, cwd, log
        self.mode = "default"
        self.messages: list[Message] = []
        self.turns = 0
        self.meter = meter
        self.remembered: dict[str, str] = {}
        self._system, self._tools = system, tools
        self._header: Json = None
        self._header_reason = "resume" if resumed else "initial"

    @property
    def spill(self) -> Path:
        """The folder for outputs too long to tell."""
        return self.log.path.parent / "spill"

    def request(self, config: ModelConfig) -> Request:
        """Return the next question to the model; logs its header where that is not the last one's."""
        self._log_header(config)
        return self.context(config)

    def context(self, config: ModelConfig) -> Request:
        """Return what the next question would be, for counting."""
        return Request(
            system=(self._system,), tools=self._tools, messages=tuple(self.messages), params=request_params(config)
        )

    def shorten(self, count: int, message: Message) -> None:
        """Put ``message`` in the place of the first ``count`` messages."""
        self.messages[:count] = [message]
        self.meter.forget()

    def _log_header(self, config: ModelConfig) -> None:
        """Record what stands before the messages, once and whenever it changes."""
        told: dict[str, Json] = {"dialect": config.dialect, "model": config.name, "maxTokens": config.max_tokens}
        if config.temperature is not None:
            told["temperature"] = config.temperature
        header = {"config": told, "system": self._system, "tools": [to_json(tool) for tool in self._tools]}
        if header != self._header:
            self.log.append("request/header", header=header, reason=self._header_reason)
            self._header, self._header_reason = header, "change"
