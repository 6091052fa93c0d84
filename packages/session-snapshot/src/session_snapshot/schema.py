"""JSON Schemas of the files a person writes, so that editors complete and explain them; made from the types."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from session_snapshot.agent import Agent
from session_snapshot.scenario import Scenario
from session_snapshot.steps import Script

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_files() -> dict[str, str]:
    """Every schema file by name: ``agent.schema.json`` describes ``agent.toml``, and so on."""
    return {f"{name}.schema.json": format_schema(schema_of(kind)) for name, kind in SCHEMAS.items()}


def schema_of(kind: type[Struct]) -> dict[str, Any]:
    """The schema of one file, descriptions taken from the docstrings."""
    schema = {"$schema": DIALECT} | msgspec.json.schema(kind)
    schema["$defs"] = {name: readable(part) for name, part in schema["$defs"].items()}
    return schema


def readable(part: Mapping[str, Any]) -> dict[str, Any]:
    """A definition as editors show it: its description without the markup of docstrings, a step's fields and all."""
    return {key: plain(value) if key == "description" else value for key, value in part.items()}


def plain(text: str) -> str:
    """A docstring as plain text: paragraphs unwrapped, double backquotes single."""
    paragraphs = text.replace("``", "`").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def format_schema(schema: Mapping[str, Any]) -> str:
    """The file's text."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


SCHEMAS: dict[str, type[Struct]] = {"agent": Agent, "input": Script, "scenario": Scenario}
"""Each file by its name without the extension."""
