"""Where a call is forwarded to, and why it did not get there. Pure.

A base URL is written in many ways (with or without the API's version, with a gateway's path before it, with a query);
what the agent asks is put behind it so that the version stands there once.
"""

import re
import ssl
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit, urlunsplit

import httpx
from llm_dialects.dialect import Dialect
from llm_mock_server import HttpRequest

KEY_MEMBERS: dict[str, str] = {"gemini": "key"}
"""The member of the query that may hold the key; it is left out, and the header holds the real one."""

VERSION = re.compile(r"v\d\w*")
VERSIONED = re.compile(r"/v\d\w*/.*")
METHOD = re.compile(r"/models/[^/]+:\w+$")
VERSIONS: Mapping[str, str] = {"gemini": "/v1beta"}
"""The API's version where neither the base URL nor the call names one; ``/v1`` everywhere else."""

MOVED = (301, 302, 303, 307, 308)
SAME_CALL = (307, 308)
"""Redirects after which a client says the same again, with its body."""


def target_of(base: str, dialect: Dialect, http: HttpRequest) -> str:
    """The URL of one call at the provider whose base URL is ``base``."""
    parts = urlsplit(base)
    members = [*parts.query.split("&"), *http.query.split("&")]
    query = "&".join(pair for pair in members if pair and pair.partition("=")[0] != KEY_MEMBERS.get(dialect.name))
    return urlunsplit((parts.scheme, parts.netloc, joined(parts.path, dialect, call_path(dialect, http)), query, ""))


def call_path(dialect: Dialect, http: HttpRequest) -> str:
    """What the agent asked, without what stood before the API: the endpoint, or all from the API's version on where the
    path names the model."""
    if not dialect.path_params(http.path, http.query):
        return http.path[len(http.prefix) :]
    versioned = VERSIONED.search(http.path)
    return versioned[0] if versioned else http.path


def joined(base: str, dialect: Dialect, path: str) -> str:
    """A call's path behind that of a base URL. The version of the base stands where both have one."""
    base = without_call(base.rstrip("/"), dialect)
    version, _, rest = path.removeprefix("/").partition("/")
    own = VERSION.fullmatch(version)
    if VERSION.fullmatch(base.rpartition("/")[2]):
        return f"{base}/{rest}" if own else base + path
    return base + path if base or own else VERSIONS.get(dialect.name, "/v1") + path


def without_call(base: str, dialect: Dialect) -> str:
    """A base path without the endpoint, where somebody gave the URL of a call."""
    if found := METHOD.search(base):
        return base[: found.start()]
    return next((base.removesuffix(end) for end in dialect.endpoints if base.endswith(end) and end[0] == "/"), base)


# ── elsewhere ───────────────────────────────────────────────────────────────────────────────────────────────────────


def next_url(response: httpx.Response) -> str:
    """Where the same call is to be asked again on the same host; ``""`` where nowhere."""
    location = response.headers.get("location", "")
    if response.status_code not in SAME_CALL or not location:
        return ""
    here = response.request.url
    try:
        there = here.join(location)
    except httpx.InvalidURL:
        return ""
    upgraded = here.scheme == "http" and there.scheme == "https"
    same = (here.scheme, here.netloc) == (there.scheme, there.netloc)
    return str(there) if there.host == here.host and (same or upgraded) else ""


def told_away(response: httpx.Response) -> str:
    """What a redirect that is not followed means."""
    to = response.headers.get("location") or "nowhere"
    why = "again and again" if next_url(response) else f"(HTTP {response.status_code})"
    return f"the provider at {bare(str(response.request.url))} sends its callers to {bare(to)} {why}"


# ── not there ───────────────────────────────────────────────────────────────────────────────────────────────────────


def why_unreachable(url: str, error: Exception) -> str:
    """Why no provider was reached, in a sentence that names the URL."""
    text = " ".join(dict.fromkeys(str(each) for each in causes(error) if str(each)))
    where = bare(url)
    if isinstance(error, httpx.ProxyError):
        return f"{where} was not reached: the proxy refused ({text})"
    if isinstance(error, httpx.TimeoutException):
        return f"{where} was not reached: no connection in time"
    refused = next((each for each in causes(error) if isinstance(each, ssl.SSLCertVerificationError)), None)
    if refused is not None:
        return f"{where} is not trusted: {refused.verify_message or refused}"
    return f"{where} was not reached: {text or type(error).__name__}"


def mend_unreachable(message: str, url: str) -> str:
    """What mends it."""
    if " is not trusted: " in message:
        return "if you trust it, name the file of its certificate authority: SSL_CERT_FILE=/path/to/ca.pem"
    if ": the proxy refused " in message:
        return f"correct HTTPS_PROXY, or spare the host: NO_PROXY={urlsplit(url).hostname}"
    if "WRONG_VERSION_NUMBER" in message or "record layer" in message:
        return "it does not speak TLS there: write http:// for it"
    return "see that the URL is right and the server is up (HTTPS_PROXY and NO_PROXY count here)"


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what led to it, which may say the same in other words."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def bare(url: str) -> str:
    """A URL without what may be a secret in it: a user, a password, a query."""
    return re.sub(r"//[^/@]*@", "//", url).partition("?")[0]
