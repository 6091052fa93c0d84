"""Google's own SDK judges what we put on the wire as Gemini, and what it sends is read back."""

import asyncio
import base64

import pytest
from llm_dialects import (
    DIALECTS,
    Answer,
    FinishReason,
    ImagePart,
    Message,
    ProviderError,
    ReasoningBlock,
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

genai = pytest.importorskip("google.genai")
errors = pytest.importorskip("google.genai.errors")
types = pytest.importorskip("google.genai.types")
httpx = pytest.importorskip("httpx2")

DIALECT = DIALECTS["gemini"]
SAY = Say(
    text="Grüße an alle 👋",
    reasoning="hm",
    tool_calls=(
        SaidCall(name="ls", arguments='{"path": "."}', id="c-1"),
        SaidCall(name="ls", arguments='{"path": ".."}', id="function-call-1"),
        SaidCall(name="pwd", arguments="", id="c-3"),
    ),
    usage=Usage(input_tokens=6, output_tokens=7, cache_read_tokens=20, reasoning_tokens=3),
)
CHUNKS = say_to_chunks(SAY, str)
URL = "http://provider.invalid"


@pytest.fixture
def provide(sdk_provider):
    """Make a provider that speaks Gemini."""
    return lambda chunks=CHUNKS, **more: sdk_provider("gemini", chunks, **more)


@pytest.fixture
def connect():
    """Connect the SDK to a provider; its clients are closed after the test."""
    clients = []

    def connect(provider):
        http = httpx.Client(transport=provider.transport)
        clients.append(genai.Client(api_key="the-key", http_options={"base_url": URL, "httpx_client": http}))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


def asynchronous(provider, ask):
    """Run ``ask`` with the SDK's asynchronous client."""

    async def run():
        async with httpx.AsyncClient(transport=provider.transport) as http:
            options = {"base_url": URL, "httpx_async_client": http}
            async with genai.Client(api_key="the-key", http_options=options).aio as client:
                return await ask(client)

    return asyncio.run(run())


def whole(client):
    return client.models.generate_content(model="m", contents="hi")


def events(client):
    return list(client.models.generate_content_stream(model="m", contents="hi"))


def check_usage(usage):
    assert (usage.prompt_token_count, usage.candidates_token_count, usage.total_token_count) == (26, 4, 33)
    assert (usage.cached_content_token_count, usage.thoughts_token_count) == (20, 3)


def check_calls(calls):
    assert [(call.id, call.name, call.args) for call in calls] == [
        ("c-1", "ls", {"path": "."}),
        (None, "ls", {"path": ".."}),
        ("c-3", "pwd", None),
    ]


def check_message(response):
    thought, text, *calls = response.candidates[0].content.parts
    assert (thought.thought, thought.text) == (True, "hm")
    assert (text.thought, text.text) == (None, SAY.text)
    assert response.text == SAY.text
    check_calls([part.function_call for part in calls])
    check_calls(response.function_calls)
    assert response.candidates[0].finish_reason is types.FinishReason.STOP
    assert (response.response_id, response.model_version) == ("1", "m")
    check_usage(response.usage_metadata)


def check_events(told):
    parts = [part for event in told for part in event.candidates[0].content.parts]
    assert [part.text for part in parts if part.text and not part.thought] == ["Grüße an", " alle 👋"]
    assert [part.text for part in parts if part.thought] == ["hm"]
    check_calls([part.function_call for part in parts if part.function_call])
    assert [event.candidates[0].finish_reason for event in told] == [None] * 5 + [types.FinishReason.STOP]
    assert {(event.response_id, event.model_version) for event in told} == {("1", "m")}
    assert {event.usage_metadata.prompt_token_count for event in told} == {26}
    assert [event.usage_metadata.candidates_token_count for event in told[:-1]] == [None] * 5
    check_usage(told[-1].usage_metadata)


def test_the_sdk_reads_the_message(provide, connect):
    provider = provide()
    check_message(whole(connect(provider)))
    assert [path.endswith("/models/m:generateContent") for path in provider.paths] == [True]
    assert provider.requests[0].params == {"model": "m"}


def test_the_sdk_reads_the_stream(provide, connect):
    provider = provide()
    check_events(events(connect(provider)))
    assert provider.requests[0].params == {"model": "m", "stream": True, "alt": "sse"}


def test_the_asynchronous_sdk_reads_both(provide):
    async def ask(client):
        told = await client.models.generate_content_stream(model="m", contents="hi")
        return await client.models.generate_content(model="m", contents="hi"), [event async for event in told]

    message, told = asynchronous(provide(), ask)
    check_message(message)
    check_events(told)


def test_the_sdk_reads_signatures(provide, connect):
    signed = chunks_from_json(
        [
            {"type": "block-start", "index": 0, "blockType": "tool-call"},
            {"type": "tool-call-delta", "index": 0, "id": "c", "name": "ls", "argumentsDelta": "{}"},
            {
                "type": "block-end",
                "index": 0,
                "block": {"type": "tool-call", "id": "c", "name": "ls", "arguments": "{}", "thoughtSignature": "c2ln"},
            },
            {"type": "finish", "reason": {"kind": "tool-calls"}},
        ]
    )
    client = connect(provide(signed))
    for response in (whole(client), *events(client)):
        assert [part.thought_signature for part in response.candidates[0].content.parts] == [b"sig"]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("stop", "STOP"),
        ("max-tokens", "MAX_TOKENS"),
        ("content-filter", "SAFETY"),
        ("RECITATION", "RECITATION"),
        ("MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL"),
    ],
)
def test_the_sdk_reads_every_finish(provide, connect, ours, theirs):
    client = connect(provide(say_to_chunks(Say(text="x", finish=FinishReason(kind=ours)), str)))
    for response in (whole(client), events(client)[-1]):
        assert response.candidates[0].finish_reason is types.FinishReason[theirs]
        assert response.text == "x"


def test_the_sdk_reads_an_answer_of_nothing(provide, connect):
    client = connect(provide(say_to_chunks(Say(), str)))
    for response in (whole(client), *events(client)):
        assert response.candidates[0].finish_reason is types.FinishReason.STOP
        assert response.text is None
        assert not response.function_calls


def test_the_sdk_reads_why_a_prompt_was_refused(provide, connect):
    refused = chunks_from_json([{"type": "finish", "reason": {"kind": "content-filter", "blockReason": "SAFETY"}}])
    client = connect(provide(refused))
    for response in (whole(client), *events(client)):
        assert response.prompt_feedback.block_reason is types.BlockedReason.SAFETY
        assert not response.candidates


def test_a_malformed_call_is_the_models_fault_for_the_sdk_too(provide, connect):
    client = connect(provide(say_to_chunks(Say(tool_calls=(SaidCall(name="ls", arguments="{", id="c"),)), str)))
    for response in (whole(client), *events(client)):
        assert response.candidates[0].finish_reason is types.FinishReason.MALFORMED_FUNCTION_CALL


# ── Beside the model ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_sdk_lists_models_and_counts_tokens(provide, connect):
    client = connect(provide())
    assert [model.name for model in client.models.list()] == ["models/g-2.5"]
    model = client.models.get(model="other")
    assert (model.name, model.display_name, model.input_token_limit) == ("models/other", "other", 1048576)
    # [{"parts":[{"text":"ping"}],"role":"user"}] is 43 characters long.
    assert client.models.count_tokens(model="m", contents="ping").total_tokens == 11


def test_the_asynchronous_sdk_lists_models_and_counts_tokens(provide):
    async def ask(client):
        counted = await client.models.count_tokens(model="m", contents="ping")
        return counted.total_tokens, [model.name async for model in await client.models.list()]

    assert asynchronous(provide(), ask) == (11, ["models/g-2.5"])


# ── Failures ────────────────────────────────────────────────────────────────────────────────────────────────────────


def exception_for(status):
    """Return the class that the SDK raises for ``status`` (``errors.APIError.raise_error``)."""
    return errors.ClientError if 400 <= status < 500 else errors.ServerError


TOLD = [row for row in ERRORS if row.status is not None]
EVERY_ERROR = pytest.mark.parametrize("row", TOLD, ids=[row.code for row in TOLD])


def check_raised(raised, row):
    assert type(raised) is exception_for(row.status)
    assert (raised.code, raised.status, raised.message) == (row.status, row.google_status, "no luck")
    assert raised.details["error"]["code"] == row.status


@EVERY_ERROR
@pytest.mark.parametrize("ask", [whole, events])
def test_the_sdk_raises_the_right_exception(provide, connect, row, ask):
    with pytest.raises(errors.APIError) as raised:
        ask(connect(provide(error=ProviderError(row.code, "no luck"))))
    check_raised(raised.value, row)


@EVERY_ERROR
def test_the_asynchronous_sdk_raises_the_right_exception(provide, row):
    async def ask(client):
        return [event async for event in await client.models.generate_content_stream(model="m", contents="hi")]

    with pytest.raises(errors.APIError) as raised:
        asynchronous(provide(error=ProviderError(row.code, "no luck")), ask)
    check_raised(raised.value, row)


def broken(provide, row):
    """Answer with some text, then an error in the middle of the stream."""
    said = say_to_chunks(Say(text="partial"), str)[:2]
    wire = b"".join(DIALECT.encode_stream(said, Answer(id="a", model="m")))
    return provide(said=wire + DIALECT.error_event(ProviderError(row.code, "no luck")))


@EVERY_ERROR
def test_the_sdk_raises_in_the_middle_of_a_stream(provide, connect, row):
    seen = []
    with pytest.raises(errors.APIError) as raised:
        seen.extend(
            e.text for e in connect(broken(provide, row)).models.generate_content_stream(model="m", contents="hi")
        )
    assert seen == ["partial"]
    check_raised(raised.value, row)


def test_the_asynchronous_sdk_raises_in_the_middle_of_a_stream(provide):
    row, seen = next(row for row in TOLD if row.code == "UNAVAILABLE"), []

    async def ask(client):
        seen.extend([e.text async for e in await client.models.generate_content_stream(model="m", contents="hi")])

    with pytest.raises(errors.ServerError) as raised:
        asynchronous(broken(provide, row), ask)
    check_raised(raised.value, row)


# ── What the SDK sends ──────────────────────────────────────────────────────────────────────────────────────────────

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
PNG = b"\x89PNG"


def part(**members):
    return types.Part(**members)


def history():
    """Text, an image, thinking, calls with an id and without, what came of them."""
    return [
        types.UserContent([part(text="look"), types.Part.from_bytes(data=PNG, mime_type="image/png")]),
        types.ModelContent(
            [
                part(text="hm", thought=True, thought_signature=b"sig"),
                part(text="so"),
                part(function_call=types.FunctionCall(id="c", name="ls", args={"path": "."})),
                types.Part.from_function_call(name="pwd", args={}),
            ]
        ),
        types.UserContent(
            [
                part(function_response=types.FunctionResponse(id="c", name="ls", response={"output": "a.txt"})),
                types.Part.from_function_response(name="pwd", response={"error": "no"}),
                part(text="and?"),
            ]
        ),
    ]


def test_what_the_sdk_sends_is_read(provide, connect):
    provider = provide()
    ls = types.FunctionDeclaration(name="ls", description="list", parameters_json_schema=SCHEMA)
    tools = [types.Tool(function_declarations=[ls]), types.Tool(google_search=types.GoogleSearch())]
    config = types.GenerateContentConfig(system_instruction="be brief", temperature=0.5, tools=tools)
    connect(provider).models.generate_content(model="m", contents=history(), config=config)

    (request,) = provider.requests
    assert request.system == ("be brief",)
    # The SDK puts all functions into one entry, after the others.
    search = Tool(name="googleSearch", extra={"googleSearch": {}})
    assert request.tools == (search, Tool(name="ls", description="list", input_schema=SCHEMA))
    assert request.params == {"model": "m", "generationConfig": {"temperature": 0.5}}
    looked, said, *answered = request.messages
    image = ImagePart(media_type="image/png", data=base64.b64encode(PNG).decode())
    assert looked == Message(role="user", content=(TextBlock(text="look"), image))
    assert said.content == (
        ReasoningBlock(text="hm", signature="c2ln"),
        TextBlock(text="so"),
        ToolCallBlock(id="c", name="ls", arguments='{"path":"."}'),
        ToolCallBlock(id="function-call-1", name="pwd", arguments="{}"),
    )
    files = ToolResultPart(call_id="c", content=(TextBlock(text="a.txt"),))
    refused = ToolResultPart(call_id="function-call-1", content=(TextBlock(text="no"),), is_error=True)
    assert [message.content for message in answered] == [(files,), (refused,), (TextBlock(text="and?"),)]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_chat_goes_on_from_what_was_said(provide, connect, streamed):
    """The SDK keeps a history of what it read, and leaves out what it takes for no answer."""
    provider = provide(say_to_chunks(Say(text="PONG", reasoning="hm"), str))
    chat = connect(provider).chats.create(model="m")
    for text in ("one", "two"):
        if streamed:
            assert "".join(event.text or "" for event in chat.send_message_stream(text)) == "PONG"
        else:
            assert chat.send_message(text).text == "PONG"
    first, second = provider.requests
    assert second.messages[:1] == first.messages
    said = [part for message in second.messages[1:-1] for part in message.content]
    assert said == [ReasoningBlock(text="hm"), TextBlock(text="PONG")]
    assert second.messages[-1] == Message(role="user", content=(TextBlock(text="two"),))
    assert len(chat.get_history(curated=True)) == len(chat.get_history())


def test_an_asynchronous_chat_goes_on_too(provide):
    provider = provide(say_to_chunks(Say(text="PONG"), str))

    async def ask(client):
        chat = client.chats.create(model="m")
        first = await chat.send_message("one")
        return first.text, [event.text async for event in await chat.send_message_stream("two")]

    assert asynchronous(provider, ask) == ("PONG", ["PONG"])
    assert [message.role for message in provider.requests[1].messages] == ["user", "assistant", "user"]


def test_the_sdk_calls_functions_and_sends_what_they_return(provide, connect):
    """Automatic function calling: its response is ``{"result": ...}``, and the answers' ids are sent back."""
    provider = provide(say_to_chunks(Say(tool_calls=(SaidCall(name="ls", arguments='{"path":"."}', id="c-1"),)), str))

    def ls(path: str) -> str:
        """List."""
        provider.chunks = say_to_chunks(Say(text="done"), str)
        return f"{path}/a.txt"

    config = types.GenerateContentConfig(tools=[ls])
    response = connect(provider).models.generate_content(model="m", contents="hi", config=config)
    assert response.text == "done"
    first, second = provider.requests
    assert [tool.name for tool in first.tools] == ["ls"]
    _, called, answered = second.messages
    assert [part.id for part in called.content] == ["c-1"]
    assert [(part.call_id, part.content[0].value) for part in answered.content] == [("c-1", {"result": "./a.txt"})]
