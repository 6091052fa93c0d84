"""Scripts over real HTTP, judged by the SDKs: turns with tools of their own, conditions, concurrent callers."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import anthropic
import openai
import pytest
from llm_mock_server import ScriptedProvider, script_from_json, serve_in_thread

TOOLS = ("compress", "decompress")


def provider_of(*entries, **settings):
    return ScriptedProvider(script_from_json({"entries": list(entries), **settings}, "s.json"))


@contextmanager
def openai_client(server, **options):
    with openai.OpenAI(
        **{"base_url": server.base_url("openai-chat"), "api_key": "any", "max_retries": 0} | options
    ) as client:
        yield client


@contextmanager
def anthropic_client(server, **options):
    with anthropic.Anthropic(
        **{"base_url": server.base_url("anthropic-messages"), "api_key": "any", "max_retries": 0} | options
    ) as client:
        yield client


# ── A turn that compresses, then a turn that decompresses ───────────────────────────────────────────────────────────


def ask_openai(client, messages):
    """One turn: the tool call in it, and what the history goes on with."""
    stream = client.chat.completions.create(model="m", messages=messages, stream=True)
    calls = [delta for chunk in stream if chunk.choices for delta in chunk.choices[0].delta.tool_calls or ()]
    call_id, name = calls[0].id, calls[0].function.name
    arguments = "".join(delta.function.arguments or "" for delta in calls)
    function = {"name": name, "arguments": arguments}
    said = {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": function}]}
    return name, json.loads(arguments), [said, {"role": "tool", "tool_call_id": call_id, "content": "done: part-7"}]


def ask_anthropic(client, messages):
    """The same in the other dialect."""
    with client.messages.stream(model="m", max_tokens=99, messages=messages) as stream:
        (block,) = stream.get_final_message().content
    said = {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
    result = {"type": "tool_result", "tool_use_id": block.id, "content": "done: part-7"}
    return block.name, block.input, [{"role": "assistant", "content": [said]}, {"role": "user", "content": [result]}]


def as_say(name, arguments):
    return {"kind": "say", "toolCalls": [{"name": name, "arguments": arguments}]}


def as_behaviour(name, arguments):
    return {
        "kind": "behaviour",
        "name": "tool_call_success",
        "options": {"toolName": name, "toolArguments": arguments, "chunkDelayMs": 0},
    }


@pytest.mark.parametrize("turn", [as_say, as_behaviour])
@pytest.mark.parametrize(("dial_sdk", "ask"), [(openai_client, ask_openai), (anthropic_client, ask_anthropic)])
def test_a_compress_turn_and_then_a_decompress_turn(turn, dial_sdk, ask):
    provider = provider_of(
        turn("compress", '{"text":"{{fromRequest:archive: (.+)}}"}'),
        turn("decompress", '{"handle":"{{handle}}","part":"{{fromRequest:part-\\d+}}","level":{{level}}}'),
    )
    messages = [{"role": "user", "content": 'archive: a "quoted" text'}]
    with serve_in_thread(provider) as server, dial_sdk(server) as client:
        name, arguments, more = ask(client, messages)
        assert (name, arguments) == ("compress", {"text": 'a "quoted" text'})
        # What the tool made of it is known only now.
        provider.values.update(handle='C:\\tmp\\"h1"', level=9)
        name, arguments, _ = ask(client, [*messages, *more])
        assert (name, arguments) == ("decompress", {"handle": 'C:\\tmp\\"h1"', "part": "part-7", "level": 9})
        assert [captured.label for captured in server.requests] == [
            "say" if turn is as_say else "tool_call_success"
        ] * 2
        assert not server.failures


# ── Conditions ──────────────────────────────────────────────────────────────────────────────────────────────────────


def outcome_openai(client, model, text):
    try:
        answer = client.chat.completions.create(model=model, messages=[{"role": "user", "content": text}])
    except openai.APIError as error:
        return type(error).__name__
    return answer.choices[0].message.content


def outcome_anthropic(client, model, text):
    try:
        answer = client.messages.create(model=model, max_tokens=99, messages=[{"role": "user", "content": text}])
    except anthropic.APIError as error:
        return type(error).__name__
    return answer.content[0].text


@pytest.mark.parametrize(
    ("dial_sdk", "outcome"), [(openai_client, outcome_openai), (anthropic_client, outcome_anthropic)]
)
def test_faults_meet_the_requests_they_are_for(dial_sdk, outcome):
    provider = provider_of(
        {"kind": "behaviour", "name": "rate_limit", "when": {"model": "big-*"}},
        {"kind": "behaviour", "name": "auth_error", "when": {"header": {"x-team": "^red$"}}},
        {"kind": "behaviour", "name": "context_overflow", "when": {"text": "(?i)everything"}},
        {"kind": "behaviour", "name": "server_error", "when": {"nth": 5}},
        {"kind": "say", "text": "fine", "times": "any", "when": {"body": {"/messages/0/role": "user"}}},
    )
    with (
        serve_in_thread(provider) as server,
        dial_sdk(server) as client,
        dial_sdk(server, default_headers={"X-Team": "red"}) as red,
    ):
        asked = [
            (client, "small", "hi"),
            (client, "big-1", "hi"),
            (red, "small", "hi"),
            (client, "small", "Tell me everything."),
            (client, "small", "hi"),
            (client, "big-1", "Tell me everything."),
        ]
        assert [outcome(*each) for each in asked] == [
            "fine",
            "RateLimitError",
            "AuthenticationError",
            "BadRequestError",
            "InternalServerError",
            "fine",
        ]
        assert provider.remaining == 0


def test_exhausted_and_unfilled_are_errors_that_sdks_read():
    provider = provider_of({"kind": "say", "text": "{{handle}}"})
    with serve_in_thread(provider) as server, openai_client(server) as ours, anthropic_client(server) as theirs:
        messages = [{"role": "user", "content": "hi"}]
        with pytest.raises(
            openai.InternalServerError, match=r"\{\{handle\}\}: nothing is known by this name"
        ) as caught:
            ours.chat.completions.create(model="m", messages=messages)
        assert caught.value.code == "MOCK_PLACEHOLDER_UNFILLED"
        provider.values["handle"] = "h1"
        assert outcome_openai(ours, "m", "hi") == "h1"
        with pytest.raises(anthropic.InternalServerError, match=r"model call 2 \(POST /v1/messages, model m"):
            theirs.messages.create(model="m", max_tokens=9, messages=messages)
        assert [captured.label for captured in server.requests] == ["unfilled", "say", "exhausted"]
        assert not server.failures


def test_what_is_no_model_call_takes_no_entry(dial, post):
    provider = provider_of({"kind": "say", "text": "one", "when": {"nth": 1}})
    with serve_in_thread(provider, api_key="sesame") as server:
        key = ("authorization: Bearer sesame",)
        for request, status in (
            (post(b"{", headers=key), 400),
            (post(b"", headers=key), 400),
            (post(b'{"messages": 3}', headers=key), 400),
            (post(headers=("authorization: Bearer wrong",)), 401),
            (post(path="/v1/chat/completion", headers=key), 404),
            (post(b"", method="GET", headers=key), 405),
        ):
            client = dial(server.url)
            client.send(request)
            assert client.read_head().startswith(f"HTTP/1.1 {status} ")
        assert (provider.served, provider.remaining) == (0, 1)
        with openai_client(server, api_key="sesame") as client:
            assert outcome_openai(client, "m", "hi") == "one"


# ── Concurrent callers ──────────────────────────────────────────────────────────────────────────────────────────────

FAULTS = ("rate_limit", "server_error", "partial_disconnect", "empty")


def converse(server, name, options):
    """Each caller meets every fault, in order, and then its own answer; the SDK's retries are its own affair."""
    with openai_client(server, **options(server, name)) as client:
        seen = [outcome_openai(client, "m", f"I am {name}") for _ in FAULTS]
        return [*seen, outcome_openai(client, "m", f"I am {name}")]


@pytest.mark.parametrize(
    ("cursor", "options"),
    [
        ("lineage", lambda server, name: {}),
        ({"header": "X-Session"}, lambda server, name: {"default_headers": {"x-session": name}}),
        ({"segment": True}, lambda server, name: {"base_url": f"{server.url}/{name}/v1"}),
    ],
)
def test_concurrent_callers_meet_each_fault_once(cursor, options):
    said = {"kind": "say", "text": "you are {{fromRequest:I am (\\w+)}}"}
    provider = provider_of(*FAULTS, said, cursor=cursor, options={"chunkDelayMs": 0, "disconnectDelayMs": 1})
    names = [f"caller{number}" for number in range(8)]
    with serve_in_thread(provider) as server, ThreadPoolExecutor(len(names)) as pool:
        got = list(pool.map(lambda name: converse(server, name, options), names))
    faults = ["RateLimitError", "InternalServerError", got[0][2], got[0][3]]
    assert got == [[*faults, f"you are {name}"] for name in names]
    assert (provider.served, provider.remaining) == (len(names) * (len(FAULTS) + 1), 0)


def test_what_no_provider_would_answer_is_rejected_in_the_dialects_words_and_takes_no_entry(dial, post):
    provider = provider_of("success")
    with serve_in_thread(provider) as server:
        client = dial(server.url)
        for body in (b'{"messages":[]}', b'{"model":5,"messages":[]}', b'{"model":"m"}'):
            client.send(post(body))
            head, answer = client.read_whole()
            assert head.startswith("HTTP/1.1 400 ")
            assert answer["error"]["type"] == "invalid_request_error"
        assert [captured.kind for captured in server.requests] == ["rejected"] * 3
        assert (provider.remaining, server.failures) == (1, ())
