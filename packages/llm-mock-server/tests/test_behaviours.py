"""Every behaviour in every dialect, streamed and whole: what it does is a list of actions, and what they say."""

import gzip
import json
import zlib
from itertools import count

import pytest
from llm_dialects import (
    DIALECTS,
    BlockStart,
    Body,
    DialectError,
    EntryError,
    Finish,
    Head,
    Pause,
    ReasoningBlock,
    Request,
    Reset,
    Stall,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    Usage,
    fold,
)
from llm_dialects.entries import SaidCall
from llm_mock_server.behaviours import BEHAVIOURS, CONNECTION_REFUSED, NAMES, RANDOM, behave, check_name
from llm_mock_server.behaviours_stream import COMMENT
from llm_mock_server.options import Options
from llm_mock_server.situation import Situation, accepts_gzip

# dialect -> what else a call may ask that changes how its stream is framed
FRAMINGS = {"gemini": [{"alt": "sse"}, {}]}
CALLS = [
    (dialect, {"stream": stream} | framing)
    for dialect in DIALECTS
    for framing in FRAMINGS.get(dialect, [{}])
    for stream in (True, False)
]
TWO = (SaidCall(name="a", arguments='{"x": 1}', id="call_a"), SaidCall(name="b", arguments='{"y": 2}', id="call_b"))
OPTIONS = Options(
    partial_text="to be cut",
    success_text="said and done",
    reasoning_text="thought",
    chunk_size=5,
    chunk_delay_ms=0,
    disconnect_delay_ms=0,
    headers_delay_ms=0,
    tool_calls=TWO,
    huge_bytes=1000,
)
USAGE = Usage(input_tokens=3, output_tokens=4)


def situation(dialect, params, options=OPTIONS, **members):
    ids = count(1)
    request = Request(system=(), tools=(), messages=(), params={"model": "m"} | params)
    return Situation(
        dialect=DIALECTS[dialect],
        request=request,
        options=options,
        token="7",
        created=1_767_225_600,
        count=lambda chunks: USAGE,
        new_id=lambda: f"call_{next(ids)}",
        **members,
    )


def acts(name, dialect, params, options=OPTIONS, **members):
    return list(behave(name, situation(dialect, params, options, **members)))


def body_of(actions):
    return b"".join(action.data for action in actions if isinstance(action, Body))


def headers_of(actions):
    return next((dict(action.headers) for action in actions if isinstance(action, Head)), {})


def decoded(dialect, params, actions, size=None):
    """The chunks a client reads, in pieces as they are written or of ``size`` bytes."""
    body = body_of(actions)
    if headers_of(actions).get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    if not params["stream"]:
        return DIALECTS[dialect].decode_message(body)
    decoder, chunks = DIALECTS[dialect].decoder(), []
    pieces = [body] if size is None else [body[at : at + size] for at in range(0, len(body), size)]
    for piece in pieces:
        chunks += decoder.feed(piece)
    return (*chunks, *decoder.close())


def text_in(chunks):
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))


everywhere = pytest.mark.parametrize(("dialect", "params"), CALLS)
streams = pytest.mark.parametrize(("dialect", "params"), [call for call in CALLS if call[1]["stream"]])
wholes = pytest.mark.parametrize(("dialect", "params"), [call for call in CALLS if not call[1]["stream"]])


# ── The table ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_names_are_those_of_the_table_and_two_more():
    assert [name for name in NAMES if name not in (RANDOM, CONNECTION_REFUSED)] == list(BEHAVIOURS)
    assert len(NAMES) == 23 + 2 + 10


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


@everywhere
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_a_reply_is_in_due_order(name, dialect, params):
    actions = acts(name, dialect, params)
    heads = [action for action in actions if isinstance(action, Head)]
    assert heads or actions == [Reset("rst")]
    before = actions[: actions.index(heads[0])] if heads else []
    assert all(isinstance(action, Pause) for action in before)
    assert len(heads) <= 1
    ends = [at for at, action in enumerate(actions) if isinstance(action, (Reset, Stall))]
    assert ends in ([], [len(actions) - 1])
    assert all(action.data for action in actions if isinstance(action, Body))


@everywhere
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_a_length_is_the_body_s_unless_it_is_cut_off(name, dialect, params):
    actions = acts(name, dialect, params)
    length = headers_of(actions).get("content-length")
    cut_off = isinstance(actions[-1], (Reset, Stall))
    if length is not None:
        assert (len(body_of(actions)) < int(length)) if cut_off else (len(body_of(actions)) == int(length))
    else:
        assert params["stream"] or actions == [Reset("rst")]


@everywhere
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_no_delay_is_no_delay(name, dialect, params):
    assert all(action.seconds == 0 for action in acts(name, dialect, params) if isinstance(action, Pause))


@everywhere
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_the_same_situation_is_the_same_reply(name, dialect, params):
    assert acts(name, dialect, params) == acts(name, dialect, params)


@everywhere
@pytest.mark.parametrize("name", [name for name in BEHAVIOURS if name != "success"])
def test_nothing_else_is_success(name, dialect, params):
    assert acts(name, dialect, params) != acts("success", dialect, params)


@everywhere
def test_no_two_behaviours_are_one(dialect, params):
    """But for a stream that has no opening, and an error that only a stream can tell apart."""
    same = {("mid_stream_error", "server_error")} if not params["stream"] else set()
    if dialect == "gemini" and params["stream"]:
        same.add(("stream_eof", "empty_body"))
    replies = {name: acts(name, dialect, params) for name in BEHAVIOURS}
    for name, reply in replies.items():
        for other, others in replies.items():
            assert name == other or reply != others or {(name, other), (other, name)} & same, (name, other)


@everywhere
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_a_response_names_the_request(name, dialect, params):
    header = {"anthropic-messages": "request-id", "gemini": None}.get(dialect, "x-request-id")
    for options, told in ((OPTIONS, "req_7"), (Options(request_id="mine"), "mine")):
        headers = headers_of(acts(name, dialect, params, options))
        if headers:
            assert headers.get(header) == (told if header else None)


# ── Answers ─────────────────────────────────────────────────────────────────────────────────────────────────────────

SAID = (TextBlock(text="said and done"),)
CALLED = tuple(ToolCallBlock(id=call.id, name=call.name, arguments=call.arguments) for call in TWO)
# behaviour -> (blocks, finish)
ANSWERS = {
    "success": (SAID, "stop"),
    "reasoning_success": ((ReasoningBlock(text="thought"), *SAID), "stop"),
    "tool_call_success": (CALLED, "tool-calls"),
    "slow_success": (SAID, "stop"),
    "max_tokens": (SAID, "max-tokens"),
    "empty": ((), "stop"),
    "wrong_content_type": (SAID, "stop"),
    "slow_headers": (SAID, "stop"),
    "trickle": ((TextBlock(text="said and done – žluťoučký 漢字 🙂"),), "stop"),
    "huge_event": ((TextBlock(text="x" * 1000),), "stop"),
    "gzip": (SAID, "stop"),
    "keepalive_comments": (SAID, "stop"),
}


def meaning(block):
    """A block without what a dialect puts there of its own: ids of thoughts, spaces in arguments."""
    match block:
        case ToolCallBlock():
            return block.id, block.name, json.loads(block.arguments)
        case ReasoningBlock():
            return "reasoning", block.text
        case TextBlock():
            return block.text


@everywhere
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_read_as_it_was_meant(name, dialect, params):
    blocks, finish = ANSWERS[name]
    folded = fold(decoded(dialect, params, acts(name, dialect, params)))
    assert [meaning(block) for block in folded.blocks] == [meaning(block) for block in blocks]
    assert folded.finish.kind == finish
    if not params["stream"] or DIALECTS[dialect].wants_usage(situation(dialect, params).request):
        assert (folded.usage.input_tokens, folded.usage.output_tokens) == (3, 4)


@streams
@pytest.mark.parametrize("size", [1, 7])
def test_an_answer_is_read_however_it_is_cut(size, dialect, params):
    for name in ("trickle", "keepalive_comments"):
        actions = acts(name, dialect, params)
        assert decoded(dialect, params, actions, size) == decoded(dialect, params, actions)


@streams
def test_an_answer_comes_in_pieces_of_the_chunk_size(dialect, params):
    chunks = decoded(dialect, params, acts("success", dialect, params))
    assert [chunk.text for chunk in chunks if isinstance(chunk, TextDelta)] == ["said ", "and d", "one"]


@streams
def test_the_arguments_of_a_call_are_cut_in_their_middle(dialect, params):
    chunks = decoded(dialect, params, acts("tool_call_success", dialect, params))
    pieces = [c.arguments_delta for c in chunks if isinstance(c, ToolCallDelta) and c.id == "call_a"]
    assert [json.loads(piece) for piece in pieces] == [{"x": 1}] if dialect == "gemini" else pieces == ['{"x"', ": 1}"]


@streams
def test_a_slow_answer_waits_before_each_event(dialect, params):
    options = Options(chunk_delay_ms=1500)
    quick = [action for action in acts("success", dialect, params, options) if isinstance(action, Body)]
    head, *slow = acts("slow_success", dialect, params, options)
    assert isinstance(head, Head)
    assert slow == [action for body in quick for action in (Pause(1.5), body)]


@wholes
def test_a_slow_message_comes_at_once_after_as_long(dialect, params):
    actions = acts("slow_success", dialect, params, Options(chunk_delay_ms=20))
    streamed = acts("success", dialect, params | {"stream": True}, Options())
    assert actions[:-2] == [Pause(0.02)] * (len(streamed) - 1)
    assert actions[-2:] == acts("success", dialect, params, Options())


@everywhere
def test_a_late_head_has_a_whole_answer_behind_it(dialect, params):
    late = acts("slow_headers", dialect, params, Options(headers_delay_ms=2000))
    assert late == [Pause(2), *acts("success", dialect, params, Options())]


@everywhere
def test_trickled_bytes_come_one_by_one_and_split_characters(dialect, params):
    pieces = [action.data for action in acts("trickle", dialect, params) if isinstance(action, Body)]
    assert {len(piece) for piece in pieces} == {1}
    assert max(b"".join(pieces)) > 0xEF  # a character of four bytes
    own = Options(success_text="naïve")
    assert text_in(decoded(dialect, params, acts("trickle", dialect, params, own))) == "naïve"


@everywhere
def test_a_huge_event_is_one_write(dialect, params):
    pieces = [action.data for action in acts("huge_event", dialect, params) if isinstance(action, Body)]
    assert sum(b"x" * 900 in piece for piece in pieces) >= 1
    if params["stream"]:
        chunks = decoded(dialect, params, acts("huge_event", dialect, params))
        assert [len(chunk.text) for chunk in chunks if isinstance(chunk, TextDelta)] == [1000]


@streams
def test_a_compressed_stream_is_readable_event_by_event(dialect, params):
    plain = [action.data for action in acts("success", dialect, params) if isinstance(action, Body)]
    packed = [action.data for action in acts("gzip", dialect, params) if isinstance(action, Body)]
    unpack = zlib.decompressobj(wbits=31)
    assert [unpack.decompress(piece) for piece in packed] == [*plain, b""]
    assert unpack.eof


@everywhere
def test_nothing_is_compressed_for_whoever_does_not_ask(dialect, params):
    plain = acts("gzip", dialect, params, accepts_gzip=False)
    assert plain == acts("success", dialect, params)


@pytest.mark.parametrize(
    ("value", "accepted"),
    [
        (None, False),
        ("", False),
        ("gzip", True),
        ("deflate, GZIP ; q=0.5, br", True),
        ("gzip;q=0", False),
        ("gzip;q=0, *", False),
        ("*", True),
        ("*;q=0", False),
        ("identity, br", False),
        ("gzip;q=x", False),
    ],
)
def test_who_asks_for_gzip(value, accepted):
    headers = [("host", "h"), *([] if value is None else [("accept-encoding", value)])]
    assert accepts_gzip(headers) is accepted


@streams
def test_what_keeps_a_stream_alive_is_before_each_event(dialect, params):
    plain = [action.data for action in acts("success", dialect, params) if isinstance(action, Body)]
    pieces = [action.data for action in acts("keepalive_comments", dialect, params) if isinstance(action, Body)]
    array = headers_of(acts("success", dialect, params))["content-type"] == "application/json"
    alive = [b"\n"] if array else [COMMENT]
    if dialect == "anthropic-messages":
        alive.append(b'event: ping\ndata: {"type":"ping"}\n\n')
    assert pieces == [piece for event in plain for piece in (*alive, event)]


@wholes
def test_a_message_kept_alive_is_still_one_document(dialect, params):
    *blank, document = [
        action.data for action in acts("keepalive_comments", dialect, params) if isinstance(action, Body)
    ]
    assert set(blank) == {b"\n"}
    assert len(blank) > 2
    assert document == body_of(acts("success", dialect, params))


# ── Answers with a fault that shows in their pieces ─────────────────────────────────────────────────────────────────


@everywhere
def test_a_piece_told_twice(dialect, params):
    actions = acts("duplicate_event", dialect, params)
    assert text_in(decoded(dialect, params, actions)) == "said said and done"
    if params["stream"]:
        pieces = [action.data for action in actions if isinstance(action, Body)]
        plain = [action.data for action in acts("success", dialect, params) if isinstance(action, Body)]
        (at,) = [at for at in range(len(plain)) if pieces[at] == pieces[at + 1]]
        assert pieces[:at] + pieces[at + 1 :] == plain


@everywhere
def test_calls_by_turns_or_in_reverse(dialect, params):
    chunks = decoded(dialect, params, acts("reordered_tool_deltas", dialect, params))
    told = [c.id for c in chunks if isinstance(c, ToolCallDelta)]
    if params["stream"] and dialect.startswith("openai"):
        assert told == ["call_a", "call_b", "call_b", "call_a"]
    else:
        assert list(dict.fromkeys(told)) == ["call_b", "call_a"]
    blocks = {block.id: meaning(block) for block in fold(chunks).blocks}
    assert blocks == {block.id: meaning(block) for block in CALLED}
    assert fold(chunks).finish.kind == "tool-calls"


def test_the_numbers_of_calls_by_turns_are_those_of_their_places():
    pieces = acts("reordered_tool_deltas", "openai-chat", {"stream": True})
    told = [json.loads(p.data.split(b"data: ")[1]) for p in pieces if isinstance(p, Body) and b"tool_calls" in p.data]
    numbers = [call["index"] for event in told for call in event["choices"][0]["delta"].get("tool_calls", [])]
    assert numbers == [0, 1, 1, 0]


@everywhere
def test_a_single_call_is_reordered_with_itself(dialect, params):
    options = Options(tool_name="t", tool_arguments='{"a": 1}')
    blocks = fold(decoded(dialect, params, acts("reordered_tool_deltas", dialect, params, options))).blocks
    assert sorted(meaning(block)[0] for block in blocks) == ["call_1", "call_2"]
    assert {meaning(block)[1] for block in blocks} == {"t"}


@everywhere
@pytest.mark.parametrize(("name", "json_too"), [("malformed_json", False), ("malformed_event", True)])
def test_a_spoiled_piece(name, json_too, dialect, params):
    actions, plain = acts(name, dialect, params), acts("success", dialect, params)
    with pytest.raises(DialectError):
        decoded(dialect, params, actions)
    changed = [at for at, pair in enumerate(zip(actions, plain, strict=True)) if pair[0] != pair[1]]
    at = changed[-1]
    assert changed == ([at] if params["stream"] else [0, 1])  # a message's length, too
    spoiled = actions[at].data
    inside = spoiled[spoiled.index(b"{") : spoiled.rindex(b"}") + 1]
    if json_too:
        assert 7 in json.loads(inside).values()
    else:
        with pytest.raises(json.JSONDecodeError):
            json.loads(inside)
    if params["stream"]:
        assert b"said " in plain[at].data
        actions[at] = Body(b"[" if spoiled.startswith(b"[") else b"\n")  # an array still has its beginning
        assert text_in(decoded(dialect, params, actions)) == "and done"


@streams
def test_a_stream_is_mislabelled(dialect, params):
    right = headers_of(acts("success", dialect, params))["content-type"]
    wrong = headers_of(acts("wrong_content_type", dialect, params))["content-type"]
    assert wrong == ("text/event-stream" if right == "application/json" else "application/json")


@wholes
def test_a_message_is_mislabelled(dialect, params):
    assert headers_of(acts("wrong_content_type", dialect, params))["content-type"] == "text/plain"


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


@streams
@pytest.mark.parametrize("name", BROKEN_STREAMS)
def test_a_stream_that_breaks_off(name, dialect, params):
    text, last = BROKEN_STREAMS[name]
    actions = acts(name, dialect, params)
    chunks = decoded(dialect, params, actions)
    assert text_in(chunks) == text
    assert not any(isinstance(chunk, Finish) for chunk in chunks)
    assert (actions[-1] if isinstance(actions[-1], (Reset, Stall)) else None) == last
    assert headers_of(actions) == headers_of(acts("success", dialect, params))


# behaviour -> (the share of the document, whether the response is complete)
BROKEN_MESSAGES = {
    "stream_disconnect": (0, Reset("rst")),
    "stream_eof": (None, None),
    "partial_eof": (0.5, None),
    "partial_disconnect": (0.5, Reset("rst")),
    "stall": (0, Stall()),
    "empty_body": (0, None),
}


@wholes
@pytest.mark.parametrize("name", BROKEN_MESSAGES)
def test_a_message_that_breaks_off(name, dialect, params):
    share, last = BROKEN_MESSAGES[name]
    partial = name.startswith("partial")
    message = body_of(acts("success", dialect, params, Options(success_text="to be cut") if partial else OPTIONS))
    actions = acts(name, dialect, params)
    size = 1 if share is None else int(len(message) * share)
    assert body_of(actions) == message[:size]
    assert headers_of(actions)["content-length"] == str(len(message) if last else size)
    assert (actions[-1] if isinstance(actions[-1], (Reset, Stall)) else None) == last
    with pytest.raises(DialectError):
        decoded(dialect, params, actions)


@everywhere
@pytest.mark.parametrize("name", ["stream_disconnect", "partial_disconnect"])
def test_a_reset_waits_for_what_was_said(name, dialect, params):
    actions = acts(name, dialect, params, Options(disconnect_delay_ms=40))
    assert actions[-2:] == [Pause(0.04), Reset("rst")]


@streams
def test_a_stream_that_fails(dialect, params):
    chunks = decoded(dialect, params, acts("mid_stream_error", dialect, params))
    assert text_in(chunks) == "to be cut"
    assert isinstance(chunks[0], BlockStart)
    assert chunks[-1].reason.kind == "error"
    assert chunks[-1].reason.failure.code == "SERVER_ERROR"
    assert "error" in chunks[-1].reason.failure.message.lower()


def test_these_are_the_actions():
    """A few lists, whole."""
    assert acts("connection_reset", "openai-chat", {"stream": True}) == [Reset("rst")]
    head = Head(200, (("content-type", "text/event-stream"), ("cache-control", "no-cache"), ("request-id", "req_7")))
    usage = '"usage":{"input_tokens":3,"output_tokens":0}'
    start = (
        '{"type":"message_start","message":{"id":"msg_7","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,'
        + usage
        + "}}"
    )
    block = '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'
    deltas = [
        '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"' + text + '"}}'
        for text in ("to be", " cut")
    ]
    events = [start, block, *deltas]
    assert acts("partial_disconnect", "anthropic-messages", {"stream": True}) == [
        head,
        *(Body(f"event: {json.loads(event)['type']}\ndata: {event}\n\n".encode()) for event in events),
        Pause(0),
        Reset("rst"),
    ]
    headers = (("content-type", "application/json"), ("content-length", "0"), ("x-request-id", "req_7"))
    assert acts("empty_body", "openai-chat", {"stream": False}) == [Head(200, headers)]
    assert acts("stall", "anthropic-messages", {"stream": True}) == [head, Stall()]
