"""Base URLs: what is refused, with the right one; and what of them is committed."""

import pytest
from fixture_guard import Surroundings, check
from session_snapshot.urls import UrlError, base_url, is_local, source_of


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://api.example.com/v1", "https://api.example.com/v1"),
        ("https://api.example.com/v1/", "https://api.example.com/v1"),
        ("https://x.example.com/openai?api-version=1", "https://x.example.com/openai?api-version=1"),
        (" http://127.0.0.1:8080 ", "http://127.0.0.1:8080"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
        ("HTTPS://api.example.com", "HTTPS://api.example.com"),
    ],
)
def test_what_is_one(text: str, url: str) -> None:
    assert base_url(text) == url


@pytest.mark.parametrize(
    ("text", "what", "mend"),
    [
        ("localhost:8080/v1", "'localhost:8080/v1' has no scheme", "write http://localhost:8080/v1"),
        ("127.0.0.1:8080", "has no scheme", "write http://127.0.0.1:8080"),
        ("api.example.com/v1", "has no scheme", "write https://api.example.com/v1"),
        ("//api.example.com/v1", "has no scheme", "write https://api.example.com/v1"),
        ("", "'' has no scheme", "write https://"),
        ("htps://api.example.com", "'htps' is no scheme", "write https://api.example.com"),
        ("ftp://api.example.com/v1", "'ftp' is no scheme", "write https://api.example.com/v1"),
        ("https:///v1", "names no host", "write scheme, host and path"),
        ("http://:8080", "names no host", "write scheme, host and path"),
        ("http://localhost:eighty/v1", "is no URL: ", "correct its host and port"),
        ("http://localhost:99999/v1", "is no URL: ", "correct its host and port"),
        ("http://[::1/v1", "is no URL: ", "correct its host and port"),
        ("https://me:hunter22@api.example.com/v1", "with a user or a password", "write https://api.example.com/v1, "),
        ("api.example.com/v1?key=hunter22", "has no scheme", "write https://api.example.com/v1"),
        ("https://api.example.com/v1#x", "with a fragment", "write https://api.example.com/v1"),
        ("me:hunter22@api.example.com/v1", "has no scheme", "write https://api.example.com/v1"),
    ],
)
def test_what_is_none(text: str, what: str, mend: str) -> None:
    with pytest.raises(UrlError) as caught:
        base_url(text)
    assert what in caught.value.what
    assert caught.value.mend.startswith(mend)
    assert "hunter22" not in str(caught.value)
    assert str(caught.value).splitlines()[-1].startswith("mend: ")


@pytest.mark.parametrize(
    ("url", "local", "source"),
    [
        ("http://127.0.0.1:8080/v1", True, "http://localhost/v1"),
        ("http://localhost:11434/v1/", True, "http://localhost/v1"),
        ("http://models.localhost", True, "http://localhost"),
        ("https://[::1]:8443/v1", True, "https://localhost/v1"),
        ("http://127.8.9.1", True, "http://localhost"),
        ("https://api.openai.com/v1", False, "https://api.openai.com/v1"),
        ("https://gateway.example.com:8443/openai/v1", False, "https://gateway.example.com:8443/openai/v1"),
        ("http://192.168.1.7:8000/v1", False, "http://private-host/v1"),
        ("http://10.1.2.3/v1", False, "http://private-host/v1"),
        ("http://[fd00::1]:8000/v1", False, "http://private-host/v1"),
        ("http://gpu-box:8000/v1", False, "http://private-host/v1"),
        ("https://models.corp/v1", False, "https://private-host/v1"),
        ("https://models.lab.internal/v1", False, "https://private-host/v1"),
        ("https://me:hunter22@api.example.com/v1?key=hunter22", False, "https://api.example.com/v1"),
    ],
)
def test_where_it_leads_and_what_is_committed_of_it(url: str, local: bool, source: str) -> None:
    assert is_local(url) is local
    assert source_of(url) == source


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/v1", "http://192.168.1.7:8000/v1", "http://x.corp:80/v1"])
def test_what_is_committed_of_it_passes_the_guard(url: str) -> None:
    def hosts(text: str) -> list[str]:
        files = {"s/agent.toml": b'command = ["x"]\n', "s/t/scenario.toml": f"# {text}\n".encode()}
        return [finding.code for finding in check(files, Surroundings()) if finding.code in ("HOST", "PORT")]

    assert hosts(url) and not hosts(source_of(url))
