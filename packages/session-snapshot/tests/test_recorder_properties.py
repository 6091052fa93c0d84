# ruff: noqa: E501 - answers are to the letter
"""Whatever comes from a provider, however it ends: the recorder never fails, keeps it, and what it kept tells the same
again, for good."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_dialects import DIALECTS, Body, Chunks, Head, Reset, Stall, answer_to, entry_from_json, entry_to_json
from llm_mock_server import entry_reply
from session_snapshot.recording.heard import RETOLD, Heard, is_json, read_stream, read_whole

ASKED = {
    "openai-chat": {"model": "m", "messages": []},
    "openai-responses": {"model": "m", "input": []},
    "anthropic-messages": {"model": "m", "max_tokens": 9, "messages": []},
    "gemini": {"contents": [], "model": "m"},
}
SSE = {"gemini": {"alt": "sse"}}
TYPES = ["text/event-stream", "application/json", "text/html; charset=utf-8", ""]
ENDS = {"complete": [], "cut": [Reset("fin")], "reset": [Reset("rst")], "silence": [Stall()]}


def told(dialect, *, streamed, array=False):
    """A request, and the body of a good answer to it."""
    params = {"stream": streamed} | ({} if array else SSE.get(dialect, {}))
    request = DIALECTS[dialect].parse_request(ASKED[dialect] | params)
    chunks = DIALECTS[dialect].decode_message(GOOD[dialect])
    answer = answer_to(DIALECTS[dialect], request, token="1", created=0)
    row = DIALECTS[dialect]
    return request, b"".join(row.encode_stream(chunks, answer)) if streamed else row.encode_message(chunks, answer)


GOOD = {
    "openai-chat": b'{"choices":[{"message":{"content":"so it is","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}',
    "openai-responses": b'{"status":"completed","output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"type":"message","content":[{"type":"output_text","text":"so it is"}]}],"usage":{"input_tokens":3,"output_tokens":4}}',
    "anthropic-messages": b'{"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"so it is"},{"type":"tool_use","id":"c","name":"f","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}',
    "gemini": b'{"candidates":[{"content":{"parts":[{"text":"so it is"},{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4}}',
}  # fmt: skip

PIECES = [b"\n", b"\n\n", b"\r\n\r\n", b"data: ", b"data: {}\n\n", b"data: 7\n\n", b": x\n\n", b"[DONE]", b"{", b"}", b"[", b"]",
          b",", b'"', b"\\ud800", b"\xff", b"\x00", b"null", b"event: error\n", b'{"error":{"message":"no"}}', b"{{cwd}}"]  # fmt: skip


@st.composite
def responses(draw):
    """A request, and the actions that some provider answers it with: a good answer, spoiled in some places."""
    dialect, streamed = draw(st.sampled_from(sorted(DIALECTS))), draw(st.booleans())
    request, body = told(dialect, streamed=streamed, array=dialect == "gemini" and draw(st.booleans()))
    for _ in range(draw(st.integers(0, 3))):
        at, length = draw(st.integers(0, len(body))), draw(st.sampled_from([0, 0, 1, 5, 40, 10_000]))
        body = body[:at] + draw(st.sampled_from([b"", *PIECES])) + body[at + length :]
    status = draw(st.sampled_from([200, 200, 200, 200, 201, 400, 401, 429, 500, 529]))
    kind = draw(st.sampled_from([TYPES[0] if streamed else TYPES[1], *TYPES]))
    headers = [("content-type", kind)] if kind else []
    headers += draw(st.sampled_from([[], [("retry-after", "2")], [("retry-after", "ü"), ("x-should-retry", "true")]]))
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=4)))
    bodies = [Body(body[a:b]) for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True) if a != b]
    head = draw(st.sampled_from([[Head(status, tuple(headers))]] * 9 + [[]]))
    end = draw(st.sampled_from([*["complete"] * 3, "cut", "reset", "silence"]))
    return dialect, request, [*head, *(bodies if head else []), *ENDS[end if head or end != "complete" else "cut"]]


def hear(dialect, request, actions):
    """The entry that is kept of these actions."""
    heard = Heard(DIALECTS[dialect], request)
    for action in actions:
        heard.take(action)
    heard.over() if not isinstance(actions[-1], Stall) else None
    return heard


def retold(dialect, request, entry):
    """What a replay of the entry says."""
    kept = entry_from_json(entry_to_json(entry), "here")
    answer = answer_to(DIALECTS[dialect], request, token="2", created=9, exact=isinstance(kept, Chunks))
    return list(entry_reply(DIALECTS[dialect], request, kept, answer))


def seen(dialect, request, told):
    """What a client makes of what it was told."""
    row = DIALECTS[dialect]
    retry = {name: value for name, value in told.headers if name in RETOLD and value.isascii()}
    if told.status is None or told.status >= 300:
        said = is_json(told.body) or told.body
    elif request.params["stream"]:
        reading = read_stream(row, told.body)
        said = reading.chunks, reading.wrong, bool(reading.events) or bool(reading.left)
    else:
        reading = read_whole(row, told.body)
        said = reading.chunks, reading.wrong
    return told.status, told.content_type, retry, said


def check_kept_for_good(response):
    dialect, request, actions = response
    first = hear(dialect, request, actions)
    entry = first.entry()
    again = hear(dialect, request, retold(dialect, request, entry))
    assert entry_to_json(again.entry()) == entry_to_json(entry)
    silent = isinstance(actions[-1], Stall)
    if not silent:
        assert seen(dialect, request, again.told) == seen(dialect, request, first.told)
        assert again.told.end == first.told.end


@given(responses())
@settings(max_examples=300, deadline=None)
def test_what_is_kept_tells_the_same_again_for_good(response):
    check_kept_for_good(response)


@pytest.mark.stress
@given(responses())
@settings(max_examples=20_000, deadline=None)
def test_whatever_comes_is_kept_for_good(response):
    check_kept_for_good(response)
