"""What a behaviour says and how fast: texts, tools and delays, read from JSON and checked. Pure."""

from llm_dialects import Json
from llm_dialects.entries import SaidCall
from msgspec import Struct

MAX_DELAY_MS = 2**31 - 1
"""The longest delay: 24 days. More is a mistake in units, not a wish."""


class Options(Struct, frozen=True, kw_only=True):
    """The parameters of the behaviours; in JSON their names are in camel case.

    Attributes:
        success_text: What an answer says.
        partial_text: What is said before a fault in the middle of an answer.
        reasoning_text: What is thought before an answer, where thinking is shown.
        chunk_size: Code points in one piece of a stream.
        chunk_delay_ms: Pause before each piece of ``slow_success``.
        disconnect_delay_ms: Pause before a connection is reset in the middle of an answer.
        headers_delay_ms: Pause before the head of ``slow_headers``.
        retry_after_ms: When ``rate_limit`` says to come again; at least 1.
        request_id: The id that failures carry in the provider's own header; ``None``: one made from the call's token.
        tool_name: The tool that is called.
        tool_arguments: Its arguments, a JSON object as text.
        tool_calls: Several calls of one turn, instead of the two above.
        huge_bytes: Bytes of text in the one event of ``huge_event``.
        redirect_to: Where ``redirect`` points; ``None``: to the same path, asked again.
    """

    success_text: str = "mock response recovered"
    partial_text: str = "discarded partial response"
    reasoning_text: str = "mock reasoning"
    chunk_size: int = 8
    chunk_delay_ms: int = 25
    disconnect_delay_ms: int = 10
    headers_delay_ms: int = 1000
    retry_after_ms: int = 1000
    request_id: str | None = None
    tool_name: str = "mock_tool"
    tool_arguments: str = "{}"
    tool_calls: tuple[SaidCall, ...] = ()
    huge_bytes: int = 2**20
    redirect_to: str | None = None


def options_from_json(value: Json, where: str, base: Options | None = None) -> Options:
    """Read options over those of ``base``; ``where`` is their place, for messages.

    Raises:
        EntryError: an unknown key (the nearest known one is named), or a value that is none.
    """
    raise NotImplementedError
