"""Boot a real agent, drive it, replay its model, compare everything that came out."""

from session_snapshot.errors import AgentError, FixtureError, Refused
from session_snapshot.mode import Mode, mode_from
from session_snapshot.report import Failure, Report, format_report

__all__ = ["AgentError", "Failure", "FixtureError", "Mode", "Refused", "Report", "format_report", "mode_from"]
