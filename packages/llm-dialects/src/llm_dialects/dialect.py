"""What a dialect is: the functions that turn a provider's wire format into neutral values and back.

Every function is pure: ids, the time and the model's name come in as an ``Answer``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from llm_dialects.actions import Action
from llm_dialects.chunks import Json, StreamChunk, Usage
from llm_dialects.errors import ProviderError
from llm_dialects.requests import Request

EVENT_STREAM = "text/event-stream"
"""The content type of server-sent events."""


class DialectError(ValueError):
    """A request or an answer that the dialect cannot read; the message begins with the JSON path of the fault."""


class Answer(Struct, frozen=True, kw_only=True):
    """What an answer says about itself on the wire, besides its chunks.

    ``created`` is in Unix seconds. ``usage`` is reported where the chunks hold none (``usage.honest_usage``).
    ``stream_type`` is the content type of a streamed answer. ``exact``: the chunks were taken from a provider, so that
    a usage in them is told although nobody asked for it, and counts they leave out are not told (as zeros).
    """

    id: str
    model: str
    created: int = 0
    include_usage: bool = True
    usage: Usage | None = None
    stream_type: str = EVENT_STREAM
    exact: bool = False


class StreamDecoder(Protocol):
    """Reads a streamed response body as it arrives."""

    def feed(self, data: bytes) -> list[StreamChunk]:
        """Return the chunks that ``data`` completes.

        Raises:
            DialectError: an event that is not JSON, or not what the dialect allows.
        """
        ...

    def close(self) -> list[StreamChunk]:
        """Return what the end of the body completes. If no ``Finish`` was ever returned the stream was cut off."""
        ...


class SideReply(Protocol):
    """Answers requests that are not model calls: model lists, health checks, token counting."""

    def __call__(
        self, method: str, path: str, *, body: Json = None, answer: Answer | None = None
    ) -> tuple[Action, ...] | None:
        """Return the whole reply, or ``None`` if ``method`` and ``path`` are no side request of the dialect."""
        ...


class KeyReader(Protocol):
    """Finds the key a client sent."""

    def __call__(self, headers: Mapping[str, str], query: str = "") -> str | None:
        """Return the key in ``headers`` (names in lower case) or in the URL's ``query``; None where there is none."""
        ...


def nothing_in_path(path: str, query: str) -> dict[str, Json]:  # noqa: ARG001 - the signature of every path_params
    """Return no members: the body says all."""
    return {}


def always_counted(request: Request) -> bool:  # noqa: ARG001 - the signature of every wants_usage
    """Return ``True``: token counts are part of every stream."""
    return True


def always_events(request: Request) -> str:  # noqa: ARG001 - the signature of every stream_type
    """Return the content type of server-sent events, whatever was asked."""
    return EVENT_STREAM


class Dialect(Struct, frozen=True, kw_only=True):
    """One provider's wire format. ``DIALECTS`` in ``dialects.py`` lists them all."""

    name: str
    endpoints: tuple[str, ...]
    """What the path of a model call ends with."""
    base_suffix: str
    """What the client's base URL ends with, after scheme, host and port."""
    id_prefix: str
    """What the provider's answer ids begin with."""
    parse_request: Callable[[Json], Request]
    """Read a request body; raises ``DialectError``."""
    render_request: Callable[[Request], dict[str, Json]]
    """The inverse: ``parse_request(render_request(r)) == r``."""
    encode_stream: Callable[[Sequence[StreamChunk], Answer], Iterator[bytes]]
    """The events of a streamed answer, one ``bytes`` per event; unfinished chunks make an unfinished stream."""
    encode_message: Callable[[Sequence[StreamChunk], Answer], bytes]
    """The body of an answer that is not streamed."""
    decoder: Callable[[], StreamDecoder]
    """A new reader of one streamed answer."""
    decode_message: Callable[[bytes], tuple[StreamChunk, ...]]
    """Read the body of an answer that is not streamed; raises ``DialectError``."""
    error_body: Callable[[ProviderError], bytes]
    """The body of an HTTP error."""
    error_event: Callable[[ProviderError], bytes]
    """The event that ends a stream with an error."""
    side_reply: SideReply
    api_key: KeyReader
    """The key a client sent."""
    key_header: tuple[str, str] = ("authorization", "Bearer {key}")
    """Name and value of the header in which a client sends its key; ``api_key`` finds it there."""
    wants_usage: Callable[[Request], bool] = always_counted
    """Whether the client asked for token counts in the stream."""
    path_params: Callable[[str, str], dict[str, Json]] = nothing_in_path
    """What path and query of a model call say that other dialects say in the body (``model``, ``stream``). A server
    puts these members before those of the body, so that a parsed body says all that was asked."""
    call_path: Callable[[Request], str] | None = None
    """The inverse: path and query of a model call, after the base URL; ``None``: always the first endpoint."""
    stream_type: Callable[[Request], str] = always_events
    """The content type of a streamed answer to a request."""


def is_streamed(request: Request) -> bool:
    """Return whether the client asked for a stream. (Dialects that say so in the path put it into ``params``.)"""
    return request.params.get("stream") is True


def call_of(dialect: Dialect, request: Request) -> tuple[str, dict[str, Json]]:
    """Return where a client sends ``request`` (path and query) and the body, which does not repeat what they say."""
    target = dialect.endpoints[0] if dialect.call_path is None else dialect.call_path(request)
    path, _, query = target.partition("?")
    said = dialect.path_params(path, query)
    return target, {key: value for key, value in dialect.render_request(request).items() if key not in said}


def answer_to(
    dialect: Dialect, request: Request, *, token: str, created: int, usage: Usage | None = None, exact: bool = False
) -> Answer:
    """Return the ``Answer`` that goes with ``request``; ``token`` makes its id, e.g. ``7`` for ``chatcmpl-7``."""
    return Answer(
        id=dialect.id_prefix + token,
        model=str(request.params.get("model", "")),
        created=created,
        include_usage=dialect.wants_usage(request),
        usage=usage,
        stream_type=dialect.stream_type(request),
        exact=exact,
    )
