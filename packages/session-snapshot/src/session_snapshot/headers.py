"""Header classes: the system texts and tools of model calls, pinned readably by one scenario per class."""

import json
from collections.abc import Sequence

import msgspec
from llm_dialects.chunks import to_json
from llm_dialects.requests import Request, Tool
from llm_replay import Header
from llm_replay.messages import tools_from_json

from session_snapshot.errors import FixtureError

SYSTEM_FILE = "header.system.md"
TOOLS_FILE = "header.tools.json"

NEXT_TEXT = "\n\n----- next system text -----\n\n"
"""Stands between several leading system texts; providers get them apart."""


def header_of(request: Request) -> Header:
    """The header of one request."""
    return Header(system=request.system, tools=request.tools)


def format_system(system: Sequence[str]) -> str:
    """``header.system.md``: the texts as they are, and one newline."""
    return NEXT_TEXT.join(system) + "\n"


def format_tools(tools: Sequence[Tool]) -> str:
    """``header.tools.json``: the tools as the neutral request has them, indented."""
    return json.dumps([to_json(tool) for tool in tools], indent=2, ensure_ascii=False) + "\n"


def parse_header(system: str, tools: str, where: str) -> Header:
    """Read both files.

    Raises:
        FixtureError: the tools are no JSON list of tools.
    """
    try:
        read = tools_from_json(json.loads(tools))
    except (ValueError, msgspec.ValidationError) as error:
        raise FixtureError(
            f"not a list of tools: {error}", where, None, "restore it, or record the pin again"
        ) from error
    texts = system.removesuffix("\n")
    return Header(system=tuple(texts.split(NEXT_TEXT)) if texts else (), tools=read)
