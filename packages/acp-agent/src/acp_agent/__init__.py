"""A small coding agent that speaks ACP (Agent Client Protocol) on stdio; ``acp-agent`` starts it."""

__version__ = "0.1.0"

__all__ = ["__version__"]
