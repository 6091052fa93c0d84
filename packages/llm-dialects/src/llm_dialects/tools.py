"""Functions that a model may call: in every dialect a name, a description and a schema of the arguments."""

from collections.abc import Mapping

from msgspec import UNSET

from llm_dialects.chunks import Json
from llm_dialects.reading import as_text, others
from llm_dialects.requests import Tool


def read_function(value: Mapping[str, Json], path: str, schema: str, *known: str) -> Tool:
    """Read a function; the member ``schema`` holds its schema, and ``known`` are members that need not be kept.

    Raises:
        DialectError: naming the JSON path.
    """
    return Tool(
        name=as_text(value.get("name"), f"{path}.name"),
        description=as_text(value.get("description"), f"{path}.description"),
        input_schema=value.get(schema, UNSET),
        extra=others(value, "name", "description", schema, *known),
    )


def render_function(tool: Tool, schema: str) -> dict[str, Json]:
    """Return the members of a function; the inverse of ``read_function``."""
    description = {"description": tool.description} if tool.description else {}
    arguments = {} if tool.input_schema is UNSET else {schema: tool.input_schema}
    return {"name": tool.name} | description | arguments | tool.extra
