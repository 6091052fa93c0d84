"""The official SDKs as judges of what a scripted provider puts on the wire, and of what each failure is to a client."""

import json
from contextlib import contextmanager

import anthropic
import httpx2
import openai
import pytest
from llm_dialects.errors import ERRORS
from llm_mock_server import ScriptedProvider, serve_in_thread

MESSAGES = [{"role": "user", "content": "hi"}]

USAGE = {"inputTokens": 11, "outputTokens": 7, "cacheReadTokens": 3}

ANSWERS = {
    "text": {"text": "Grüße, 世界 👋 and more than eight code points"},
    "nothing": {},
    "reasoning": {"reasoning": "let me think about that", "text": "done"},
    "one tool call": {"toolCalls": [{"name": "bash", "arguments": {"command": "echo 'hi'", "n": [1, 2]}}]},
    "several tool calls": {
        "text": "both",
        "toolCalls": [
            {"name": "bash", "arguments": {"command": "ls"}, "id": "call_a"},
            {"name": "read_file", "arguments": {"path": "ä.txt"}, "id": "call_b"},
            {"name": "no_arguments", "arguments": {}, "id": "call_c"},
        ],
    },
    "usage": {"text": "counted", "usage": USAGE},
    "cut off": {"text": "too lo", "finish": "max-tokens"},
}


MODULES = {"openai": openai, "anthropic": anthropic}

DIALECT_OF = {"openai": "openai-chat", "anthropic": "anthropic-messages"}


@pytest.fixture(scope="module")
def sdks():
    """One client of each SDK: making one costs more than all that a test does with it."""
    with (
        openai.OpenAI(base_url="http://h", api_key="k", max_retries=0, timeout=20) as of_openai,
        anthropic.Anthropic(base_url="http://h", api_key="k", max_retries=0, timeout=20) as of_anthropic,
    ):
        yield {"openai": of_openai, "anthropic": of_anthropic}


@pytest.fixture
def scripted(sdks):
    """Serve a script to a client of an SDK: ``with scripted("openai", ENTRY...) as (client, server)``."""

    @contextmanager
    def serve(sdk, *entries, on_hang=None, ready_root=None, **options):
        provider = ScriptedProvider(entries, on_hang=on_hang, ready_root=ready_root)
        with serve_in_thread(provider, **options) as server:
            yield sdks[sdk].with_options(base_url=server.base_url(DIALECT_OF[sdk])), server
            assert server.failures == ()

    return serve


def ask_openai(client, *, stream, **options):
    return client.chat.completions.create(model="m", messages=MESSAGES, stream=stream, **options)


def ask_anthropic(client, *, stream):
    return client.messages.create(model="m", max_tokens=100, messages=MESSAGES, stream=stream)


def read_openai_stream(client):
    """What an agent makes of a stream: the pieces joined."""
    text, thoughts, calls, finish, usage = "", "", {}, None, None
    for event in ask_openai(client, stream=True, stream_options={"include_usage": True}):
        usage = event.usage or usage
        for choice in event.choices:
            finish = choice.finish_reason or finish
            text += choice.delta.content or ""
            thoughts += getattr(choice.delta, "reasoning_content", None) or ""
            for call in choice.delta.tool_calls or []:
                known = calls.setdefault(call.index, {"id": call.id, "name": call.function.name, "arguments": ""})
                known["arguments"] += call.function.arguments
    return text, thoughts, list(calls.values()), finish, (usage.prompt_tokens, usage.completion_tokens)


def read_openai_message(client):
    answer = ask_openai(client, stream=False)
    (choice,) = answer.choices
    calls = [
        {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}
        for call in choice.message.tool_calls or []
    ]
    thoughts = getattr(choice.message, "reasoning_content", None) or ""
    usage = (answer.usage.prompt_tokens, answer.usage.completion_tokens)
    return choice.message.content or "", thoughts, calls, choice.finish_reason, usage


def read_anthropic(answer):
    text = "".join(block.text for block in answer.content if block.type == "text")
    thoughts = "".join(block.thinking for block in answer.content if block.type == "thinking")
    calls = [
        {"id": block.id, "name": block.name, "arguments": block.input}
        for block in answer.content
        if block.type == "tool_use"
    ]
    usage = (answer.usage.input_tokens, answer.usage.output_tokens)
    return text, thoughts, calls, answer.stop_reason, usage


def read_anthropic_stream(client):
    """What the SDK's own accumulator makes of a stream."""
    with client.messages.stream(model="m", max_tokens=100, messages=MESSAGES) as stream:
        return read_anthropic(stream.get_final_message())


def read_anthropic_message(client):
    return read_anthropic(ask_anthropic(client, stream=False))


READERS = {
    "openai stream": read_openai_stream,
    "openai message": read_openai_message,
    "anthropic stream": read_anthropic_stream,
    "anthropic message": read_anthropic_message,
}

FINISHES = {
    "openai": {"stop": "stop", "tool-calls": "tool_calls", "max-tokens": "length"},
    "anthropic": {"stop": "end_turn", "tool-calls": "tool_use", "max-tokens": "max_tokens"},
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ANSWERS)
def test_an_sdk_reads_what_the_script_says(scripted, name, reader):
    say = ANSWERS[name]
    with scripted(reader.split()[0], {"kind": "say"} | say) as (client, _):
        text, thoughts, calls, finish, usage = READERS[reader](client)
    said = say.get("toolCalls", [])
    assert (text, thoughts) == (say.get("text", ""), say.get("reasoning", ""))
    assert [call["name"] for call in calls] == [call["name"] for call in said]
    assert [as_value(call["arguments"]) for call in calls] == [call["arguments"] for call in said]
    assert [call["id"] for call in calls] == [call.get("id", "call_mock_1") for call in said]
    assert finish == FINISHES[reader.split()[0]][say.get("finish", "tool-calls" if said else "stop")]
    assert_usage(reader, usage, say)


def as_value(arguments):
    return json.loads(arguments) if isinstance(arguments, str) else arguments


def assert_usage(reader, usage, say):
    """The one of the script, else the honest one: a token for four characters of the messages and of the answer."""
    if "usage" in say:
        # OpenAI's prompt tokens include those read from a cache, Anthropic's do not.
        assert usage == (14 if reader.startswith("openai") else 11, 7)
        return
    prompt = -(-len(json.dumps(MESSAGES, separators=(",", ":"))) // 4)
    texts = [say.get("text", ""), say.get("reasoning", "")]
    texts += [
        json.dumps(call["arguments"], ensure_ascii=False, separators=(",", ":")) for call in say.get("toolCalls", [])
    ]
    assert usage == (prompt, -(-sum(map(len, texts)) // 4))


def throw(code, chunks=(), **members):
    return {"kind": "throw", "chunks": list(chunks), "message": "on purpose", "code": code} | members


PREFIX = (
    {"type": "block-start", "index": 0, "blockType": "text"},
    {"type": "text-delta", "index": 0, "text": "discarded"},
)

STATUSES = {row.code: row.status for row in ERRORS}

ASK = {"openai": ask_openai, "anthropic": ask_anthropic}

both_sdks = pytest.mark.parametrize("sdk", MODULES)
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["message", "stream"])


def class_in_the_table_of(client, status):
    """The exception the SDK itself makes of a status."""
    response = httpx2.Response(status, request=httpx2.Request("POST", "http://h"))
    return type(client._make_status_error("", body=None, response=response))


@both_ways
@both_sdks
@pytest.mark.parametrize("code", [code for code, status in STATUSES.items() if status is not None])
def test_every_code_is_the_exception_that_the_sdk_has_for_it(scripted, sdk, code, stream):
    with scripted(sdk, throw(code)) as (client, _):
        with pytest.raises(MODULES[sdk].APIStatusError) as raised:
            ASK[sdk](client, stream=stream)
        assert type(raised.value) is class_in_the_table_of(client, STATUSES[code])
        assert raised.value.status_code == STATUSES[code]
        assert "on purpose" in str(raised.value)


EXPECTED = {
    ("openai", "AUTH"): openai.AuthenticationError,
    ("openai", "RATE_LIMIT"): openai.RateLimitError,
    ("openai", "QUOTA"): openai.RateLimitError,
    ("openai", "CONTEXT_WINDOW_EXCEEDED"): openai.BadRequestError,
    ("openai", "OVERLOADED"): openai.InternalServerError,
    ("anthropic", "AUTH"): anthropic.AuthenticationError,
    ("anthropic", "RATE_LIMIT"): anthropic.RateLimitError,
    ("anthropic", "CONTEXT_WINDOW_EXCEEDED"): anthropic.BadRequestError,
}


@pytest.mark.parametrize(("sdk", "code"), EXPECTED)
def test_the_codes_agents_act_on(scripted, sdk, code):
    with scripted(sdk, throw(code)) as (client, _):
        with pytest.raises(EXPECTED[sdk, code]) as raised:
            ASK[sdk](client, stream=True)
        assert type(raised.value) is EXPECTED[sdk, code]


@both_sdks
def test_an_entrys_own_status_wins(scripted, sdk):
    with scripted(sdk, throw("SERVER_ERROR", status=502)) as (client, _):
        with pytest.raises(MODULES[sdk].APIStatusError) as raised:
            ASK[sdk](client, stream=True)
        assert raised.value.status_code == 502


@both_ways
@both_sdks
def test_a_reset_before_the_answer_is_a_connection_error(scripted, sdk, stream):
    with scripted(sdk, throw("STREAM_CLOSED")) as (client, server):
        with pytest.raises(MODULES[sdk].APIConnectionError):
            ASK[sdk](client, stream=stream)
        server.wait(lambda: server.requests[0].outcome == "reset")


def read_text(sdk, events, got):
    for event in events:
        if sdk == "openai":
            got.extend(choice.delta.content for choice in event.choices if choice.delta.content)
        elif event.type == "content_block_delta":
            got.append(event.delta.text)


@both_sdks
def test_a_connection_lost_in_the_middle_keeps_what_was_said(scripted, sdk):
    got = []
    with scripted(sdk, throw("STREAM_CLOSED", PREFIX)) as (client, server):
        with (
            ASK[sdk](client, stream=True) as events,
            pytest.raises((MODULES[sdk].APIConnectionError, httpx2.RemoteProtocolError)),
        ):
            read_text(sdk, events, got)
        assert got == ["discarded"]
        server.wait(lambda: server.requests[0].outcome == "reset")


@both_sdks
@pytest.mark.parametrize(
    "entry", [throw("OVERLOADED", PREFIX), throw("OVERLOADED", accepted=True)], ids=["late", "early"]
)
def test_a_failure_after_the_head_is_an_error_event(scripted, sdk, entry):
    got = []
    with scripted(sdk, entry) as (client, server):
        with ASK[sdk](client, stream=True) as events, pytest.raises(MODULES[sdk].APIError, match="on purpose"):
            read_text(sdk, events, got)
        assert got == ["discarded"] * len(entry["chunks"][1:])
        server.wait(lambda: server.requests[0].outcome == "completed")
        assert server.requests[0].status == 200


@both_sdks
def test_a_failure_in_the_middle_of_a_message_is_an_http_error(scripted, sdk):
    with scripted(sdk, throw("RATE_LIMIT", PREFIX)) as (client, _), pytest.raises(MODULES[sdk].RateLimitError):
        ASK[sdk](client, stream=False)


@both_sdks
def test_a_client_that_cancels_a_hang_frees_it(scripted, sdk):
    got, ready = [], []
    with scripted(sdk, {"kind": "hang", "readyFile": "f"}, on_hang=ready.append) as (client, server):
        with ASK[sdk](client, stream=True) as events:
            while not got:
                read_text(sdk, [next(events)], got)
        server.wait(lambda: server.requests[0].outcome == "stalled")
    assert got == ["partial"]
    assert [hang.ready_file for hang in ready] == ["f"]


@both_sdks
def test_a_wrong_key_is_an_authentication_error(scripted, sdk):
    with scripted(sdk, api_key="other") as (client, server):
        with pytest.raises(MODULES[sdk].AuthenticationError):
            ASK[sdk](client, stream=True)
        assert [captured.kind for captured in server.requests] == ["rejected"]


@both_sdks
def test_side_requests_of_the_sdks(scripted, sdk):
    with scripted(sdk) as (client, server):
        assert [model.id for model in client.models.list()] == ["mock-model"]
        assert client.models.retrieve("m").id == "m"
        if sdk == "anthropic":
            assert client.messages.count_tokens(model="m", messages=MESSAGES).input_tokens == 8
        assert {captured.kind for captured in server.requests} == {"side"}


@both_sdks
def test_the_same_script_says_the_same_bytes(scripted, sdk):
    def said():
        entry = {"kind": "say", "text": "hi", "toolCalls": [{"name": "f", "arguments": {}}]}
        with scripted(sdk, entry) as (client, _), ASK[sdk](client, stream=True) as events:
            return [event.to_json() for event in events]

    assert said() == said()
