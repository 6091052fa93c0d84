"""The agent as a client sees it: ACP's methods over a connection. What a prompt does stands in ``turn``."""

import asyncio
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, assert_never

import msgspec
from llm_dialects import DIALECTS, ImagePart, Message, Part, TextBlock
from msgspec import Struct

from acp_agent import __version__, acp
from acp_agent.config import Config
from acp_agent.connection import Connection
from acp_agent.errors import RpcError
from acp_agent.history import past_messages, past_turns, past_updates, repairs
from acp_agent.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Answer,
    Call,
    Id,
    Malformed,
    Notice,
    answer_line,
    error_line,
    notice_line,
    read_message,
)
from acp_agent.meter import Meter
from acp_agent.model import open_model
from acp_agent.prompt import system_prompt
from acp_agent.session import Session
from acp_agent.session_log import BrokenLog, Event, SessionLog, create_log, reopen_log
from acp_agent.tool_bash import allowed_environment
from acp_agent.toolbox import ToolContext
from acp_agent.tools import offered_tools
from acp_agent.turn import End, Services, Turn
from acp_agent.world import World

Json = Any


class AcpClient:
    """The client behind the connection; a ``turn.Client``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def update(self, session_id: str, update: Json) -> None:
        """Send a ``session/update``."""
        self._connection.send(notice_line("session/update", {"sessionId": session_id, "update": update}))

    async def request_permission(self, params: Json) -> acp.Outcome:
        """Ask the user; a refusal to answer, or an answer that is none, is ``cancelled``."""
        try:
            result = await self._connection.call("session/request_permission", params)
            return msgspec.convert(result, acp.PermissionAnswer).outcome
        except (RpcError, msgspec.ValidationError) as error:
            print(f"acp-agent: no answer to a permission request: {error}", file=sys.stderr)  # noqa: T201
            return acp.Outcome(outcome="cancelled")


class Agent:
    """All sessions of one process."""

    def __init__(
        self, config: Config, root: Path, connection: Connection, world: World, environment: Mapping[str, str]
    ) -> None:
        self._config, self._root, self._connection, self._world = config, root, connection, world
        self._client = AcpClient(connection)
        allowed = allowed_environment(environment, config.tools.environment)
        self._services = Services(config, open_model(config.model, environment), self._client, world, allowed)
        self._sessions: dict[str, Session] = {}
        self._turns: dict[str, Turn] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serve the client until it closes the pipe (or the connection is stopped), then end what still runs."""
        async for line in self._connection.lines():
            self._receive(line)
        for turn in self._turns.values():
            turn.cancel("shutdown")
        await asyncio.gather(*self._tasks)
        for session in self._sessions.values():
            session.log.close()
        await self._services.model.aclose()

    def _receive(self, line: bytes) -> None:
        """Act on one line; nothing a client sends ends the agent."""
        message = read_message(line)
        match message:
            case Call(id=id, method=method, params=params):
                self._call(id, method, params)
            case Notice(method="session/cancel", params=params):
                self._cancel(params)
            case Notice():
                pass
            case Answer():
                self._connection.settle(message)
            case Malformed(id=id, code=code, message=text):
                self._connection.send(error_line(id, code, text))
            case _:
                assert_never(message)

    def _call(self, id: Id, method: str, params: Json) -> None:
        """Answer a request, or begin to."""
        try:
            if method not in METHODS:
                raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}")
            row = METHODS[method]
            result = row.answer(self, id, converted(params, row.params))
            if result is not LATER:
                self._connection.send(answer_line(id, result))
        except RpcError as error:
            self._connection.send(error_line(id, error.code, error.message, error.data))
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            self._connection.send(error_line(id, INTERNAL_ERROR, f"Internal error: {error}"))

    def _cancel(self, params: Json) -> None:
        """End the turn of a session, if one runs; a notification has no one to tell about an error."""
        session_id = params.get("sessionId") if isinstance(params, dict) else None
        if isinstance(session_id, str) and session_id in self._turns:
            self._turns[session_id].cancel("user")

    # ── Methods ─────────────────────────────────────────────────────────────────────────────────────────────────

    def initialize(self, _id: Id, _params: acp.InitializeParams) -> Json:
        """Say what this agent can do. There is one protocol version; a client that cannot speak it goes away."""
        return acp.initialize_result(__version__)

    def authenticate(self, _id: Id, _params: acp.AuthenticateParams) -> Json:
        """Nothing to do: the provider's key is the environment's business."""
        return {}

    def new_session(self, _id: Id, params: acp.NewSessionParams) -> Json:
        """Start a conversation and its log."""
        cwd = checked_cwd(params)
        session_id = self._world.new_id()
        self._add_session(session_id, cwd, create_log(self._root, session_id, str(cwd), self._world.now_ms))
        return {"sessionId": session_id, "modes": acp.mode_state("default")}

    def load_session(self, _id: Id, params: acp.LoadSessionParams) -> Json:
        """Continue a stored conversation: mend its log, show it to the client."""
        cwd = checked_cwd(params)
        session_id = params.session_id
        if session_id in self._turns:
            raise RpcError(INVALID_REQUEST, f"Invalid request: a prompt is running in session {session_id}")
        log, events = self._stored_log(session_id)
        session = self._add_session(session_id, cwd, log, resumed=True)
        events += [log.append(repair.type, **repair.data) for repair in repairs(events)]
        session.messages, session.turns = past_messages(events), past_turns(events)
        for update in past_updates(events, self._tool_context(session)):
            self._client.update(session_id, update)
        return {"modes": acp.mode_state(session.mode)}

    def set_mode(self, _id: Id, params: acp.SetModeParams) -> Json:
        """Switch between the modes of ``acp.MODES``."""
        session = self._session(params.session_id)
        if params.mode_id not in {id for id, _, _ in acp.MODES}:
            raise RpcError(INVALID_PARAMS, f"Invalid params: unknown mode {params.mode_id!r}")
        session.mode = params.mode_id
        return {}

    def prompt(self, id: Id, params: acp.PromptParams) -> Json:
        """Begin a turn; its end is the answer."""
        session = self._session(params.session_id)
        if session.id in self._turns:
            raise RpcError(INVALID_REQUEST, f"Invalid request: a prompt is running in session {session.id}")
        message = Message(role="user", content=tuple(prompt_part(block) for block in params.prompt))
        turn = self._turns[session.id] = Turn(session, message, self._services)
        task = asyncio.create_task(self._run_turn(id, session, turn))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return LATER

    # ── Helpers ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _run_turn(self, id: Id, session: Session, turn: Turn) -> None:
        """Carry a turn through and answer its prompt."""
        try:
            line = turn_answer(id, await turn.run())
        except Exception as error:  # the log itself cannot be written
            traceback.print_exc(file=sys.stderr)
            line = error_line(id, INTERNAL_ERROR, f"Internal error: turn failed: {error}", {"code": "INTERNAL"})
        del self._turns[session.id]
        self._connection.send(line)

    def _session(self, session_id: str) -> Session:
        """Return an open session."""
        if session_id not in self._sessions:
            raise RpcError(INVALID_PARAMS, f"Invalid params: unknown session {session_id!r}")
        return self._sessions[session_id]

    def _add_session(self, session_id: str, cwd: Path, log: SessionLog, *, resumed: bool = False) -> Session:
        """Make a session one of ours."""
        system, tools = system_prompt(str(cwd), self._world.today()), offered_tools(self._config.tools.enabled)
        if session_id in self._sessions:
            self._sessions[session_id].log.close()
        meter = Meter(DIALECTS[self._config.model.dialect])
        session = self._sessions[session_id] = Session(session_id, cwd, log, system, tools, meter, resumed=resumed)
        return session

    def _stored_log(self, session_id: str) -> tuple[SessionLog, list[Event]]:
        """Open the log of a stored session."""
        if not session_id or Path(session_id).name != session_id:
            raise RpcError(INVALID_PARAMS, f"Invalid params: unknown session {session_id!r}")
        try:
            return reopen_log(self._root, session_id, self._world.now_ms)
        except FileNotFoundError:
            raise RpcError(INVALID_PARAMS, f"Invalid params: unknown session {session_id!r}") from None
        except BrokenLog as error:
            raise RpcError(INTERNAL_ERROR, f"Internal error: {error}") from None

    def _tool_context(self, session: Session) -> ToolContext:
        return ToolContext(session.cwd, session.spill, self._config.tools, self._services.environment)


class Method(Struct, frozen=True):
    """One request that clients make: the type of its params, and what answers it."""

    params: type[Struct]
    answer: Callable[[Agent, Id, Any], Json]


def converted(params: Json, type: type[Struct]) -> Struct:
    """Read params as what the method takes."""
    try:
        return msgspec.convert(params, type)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {error}") from None


def checked_cwd(params: acp.NewSessionParams) -> Path:
    """Return the session's directory; refuse what this agent cannot do rather than leave it out in silence."""
    if params.mcp_servers:
        raise RpcError(INVALID_PARAMS, "Invalid params: mcpServers are not supported")
    if params.additional_directories:
        raise RpcError(INVALID_PARAMS, "Invalid params: additionalDirectories are not supported")
    cwd = Path(params.cwd)
    if not cwd.is_absolute() or not cwd.is_dir():
        raise RpcError(INVALID_PARAMS, f"Invalid params: cwd is not an absolute path of a directory: {params.cwd}")
    return cwd


def prompt_part(block: acp.ContentBlock) -> Part:
    """Return what the model is told of one content block of a prompt."""
    match block:
        case acp.TextContent(text=text):
            return TextBlock(text=text)
        case acp.ImageContent(data=data, mime_type=mime_type):
            return ImagePart(media_type=mime_type, data=data)
        case acp.ResourceLink(name=name, uri=uri):
            return TextBlock(text=f"[{name}]({uri})")
        case acp.EmbeddedResource(resource=resource):
            return TextBlock(text=f'<resource uri="{resource.uri}">\n{resource.text}\n</resource>')
        case _:
            assert_never(block)


def turn_answer(id: Id, end: End) -> bytes:
    """Return the answer to a prompt whose turn has ended."""
    if end.stop is not None:
        return answer_line(id, {"stopReason": end.stop})
    message = f"Internal error: turn failed: {end.reason['message']}"
    return error_line(id, INTERNAL_ERROR, message, {"code": end.reason["code"]})


LATER = object()
"""What a method returns whose answer comes later."""

METHODS: dict[str, Method] = {
    "initialize": Method(acp.InitializeParams, Agent.initialize),
    "authenticate": Method(acp.AuthenticateParams, Agent.authenticate),
    "session/new": Method(acp.NewSessionParams, Agent.new_session),
    "session/load": Method(acp.LoadSessionParams, Agent.load_session),
    "session/prompt": Method(acp.PromptParams, Agent.prompt),
    "session/set_mode": Method(acp.SetModeParams, Agent.set_mode),
}
