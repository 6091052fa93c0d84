"""The JSON-RPC conversation with one agent: what was sent, what came, and which answers are still owed.

Every fault in the agent's output is kept in ``fault`` (the first one counts) and wakes whoever waits.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from session_snapshot.client import ClientSide
from session_snapshot.errors import AgentError
from session_snapshot.frames import Frame, LineSplitter, is_request, is_response, parse_frame
from session_snapshot.process import AgentProcess
from session_snapshot.protocols.message import Call
from session_snapshot.trace import Sent, Trace, Wrote
from session_snapshot.waiting import Changes

GONE_SECONDS = 1.0
"""An agent whose stdout has ended counts as running on only after so long."""


def nothing() -> str:
    """Nothing to say."""
    return ""


class Connection:
    """Frames in and out. It outlives a restart of the agent: ids and line numbers go on."""

    def __init__(self, client: ClientSide, frame_bytes: int, changes: Changes) -> None:
        """``client`` answers what the agent asks; ``changes`` rings whenever something came."""
        self.client = client
        self.changes = changes
        self.frames: list[Frame] = []
        self.trace = Trace()
        self.step = 0
        self.process: AgentProcess | None = None
        self.fault: Exception | None = None
        self.ended = False
        self._frame_bytes = frame_bytes
        self._splitter = LineSplitter(frame_bytes)
        self._lines_before = 0
        self._next_id = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._foreign_ids: list[int | str] = []
        self._awaited = nothing

    def attach(self, process: AgentProcess) -> None:
        """Talk to this process from now on."""
        self.process = process
        self.ended = False
        self._lines_before += self._splitter.lines
        self._splitter = LineSplitter(self._frame_bytes)
        process.start_reading(self.on_output)

    def running(self) -> AgentProcess:
        """The agent's process."""
        assert self.process is not None
        return self.process

    # ── what comes ──────────────────────────────────────────────────────────────────────────────────────────────────

    def on_output(self, data: bytes | None) -> None:
        """Take bytes of stdout, ``None`` at its end; the first fault stops the run."""
        try:
            if data is None:
                self.ended = True
                self._splitter.close()
            else:
                for number, line in self._splitter.feed(data):
                    self.on_frame(parse_frame(self._lines_before + number, line, self.step))
        except Exception as error:  # one that is no AgentError is a defect of ours, and must not look like silence
            self.fault = self.fault or error
        self.changes.ring()

    def on_frame(self, frame: Frame) -> None:
        """Keep a frame, match a response, answer a request."""
        if self.fault is not None:
            return
        self.trace.add(Wrote(len(self.frames)))
        self.frames.append(frame)
        value = frame.value
        if is_request(value):
            self.send({"jsonrpc": "2.0", "id": value["id"]} | self.client.answer(value))
        elif is_response(value):
            self.on_response(frame)

    def on_response(self, frame: Frame) -> None:
        """Match a response to its request; one to a request nobody made is the agent's fault (``null`` answers bad
        input)."""
        number = frame.value.get("id")
        if number is None or number in self._foreign_ids:
            return
        if type(number) is not int or not 0 <= number < self._next_id or number in self._answers:
            raise AgentError(
                f"stdout line {frame.line} answers a request nobody made or that was answered (id {number!r})",
                "answer each request once, with its own id",
            )
        self._answers[number] = frame.value

    # ── what is sent ────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one frame."""
        self.trace.add(Sent(self.step, dict(message)))
        self.running().write(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode())

    def send_raw(self, text: str) -> None:
        """Send a line as it is; a request in it may be answered under its own id."""
        self.trace.add(Sent(self.step, text))
        self._foreign_ids += raw_ids(text)
        self.running().write(text.encode("utf-8", "surrogateescape"))

    def request(self, call: Call) -> int:
        """Send a request or a notification; the request's id (-1 for a notification)."""
        message: dict[str, Any] = {"method": call.method, "params": call.params}
        if call.notification:
            self.send({"jsonrpc": "2.0"} | message)
            return -1
        number, self._next_id = self._next_id, self._next_id + 1
        self.send({"jsonrpc": "2.0", "id": number} | message)
        return number

    # ── waiting ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def waited(self) -> str:
        """What a step still waited for when its time was over, as the end of a sentence about that."""
        awaited = self._awaited()
        return f": it waited for {awaited}" if awaited else ""

    async def until(self, true: Callable[[], bool], what: str, seen: Callable[[], str] = nothing) -> None:
        """Wait for ``true()``; a fault or the agent's end comes first if it comes first.

        ``what`` is what is waited for, and ``seen()`` how far it has come, should it be told that it never came.

        Raises:
            AgentError: the fault, or the death, that made waiting pointless.
        """
        self._awaited = lambda: what + seen()
        await self.changes.until(lambda: true() or self.fault is not None or self.ended)
        if true():
            self._awaited = nothing
            return
        if self.fault is not None:
            raise self.fault
        process = self.running()
        went = await process.gone(GONE_SECONDS)
        how = f"exited (code {process.exit_code})" if went else "closed its stdout"
        raise AgentError(f"the agent {how} while the harness waited for {what}{seen()}", "read its stderr below")

    async def meanwhile(self, work: Coroutine[Any, Any, None], what: str, seen: Callable[[], str] = nothing) -> None:
        """Await work that no frame brings to its end, as :meth:`until` waits for what frames do."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(lambda _: self.changes.ring())
        try:
            await self.until(task.done, what, seen)
            await task
        finally:
            task.cancel()

    async def answer(self, number: int) -> dict[str, Any]:
        """Wait for the response with this id."""
        await self.until(lambda: number in self._answers, f"the response to request {number}")
        return self._answers[number]


def raw_ids(text: str) -> list[int | str]:
    """The id of a raw request, which the agent may answer; nothing for a line that is no JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    number = value.get("id") if isinstance(value, dict) else None
    return [number] if isinstance(number, int | str) else []
