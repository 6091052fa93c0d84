"""Base URLs of providers: what is one, whether it is this machine, and what a committed file may say of it."""

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from llm_dialects.words import nearest

SCHEMES = ("http", "https")
LOCAL_NAMES = ("localhost",)
PRIVATE_NAME = re.compile(r"[^.]+|.*\.(?:local|internal|intranet|lan|corp|home\.arpa)", re.IGNORECASE)
"""Names that only some network knows: those without a dot, and those under a domain that nobody can register."""


class UrlError(ValueError):
    """What is wrong with a URL, in a sentence that repeats no password, and what to write instead."""

    def __init__(self, what: str, mend: str) -> None:
        """Keep both."""
        super().__init__(f"{what}\nmend: {mend}")
        self.what = what
        self.mend = mend


def base_url(text: str) -> str:
    """A provider's base URL, without the slash at its end.

    Raises:
        UrlError: it has no scheme or another one than HTTP's, no host, a port that is none, or holds a password or a
            fragment; the nearest right one. (A query is what some gateways want: ``?api-version=...``.)
    """
    text = text.strip()
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme = "http" if is_local_name(host_of(f"http://{text}")) else "https"
        raise UrlError(f"{bare(text)!r} has no scheme", f"write {scheme}://{bare(text.lstrip('/'))}")
    if scheme.lower() not in SCHEMES:
        near = nearest(scheme.lower(), SCHEMES) or "https"
        raise UrlError(f"{scheme!r} is no scheme that providers are asked by", f"write {near}://{bare(rest)}")
    parts = split(text)
    if not parts.hostname:
        raise UrlError(f"{bare(text)!r} names no host", "write scheme, host and path: https://api.example.com/v1")
    refuse_extras(parts)
    return text.rstrip("/")


def split(text: str) -> SplitResult:
    """A URL's parts, its port among them.

    Raises:
        UrlError: its host or its port is none.
    """
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise UrlError(f"{bare(text)!r} is no URL: {error}", "correct its host and port") from None
    return parts


def refuse_extras(parts: SplitResult) -> None:
    """Refuse what a base URL does not hold: the key has a variable of its own, and paths are put behind it."""
    whole = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    if "@" in parts.netloc:
        raise UrlError(f"{whole!r} is given with a user or a password", f"write {whole}, and set the key's variable")
    if parts.fragment:
        raise UrlError(f"{whole!r} is given with a fragment", f"write {whole}")


def bare(text: str) -> str:
    """A text without what may be a user, a password or a query."""
    scheme, separator, rest = text.partition("?")[0].rpartition("://")
    head, slash, tail = rest.partition("/")
    return f"{scheme}{separator}{head.rpartition('@')[2]}{slash}{tail}"


def host_of(url: str) -> str:
    """A URL's host, ``""`` where it has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_local(url: str) -> bool:
    """Whether a URL leads to this machine."""
    return is_local_name(host_of(url))


def is_local_name(host: str) -> bool:
    """Whether a host is this machine."""
    address = address_of(host)
    return host in LOCAL_NAMES or host.endswith(".localhost") or (address is not None and address.is_loopback)


def is_private(host: str) -> bool:
    """Whether only some network knows a host by this name or address."""
    address = address_of(host)
    return not address.is_global if address is not None else bool(PRIVATE_NAME.fullmatch(host))


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address a host is given by, if it is not given by name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def source_of(url: str) -> str:
    """A base URL as a committed file tells it: of this machine without the port, which is another elsewhere; of a
    private network without the host, which is nobody's business; never with a password or a query."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    told = "localhost" if is_local_name(host) else "private-host" if is_private(host) else f"{host}{port}"
    return f"{parts.scheme}://{told}{parts.path.rstrip('/')}"
