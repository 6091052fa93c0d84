"""Every behaviour in every dialect, streamed and whole: what holds for all, what breaks off, a few lists whole."""

import json

import pytest
from llm_dialects import BlockStart, Body, DialectError, EntryError, Finish, Head, Pause, Reset, Stall
from llm_mock_server.behaviours import BEHAVIOURS, CONNECTION_REFUSED, NAMES, RANDOM, check_name
from llm_mock_server.options import Options

# ── The table ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_names_are_those_of_the_table_and_two_more():
    assert {RANDOM, CONNECTION_REFUSED}.isdisjoint(BEHAVIOURS)
    assert len(set(NAMES)) == len(NAMES) == 23 + 2 + 10


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_a_name(name):
    assert check_name(name, "x") == name


@pytest.mark.parametrize(("wrong", "near"), [("sucess", "success"), ("rate-limit", "rate_limit"), ("", "")])
def test_a_name_that_is_none(wrong, near):
    with pytest.raises(EntryError) as caught:
        check_name(wrong, "s.json: entries[2]")
    assert str(caught.value).startswith(f"s.json: entries[2]: no behaviour is called {wrong!r}")
    assert near in str(caught.value).partition("\nmend: ")[2]


def test_rows_tell_about_dialects_and_messages():
    for row in BEHAVIOURS.values():
        assert row.summary
        assert row.whole
        assert set(row.differs) <= {"openai-chat", "openai-responses", "anthropic-messages", "gemini"}


# ── What holds for all ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_a_reply_is_in_due_order(name, call):
    actions = call.acts(name)
    heads = [action for action in actions if isinstance(action, Head)]
    assert heads or actions == [Reset("rst")]
    before = actions[: actions.index(heads[0])] if heads else []
    assert all(isinstance(action, Pause) for action in before)
    assert len(heads) <= 1
    ends = [at for at, action in enumerate(actions) if isinstance(action, (Reset, Stall))]
    assert ends in ([], [len(actions) - 1])
    assert all(action.data for action in actions if isinstance(action, Body))


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_a_length_is_the_body_s_unless_it_is_cut_off(name, call):
    actions = call.acts(name)
    length = call.headers(actions).get("content-length")
    cut_off = isinstance(actions[-1], (Reset, Stall))
    if length is not None:
        assert (len(call.body(actions)) < int(length)) if cut_off else (len(call.body(actions)) == int(length))
    else:
        assert call.streamed or actions == [Reset("rst")]


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_no_delay_is_no_delay(name, call):
    assert all(action.seconds == 0 for action in call.acts(name) if isinstance(action, Pause))


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_the_same_situation_is_the_same_reply(name, call):
    assert call.acts(name) == call.acts(name)


@pytest.mark.parametrize("name", [name for name in BEHAVIOURS if name != "success"])
def test_nothing_else_is_success(name, call):
    assert call.acts(name) != call.acts("success")


def test_no_two_behaviours_are_one(call):
    """But for a stream that has no opening, and an error that only a stream can tell apart."""
    same = {("mid_stream_error", "server_error")} if not call.streamed else set()
    if call.dialect == "gemini" and call.streamed:
        same.add(("stream_eof", "empty_body"))
    replies = {name: call.acts(name) for name in BEHAVIOURS}
    for name, reply in replies.items():
        for other, others in replies.items():
            assert name == other or reply != others or {(name, other), (other, name)} & same, (name, other)


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_a_response_names_the_request(name, call):
    header = {"anthropic-messages": "request-id", "gemini": None}.get(call.dialect, "x-request-id")
    for options, told in ((None, "req_7"), (Options(request_id="mine"), "mine")):
        headers = call.headers(call.acts(name, options))
        if headers:
            assert headers.get(header) == (told if header else None)


# ── Answers that break off ──────────────────────────────────────────────────────────────────────────────────────────

# behaviour -> (the text that is read, what comes last)
BROKEN_STREAMS = {
    "stream_disconnect": ("", Reset("rst")),
    "stream_eof": ("", None),
    "partial_eof": ("to be cut", None),
    "partial_disconnect": ("to be cut", Reset("rst")),
    "stall": ("", Stall()),
    "empty_body": ("", None),
}


@pytest.mark.parametrize("name", BROKEN_STREAMS)
def test_a_stream_that_breaks_off(name, stream):
    text, last = BROKEN_STREAMS[name]
    actions = stream.acts(name)
    chunks = stream.decoded(actions)
    assert stream.text(actions) == text
    assert not any(isinstance(chunk, Finish) for chunk in chunks)
    assert (actions[-1] if isinstance(actions[-1], (Reset, Stall)) else None) == last
    assert stream.headers(actions) == stream.headers(stream.acts("success"))


# behaviour -> (the share of the document, whether the response is complete)
BROKEN_MESSAGES = {
    "stream_disconnect": (0, Reset("rst")),
    "stream_eof": (None, None),
    "partial_eof": (0.5, None),
    "partial_disconnect": (0.5, Reset("rst")),
    "stall": (0, Stall()),
    "empty_body": (0, None),
}


@pytest.mark.parametrize("name", BROKEN_MESSAGES)
def test_a_message_that_breaks_off(name, whole):
    share, last = BROKEN_MESSAGES[name]
    partial = name.startswith("partial")
    message = whole.body(whole.acts("success", Options(success_text="to be cut") if partial else None))
    actions = whole.acts(name)
    size = 1 if share is None else int(len(message) * share)
    assert whole.body(actions) == message[:size]
    assert whole.headers(actions)["content-length"] == str(len(message) if last else size)
    assert (actions[-1] if isinstance(actions[-1], (Reset, Stall)) else None) == last
    with pytest.raises(DialectError):
        whole.decoded(actions)


@pytest.mark.parametrize("name", ["stream_disconnect", "partial_disconnect"])
def test_a_reset_waits_for_what_was_said(name, call):
    actions = call.acts(name, Options(disconnect_delay_ms=40))
    assert actions[-2:] == [Pause(0.04), Reset("rst")]


def test_a_stream_that_fails(stream):
    actions = stream.acts("mid_stream_error")
    chunks = stream.decoded(actions)
    assert stream.text(actions) == "to be cut"
    assert isinstance(chunks[0], BlockStart)
    assert chunks[-1].reason.kind == "error"
    assert chunks[-1].reason.failure.code == "SERVER_ERROR"
    assert "error" in chunks[-1].reason.failure.message.lower()


def test_these_are_the_actions(a_call):
    """A few lists, whole."""
    anthropic, openai = a_call("anthropic-messages", True, {}), a_call("openai-chat", False, {})
    usage = '"usage":{"input_tokens":3,"output_tokens":0}'
    message = '"id":"msg_7","type":"message","role":"assistant","model":"m","content":[]'
    events = [
        f'{{"type":"message_start","message":{{{message},"stop_reason":null,"stop_sequence":null,{usage}}}}}',
        '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
        '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"to be"}}',
        '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" cut"}}',
    ]
    head = Head(200, (("content-type", "text/event-stream"), ("cache-control", "no-cache"), ("request-id", "req_7")))
    assert anthropic.acts("partial_disconnect") == [
        head,
        *(Body(f"event: {json.loads(event)['type']}\ndata: {event}\n\n".encode()) for event in events),
        Pause(0),
        Reset("rst"),
    ]
    assert anthropic.acts("stall") == [head, Stall()]
    assert anthropic.acts("connection_reset") == [Reset("rst")]
    headers = (("content-type", "application/json"), ("content-length", "0"), ("x-request-id", "req_7"))
    assert openai.acts("empty_body") == [Head(200, headers)]
