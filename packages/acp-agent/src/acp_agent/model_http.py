"""A provider over HTTP: renders the request in its dialect, decodes the answer as it streams in.

The client is httpcore2, the engine under httpx2: it does connections, TLS and proxies at half the start-up cost.
Imported with the first model call, never at start.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from urllib.parse import urlsplit

import httpcore2
import msgspec
from llm_dialects import DIALECTS, Dialect, DialectError, Finish, Request, StreamChunk, call_of
from llm_dialects.dialect import EVENT_STREAM

from acp_agent import __version__
from acp_agent.config import ModelConfig
from acp_agent.errors import ModelError
from acp_agent.reply_http import ACCEPTED, read_headers, refusal, unpacked


class HttpModel:
    """The configured provider; a ``Model``."""

    def __init__(self, config: ModelConfig, environment: Mapping[str, str]) -> None:
        self._dialect: Dialect = DIALECTS[config.dialect]
        self._base = (environment.get(config.base_url_env) or config.base_url).rstrip("/")
        self._key_name = config.api_key_env
        self._key = environment.get(config.api_key_env, "")
        self._timeout = {"connect": 30.0, "write": 30.0, "pool": None, "read": config.silence_seconds}
        self._pool = httpcore2.AsyncConnectionPool(proxy=proxy_for(self._base, environment))

    async def stream(self, request: Request, session_key: str) -> AsyncGenerator[StreamChunk, None]:
        """Send the request; yield chunks as the body arrives."""
        if self._key_name and not self._key:
            raise ModelError("AUTH", f"no API key: the environment variable {self._key_name} is not set")
        target, body = call_of(self._dialect, request)
        with told_as_model_errors():
            async with self._pool.stream(
                "POST",
                self._base + target,
                headers=self._headers(session_key),
                content=msgspec.json.encode(body),
                extensions={"timeout": self._timeout},
            ) as response:
                headers = read_headers(response.headers)
                data = unpacked(headers, response.aiter_stream())
                if response.status >= 300:
                    raise refusal(response.status, headers, b"".join([piece async for piece in data]))
                async with aclosing(decoded(self._dialect, data, headers.get("content-type", ""))) as chunks:
                    async for chunk in chunks:
                        yield chunk

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    def _headers(self, session_key: str) -> list[tuple[str, str]]:
        name, value = self._dialect.key_header
        return [
            ("content-type", "application/json"),
            ("accept", EVENT_STREAM),
            ("accept-encoding", ACCEPTED),
            ("user-agent", f"acp-agent/{__version__}"),
            ("x-session-id", session_key),
            (name, value.format(key=self._key)),
            *VERSIONS.get(self._dialect.name, ()),
        ]


async def decoded(dialect: Dialect, body: AsyncIterator[bytes], content_type: str) -> AsyncGenerator[StreamChunk, None]:
    """Yield the chunks of a streamed answer; a body that ends before its ``Finish`` was cut off.

    What it is labelled as does not matter where it can be read; where it cannot, the label tells why.
    """
    decoder = dialect.decoder()
    finished = False
    async for data in body:
        for chunk in decoder.feed(data):
            finished = finished or isinstance(chunk, Finish)
            yield chunk
    for chunk in decoder.close():
        finished = finished or isinstance(chunk, Finish)
        yield chunk
    if not finished:
        label = "" if content_type.startswith(EVENT_STREAM) else f" (it came as {content_type or 'nothing named'})"
        raise ModelError("STREAM_CLOSED", f"the provider ended the stream before the answer was complete{label}")


@contextmanager
def told_as_model_errors() -> Iterator[None]:
    """Turn the client's and the decoder's exceptions into ``ModelError``."""
    try:
        yield
    except httpcore2.TimeoutException as error:
        raise ModelError("TIMEOUT", f"the provider did not answer in time ({type(error).__name__})") from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError) as error:
        raise ModelError("STREAM_CLOSED", f"connection lost: {error or type(error).__name__}") from error
    except (httpcore2.UnsupportedProtocol, ValueError) as error:
        code = "SERVER_ERROR" if isinstance(error, DialectError) else "INVALID_REQUEST"
        raise ModelError(code, str(error)) from error


def proxy_for(url: str, environment: Mapping[str, str]) -> httpcore2.Proxy | None:
    """Return the proxy that ``HTTPS_PROXY`` / ``HTTP_PROXY`` / ``ALL_PROXY`` name for ``url``, ``NO_PROXY`` heeded."""
    parts = urlsplit(url)
    variables = {name.lower(): value for name, value in environment.items() if name.lower().endswith("_proxy")}
    proxy = variables.get(f"{parts.scheme}_proxy") or variables.get("all_proxy")
    host = parts.hostname or ""
    spared = [name.strip().lstrip(".").lower() for name in variables.get("no_proxy", "").split(",") if name.strip()]
    bypassed = host in LOOPBACK or any(name == "*" or f".{host}".endswith(f".{name}") for name in spared)
    return httpcore2.Proxy(proxy) if proxy and not bypassed else None


LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

VERSIONS: dict[str, tuple[tuple[str, str], ...]] = {"anthropic-messages": (("anthropic-version", "2023-06-01"),)}
"""Headers without which a provider takes no request."""
