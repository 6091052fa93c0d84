"""A provider for the official SDKs: a dialect behind a transport, which needs no socket."""

import json

import pytest
from llm_dialects import DIALECTS, Answer, answer_to, is_streamed, status_of


class SdkProvider:
    """Answers an SDK's requests with one dialect's bytes, in small pieces, and keeps what it was asked.

    Args:
        chunks: What it says.
        error: What it says instead, as an HTTP error.
        said: What it says instead where a stream is asked for: any bytes.
    """

    def __init__(self, httpx, name, chunks, error=None, said=b""):
        self.httpx = httpx
        self.dialect = DIALECTS[name]
        self.chunks = chunks
        self.error = error
        self.said = said
        self.requests = []
        self.paths = []

    def answer(self, http_request):
        dialect, path, query = self.dialect, http_request.url.path, http_request.url.query.decode()
        self.paths.append(path)
        headers = {name.lower(): value for name, value in http_request.headers.items()}
        assert dialect.api_key(headers, query) == "the-key"
        body = json.loads(http_request.content) if http_request.content else None
        side = dialect.side_reply(http_request.method, path, body=body, answer=Answer(id="", model="g-2.5"))
        if side is not None:
            return self.httpx.Response(side[0].status, headers=dict(side[0].headers), content=side[1].data)
        assert path.endswith(dialect.endpoints)
        assert path.startswith(dialect.base_suffix)
        return self.call(dialect.parse_request(dialect.path_params(path, query) | body))

    def call(self, request):
        self.requests.append(request)
        answer = answer_to(self.dialect, request, token="1", created=1700000000)
        if self.error is not None:
            return self.httpx.Response(status_of(self.error), content=self.dialect.error_body(self.error))
        if not is_streamed(request):
            body = self.dialect.encode_message(self.chunks, answer)
            return self.httpx.Response(200, content=body, headers={"content-type": "application/json"})
        wire = self.said or b"".join(self.dialect.encode_stream(self.chunks, answer))
        stream = in_pieces(self.httpx, wire)
        return self.httpx.Response(200, stream=stream, headers={"content-type": answer.stream_type})

    @property
    def transport(self):
        """For clients of either kind."""
        return self.httpx.MockTransport(self.answer)


def in_pieces(httpx, wire):
    """Return a body in pieces of five bytes, for clients of either kind."""

    class Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self):
            return (wire[at : at + 5] for at in range(0, len(wire), 5))

        async def __aiter__(self):
            for piece in self:
                yield piece

    return Pieces()


@pytest.fixture
def sdk_provider():
    """Make a provider for an SDK: a dialect's name, chunks, and what ``SdkProvider`` takes besides."""
    httpx = pytest.importorskip("httpx2")
    return lambda name, chunks, **more: SdkProvider(httpx, name, chunks, **more)
