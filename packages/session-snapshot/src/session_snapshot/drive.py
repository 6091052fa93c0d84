"""Perform a scenario's steps against a running agent: send what a step says, wait by frames, settle before the next."""

from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from session_snapshot import pacing
from session_snapshot import steps as ops
from session_snapshot.agent import Agent
from session_snapshot.client import ClientSide
from session_snapshot.connection import Connection
from session_snapshot.files import holds, inside, remove_file, wait_for_file, write_file
from session_snapshot.livelogs import LiveLogs, ended_turns, event_at, told_of
from session_snapshot.process import AgentProcess
from session_snapshot.protocols import PROTOCOLS
from session_snapshot.responses import check_response, matches
from session_snapshot.sandbox import Sandbox
from session_snapshot.scenario import Limits
from session_snapshot.variables import Sessions, fill
from session_snapshot.waiting import Changes, deadline

Boot = Callable[[], Awaitable[AgentProcess]]


class Driver:
    """One run's script on its way: what was performed, which sessions it opened, what did not come in time."""

    def __init__(
        self,
        agent: Agent,
        script: ops.Script,
        box: Sandbox,
        limits: Limits,
        pace: pacing.Pace,
        changes: Changes,
        calls_in_flight: Callable[[], int],
    ) -> None:
        """``calls_in_flight`` tells how many model calls are being answered; ``changes`` rings when that changes."""
        self.agent = agent
        self.script = script
        self.cwd = box.cwd
        self.logs = LiveLogs(agent, box)
        self.limits = limits
        self.pace = pace
        self.changes = changes
        self.calls_in_flight = calls_in_flight
        self.protocol = PROTOCOLS[agent.protocol]
        answers: deque[str] = deque(answer.kind for answer in script.permission_answers)
        self.client = ClientSide(box.cwd, answers, agent.capabilities)
        self.connection = Connection(self.client, limits.frame_bytes, changes)
        self.frames = self.connection.frames
        self.sessions = Sessions()
        self.notes: list[str] = []
        self.stop_reasons: list[str] = []
        self._open_prompts: dict[int, str] = {}
        self._prompt_mark = 0
        self._updates_taken = 0
        self._events_taken: dict[str, int] = {}
        self._wait_bound = limits.settle_seconds

    # ── steps ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def perform_all(self, boot: Boot) -> None:
        """Perform every step in order, each within its deadline, each settled before the next.

        Raises:
            AgentError: the agent misbehaved or a deadline passed.
            FixtureError: the script cannot be performed.
        """
        for index, step in enumerate(self.script.steps):
            self.connection.step = index
            name = f"step {index + 1} ({ops.op_of(step)})"
            mend = f"raise [limits] step_seconds ({self.limits.step_seconds:g}) if the agent is only slow"
            work = self.perform(self.fill(step), boot)
            await deadline(self.limits.step_seconds, name, work, mend, self.connection.waited)
            await self.settle(index, name)

    async def perform(self, step: ops.Step, boot: Boot) -> None:  # noqa: C901 - one arm per op
        """Do what one step says."""
        match step:
            case ops.Kill():
                await self.connection.running().kill()
            case ops.Restart():
                await self.restart(boot)
            case ops.WriteFile(path=path, text=text):
                write_file(self.path(path), text)
            case ops.RemoveFile(path=path):
                remove_file(self.path(path))
            case ops.WaitForFile(path=path, contains=contains):
                await self.wait_file(ops.FilePattern(path, contains))
            case ops.WaitForUpdate(kind=kind, contains=contains):
                await self.wait_update(ops.UpdatePattern(kind, contains))
            case ops.WaitForTurnStart():
                await self.wait_turn_start()
            case ops.WaitForTurnEnd():
                await self.wait_turn_end(self.sessions.of(step))
            case ops.SendRaw(text=text, replies=replies):
                await self.send_raw(text, replies)
            case ops.WaitForEvent():
                await self.wait_event(step, self.sessions.of(step))
            case ops.WaitForSubagentTurnEnd():
                await self.wait_subagent(step, self.sessions.of(step))
            case ops.Cancel(wait_for_file=pattern):
                await self.wait_file(pattern)
                self.connection.request(self.protocol.cancel(self.sessions.of(step)))
            case _:
                await self.perform_call(step)

    async def perform_call(self, step: ops.Step) -> None:
        """A step that sends a request: send it, do what the step does meanwhile, check its response."""
        session = "" if isinstance(step, SESSIONLESS) else self.sessions.of(step)
        call = self.protocol.call_of(step, session, self.agent.capabilities)
        assert call is not None
        mark = self._prompt_mark = len(self.frames)
        params = fill(call.params, self.sessions.variables(str(self.cwd)))
        number = self.connection.request(msgspec.structs.replace(call, params=params))
        match step:
            case ops.Prompt(background=True):
                self._open_prompts[number] = session
                return
            case ops.PromptAndCancel():
                await self.until_cancellable(step)
                self.connection.request(self.protocol.cancel(session))
            case ops.PromptAndWaitForAgentMessage(wait_for_text=text):
                await self.connection.until(lambda: text in self.texts_since(mark), f"message {text!r}")
            case _:
                pass
        self.take_result(step, await self.connection.answer(number))

    def take_result(self, step: ops.Step, response: dict[str, Any]) -> None:
        """Check a response, and keep what it tells: a new session's id, why a turn stopped."""
        result = check_response(step, response)
        if isinstance(step, ops.NewSession) and result:
            self.sessions.opened(step.as_, str(result.get("sessionId")))
        if isinstance(result.get("stopReason"), str):
            self.stop_reasons.append(result["stopReason"])

    def texts_since(self, mark: int) -> list[str]:
        """The texts of the agent's messages from frame number ``mark`` on."""
        return [self.protocol.text_of(frame.value) for frame in self.frames[mark:]]

    async def until_cancellable(self, step: ops.PromptAndCancel) -> None:
        """Wait for what the step names; for a model call in flight where it names nothing."""
        await self.wait_file(step.wait_for_file)
        if step.wait_for_update is not None:
            await self.wait_update(step.wait_for_update)
        elif step.wait_for_file is None:
            await self.connection.until(lambda: self.calls_in_flight() > 0, "a model call")

    async def wait_file(self, pattern: ops.FilePattern | None) -> None:
        """Wait for a file under the run's cwd; ``None`` waits for nothing."""
        if pattern is None:
            return
        path = self.path(pattern.path)
        if not holds(path, pattern.contains):
            waiting = wait_for_file(self.cwd, path, pattern.contains)
            await self.connection.meanwhile(waiting, f"the file {pattern.path!r}")

    async def wait_update(self, pattern: ops.UpdatePattern) -> None:
        """Wait for an update that no earlier wait has taken, and take it."""

        def first() -> int:
            unseen = range(self._updates_taken, len(self.frames))
            return next((at for at in unseen if matches(pattern, self.protocol.update_of(self.frames[at].value))), -1)

        await self.connection.until(lambda: first() >= 0, f"an update like {msgspec.json.encode(pattern).decode()}")
        self._updates_taken = first() + 1

    async def wait_turn_start(self) -> None:
        """Wait for a sign of life after the last prompt was sent."""
        await self.connection.until(
            lambda: self.calls_in_flight() > 0 or len(self.frames) > self._prompt_mark, "the turn to start"
        )

    async def wait_turn_end(self, session: str) -> None:
        """Wait for the responses of the session's open prompts."""
        for number in [number for number, about in self._open_prompts.items() if about == session]:
            del self._open_prompts[number]
            self.take_result(ops.Prompt(text=""), await self.connection.answer(number))

    async def wait_event(self, step: ops.WaitForEvent, session: str) -> None:
        """Wait for an event in a session's log that no earlier wait has taken, and take it."""
        taken = self._events_taken.get(session, 0)

        def first() -> int:
            return event_at(step, self.logs.events_of(session), taken)

        def seen() -> str:
            return f" (it holds {told_of(self.logs.events_of(session))}; {taken} taken by earlier waits)"

        like = f" like {step.contains!r}" if step.contains else ""
        what = f"an event {step.type!r}{like} in the session's log"
        await self.connection.meanwhile(self.logs.until(lambda: first() >= 0), what, seen)
        self._events_taken[session] = first() + 1

    async def wait_subagent(self, step: ops.WaitForSubagentTurnEnd, session: str) -> None:
        """Wait until a sub-agent of the session is between turns, and has ended enough of them."""

        def ended() -> bool:
            logs = self.logs.subagents_of(session)
            return len(logs) >= step.child and (ended_turns(logs[step.child - 1]) or 0) >= step.minimum_turn

        def seen() -> str:
            logs = self.logs.subagents_of(session)
            told = told_of(logs[step.child - 1].events) if len(logs) >= step.child else ""
            return f" (its log holds {told})" if told else f" (the session has {len(logs)} sub-agents)"

        what = f"the end of turn {step.minimum_turn} of sub-agent {step.child}"
        await self.connection.meanwhile(self.logs.until(ended), what, seen)

    async def send_raw(self, text: str, replies: int) -> None:
        """Send a line as it is, and wait for so many frames."""
        mark = len(self.frames)
        self.connection.send_raw(text)
        await self.connection.until(lambda: len(self.frames) - mark >= replies, f"{replies} replies to a raw line")

    async def restart(self, boot: Boot) -> None:
        """Stop the agent if it runs, and boot it again in the same sandbox."""
        await self.connection.running().stop(self.agent.stop, self.limits.stop_seconds, self.agent.exit_code)
        self.connection.attach(await boot())

    # ── between steps ───────────────────────────────────────────────────────────────────────────────────────────────

    async def settle(self, index: int, name: str) -> None:
        """Wait until the step's frames are all there: by the recorded counts, or by quiet where nothing is recorded."""
        if self.connection.fault is not None:
            raise self.connection.fault
        if self.pace.steps is None:
            await self.settle_by_quiet()
        elif not await self.changes.within(self._wait_bound, lambda: self.connection.ended or not self.gaps(index)):
            gaps = pacing.describe(self.gaps(index))
            self.notes.append(f"{name}: {gaps} expected and not seen within {self._wait_bound:g} s")
            self._wait_bound = self.limits.settle_seconds * pacing.LATER_SHARE

    def gaps(self, index: int) -> dict[str, int]:
        """The frames of a step that are still to come, by kind."""
        return pacing.missing(self.pace.expected(index), self.protocol.count_kinds(self.of_step(index)))

    async def settle_by_quiet(self) -> None:
        """Recording only: wait until no model call is in flight and nothing has come for ``quiet_seconds``."""
        while not self.connection.ended:
            await self.changes.until(lambda: self.calls_in_flight() == 0 or self.connection.ended)
            if not await self.changes.within(self.limits.quiet_seconds, self.stirs_since(len(self.frames))):
                return

    def stirs_since(self, mark: int) -> Callable[[], bool]:
        """Whether anything came after frame number ``mark``."""
        return lambda: len(self.frames) > mark or self.calls_in_flight() > 0

    def of_step(self, index: int) -> list[dict[str, Any]]:
        """The frames that came in one step."""
        return [frame.value for frame in self.frames if frame.step == index]

    def counts(self) -> list[dict[str, int]]:
        """The frames of each step by kind, as a recording keeps them."""
        return [self.protocol.count_kinds(self.of_step(index)) for index in range(len(self.script.steps))]

    def path(self, path: str) -> Path:
        """A path of the script under the run's cwd.

        Raises:
            FixtureError: it leads elsewhere.
        """
        return inside(self.cwd, path, ops.SCRIPT)

    def fill(self, step: ops.Step) -> ops.Step:
        """The step with its placeholders filled."""
        variables = self.sessions.variables(str(self.cwd))
        filled: ops.Step = msgspec.convert(fill(msgspec.to_builtins(step), variables), ops.Step)
        return filled


SESSIONLESS = (ops.Initialize, ops.Authenticate, ops.NewSession, ops.NewSessionExpectError)
