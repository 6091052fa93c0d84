"""Any history of calls in Gemini's form, and whatever else a client may send, read and written back."""

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st
from llm_dialects import DIALECTS, Record, ToolCallBlock, ToolResultPart

DIALECT = DIALECTS["gemini"]


def content(role, *parts):
    return {"role": role, "parts": list(parts)}


def call(name, args, **members):
    return {"functionCall": {**members, "name": name, "args": args}}


def response(name, **members):
    return {"functionResponse": {**members, "name": name, "response": {"output": "ok"}}}


# ── Calls, with and without ids ─────────────────────────────────────────────────────────────────────────────────────


names = st.sampled_from(["ls", "pwd"])
ids = st.one_of(st.none(), st.sampled_from(["a", "b", "c", "function-call-0", "function-call-1", "function-call-3"]))
turns = st.lists(st.tuples(st.lists(st.tuples(ids, names), max_size=3), st.lists(st.tuples(ids, names), max_size=3)))


@example(turns=[([("function-call-0", "ls")], [("a", "ls")])])
@settings(deadline=None)
@given(turns=turns)
def test_any_ids_read_are_read_again_as_the_same(turns):
    contents = []
    for calls, responses in turns:
        contents.append(content("model", *(call(n, {}, **({} if i is None else {"id": i})) for i, n in calls)))
        contents.append(content("user", *(response(n, **({} if i is None else {"id": i})) for i, n in responses)))
    request = DIALECT.parse_request({"contents": contents})
    body = DIALECT.render_request(request)
    assert DIALECT.parse_request(msgspec.json.decode(msgspec.json.encode(body))) == request


@settings(deadline=None)
@given(turns=st.lists(st.lists(names, min_size=1, max_size=3), max_size=3), given=st.data())
def test_every_call_of_a_history_finds_its_response(turns, given):
    contents, number = [], 0
    for called in turns:
        told = given.draw(st.booleans())
        known = [{"id": f"id-{number + at}"} if told else {} for at in range(len(called))]
        number += len(called)
        contents.append(content("model", *(call(n, {}, **i) for n, i in zip(called, known, strict=True))))
        foreign = (
            [{"id": f"own-{at}"} for at in range(len(called))] if not told and given.draw(st.booleans()) else known
        )
        contents.append(content("user", *(response(n, **i) for n, i in zip(called, foreign, strict=True))))
    request = DIALECT.parse_request({"contents": contents})
    asked = [part.id for message in request.messages for part in message.content if isinstance(part, ToolCallBlock)]
    answered = [part.call_id for m in request.messages for part in m.content if isinstance(part, ToolResultPart)]
    assert answered == asked
    assert len(set(asked)) == len(asked)
    assert DIALECT.render_request(request)["contents"] == contents


# ── Whatever a client may send ──────────────────────────────────────────────────────────────────────────────────────

words = st.sampled_from(["ls", "pwd", "", "x"])
anything = st.one_of(st.none(), words, st.integers(0, 3), st.just({"a": 1}), st.just([]))
blobs = st.fixed_dictionaries(
    {"mimeType": st.sampled_from(["image/png", "text/plain"])},
    optional={"data": words, "fileUri": words, "x": anything},
)
parts = st.fixed_dictionaries(
    {},
    optional={
        "text": words,
        "thought": st.booleans(),
        "thoughtSignature": words,
        "inlineData": blobs,
        "file_data": blobs,
        "functionCall": st.fixed_dictionaries(
            {"name": words}, optional={"id": words, "args": st.dictionaries(words, anything), "x": anything}
        ),
        "x": anything,
        "type": anything,
        "id": anything,
        "url": anything,
    },
)
responses = st.fixed_dictionaries(
    {
        "functionResponse": st.fixed_dictionaries(
            {"name": words},
            optional={
                "id": words,
                "response": st.dictionaries(
                    st.sampled_from(["output", "error", "result"]), st.one_of(anything, st.lists(parts))
                ),
                "parts": st.lists(parts, max_size=2),
                "scheduling": words,
                "content": anything,
            },
        )
    },
    optional={"x": anything, "callId": anything},
)
any_contents = st.lists(
    st.fixed_dictionaries(
        {"parts": st.lists(st.one_of(parts, responses), max_size=3)},
        optional={"role": st.sampled_from(["user", "model", "function"]), "x": anything},
    ),
    max_size=3,
)


def check_members(record):
    """What is kept of the wire never goes by the name of a member of ours: JSON could not say both."""
    assert not record.extra.keys() & {*record.__struct_encode_fields__, record.__struct_config__.tag_field}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        for inner in value if isinstance(value, tuple) else ():
            if isinstance(inner, Record):
                check_members(inner)


@settings(deadline=None, max_examples=300)
@given(contents=any_contents)
def test_any_request_means_the_same_once_written_back(contents):
    once = DIALECT.parse_request({"contents": contents})
    check_members(once)
    assert DIALECT.parse_request(DIALECT.render_request(once)) == once
