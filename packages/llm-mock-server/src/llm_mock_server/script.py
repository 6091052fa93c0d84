"""A scripted stand-in for a provider: the entries of an ``upstream.json``, one for each model call, in their order."""

from collections.abc import Callable, Mapping, Sequence

from llm_dialects import (
    DIALECTS,
    Answer,
    Chunks,
    Dialect,
    Entry,
    EntryError,
    Hang,
    Json,
    ProviderError,
    Reply,
    Request,
    Say,
    UsageChunk,
    answer_to,
    fill_from_request,
    honest_usage,
    say_to_chunks,
    upstream_from_json,
)
from llm_dialects.wire import compact, decode_json

from llm_mock_server.admission import HttpRequest
from llm_mock_server.answer import entry_reply, failure_reply

CREATED = 1_767_225_600
"""When every scripted answer was made, in Unix seconds: the same script says the same bytes (2026-01-01)."""


class ScriptedProvider:
    """A responder that answers call ``n`` with entry ``n``, whatever is asked, in the dialect it is asked in.

    Everything it says is a function of the script and the requests: ids count up, the time stands still, usage that an
    entry lacks is counted from the request. A request the dialect cannot read takes no entry.

    Args:
        entries: The entries as JSON, as in ``upstream.json`` (``read_script``).
        where: Name of the script, for messages.
        on_hang: Called when a ``Hang`` falls silent.

    Raises:
        EntryError: an entry is wrong.
    """

    def __init__(
        self,
        entries: Sequence[Json],
        *,
        where: str = "upstream.json",
        dialects: Mapping[str, Dialect] = DIALECTS,
        on_hang: Callable[[Hang], None] | None = None,
    ) -> None:
        self.served = 0
        self._where = where
        self._json = tuple(entries)
        self._entries = upstream_from_json({"entries": list(entries)}, where)
        # Filling means to read the entry anew; long answers begin sooner where no entry asks for it.
        self._fillable = "{{fromRequest:" in compact(self._json)
        self._dialects = dialects
        self._on_hang = on_hang
        self._ids = 0

    @property
    def remaining(self) -> int:
        """How many entries have not been served."""
        return len(self._entries) - self.served

    def __call__(self, http: HttpRequest) -> Reply:
        """Answer one model call."""
        dialect = self._dialects[http.dialect]
        request = dialect.parse_request(http.json)
        if not self.remaining:
            return failure_reply(dialect, self._exhausted(http, request))
        entry = self._next_entry(request)
        answer = self._answer(dialect, request, entry, http)
        return entry_reply(dialect, request, entry, answer, lambda: self._hung(entry))

    def _next_entry(self, request: Request) -> Entry:
        """Take the next entry, filled from the request."""
        at = self.served
        self.served += 1
        entry = self._entries[at]
        if self._fillable:
            filled = fill_from_request(self._json[at], request)
            (entry,) = upstream_from_json({"entries": [filled]}, f"{self._where}: entry {at}, filled")
        return Chunks(chunks=say_to_chunks(entry, self._new_id)) if isinstance(entry, Say) else entry

    def _new_id(self) -> str:
        self._ids += 1
        return f"call_mock_{self._ids}"

    def _answer(self, dialect: Dialect, request: Request, entry: Entry, http: HttpRequest) -> Answer:
        counted = any(isinstance(chunk, UsageChunk) for chunk in entry.chunks)
        usage = None if counted else honest_usage(http.json, entry.chunks)
        return answer_to(dialect, request, token=f"mock{self.served}", created=CREATED, usage=usage)

    def _hung(self, entry: Entry) -> None:
        if self._on_hang is not None and isinstance(entry, Hang):
            self._on_hang(entry)

    def _exhausted(self, http: HttpRequest, request: Request) -> ProviderError:
        model = request.params.get("model")
        asked = f"model call {http.number} ({http.method} {http.path}, model {model}, {len(request.messages)} messages)"
        message = f"{self._where}: {asked} has no entry, the script holds {len(self._entries)}"
        return ProviderError("MOCK_SCRIPT_EXHAUSTED", f"{message}\nmend: add an entry to {self._where}", 500)


def read_script(text: str | bytes, where: str) -> list[Json]:
    """Return the entries of an ``upstream.json``, checked; ``where`` names the file.

    Raises:
        EntryError: not JSON, or an entry is wrong.
    """
    try:
        value = decode_json(text)
    except ValueError as error:
        raise EntryError(f"{where}: not JSON: {error}") from None
    upstream_from_json(value, where)
    entries: list[Json] = value["entries"]
    return entries
