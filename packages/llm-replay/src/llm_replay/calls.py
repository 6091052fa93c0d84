"""The values that recording, rows and replay share."""

from llm_dialects import Entry, Request, Tool
from msgspec import Struct


class Header(Struct, frozen=True):
    """What stands before a request's messages: leading system texts and tools."""

    system: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()


class RecordedCall(Struct, frozen=True):
    """One call of the recording. ``index`` counts all calls in the order they were made.

    ``request`` is ``None`` in a historical recording, which keeps none. ``source`` names the file and the entry in it
    that answers (``session.jsonl#0``), ``header`` the header class. ``headed`` is false where the class's content was
    not at hand: ``request`` then has no system texts and no tools, and nobody may compare them.
    """

    index: int
    lane: int
    parent: int | None
    request: Request | None
    entry: Entry
    source: str
    header: str = ""
    headed: bool = True


class Recording(Struct, frozen=True):
    """All calls, in order."""

    calls: tuple[RecordedCall, ...]
