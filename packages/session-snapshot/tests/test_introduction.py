"""What a person reads of an agent that says what it is."""

import pytest
from session_snapshot.protocols.acp_introduction import introduction, shape, wanted_login

INITIALIZED = {
    "protocolVersion": 1,
    "agentInfo": {"name": "mine", "title": "My agent", "version": "1.2"},
    "agentCapabilities": {
        "loadSession": True,
        "promptCapabilities": {"image": True, "audio": False},
        "mcpCapabilities": {"http": False},
        "sessionCapabilities": {"list": {}, "fork": None},
        "_meta": {"limit": 3},
    },
    "authMethods": [{"id": "key", "name": "A key"}, {"id": "browser", "name": "A browser"}],
}
OPENED = {
    "sessionId": "0123456789abcdef",
    "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask"}, {"id": "code"}]},
    "models": {"currentModelId": "other", "availableModels": [{"modelId": f"m{number}"} for number in range(9)]},
    "configOptions": [{"id": "effort", "currentValue": "low", "options": [{"value": "low"}, {"value": "high"}]}],
}


def results(*values):
    return [{"jsonrpc": "2.0", "id": number, "result": value} for number, value in enumerate(values)]


def test_all_that_is_said():
    assert introduction(results(INITIALIZED, OPENED)) == [
        ("agent", "mine 1.2 (My agent)"),
        ("protocol", "ACP version 1"),
        ("can", "loadSession, promptCapabilities.image, sessionCapabilities.list, _meta.limit = 3"),
        ("logins", "key, browser"),
        ("session id", "hex digits (16 characters)"),
        ("modes", "[ask], code"),
        ("models", "[other], m0, m1, m2, m3, m4, m5, m6, and 2 more"),
        ("option effort", "[low], high"),
    ]


def test_an_agent_of_few_words():
    assert introduction(results({"protocolVersion": 1}, {"sessionId": "s-1"})) == [
        ("agent", "it does not say its name"),
        ("protocol", "ACP version 1"),
        ("can", "nothing beyond text prompts"),
        ("logins", "none"),
        ("session id", "a prefix and an id (3 characters)"),
    ]


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [{"jsonrpc": "2.0", "method": "session/update", "params": {}}],
        results({"protocolVersion": 1, "agentInfo": [], "agentCapabilities": "all", "authMethods": {"id": "x"}}),
        results({"sessionId": 3, "modes": [], "models": "m", "configOptions": [1, {}]}),
        results(None, [], "x"),
    ],
)
def test_nothing_an_agent_says_breaks_it(frames):
    assert all(isinstance(line, str) for _, line in introduction(frames))
    assert wanted_login(frames) is None


def test_a_login_that_is_wanted():
    refused = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "Authentication required"}}
    assert wanted_login([*results(INITIALIZED), refused]) == ["key", "browser"]
    assert wanted_login([refused]) == []
    assert wanted_login([*results(INITIALIZED), refused | {"error": {"code": -32603}}]) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("7b0f2c1e-3b1a-4c58-9c3f-0123456789ab", "a uuid"),
        ("42", "digits"),
        ("00ff", "hex digits"),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "a ulid"),
        ("sess_0123", "a prefix and an id"),
        ("Qm9vbQ", "letters and digits"),
        ("a/b", "text"),
    ],
)
def test_what_ids_look_like(text, words):
    assert shape(text) == f"{words} ({len(text)} characters)"
