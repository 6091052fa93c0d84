"""Any answer and any request, to the wire and back, in every dialect."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_dialects import (
    CANNOT_SAY,
    DIALECTS,
    Answer,
    BlockEnd,
    BlockStart,
    Failure,
    Finish,
    FinishReason,
    ImagePart,
    Loss,
    Message,
    OpaquePart,
    ReasoningBlock,
    ReasoningDelta,
    Request,
    TextBlock,
    TextDelta,
    Tool,
    ToolCallBlock,
    ToolCallDelta,
    ToolResultPart,
    Usage,
    UsageChunk,
    chunk_from_json,
    fold,
    limits,
    to_json,
    unfold,
)
from llm_dialects.limits import leveled
from msgspec import UNSET

ANSWER = Answer(id="answer", model="model", created=7)
EVERY_DIALECT = pytest.mark.parametrize("name", DIALECTS)
quick = settings(deadline=None, max_examples=150)

texts = st.text(max_size=8)
words = st.text("abcxyz_-", min_size=1, max_size=6)
counts = st.integers(0, 50)
optional_counts = st.one_of(st.just(UNSET), counts)
objects = st.dictionaries(words, st.one_of(st.integers(-9, 9), texts, st.lists(texts, max_size=2)), max_size=2)
arguments = st.one_of(objects.map(lambda value: json.dumps(value, ensure_ascii=False)), texts)
usages = st.builds(
    Usage,
    input_tokens=counts,
    output_tokens=counts,
    cache_read_tokens=optional_counts,
    cache_write_tokens=optional_counts,
    reasoning_tokens=optional_counts,
)
failures = st.builds(
    Failure, code=st.sampled_from(["AUTH", "RATE_LIMIT", "OWN_CODE", "CONTEXT_WINDOW_EXCEEDED"]), message=texts
)
finishes = st.one_of(
    st.sampled_from(["stop", "tool-calls", "max-tokens", "content-filter", "own_word"]).map(
        lambda kind: FinishReason(kind=kind)
    ),
    failures.map(lambda failure: FinishReason(kind="error", failure=failure)),
)
blocks = st.one_of(
    st.builds(TextBlock, text=texts),
    st.builds(ReasoningBlock, text=texts, signature=st.one_of(st.just(UNSET), words)),
    st.builds(ToolCallBlock, id=words, name=words, arguments=arguments),
)


@st.composite
def pieces(draw, index, block):
    """The start and the deltas of one block."""
    text = block.arguments if isinstance(block, ToolCallBlock) else block.text
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=2)))
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    if isinstance(block, TextBlock):
        return [BlockStart(index=index, block_type="text"), *(TextDelta(index=index, text=p) for p in parts)]
    if isinstance(block, ReasoningBlock):
        return [BlockStart(index=index, block_type="reasoning"), *(ReasoningDelta(index=index, text=p) for p in parts)]
    deltas = [ToolCallDelta(index=index, id=block.id, name=block.name, arguments_delta=p) for p in parts]
    return [BlockStart(index=index, block_type="tool-call"), *deltas]


@st.composite
def answers(draw):
    """Answers as providers send them: whole or broken off, blocks ended each at once or all together."""
    told = draw(st.lists(blocks, max_size=4))
    begun = [draw(pieces(index, block)) for index, block in enumerate(told)]
    ends = [BlockEnd(index=index, block=block) for index, block in enumerate(told)]
    if draw(st.booleans()):
        chunks = [*(chunk for start in begun for chunk in start), *ends]
    else:
        chunks = [chunk for start, end in zip(begun, ends, strict=True) for chunk in (*start, end)]
    if draw(st.integers(0, 9)) == 0:
        return tuple(chunks[: draw(st.integers(0, len(chunks)))])
    usage = draw(st.one_of(st.just([]), usages.map(lambda value: [UsageChunk(usage=value)])))
    return (*chunks, *usage, Finish(reason=draw(finishes)))


def read_stream(dialect, wire, size):
    decoder = dialect.decoder()
    parts = [wire[at : at + size] for at in range(0, len(wire), size)]
    return tuple(chunk for part in parts for chunk in decoder.feed(part)) + tuple(decoder.close())


def losses(name, chunks):
    return {limit.loss for limit in limits(name, chunks)}


def check_folded(name, said, chunks):
    """Both are equal after folding, but for counts and spaces that the dialect cannot keep."""
    lost = losses(name, chunks)
    assert leveled(fold(said), lost) == leveled(fold(chunks), lost)


@EVERY_DIALECT
@quick
@given(chunks=answers(), size=st.integers(1, 99))
def test_a_stream_says_the_same_after_folding(name, chunks, size):
    dialect = DIALECTS[name]
    said = read_stream(dialect, b"".join(dialect.encode_stream(chunks, ANSWER)), size)
    if Loss.MEANING not in losses(name, chunks):
        check_folded(name, said, chunks)
        if not losses(name, chunks) & {Loss.CUT, Loss.COUNT, Loss.SPACING}:
            assert said == chunks


@EVERY_DIALECT
@quick
@given(chunks=answers())
def test_a_whole_message_says_the_same_after_folding(name, chunks):
    dialect = DIALECTS[name]
    said = dialect.decode_message(dialect.encode_message(chunks, ANSWER))
    if not losses(name, chunks) & {Loss.MEANING, Loss.MESSAGE}:
        check_folded(name, said, chunks)


@EVERY_DIALECT
@quick
@given(chunks=answers())
def test_what_was_read_is_said_again_chunk_for_chunk(name, chunks):
    """A recording made in a dialect replays in it without any loss."""
    dialect = DIALECTS[name]
    first = read_stream(dialect, b"".join(dialect.encode_stream(chunks, ANSWER)), 4096)
    assert read_stream(dialect, b"".join(dialect.encode_stream(first, ANSWER)), 4096) == first


@quick
@given(chunks=answers())
def test_chunks_written_as_json_and_read_are_the_same(chunks):
    assert tuple(chunk_from_json(to_json(chunk)) for chunk in chunks) == chunks


@quick
@given(chunks=answers(), end_together=st.booleans())
def test_unfolding_and_folding_again_changes_nothing(chunks, end_together):
    folded = fold(chunks)
    assert fold(unfold(folded, end_together=end_together)) == folded


def test_the_table_names_every_dialect():
    assert set(CANNOT_SAY) == set(DIALECTS)


# ── Requests ────────────────────────────────────────────────────────────────────────────────────────────────────────

extras = st.dictionaries(st.sampled_from(["x_one", "x_two"]), texts, max_size=1)
text_parts = st.builds(TextBlock, text=texts, extra=extras)
inline_images = st.builds(ImagePart, media_type=st.just("image/png"), data=st.just("aGk="))
image_parts = st.one_of(inline_images, st.builds(ImagePart, url=st.just("https://e.invalid/a.png")))
opaque_parts = st.builds(OpaquePart, value=st.just({"type": "audio", "x": 1}))
user_parts = st.one_of(text_parts, image_parts, opaque_parts)
compact_arguments = objects.map(lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")))
calls = st.builds(ToolCallBlock, id=words, name=words, arguments=compact_arguments, extra=extras)
tools = st.builds(
    Tool,
    name=words,
    description=texts,
    input_schema=st.one_of(st.just(UNSET), st.just({"type": "object"})),
    extra=extras,
)
params = st.dictionaries(st.sampled_from(["model", "stream", "temperature", "own"]), texts, max_size=3)


def lists(parts, **sizes):
    return st.lists(parts, max_size=3, **sizes).map(tuple)


@st.composite
def assistants(draw, extra):
    """What a model said, in the order that every dialect keeps."""
    thoughts = draw(st.lists(st.builds(ReasoningBlock, text=texts), max_size=1))
    return Message(
        role="assistant", content=(*thoughts, *draw(lists(text_parts)), *draw(lists(calls))), extra=draw(extra)
    )


def results(is_error):
    parts = lists(st.one_of(text_parts, image_parts, opaque_parts))
    return st.builds(ToolResultPart, call_id=words, content=parts, is_error=is_error)


def requests(is_error, extra, said_extra=extras):
    users = st.builds(Message, role=st.just("user"), content=lists(user_parts), extra=extra)
    tool = st.builds(Message, role=st.just("tool"), content=st.tuples(results(is_error)), extra=extra)
    return st.builds(
        Request,
        system=lists(texts),
        tools=lists(tools),
        messages=st.one_of(st.just(()), st.tuples(users), st.tuples(users, assistants(said_extra), tool, tool, users)),
        params=params,
    )


# What OpenAI cannot say: that a result is an error, and, of responses, what belongs to all that a model said at once.
# What Anthropic's joining of results hides: whose an extra was.
REQUESTS = {
    "openai-chat": requests(st.just(False), extras),
    "openai-responses": requests(st.just(False), extras, st.just({})),
    "anthropic-messages": requests(st.booleans(), extras),
    "gemini": requests(st.booleans(), extras),
}


@EVERY_DIALECT
@quick
@given(data=st.data())
def test_a_request_rendered_and_parsed_is_the_same(name, data):
    request = data.draw(REQUESTS[name])
    dialect = DIALECTS[name]
    body = dialect.render_request(request)
    assert dialect.parse_request(msgspec.json.decode(msgspec.json.encode(body))) == request
