"""The providers' own SDKs judge what we put on the wire, and what they send is read back."""

import json

import pytest
from llm_dialects import (
    DIALECTS,
    Answer,
    FinishReason,
    Message,
    ProviderError,
    ReasoningBlock,
    Request,
    Say,
    TextBlock,
    Tool,
    ToolCallBlock,
    ToolResultPart,
    Usage,
    say_to_chunks,
)
from llm_dialects.entries import SaidCall
from llm_dialects.errors import ERRORS

anthropic = pytest.importorskip("anthropic")
genai = pytest.importorskip("google.genai")
openai = pytest.importorskip("openai")
httpx = pytest.importorskip("httpx2")

SAY = Say(
    text="Grüße an alle 👋",
    reasoning="hm",
    tool_calls=(SaidCall(name="ls", arguments='{"path": "."}', id="c-1"), SaidCall(name="pwd", arguments="", id="c-2")),
    usage=Usage(input_tokens=6, output_tokens=7, cache_read_tokens=20, cache_write_tokens=4, reasoning_tokens=3),
)
CHUNKS = say_to_chunks(SAY, str)
# ours, OpenAI's, Anthropic's
FINISHES = [
    ("stop", "stop", "end_turn"),
    ("max-tokens", "length", "max_tokens"),
    ("content-filter", "content_filter", "refusal"),
]


@pytest.fixture
def provide(sdk_provider):
    """Make a provider that speaks the dialect of a name."""
    return lambda name, chunks=CHUNKS, **more: sdk_provider(name, chunks, **more)


@pytest.fixture
def connect():
    """Connect an SDK to a provider; its clients are closed after the test."""
    clients = []

    def connect(provider):
        http = httpx.Client(transport=provider.transport)
        if provider.dialect.name.startswith("openai"):
            url = "http://provider.invalid/v1"
            client = openai.OpenAI(api_key="the-key", base_url=url, http_client=http, max_retries=0)
        elif provider.dialect.name == "gemini":
            options = {"base_url": "http://provider.invalid", "httpx_client": http}
            client = genai.Client(api_key="the-key", http_options=options)
        else:
            url = "http://provider.invalid"
            client = anthropic.Anthropic(api_key="the-key", base_url=url, http_client=http, max_retries=0)
        clients.append(client)
        return client

    yield connect
    for client in clients:
        client.close()


HI = [{"role": "user", "content": "hi"}]


def ask_openai(client, **more):
    return client.chat.completions.create(model="m", messages=HI, **more)


def ask_anthropic(client, **more):
    return client.messages.create(model="m", max_tokens=9, messages=HI, **more)


# ── OpenAI ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_openai_usage(usage):
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (30, 7, 37)
    assert usage.prompt_tokens_details.cached_tokens == 20
    assert usage.prompt_tokens_details.cache_write_tokens == 4
    assert usage.completion_tokens_details.reasoning_tokens == 3


def test_openai_reads_the_stream(provide, connect):
    client = connect(provide("openai-chat"))
    events = list(ask_openai(client, stream=True, stream_options={"include_usage": True}))
    deltas = [event.choices[0].delta for event in events if event.choices]
    calls = [call for delta in deltas for call in delta.tool_calls or []]

    assert {(event.id, event.model, event.created) for event in events} == {("chatcmpl-1", "m", 1700000000)}
    assert deltas[0].role == "assistant"
    assert [delta.content for delta in deltas if delta.content] == ["Grüße an", " alle 👋"]
    assert [d.reasoning_content for d in deltas if "reasoning_content" in d.model_extra] == ["hm"]
    named = [(call.index, call.id, call.function.name) for call in calls if call.id]
    assert named == [(0, "c-1", "ls"), (1, "c-2", "pwd")]
    assert "".join(call.function.arguments for call in calls if call.index == 0) == '{"path": "."}'
    assert [event.choices[0].finish_reason for event in events if event.choices][-1] == "tool_calls"
    assert [event.usage for event in events[:-1]] == [None] * (len(events) - 1)
    check_openai_usage(events[-1].usage)
    assert events[-1].choices == []


def test_openai_accumulates_the_stream(provide, connect):
    client = connect(provide("openai-chat"))
    with client.chat.completions.stream(model="m", messages=HI, stream_options={"include_usage": True}) as stream:
        final = stream.get_final_completion()
    message = final.choices[0].message
    assert message.content == SAY.text
    assert [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls] == [
        ("c-1", "ls", '{"path": "."}'),
        ("c-2", "pwd", ""),
    ]
    check_openai_usage(final.usage)


def test_openai_gets_no_usage_it_did_not_ask_for(provide, connect):
    client = connect(provide("openai-chat"))
    events = list(ask_openai(client, stream=True))
    assert all(event.usage is None and event.choices for event in events)


def test_openai_reads_the_message(provide, connect):
    completion = ask_openai(connect(provide("openai-chat")))
    choice = completion.choices[0]
    assert choice.message.content == SAY.text
    assert choice.message.reasoning_content == "hm"
    assert [(c.type, c.id, c.function.name) for c in choice.message.tool_calls] == [
        ("function", "c-1", "ls"),
        ("function", "c-2", "pwd"),
    ]
    assert choice.finish_reason == "tool_calls"
    check_openai_usage(completion.usage)


@pytest.mark.parametrize(("ours", "theirs"), [(ours, theirs) for ours, theirs, _ in FINISHES])
def test_openai_reads_every_finish(provide, connect, ours, theirs):
    chunks = say_to_chunks(Say(text="x", finish=FinishReason(kind=ours)), str)
    assert ask_openai(connect(provide("openai-chat", chunks))).choices[0].finish_reason == theirs
    events = list(ask_openai(connect(provide("openai-chat", chunks)), stream=True))
    assert events[-1].choices[0].finish_reason == theirs


# ── Anthropic ───────────────────────────────────────────────────────────────────────────────────────────────────────


def check_anthropic_usage(usage):
    assert (usage.input_tokens, usage.output_tokens) == (6, 7)
    assert (usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (20, 4)
    assert usage.output_tokens_details.thinking_tokens == 3


def check_anthropic_message(message):
    thinking, text, ls, pwd = message.content
    assert (thinking.type, thinking.thinking) == ("thinking", "hm")
    assert (text.type, text.text) == ("text", SAY.text)
    assert (ls.type, ls.id, ls.name, ls.input) == ("tool_use", "c-1", "ls", {"path": "."})
    assert (pwd.type, pwd.id, pwd.name, pwd.input) == ("tool_use", "c-2", "pwd", {})
    assert (message.id, message.model, message.role) == ("msg_1", "m", "assistant")
    assert message.stop_reason == "tool_use"
    check_anthropic_usage(message.usage)


def test_anthropic_reads_the_stream(provide, connect):
    events = list(ask_anthropic(connect(provide("anthropic-messages")), stream=True))
    kinds = [event.type for event in events]
    assert (kinds[0], kinds[-2], kinds[-1]) == ("message_start", "message_delta", "message_stop")
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 4
    deltas = [event.delta for event in events if event.type == "content_block_delta"]
    assert [d.text for d in deltas if d.type == "text_delta"] == ["Grüße an", " alle 👋"]
    assert [d.partial_json for d in deltas if d.type == "input_json_delta"] == ['{"path":', ' "."}', ""]
    assert (events[0].message.usage.input_tokens, events[0].message.usage.output_tokens) == (6, 0)
    check_anthropic_usage(events[-2].usage)


def test_anthropic_accumulates_the_stream(provide, connect):
    with connect(provide("anthropic-messages")).messages.stream(model="m", max_tokens=9, messages=HI) as stream:
        check_anthropic_message(stream.get_final_message())


def test_anthropic_reads_the_message(provide, connect):
    check_anthropic_message(ask_anthropic(connect(provide("anthropic-messages"))))


def test_anthropic_reads_signatures(provide, connect):
    dialect = DIALECTS["anthropic-messages"]
    wire = dialect.encode_message(CHUNKS, Answer(id="a", model="m"))
    body = json.loads(wire)
    body["content"][0]["signature"] = "sig"
    chunks = dialect.decode_message(json.dumps(body).encode())
    with connect(provide("anthropic-messages", chunks)).messages.stream(model="m", max_tokens=9, messages=HI) as stream:
        assert stream.get_final_message().content[0].signature == "sig"


@pytest.mark.parametrize(("ours", "theirs"), [(ours, theirs) for ours, _, theirs in FINISHES])
def test_anthropic_reads_every_finish(provide, connect, ours, theirs):
    chunks = say_to_chunks(Say(text="x", finish=FinishReason(kind=ours)), str)
    assert ask_anthropic(connect(provide("anthropic-messages", chunks))).stop_reason == theirs
    events = list(ask_anthropic(connect(provide("anthropic-messages", chunks)), stream=True))
    assert events[-2].delta.stop_reason == theirs


# ── Failures ────────────────────────────────────────────────────────────────────────────────────────────────────────


def exception_for(sdk, status):
    """Return the class that ``sdk`` itself declares for ``status``: each class names its own."""
    kinds = [kind for kind in vars(sdk._exceptions).values() if isinstance(kind, type)]
    own = [kind for kind in kinds if vars(kind).get("status_code") == status]
    return own[0] if own else sdk.InternalServerError if status >= 500 else sdk.APIStatusError


TOLD = [row for row in ERRORS if row.status is not None]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("row", TOLD, ids=[row.code for row in TOLD])
def test_openai_raises_the_right_exception(provide, connect, row, stream):
    client = connect(provide("openai-chat", error=ProviderError(row.code, "no luck")))
    with pytest.raises(openai.APIStatusError) as raised:
        ask_openai(client, stream=stream)
    assert type(raised.value) is exception_for(openai, row.status)
    assert (raised.value.status_code, raised.value.code) == (row.status, row.openai_code)
    assert "no luck" in raised.value.message


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("row", TOLD, ids=[row.code for row in TOLD])
def test_anthropic_raises_the_right_exception(provide, connect, row, stream):
    client = connect(provide("anthropic-messages", error=ProviderError(row.code, "no luck")))
    with pytest.raises(anthropic.APIStatusError) as raised:
        ask_anthropic(client, stream=stream)
    assert type(raised.value) is exception_for(anthropic, row.status)
    assert raised.value.status_code == row.status
    assert raised.value.body["error"]["type"] == row.anthropic_type
    assert "no luck" in raised.value.message


def broken(provide, name):
    """Answer with some text, then an error in the middle of the stream."""
    dialect = DIALECTS[name]
    said = say_to_chunks(Say(text="partial"), str)[:2]
    wire = b"".join(dialect.encode_stream(said, Answer(id="a", model="m")))
    return provide(name, said=wire + dialect.error_event(ProviderError("OVERLOADED", "no luck")))


def test_openai_raises_in_the_middle_of_a_stream(provide, connect):
    seen = []
    with pytest.raises(openai.APIError, match="no luck") as raised:
        seen.extend(
            event.choices[0].delta.content for event in ask_openai(connect(broken(provide, "openai-chat")), stream=True)
        )
    assert raised.value.code == "server_is_overloaded"


def test_anthropic_raises_in_the_middle_of_a_stream(provide, connect):
    seen = []
    with pytest.raises(anthropic.APIStatusError, match="no luck") as raised:
        for event in ask_anthropic(connect(broken(provide, "anthropic-messages")), stream=True):
            seen.append(event.type)
    assert seen == ["message_start", "content_block_start", "content_block_delta"]
    assert raised.value.body["error"]["type"] == "overloaded_error"


# ── What the SDKs send ──────────────────────────────────────────────────────────────────────────────────────────────

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
HISTORY = (
    Message(role="user", content=(TextBlock(text="look"),)),
    Message(
        role="assistant", content=(TextBlock(text="so"), ToolCallBlock(id="c", name="ls", arguments='{"path":"."}'))
    ),
    Message(role="tool", content=(ToolResultPart(call_id="c", content=(TextBlock(text="a.txt"),)),)),
    Message(role="user", content=(TextBlock(text="and?"),)),
)


def test_what_openai_sends_is_read(provide, connect):
    provider = provide("openai-chat")
    function = {"name": "ls", "arguments": '{"path":"."}'}
    connect(provider).chat.completions.create(
        model="m",
        temperature=0.5,
        messages=[
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "look"}]},
            {
                "role": "assistant",
                "content": "so",
                "tool_calls": [{"id": "c", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "a.txt"},
            {"role": "user", "content": "and?"},
        ],
        tools=[{"type": "function", "function": {"name": "ls", "description": "list", "parameters": SCHEMA}}],
    )
    assert provider.requests == [
        Request(
            system=("be brief",),
            tools=(Tool(name="ls", description="list", input_schema=SCHEMA),),
            messages=HISTORY,
            params={"model": "m", "temperature": 0.5},
        )
    ]


def test_what_anthropic_sends_is_read(provide, connect):
    provider = provide("anthropic-messages")
    mark = {"cache_control": {"type": "ephemeral"}}
    connect(provider).messages.create(
        model="m",
        max_tokens=9,
        system=[{"type": "text", "text": "be brief", **mark}],
        messages=[
            {"role": "user", "content": "look"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "sig"},
                    {"type": "text", "text": "so"},
                    {"type": "tool_use", "id": "c", "name": "ls", "input": {"path": "."}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "a.txt"}], **mark},
                    {"type": "text", "text": "and?"},
                ],
            },
        ],
        tools=[{"name": "ls", "description": "list", "input_schema": SCHEMA, **mark}],
    )
    (request,) = provider.requests
    thought = ReasoningBlock(text="hm", signature="sig")
    user, assistant, *rest = HISTORY
    expected = (user, Message(role="assistant", content=(thought, *assistant.content)), *rest)
    assert request.messages == expected
    assert request.system == ("be brief",)
    assert request.tools == (Tool(name="ls", description="list", input_schema=SCHEMA),)
    assert request.params == {"model": "m", "max_tokens": 9}


@pytest.mark.parametrize("name", DIALECTS)
def test_what_an_sdk_read_it_sends_back_as_said(provide, name, connect):
    """An answer goes into the next request's history: the SDK's own objects, serialised by the SDK."""
    provider = provide(name)
    client = connect(provider)
    if name == "openai-chat":
        message = ask_openai(client).choices[0].message
        client.chat.completions.create(model="m", messages=[*HI, message])
    elif name == "openai-responses":
        output = client.responses.create(model="m", input="hi").output
        client.responses.create(model="m", input=[*HI, *output])
    elif name == "gemini":
        said = client.models.generate_content(model="m", contents="hi").candidates[0].content
        hi = {"role": "user", "parts": [{"text": "hi"}]}
        client.models.generate_content(model="m", contents=[hi, said])
    else:
        content = ask_anthropic(client).content
        client.messages.create(model="m", max_tokens=9, messages=[*HI, {"role": "assistant", "content": content}])
    said = provider.requests[-1].messages[-1]
    reasoning, text, ls, _ = said.content
    assert (reasoning.text, text.text) == ("hm", SAY.text)
    assert json.loads(ls.arguments) == {"path": "."}
