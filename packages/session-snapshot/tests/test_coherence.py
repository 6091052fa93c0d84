"""What must be taken in together, and what could not be replayed."""

import json

import pytest
from llm_replay import Header
from session_snapshot.changes.coherence import breach_of, needed
from session_snapshot.changes.drift import changes_of, compared
from session_snapshot.hunks import unchanged_fields


def lines(*values: object) -> str:
    return "".join(json.dumps(value, separators=(",", ":")) + "\n" for value in values)


def a(token: int | str, **more: object) -> dict:
    return {"type": "a", "id": token if isinstance(token, str) else f"{{{{id:{token}}}}}"} | more


@pytest.mark.parametrize(
    ("old", "new", "accepted", "also"),
    [
        # what is inserted takes a number away from later rows
        ([a(1), a(2, n=1)], [a(1), {"type": "b", "id": "{{id:2}}"}, a(3, n=1)], "additive", "identity"),
        ([a(1), a(2, n=1), a(2, n=2)], [a(1), {"type": "b", "id": "{{id:2}}"}, a(3, n=1), a(3, n=2)], "additive",
         "identity identity"),
        # the numbers alone leave a gap, which is no contradiction
        ([a(1), a(2, n=1)], [a(1), {"type": "b", "id": "{{id:2}}"}, a(3, n=1)], "identity", ""),
        # one row after the other: the third takes what the second had
        ([a(1), a(2, n=1), a(3, n=2)], [a(1), {"type": "b", "id": "{{id:2}}"}, a(3, n=1), a(4, n=2)], "additive",
         "identity identity"),
        # what is inserted speaks of nothing that is renumbered
        ([a(1), a(2, n=1)], [a(1), {"type": "b"}, a(1, n=1)], "additive", ""),
        ([a(1, text="a b c"), a(2)], [a(1, text="a b d"), {"type": "b", "id": "{{id:2}}"}, a(3)], "wording", ""),
        # another value than before is no renumbering, and may stay red beside anything
        ([a(1, n=1), a(1, n=2)], [a(1, n=1), {"type": "b", "id": "{{id:1}}"}, a(2, n=2)], "additive", ""),
        # a sentence that changed around its token
        ([a(1), a(2, text="a b {{id:2}} c")], [a(1), {"type": "b", "id": "{{id:2}}"}, a(3, text="a b {{id:3}} d")],
         "additive", "identity wording"),
        ([a(1), a(2)], [a(1), {"type": "b", "id": "{{id:2}}"}, a(3)], "additive identity", ""),
    ],
)  # fmt: skip
def test_needed(old: list, new: list, accepted: str, also: str) -> None:
    texts = compared("stdout", "stdout.golden.jsonl", lines(*old), lines(*new))
    changes = changes_of("stdout", texts)
    chosen = {at for at, change in enumerate(changes) if change.kind in accepted.split()}
    assert chosen
    found = needed(changes, list(unchanged_fields(texts)), chosen)
    assert sorted(changes[at].kind for at in found) == also.split()


def user(text: str) -> dict:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def row(call: int, *texts: str, **more: object) -> dict:
    head = {"call": call, "lane": 0, "parent": call - 1 if call else None, "source": f"session.jsonl#{call}"}
    return head | {"header": "default", "params": {}, "append": [user(text) for text in texts]} | more


LOG = {"type": "session", "format": "session-snapshot", "version": 1, "id": "x", "createdAt": 0, "cwd": "/"}


def chunk(text: str) -> dict:
    return {"type": "assistant/chunk", "data": {"call": 0, "chunk": {"type": "text-delta", "index": 0, "text": text}}}


CALL, EVENT = {"type": "llm/call", "data": {"call": 0}}, {"type": "turn/start", "data": {}}
SAID = lines(LOG, CALL, chunk("a"), chunk("b"))


@pytest.mark.parametrize(
    ("name", "old", "new", "breach"),
    [
        ("requests.golden.jsonl", "", lines(row(0, "a"), row(1, "b")), ""),
        ("requests.golden.jsonl", "", lines(row(0, "a"), row(1, "b", keep=4)), "keeps 4 messages of a parent that"),
        ("requests.golden.jsonl", "", lines(row(0, "a"), row(0, "b")), "call is 0 where 1 was due"),
        ("requests.golden.jsonl", "", lines(row(0, "a", header="other")), "nobody pins the header class 'other'"),
        ("requests.golden.jsonl", "", lines(row(0, "a"), row(1, keep=0, rewritten=[{"index": 3, "field": "/x"}])),
         "message 3 is not among the kept ones"),
        ("session.jsonl", SAID, lines(LOG, EVENT, CALL, chunk("a"), EVENT, chunk("b")), ""),
        ("session.jsonl", SAID, lines(LOG, CALL, chunk("a"), chunk("c")), "it does not say what the model said"),
        ("session.jsonl", SAID, lines(LOG, CALL, chunk("a")), "it does not say what the model said"),
        ("session.jsonl", SAID, SAID.replace('"index":0', '"index": 0'), "it does not say what the model said"),
        ("session.jsonl", SAID, lines(LOG, chunk("a"), CALL, chunk("b")), "call 0 was never opened"),
        ("session.1.jsonl", "", SAID, "it does not say what the model said"),
        ("session.1.jsonl", "", lines(LOG, EVENT), ""),
        ("stdout.golden.jsonl", "", "anything", ""),
    ],
)  # fmt: skip
def test_breaches(name: str, old: str, new: str, breach: str) -> None:
    before = {name: old} if old else {}
    file, why = breach_of(before, {name: new}, {"default": Header(system=(), tools=())})
    assert (file, breach in why, bool(why)) == (name if breach else "", True, bool(breach))
