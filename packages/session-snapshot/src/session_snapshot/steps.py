"""The script of a scenario, ``input.json``: one struct per op, and the union ``Step``, their table.

The ops keep the names of the systems they come from (DESIGN section 4). Strings may hold ``{{sessionId}}``,
``{{sessionId:alias}}``, ``{{cwd}}`` and captured variables.
"""

import json
import re
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from session_snapshot.errors import FixtureError
from session_snapshot.strict import line_of, parse_json

PermissionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always", "cancelled"]

EventType = Literal[
    "turn/start", "turn/end", "step/start", "step/end", "user/message", "assistant/chunk", "assistant/message",
    "tool/call", "tool/result", "request/header", "request/context", "approval/asked", "approval/decided",
    "compaction/start", "compaction/summary", "compaction/prune", "compaction/end", "llm/call", "llm/retry", "llm/aux",
    "subagent/descriptor", "session/title", "session/end-seed",
]  # fmt: skip
"""The events of a session log (DESIGN section 5)."""


class Closed(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A JSON object that holds no other keys."""


class PermissionAnswer(Closed, frozen=True):
    """The answer to the next permission request, first in first out."""

    kind: PermissionKind


class UpdatePattern(Closed, frozen=True):
    """A ``session/update`` of ``kind`` whose JSON text holds ``contains``."""

    kind: str = ""
    contains: str = ""


class FilePattern(Closed, frozen=True):
    """A file under the run's cwd that exists (and holds ``contains``)."""

    path: str
    contains: str = ""


class Op(Closed, frozen=True, tag_field="op", kw_only=True):
    """What every step may say: ``session``, the alias of the session it is about (the last one by default)."""

    session: str = ""


class Initialize(Op, frozen=True, tag="initialize"):
    """Open the connection; the client's capabilities are those of ``agent.toml``."""


class Authenticate(Op, frozen=True, tag="authenticate"):
    """Choose an authentication method."""

    method_id: str


class NewSession(Op, frozen=True, tag="newSession", kw_only=True):
    """Open a session in the run's cwd; ``as`` names it."""

    as_: str = field(default="", name="as")
    cwd: str = "{{cwd}}"
    additional_directories: list[str] = []
    mcp_servers: list[Any] = []


class NewSessionExpectError(Op, frozen=True, tag="newSessionExpectError", kw_only=True):
    """Opening a session must be refused (with ``code`` where given)."""

    cwd: str = "{{cwd}}"
    additional_directories: list[str] = []
    mcp_servers: list[Any] = []
    code: int | None = None


class LoadSession(Op, frozen=True, tag="loadSession"):
    """Load an earlier session, with its history replayed as updates."""

    mcp_servers: list[Any] = []


class ResumeSession(Op, frozen=True, tag="resumeSession"):
    """Resume an earlier session without its history."""

    mcp_servers: list[Any] = []


class CloseSession(Op, frozen=True, tag="closeSession"):
    """Close a session."""


class SetMode(Op, frozen=True, tag="setMode", kw_only=True):
    """Switch the session's mode."""

    mode_id: str


class SetModel(Op, frozen=True, tag="setModel", kw_only=True):
    """Switch the session's model."""

    model_id: str


class SetConfigOption(Op, frozen=True, tag="setConfigOption", kw_only=True):
    """Set one of the session's config options."""

    config_id: str
    value: str


class Prompt(Op, frozen=True, tag="prompt", kw_only=True):
    """Send a text prompt and await its response; ``background`` goes on at once (``waitForTurnEnd`` awaits it)."""

    text: str
    background: bool = False


class PromptContent(Op, frozen=True, tag="promptContent", kw_only=True):
    """Send a prompt of ACP content blocks."""

    content: list[Any]


class PromptExpectError(Op, frozen=True, tag="promptExpectError", kw_only=True):
    """Send a text prompt that must be answered by an error (with ``code`` where given)."""

    text: str
    code: int | None = None


class PromptAndCancel(Op, frozen=True, tag="promptAndCancel", kw_only=True):
    """Send a text prompt, wait (for a file, an update, else for a model call in flight), cancel, await the response."""

    text: str
    wait_for_file: FilePattern | None = None
    wait_for_update: UpdatePattern | None = None


class PromptAndWaitForAgentMessage(Op, frozen=True, tag="promptAndWaitForAgentMessage", kw_only=True):
    """Send a text prompt; await its response and an agent message whose text is exactly ``waitForText``."""

    text: str
    wait_for_text: str


class Cancel(Op, frozen=True, tag="cancel"):
    """Cancel the session's turn, after the file is there where one is named."""

    wait_for_file: FilePattern | None = None


class WaitForFile(Op, frozen=True, tag="waitForFile", kw_only=True):
    """Wait for a file under the run's cwd."""

    path: str
    contains: str = ""


class WaitForTurnStart(Op, frozen=True, tag="waitForTurnStart"):
    """Wait until the session's prompt shows life: an update or a model call after it."""


class WaitForTurnEnd(Op, frozen=True, tag="waitForTurnEnd"):
    """Wait for the response of every prompt of the session that is still open."""


class WaitForUpdate(Op, frozen=True, tag="waitForUpdate", kw_only=True):
    """Wait for a ``session/update`` that no earlier ``waitForUpdate`` has taken."""

    kind: str = ""
    contains: str = ""


class WaitForEvent(Op, frozen=True, tag="waitForEvent", kw_only=True):
    """Wait for an event in the session's own log (``[persistence] log``) that no earlier ``waitForEvent`` has taken.

    ``contains`` is a text that the JSON of its data holds.
    """

    type: EventType
    contains: str = ""


class WaitForSubagentTurnEnd(Op, frozen=True, tag="waitForSubagentTurnEnd"):
    """Wait until a sub-agent of the session is between turns and has ended ``minimumTurn`` of them, by its own log.

    ``child`` counts the session's sub-agents by their creation, from 1. What it inherited of its parent does not count.
    """

    child: Annotated[int, Meta(ge=1)] = 1
    minimum_turn: Annotated[int, Meta(ge=1)] = 1


class WriteFile(Op, frozen=True, tag="writeFile", kw_only=True):
    """Write a file under the run's cwd, as a person beside the agent would."""

    path: str
    text: str


class RemoveFile(Op, frozen=True, tag="removeFile", kw_only=True):
    """Remove a file under the run's cwd."""

    path: str


class SendRaw(Op, frozen=True, tag="sendRaw", kw_only=True):
    """Send a line as it is (malformed or foreign); with ``replies`` wait for that many frames from the agent."""

    text: str
    replies: int = 0


class Restart(Op, frozen=True, tag="restart"):
    """Stop the agent gracefully and boot it again in the same sandbox."""


class Kill(Op, frozen=True, tag="kill"):
    """Kill the agent's whole process tree; the next step is ``restart`` or the end."""


Step = (
    Initialize
    | Authenticate
    | NewSession
    | NewSessionExpectError
    | LoadSession
    | ResumeSession
    | CloseSession
    | SetMode
    | SetModel
    | SetConfigOption
    | Prompt
    | PromptContent
    | PromptExpectError
    | PromptAndCancel
    | PromptAndWaitForAgentMessage
    | Cancel
    | WaitForFile
    | WaitForTurnStart
    | WaitForTurnEnd
    | WaitForUpdate
    | WaitForEvent
    | WaitForSubagentTurnEnd
    | WriteFile
    | RemoveFile
    | SendRaw
    | Restart
    | Kill
)


class Script(Closed, frozen=True):
    """The whole of ``input.json``: the steps in order, and the answers to permission requests, all of which are used.

    ``$schema`` is for editors (``docs/schema/input.schema.json``) and means nothing to the harness.
    """

    steps: list[Step]
    permission_answers: list[PermissionAnswer] = []
    schema: str = field(default="", name="$schema")


SCRIPT = "input.json"
"""The script's name in a scenario's folder, and in errors that do not know the folder."""

LOG_OPS: tuple[type[Op], ...] = (WaitForEvent, WaitForSubagentTurnEnd)
"""Ops that read the agent's own session log."""


def parse_script(text: str, path: str) -> Script:
    """Read ``input.json``.

    Raises:
        FixtureError: not JSON, an unknown op, key or event type (nearest named), no step at all.
    """
    script = parse_json(text, path, Script)
    if not script.steps:
        raise FixtureError("a script without steps proves nothing", path, line_of(text, "steps"), "add steps")
    return script


def refuse_log_ops(script: Script, text: str, path: str) -> None:
    """Refuse the ops that read a session log where the agent declares none.

    Raises:
        FixtureError: the script has one.
    """
    for index, step in enumerate(script.steps):
        if isinstance(step, LOG_OPS):
            what = f"{op_of(step)} reads the agent's own session log, and agent.toml declares none"
            mend = 'set [persistence] format = "session-snapshot" and log = ..., or use waitForUpdate or waitForFile'
            raise FixtureError(what, path, step_line(text, index), mend)


def step_line(text: str, index: int) -> int:
    """The line of ``input.json`` (from 1) on which a step begins; the text is one that :func:`parse_script` takes."""
    found = STEPS_BEGIN.search(text)
    assert found is not None
    start = end = found.end()
    for _ in range(index + 1):
        start = end + len(text[end:]) - len(text[end:].lstrip(" \t\r\n,"))
        _, end = json.JSONDecoder().raw_decode(text, start)
    return text.count("\n", 0, start) + 1


STEPS_BEGIN = re.compile(r'"steps"\s*:\s*\[')
"""Inside a string the quotes would be escaped, so this is the member itself."""


def op_of(step: Step) -> str:
    """The op's name as ``input.json`` writes it."""
    return str(step.__struct_config__.tag)
