"""The canonical order of frames: what timing alone decides is taken out before frames are compared.

Always: consecutive text chunks that differ in their text only are joined; consecutive states of one tool call that is
still pending are folded into one. Declared per suite (``[[ordering]]``): ``float``, ``last``, ``drop``. Everything else
keeps its place.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from normalizer.lines import Json

Frame = dict[str, Json]


class OrderRule(Struct, frozen=True):
    """One ``[[ordering]]`` entry: which kind of frame (`frame_kind`), what becomes of it, and why."""

    kind: str
    order: Literal["float", "last", "drop"]
    reason: str = ""


class Ordered(Struct, frozen=True):
    """A frame in canonical order, and the places (from 0) of the raw frames it was made of, in their order."""

    frame: Frame
    sources: tuple[int, ...]


class Ordering(Struct, frozen=True):
    """A suite's order: its rules; with ``expand`` raw frames are compared, nothing joined, folded or moved."""

    rules: tuple[OrderRule, ...] = ()
    expand: bool = False


def canonical_order(
    frames: Sequence[Frame], ordering: Ordering | None = None, *, steps: Sequence[int] | None = None
) -> list[Frame]:
    """The agent's frames in canonical order. ``steps``: how many belong to each step; else a response ends one."""
    return [ordered.frame for ordered in traced_order(frames, ordering, steps=steps)]


def traced_order(
    frames: Sequence[Frame], ordering: Ordering | None = None, *, steps: Sequence[int] | None = None
) -> list[Ordered]:
    """`canonical_order`, each frame with where it came from; a dropped frame is nowhere."""
    ordering = ordering or Ordering()
    raw = [Ordered(frame, (at,)) for at, frame in enumerate(frames)]
    if ordering.expand:
        return raw
    status: dict[str, str] = {}
    return [one for step in _steps(raw, steps) for one in _fold(_join(_moved(step, ordering.rules)), status)]


def frame_kind(frame: Frame) -> str:
    """``session/update``'s own kind (``agent_message_chunk``), else the method, else ``response``."""
    method = frame.get("method")
    kind = _update(frame).get("sessionUpdate") if method == "session/update" else method
    return str(kind or "response")


def chunk_text(frame: Frame) -> str | None:
    """The text of a text chunk, None for any other frame."""
    content = _update(frame).get("content")
    if frame_kind(frame) not in _CHUNK_KINDS or not isinstance(content, dict) or content.get("type") != "text":
        return None
    text = content.get("text")
    return text if isinstance(text, str) else None


def with_text(frame: Frame, text: str) -> Frame:
    """A text chunk with another text."""
    update = _update(frame)
    return _with_update(frame, update | {"content": update["content"] | {"text": text}})


def _moved(step: list[Ordered], rules: Iterable[OrderRule]) -> list[Ordered]:
    for rule in rules:
        step = ORDERINGS[rule.order](step, rule.kind)
    return step


def _steps(frames: Sequence[Ordered], counts: Sequence[int] | None) -> Iterator[list[Ordered]]:
    counts = _by_response(frames) if counts is None else counts
    if sum(counts) != len(frames):
        raise ValueError(f"steps of {sum(counts)} frames, but {len(frames)} frames")
    at = 0
    for count in counts:
        yield list(frames[at : at + count])
        at += count


def _by_response(frames: Sequence[Ordered]) -> list[int]:
    ends = [at + 1 for at, one in enumerate(frames) if "method" not in one.frame]
    ends = ends if ends and ends[-1] == len(frames) else [*ends, len(frames)]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def _float(step: list[Ordered], kind: str) -> list[Ordered]:
    return [one for one in step if not _is(one, kind)] + [one for one in step if _is(one, kind)]


def _last(step: list[Ordered], kind: str) -> list[Ordered]:
    follows = [*step[1:], None]
    return [a for a, b in zip(step, follows, strict=True) if not _is(a, kind) or b is None or not _is(b, kind)]


def _drop(step: list[Ordered], kind: str) -> list[Ordered]:
    return [one for one in step if not _is(one, kind)]


def _is(one: Ordered, kind: str) -> bool:
    return frame_kind(one.frame) == kind


def _join(step: list[Ordered]) -> list[Ordered]:
    out: list[Ordered] = []
    for one in step:
        before = chunk_text(out[-1].frame) if out else None
        text = chunk_text(one.frame)
        if before is not None and text is not None and with_text(out[-1].frame, "") == with_text(one.frame, ""):
            out[-1] = Ordered(with_text(out[-1].frame, before + text), out[-1].sources + one.sources)
        else:
            out.append(one)
    return out


def _fold(step: list[Ordered], status: dict[str, str]) -> list[Ordered]:
    out: list[Ordered] = []
    for one in step:
        call, now = _tool_call(one.frame, status)
        # Both must be pending: a call that goes back to it has been seen to be further on.
        pending = call is not None and now == "pending" == status.get(call, "pending")
        if (
            pending
            and out
            and _tool_call(out[-1].frame, status)[0] == call
            and _same_envelope(out[-1].frame, one.frame)
        ):
            out[-1] = Ordered(_merged(out[-1].frame, one.frame), out[-1].sources + one.sources)
        else:
            out.append(one)
        if call is not None:
            status[call] = now
    return out


def _tool_call(frame: Frame, status: dict[str, str]) -> tuple[str | None, str]:
    """Which tool call a frame tells of and its status then; a call begins pending, and silence leaves it as it was."""
    update = _update(frame)
    if update.get("sessionUpdate") not in _TOOL_CALL_KINDS:
        return None, ""
    call = str(update.get("toolCallId"))
    return call, str(update.get("status") or status.get(call, "pending"))


def _merged(earlier: Frame, later: Frame) -> Frame:
    """The state after both: later members win, none is lost, and a call stays the announcement of a call."""
    update = _update(earlier) | _update(later) | {"sessionUpdate": _update(earlier)["sessionUpdate"]}
    return earlier | {"params": earlier["params"] | {"update": update}}


def _same_envelope(one: Frame, other: Frame) -> bool:
    return _with_update(one, {}) == _with_update(other, {})


def _with_update(frame: Frame, update: Json) -> Frame:
    return frame | {"params": frame["params"] | {"update": update}}


def _update(frame: Frame) -> dict[str, Json]:
    params = frame.get("params")
    update = params.get("update") if isinstance(params, dict) else None
    return update if isinstance(update, dict) else {}


_CHUNK_KINDS = {"agent_message_chunk", "agent_thought_chunk", "user_message_chunk"}
_TOOL_CALL_KINDS = {"tool_call", "tool_call_update"}

ORDERINGS: dict[str, Callable[[list[Ordered], str], list[Ordered]]] = {"float": _float, "last": _last, "drop": _drop}
