"""The page of a run as values: every frame, call, group of chunks, log event and file a row, in the order it came.

Pure: the same parts make the same page.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llm_replay import Difference
from normalizer import frame_kind

from session_snapshot.fixtures import STDOUT
from session_snapshot.trace import Asked, Sent, Wrote
from session_snapshot.view.calls import answer_rows, call_row, last_told
from session_snapshot.view.order import step_of_moment
from session_snapshot.view.parts import Framed, Parts, Raw, Side
from session_snapshot.view.rows import (
    AGENT,
    EDITOR,
    FILES,
    Detail,
    Held,
    Lane,
    Row,
    gist,
    json_detail,
    table,
    text_detail,
    title_of,
)

AFTER = "what is left: logs and files"

Placed = tuple[int, Row]
"""A row and the moment it belongs to."""


def rows_of(parts: Parts) -> list[Row]:
    """Every row of a page, in order."""
    steps = steps_at(parts)
    placed = [*headings(parts, steps), *happened(parts, steps)]
    for place, call in enumerate(parts.calls):
        placed += answer_rows(call, place, parts.moments, steps)
    placed += [(place_of_missing(call.number, parts), call_row(call, -1)) for call in parts.missing]
    ordered = [row for _, row in sorted(placed, key=lambda pair: pair[0])]
    left = [*log_rows(parts.logs), *file_rows(parts)]
    return [*ordered, *([Row(FILES, "step", AFTER)] if left else []), *left]


def lanes_of(parts: Parts) -> list[Lane]:
    """The lanes of a page: model calls have one each conversation."""
    keys = dict.fromkeys([*(call.lane for call in (*parts.calls, *parts.missing)), *("model" for _ in parts.sides)])
    models = sorted(keys, key=lambda key: (key == "model", len(key), key))
    return [
        Lane(EDITOR, "editor"),
        Lane(AGENT, "agent"),
        *(Lane(key, lane_name(key, len(models))) for key in models),
        Lane(FILES, "files"),
    ]


def lane_name(key: str, count: int) -> str:
    """What a lane of model calls is called."""
    number = key.removeprefix("model").strip()
    if not number:
        return "model: not recorded"
    return "model" if count == 1 else f"model: lane {number}"


def steps_at(parts: Parts) -> list[int]:
    """The step of every moment; one more, for what comes after the last."""
    frame_steps = [one.step for one in parts.raw]
    step, steps = 0, []
    for moment in parts.moments:
        step = max(step, step_of_moment(moment, frame_steps))
        steps.append(step)
    return [*steps, -1]


def headings(parts: Parts, steps: Sequence[int]) -> Iterator[Placed]:
    """A row for every step of the script, before what happened in it."""
    for number, op in enumerate(parts.steps):
        first = next((place for place, step in enumerate(steps[:-1]) if step >= number), len(parts.moments))
        told = {key: value for key, value in op.items() if key != "op"}
        title = title_of(f"step {number + 1}: {op.get('op')}", gist(told, 2))
        yield first, Row(EDITOR, "step", title, number, details=(json_detail("input.json", op),))


# ── what happened ───────────────────────────────────────────────────────────────────────────────────────────────────


def happened(parts: Parts, steps: Sequence[int]) -> Iterator[Placed]:
    """The rows of the moments, but for answers to calls."""
    sent = iter(parts.sent)
    asked: dict[Any, str] = {}
    begun = begun_at(parts.frames)
    dropped = set(range(len(parts.raw))) - {source for frame in parts.frames for source in frame.sources}
    written = calls = 0
    for place, moment in enumerate(parts.moments):
        match moment:
            case Sent():
                value = next(sent)
                asked |= methods(moment.value)
                if value is not None:
                    yield place, sent_row(value, steps[place])
            case Wrote(frame=number):
                before = begun.get(-1, []) if written == 0 else []
                written += 1
                for frame in [*before, *begun.get(number, [])]:
                    yield place, frame_row(frame, parts.raw, asked, steps[place])
                if number in dropped:
                    yield place, dropped_row(parts.raw[number])
            case Asked(call=number):
                yield from ((place, side_row(side)) for side in parts.sides if side.after == calls)
                calls += 1
                yield place, call_row(parts.calls[number], steps[place])
            case _:
                continue
    last = len(parts.moments)
    yield from ((last, frame_row(frame, parts.raw, asked, -1)) for frame in begun.get(END, []))
    yield from ((last, side_row(side)) for side in parts.sides if side.after >= calls)


def begun_at(frames: Sequence[Framed]) -> dict[int, list[Framed]]:
    """Frames by the place of the raw one they begin with; those that are gone by the frame before them (-1: there is
    none), or by ``END`` where none comes after them."""
    found: dict[int, list[Framed]] = {}
    last = max((at for at, frame in enumerate(frames) if frame.sources), default=-1)
    place = -1
    for at, frame in enumerate(frames):
        place = frame.sources[0] if frame.sources else place
        found.setdefault(END if at > last else place, []).append(frame)
    return found


END = -2
"""Where frames are that are gone from the end of a run."""


def methods(value: Any) -> dict[Any, str]:
    """The method of a request by its id, as responses name it."""
    if isinstance(value, dict) and isinstance(value.get("method"), str) and isinstance(value.get("id"), int | str):
        return {value["id"]: value["method"]}
    return {}


def sent_row(value: Any, step: int) -> Row:
    """A message of the editor."""
    if isinstance(value, str):
        return Row(EDITOR, "sent", title_of("raw line", value), step, details=(text_detail("as sent", value),))
    name = str(value.get("method", "answer"))
    told = value.get("params", value.get("result", value.get("error")))
    return Row(EDITOR, "sent", title_of(name, gist(told, 2)), step, details=(json_detail("as sent", value),))


def frame_row(frame: Framed, raw: Sequence[Raw], asked: Mapping[Any, str], step: int) -> Row:
    """A frame of the agent, held against the golden one."""
    held = frame.held
    pieces = [raw[source] for source in frame.sources]
    details = [held.detail("frame")]
    if len(pieces) > 1:
        lines = f"stdout lines {pieces[0].line} to {pieces[-1].line}"
        details.append(json_detail(f"as written, {len(pieces)} frames ({lines})", [piece.value for piece in pieces]))
    count = f"({len(pieces)} frames)" if len(pieces) > 1 else ""
    return Row(
        AGENT,
        frame_kind(held.value) if isinstance(held.value, dict) else "frame",
        title_of(frame_title(held.value, asked), count),
        pieces[0].step if pieces else step,
        held.state,
        f"{STDOUT}{held.source}",
        held.differences,
        tuple(details),
    )


def frame_title(value: Any, asked: Mapping[Any, str]) -> str:
    """What a frame says, in a few words."""
    if not isinstance(value, dict):
        return gist(value)
    if "method" in value:
        return gist(value.get("params"), 3)
    number = value.get("id")
    name = asked.get(number, f"to {number}") if isinstance(number, int | str) else "to nothing"
    told = gist(value.get("result", value.get("error")), 2)
    return " · ".join(filter(None, [f"{name}{' failed' if 'error' in value else ''}", told]))


def dropped_row(raw: Raw) -> Row:
    """A frame that the suite's ``[[ordering]]`` leaves out."""
    title = title_of(gist(raw.value, 3), "(not compared: [[ordering]])")
    details = (json_detail(f"as written (stdout line {raw.line})", raw.value),)
    return Row(AGENT, frame_kind(raw.value), title, raw.step, details=details)


def side_row(side: Side) -> Row:
    """A request that was no model call."""
    value = {"method": side.method, "path": side.path, "status": side.status}
    title = title_of(f"{side.method} {side.path} → {side.status}")
    return Row("model", "side request", title, details=(json_detail("request", value),))


def place_of_missing(number: int | None, parts: Parts) -> int:
    """Where a call that was not made would have been: behind the answer to the recorded one before it."""
    earlier = [
        moment.call for moment in parts.moments if isinstance(moment, Asked) and precedes(parts, moment.call, number)
    ]
    return last_told(earlier[-1], parts.moments) if earlier else len(parts.moments)


def precedes(parts: Parts, call: int, number: int | None) -> bool:
    """Whether a live call was recorded before another."""
    own = parts.calls[call].number
    return own is not None and number is not None and own < number


# ── what was left ───────────────────────────────────────────────────────────────────────────────────────────────────


def log_rows(logs: Mapping[str, Sequence[Held]]) -> Iterator[Row]:
    """The events of the agent's logs."""
    for name, rows in logs.items():
        number = name.removeprefix("session").removesuffix(".jsonl")
        for held in rows:
            title = title_of(f"log{number}", event_title(table(held.value)))
            yield Row(
                FILES, "log", title, -1, held.state, f"{name}{held.source}", held.differences, (held.detail("event"),)
            )


def event_title(event: Mapping[str, Any]) -> str:
    """What a log event says, in a few words; of packed chunks all they say."""
    data = table(event.get("data"))
    packed: list[Any] = next((data[name] for name in ("args", "texts") if isinstance(data.get(name), list)), [])
    return " ".join(
        [
            str(event.get("type", "row")),
            str(table(data.get("chunk")).get("type", "")),
            gist(data, 2),
            "".join(map(str, packed)),
        ]
    )


def file_rows(parts: Parts) -> Iterator[Row]:
    """The files of the agent's folder; of committed files the expected ones."""
    tree = parts.expected_tree if parts.tree is None else parts.tree
    for name in sorted({*parts.expected_tree, *tree}):
        old, new = parts.expected_tree.get(name), tree.get(name)
        yield file_row(name, old, new, parts.tree is not None)


def file_row(name: str, old: bytes | None, new: bytes | None, ran: bool) -> Row:
    """One file against what it should be."""
    content = new if new is not None else old or b""
    title = title_of(name, f"({len(content)} bytes)")
    if not ran:
        return Row(FILES, "file", title, details=(content_detail("content", content),))
    if old == new:
        return Row(FILES, "file", title, -1, "same", details=(content_detail("content", content),))
    if old is None or new is None:
        told = readable(content)
        change = Difference("", "added", actual=told) if old is None else Difference("", "removed", expected=told)
        return Row(FILES, "file", title, -1, change.kind, name, (change,), (content_detail("content", content),))
    change = Difference("", "changed", readable(old), readable(new))
    details: tuple[Detail, ...] = (content_detail("expected", old), content_detail("actual", new))
    return Row(FILES, "file", title, -1, "changed", name, (change,), details)


def content_detail(heading: str, content: bytes) -> Detail:
    """A file's content."""
    return text_detail(heading, readable(content))


def readable(content: bytes) -> str:
    """A file's content as text; bytes that are none are spelled out."""
    return content.decode("utf-8", "backslashreplace")
