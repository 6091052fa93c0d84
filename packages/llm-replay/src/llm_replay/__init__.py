"""A recorded session, told again: derive the script, bind live calls to it, prove it consumed."""

# isort: skip_file
# fmt: off
from llm_replay.adapter import ReplayAdapter, ReplayedProviderError, UnrecordedCallError
from llm_replay.calls import Header, RecordedCall, Recording
from llm_replay.derive import Script, Unfinished, demand_finished, derive_calls, derive_replay_script, derive_scripts
from llm_replay.difference import Difference, diff_json, format_difference
from llm_replay.errors import FixtureError
from llm_replay.files import child_logs, load_log, load_recording, load_scenario_recording, load_scripts
from llm_replay.override import Override, apply_override, parse_override
from llm_replay.player import Outcome, Player, Repeated, Served, Unrecorded
from llm_replay.recording import Rows, build_recording
from llm_replay.request_rows import (
    RequestRow, Rewrite, format_rows, parse_rows, requests_to_rows, row_to_json, rows_to_requests,
)
from llm_replay.session_log import Event, SessionLog, check_live, format_fixture, parse_log
from llm_replay.tree import Lineage, Said, lineage

__all__ = [
    "Difference", "Event", "FixtureError", "Header", "Lineage", "Outcome", "Override", "Player", "RecordedCall",
    "Recording", "Repeated", "ReplayAdapter", "ReplayedProviderError", "RequestRow", "Rewrite", "Rows", "Said",
    "Script", "Served", "SessionLog", "Unfinished", "Unrecorded", "UnrecordedCallError", "apply_override",
    "build_recording", "check_live", "child_logs", "demand_finished", "derive_calls", "derive_replay_script",
    "derive_scripts", "diff_json", "format_difference", "format_fixture", "format_rows", "lineage", "load_log",
    "load_recording", "load_scenario_recording", "load_scripts", "parse_log", "parse_override", "parse_rows",
    "requests_to_rows", "row_to_json", "rows_to_requests",
]
