"""Each row of CANNOT_SAY has an example, and what it says is lost really is."""

import pytest
from llm_dialects import CANNOT_SAY, DIALECTS, Answer, Loss, chunks_from_json, fold, limits
from llm_dialects.limits import leveled

ANSWER = Answer(id="a", model="m")

START = {"type": "block-start", "index": 0, "blockType": "text"}
HI = {"type": "text-delta", "index": 0, "text": "hi"}
END = {"type": "block-end", "index": 0, "block": {"type": "text", "text": "hi"}}
NOTHING = {"type": "block-end", "index": 0, "block": {"type": "text", "text": ""}}
USAGE = {"type": "usage", "usage": {"inputTokens": 5, "outputTokens": 2}}
CACHES = {"cacheReadTokens": 3, "cacheWriteTokens": 0, "reasoningTokens": 1}
COUNTED = {"type": "usage", "usage": {**USAGE["usage"], **CACHES}}
STOP = {"type": "finish", "reason": {"kind": "stop"}}
CALLS_STOP = {"type": "finish", "reason": {"kind": "tool-calls"}}
THINK = {"type": "block-start", "index": 0, "blockType": "reasoning"}
HM = {"type": "reasoning-delta", "index": 0, "text": "hm"}
CALL = {"type": "block-start", "index": 0, "blockType": "tool-call"}
ARGS = {"type": "tool-call-delta", "index": 0, "id": "c", "name": "ls", "argumentsDelta": "{ }"}
CALLED = {"type": "block-end", "index": 0, "block": {"type": "tool-call", "id": "c", "name": "ls", "arguments": "{ }"}}


PLAIN, OPENING, CLOSING = ({**ARGS, "argumentsDelta": piece} for piece in ("{}", "{", "}"))
PLAINLY_CALLED = {**CALLED, "block": {**CALLED["block"], "arguments": "{}"}}
REDACTED_BLOCK = {"type": "reasoning", "text": "", "redactedData": "x"}


def at(index, *chunks):
    return [{**chunk, "index": index} for chunk in chunks]


def failed(code, message="m"):
    return {"type": "finish", "reason": {"kind": "error", "failure": {"code": code, "message": message}}}


def thought(**members):
    return {"type": "block-end", "index": 0, "block": {"type": "reasoning", "text": "hm", **members}}


COMMON = {
    "chunks that no provider sends": [HI, {**HI, "type": "reasoning-delta"}, STOP],
    "members of no known meaning": [START, HI, {**END, "block": {"type": "text", "text": "hi", "x": 1}}, STOP],
    "a block whose end contradicts its deltas": [START, HI, {**END, "block": {"type": "text", "text": "ho"}}, STOP],
    "the usage of an answer that breaks off or fails": [START, HI, END, USAGE],
    "what was said before an error": [START, HI, failed("AUTH")],
    "an answer that breaks off": [START, HI],
    "numbers of blocks other than 0, 1, 2 in order of appearance": [*at(3, START, HI, END), STOP],
    "a tool call's delta without its name": [CALL, ARGS, {k: v for k, v in ARGS.items() if k != "name"}, STOP],
    "text that stands only in the end of its block": [START, END, STOP],
    "several usages, or one that is not right before the finish": [USAGE, START, HI, END, STOP],
}
EXAMPLES = {
    "openai-chat": {
        **COMMON,
        "two blocks of text or of thinking (they become one)": [START, HI, END, *at(1, START, HI, END), STOP],
        "the signature of thinking": [THINK, HM, thought(signature="s"), STOP],
        "an error that its words do not tell": [failed("rate_limit_exceeded")],
        "a finish that the wire uses for another": [{"type": "finish", "reason": {"kind": "length"}}],
        "the order of text around thinking and tool calls": [CALL, ARGS, *at(1, START, HI, END), CALLED, STOP],
        "the end of a block before the end of the answer": [START, HI, END, *at(1, CALL, ARGS, CALLED), STOP],
        "a block that ends without the answer, or the other way round": [START, HI, STOP],
        "blocks that are said in another order than they start in": [START, *at(1, CALL, ARGS), HI, STOP],
        "the start of a block apart from its first delta": [START, NOTHING, STOP],
        "an empty delta": [START, {**HI, "text": ""}, HI, END, STOP],
    },
    "openai-responses": {
        **COMMON,
        "a tool call's delta without its name": [*COMMON["a tool call's delta without its name"][:-1], CALLS_STOP],
        "several usages, or one that is not right before the finish": [COUNTED, START, HI, END, STOP],
        "redacted thinking": [THINK, {"type": "block-end", "index": 0, "block": REDACTED_BLOCK}, STOP],
        "an error that its words do not tell": [failed("rate_limit_exceeded")],
        "a finish that the wire uses for another": [{"type": "finish", "reason": {"kind": "max_output_tokens"}}],
        "a plain stop beside tool calls, or one for calls without any": [CALL, ARGS, CALLED, STOP],
        "token counts that are not known (they are zeros)": [START, HI, END, USAGE, STOP],
        "the end of a block after the start of another one": [START, HI, *at(1, START, HI, END), END, STOP],
        "a block left open": [START, HI, STOP],
    },
    "gemini": {
        **COMMON,
        "chunks that no provider sends": [START, HI, END, HI, STOP],
        "a tool call's delta without its name": [
            CALL,
            OPENING,
            {k: v for k, v in CLOSING.items() if k != "name"},
            CALLS_STOP,
        ],
        "redacted thinking": [THINK, {"type": "block-end", "index": 0, "block": REDACTED_BLOCK}, STOP],
        "two blocks of text or of thinking in a row (they become one)": [START, HI, END, *at(1, START, HI, END), STOP],
        "arguments of a tool call that are no JSON object": [CALL, OPENING, CALLS_STOP],
        "how the arguments of a tool call are spaced": [CALL, ARGS, CALLED, CALLS_STOP],
        "a tool call in which the answer breaks off": [CALL, PLAIN],
        "a plain stop beside tool calls, or one for calls without any": [CALL, PLAIN, PLAINLY_CALLED, STOP],
        "tokens written to the cache, or more thinking than output": [START, HI, END, COUNTED, STOP],
        "an empty signature": [THINK, HM, thought(signature=""), STOP],
        "an error that its words do not tell": [failed("rate_limit_exceeded")],
        "a finish that the wire uses for another": [{"type": "finish", "reason": {"kind": "MAX_TOKENS"}}],
        "the arguments of a tool call in pieces, or no piece": [CALL, OPENING, CLOSING, PLAINLY_CALLED, CALLS_STOP],
        "a block of nothing": [START, NOTHING, STOP],
        "an empty delta": [START, {**HI, "text": ""}, HI, END, STOP],
        "deltas of several blocks by turns, or ends that come late": [
            START,
            HI,
            *at(1, CALL, PLAIN),
            END,
            *at(1, PLAINLY_CALLED),
            CALLS_STOP,
        ],
        "an end of a block that the wire does not tell, or one left open": [START, HI, STOP],
    },
    "anthropic-messages": {
        **COMMON,
        "a usage of nothing": [
            {"type": "usage", "usage": {"inputTokens": 0, "outputTokens": 0}},
            STOP,
        ],
        "an empty signature": [THINK, HM, thought(signature=""), STOP],
        "an error that its words do not tell": [failed("CONTEXT_WINDOW_EXCEEDED", "too much")],
        "a finish that the wire uses for another": [{"type": "finish", "reason": {"kind": "end_turn"}}],
        "how the arguments of a tool call are spaced": [CALL, ARGS, CALLED, STOP],
        "deltas of several blocks by turns, or ends that come late": [
            START,
            HI,
            *at(1, CALL, ARGS),
            END,
            *at(1, CALLED),
            STOP,
        ],
        "a block left open": [START, HI, STOP],
    },
}
ROWS = [(name, limit) for name, rows in CANNOT_SAY.items() for limit in rows]


@pytest.mark.parametrize(("name", "limit"), ROWS, ids=[f"{name}: {limit.what}" for name, limit in ROWS])
def test_a_limit_is_found_where_something_is_lost(name, limit):
    chunks = chunks_from_json(EXAMPLES[name][limit.what])
    dialect = DIALECTS[name]
    decoder = dialect.decoder()
    streamed = (*decoder.feed(b"".join(dialect.encode_stream(chunks, ANSWER))), *decoder.close())
    whole = dialect.decode_message(dialect.encode_message(chunks, ANSWER))

    assert limit in limits(name, chunks)
    match limit.loss:
        case Loss.CUT:
            assert streamed != chunks
            assert fold(streamed) == fold(chunks)
        case Loss.COUNT | Loss.SPACING:
            assert fold(streamed) != fold(chunks)
            assert leveled(fold(streamed), {limit.loss}) == leveled(fold(chunks), {limit.loss})
        case Loss.MESSAGE:
            assert fold(streamed) == fold(chunks)
            assert fold(whole) != fold(chunks)
        case Loss.MEANING:
            assert fold(streamed) != fold(chunks)


def test_every_limit_has_an_example():
    assert {name: set(rows) for name, rows in EXAMPLES.items()} == {
        name: {limit.what for limit in rows} for name, rows in CANNOT_SAY.items()
    }


@pytest.mark.parametrize("name", DIALECTS)
def test_a_plain_answer_meets_no_limit(name):
    usage = COUNTED if name == "openai-responses" else USAGE
    assert limits(name, chunks_from_json([START, HI, END, usage, STOP])) == ()
