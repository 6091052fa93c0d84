"""The recorder's way out: the user's certificates and proxies, which the agent knows nothing of."""

import os
from urllib.request import proxy_bypass

import httpx

from session_snapshot.errors import Refused
from session_snapshot.urls import bare, host_of, is_local

TIMEOUT = httpx.Timeout(300.0, connect=30.0)

PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")


def client_for(url: str) -> httpx.AsyncClient:
    """The recorder's client for a provider at ``url`` (``""``: a script of ours): it checks certificates
    (``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` count) and goes through the proxies of the environment, but not to this
    machine, and not to a host that ``NO_PROXY`` spares.

    Raises:
        Refused: a certificate file or a proxy that cannot be used.
    """
    if not url:
        return httpx.AsyncClient(timeout=TIMEOUT, trust_env=False)
    spared = is_local(url) or bool(proxy_bypass(host_of(url)))
    try:
        trusted = httpx.create_ssl_context()
    except OSError as error:
        name = "SSL_CERT_FILE" if os.environ.get("SSL_CERT_FILE") else "SSL_CERT_DIR"
        what = f"{name} is {os.environ.get(name)!r}, which holds no certificates ({error})"
        raise Refused(what, f"name a file of certificates in PEM, or unset {name}") from None
    try:
        return httpx.AsyncClient(timeout=TIMEOUT, verify=trusted, trust_env=not spared)
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        named = [name for name in PROXIES if os.environ.get(name) or os.environ.get(name.lower())]
        told = ", ".join(f"{name} {bare(os.environ.get(name) or os.environ[name.lower()])}" for name in named)
        what = f"a proxy of the environment cannot be used ({told}): {' '.join(str(error).split())}"
        raise Refused(what, f"name an http:// proxy, or spare the host: NO_PROXY={host_of(url)}") from None
