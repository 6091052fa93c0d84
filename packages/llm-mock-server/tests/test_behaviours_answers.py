"""Behaviours that answer, in every dialect, streamed and whole: what is read is what was meant, or spoiled as told."""

import json
import zlib

import pytest
from llm_dialects import (
    DIALECTS,
    Body,
    DialectError,
    Head,
    Pause,
    ReasoningBlock,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    fold,
)
from llm_mock_server.behaviours_stream import COMMENT
from llm_mock_server.options import Options
from llm_mock_server.situation import accepts_gzip

# ── Answers ─────────────────────────────────────────────────────────────────────────────────────────────────────────

SAID = (TextBlock(text="said and done"),)
CALLED = (
    ToolCallBlock(id="call_a", name="a", arguments='{"x": 1}'),
    ToolCallBlock(id="call_b", name="b", arguments='{"y": 2}'),
)
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


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_read_as_it_was_meant(name, call):
    blocks, finish = ANSWERS[name]
    folded = fold(call.decoded(call.acts(name)))
    assert [meaning(block) for block in folded.blocks] == [meaning(block) for block in blocks]
    assert folded.finish.kind == finish
    if not call.streamed or DIALECTS[call.dialect].wants_usage(call.request):
        assert (folded.usage.input_tokens, folded.usage.output_tokens) == (3, 4)


@pytest.mark.parametrize("size", [1, 7])
def test_an_answer_is_read_however_it_is_cut(size, stream):
    for name in ("trickle", "keepalive_comments"):
        actions = stream.acts(name)
        assert stream.decoded(actions, size) == stream.decoded(actions)


def test_an_answer_comes_in_pieces_of_the_chunk_size(stream):
    chunks = stream.decoded(stream.acts("success"))
    assert [chunk.text for chunk in chunks if isinstance(chunk, TextDelta)] == ["said ", "and d", "one"]


def test_the_arguments_of_a_call_are_cut_in_their_middle(stream):
    chunks = stream.decoded(stream.acts("tool_call_success"))
    pieces = [c.arguments_delta for c in chunks if isinstance(c, ToolCallDelta) and c.id == "call_a"]
    assert (
        [json.loads(piece) for piece in pieces] == [{"x": 1}]
        if stream.dialect == "gemini"
        else pieces == ['{"x"', ": 1}"]
    )


def test_a_slow_answer_waits_before_each_event(stream):
    options = Options(chunk_delay_ms=1500)
    quick = [action for action in stream.acts("success", options) if isinstance(action, Body)]
    head, *slow = stream.acts("slow_success", options)
    assert isinstance(head, Head)
    assert slow == [action for body in quick for action in (Pause(1.5), body)]


def test_a_slow_message_comes_at_once_after_as_long(whole, a_call):
    actions = whole.acts("slow_success", Options(chunk_delay_ms=20))
    streamed = a_call(whole.dialect, True, {}).acts("success", Options())
    assert actions[:-2] == [Pause(0.02)] * (len(streamed) - 1)
    assert actions[-2:] == whole.acts("success", Options())


def test_a_late_head_has_a_whole_answer_behind_it(call):
    late = call.acts("slow_headers", Options(headers_delay_ms=2000))
    assert late == [Pause(2), *call.acts("success", Options())]


def test_trickled_bytes_come_one_by_one_and_split_characters(call):
    pieces = [action.data for action in call.acts("trickle") if isinstance(action, Body)]
    assert {len(piece) for piece in pieces} == {1}
    assert max(b"".join(pieces)) > 0xEF  # a character of four bytes
    own = Options(success_text="naïve")
    assert call.text(call.acts("trickle", own)) == "naïve"


def test_a_huge_event_is_one_write(call):
    pieces = [action.data for action in call.acts("huge_event") if isinstance(action, Body)]
    assert sum(b"x" * 900 in piece for piece in pieces) >= 1
    if call.streamed:
        chunks = call.decoded(call.acts("huge_event"))
        assert [len(chunk.text) for chunk in chunks if isinstance(chunk, TextDelta)] == [1000]


def test_a_compressed_stream_is_readable_event_by_event(stream):
    plain = [action.data for action in stream.acts("success") if isinstance(action, Body)]
    packed = [action.data for action in stream.acts("gzip") if isinstance(action, Body)]
    unpack = zlib.decompressobj(wbits=31)
    assert [unpack.decompress(piece) for piece in packed] == [*plain, b""]
    assert unpack.eof


def test_nothing_is_compressed_for_whoever_does_not_ask(call):
    plain = call.acts("gzip", accepts_gzip=False)
    assert plain == call.acts("success")


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


def test_what_keeps_a_stream_alive_is_before_each_event(stream):
    plain = [action.data for action in stream.acts("success") if isinstance(action, Body)]
    pieces = [action.data for action in stream.acts("keepalive_comments") if isinstance(action, Body)]
    array = stream.headers(stream.acts("success"))["content-type"] == "application/json"
    alive = [b"\n"] if array else [COMMENT]
    if stream.dialect == "anthropic-messages":
        alive.append(b'event: ping\ndata: {"type":"ping"}\n\n')
    assert pieces == [piece for event in plain for piece in (*alive, event)]


def test_a_message_kept_alive_is_still_one_document(whole):
    *blank, document = [action.data for action in whole.acts("keepalive_comments") if isinstance(action, Body)]
    assert set(blank) == {b"\n"}
    assert len(blank) > 2
    assert document == whole.body(whole.acts("success"))


# ── Answers with a fault that shows in their pieces ─────────────────────────────────────────────────────────────────


def test_a_piece_told_twice(call):
    actions = call.acts("duplicate_event")
    assert call.text(actions) == "said said and done"
    if call.streamed:
        pieces = [action.data for action in actions if isinstance(action, Body)]
        plain = [action.data for action in call.acts("success") if isinstance(action, Body)]
        (at,) = [at for at in range(len(plain)) if pieces[at] == pieces[at + 1]]
        assert pieces[:at] + pieces[at + 1 :] == plain


def test_calls_by_turns_or_in_reverse(call):
    chunks = call.decoded(call.acts("reordered_tool_deltas"))
    told = [c.id for c in chunks if isinstance(c, ToolCallDelta)]
    if call.streamed and call.dialect.startswith("openai"):
        assert told == ["call_a", "call_b", "call_b", "call_a"]
    else:
        assert list(dict.fromkeys(told)) == ["call_b", "call_a"]
    blocks = {block.id: meaning(block) for block in fold(chunks).blocks}
    assert blocks == {block.id: meaning(block) for block in CALLED}
    assert fold(chunks).finish.kind == "tool-calls"


def test_the_numbers_of_calls_by_turns_are_those_of_their_places(a_call):
    pieces = a_call("openai-chat", True, {}).acts("reordered_tool_deltas")
    told = [json.loads(p.data.split(b"data: ")[1]) for p in pieces if isinstance(p, Body) and b"tool_calls" in p.data]
    numbers = [call["index"] for event in told for call in event["choices"][0]["delta"].get("tool_calls", [])]
    assert numbers == [0, 1, 1, 0]


def test_a_single_call_is_reordered_with_itself(call):
    options = Options(tool_name="t", tool_arguments='{"a": 1}')
    blocks = fold(call.decoded(call.acts("reordered_tool_deltas", options))).blocks
    assert sorted(meaning(block)[0] for block in blocks) == ["call_1", "call_2"]
    assert {meaning(block)[1] for block in blocks} == {"t"}


@pytest.mark.parametrize(("name", "json_too"), [("malformed_json", False), ("malformed_event", True)])
def test_a_spoiled_piece(name, json_too, call):
    actions, plain = call.acts(name), call.acts("success")
    with pytest.raises(DialectError):
        call.decoded(actions)
    changed = [at for at, pair in enumerate(zip(actions, plain, strict=True)) if pair[0] != pair[1]]
    at = changed[-1]
    assert changed == ([at] if call.streamed else [0, 1])  # a message's length, too
    spoiled = actions[at].data
    inside = spoiled[spoiled.index(b"{") : spoiled.rindex(b"}") + 1]
    if json_too:
        assert 7 in json.loads(inside).values()
    else:
        with pytest.raises(json.JSONDecodeError):
            json.loads(inside)
    if call.streamed:
        assert b"said " in plain[at].data
        actions[at] = Body(b"[" if spoiled.startswith(b"[") else b"\n")  # an array still has its beginning
        assert call.text(actions) == "and done"


def test_a_stream_is_mislabelled(stream):
    right = stream.headers(stream.acts("success"))["content-type"]
    wrong = stream.headers(stream.acts("wrong_content_type"))["content-type"]
    assert wrong == ("text/event-stream" if right == "application/json" else "application/json")


def test_a_message_is_mislabelled(whole):
    assert whole.headers(whole.acts("wrong_content_type"))["content-type"] == "text/plain"
