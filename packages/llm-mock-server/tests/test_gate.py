"""Who may ask the control API."""

import http.client
import json
from urllib.parse import urlsplit

import pytest
from llm_mock_server import ScriptedProvider, serve_in_thread
from llm_mock_server.gate import trespass

LET_IN = [
    {"host": "127.0.0.1:4711"},
    {"host": "localhost"},
    {"host": "LOCALHOST:1"},
    {"host": "[::1]:4711"},
    {"host": "127.0.0.1:1", "origin": "http://localhost:3000"},
    {"host": "127.0.0.1:1", "sec-fetch-site": "none"},
    {"host": "127.0.0.1:1", "origin": "http://127.0.0.1:1", "sec-fetch-site": "same-origin"},
]

TURNED_AWAY = [
    ({}, "the host ''"),
    ({"host": ""}, "the host ''"),
    ({"host": "evil.example"}, "the host 'evil.example'"),
    ({"host": "127.0.0.1.evil.example"}, "the host '127.0.0.1.evil.example'"),
    ({"host": "127.0.0.1@evil.example"}, "the host '127.0.0.1@evil.example'"),
    ({"host": "evil.example@127.0.0.1"}, "the host 'evil.example@127.0.0.1'"),
    ({"host": "[::1"}, "the host '[::1'"),
    ({"host": "127.0.0.1:1", "origin": "null"}, "the origin 'null'"),
    ({"host": "127.0.0.1:1", "origin": "http://evil.example"}, "the origin 'http://evil.example'"),
    ({"host": "127.0.0.1:1", "sec-fetch-site": "cross-site"}, "another site (cross-site)"),
    ({"host": "127.0.0.1:1", "sec-fetch-site": "same-site"}, "another site (same-site)"),
]


@pytest.mark.parametrize("headers", LET_IN)
def test_programs_on_this_machine_may_ask(headers):
    assert trespass(tuple(headers.items())) is None


@pytest.mark.parametrize(("headers", "why"), TURNED_AWAY)
def test_pages_of_others_may_not(headers, why):
    assert why in (trespass(tuple(headers.items())) or "")


@pytest.mark.parametrize(("method", "path"), [("POST", "/reset"), ("GET", "/requests"), ("PUT", "/script")])
def test_what_a_page_sends_is_refused_and_changes_nothing(method, path):
    with serve_in_thread(ScriptedProvider(["success"]), control_port=0) as server:
        status, told = ask(server, method, path, {"host": "evil.example"})
        assert (status, told["error"]["code"]) == (403, "FORBIDDEN")
        assert told["error"]["mend"].startswith("ask http://127.0.0.1:")
        assert ask(server, "GET", "/script")[1]["remaining"] == 1


def test_a_script_from_afar_writes_no_files(tmp_path):
    script = {"entries": [{"kind": "hang", "readyFile": str(tmp_path / "ready")}]}
    with serve_in_thread(ScriptedProvider(["success"]), control_port=0) as server:
        status, told = ask(server, "PUT", "/script", {}, json.dumps(script))
        assert (status, told["error"]["code"]) == (400, "BAD_SCRIPT")
        assert "readyFile" in told["error"]["message"]
        assert "GET /wait" in told["error"]["mend"]
        assert ask(server, "GET", "/script")[1]["entries"] == ["success"]


def ask(server, method, path, headers=None, body=None):
    """Return the status and the JSON of the control API's answer."""
    connection = http.client.HTTPConnection(urlsplit(server.control_url).netloc, timeout=30)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()
