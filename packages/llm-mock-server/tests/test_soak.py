"""A seeded random soak: one client, one server, whatever the dice throw; the same journal twice."""

import http.client
import json
from collections.abc import Mapping
from itertools import cycle, islice
from urllib.parse import urlsplit

import pytest
from llm_dialects import DIALECTS, Json
from llm_mock_server import BEHAVIOURS, ScriptedProvider, serve_in_thread
from llm_mock_server.dice import DEFAULT_WEIGHTS
from llm_mock_server.script import script_from_json

SEED = 20_261_130

ZERO_DELAYS: Mapping[str, Json] = {"chunkDelayMs": 0, "disconnectDelayMs": 0, "headersDelayMs": 0, "hugeBytes": 4096}

# Every dialect's call, streamed and not, in turns.
CALLS = [
    ("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "hi"}]}),
    ("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}),
    ("/v1/responses", {"model": "m", "input": "hi"}),
    ("/v1/responses", {"model": "m", "input": "hi", "stream": True}),
    ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}),
    ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "stream": True}),
    ("/v1beta/models/m:generateContent", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
    ("/v1beta/models/m:streamGenerateContent", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
    ("/v1beta/models/m:streamGenerateContent?alt=sse", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
]

WEIGHTS = {"by default": DEFAULT_WEIGHTS, "every behaviour": dict.fromkeys(BEHAVIOURS, 1)}


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_random_soak_gives_the_same_journal_twice(weights):
    check_soak(300, WEIGHTS[weights])


@pytest.mark.stress
@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_long_random_soak_gives_the_same_journal_twice(weights):
    check_soak(10_000, WEIGHTS[weights])


def test_another_seed_gives_another_journal():
    assert soak(30, DEFAULT_WEIGHTS, SEED) != soak(30, DEFAULT_WEIGHTS, SEED + 1)


def check_soak(size, weights):
    first, again = soak(size, weights), soak(size, weights)

    for before, after in zip(first, again, strict=True):
        assert before == after
    assert len(first) == size
    assert {row["outcome"] for row in first} == {"completed", "reset", "stalled"}
    assert {row["dialect"] for row in first} == set(DIALECTS)
    likely = {name for name, share in weights.items() if size * share / sum(weights.values()) >= 9}
    assert likely <= {row["label"] for row in first} <= set(weights)


def soak(size, weights, seed=SEED):
    """Send ``size`` calls one after another; return the journal, ports aside (there are no times in it)."""
    entries = [{"kind": "behaviour", "name": "random", "times": size}]
    script = script_from_json({"entries": entries, "options": ZERO_DELAYS, "weights": weights, "seed": seed}, "soak")
    with serve_in_thread(ScriptedProvider(script), keep=size) as server:
        client = Client(server)
        for path, body in islice(cycle(CALLS), size):
            client.ask(path, json.dumps(body))
        client.close()
        server.wait(lambda: server.in_flight == 0)
        assert server.failures == ()
        return [without_ports(captured.to_json()) for captured in server.requests]


def without_ports(row):
    return row | {"headers": [pair for pair in row["headers"] if pair[0] != "host"]}


class Client:
    """One connection, made anew whenever the server has dropped it; it follows no redirect and heeds no failure."""

    def __init__(self, server):
        self._server = server
        self._connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)

    def ask(self, path, body):
        """Send a call and read what comes, to its end or to where the server falls silent."""
        try:
            self._connection.request("POST", path, body, {"content-type": "application/json"})
            response = self._connection.getresponse()
            if self._server.requests[-1].label == "stall":
                self._connection.close()
                self._server.wait(lambda: self._server.in_flight == 0)
            else:
                response.read()
        except (http.client.HTTPException, ConnectionError):
            self._connection.close()

    def close(self):
        self._connection.close()
