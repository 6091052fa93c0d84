"""A model provider in a box: performs action values over HTTP and SSE."""

from llm_mock_server.admission import HttpRequest
from llm_mock_server.answer import Unanswerable, entry_reply, failure_reply, stream_head, whole
from llm_mock_server.behaviours import BEHAVIOURS, NAMES, behave
from llm_mock_server.dice import Dice
from llm_mock_server.exchange import ResponderResult
from llm_mock_server.journal import CapturedRequest, Kind, Outcome
from llm_mock_server.listener import RemoteWarning
from llm_mock_server.options import Options, options_from_json
from llm_mock_server.provider import ScriptedProvider
from llm_mock_server.script import Script, read_script, read_upstream, script_from_json
from llm_mock_server.server import MAX_BODY, MockServer, Responder, serve
from llm_mock_server.situation import Behaviour, Situation
from llm_mock_server.threaded import ThreadedServer, serve_in_thread

# fmt: off
__all__ = [
    "BEHAVIOURS", "MAX_BODY", "NAMES", "Behaviour", "CapturedRequest", "Dice", "HttpRequest",
    "Kind", "MockServer", "Options", "Outcome", "RemoteWarning", "Responder", "ResponderResult", "Script",
    "ScriptedProvider", "Situation", "ThreadedServer", "Unanswerable", "behave", "entry_reply", "failure_reply",
    "options_from_json", "read_script", "read_upstream", "script_from_json", "serve", "serve_in_thread",
    "stream_head", "whole",
]
