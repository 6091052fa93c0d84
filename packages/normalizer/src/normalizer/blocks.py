"""A model's words lie in pieces over many rows: which leaves are the pieces of one block.

In a session log chunks stand alone (``assistant/chunk``), in lists (``llm/aux``) or packed (``text-chunks``,
``reasoning-chunks``, ``tool-call-chunks``). Frames hold the pieces of an agent's text, where they were not joined.
"""

from collections.abc import Iterator

from normalizer.context import Document
from normalizer.lines import Json, canonical_line
from normalizer.order import chunk_text, with_text

Path = tuple[str | int, ...]
Address = tuple[int, Path]
"""Which of a document's values, and the path of a leaf in it."""


def blocks(document: Document) -> list[list[Address]]:
    """The addresses of each block's pieces, in the order they were said; blocks of one piece are left out."""
    match document.kind:
        case "session":
            found = _said(document.values)
        case "stdout" | "client":
            found = _shown(document.values)
        case _:
            found = []
    return [pieces for pieces in found if len(pieces) > 1]


def model_paths(value: Json) -> tuple[Path, ...]:
    """The paths of an event of a session log under which a model's own words stand."""
    data = value.get("data") if isinstance(value, dict) else None
    if not isinstance(data, dict) or value.get("type") not in _MODEL_EVENTS:
        return ()
    names = _MODEL_NAMES + (("id",) if value["type"] in _PACKED else ())
    return tuple(("data", name) for name in names if name in data)


def _said(values: list[Json]) -> list[list[Address]]:
    found: dict[tuple[str, int], list[Address]] = {}
    openings: dict[str, int] = {}
    for row, value in enumerate(values):
        for block, path, opens in _pieces(value) if model_paths(value) else ():
            openings[block] = openings.get(block, 0) + opens
            if not opens:
                found.setdefault((block, openings[block]), []).append((row, path))
    return list(found.values())


def _shown(values: list[Json]) -> list[list[Address]]:
    found: list[list[Address]] = []
    last: Json = None
    for row, frame in enumerate(values):
        text = chunk_text(frame) if isinstance(frame, dict) else None
        rest = None if text is None else with_text(frame, "")
        if rest is None or rest != last:
            found.append([])
        if rest is not None:
            found[-1].append((row, ("params", "update", "content", "text")))
        last = rest
    return found


def _pieces(value: Json) -> Iterator[tuple[str, Path, bool]]:
    """``(block, path, whether this opens the block)``."""
    data = value["data"]
    scope = canonical_line({name: data[name] for name in data if name not in _PIECEMEAL})
    if value["type"] in _PACKED:
        name = "args" if "args" in data else "texts"
        block = f"{scope} {data.get('index')}"
        yield from ((block, ("data", name, at), False) for at in range(len(data.get(name, ()))))
    yield from _chunk(scope, data.get("chunk"), ("data", "chunk"))
    for at, chunk in enumerate(data.get("chunks") or ()):
        yield from _chunk(scope, chunk, ("data", "chunks", at))


def _chunk(scope: str, chunk: Json, path: Path) -> Iterator[tuple[str, Path, bool]]:
    if isinstance(chunk, dict) and "index" in chunk:
        block, name = f"{scope} {chunk['index']}", _DELTAS.get(str(chunk.get("type")))
        if chunk.get("type") == "block-start":
            yield block, path, True
        elif name and isinstance(chunk.get(name), str):
            yield block, (*path, name), False


_PACKED = {"text-chunks", "reasoning-chunks", "tool-call-chunks"}
_MODEL_EVENTS = {"assistant/chunk", "llm/aux"} | _PACKED
_MODEL_NAMES = ("chunk", "chunks", "texts", "args")
_PIECEMEAL = {*_MODEL_NAMES, "dt", "index", "id", "name"}
_DELTAS = {"text-delta": "text", "reasoning-delta": "text", "tool-call-delta": "argumentsDelta"}
