"""Requests to a provider that are not model calls: model lists, health checks, probes for other kinds of server."""

import re
from collections.abc import Mapping, Sequence

from llm_dialects.actions import Action, Body, Head
from llm_dialects.chunks import Json
from llm_dialects.dialect import Answer
from llm_dialects.usage import prompt_tokens
from llm_dialects.wire import encode_json


def json_reply(value: Json, status: int = 200) -> tuple[Action, ...]:
    """Return a whole JSON response."""
    data = encode_json(value)
    headers = (("content-type", "application/json"), ("content-length", str(len(data))))
    return (Head(status, headers), Body(data))


def hello_reply(method: str, path: str) -> tuple[Action, ...] | None:
    """Answer a look at the bare host, e.g. Claude Code's ``HEAD /``."""
    if path != "/" or method not in {"GET", "HEAD"}:
        return None
    return (Head(200, (("content-length", "0"),)),) if method == "HEAD" else json_reply({"status": "ok"})


def openai_side_reply(
    method: str,
    path: str,
    *,
    body: Json = None,  # noqa: ARG001 - the signature of every dialect's side_reply
    answer: Answer | None = None,
) -> tuple[Action, ...] | None:
    """Answer what clients of OpenAI and of its many imitators ask: models, health, Ollama's ``/api/show``."""
    models = [_openai_model(answer.model, answer)] if answer is not None and answer.model else []
    match method, _asked(path):
        case "GET", ("models", ""):
            return json_reply({"object": "list", "data": models})
        case "GET", ("models", name):
            return json_reply(_openai_model(name, answer))
        case "GET", ("api/tags", ""):
            return json_reply({"models": [{"name": model["id"], "model": model["id"]} for model in models]})
        case "POST", ("api/show", ""):
            return json_reply({"details": {}, "model_info": {}, "capabilities": ["completion", "tools"]})
    return hello_reply(method, path)


def responses_side_reply(
    method: str, path: str, *, body: Json = None, answer: Answer | None = None
) -> tuple[Action, ...] | None:
    """Answer what clients of OpenAI responses ask: token counts, and what all clients of OpenAI ask."""
    if method == "POST" and _asked(path) == ("responses/input_tokens", ""):
        return json_reply({"object": "response.input_tokens", "input_tokens": prompt_tokens(body)})
    return openai_side_reply(method, path, body=body, answer=answer)


def anthropic_side_reply(
    method: str, path: str, *, body: Json = None, answer: Answer | None = None
) -> tuple[Action, ...] | None:
    """Answer what clients of Anthropic ask: models, token counts, ``HEAD /``."""
    models = [_anthropic_model(answer.model)] if answer is not None and answer.model else []
    match method, _asked(path):
        case "GET", ("models", ""):
            ends = {"first_id": models[0]["id"], "last_id": models[-1]["id"]} if models else {}
            return json_reply({"data": models, "has_more": False, "first_id": None, "last_id": None} | ends)
        case "GET", ("models", name):
            return json_reply(_anthropic_model(name))
        case "POST", ("messages/count_tokens", ""):
            return json_reply({"input_tokens": prompt_tokens(body)})
    return hello_reply(method, path)


def gemini_side_reply(
    method: str, path: str, *, body: Json = None, answer: Answer | None = None
) -> tuple[Action, ...] | None:
    """Answer what clients of Gemini ask: models, token counts. Vertex has its models under ``publishers/google``."""
    counted = re.search(r"/models/[^/:]+:countTokens$", path)
    if method == "POST" and counted:
        inner = body.get("generateContentRequest", body) if isinstance(body, dict) else None
        return json_reply({"totalTokens": prompt_tokens(inner)})
    models = [answer.model] if answer is not None and answer.model else []
    vertex = "/publishers/google/models" in path
    match method, _asked(path):
        case "GET", ("models", ""):
            listed = [_vertex_model(name) if vertex else _gemini_model(name) for name in models]
            return json_reply({"publisherModels" if vertex else "models": listed})
        case "GET", ("models", name):
            return json_reply(_vertex_model(name) if vertex else _gemini_model(name))
    return hello_reply(method, path)


def bearer_key(headers: Mapping[str, str], query: str = "") -> str | None:  # noqa: ARG001 - a KeyReader
    """Return the key of ``Authorization: Bearer``."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def header_key(headers: Mapping[str, str], names: Sequence[str]) -> str | None:
    """Return the first of the headers ``names``, else the bearer key."""
    return next((headers[name] for name in names if name in headers), None) or bearer_key(headers)


def _asked(path: str) -> tuple[str, str]:
    """Return which of the known resources ``path`` ends with, whatever stands before it, and the name after it."""
    found = SIDE_PATH.search(path)
    return (found["what"], found["name"] or "") if found else ("", "")


def _openai_model(name: str, answer: Answer | None) -> dict[str, Json]:
    created = answer.created if answer is not None else 0
    return {"id": name, "object": "model", "created": created, "owned_by": "snapshot"}


def _anthropic_model(name: str) -> dict[str, Json]:
    head = {"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"}
    return head | {"lifecycle": "active", "max_input_tokens": 200000, "max_tokens": 64000}


def _gemini_model(name: str) -> dict[str, Json]:
    limits = {"inputTokenLimit": 1048576, "outputTokenLimit": 65536}
    methods = {"supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"]}
    return {"name": f"models/{name}", "version": "001", "displayName": name} | limits | methods


def _vertex_model(name: str) -> dict[str, Json]:
    return {"name": f"publishers/google/models/{name}", "versionId": "default"}


SIDE_PATH = re.compile(
    r"/(?P<what>models|api/tags|api/show|messages/count_tokens|responses/input_tokens)(?:/(?P<name>.+?))?/?$"
)
