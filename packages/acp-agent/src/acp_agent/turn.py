"""The turn loop: from a prompt to the end of the answer, tool calls between.

A ``Turn`` writes everything to the log before it tells the client. However it ends, ``_settle`` leaves a history that a
provider accepts: what was said stands in it, and every tool call in it has a result.
"""

import asyncio
import sys
import traceback
from collections.abc import Mapping
from contextlib import aclosing
from typing import Literal, Protocol, assert_never, cast

from llm_dialects import (
    Block,
    FinishReason,
    Json,
    Message,
    Request,
    TextBlock,
    ToolCallBlock,
    ToolResultPart,
    Usage,
    to_json,
)
from msgspec import Struct

from acp_agent import acp
from acp_agent.asking import ask
from acp_agent.compacting import OVERFLOW, Compactor
from acp_agent.config import Config
from acp_agent.draft import Draft, finish_of
from acp_agent.errors import ModelError
from acp_agent.meter import input_tokens
from acp_agent.model import Model
from acp_agent.permissions import Allowed, Ask, Refused, chosen, judge, settle
from acp_agent.session import Session
from acp_agent.toolbox import ToolContext, ToolError, ToolOutcome
from acp_agent.tools import ToolUse, describe_call, outcome_content, parse_call, use_tool
from acp_agent.world import World

CancelledBy = Literal["user", "shutdown"]


class Client(Protocol):
    """The editor, as far as a turn needs it."""

    def update(self, session_id: str, update: Json) -> None:
        """Send a ``session/update``."""
        ...

    async def request_permission(self, params: Json) -> acp.Outcome:
        """Ask the user; an answer that makes no sense is ``cancelled``."""
        ...


class Services(Struct, frozen=True):
    """What a turn works with. ``environment`` is what commands may see of it."""

    config: Config
    model: Model
    client: Client
    world: World
    environment: Mapping[str, str]


class End(Struct, frozen=True):
    """How a turn ended: the log's ``turn/end`` reason, and ACP's stop reason (``None``: told as an error)."""

    reason: dict[str, Json]
    stop: str | None


class Turn:
    """One prompt of a session on its way to an answer."""

    def __init__(self, session: Session, prompt: Message, services: Services) -> None:
        self._session, self._prompt, self._services = session, prompt, services
        self._context = ToolContext(session.cwd, session.spill, services.config.tools, environment=services.environment)
        self._turn, self._step, self._in_step = session.turns + 1, 0, False
        self._draft: Draft | None = None
        self._open_calls: list[ToolCallBlock] = []
        self._told_calls: set[str] = set()
        self._work: asyncio.Future[End] | None = None
        self._cancelled_by: CancelledBy | None = None

    async def run(self) -> End:
        """Carry the turn through and return how it ended; no failure but a broken log escapes."""
        self._session.turns = self._turn
        self._session.log.append("turn/start", turn=self._turn)
        end = await self._supervise()
        self._settle()
        self._session.log.append("turn/end", turn=self._turn, reason=end.reason)
        return end

    def cancel(self, by: CancelledBy) -> None:
        """End the turn early; the first reason given stands."""
        self._cancelled_by = self._cancelled_by or by
        if self._work is not None:
            self._work.cancel()

    # ── The loop ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _supervise(self) -> End:
        """Run the steps in a task of their own, which may be cancelled or fail while this turn goes on to its end."""
        self._work = asyncio.ensure_future(self._steps())
        if self._cancelled_by:
            self._work.cancel()
        try:
            return await self._work
        except asyncio.CancelledError:
            return CANCELLED[self._cancelled_by or "shutdown"]
        except ModelError as failure:
            return End({"kind": "error", "code": failure.code, "message": failure.message}, None)
        except Exception as failure:
            traceback.print_exc(file=sys.stderr)
            return End({"kind": "error", "code": "INTERNAL", "message": str(failure) or type(failure).__name__}, None)

    async def _steps(self) -> End:
        """Ask, carry out what the model wants, and ask again until it wants nothing more."""
        for step in range(1, self._services.config.turn.max_steps + 1):
            self._begin_step(step)
            finish = await self._answer()
            if finish.kind in CUT_OFF:
                return CUT_OFF[finish.kind]
            calls = list(self._open_calls)
            for call in calls:
                await self._perform(call)
            self._end_step()
            if not calls:
                return COMPLETED
        return EXHAUSTED

    def _begin_step(self, step: int) -> None:
        """Open a step; the first one takes in the prompt."""
        self._step, self._in_step = step, True
        self._log("step/start")
        if step == 1:
            message_id = self._services.world.new_id()
            content = [to_json(part) for part in self._prompt.content]
            self._session.log.append(
                "user/message", id=message_id, role="user", content=content, source={"kind": "user"}
            )
            if self._prompt.content:
                self._session.messages.append(self._prompt)

    def _end_step(self) -> None:
        """Close the step."""
        self._in_step = False
        self._log("step/end")

    # ── The model's part ────────────────────────────────────────────────────────────────────────────────────────

    async def _answer(self) -> FinishReason:
        """Get one answer. A context that is full is compacted, once: before the call or after it was refused."""
        compactor = Compactor(self._session, self._services.config, self._services.model, self._log, self._log_retry)
        compacted = compactor.due()
        if compacted:
            threshold = self._services.config.compaction.threshold_tokens
            await compactor.run(self._services.world.new_id(), "threshold", thresholdTokens=threshold)
        try:
            return await self._ask()
        except ModelError as failure:
            if compacted and failure.code in OVERFLOW:
                raise still_too_long(failure) from failure
            if self._has_spoken() or not compactor.helps(failure):
                raise
            self._draft = None
            await compactor.run(self._services.world.new_id(), "overflow", failure=told_failure(failure))
        try:
            return await self._ask()
        except ModelError as failure:
            raise still_too_long(failure) if failure.code in OVERFLOW else failure from failure

    def _has_spoken(self) -> bool:
        """Return whether the user has seen something of the answer that is being made."""
        return self._draft is not None and bool(self._draft.partial_texts())

    async def _ask(self) -> FinishReason:
        """Stream one answer to log and client, and keep it."""
        draft = self._draft = Draft(self._services.world.new_id())
        model, config = self._services.model, self._services.config.model
        request = self._session.request(config)
        chunks = ask(model, request, self._session.id, config, self._log_retry)
        async with aclosing(chunks):
            async for chunk in chunks:
                self._log("assistant/chunk", chunk=to_json(chunk))
                shown = draft.add(chunk)
                if shown is not None:
                    self._update(acp.text_update(*shown, message_id=draft.id))
        finish = finish_of(draft)
        self._draft = None
        if draft.blocks():
            self._keep(draft, draft.blocks())
        if draft.usage is not None:
            self._count(draft.usage, request)
        self._open_calls = list(draft.tool_calls())
        return finish

    def _count(self, usage: Usage, asked: Request) -> None:
        """Take in what the provider counted, if it did; tell the client where the size of the window is known."""
        config, meter = self._services.config, self._session.meter
        if not input_tokens(usage):
            return
        meter.hear(usage, asked, self._session.context(config.model))
        if config.compaction.window_tokens and meter.told is not None:
            self._update(acp.usage_update(meter.told, config.compaction.window_tokens))

    def _keep(self, draft: Draft, blocks: tuple[Block, ...], **marks: Json) -> None:
        """Make an answer, or what there is of it, part of the history."""
        message = {"role": "assistant", "content": [to_json(block) for block in blocks], "id": draft.id}
        usage = {} if draft.usage is None else {"usage": to_json(draft.usage)}
        self._log("assistant/message", message=message, **usage, **marks)
        self._session.messages.append(Message(role="assistant", content=blocks))

    # ── The tools' part ─────────────────────────────────────────────────────────────────────────────────────────

    async def _perform(self, call: ToolCallBlock) -> None:
        """Carry out one tool call, from its announcement to its result."""
        self._log("tool/call", callId=call.id, name=call.name, arguments=call.arguments)
        try:
            use, wrong = parse_call(call, self._services.config.tools.enabled), None
        except ToolError as error:
            use, wrong = None, ToolOutcome(error.text, error.code)
        told = describe_call(call, use, self._context)
        self._update({"sessionUpdate": "tool_call", "toolCallId": call.id, "status": "pending"} | told)
        self._told_calls.add(call.id)
        self._finish_call(call, await self._use(use, told) if use else cast("ToolOutcome", wrong))

    async def _use(self, use: ToolUse, told: dict[str, Json]) -> ToolOutcome:
        """Use the tool if it may be used."""
        verdict = judge(use, self._session.mode, self._services.config.permissions.ask, self._session.remembered)
        if isinstance(verdict, Ask):
            verdict = await self._ask_user(use, verdict, told)
        match verdict:
            case Refused(code=code, text=text):
                return ToolOutcome(text, code)
            case Allowed():
                self._update({"sessionUpdate": "tool_call_update", "toolCallId": use.id, "status": "in_progress"})
                return await use_tool(self._context, use)
            case _:
                assert_never(verdict)

    async def _ask_user(self, use: ToolUse, question: Ask, told: dict[str, Json]) -> Allowed | Refused:
        """Put the question to the client; ``cancelled`` ends the turn, as the protocol means it."""
        session, approval = self._session, self._services.world.new_id()
        session.log.append("approval/asked", id=approval, callId=use.id, toolName=use.spec.name, reason=question.reason)
        shown = {"toolCallId": use.id, "status": "pending", "content": [acp.tool_text(question.reason)]} | told
        try:
            outcome = chosen(await self._services.client.request_permission(acp.permission_params(session.id, shown)))
        except asyncio.CancelledError:
            session.log.append("approval/decided", id=approval, outcome="cancelled")
            raise
        session.log.append("approval/decided", id=approval, outcome=outcome)
        if outcome == "cancelled":
            self._cancelled_by = "user"
            raise asyncio.CancelledError
        if outcome.endswith("always"):
            session.remembered[question.kind] = outcome
        return settle(outcome)

    def _finish_call(self, call: ToolCallBlock, outcome: ToolOutcome) -> None:
        """Record a call's result in log and history, and show it where the call was shown."""
        self._open_calls.remove(call)
        failed = outcome.code is not None
        text = TextBlock(text=outcome.text)
        error = {"error": {"code": outcome.code}} if failed else {}
        self._log("tool/result", callId=call.id, content=[to_json(text)], isError=failed, **error)
        result = ToolResultPart(call_id=call.id, content=(text,), is_error=failed)
        self._session.messages.append(Message(role="tool", content=(result,)))
        if call.id in self._told_calls:
            status = "failed" if failed else "completed"
            update = {"sessionUpdate": "tool_call_update", "toolCallId": call.id, "status": status}
            self._update(update | {"content": outcome_content(outcome)})

    # ── The end, and small change ───────────────────────────────────────────────────────────────────────────────

    def _settle(self) -> None:
        """Close what an early end left open. Waits for nothing, so nothing can come between."""
        draft, self._draft = self._draft, None
        if draft is not None and draft.partial_texts():
            self._keep(draft, draft.partial_texts(), interrupted=True)
        for call in list(self._open_calls):
            begun = call.id in self._told_calls
            self._finish_call(call, STOPPED if begun else NOT_STARTED)
        if self._in_step:
            self._end_step()

    def _log(self, type: str, **data: Json) -> None:
        """Append an event of this step."""
        self._session.log.append(type, turn=self._turn, step=self._step, **data)

    def _log_retry(self, failure: ModelError, retry: int, delay_ms: int) -> None:
        """Append that a call failed and is made again."""
        limit = self._services.config.model.retries
        self._log("llm/retry", retry=retry, maxRetries=limit, delayMs=delay_ms, failure=told_failure(failure))

    def _update(self, update: Json) -> None:
        """Tell the client."""
        self._services.client.update(self._session.id, update)


def told_failure(failure: ModelError) -> dict[str, Json]:
    """Return a failure as the log tells it."""
    status = {} if failure.status is None else {"status": failure.status}
    return {"code": failure.code, "message": failure.message} | status


def still_too_long(failure: ModelError) -> ModelError:
    """Return the error of a request that is refused as too long right after a compaction: another would not help."""
    return ModelError(failure.code, f"too long even after a compaction: {failure.message}", failure.status)


COMPLETED = End({"kind": "completed"}, "end_turn")
EXHAUSTED = End({"kind": "blocked", "by": "max_steps"}, "max_turn_requests")

CUT_OFF: dict[str, End] = {
    "max-tokens": End({"kind": "max-tokens"}, "max_tokens"),
    "content-filter": End({"kind": "blocked", "by": "content-filter"}, "refusal"),
}

CANCELLED: dict[str, End] = {
    "user": End({"kind": "aborted", "by": "user"}, "cancelled"),
    "shutdown": End({"kind": "interrupted"}, "cancelled"),
}

STOPPED = ToolOutcome("[cancelled before it was done]", "CANCELLED")
NOT_STARTED = ToolOutcome("[cancelled before it began]", "NOT_STARTED")
