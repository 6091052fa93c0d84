"""Whose fault it is: ``FixtureError`` (the committed files are wrong) or ``AgentError`` (the agent misbehaved).

Anything else that escapes the harness is a defect of the harness.
"""

from llm_replay import FixtureError

__all__ = ["AgentError", "FixtureError", "Refused"]


class AgentError(Exception):
    """The agent under test did something it must not: ``what`` in a sentence, and what to do about it."""

    def __init__(self, what: str, mend: str = "") -> None:
        """Keep the parts; ``str()`` shows both, the mend as the last line."""
        super().__init__(f"{what}\nmend: {mend}" if mend else what)
        self.what = what
        self.mend = mend


class Refused(Exception):
    """A command that will not be done as asked (no key, under CI, unknown name); the last line says what to do."""

    def __init__(self, what: str, mend: str = "") -> None:
        """Keep the parts; ``str()`` shows both, the mend as the last line."""
        super().__init__(f"{what}\nmend: {mend}" if mend else what)
