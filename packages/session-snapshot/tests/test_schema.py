"""The committed JSON Schemas: made from the types, valid, and true of every committed scenario."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from session_snapshot.schema import DIALECT, SCHEMAS, plain, schema_files, schema_of
from session_snapshot.steps import Step

ROOT = Path(__file__).parents[3]
COMMITTED = ROOT / "docs" / "schema"

KEYWORDS = {
    "$schema", "$ref", "$defs", "title", "description", "type", "properties", "required", "additionalProperties",
    "default", "enum", "items", "anyOf", "discriminator", "minimum",
}  # fmt: skip
"""All that these schemas use: what is not here would be passed over below."""

TYPES = {
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
    "null": type(None),
}  # fmt: skip


def faults(schema: dict[str, Any], value: object, defs: dict[str, Any], at: str = "$") -> Iterator[str]:
    """Where ``value`` is not as ``schema`` (draft 2020-12, the keywords above) says."""
    assert schema.keys() <= KEYWORDS, f"{at}: {schema.keys() - KEYWORDS}"
    if "$ref" in schema:
        yield from faults(defs[schema["$ref"].removeprefix("#/$defs/")], value, defs, at)
    if "type" in schema and not is_of(schema["type"], value):
        yield f"{at}: not of type {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: none of {schema['enum']}"
    if isinstance(value, int) and value < schema.get("minimum", value):
        yield f"{at}: less than {schema['minimum']}"
    if "anyOf" in schema and all(any(True for _ in faults(one, value, defs, at)) for one in schema["anyOf"]):
        yield f"{at}: fits nothing of anyOf"
    if isinstance(value, dict):
        yield from faults_of_members(schema, value, defs, at)
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from faults(schema["items"], item, defs, f"{at}[{number}]")


def faults_of_members(schema: dict[str, Any], value: dict[str, Any], defs: dict[str, Any], at: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", {})
    yield from (f"{at}: lacks {name}" for name in schema.get("required", ()) if name not in value)
    for name, item in value.items():
        if name not in properties and others is False:
            yield f"{at}: unknown key {name}"
        else:
            yield from faults(properties.get(name, others or {}), item, defs, f"{at}.{name}")


def is_of(kind: str, value: object) -> bool:
    return isinstance(value, TYPES[kind]) and not (isinstance(value, bool) and kind in ("integer", "number"))


def check(name: str, value: object) -> list[str]:
    schema = schema_of(SCHEMAS[name])
    return list(faults({"$ref": schema["$ref"]}, value, schema["$defs"]))


def read(path: Path) -> object:
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else tomllib.loads(text)


def written() -> list[Path]:
    found = (ROOT / "snapshots").rglob("*")
    return sorted(path for path in found if path.name in ("agent.toml", "scenario.toml", "input.json"))


@pytest.mark.parametrize("name", sorted(schema_files()))
def test_what_is_committed_is_what_the_types_say(name: str) -> None:
    text = (COMMITTED / name).read_text(encoding="utf-8")
    assert text == schema_files()[name], "mend: session-snapshot schema --write docs/schema"


def test_nothing_else_is_committed() -> None:
    assert {path.name for path in COMMITTED.iterdir()} == set(schema_files())


@pytest.mark.parametrize("path", written(), ids=lambda path: path.relative_to(ROOT / "snapshots").as_posix())
def test_every_committed_file_is_valid(path: Path) -> None:
    assert check(path.stem, read(path)) == []


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("agent", {"comand": ["a"]}, "$: lacks command"),
        ("agent", {"command": "a"}, "$.command: not of type array"),
        ("agent", {"command": ["a"], "guard": {"allow": [{"code": "X"}]}}, "$.guard.allow[0]: lacks reason"),
        ("agent", {"command": ["a"], "adapter": {"argument": []}}, "$.adapter: fits nothing of anyOf"),
        ("scenario", {"recording": "lived"}, "$.recording: none of ['authored', 'live', 'scripted']"),
        ("scenario", {"description": "d", "recording": "live", "sem": 1}, "$: unknown key sem"),
        ("scenario", {"description": "d", "recording": "live", "overridden": 1}, "$.overridden: not of type boolean"),
        ("input", {"steps": [{"op": "promt", "text": ""}]}, "$.steps[0]: fits nothing of anyOf"),
        ("input", {"steps": [{"op": "prompt"}]}, "$.steps[0]: fits nothing of anyOf"),
        ("input", {"steps": [], "answers": []}, "$: unknown key answers"),
    ],
)  # fmt: skip
def test_what_the_harness_refuses_the_schema_refuses(name: str, value: object, fault: str) -> None:
    assert fault in check(name, value)


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_schemas_are_whole(name: str) -> None:
    """Every reference leads somewhere, every definition is used, described, closed, in a readable text."""
    schema = schema_of(SCHEMAS[name])
    assert schema["$schema"] == DIALECT
    referred = {part["$ref"].removeprefix("#/$defs/") for part in parts(schema) if isinstance(part.get("$ref"), str)}
    assert referred == schema["$defs"].keys() == {kind.__name__ for kind in structs_of(SCHEMAS[name], set())}
    for part in schema["$defs"].values():
        assert part["description"].strip() and "``" not in part["description"]
        assert part["additionalProperties"] is False
        assert set(part["required"]) <= part["properties"].keys()


def parts(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(item)


def test_every_op_is_explained_to_editors() -> None:
    schema = schema_of(SCHEMAS["input"])
    steps = [part for part in schema["$defs"].values() if "op" in part["properties"]]
    described = {tuple(part["properties"]["op"]["enum"]): part["description"] for part in steps}
    assert {op for (op,) in described} == {kind.__struct_config__.tag for kind in get_args(Step)}
    assert described["prompt",].startswith("Send a text prompt")


def test_docstrings_become_plain_paragraphs() -> None:
    assert plain("One ``key``\n    and more.\n\n    Next.\n") == "One `key` and more.\n\nNext."


def structs_of(kind: Any, seen: set[type[msgspec.Struct]]) -> set[type[msgspec.Struct]]:
    """Every struct reachable from ``kind``."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind not in seen:
            seen.add(kind)
            for field in msgspec.structs.fields(kind):
                structs_of(field.type, seen)
    else:
        for part in getattr(kind, "__args__", ()):
            structs_of(part, seen)
    return seen
