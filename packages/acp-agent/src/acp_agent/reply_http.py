"""What the head of a provider's reply says: why it refuses, when to come again, how its body is encoded.

Imported with ``model_http``, never at start.
"""

import re
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from email.utils import parsedate_to_datetime

from llm_dialects import classify

from acp_agent.errors import ModelError

Headers = Mapping[str, str]
"""Names in lower case."""


def read_headers(pairs: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return a reply's headers; of one that comes twice the last."""
    return {name.decode("latin-1").lower(): value.decode("latin-1").strip() for name, value in pairs}


def refusal(status: int, headers: Headers, body: bytes) -> ModelError:
    """Return what a reply that is no answer means."""
    if 300 <= status < 400:
        # Followed, it would take the key and the conversation to a place nobody has configured.
        where = headers.get("location", "elsewhere")
        return ModelError("INVALID_REQUEST", f"the provider points to {where} (HTTP {status}); set base_url", status)
    error = classify(status, body)
    return ModelError(error.code, error.message, error.status, retry_after_ms(headers, body))


def retry_after_ms(headers: Headers, body: bytes = b"") -> int | None:
    """Return in how many milliseconds the provider says to come again: ``retry-after-ms``, else ``retry-after``.

    A date is taken by the provider's own clock. Google says it in no header, but in the ``RetryInfo`` of its error.
    """
    detail = RETRY_DELAY.search(body)
    if detail is not None and not headers.keys() & {"retry-after-ms", "retry-after"}:
        return round(float(detail[1]) * 1000)
    try:
        if "retry-after-ms" in headers:
            return max(0, round(float(headers["retry-after-ms"])))
        told = headers["retry-after"]
        if told.isdigit():
            return int(told) * 1000
        wait = parsedate_to_datetime(told) - parsedate_to_datetime(headers["date"])
        return max(0, round(wait.total_seconds() * 1000))
    except (KeyError, ValueError, TypeError, OverflowError):
        return None


async def unpacked(headers: Headers, body: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield a body as it was before its content coding.

    Raises:
        ModelError: a coding that was not asked for, or bytes that are not of it.
    """
    coding = headers.get("content-encoding", "identity").lower()
    if coding == "identity":
        async for data in body:
            yield data
        return
    if coding != ACCEPTED:
        raise ModelError("SERVER_ERROR", f"the provider encodes its answer as {coding!r}, which was not asked for")
    unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | GZIP)
    try:
        async for data in body:
            yield unpack.decompress(data)
    except zlib.error as error:
        raise ModelError("SERVER_ERROR", f"the provider's answer is not the gzip it says it is: {error}") from error


# a duration of Protocol Buffers; the digits are bounded, so that it is a number of seconds that somebody may mean
RETRY_DELAY = re.compile(rb'"retryDelay":\s*"(\d{1,9}(?:\.\d{1,9})?)s"')

ACCEPTED = "gzip"

GZIP = 16
"""What zlib adds to a window's size for gzip's own head and tail."""
