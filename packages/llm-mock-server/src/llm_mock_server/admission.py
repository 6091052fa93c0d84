"""What a request is: a model call for the responder, a side request or a mistake answered here. Pure."""

from collections.abc import Mapping
from urllib.parse import parse_qs

from llm_dialects import Answer, Dialect, Json, ProviderError, Reply, Request, Usage
from llm_dialects.wire import decode_json
from msgspec import Struct

from llm_mock_server.answer import failure_reply
from llm_mock_server.behaviours_status import auth_error
from llm_mock_server.http1 import Headers, RawRequest, Refused, header, split_target
from llm_mock_server.journal import CapturedRequest, read_json
from llm_mock_server.options import Options
from llm_mock_server.redaction import redact_headers, redact_query, redact_url
from llm_mock_server.situation import Situation


class HttpRequest(Struct, frozen=True):
    """A model call, as the responder sees it.

    Attributes:
        path: The whole path; ``prefix`` is what stood before the dialect's endpoint (a gateway's mount point, ``/v1``).
        query: What follows the ``?``, or "".
        headers: As sent, names in lower case.
        body: As sent; ``json`` is the object it holds, with what the dialect says in the path before it.
        dialect: Name of the dialect whose endpoint was called.
        number: Place among the server's model calls in order of arrival, from 0.
        captured: Its journal entry, where there is a journal.
    """

    method: str
    path: str
    query: str
    headers: Headers
    body: bytes
    dialect: str
    json: dict[str, Json]
    number: int
    prefix: str = ""
    captured: CapturedRequest | None = None

    def __repr__(self) -> str:
        shown = (self.method, redact_url(self.path), redact_query(self.query), redact_headers(self.headers))
        return f"HttpRequest({self.dialect}, call {self.number}, {', '.join(map(repr, shown))}, {len(self.body)} bytes)"

    def note(self, label: str, cursor: str | None = None) -> None:
        """Write into the journal what answers this call, and from which run through the script."""
        if self.captured is not None:
            self.captured.label, self.captured.cursor = label, cursor


class Call(Struct, frozen=True):
    """A well-formed model call; ``prefix`` and ``json`` as in ``HttpRequest``."""

    dialect: Dialect
    prefix: str
    json: dict[str, Json]


class Side(Struct, frozen=True):
    """A request a provider answers beside its model."""

    dialect: Dialect
    reply: Reply


class Rejected(Struct, frozen=True):
    """A mistake of the client's, with the answer it gets."""

    dialect: Dialect
    reply: Reply


Admission = Call | Side | Rejected


def admit(raw: RawRequest, dialects: Mapping[str, Dialect], api_key: str | None, listed_model: str = "") -> Admission:
    """Say what ``raw`` is. Where ``api_key`` is given no other key is let in; model lists hold ``listed_model``."""
    path, query = split_target(raw.target)
    endpoint = find_endpoint(path, dialects)
    if endpoint is None:
        return beside_the_model(raw, path, dialects, api_key, listed_model)
    dialect, prefix = endpoint
    if raw.method != "POST":
        message = f"{raw.method} is not allowed on {path}, use POST"
        return rejected(dialect, "INVALID_REQUEST", message, 405, (("allow", "POST"),))
    if api_key is not None and dialect.api_key(dict(raw.headers), query) != api_key:
        return wrong_key(dialect, dialect.path_params(path, query))
    return read_call(raw, dialect, prefix, dialect.path_params(path, query))


def admit_refused(refused: Refused, dialects: Mapping[str, Dialect]) -> Rejected:
    """Return the answer to what the HTTP parser could not take."""
    code = "REQUEST_TOO_LARGE" if refused.status == 413 else "INVALID_REQUEST"
    return rejected(likely_dialect(refused.request, dialects), code, refused.message, refused.status)


def likely_dialect(raw: RawRequest, dialects: Mapping[str, Dialect]) -> Dialect:
    """Return the dialect a client speaks: told by the endpoint, by its headers, by the query, else the first one."""
    path, query = split_target(raw.target)
    endpoint = find_endpoint(path, dialects)
    if endpoint is not None:
        return endpoint[0]
    in_headers = [told for name, told in HEADER_TELLS.items() if header(raw.headers, name) is not None]
    in_query = [told for name, told in QUERY_TELLS.items() if name in parse_qs(query)]
    for told in (*in_headers, *in_query):
        if told in dialects:
            return dialects[told]
    return next(iter(dialects.values()))


def find_endpoint(path: str, dialects: Mapping[str, Dialect]) -> tuple[Dialect, str] | None:
    """Return the dialect whose endpoint ``path`` ends with, and what stands before it; the longest endpoint wins."""
    best: tuple[Dialect, str] | None = None
    for dialect in dialects.values():
        if not path.endswith(dialect.endpoints):
            continue
        for endpoint in dialect.endpoints:
            if path.endswith(endpoint) and (best is None or len(path) - len(endpoint) < len(best[1])):
                best = dialect, path[: len(path) - len(endpoint)]
    return best


def beside_the_model(
    raw: RawRequest, path: str, dialects: Mapping[str, Dialect], api_key: str | None, listed_model: str
) -> Side | Rejected:
    """Answer a request that calls no model. It needs no key, but must not show a wrong one."""
    likely = likely_dialect(raw, dialects)
    body, answer = read_json(raw.body), Answer(id="", model=listed_model)
    for dialect in (likely, *(other for other in dialects.values() if other is not likely)):
        reply = dialect.side_reply(raw.method, path, body=body, answer=answer)
        if reply is not None:
            shown = dialect.api_key(dict(raw.headers), split_target(raw.target)[1])
            wrong = api_key is not None and shown not in (None, api_key)
            return wrong_key(dialect, {}) if wrong else Side(dialect, reply)
    known = ", ".join(f"...{endpoint}" for dialect in dialects.values() for endpoint in dialect.endpoints)
    return rejected(likely, "NOT_FOUND", f"no such path: {raw.method} {path}; model calls go to {known}", 404)


def read_call(raw: RawRequest, dialect: Dialect, prefix: str, said: dict[str, Json]) -> Call | Rejected:
    """Read the body of a model call; ``said`` is what its path says: first, and right where the body says otherwise."""
    coding = header(raw.headers, "content-encoding")
    if coding not in (None, "", "identity"):
        return rejected(dialect, "INVALID_REQUEST", f"the body's content-encoding {coding} is not understood", 415)
    value = read_json(raw.body)
    if isinstance(value, dict):
        return Call(dialect, prefix, said | value | said if said else value)
    return rejected(
        dialect, "INVALID_REQUEST", f"the body must be a JSON object, it is {what_it_is(raw.body, value)}", 400
    )


def what_it_is(body: bytes, value: Json) -> str:
    """Return the words for a body that holds no JSON object; ``value`` is what was read of it, None for nothing."""
    if not body:
        return "empty"
    if value is not None or body.strip() == b"null":
        return KINDS[type(value)]
    try:
        decode_json(body.decode())
    except UnicodeDecodeError as error:
        return f"not UTF-8: byte {error.start} is 0x{body[error.start]:02x}"
    except ValueError as error:
        return f"not JSON: {error}"
    except RecursionError:
        pass
    return "nested too deeply"


def wrong_key(dialect: Dialect, said: dict[str, Json]) -> Rejected:
    """Return the answer to a missing or wrong key: what the provider says of one, as the behaviour ``auth_error``."""
    situation = Situation(
        dialect=dialect,
        request=Request(system=(), tools=(), messages=(), params=said),
        options=Options(),
        token="key",
        created=0,
        count=lambda _: Usage(input_tokens=0, output_tokens=0),
        new_id=str,
    )
    return Rejected(dialect, tuple(auth_error(situation)))


def rejected(dialect: Dialect, code: str, message: str, status: int, headers: Headers = ()) -> Rejected:
    """Return a rejection in the dialect's words."""
    return Rejected(dialect, failure_reply(dialect, ProviderError(code, message, status), headers))


KINDS = {list: "an array", str: "a string", int: "a number", float: "a number", bool: "a boolean", type(None): "null"}

# A header only one provider's clients send -> its dialect.
HEADER_TELLS = {
    "anthropic-version": "anthropic-messages",
    "x-api-key": "anthropic-messages",
    "x-goog-api-key": "gemini",
}

# The same of members of the query.
QUERY_TELLS = {"key": "gemini"}
