"""The one walk over JSON values: every leaf with its path, also inside strings that are JSON themselves."""

from collections.abc import Iterator

from normalizer.blocks import model_paths
from normalizer.context import Document, Field, Kind
from normalizer.jsontext import parse_container
from normalizer.lines import Json

Path = tuple[str | int, ...]


def leaves(value: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """``(path, value)`` of every leaf; an empty list or object is a leaf."""
    if isinstance(value, dict) and value:
        for name, child in value.items():
            yield from leaves(child, (*path, name))
    elif isinstance(value, list) and value:
        for at, child in enumerate(value):
            yield from leaves(child, (*path, at))
    else:
        yield path, value


def fields(document: Document) -> Iterator[Field]:
    """Every leaf of a document, those inside JSON strings after the string that holds them."""
    for value in document.values:
        model = model_paths(value) if document.kind == "session" else ()
        yield from _fields(value, (), None, document.kind, model)


def under(path: Path, prefixes: tuple[Path, ...]) -> bool:
    """Whether ``path`` stands under one of ``prefixes``."""
    return any(path[: len(prefix)] == prefix for prefix in prefixes)


def _fields(value: Json, path: Path, parent: Json, kind: Kind, model: tuple[Path, ...]) -> Iterator[Field]:
    if isinstance(value, dict):
        for name, child in value.items():
            yield from _fields(child, (*path, name), value, kind, model)
    elif isinstance(value, list):
        for at, child in enumerate(value):
            yield from _fields(child, (*path, at), value, kind, model)
    else:
        yield Field(value, path, parent, kind, under(path, model))
        inner = parse_container(value) if isinstance(value, str) else None
        if inner is not None:
            yield from _fields(inner, path, parent, kind, model)
