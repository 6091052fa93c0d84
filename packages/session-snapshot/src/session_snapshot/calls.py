"""A model call as the agent made it."""

from llm_dialects.chunks import Usage
from llm_dialects.entries import Entry
from llm_dialects.requests import Request
from msgspec import Struct


class LiveCall(Struct, frozen=True):
    """One model call, in order of arrival.

    ``recorded`` is the index of the recorded call it was bound to (``None``: none, or while recording); ``entry`` is
    what answered it, as it was served or as it was taken from the provider (``None``: the harness refused it).
    ``usage`` is what a replay told the agent that it cost (``None``: nothing).
    """

    number: int
    request: Request
    body: bytes
    recorded: int | None
    entry: Entry | None
    usage: Usage | None = None
