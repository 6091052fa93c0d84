"""What of a request nobody may read over a shoulder: keys, tokens, cookies. Pure.

What carries a secret is told by its name, by a pattern and not by a list: providers, gateways and clouds each have
names of their own, and one too many that is hidden costs less than one too few.
"""

import re
from collections.abc import Iterator
from hashlib import blake2b
from urllib.parse import unquote_plus

from llm_mock_server.http1 import Headers


def is_secret(name: str) -> bool:
    """Return whether a header or a parameter of this name carries a secret."""
    return SECRET.search(name) is not None


def redact_headers(headers: Headers) -> Headers:
    """Return ``headers``, what is secret in them replaced."""
    return tuple((name, HIDDEN if is_secret(name) else redact_value(name, value)) for name, value in headers)


def redact_value(name: str, value: str) -> str:
    """Return the value of a header that is no secret by its name; a URL may still hold one."""
    if name == "host":
        return HIDDEN + value[value.rindex("@") :] if "@" in value else value
    return redact_url(value) if "://" in value or "?" in value else value


def redact_url(url: str) -> str:
    """Return a URL, or a part of one, without a user's password and without secret parameters."""
    before, mark, query = USERINFO.sub(f"//{HIDDEN}@", url).partition("?")
    return before + mark + redact_query(query)


def redact_query(query: str) -> str:
    """Return ``query`` with the values of secret parameters replaced."""
    return PARAMETER.sub(_redact_parameter, query)


def redact_error(error: Exception, headers: Headers, query: str) -> None:
    """Take the secrets of a request out of an exception that may quote it."""
    if any(isinstance(said, str) for said in error.args):
        error.args = tuple(blanked(said, headers, query) if isinstance(said, str) else said for said in error.args)


def blanked(text: str, headers: Headers, query: str) -> str:
    """Return ``text`` without the secrets of the request that has these headers and this query."""
    for secret in sorted(secrets_in(headers, query), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def secrets_in(headers: Headers, query: str) -> Iterator[str]:
    """Yield the secrets of a request: whole values, and their parts (``Bearer KEY``, ``name=KEY; name=KEY``)."""
    said = [value for name, value in headers if is_secret(name)]
    for parameter in PARAMETER.finditer(query):
        if is_secret(unquote_plus(parameter["name"])):
            said += [parameter["value"], unquote_plus(parameter["value"])]
    for value in said:
        yield from (part for part in (value, *PART.findall(value)) if len(part) >= SHORTEST)


def key_of_header(name: str, value: str) -> str:
    """Return what tells a header's value from others: itself, or a digest of it where it is secret or long."""
    digest = blake2b(value.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    if is_secret(name):
        return value if DIGESTED.fullmatch(value) else f"{name}#{digest}"
    return value if len(value) <= LONG else f"{value[:LONG]}#{digest}"


def _redact_parameter(parameter: re.Match[str]) -> str:
    secret = is_secret(unquote_plus(parameter["name"]))
    return f"{parameter['name']}={HIDDEN if secret else parameter['value']}"


HIDDEN = "***"

SHORTEST = 6
"""Characters a secret must have to be blanked in a text: every text holds words like ``any``."""

LONG = 200
"""Characters of a header's value that may tell a caller from others."""

SECRET = re.compile(
    r"key|token|secret|passw|passphrase|auth|cookie|credential|signature|bearer|jwt|openai-organization|(^|[-_.])sig$",
    re.IGNORECASE,
)
USERINFO = re.compile(r"//[^/?#\s]*@")
PARAMETER = re.compile(r"(?P<name>[^&;=?#]*)=(?P<value>[^&;#]*)")
PART = re.compile(r"(?<=[\s=])[^\s;,=]+=*")
DIGESTED = re.compile(r"[^\s#]+#[0-9a-f]{12}")
