"""Perform a scenario's steps against a running agent: send what a step says, answer what the agent asks, wait by
frames."""

import json
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from session_snapshot import pacing
from session_snapshot import steps as ops
from session_snapshot.agent import Agent
from session_snapshot.client import ClientSide
from session_snapshot.errors import AgentError, FixtureError
from session_snapshot.files import wait_for_file
from session_snapshot.frames import Frame, LineSplitter, parse_frame
from session_snapshot.process import AgentProcess
from session_snapshot.protocols import acp
from session_snapshot.scenario import Limits
from session_snapshot.waiting import Changes, deadline


class Driver:
    """One run's conversation with the agent: what was sent, what came, and what is still owed."""

    def __init__(
        self,
        agent: Agent,
        script: ops.Script,
        cwd: Path,
        limits: Limits,
        pace: pacing.Pace,
        changes: Changes,
        calls_in_flight: Callable[[], int],
    ) -> None:
        """``calls_in_flight`` tells how many model calls are being answered; ``changes`` rings when that changes."""
        self.agent = agent
        self.script = script
        self.cwd = cwd
        self.limits = limits
        self.pace = pace
        self.changes = changes
        self.calls_in_flight = calls_in_flight
        self.client = ClientSide(cwd, deque(answer.kind for answer in script.permission_answers), agent.capabilities)
        self.frames: list[Frame] = []
        self.step = 0
        self.process: AgentProcess | None = None
        self.fault: AgentError | None = None
        self.ended = False
        self.notes: list[str] = []
        self.sessions: dict[str, str] = {}
        self.stop_reasons: list[str] = []
        self._splitter = LineSplitter(limits.frame_bytes)
        self._lines_before = 0
        self._next_id = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._open_prompts: dict[int, str] = {}
        self._foreign_ids: set[Any] = set()
        self._prompt_mark = 0
        self._updates_taken = 0
        self._wait_bound = pacing.FIRST_WAIT

    # ── the agent's output ──────────────────────────────────────────────────────────────────────────────────────────

    def attach(self, process: AgentProcess) -> None:
        """Talk to this process from now on."""
        self.process = process
        self.ended = False
        self._lines_before += self._splitter.lines
        self._splitter = LineSplitter(self.limits.frame_bytes)
        process.start_reading(self.on_output)

    def on_output(self, data: bytes | None) -> None:
        """Take bytes of stdout, ``None`` at its end; the first fault stops the run."""
        try:
            if data is None:
                self.ended = True
                self._splitter.close()
            else:
                for number, line in self._splitter.feed(data):
                    self.on_frame(parse_frame(self._lines_before + number, line, self.step))
        except AgentError as error:
            self.fault = self.fault or error
        self.changes.ring()

    def on_frame(self, frame: Frame) -> None:
        """Keep a frame, match a response, answer a request."""
        if self.fault is not None:
            return
        self.frames.append(frame)
        value = frame.value
        if acp.is_request(value):
            self.send({"jsonrpc": "2.0", "id": value["id"]} | self.client.answer(value))
        elif acp.is_response(value):
            self.on_response(frame)

    def on_response(self, frame: Frame) -> None:
        """Match a response to its request; one to a request nobody made is the agent's fault (``null`` answers bad
        input)."""
        number = frame.value.get("id")
        if number is None or number in self._foreign_ids:
            return
        if not isinstance(number, int) or number >= self._next_id or number in self._answers:
            raise AgentError(
                f"stdout line {frame.line} answers a request nobody made or that was answered (id {number!r})",
                "answer each request once, with its own id",
            )
        self._answers[number] = frame.value

    # ── sending and waiting ─────────────────────────────────────────────────────────────────────────────────────────

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one frame."""
        assert self.process is not None
        self.process.write(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode())

    def request(self, call: acp.Call) -> int:
        """Send a request or a notification; the request's id (-1 for a notification)."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": call.method, "params": call.params}
        if call.notification:
            self.send(message)
            return -1
        number, self._next_id = self._next_id, self._next_id + 1
        self.send({"jsonrpc": "2.0", "id": number} | {key: message[key] for key in ("method", "params")})
        return number

    async def until(self, true: Callable[[], bool], what: str) -> None:
        """Wait for ``true()``; a fault or the agent's end comes first if it comes first.

        Raises:
            AgentError: the fault, or the death, that made waiting pointless.
        """
        await self.changes.until(lambda: true() or self.fault is not None or self.ended)
        if true():
            return
        if self.fault is not None:
            raise self.fault
        assert self.process is not None
        await self.process.process.wait()
        raise AgentError(
            f"the agent exited (code {self.process.exit_code}) while the harness waited for {what}",
            "read its stderr below",
        )

    async def answer(self, number: int) -> dict[str, Any]:
        """Wait for the response with this id."""
        await self.until(lambda: number in self._answers, f"the response to request {number}")
        return self._answers[number]

    # ── steps ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def perform_all(self, boot: Callable[[], Any]) -> None:
        """Perform every step in order, each within its deadline, each settled before the next.

        Raises:
            AgentError: the agent misbehaved or a deadline passed.
            FixtureError: the script cannot be performed.
        """
        for index, step in enumerate(self.script.steps):
            self.step = index
            name = f"step {index + 1} ({ops.op_of(step)})"
            mend = f"raise [limits] step_seconds ({self.limits.step_seconds:g}) if the agent is only slow"
            await deadline(self.limits.step_seconds, name, self.perform(self.fill(step), boot), mend)
            await self.settle(index, name)

    async def perform(self, step: ops.Step, boot: Callable[[], Any]) -> None:  # noqa: C901 - one arm per op
        """Do what one step says."""
        match step:
            case ops.Kill():
                await self.running().kill()
            case ops.Restart():
                await self.restart(boot)
            case ops.WriteFile(path=path, text=text):
                write_file(self.cwd / path, text)
            case ops.RemoveFile(path=path):
                (self.cwd / path).unlink()
            case ops.WaitForFile(path=path, contains=contains):
                await self.wait_file(ops.FilePattern(path, contains))
            case ops.WaitForUpdate(kind=kind, contains=contains):
                await self.wait_update(ops.UpdatePattern(kind, contains))
            case ops.WaitForTurnStart():
                await self.wait_turn_start()
            case ops.WaitForTurnEnd():
                await self.wait_turn_end(self.session_of(step))
            case ops.SendRaw(text=text, replies=replies):
                await self.send_raw(text, replies)
            case ops.WaitForEvent() | ops.WaitForSubagentTurnEnd():
                raise AssertionError("parse_script refuses ops that are not built")
            case ops.Cancel(wait_for_file=pattern):
                await self.wait_file(pattern)
                self.request(acp.cancel(self.session_of(step)))
            case _:
                await self.perform_call(step)

    async def perform_call(self, step: ops.Step) -> None:
        """A step that sends a request: send it, do what the step does meanwhile, check its response."""
        session = "" if isinstance(step, SESSIONLESS) else self.session_of(step)
        call = acp.call_of(step, session, self.agent.capabilities)
        assert call is not None
        mark = self._prompt_mark = len(self.frames)
        number = self.request(msgspec.structs.replace(call, params=self.fill_json(call.params)))
        match step:
            case ops.Prompt(background=True):
                self._open_prompts[number] = session
                return
            case ops.PromptAndCancel():
                await self.until_cancellable(step)
                self.request(acp.cancel(session))
            case ops.PromptAndWaitForAgentMessage(wait_for_text=text):
                await self.until(
                    lambda: text in [acp.text_of(f.value) for f in self.frames[mark:]], f"message {text!r}"
                )
            case _:
                pass
        self.check_response(step, await self.answer(number))

    def check_response(self, step: ops.Step, response: Mapping[str, Any]) -> None:
        """Hold a response against what its step expects, and keep what it tells.

        Raises:
            AgentError: an error where none was expected, none where one was, or another code.
        """
        error = response.get("error")
        if isinstance(step, ops.NewSessionExpectError | ops.PromptExpectError):
            expect_error(step, error, response)
            return
        if error is not None:
            raise AgentError(
                f"{ops.op_of(step)} was answered by an error: {json.dumps(error, ensure_ascii=False)}",
                f"correct the agent, or use {ops.op_of(step)}ExpectError if this is what the scenario is about",
            )
        result = response.get("result")
        if isinstance(step, ops.NewSession) and isinstance(result, dict):
            self.sessions[step.as_] = self.sessions["*"] = str(result.get("sessionId"))
        if isinstance(result, dict) and isinstance(result.get("stopReason"), str):
            self.stop_reasons.append(result["stopReason"])

    async def until_cancellable(self, step: ops.PromptAndCancel) -> None:
        """Wait for what the step names; for a model call in flight where it names nothing."""
        await self.wait_file(step.wait_for_file)
        if step.wait_for_update is not None:
            await self.wait_update(step.wait_for_update)
        elif step.wait_for_file is None:
            await self.until(lambda: self.calls_in_flight() > 0, "a model call")

    async def wait_file(self, pattern: ops.FilePattern | None) -> None:
        """Wait for a file under the run's cwd; ``None`` waits for nothing."""
        if pattern is not None:
            await wait_for_file(self.cwd, pattern)

    async def wait_update(self, pattern: ops.UpdatePattern) -> None:
        """Wait for an update that no earlier wait has taken, and take it."""

        def first() -> int:
            unseen = range(self._updates_taken, len(self.frames))
            return next((at for at in unseen if matches(pattern, self.frames[at].value)), -1)

        await self.until(lambda: first() >= 0, f"an update like {msgspec.json.encode(pattern).decode()}")
        self._updates_taken = first() + 1

    async def wait_turn_start(self) -> None:
        """Wait for a sign of life after the last prompt was sent."""
        await self.until(
            lambda: self.calls_in_flight() > 0 or len(self.frames) > self._prompt_mark, "the turn to start"
        )

    async def wait_turn_end(self, session: str) -> None:
        """Wait for the responses of the session's open prompts."""
        for number in [number for number, about in self._open_prompts.items() if about == session]:
            del self._open_prompts[number]
            self.check_response(ops.Prompt(text=""), await self.answer(number))

    async def send_raw(self, text: str, replies: int) -> None:
        """Send a line as it is, and wait for so many frames."""
        mark = len(self.frames)
        self._foreign_ids |= raw_ids(text)
        self.running().write(text.encode("utf-8", "surrogateescape"))
        await self.until(lambda: len(self.frames) - mark >= replies, f"{replies} replies to a raw line")

    async def restart(self, boot: Callable[[], Any]) -> None:
        """Stop the agent if it runs, and boot it again in the same sandbox."""
        if self.running().exit_code is None:
            await self.running().stop(self.agent.stop, self.limits.step_seconds)
        self.attach(await boot())

    # ── between steps ───────────────────────────────────────────────────────────────────────────────────────────────

    async def settle(self, index: int, name: str) -> None:
        """Wait until the step's frames are all there: by the recorded counts, or by quiet where nothing is recorded."""
        if self.fault is not None:
            raise self.fault
        if self.pace.steps is None:
            await self.settle_by_quiet()
        elif not await self.changes.within(self._wait_bound, lambda: self.ended or not self.gaps(index)):
            gaps = pacing.describe(self.gaps(index))
            self.notes.append(f"{name}: {gaps} expected and not seen within {self._wait_bound:g} s")
            self._wait_bound = pacing.LATER_WAIT

    def gaps(self, index: int) -> dict[str, int]:
        """The frames of a step that are still to come, by kind."""
        return pacing.missing(self.pace.expected(index), acp.count_kinds(self.of_step(index)))

    async def settle_by_quiet(self) -> None:
        """Recording only: wait until no model call is in flight and nothing has come for a second."""
        while not self.ended:
            await self.changes.until(lambda: self.calls_in_flight() == 0 or self.ended)
            if not await self.changes.within(pacing.QUIET, self.stirs_since(len(self.frames))):
                return

    def stirs_since(self, mark: int) -> Callable[[], bool]:
        """Whether anything came after frame number ``mark``."""
        return lambda: len(self.frames) > mark or self.calls_in_flight() > 0

    def of_step(self, index: int) -> list[dict[str, Any]]:
        """The frames that came in one step."""
        return [frame.value for frame in self.frames if frame.step == index]

    def counts(self) -> list[dict[str, int]]:
        """The frames of each step by kind, as a recording keeps them."""
        return [acp.count_kinds(self.of_step(index)) for index in range(len(self.script.steps))]

    # ── small things ────────────────────────────────────────────────────────────────────────────────────────────────

    def running(self) -> AgentProcess:
        """The agent's process."""
        assert self.process is not None
        return self.process

    def session_of(self, step: ops.Step) -> str:
        """The id of the session a step is about.

        Raises:
            FixtureError: no session was opened yet, or none by that alias.
        """
        found = self.sessions.get(step.session or "*")
        if found is None:
            known = ", ".join(sorted(alias for alias in self.sessions if alias not in ("", "*"))) or "none"
            what = f"{ops.op_of(step)} before newSession" if not self.sessions else f"no session {step.session!r}"
            raise FixtureError(what, "input.json", None, f"open one with newSession (aliases so far: {known})")
        return found

    def fill(self, step: ops.Step) -> ops.Step:
        """The step with its placeholders filled."""
        filled: ops.Step = msgspec.convert(self.fill_json(msgspec.to_builtins(step)), ops.Step)
        return filled

    def fill_json(self, value: Any) -> Any:
        """Fill ``{{cwd}}``, ``{{sessionId}}`` and ``{{sessionId:alias}}`` in every string."""
        match value:
            case str():
                for name, text in self.variables().items():
                    value = value.replace(f"{{{{{name}}}}}", text)
                return value
            case dict():
                return {key: self.fill_json(item) for key, item in value.items()}
            case list():
                return [self.fill_json(item) for item in value]
            case _:
                return value

    def variables(self) -> dict[str, str]:
        """What the script's placeholders stand for now."""
        named = {f"sessionId:{alias}": number for alias, number in self.sessions.items() if alias not in ("", "*")}
        last = {"sessionId": self.sessions["*"]} if self.sessions else {}
        return {"cwd": str(self.cwd)} | last | named


SESSIONLESS = (ops.Initialize, ops.Authenticate, ops.NewSession, ops.NewSessionExpectError)


def expect_error(
    step: ops.NewSessionExpectError | ops.PromptExpectError, error: Any, response: Mapping[str, Any]
) -> None:
    """Check that a response is the error its step expects."""
    if error is None:
        raise AgentError(
            f"{ops.op_of(step)} was answered by a result: {json.dumps(response.get('result'), ensure_ascii=False)}",
            "correct the agent, or the step if success is right",
        )
    if step.code is not None and error.get("code") != step.code:
        raise AgentError(
            f"{ops.op_of(step)} expects code {step.code}, got {error.get('code')}", "see the error's message"
        )


def raw_ids(text: str) -> set[Any]:
    """The id of a raw request, which the agent may answer; nothing for a line that is no JSON object."""
    try:
        value = json.loads(text)
    except ValueError:
        return set()
    return {value["id"]} if isinstance(value, dict) and isinstance(value.get("id"), int | str) else set()


def matches(pattern: ops.UpdatePattern, frame: Mapping[str, Any]) -> bool:
    """Whether a frame is an update of the kind that holds the text."""
    update = acp.update_of(frame)
    if not update or (pattern.kind and update.get("sessionUpdate") != pattern.kind):
        return False
    return pattern.contains in json.dumps(update, ensure_ascii=False)


def write_file(path: Path, text: str) -> None:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
