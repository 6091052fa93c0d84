"""The order of a page where no clock tells it: which step a committed frame belongs to, and where a model call was
made."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from normalizer import frame_kind, leaves

from session_snapshot.trace import Asked, Moment, Sent, Wrote
from session_snapshot.view.rows import table


def steps_of(frames: Sequence[Any], counts: Sequence[Mapping[str, int]]) -> list[int]:
    """The step of each committed frame, by how many of its kind the steps had; a response ends one where none says."""
    step, steps = 0, []
    left = dict(counts[0]) if counts else {}
    for frame in frames:
        kind = frame_kind(frame)
        if not left.get(kind) and any(later.get(kind) for later in counts[step + 1 :]):
            step = next(at for at in range(step + 1, len(counts)) if counts[at].get(kind))
            left = dict(counts[step])
        steps.append(step)
        left[kind] = left.get(kind, 0) - 1
        if not counts and kind == "response":
            step += 1
    return steps


class Asks:
    """What the appended messages of a call tell of where it was made: a prompt in them, and results of tools."""

    def __init__(self, row: Any) -> None:
        """``row`` is the call's row of the requests."""
        messages = [message for message in table(row).get("append", []) if isinstance(message, dict)]
        self.prompts = [text for message in messages if message.get("role") == "user" for text in texts(message)]
        self.tools = [found for message in messages for found in results(message)]


def texts(message: Mapping[str, Any]) -> Iterator[str]:
    """The texts of a message."""
    yield from (leaf for _, leaf in leaves(message.get("content")) if isinstance(leaf, str))


def results(message: Mapping[str, Any]) -> Iterator[str]:
    """The tool calls whose results a message brings."""
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if table(part).get("type") == "tool-result" and isinstance(part.get("callId"), str):
            yield part["callId"]


def guessed(
    moments: Sequence[Moment],
    frames: Sequence[Any],
    frame_steps: Sequence[int],
    steps: Sequence[Mapping[str, Any]],
    rows: Sequence[Any],
) -> list[Moment]:
    """``moments`` with model calls put among them: a call comes after the prompt it asks about, and after the frames
    that tell of the tools whose results it brings. ``rows`` are the calls' rows of the requests, in order."""
    at = [step_of_moment(moment, frame_steps) for moment in moments]
    found: list[list[int]] = [[] for _ in range(len(moments) + 1)]
    step, place = -1, 0
    for call, row in enumerate(rows):
        asks = Asks(row)
        step = max(step, prompted(asks, steps, step))
        place = max(place, begins(moments, at, step), mentions(moments, at, frames, step, asks.tools))
        found[place].append(call)
    ordered: list[Moment] = []
    for index, calls in enumerate(found):
        ordered += [*map(Asked, calls), *moments[index : index + 1]]
    return ordered


def step_of_moment(moment: Moment, frame_steps: Sequence[int]) -> int:
    """The step a moment belongs to."""
    match moment:
        case Sent(step=step):
            return step
        case Wrote(frame=frame):
            return frame_steps[frame]
        case _:
            return -1


def prompted(asks: Asks, steps: Sequence[Mapping[str, Any]], after: int) -> int:
    """The first step after this one whose text a call brings; the first one at all that has a text for a first call."""
    told = [(at, step["text"]) for at, step in enumerate(steps) if isinstance(step.get("text"), str) and step["text"]]
    for at, text in told:
        if at > after and any(text in prompt for prompt in asks.prompts):
            return at
    return told[0][0] if after < 0 and told else after


def begins(moments: Sequence[Moment], at: Sequence[int], step: int) -> int:
    """Where a step begins: after what was sent in it, or before its first frame."""
    first = next((place for place, own in enumerate(at) if own >= step), len(moments))
    return first + 1 if first < len(moments) and isinstance(moments[first], Sent) and at[first] == step else first


def mentions(
    moments: Sequence[Moment], at: Sequence[int], frames: Sequence[Any], step: int, tools: Sequence[str]
) -> int:
    """Behind the last frame of a step that names one of these tool calls; 0 where none does."""
    for place in range(len(moments) - 1, -1, -1):
        moment = moments[place]
        if at[place] == step and isinstance(moment, Wrote) and names(frames[moment.frame], tools):
            return place + 1
    return 0


def names(frame: Any, tools: Sequence[str]) -> bool:
    """Whether a frame names one of these tool calls."""
    return bool(tools) and any(leaf in tools for _, leaf in leaves(frame))
