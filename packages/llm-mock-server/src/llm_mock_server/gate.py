"""Who may ask the control API: programs on this machine, and no page of a browser on it. Pure.

A page can send requests to a loopback port, and by a name that it has point at 127.0.0.1 (DNS rebinding) can even read
the answers. It cannot choose the headers in which a browser says where it comes from, nor the name it asked for.
"""

from urllib.parse import urlsplit

from llm_mock_server.http1 import Headers, header

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
"""What a request may call the server; nobody else's name leads here by honest means."""

OWN_SITES = frozenset({"same-origin", "none"})
"""What a browser says in ``sec-fetch-site`` of a request that no other site has sent."""


def trespass(headers: Headers) -> str | None:
    """Return what is wrong with who asks, None if nothing is.

    Args:
        headers: As sent, names in lower case.
    """
    asked = header(headers, "host")
    if host_of(f"//{asked or ''}") not in LOOPBACK_NAMES:
        return f"the host {(asked or '')[:80]!r} is not a name of this machine's loopback"
    origin = header(headers, "origin")
    if origin is not None and host_of(origin) not in LOOPBACK_NAMES:
        return f"the origin {origin[:80]!r} is a page of somebody else's"
    site = header(headers, "sec-fetch-site")
    if site is not None and site not in OWN_SITES:
        return f"a browser sends it for another site ({site[:20]})"
    return None


def host_of(url: str) -> str | None:
    """Return the host in a URL, None where it has none or is none. A name with a user before it is not that name."""
    try:
        parts = urlsplit(url)
        return None if "@" in parts.netloc else parts.hostname
    except ValueError:
        return None
