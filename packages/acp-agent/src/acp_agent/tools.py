"""The tools by name, and how a model's call becomes one of them."""

from collections.abc import Sequence
from typing import Any

import msgspec
from llm_dialects import Tool, ToolCallBlock
from msgspec import Struct

from acp_agent import acp
from acp_agent.tool_bash import BashArguments, bash
from acp_agent.tool_files import EditArguments, ReadArguments, WriteArguments, edit_file, read_file, write_file
from acp_agent.toolbox import ToolContext, ToolError, ToolOutcome, ToolSpec


class ToolUse(Struct, frozen=True):
    """A tool call that can be carried out."""

    id: str
    spec: ToolSpec
    arguments: Any


def offered_tools(enabled: Sequence[str]) -> tuple[Tool, ...]:
    """Return the tools as the model sees them, in the table's order."""
    return tuple(
        Tool(name=spec.name, description=spec.description, input_schema=spec.input_schema)
        for spec in TOOLS.values()
        if spec.name in enabled
    )


def parse_call(call: ToolCallBlock, enabled: Sequence[str]) -> ToolUse:
    """Read a model's call.

    Raises:
        ToolError: ``UNKNOWN_TOOL`` or ``INVALID_ARGUMENTS``.
    """
    if call.name not in enabled:
        raise ToolError("UNKNOWN_TOOL", f"no tool named {call.name!r}; there are {', '.join(enabled)}")
    spec = TOOLS[call.name]
    try:
        return ToolUse(call.id, spec, msgspec.json.decode(call.arguments or "{}", type=spec.arguments))
    except msgspec.DecodeError as error:
        raise ToolError("INVALID_ARGUMENTS", f"arguments of {call.name}: {error}") from None


async def use_tool(context: ToolContext, use: ToolUse) -> ToolOutcome:
    """Carry out a tool call; an error of the tool is an outcome."""
    try:
        return await use.spec.run(context, use.arguments)
    except ToolError as error:
        return ToolOutcome(error.text, error.code)
    except OSError as error:
        return ToolOutcome(str(error), "IO_ERROR")


def describe_call(call: ToolCallBlock, use: ToolUse | None, context: ToolContext) -> dict[str, Any]:
    """Return the ACP fields that tell a client what this call is about: title, kind, rawInput, locations."""
    try:
        raw_input = msgspec.json.decode(call.arguments or "{}")
    except msgspec.DecodeError:
        raw_input = call.arguments
    if use is None:
        return {"title": call.name, "kind": "other", "rawInput": raw_input}
    title = use.spec.title.format(**msgspec.structs.asdict(use.arguments))
    path = getattr(use.arguments, "path", None)
    where = {} if path is None else {"locations": [{"path": str(context.cwd / path)}]}
    return {"title": title, "kind": use.spec.kind, "rawInput": raw_input} | where


def outcome_content(outcome: ToolOutcome) -> list[acp.Json]:
    """Return the ACP content of a finished call: the change it made, else what it says."""
    if outcome.change is not None:
        return [acp.tool_diff(outcome.change.path, outcome.change.old, outcome.change.new)]
    return [acp.tool_text(outcome.text)]


def schema(required: Sequence[str], **properties: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these properties and no others."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


PATH = {"type": "string", "description": "Path, relative to the working directory."}

TOOLS: dict[str, ToolSpec] = {
    spec.name: spec
    for spec in (
        ToolSpec(
            name="bash",
            description="Run a command in a fresh bash in the working directory and return its output.",
            input_schema=schema(
                ["command"],
                command={"type": "string", "description": "The command."},
                escalate={"type": "boolean", "description": "True where it must reach beyond the working directory."},
                justification={"type": "string", "description": "Why; shown to the user who is asked to allow it."},
            ),
            kind="execute",
            title="{command}",
            arguments=BashArguments,
            run=bash,
            ask="bash",
        ),
        ToolSpec(
            name="read_file",
            description="Return lines of a text file.",
            input_schema=schema(
                ["path"],
                path=PATH,
                offset={"type": "integer", "minimum": 1, "description": "First line; 1 if absent."},
                limit={"type": "integer", "minimum": 1, "description": "Number of lines; 2000 if absent."},
            ),
            kind="read",
            title="Read {path}",
            arguments=ReadArguments,
            run=read_file,
            ask=None,
        ),
        ToolSpec(
            name="write_file",
            description="Create a text file, or replace all of one.",
            input_schema=schema(
                ["path", "content"],
                path=PATH,
                content={"type": "string", "description": "The whole content."},
            ),
            kind="edit",
            title="Write {path}",
            arguments=WriteArguments,
            run=write_file,
            ask="write",
        ),
        ToolSpec(
            name="edit_file",
            description="Replace one piece of a text file. The old text must stand in it exactly once.",
            input_schema=schema(
                ["path", "old_text", "new_text"],
                path=PATH,
                old_text={"type": "string", "description": "The piece to replace, copied exactly."},
                new_text={"type": "string", "description": "What to put there."},
            ),
            kind="edit",
            title="Edit {path}",
            arguments=EditArguments,
            run=edit_file,
            ask="write",
        ),
    )
}
