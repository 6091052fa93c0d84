"""Where a client sends a request, and what it says there need not stand in the body: a server puts both together."""

import pytest
from llm_dialects import DIALECTS, Message, Request, TextBlock, call_of

MESSAGES = (Message(role="user", content=(TextBlock(text="hi"),)),)
GEMINI = {"model": "gemini-2.5-pro", "generationConfig": {"maxOutputTokens": 9}}

CALLS = [
    ("openai-chat", {"model": "m", "stream": True}, "/chat/completions"),
    ("openai-responses", {"model": "m", "stream": True}, "/responses"),
    ("anthropic-messages", {"model": "m", "max_tokens": 1}, "/v1/messages"),
    ("gemini", GEMINI, "/v1beta/models/gemini-2.5-pro:generateContent"),
    ("gemini", GEMINI | {"stream": True}, "/v1beta/models/gemini-2.5-pro:streamGenerateContent"),
    (
        "gemini",
        GEMINI | {"stream": True, "alt": "sse"},
        "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
    ),
    ("gemini", {"model": "own/a b:c%", "stream": True}, "/v1beta/models/own%2Fa%20b%3Ac%25:streamGenerateContent"),
]


@pytest.mark.parametrize(("name", "params", "target"), CALLS)
def test_path_and_body_say_the_request_together(name, params, target):
    dialect, request = DIALECTS[name], Request(system=("Be brief.",), tools=(), messages=MESSAGES, params=params)
    told, body = call_of(dialect, request)
    assert told == target
    path, _, query = told.partition("?")
    assert path.endswith(dialect.endpoints)
    said = dialect.path_params(path, query)
    assert not said.keys() & body.keys()
    assert dialect.parse_request(said | body) == request


def test_nothing_but_what_google_knows_stands_in_its_body():
    params = GEMINI | {"stream": True, "alt": "sse"}
    _, body = call_of(DIALECTS["gemini"], Request(system=(), tools=(), messages=MESSAGES, params=params))
    assert body == {
        "generationConfig": {"maxOutputTokens": 9},
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    }
