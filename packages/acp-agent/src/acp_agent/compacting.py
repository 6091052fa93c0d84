"""Making room in a full context: the model sums up the older messages, and the summary takes their place.

Whatever goes wrong, the history is then as it was: it changes with the event ``compaction/end``, and only if that one
holds the new message.
"""

import asyncio
from contextlib import aclosing
from typing import Literal, Protocol

from llm_dialects import Json, Message, Request, TextBlock, to_json
from msgspec.structs import replace

from acp_agent.asking import OnRetry, ask
from acp_agent.compaction import INSTRUCTION, LEAST, NoRoom, Record, checkpoint, cut_of, fitted, tokens_of
from acp_agent.config import Config
from acp_agent.draft import Draft, finish_of
from acp_agent.errors import ModelError
from acp_agent.model import Model
from acp_agent.model_params import request_params
from acp_agent.session import Session

Reason = Literal["overflow", "threshold"]

OVERFLOW = frozenset({"CONTEXT_WINDOW_EXCEEDED", "REQUEST_TOO_LARGE"})
"""Codes of a request that is too long for its model, or for the way to it."""


class Log(Protocol):
    """Appends an event to the log."""

    def __call__(self, type: str, **data: Json) -> None:
        """Append it."""
        ...


class Compactor:
    """Compacts the history of one session."""

    def __init__(self, session: Session, config: Config, model: Model, log: Log, on_retry: OnRetry) -> None:
        self._session, self._config, self._model = session, config, model
        self._log, self._on_retry = log, on_retry

    def due(self) -> bool:
        """Return whether the context has reached the threshold, if there is one, and can be made smaller."""
        threshold = self._config.compaction.threshold_tokens
        return 0 < threshold <= self._tokens() and self.worthwhile()

    def helps(self, failure: ModelError) -> bool:
        """Return whether a compaction may mend a failed call."""
        return failure.code in OVERFLOW and self._config.compaction.on_overflow and self.worthwhile()

    def worthwhile(self) -> bool:
        """Return whether there is so much to replace that a summary can be expected to be shorter."""
        return tokens_of(self._shadowed()) >= LEAST

    async def run(self, id: str, reason: Reason, **why: Json) -> None:
        """Carry the compaction ``id`` through; ``why`` goes into the log.

        Raises:
            ModelError: there is no summary, or none that helps.
        """
        shadowed, before = self._shadowed(), self._tokens()
        self._log("compaction/start", compactionId=id, reason=reason, tokens=before, **why)
        try:
            message = await self._replacement(id, shadowed, self._room(reason, before))
        except asyncio.CancelledError:
            self._log("compaction/end", compactionId=id, error={"code": "CANCELLED", "message": "cancelled"})
            raise
        except ModelError as failure:
            error = {"code": failure.code, "message": failure.message}
            self._log("compaction/end", compactionId=id, error=error)
            what = f"{WHY[reason]}, and making a summary of it failed: {failure.code}: {failure.message}"
            raise ModelError("COMPACTION_FAILED", what, failure.status) from failure
        gained = tokens_of(shadowed) - tokens_of([message])
        after = max(0, before - round(gained * self._session.meter.ratio))
        told = {"role": message.role, "content": [to_json(part) for part in message.content]}
        self._log("compaction/end", compactionId=id, tokensBefore=before, tokensAfter=after, message=told)
        self._session.shorten(len(shadowed), message)

    # ── Helpers ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _tokens(self) -> int:
        return self._session.meter.tokens(self._session.context(self._config.model))

    def _shadowed(self) -> list[Message]:
        """Return the messages that a summary would replace."""
        messages = self._session.messages
        return messages[: cut_of(messages, self._config.compaction.keep_tokens)]

    def _room(self, reason: Reason, refused: int) -> int | None:
        """Return how many tokens the request for a summary may have; ``None``: as many as there are.

        Where the window is unknown and a request was refused, what was answered before is known to fit, and half of
        what was refused is likely to.
        """
        settings = self._config.compaction
        if settings.window_tokens:
            return settings.window_tokens - settings.summary_max_tokens
        return max(self._session.meter.accepted, refused // 2) if reason == "overflow" else None

    async def _replacement(self, id: str, shadowed: list[Message], room: int | None) -> Message:
        """Return the message that replaces ``shadowed``.

        Raises:
            ModelError: there is no summary, or none that is shorter.
        """
        try:
            record = fitted(shadowed, lambda text: room is None or self._estimate(text) <= room)
        except NoRoom:
            what = f"no request for one fits into {room} tokens; see [compaction] window_tokens, summary_max_tokens"
            raise ModelError("CONTEXT_WINDOW_EXCEEDED", what) from None
        draft = await self._ask(id, self._request(record.text))
        summary = summary_in(draft)
        self._log_summary(id, shadowed, record, draft)
        message = checkpoint(summary)
        if tokens_of([message]) >= tokens_of(shadowed):
            raise ModelError("SUMMARY_TOO_LONG", "the summary is no shorter than what it is to replace")
        return message

    def _request(self, record: str) -> Request:
        config = replace(self._config.model, max_tokens=self._config.compaction.summary_max_tokens)
        message = Message(role="user", content=(TextBlock(text=record),))
        return Request(system=(INSTRUCTION,), tools=(), messages=(message,), params=request_params(config))

    def _estimate(self, record: str) -> int:
        """Return the tokens of the request for a summary."""
        return self._session.meter.estimate(self._request(record))

    async def _ask(self, id: str, request: Request) -> Draft:
        """Let the model answer; the log keeps the chunks, of an answer that breaks off too."""
        draft, chunks = Draft(id), list[Json]()
        answer = ask(self._model, request, self._session.id, self._config.model, self._on_retry)
        try:
            async with aclosing(answer):
                async for chunk in answer:
                    chunks.append(to_json(chunk))
                    draft.add(chunk)
        finally:
            if chunks:
                self._log("llm/aux", purpose="compaction", compactionId=id, chunks=chunks)
        return draft

    def _log_summary(self, id: str, shadowed: list[Message], record: Record, draft: Draft) -> None:
        """Append what was summarised, and what the model made of it."""
        told: dict[str, Json] = {"shadowedRange": {"start": 0, "end": len(shadowed)}}
        told |= {"shadowedTokens": tokens_of(shadowed), "shortened": record.shortened, "leftOut": record.left_out}
        told |= {"rawOutput": [to_json(block) for block in draft.blocks()]}
        told |= {} if draft.usage is None else {"usage": to_json(draft.usage)}
        self._log("compaction/summary", compactionId=id, **told)


def summary_in(draft: Draft) -> str:
    """Return the summary that an answer holds.

    Raises:
        ModelError: it holds none, or was not finished.
    """
    kind = finish_of(draft).kind
    text = "".join(block.text for block in draft.blocks() if isinstance(block, TextBlock))
    if kind not in GOOD_ENDS or not text.strip():
        raise ModelError("NO_SUMMARY", f"the model wrote none (its answer finished with {kind!r})")
    return text


GOOD_ENDS = ("stop", "max-tokens")
"""Finishes of an answer that is a summary; one that became too long lacks its end, and is better than none."""

WHY: dict[Reason, str] = {
    "overflow": "the conversation is too long for the model",
    "threshold": "the conversation has reached its threshold",
}
