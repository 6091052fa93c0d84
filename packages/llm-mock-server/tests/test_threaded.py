"""The server in a thread: what waiting for it says, and what a closed one does."""

import json
import urllib.request

import pytest
from llm_mock_server import ScriptedProvider, serve_in_thread


def test_a_wait_in_vain_tells_the_last_requests():
    with serve_in_thread(ScriptedProvider([{"kind": "behaviour", "name": "success", "times": 9}])) as server:
        for _ in range(9):
            ask(server)
        with pytest.raises(TimeoutError, match="the last of 9 requests") as told:
            server.wait(lambda: False, timeout=0)
    assert str(told.value).count("CapturedRequest") == 5


def test_a_closed_server_keeps_nobody_waiting():
    with serve_in_thread(ScriptedProvider(["success"])) as server:
        ask(server)
    with pytest.raises(TimeoutError, match="before the server was closed"):
        server.wait(lambda: False, timeout=3600)
    server.wait(lambda: len(server.requests) == 1)


def test_a_closed_server_begins_nothing_anew():
    with serve_in_thread(ScriptedProvider(["success"])) as server:
        pass
    with pytest.raises(RuntimeError, match="the server is closed"):
        server.reset()


def ask(server):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    request = urllib.request.Request(f"{server.base_url('openai-chat')}/chat/completions", body)
    urllib.request.urlopen(request).close()
