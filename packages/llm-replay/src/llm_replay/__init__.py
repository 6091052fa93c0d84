"""A recorded session, told again: derive the script, bind live calls to it, prove it consumed."""

from llm_replay.derive import Script, Unfinished, demand_finished, derive_calls, derive_replay_script, derive_scripts
from llm_replay.difference import Difference, diff_json, format_difference
from llm_replay.errors import FixtureError
from llm_replay.override import apply_override, parse_override
from llm_replay.session_log import Event, SessionLog, check_live, format_fixture, parse_log

__all__ = [
    "Difference",
    "Event",
    "FixtureError",
    "Script",
    "SessionLog",
    "Unfinished",
    "apply_override",
    "check_live",
    "demand_finished",
    "derive_calls",
    "derive_replay_script",
    "derive_scripts",
    "diff_json",
    "format_difference",
    "format_fixture",
    "parse_log",
    "parse_override",
]
