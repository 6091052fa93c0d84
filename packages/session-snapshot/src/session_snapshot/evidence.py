"""What a run shows, read from its capture: the facts ``[expect]`` is held against."""

import re
from collections.abc import Iterable, Iterator, Sequence

from llm_dialects.chunks import TextBlock, ToolCallBlock
from llm_dialects.entries import Entry, Throw
from llm_dialects.requests import Request, ToolResultPart
from llm_replay import SessionLog

from session_snapshot.calls import LiveCall
from session_snapshot.expect import Facts, blocks, check_expect
from session_snapshot.invariants import rewrites
from session_snapshot.protocols import PROTOCOLS, AgentProtocol
from session_snapshot.run import Capture
from session_snapshot.suites import Loaded
from session_snapshot.surfaces import sent_calls

EXIT_CODE = re.compile(r"\[exit code: (-?\d+)\]|\bexit code:? (-?\d+)", re.IGNORECASE)
"""How agents tell the model a command's exit code."""


def intent_breaches(loaded: Loaded, capture: Capture) -> list[str]:
    """Where a run is not what ``[expect]`` says, as sentences."""
    foreign = loaded.agent.persistence.format != "session-snapshot"
    compactions = max(rewrites(sent_calls(capture.calls)), logged_compactions(capture.logs))
    protocol = PROTOCOLS[loaded.agent.protocol]
    return check_expect(loaded.scenario.expect, facts_of_run(capture, protocol, compactions, foreign))


def facts_of_run(capture: Capture, protocol: AgentProtocol, compactions: int, foreign: bool) -> Facts:
    """The facts of one run. Of a ``foreign`` agent a failed tool call counts as exit code 1: it may tell none."""
    frames = [frame.value for frame in capture.frames]
    failures = protocol.failed_tools(frames) if foreign else 0
    entries = [call.entry for call in capture.calls if call.entry is not None]
    return Facts(
        tools=tools_of(entries),
        answer="".join(protocol.text_of(frame) for frame in frames),
        model_calls=len(capture.calls),
        error_codes=[entry.code for entry in entries if isinstance(entry, Throw)],
        exit_codes=exit_codes(capture.calls) + [1] * failures,
        stop_reason=capture.stop_reasons[-1] if capture.stop_reasons else None,
        compactions=compactions,
    )


def logged_compactions(logs: Iterable[SessionLog]) -> int:
    """How many compactions the agent's own logs tell of, those that failed left out.

    What a compaction leaves may be nothing but a summary. Seen from outside that is the opening of a conversation, not
    a history rewritten.
    """
    events = (event for log in logs for event in log.events)
    return sum(event.type == "compaction/end" and "error" not in event.data for event in events)


def tools_of(entries: Iterable[Entry]) -> list[str]:
    """The tools the model called, as read from its chunks."""
    return [block.name for entry in entries for block in blocks(entry) if isinstance(block, ToolCallBlock)]


def exit_codes(calls: Sequence[LiveCall]) -> list[int]:
    """The exit codes told to the model, each tool result once."""
    told: dict[str, int] = {}
    for call in calls:
        for part in tool_results(call.request):
            for code in codes_in(part):
                told[part.call_id] = code
    return list(told.values())


def tool_results(request: Request) -> Iterator[ToolResultPart]:
    """Every tool result in a request's history."""
    for message in request.messages:
        for part in message.content:
            if isinstance(part, ToolResultPart):
                yield part


def codes_in(part: ToolResultPart) -> Iterator[int]:
    """The exit code at the end of a tool result, where it tells one."""
    text = "\n".join(block.text for block in part.content if isinstance(block, TextBlock))
    last = text.rstrip().rsplit("\n", 1)[-1]
    for match in EXIT_CODE.finditer(last):
        yield int(match[1] or match[2])
