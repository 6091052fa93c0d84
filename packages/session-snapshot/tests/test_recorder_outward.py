"""The recorder's way to a provider: certificates, proxies, redirects, base URLs of all kinds."""

import asyncio
import base64
import ssl
from contextlib import asynccontextmanager

import httpx
import pytest
import trustme
from llm_dialects import DIALECTS, Chunks, Throw
from llm_mock_server import HttpRequest, ScriptedProvider, serve
from session_snapshot.errors import Refused
from session_snapshot.recording.forwarding import mend_unreachable, target_of
from session_snapshot.recording.outward import client_for
from session_snapshot.recording.recorder import RecordModel

NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
CALL = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
KEY = "the real key"


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """None of the environment of whoever runs this."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def record(upstream):
    """Ask once through a recorder made for ``upstream``: the client's response or exception, and the entry."""
    async with asyncio.timeout(20), client_for(upstream) as outward, httpx.AsyncClient(trust_env=False) as client:
        model = RecordModel(outward, upstream, KEY)
        async with serve(model) as front:
            try:
                got = await client.post(front.base_url("openai-chat") + "/chat/completions", json=CALL)
            except httpx.RequestError as error:
                got = error
            await front.wait(lambda: front.in_flight == 0)
        assert not front.failures
    return got, model.calls[0].entry


def check_unreached(got, entry, *said):
    """The client's connection is reset, and the entry says why."""
    assert isinstance(got, httpx.NetworkError)
    assert isinstance(entry, Throw) and entry.code == "UNREACHABLE" and not entry.chunks
    assert all(part in entry.message for part in said), entry.message


# ── certificates ────────────────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def over_tls(kit, authority, *names):
    """A provider behind TLS: its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (authority.issue_cert(*names) if names else Itself(authority)).configure_cert(context)
    async with serve(ScriptedProvider([{"kind": "say", "text": "in private"}]), api_key=KEY) as provider:

        async def tunnel(reader, writer):
            await join(
                reader, writer, *await asyncio.open_connection("127.0.0.1", int(provider.url.rpartition(":")[2]))
            )

        async with kit.listening(tunnel, ssl=context) as port:
            yield port


class Itself:
    """An authority that vouches for itself, as a certificate that somebody made in a minute does."""

    def __init__(self, authority):
        self.authority = authority

    def configure_cert(self, context):
        with self.authority.private_key_pem.tempfile() as key, self.authority.cert_pem.tempfile() as cert:
            context.load_cert_chain(cert, key)


async def join(reader, writer, other_reader, other_writer):
    """Pass on what comes either way, until both have ended."""

    async def pump(source, sink):
        while data := await source.read(65536):
            sink.write(data)
        sink.close()

    try:
        await asyncio.gather(pump(reader, other_writer), pump(other_reader, writer))
    finally:
        other_writer.close()


@pytest.fixture
def authority(tmp_path, monkeypatch):
    """A certificate authority that the environment trusts."""
    made = trustme.CA()
    made.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return made


def test_a_certificate_that_the_environment_trusts(kit, authority):
    async def run():
        async with over_tls(kit, authority, "localhost") as port:
            return await record(f"https://localhost:{port}/v1")

    got, entry = asyncio.run(run())
    assert got.status_code == 200 and isinstance(entry, Chunks)


@pytest.mark.parametrize(
    ("names", "trusted", "said"),
    [
        ((), False, "self-signed certificate"),
        (("localhost",), False, "unable to get local issuer certificate"),
        (("other.example",), True, "Hostname mismatch, certificate is not valid for 'localhost'."),
    ],
)
def test_a_certificate_that_is_not_to_be_trusted(kit, authority, names, trusted, said, monkeypatch):
    if not trusted:
        monkeypatch.delenv("SSL_CERT_FILE")

    async def run():
        async with over_tls(kit, authority, *names) as port:
            return port, *await record(f"https://localhost:{port}/v1")

    port, got, entry = asyncio.run(run())
    check_unreached(got, entry, f"https://localhost:{port}/v1/chat/completions is not trusted: ", said)
    assert "SSL_CERT_FILE=" in mend_unreachable(entry.message, "https://localhost")


def test_tls_where_there_is_none():
    async def run():
        async with serve(ScriptedProvider([])) as provider:
            return await record(provider.base_url("openai-chat").replace("http:", "https:"))

    got, entry = asyncio.run(run())
    check_unreached(got, entry, "was not reached: ")
    assert "write http://" in mend_unreachable(entry.message, "https://x")


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_certificate_file_that_is_none(content, tmp_path, monkeypatch):
    if content:
        (tmp_path / "ca.pem").write_text(content, encoding="utf-8")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with pytest.raises(Refused, match=r"SSL_CERT_FILE is .* holds no certificates .*\nmend: name a file"):
        client_for("https://provider.test/v1")


# ── proxies ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Proxy:
    """An HTTP proxy that takes every host for this machine; ``asked`` is the first line and the headers of each."""

    def __init__(self, refusal=b""):
        self.asked, self.refusal, self.to = [], refusal, 0

    async def take(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head.decode())
        if self.refusal:
            writer.write(self.refusal)
            return
        other = await asyncio.open_connection("127.0.0.1", self.to)
        if head.startswith(b"CONNECT"):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            method, target, rest = head.split(b" ", 2)
            other[1].write(b" ".join([method, b"/" + target.split(b"/", 3)[3], rest]))
        await join(reader, writer, *other)


def through(kit, authority, monkeypatch, variables, upstream="https://provider.test/v1", refusal=b""):
    """Record from a provider whose name only the proxy knows; ``{}`` in ``variables`` is the proxy's port."""
    proxy = Proxy(refusal)

    async def run():
        async with over_tls(kit, authority, "provider.test") as port, kit.listening(proxy.take) as own:
            proxy.to = port
            for name, value in variables.items():
                monkeypatch.setenv(name, value.format(own))
            return await record(upstream)

    return proxy, *asyncio.run(run())


def test_a_provider_is_reached_through_the_users_proxy_and_the_tls_ends_at_the_provider(kit, authority, monkeypatch):
    proxy, got, entry = through(kit, authority, monkeypatch, {"HTTPS_PROXY": "http://me:pass1234@127.0.0.1:{}"})
    assert got.status_code == 200 and isinstance(entry, Chunks)
    (asked,) = proxy.asked
    assert asked.startswith("CONNECT provider.test:443 ")
    told = base64.b64encode(b"me:pass1234").decode()
    assert f"proxy-authorization: basic {told}".lower() in asked.lower()
    assert KEY not in asked, "the proxy does not see into the tunnel"


@pytest.mark.parametrize("spared", ["provider.test", ".test", "*"])
def test_a_spared_host_is_asked_directly(kit, authority, monkeypatch, spared):
    """It has no address here: the proxy alone would have known it."""
    variables = {"HTTPS_PROXY": "http://127.0.0.1:{}", "NO_PROXY": f"localhost,{spared}"}
    proxy, got, entry = through(kit, authority, monkeypatch, variables)
    check_unreached(got, entry, "https://provider.test/v1/chat/completions was not reached: ")
    assert not proxy.asked


def test_a_proxy_that_refuses(kit, authority, monkeypatch):
    refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"
    variables = {"HTTPS_PROXY": "http://me:pass1234@127.0.0.1:{}"}
    _, got, entry = through(kit, authority, monkeypatch, variables, refusal=refusal)
    check_unreached(got, entry, "https://provider.test/v1/chat/completions was not reached: the proxy refused (407 ")
    assert "pass1234" not in entry.message
    assert "NO_PROXY=provider.test" in mend_unreachable(entry.message, "https://provider.test/v1")


def test_without_tls_the_proxy_is_asked_for_the_whole_url(kit, monkeypatch):
    proxy = Proxy()

    async def run():
        async with (
            serve(ScriptedProvider([{"kind": "say", "text": "x"}]), api_key=KEY) as provider,
            kit.listening(proxy.take) as own,
        ):
            proxy.to = int(provider.url.rpartition(":")[2])
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{own}")
            return await record("http://provider.test/v1")

    got, entry = asyncio.run(run())
    assert got.status_code == 200 and isinstance(entry, Chunks)
    assert proxy.asked[0].startswith("POST http://provider.test/v1/chat/completions ")


@pytest.mark.parametrize("value", ["socks5://me:pass1234@127.0.0.1:1", "ftp://127.0.0.1:1", "http://[::1"])
def test_a_proxy_that_cannot_be_used(value, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", value)
    with pytest.raises(Refused, match=r"a proxy of the environment cannot be used \(ALL_PROXY .*\nmend: ") as caught:
        client_for("https://provider.test/v1")
    assert "pass1234" not in str(caught.value)
    assert client_for("http://localhost:1/v1") and client_for(""), "it is not needed on this machine"
    monkeypatch.setenv("NO_PROXY", "provider.test")
    assert client_for("https://provider.test/v1")


# ── redirects ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [307, 308])
def test_a_call_is_asked_again_elsewhere_on_the_same_host(kit, status):
    paths = []

    async def respond(_reader, writer, body):
        paths.append(body)
        away = kit.message(b"", status, location="/moved/here?x=1")
        for data in away if len(paths) == 1 else kit.events(*kit.told("openai-chat", streamed=True)):
            writer.write(data)

    got, entry = kit.forward(respond)
    assert (got.status_code, entry) == (200, Chunks(chunks=kit.SAID))
    assert paths[0] == paths[1] != b""


@pytest.mark.parametrize(
    ("status", "location", "said"),
    [
        (
            307,
            "https://other.example/v1/chat/completions?key=x",
            " to https://other.example/v1/chat/completions (HTTP 307)",
        ),
        (307, "http://127.0.0.1:1/v1", " to http://127.0.0.1:1/v1 (HTTP 307)"),
        (302, "/v1/chat/completions", " to /v1/chat/completions (HTTP 302)"),
        (308, "/again", " to /again again and again"),
        (307, "http://[broken", " to http://[broken (HTTP 307)"),
        (307, "", " to nowhere (HTTP 307)"),
    ],
)
def test_a_call_that_would_lead_past_the_recorder_is_not_followed(kit, status, location, said):
    """The agent is told, in its dialect; it is not sent to where it would be asked without the key, and unheard."""
    got, entry = kit.forward(kit.saying(*kit.message(b"", status, **({"location": location} if location else {}))))
    assert (got.status_code, got.headers.get("location")) == (500, None)
    assert entry.code == "REDIRECTED" and entry.message.endswith(said), entry.message
    assert got.json()["error"]["message"] == entry.message


# ── base URLs ───────────────────────────────────────────────────────────────────────────────────────────────────────

CHAT, RESPONSES, MESSAGES, GEMINI = "openai-chat", "openai-responses", "anthropic-messages", "gemini"
GENERATE = "/v1beta/models/m:generateContent"

# dialect, the base URL, what the agent asks, what is asked of the provider
BASES = [
    (CHAT, "https://a.example/v1", "/v1/chat/completions", "https://a.example/v1/chat/completions"),
    (CHAT, "https://a.example/v1/", "/v1/chat/completions", "https://a.example/v1/chat/completions"),
    (CHAT, "https://a.example", "/v1/chat/completions", "https://a.example/v1/chat/completions"),
    (CHAT, "https://a.example/", "/chat/completions", "https://a.example/v1/chat/completions"),
    (CHAT, "http://[::1]:11434/v1", "/v1/chat/completions", "http://[::1]:11434/v1/chat/completions"),
    (CHAT, "https://a.example/openai", "/v1/chat/completions", "https://a.example/openai/chat/completions"),
    (CHAT, "https://a.example/openai/v1//", "/v1/chat/completions", "https://a.example/openai/v1/chat/completions"),
    (CHAT, "https://a.example/v1/gateway", "/v1/chat/completions", "https://a.example/v1/gateway/chat/completions"),
    (CHAT, "https://a.example/v1/chat/completions", "/v1/chat/completions", "https://a.example/v1/chat/completions"),
    (CHAT, "https://a.example/d/x?api-version=1", "/v1/chat/completions?b=2", "https://a.example/d/x/chat/completions?api-version=1&b=2"),
    (CHAT, "https://a.example/v1#top", "/v1/chat/completions", "https://a.example/v1/chat/completions"),
    (CHAT, "https://a.example/v2", "/v1/chat/completions", "https://a.example/v2/chat/completions"),
    (CHAT, "https://a.example/v1", "/mount/v1/chat/completions", "https://a.example/v1/chat/completions"),
    (RESPONSES, "https://a.example", "/v1/responses", "https://a.example/v1/responses"),
    (RESPONSES, "https://a.example/v1/responses", "/v1/responses", "https://a.example/v1/responses"),
    (MESSAGES, "https://a.example", "/v1/messages", "https://a.example/v1/messages"),
    (MESSAGES, "https://a.example/v1", "/v1/messages?beta=true", "https://a.example/v1/messages?beta=true"),
    (MESSAGES, "https://a.example/v1/messages", "/v1/messages", "https://a.example/v1/messages"),
    (MESSAGES, "https://a.example/anthropic/", "/v1/messages", "https://a.example/anthropic/v1/messages"),
    (MESSAGES, "https://a.example", "/messages", "https://a.example/v1/messages"),
    (GEMINI, "https://a.example", GENERATE + "?key=dummy", "https://a.example" + GENERATE),
    (GEMINI, "https://a.example/v1beta", "/mount" + GENERATE, "https://a.example" + GENERATE),
    (GEMINI, "https://a.example/v1", GENERATE, "https://a.example/v1/models/m:generateContent"),
    (GEMINI, "https://a.example/gw?x=1", GENERATE + "?alt=sse&key=d", f"https://a.example/gw{GENERATE}?x=1&alt=sse"),
    (GEMINI, "https://a.example" + GENERATE, GENERATE, "https://a.example" + GENERATE),
    (GEMINI, "https://a.example", "/models/m:generateContent", "https://a.example" + GENERATE),
]  # fmt: skip


@pytest.mark.parametrize(("name", "base", "asked", "target"), BASES)
def test_a_call_is_put_behind_any_base_url(name, base, asked, target):
    dialect = DIALECTS[name]
    path, _, query = asked.partition("?")
    endpoint = max((end for end in dialect.endpoints if path.endswith(end)), key=len)
    prefix = path.removesuffix(endpoint)
    http = HttpRequest("POST", path, query, (), b"", name, {}, 0, prefix)
    assert target_of(base, dialect, http) == target
