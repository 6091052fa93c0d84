"""Protocols an agent may speak: steps <-> messages, one module each. ``agent.toml`` names one by its key in
PROTOCOLS."""

from types import ModuleType

from session_snapshot.protocols import acp

PROTOCOLS: dict[str, ModuleType] = {"acp": acp}
