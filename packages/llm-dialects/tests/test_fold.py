import pytest
from llm_dialects import FinishReason, ReasoningBlock, TextBlock, ToolCallBlock, Usage, chunks_from_json, fold
from llm_dialects.fold import indexed

START = {"type": "block-start", "index": 0, "blockType": "text"}
HI = {"type": "text-delta", "index": 0, "text": "hi"}
CALL = {"type": "block-start", "index": 1, "blockType": "tool-call"}
ARGS = {"type": "tool-call-delta", "index": 1, "id": "c", "argumentsDelta": "{"}
STOP = {"type": "finish", "reason": {"kind": "stop"}}


def end(text):
    return {"type": "block-end", "index": 0, "block": {"type": "text", "text": text}}


@pytest.mark.parametrize(
    ("chunks", "blocks"),
    [
        ([], ()),
        ([START], ()),
        ([START, end("")], ()),
        ([START, HI, HI], (TextBlock(text="hihi"),)),
        ([START, HI, end("hi there")], (TextBlock(text="hi there"),)),
        ([START, CALL, HI, ARGS, ARGS], (TextBlock(text="hi"), ToolCallBlock(id="c", name="", arguments="{{"))),
        ([CALL, START, HI], (TextBlock(text="hi"),)),
        ([{"type": "reasoning-delta", "index": 5, "text": "hm"}], (ReasoningBlock(text="hm"),)),
    ],
)
def test_deltas_add_up_to_blocks(chunks, blocks):
    assert fold(chunks_from_json(chunks)).blocks == blocks


def test_the_last_usage_and_finish_count():
    usages = [{"type": "usage", "usage": {"inputTokens": count, "outputTokens": 1}} for count in (1, 2)]
    folded = fold(chunks_from_json([*usages, STOP]))
    assert folded.usage == Usage(input_tokens=2, output_tokens=1)
    assert folded.finish == FinishReason(kind="stop")


@pytest.mark.parametrize(
    ("whole", "rest"), [("hi", ""), ("hi there", " there"), ("h", ""), ("bye there", ""), ("", "")]
)
def test_what_only_the_end_of_a_block_says(whole, rest):
    (item,) = indexed(chunks_from_json([START, HI, end(whole)]))
    assert item.rest == rest
