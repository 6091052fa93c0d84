import pytest
from llm_dialects import (
    DIALECTS,
    DialectError,
    ImagePart,
    Message,
    OpaquePart,
    ReasoningBlock,
    Request,
    TextBlock,
    Tool,
    ToolCallBlock,
    ToolResultPart,
)

DIALECT = DIALECTS["gemini"]


@pytest.mark.parametrize(
    ("path", "query", "said"),
    [
        ("/v1beta/models/g-2.5:generateContent", "", {"model": "g-2.5"}),
        ("/v1beta/models/g:generateContent", "alt=json&key=k", {"model": "g"}),
        ("/v1/models/g:streamGenerateContent", "alt=sse", {"model": "g", "stream": True, "alt": "sse"}),
        ("/v1beta/models/g:streamGenerateContent", "key=k", {"model": "g", "stream": True}),
        ("/v1beta1/projects/p/locations/l/publishers/google/models/g:generateContent", "", {"model": "g"}),
        ("/mount/v1beta/tunedModels/my%20own:generateContent", "", {"model": "my own"}),
        ("/v1beta/models/g:countTokens", "", {}),
        ("/v1beta/models", "", {}),
    ],
)
def test_what_the_path_says(path, query, said):
    assert DIALECT.path_params(path, query) == said


@pytest.mark.parametrize(
    ("params", "kind"),
    [
        ({"alt": "sse"}, "text/event-stream"),
        ({}, "application/json"),
        ({"alt": "json"}, "application/json"),
    ],
)
def test_how_a_stream_is_framed(params, kind):
    assert DIALECT.stream_type(Request(system=(), tools=(), messages=(), params=params)) == kind


# ── Contents ────────────────────────────────────────────────────────────────────────────────────────────────────────


def user(*parts, **extra):
    return Message(role="user", content=parts, extra=extra)


def said(*parts):
    return Message(role="assistant", content=parts)


def result(call_id, *content, is_error=False, **extra):
    part = ToolResultPart(call_id=call_id, content=content, is_error=is_error, extra=extra)
    return Message(role="tool", content=(part,))


def content(role, *parts):
    return {"role": role, "parts": list(parts)}


def call(name, args=None, **members):
    return {"functionCall": {**members, "name": name} | ({} if args is None else {"args": args})}


def response(name, value=None, **members):
    return {"functionResponse": {**members, "name": name, "response": {"output": "ok"} if value is None else value}}


OK = TextBlock(text="ok")
PICTURE = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}


@pytest.mark.parametrize(
    ("wires", "expected"),
    [
        ([content("user", {"text": "go"})], (user(TextBlock(text="go")),)),
        ([content("user")], (user(),)),
        ([{**content("user", {"text": "go"}), "own": 1}], (user(TextBlock(text="go"), own=1),)),
        (
            [
                content(
                    "user",
                    PICTURE,
                    {"fileData": {"mimeType": "image/png", "fileUri": "https://e.invalid/a"}},
                    {"fileData": {"fileUri": "https://e.invalid/b"}, "videoMetadata": {"fps": 1}},
                    {"inlineData": {"mimeType": "audio/wav", "data": "aGk="}},
                    {"inlineData": {"mimeType": "image/png", "data": "aGk=", "displayName": "x"}},
                    {"fileData": {"mimeType": "application/pdf", "fileUri": "https://e.invalid/c"}},
                    {"executableCode": {"code": "1"}},
                )
            ],
            (
                user(
                    ImagePart(media_type="image/png", data="aGk="),
                    ImagePart(media_type="image/png", url="https://e.invalid/a"),
                    ImagePart(url="https://e.invalid/b", extra={"videoMetadata": {"fps": 1}}),
                    OpaquePart(value={"inlineData": {"mimeType": "audio/wav", "data": "aGk="}}),
                    OpaquePart(value={"inlineData": {"mimeType": "image/png", "data": "aGk=", "displayName": "x"}}),
                    OpaquePart(value={"fileData": {"mimeType": "application/pdf", "fileUri": "https://e.invalid/c"}}),
                    OpaquePart(value={"executableCode": {"code": "1"}}),
                ),
            ),
        ),
        # Signatures stand with thinking, text and calls.
        (
            [
                content(
                    "model",
                    {"text": "hm", "thought": True, "thoughtSignature": "c2ln"},
                    {"text": "so", "thoughtSignature": "YWJj"},
                    {**call("ls", {"p": "ü"}, id="c"), "thoughtSignature": "ZGVm"},
                    call("pwd"),
                    call("env", {}),
                )
            ],
            (
                said(
                    ReasoningBlock(text="hm", signature="c2ln"),
                    TextBlock(text="so", extra={"thoughtSignature": "YWJj"}),
                    ToolCallBlock(id="c", name="ls", arguments='{"p":"ü"}', extra={"thoughtSignature": "ZGVm"}),
                    ToolCallBlock(id="function-call-1", name="pwd", arguments=""),
                    ToolCallBlock(id="function-call-2", name="env", arguments="{}"),
                ),
            ),
        ),
        # Ids on both sides, and responses in another order.
        (
            [
                content("model", call("ls", {}, id="a"), call("ls", {}, id="b")),
                content("user", response("ls", id="b"), response("ls", id="a"), {"text": "and?"}),
            ],
            (
                said(
                    ToolCallBlock(id="a", name="ls", arguments="{}"), ToolCallBlock(id="b", name="ls", arguments="{}")
                ),
                result("b", OK),
                result("a", OK),
                user(TextBlock(text="and?")),
            ),
        ),
        # No ids at all: by name and place, over several turns.
        (
            [
                content("model", call("ls", {}), call("pwd", {}), call("ls", {})),
                content("user", response("pwd"), response("ls"), response("ls")),
                content("model", call("ls", {})),
                content("function", response("ls")),
            ],
            (
                said(
                    ToolCallBlock(id="function-call-0", name="ls", arguments="{}"),
                    ToolCallBlock(id="function-call-1", name="pwd", arguments="{}"),
                    ToolCallBlock(id="function-call-2", name="ls", arguments="{}"),
                ),
                result("function-call-1", OK),
                result("function-call-0", OK),
                result("function-call-2", OK),
                said(ToolCallBlock(id="function-call-3", name="ls", arguments="{}")),
                Message(role="tool", content=result("function-call-3", OK).content, extra={"wireRole": "function"}),
            ),
        ),
        # Agents invent ids for calls that came without one, and send them with the response only.
        (
            [content("model", call("ls", {}), call("ls", {})), content("user", response("ls", id="x"), response("ls"))],
            (
                said(
                    ToolCallBlock(id="function-call-0", name="ls", arguments="{}"),
                    ToolCallBlock(id="function-call-1", name="ls", arguments="{}"),
                ),
                result("function-call-0", OK, id="x"),
                result("function-call-1", OK),
            ),
        ),
        # One call a content, then one response a content.
        (
            [
                content("model", call("ls", {})),
                content("model", call("ls", {}, id="b")),
                content("user", response("ls")),
            ],
            (
                said(ToolCallBlock(id="function-call-0", name="ls", arguments="{}")),
                said(ToolCallBlock(id="b", name="ls", arguments="{}")),
                result("function-call-0", OK),
            ),
        ),
        # Only the model calls, only the others respond.
        ([content("user", call("ls"))], (user(OpaquePart(value=call("ls"))),)),
        ([content("model", response("ls"))], (said(OpaquePart(value=response("ls"))),)),
        # A response to nothing.
        ([content("user", response("ls"))], (result("", OK, name="ls"),)),
        ([content("user", response("ls", id="x"))], (result("x", OK, name="ls"),)),
    ],
)
def test_contents_are_read_and_written_back(wires, expected):
    request = DIALECT.parse_request({"contents": wires})
    assert request.messages == expected
    assert DIALECT.render_request(request)["contents"] == wires


ANY = {"exit": 0, "stdout": "x"}


@pytest.mark.parametrize(
    ("value", "parts", "expected", "is_error"),
    [
        ({"output": "ok"}, None, (OK,), False),
        ({"error": "no"}, None, (TextBlock(text="no"),), True),
        ({"output": []}, None, (), False),
        ({"output": [{"text": "a"}, {"own": 1}]}, None, (TextBlock(text="a"), OpaquePart(value={"own": 1})), False),
        (
            {"error": [PICTURE, {"text": "a"}]},
            None,
            (ImagePart(media_type="image/png", data="aGk="), TextBlock(text="a")),
            True,
        ),
        (ANY, None, (OpaquePart(value=ANY),), False),
        ({"output": [{"output": "x"}]}, None, (OpaquePart(value={"output": "x"}),), False),
        ({"result": "ok"}, None, (OpaquePart(value={"result": "ok"}),), False),
        ({"output": ["a", "b"]}, None, (OpaquePart(value={"output": ["a", "b"]}),), False),
        ({"output": "a", "error": "b"}, None, (OpaquePart(value={"output": "a", "error": "b"}),), False),
        ({}, None, (OpaquePart(value={}),), False),
        ({"output": "ok"}, [PICTURE], (OK, ImagePart(media_type="image/png", data="aGk=")), False),
        ({"output": []}, [PICTURE], (ImagePart(media_type="image/png", data="aGk="),), False),
        (ANY, [PICTURE], (OpaquePart(value=ANY), ImagePart(media_type="image/png", data="aGk=")), False),
    ],
)
def test_what_a_response_holds(value, parts, expected, is_error):
    own = {"id": "c", "name": "ls", "response": value} | ({} if parts is None else {"parts": parts})
    wires = [content("model", call("ls", {}, id="c")), content("user", {"functionResponse": own})]
    request = DIALECT.parse_request({"contents": wires})
    assert request.messages[1] == result("c", *expected, is_error=is_error)
    assert DIALECT.render_request(request)["contents"] == wires


@pytest.mark.parametrize(
    "wires",
    [
        [content("user", {"text": "a"}), content("user", {"text": "b"})],
        [content("user", {"text": "a"}), content("user", response("ls", id="c"))],
        [content("user", response("ls", id="c")), content("user")],
        [content("user", response("ls", id="c")), {**content("user", {"text": "b"}), "own": 1}],
        [content("model", {"text": "a"}), content("model", {"text": "b"})],
    ],
)
def test_contents_that_are_not_one_stay_apart(wires):
    assert DIALECT.render_request(DIALECT.parse_request({"contents": wires}))["contents"] == wires


def test_both_spellings_mean_the_same():
    picture = {"inline_data": {"mime_type": "image/png", "data": "aGk="}}
    snake = {
        "system_instruction": {"parts": [{"text": "brief"}]},
        "contents": [
            {"parts": [picture, {"file_data": {"mime_type": "image/png", "file_uri": "https://e.invalid/a"}}]},
            {"role": "model", "parts": [{"function_call": {"name": "ls"}, "thought_signature": "c2ln"}]},
            {"parts": [{"function_response": {"name": "ls", "response": {"output": "ok"}, "parts": [picture]}}]},
        ],
        "tools": [{"function_declarations": [{"name": "ls", "parameters_json_schema": {"type": "object"}}]}],
    }
    assert DIALECT.render_request(DIALECT.parse_request(snake)) == {
        "systemInstruction": {"parts": [{"text": "brief"}]},
        "contents": [
            content("user", PICTURE, {"fileData": {"mimeType": "image/png", "fileUri": "https://e.invalid/a"}}),
            content("model", {**call("ls"), "thoughtSignature": "c2ln"}),
            content("user", response("ls", parts=[PICTURE])),
        ],
        "tools": [{"functionDeclarations": [{"name": "ls", "parametersJsonSchema": {"type": "object"}}]}],
    }


# ── The header ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "system",
    [
        "a",
        {"parts": [{"text": "a"}]},
        {"role": "user", "parts": [{"text": "a"}]},
        {"role": "system", "parts": [{"text": "a"}]},
    ],
)
def test_the_system_text_and_its_spellings(system):
    config = {"generationConfig": {"temperature": 0.5}, "safetySettings": []}
    request = DIALECT.parse_request({"model": "m", "systemInstruction": system, "contents": [], **config})
    assert request.system == ("a",)
    assert request.params == {"model": "m", **config}
    assert DIALECT.render_request(request) == {
        "model": "m",
        **config,
        "systemInstruction": {"parts": [{"text": "a"}]},
        "contents": [],
    }


GOOGLES = {"type": "OBJECT", "properties": {"p": {"type": "STRING"}}}


def test_tools_are_read_and_written_back():
    wires = [
        {
            "functionDeclarations": [
                {"name": "a", "description": "x", "parameters": GOOGLES, "behavior": "BLOCKING"},
                {"name": "b", "parametersJsonSchema": {"type": "object"}, "parameters": GOOGLES},
                {"name": "c"},
            ]
        },
        {"googleSearch": {}},
        {"codeExecution": {"own": 1}},
        {"functionDeclarations": [{"name": "d", "parametersJsonSchema": {"type": "object"}}]},
    ]
    request = DIALECT.parse_request({"contents": [], "tools": wires})
    assert request.tools == (
        Tool(name="a", description="x", input_schema=GOOGLES, extra={"behavior": "BLOCKING"}),
        Tool(name="b", input_schema={"type": "object"}, extra={"parameters": GOOGLES}),
        Tool(name="c"),
        Tool(name="googleSearch", extra={"googleSearch": {}}),
        Tool(name="codeExecution", extra={"codeExecution": {"own": 1}}),
        Tool(name="d", input_schema={"type": "object"}),
    )
    assert DIALECT.render_request(request)["tools"] == wires


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], r"^\$: must be an object, is list"),
        ({"contents": "hi"}, r"^\$\.contents: must be an array, is str"),
        ({"contents": [content("assistant")]}, r"^\$\.contents\[0\]\.role: 'assistant' is none of user, model"),
        ({"contents": [content("user", 5)]}, r"^\$\.contents\[0\]\.parts\[0\]: must be an object"),
        ({"contents": [content("model", call(5))]}, r"^\$\.contents\[0\]\.parts\[0\]\.functionCall\.name: must be a"),
        ({"contents": [content("user", response(5))]}, r"\.parts\[0\]\.functionResponse\.name: must be a string"),
        (
            {"contents": [content("user", {"functionResponse": {"parts": [5]}})]},
            r"\.functionResponse\.parts\[0\]: must",
        ),
        ({"systemInstruction": {"parts": [{"text": 5}]}}, r"^\$\.systemInstruction\.parts\[0\]\.text: must be a str"),
        ({"contents": [{"content": "hi"}]}, r"^\$\.contents\[0\]\.content: there is no such member"),
        ({"tools": [{"name": "ls"}]}, r"^\$\.tools\[0\]\.name: there is no such member"),
        ({"tools": [{"functionDeclarations": [{"inputSchema": 1}]}]}, r"\[0\]\.inputSchema: there is no such member"),
        ({"tools": [{"functionDeclarations": [5]}]}, r"^\$\.tools\[0\]\.functionDeclarations\[0\]: must be an object"),
    ],
)
def test_a_malformed_request_is_named(body, message):
    with pytest.raises(DialectError, match=message):
        DIALECT.parse_request(body)
