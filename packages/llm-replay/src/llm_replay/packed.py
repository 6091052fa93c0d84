"""Packed rows: a run of same-kind deltas of one block, stored as one row.

``text-chunks`` and ``reasoning-chunks`` hold ``{turn, step, index, dt, texts}``, ``tool-call-chunks`` holds ``{turn,
step, index, dt, id, name?, args}``; in the log of a foreign agent ``call`` stands for ``turn`` and ``step``. ``dt`` are
the milliseconds between the members (one fewer than members), which a committed log of our own format leaves out.
A row's keys are exactly these: anything else is not a packed row but a mistake.
"""

from itertools import accumulate, groupby
from typing import Any

from llm_dialects import Json
from msgspec import Struct

SHORTEST_RUN = 3
"""Shorter runs stay as they are: their row would be no smaller."""


class Malformed(ValueError):
    """A packed row breaks its whitelist; the text says how."""


class Kind(Struct, frozen=True):
    """How one kind of delta is packed: ``texts`` is the row's list, ``text`` the delta's member it holds."""

    row: str
    delta: str
    texts: str
    text: str
    shared: tuple[str, ...] = ()


def is_packed(row_type: Json) -> bool:
    """Tell whether a row of this type stands for a run of deltas."""
    return isinstance(row_type, str) and row_type in BY_ROW


def unpack(row_type: str, data: Json, clocked: bool) -> list[tuple[dict[str, Json], int]]:
    """Return the ``assistant/chunk`` data of every member, each with its milliseconds after the first.

    ``clocked`` demands ``dt``; without it ``dt`` may be absent and then every member is at 0.

    Raises:
        Malformed: the row's keys or values are not those of a packed row.
    """
    kind = BY_ROW[row_type]
    place = _check(kind, data, clocked)
    texts = data[kind.texts]
    times = accumulate(data.get("dt", [0] * (len(texts) - 1)), initial=0)
    shared = {key: data[key] for key in kind.shared if key in data}
    head = {"type": kind.delta, "index": data["index"], **shared}
    return [({**place, "chunk": {**head, kind.text: text}}, time) for text, time in zip(texts, times, strict=True)]


def pack(events: list[Json], clocked: bool) -> list[Json]:
    """Return the projected ``events`` with every maximal run packed; ``clocked`` writes ``dt`` (zeros)."""
    packed: list[Json] = []
    for key, group in groupby(events, _run_key):
        run = list(group)
        packed += run if key is None or len(run) < SHORTEST_RUN else [_row(run, clocked)]
    return packed


def _row(run: list[Json], clocked: bool) -> Json:
    first = run[0]["data"]
    chunk = first["chunk"]
    kind = BY_DELTA[chunk["type"]]
    data = {key: value for key, value in first.items() if key != "chunk"} | {"index": chunk["index"]}
    if clocked:
        data["dt"] = [0] * (len(run) - 1)
    data |= {key: chunk[key] for key in kind.shared if key in chunk}
    return {"type": kind.row, "data": data | {kind.texts: [event["data"]["chunk"][kind.text] for event in run]}}


def _run_key(event: Json) -> Any:
    """Return what the members of a run have in common, or ``None`` for an event that cannot be packed."""
    if event["type"] != "assistant/chunk" or set(event) != {"type", "data"}:
        return None
    data, chunk = event["data"], event["data"].get("chunk")
    if tuple(data) not in (("turn", "step", "chunk"), ("call", "chunk")) or not isinstance(chunk, dict):
        return None
    kind = next((kind for kind in KINDS if kind.delta == chunk.get("type")), None)
    if kind is None or not _is_plain(kind, chunk) or not all(_is_count(data[key]) for key in data if key != "chunk"):
        return None
    return [(key, value) for key, value in (*data.items(), *chunk.items()) if key not in ("chunk", kind.text)]


def _is_plain(kind: Kind, chunk: dict[str, Json]) -> bool:
    """Tell whether a delta has the members that a row can hold, in the order unpacking gives them, and no others."""
    expected = ("type", "index", *(key for key in kind.shared if key in chunk), kind.text)
    strings = all(isinstance(chunk[key], str) for key in expected if key != "index" and key in chunk)
    return tuple(chunk) == expected and strings and _is_count(chunk["index"]) and kind.shared[:1] <= expected[2:3]


def _check(kind: Kind, data: Json, clocked: bool) -> dict[str, Json]:
    """Check a row's data and return the part that says whose call it is."""
    if not isinstance(data, dict):
        raise Malformed("data must be an object")
    place = ("call",) if "call" in data else ("turn", "step")
    required = {*place, "index", kind.texts, *kind.shared[:1]} | ({"dt"} if clocked else set())
    allowed = required | {"dt", *kind.shared}
    if not required <= set(data) <= allowed:
        raise Malformed(f"keys must be {', '.join(sorted(required))}, are {', '.join(sorted(data))}")
    _check_values(kind, data, place)
    return {key: data[key] for key in place}


def _check_values(kind: Kind, data: dict[str, Json], place: tuple[str, ...]) -> None:
    for key in (*place, "index"):
        if not _is_count(data[key]):
            raise Malformed(f"{key} must be a whole number")
    for key in kind.shared:
        if not isinstance(data.get(key, ""), str):
            raise Malformed(f"{key} must be a string")
    texts = data[kind.texts]
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise Malformed(f"{kind.texts} must be a list of strings, at least one")
    dt = data.get("dt", [0] * (len(texts) - 1))
    if not isinstance(dt, list) or len(dt) != len(texts) - 1 or not all(type(step) is int for step in dt):
        raise Malformed(f"dt must be {len(texts) - 1} whole numbers, one fewer than {kind.texts}")


def _is_count(value: Json) -> bool:
    return type(value) is int and value >= 0


KINDS = (
    Kind(row="text-chunks", delta="text-delta", texts="texts", text="text"),
    Kind(row="reasoning-chunks", delta="reasoning-delta", texts="texts", text="text"),
    Kind(row="tool-call-chunks", delta="tool-call-delta", texts="args", text="argumentsDelta", shared=("id", "name")),
)
BY_ROW = {kind.row: kind for kind in KINDS}
BY_DELTA = {kind.delta: kind for kind in KINDS}
