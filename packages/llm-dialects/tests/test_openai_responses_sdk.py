"""OpenAI's own SDK judges what we put on the wire as responses, and what it sends is read back."""

import asyncio
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
    chunks_from_json,
    say_to_chunks,
)
from llm_dialects.entries import SaidCall
from llm_dialects.errors import ERRORS

openai = pytest.importorskip("openai")
httpx = pytest.importorskip("httpx2")
pydantic = pytest.importorskip("pydantic")

DIALECT = DIALECTS["openai-responses"]
SAY = Say(
    text="Grüße an alle 👋",
    reasoning="hm",
    tool_calls=(SaidCall(name="ls", arguments='{"path": "."}', id="c-1"), SaidCall(name="pwd", arguments="", id="c-2")),
    usage=Usage(input_tokens=6, output_tokens=7, cache_read_tokens=20, cache_write_tokens=4, reasoning_tokens=3),
)
CHUNKS = say_to_chunks(SAY, str)
CUSTOM = chunks_from_json(
    [
        {"type": "block-start", "index": 0, "blockType": "tool-call"},
        {"type": "tool-call-delta", "index": 0, "id": "c", "name": "patch", "argumentsDelta": "***"},
        {
            "type": "block-end",
            "index": 0,
            "block": {
                "type": "tool-call",
                "id": "c",
                "name": "patch",
                "arguments": "***",
                "itemType": "custom_tool_call",
            },
        },
        {"type": "finish", "reason": {"kind": "tool-calls"}},
    ]
)
URL = "http://provider.invalid/v1"


@pytest.fixture
def provide(sdk_provider):
    """Make a provider that speaks OpenAI responses."""
    return lambda chunks=CHUNKS, **more: sdk_provider("openai-responses", chunks, **more)


@pytest.fixture
def connect():
    """Connect the SDK to a provider; its clients are closed after the test."""
    clients = []

    def connect(provider):
        http = httpx.Client(transport=provider.transport)
        client = openai.OpenAI(api_key="the-key", base_url=URL, http_client=http, max_retries=0)
        clients.append(client)
        return client

    yield connect
    for client in clients:
        client.close()


def create(client, **more):
    return client.responses.create(model="m", input="hi", **more)


# ── Answers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_response(response):
    reasoning, message, ls, pwd = response.output
    assert (reasoning.type, [part.text for part in reasoning.summary]) == ("reasoning", ["hm"])
    assert (message.type, message.role, message.status) == ("message", "assistant", "completed")
    assert response.output_text == SAY.text
    assert (ls.type, ls.call_id, ls.name, ls.arguments) == ("function_call", "c-1", "ls", '{"path": "."}')
    assert (pwd.type, pwd.call_id, pwd.name, pwd.arguments) == ("function_call", "c-2", "pwd", "")
    assert len({item.id for item in response.output}) == 4
    assert (response.id, response.model, response.created_at) == ("resp_1", "m", 1700000000)
    assert (response.status, response.error, response.incomplete_details) == ("completed", None, None)
    check_usage(response.usage)


def check_usage(usage):
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (30, 7, 37)
    assert (usage.input_tokens_details.cached_tokens, usage.input_tokens_details.cache_write_tokens) == (20, 4)
    assert usage.output_tokens_details.reasoning_tokens == 3


def check_events(events):
    kinds = [event.type for event in events]
    assert (kinds[0], kinds[1], kinds[-1]) == ("response.created", "response.in_progress", "response.completed")
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert kinds.count("response.output_item.added") == kinds.count("response.output_item.done") == 4
    texts = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert texts == ["Grüße an", " alle 👋"]
    assert [e.delta for e in events if e.type == "response.reasoning_summary_text.delta"] == ["hm"]
    arguments = [(e.output_index, e.delta) for e in events if e.type == "response.function_call_arguments.delta"]
    assert arguments == [(2, '{"path":'), (2, ' "."}'), (3, "")]


def test_it_reads_the_stream(provide, connect):
    events = list(create(connect(provide()), stream=True))
    check_events(events)
    check_response(events[-1].response)


def test_it_accumulates_the_stream(provide, connect):
    """Its helper refuses events out of order, and deltas of items that have not begun."""
    with connect(provide()).responses.stream(model="m", input="hi") as stream:
        events = list(stream)
        check_response(stream.get_final_response())
    snapshots = [event.snapshot for event in events if event.type == "response.output_text.delta"]
    assert snapshots == ["Grüße an", SAY.text]


def test_it_reads_the_message(provide, connect):
    check_response(create(connect(provide())))


def test_it_reads_everything_asynchronously(provide):
    provider = provide()

    async def run():
        http = httpx.AsyncClient(transport=provider.transport)
        async with openai.AsyncOpenAI(api_key="the-key", base_url=URL, http_client=http, max_retries=0) as client:
            check_response(await create(client))
            check_events([event async for event in await create(client, stream=True)])
            async with client.responses.stream(model="m", input="hi") as stream:
                check_response(await stream.get_final_response())

    asyncio.run(run())
    assert len(provider.requests) == 3


def test_calls_told_by_turns_are_accumulated(provide, connect):
    def start(index, name):
        return {"type": "block-start", "index": index, "blockType": "tool-call"}

    def delta(index, text):
        return {"type": "tool-call-delta", "index": index, "id": f"c{index}", "name": "ls", "argumentsDelta": text}

    told = [start(0, "a"), delta(0, "1"), start(1, "b"), delta(1, "3"), delta(0, "2"), delta(1, "4")]
    chunks = chunks_from_json([*told, {"type": "finish", "reason": {"kind": "tool-calls"}}])
    with connect(provide(chunks)).responses.stream(model="m", input="hi") as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [(item.call_id, item.arguments) for item in final.output] == [("c0", "12"), ("c1", "34")]
    snapshots = [e.snapshot for e in events if e.type == "response.function_call_arguments.delta"]
    assert snapshots == ["1", "3", "12", "34"]


def test_it_reads_the_texts_of_custom_tools(provide, connect):
    (item,) = create(connect(provide(CUSTOM))).output
    assert (item.type, item.call_id, item.name, item.input) == ("custom_tool_call", "c", "patch", "***")
    with connect(provide(CUSTOM)).responses.stream(model="m", input="hi") as stream:
        assert stream.get_final_response().output[0].input == "***"


def test_it_reads_signatures(provide, connect):
    body = json.loads(DIALECT.encode_message(CHUNKS, Answer(id="a", model="m")))
    body["output"][0]["encrypted_content"] = "sig"
    chunks = DIALECT.decode_message(json.dumps(body).encode())
    with connect(provide(chunks)).responses.stream(model="m", input="hi") as stream:
        assert stream.get_final_response().output[0].encrypted_content == "sig"


def test_token_counts_are_there_for_whoever_relies_on_them(provide, connect):
    """The SDK's types say that none is ever missing."""
    chunks = say_to_chunks(Say(text="x", usage=Usage(input_tokens=6, output_tokens=7)), str)
    usage = create(connect(provide(chunks))).usage
    assert (usage.input_tokens, usage.input_tokens_details.cached_tokens) == (6, 0)
    assert (usage.input_tokens_details.cache_write_tokens, usage.output_tokens_details.reasoning_tokens) == (0, 0)


@pytest.mark.parametrize(
    ("ours", "status", "reason"),
    [
        ("stop", "completed", None),
        ("max-tokens", "incomplete", "max_output_tokens"),
        ("content-filter", "incomplete", "content_filter"),
    ],
)
def test_it_reads_every_finish(provide, connect, ours, status, reason):
    chunks = say_to_chunks(Say(text="x", finish=FinishReason(kind=ours)), str)
    *_, last = create(connect(provide(chunks)), stream=True)
    assert last.type == f"response.{status}"
    for response in (last.response, create(connect(provide(chunks)))):
        assert response.status == response.output[0].status == status
        assert (response.incomplete_details and response.incomplete_details.reason) == reason
    with connect(provide(chunks)).responses.stream(model="m", input="hi") as stream:
        if status == "completed":
            assert stream.get_final_response().output_text == "x"
        else:
            with pytest.raises(RuntimeError, match=r"Didn't receive a `response\.completed` event"):
                stream.get_final_response()


FAILED = say_to_chunks(Say(text="x"), str)[:2]
CUT = FinishReason(kind="max-tokens")


@pytest.mark.parametrize(
    "chunks",
    [CHUNKS, CUSTOM, say_to_chunks(Say(text="x"), str), say_to_chunks(Say(text="x", finish=CUT), str), ()],
    ids=["all", "custom", "no usage", "cut", "nothing"],
)
def test_every_event_has_all_that_the_types_of_the_sdk_declare(chunks):
    """Reading, the SDK lets anything pass; here nothing may be missing or of another kind."""
    events = pydantic.TypeAdapter(openai.types.responses.ResponseStreamEvent)
    answer = Answer(id="resp_1", model="gpt-5", usage=Usage(input_tokens=1, output_tokens=1))
    wire = b"".join(DIALECT.encode_stream(chunks, answer))
    for line in wire.decode().splitlines():
        if line.startswith("data: "):
            event = events.validate_json(line.removeprefix("data: "))
            assert not unknown(event), event.type
    openai.types.responses.Response.model_validate_json(DIALECT.encode_message(chunks, answer))


def unknown(value):
    """Yield the members, all the way down, that the SDK's types do not know."""
    if isinstance(value, list):
        return {name for item in value for name in unknown(item)}
    if not isinstance(value, pydantic.BaseModel):
        return set()
    deeper = (unknown(getattr(value, name)) for name in type(value).model_fields)
    return set(value.model_extra or ()).union(*deeper) - KNOWN


# The provider sends them, though the SDK has no name for them: of a response, and of a call of a custom tool.
KNOWN = {"store", "status"}


# ── Failures ────────────────────────────────────────────────────────────────────────────────────────────────────────


def exception_for(status):
    """Return the class that the SDK itself declares for ``status``: each class names its own."""
    kinds = [kind for kind in vars(openai._exceptions).values() if isinstance(kind, type)]
    own = [kind for kind in kinds if vars(kind).get("status_code") == status]
    return own[0] if own else openai.InternalServerError if status >= 500 else openai.APIStatusError


TOLD = [row for row in ERRORS if row.status is not None]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("row", TOLD, ids=[row.code for row in TOLD])
def test_it_raises_the_right_exception(provide, connect, row, stream):
    client = connect(provide(error=ProviderError(row.code, "no luck")))
    with pytest.raises(openai.APIStatusError) as raised:
        create(client, stream=stream)
    assert type(raised.value) is exception_for(row.status)
    assert (raised.value.status_code, raised.value.code) == (row.status, row.openai_code)
    assert "no luck" in raised.value.message


def broken():
    failure = {"kind": "error", "failure": {"message": "no luck", "code": "OVERLOADED"}}
    return (*FAILED, *chunks_from_json([{"type": "finish", "reason": failure}]))


def test_it_raises_in_the_middle_of_a_stream(provide, connect):
    seen = []
    with pytest.raises(openai.APIError, match="no luck") as raised:
        seen.extend(event.type for event in create(connect(provide(broken())), stream=True))
    assert raised.value.code == "server_is_overloaded"
    assert type(raised.value) is openai.APIError


def test_its_helper_raises_too(provide, connect):
    with (
        connect(provide(broken())).responses.stream(model="m", input="hi") as stream,
        pytest.raises(openai.APIError, match="no luck"),
    ):
        stream.until_done()


def test_it_reads_a_failed_response(provide, connect):
    """Where the error event is lost, the failed response says the same."""
    wire = b"".join(DIALECT.encode_stream(broken(), Answer(id="resp_1", model="m")))
    events = [event for event in wire.split(b"\n\n") if not event.startswith(b"event: error\n")]
    *_, last = create(connect(provide(said=b"\n\n".join(events))), stream=True)
    assert (last.type, last.response.status, last.response.id) == ("response.failed", "failed", "resp_1")
    assert (last.response.error.code, last.response.error.message) == ("server_is_overloaded", "no luck")


# ── What the SDK sends ──────────────────────────────────────────────────────────────────────────────────────────────

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
FUNCTION = {"type": "function", "name": "ls", "description": "list", "parameters": SCHEMA, "strict": False}


def test_what_it_sends_is_read(provide, connect):
    provider = provide()
    connect(provider).responses.create(
        model="m",
        instructions="be brief",
        temperature=0.5,
        store=False,
        include=["reasoning.encrypted_content"],
        input=[
            {"role": "user", "content": [{"type": "input_text", "text": "look"}]},
            {"role": "assistant", "content": "so"},
            {"type": "function_call", "call_id": "c", "name": "ls", "arguments": '{"path":"."}'},
            {"type": "function_call_output", "call_id": "c", "output": "a.txt"},
            {"role": "user", "content": "and?"},
        ],
        tools=[FUNCTION],
    )
    call = ToolCallBlock(id="c", name="ls", arguments='{"path":"."}')
    assert provider.requests == [
        Request(
            system=("be brief",),
            tools=(Tool(name="ls", description="list", input_schema=SCHEMA, extra={"strict": False}),),
            messages=(
                Message(role="user", content=(TextBlock(text="look"),)),
                Message(role="assistant", content=(TextBlock(text="so"), call)),
                Message(role="tool", content=(ToolResultPart(call_id="c", content=(TextBlock(text="a.txt"),)),)),
                Message(role="user", content=(TextBlock(text="and?"),)),
            ),
            params={
                "model": "m",
                "temperature": 0.5,
                "store": False,
                "include": ["reasoning.encrypted_content"],
            },
        )
    ]


@pytest.mark.parametrize("streamed", [False, True])
def test_what_it_read_it_sends_back_as_said(provide, connect, streamed):
    """An answer goes into the next request's history: the SDK's own objects, serialised by the SDK."""
    provider = provide()
    client = connect(provider)
    if streamed:
        with client.responses.stream(model="m", input="hi") as stream:
            output = stream.get_final_response().output
    else:
        output = create(client).output
    client.responses.create(model="m", input=[{"role": "user", "content": "hi"}, *output])
    said = provider.requests[-1].messages[-1]
    kinds = [type(part) for part in said.content]
    assert kinds == [ReasoningBlock, TextBlock, ToolCallBlock, ToolCallBlock]
    reasoning, text, ls, pwd = said.content
    assert (reasoning.text, text.text) == ("hm", SAY.text)
    assert (ls.id, ls.name, ls.arguments, pwd.id) == ("c-1", "ls", '{"path": "."}', "c-2")
    assert [part.extra["itemId"] for part in said.content] == [item.id for item in output]


def test_it_counts_tokens(provide, connect):
    count = connect(provide()).responses.input_tokens.count(model="m", input="hi")
    assert (count.object, count.input_tokens) == ("response.input_tokens", 1)
