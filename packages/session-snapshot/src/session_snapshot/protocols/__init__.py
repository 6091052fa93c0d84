"""Protocols an agent may speak: steps <-> messages, one module each. ``agent.toml`` names one by its key in
PROTOCOLS."""

from session_snapshot.protocols import acp
from session_snapshot.protocols.agent_protocol import AgentProtocol

__all__ = ["PROTOCOLS", "AgentProtocol"]

PROTOCOLS: dict[str, AgentProtocol] = {"acp": acp}
