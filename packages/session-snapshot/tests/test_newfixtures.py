"""What a recording writes: which entry answers which call, the override, the pin, a log made from the wire."""

import json
from pathlib import Path

import pytest
from llm_dialects.chunks import BlockEnd, BlockStart, Failure, Finish, FinishReason, TextBlock, TextDelta
from llm_dialects.entries import Chunks, Hang, Throw
from llm_dialects.requests import Request
from llm_dialects.telling import Wire
from llm_replay import Header, Unfinished, parse_override
from llm_replay.files import OVERRIDE
from normalizer import Context, Document, normalize
from session_snapshot.agent import Agent
from session_snapshot.calls import LiveCall
from session_snapshot.errors import FixtureError
from session_snapshot.fixtures import Pin
from session_snapshot.recording.newfixtures import (
    cut_to,
    may_tell_of,
    override_file,
    patch_document,
    patches_of,
    pin_files,
    rewritten,
    taken_from,
    tells_of,
    wire_rows,
)
from session_snapshot.scenario import Expect, Scenario
from session_snapshot.scenario import Header as HeaderClass
from session_snapshot.steps import Kill, Script
from session_snapshot.suites import Loaded, Place
from session_snapshot.surfaces import Placed, Surfaces

REQUEST = Request(system=(), tools=(), messages=(), params={"model": "m"})
THROW = Throw(chunks=(), message="no", code="AUTH")


def loaded(**keys: object) -> Loaded:
    scenario = Scenario("d", "live", expect=Expect(model_calls=0), **keys)
    return Loaded(Place("s", "a", Path("s/a")), Agent(["x"]), scenario, Script([Kill()]))


def answer(text: str) -> Chunks:
    return Chunks(chunks=(BlockEnd(index=0, block=TextBlock(text=text)), Finish(reason=FinishReason(kind="stop"))))


def call(entry: object) -> LiveCall:
    return LiveCall(0, REQUEST, b"", None, entry)


def test_entries_are_taken_by_what_they_say() -> None:
    left = [("a#0", answer("one")), ("a#1", answer("two")), ("a#2", answer("one"))]
    assert taken_from(left, [answer(text) for text in ("two", "one", "one")]) == ["a#1", "a#0", "a#2"]
    assert left == []


def test_a_failure_the_log_does_not_tell_of_is_answered_by_the_override() -> None:
    left = [("a#0", answer("one"))]
    assert taken_from(left, [THROW]) == [f"{OVERRIDE}#0"]
    assert len(left) == 1


def test_an_answer_the_log_does_not_hold() -> None:
    with pytest.raises(FixtureError, match="the agent's log does not hold the answer of model call 2"):
        taken_from([("a#0", answer("one"))], [answer("one"), THROW, answer("two")])


@pytest.mark.parametrize(
    ("taken", "about"), [(answer("one"), True), (answer("two"), False), (THROW, False), (Hang(), False), (None, False)]
)
def test_what_tells_of_what(taken: object, about: bool) -> None:
    assert tells_of(answer("one"), taken) is about


def test_a_call_the_log_does_not_finish_is_any_that_failed() -> None:
    unfinished = Unfinished((), "turn 1", "session.jsonl", 3)
    assert [may_tell_of(unfinished, one) for one in (THROW, Hang(), None, answer("one"))] == [True, True, True, False]


SAID = (BlockStart(index=0, block_type="text"), TextDelta(index=0, text="one"), TextDelta(index=0, text="two"))


def broken(*chunks: object, code: str = "STREAM_CLOSED") -> Throw:
    return Throw(chunks=chunks, message="no", code=code)


def cut_off(*chunks: object) -> Unfinished:
    return Unfinished(chunks, "turn 1", "session.jsonl", 3)


def error_finish(code: str) -> Finish:
    return Finish(reason=FinishReason(kind="error", failure=Failure(message="no", code=code)))


@pytest.mark.parametrize(
    ("taken", "logged", "sure", "perhaps"),
    [
        (broken(*SAID), cut_off(*SAID), True, True),
        (broken(*SAID), cut_off(*SAID[:2]), True, True),
        (broken(*SAID), cut_off(BlockStart(index=0, block_type="reasoning")), False, True),
        (broken(), cut_off(*SAID), False, False),
        (Hang(chunks=SAID), cut_off(*SAID[:1]), True, True),
        (broken(*SAID, code="OVERLOADED"), Chunks(chunks=(*SAID, error_finish("OVERLOADED"))), True, False),
        (broken(*SAID, code="OVERLOADED"), Chunks(chunks=(*SAID, error_finish("TIMEOUT"))), False, False),
        (broken(*SAID, code="MALFORMED_ANSWER"), Chunks(chunks=(*SAID, *answer("x").chunks)), False, True),
        (broken(*SAID, code="MALFORMED_ANSWER"), answer("x"), False, False),
        (Chunks(chunks=answer("x").chunks, wire=Wire(end="reset")), answer("x"), True, False),
    ],
)
def test_what_a_log_makes_of_a_call_that_went_wrong(taken: object, logged: object, sure: bool, perhaps: bool) -> None:
    assert (tells_of(logged, taken), may_tell_of(logged, taken)) == (sure, perhaps)


def test_a_retry_that_left_nothing_in_the_log_takes_no_other_calls_entry() -> None:
    left = [("a#0", cut_off(*SAID)), ("a#1", answer("x"))]
    taken = [broken(), broken(*SAID), answer("x")]
    assert taken_from(left, taken) == [f"{OVERRIDE}#0", "a#0", "a#1"]


def test_garbage_takes_no_later_answer_that_its_agent_asked_for_again() -> None:
    left = [("a#0", answer("x"))]
    assert taken_from(left, [broken(code="MALFORMED_ANSWER"), answer("x")]) == [f"{OVERRIDE}#0", "a#0"]


@pytest.mark.parametrize(
    ("taken", "logged", "kept"),
    [
        (Hang(chunks=SAID), cut_off(*SAID[:2]), Hang(chunks=SAID[:2])),
        (Hang(chunks=SAID), cut_off(), Hang(chunks=())),
        (Hang(chunks=SAID), cut_off(TextDelta(index=0, text="x")), Hang(chunks=SAID)),
        (Hang(chunks=SAID), None, Hang(chunks=SAID)),
        (broken(*SAID), cut_off(*SAID[:2]), broken(*SAID)),
    ],
)
def test_a_silence_is_told_so_far_as_its_agent_logged_it(taken: object, logged: object, kept: object) -> None:
    assert cut_to(taken, logged) == kept


def test_words_in_patches_are_normalised_like_those_of_a_log() -> None:
    said = (BlockStart(index=0, block_type="text"), TextDelta(index=0, text="in /tmp/r/"), TextDelta(index=0, text="w"))
    wire = Wire(dialect="gemini", status=500, headers=(("x-a", "b"),), body=b'{"at":"/tmp/r/w"}')
    throw = Throw(chunks=said, message="/tmp/r/w {{x}}", code="SERVER_ERROR", wire=wire)
    patches = patches_of(placed((0, throw), (0, Hang())))
    (document,) = normalize([patch_document(patches)], Context(cwd=("/tmp/r/w",)))
    first, second = rewritten(patches, document)
    assert second["entry"] == {"kind": "hang"}
    entry = first["entry"]
    assert [chunk.get("text") for chunk in entry["chunks"]] == [None, "in {{cwd}}", ""]
    assert entry["message"] == "{{cwd}} {{{{x}}"
    assert entry["wire"] == {
        "dialect": "gemini", "status": 500, "headers": {"x-a": "b"}, "body": '{"at":"{{cwd}}"}',
    }  # fmt: skip
    assert list(entry) == ["kind", "chunks", "message", "code", "wire"]


def test_the_ids_of_a_provider_stay_in_what_it_said_and_teach_nothing() -> None:
    body = b'{"request_id":"req_0123456789abcdef","at":"/tmp/r/w/x"}'
    throw = Throw(chunks=(), message="no", code="AUTH", wire=Wire(dialect="gemini", status=401, body=body))
    patches = patches_of(placed((0, throw)))
    said = Document("x", "stdout", [{"text": "request req_0123456789abcdef failed"}])
    frame, document = normalize([said, patch_document(patches)], Context(cwd=("/tmp/r/w",)))
    (patch,) = rewritten(patches, document)
    assert patch["entry"]["wire"]["body"] == '{"request_id":"req_0123456789abcdef","at":"{{cwd}}/x"}'
    assert frame.values == said.values


def placed(*lanes_and_entries: tuple[int, object]) -> list[Placed]:
    return [Placed(call(entry), at, lane, None, "", None) for at, (lane, entry) in enumerate(lanes_and_entries)]


def test_failures_and_silences_become_patches_counted_by_lane() -> None:
    calls = placed((0, answer("a")), (1, THROW), (0, Hang()), (1, answer("b")), (1, Hang()))
    (text,) = override_file(loaded(overridden=True), patches_of(calls)).values()
    assert json.loads(text) == {
        "patches": [
            {"at": 0, "entry": {"kind": "throw", "chunks": [], "message": "no", "code": "AUTH"}, "lane": 1},
            {"at": 1, "entry": {"kind": "hang"}},
            {"at": 2, "entry": {"kind": "hang"}, "lane": 1},
        ]
    }
    assert parse_override(text, OVERRIDE)
    assert len(text.splitlines()) == 7


def test_no_patches_no_file() -> None:
    assert override_file(loaded(), patches_of(placed((0, answer("a")), (0, None)))) == {}


@pytest.mark.parametrize(
    ("declared", "entry", "said"),
    [
        (False, THROW, "the run holds a failure or a silence that a log cannot hold\nmend: set overridden = true"),
        (True, answer("a"), "the run holds nothing that needs an override\nmend: set overridden = false"),
    ],
)
def test_an_override_must_be_declared(declared: bool, entry: object, said: str) -> None:
    with pytest.raises(FixtureError) as caught:
        override_file(loaded(overridden=declared), patches_of(placed((0, entry))))
    assert f"s/a/scenario.toml: {said}" in str(caught.value)


ONE, TWO = Header(("one",), ()), Header(("two",), ())
PINS = {"default": Pin("default", ONE, "p")}


def surfaces(*headers: Header) -> Surfaces:
    return Surfaces({}, list(headers), [])


@pytest.mark.parametrize(
    ("header", "found", "files"),
    [
        (HeaderClass("default"), [ONE], {}),
        (HeaderClass("default"), [], {}),
        (HeaderClass("own", pin=True), [ONE, TWO], {"header.system.md": "two\n", "header.tools.json": "[]\n"}),
    ],
)
def test_the_pin(header: HeaderClass, found: list[Header], files: dict[str, str]) -> None:
    assert pin_files(loaded(header=header), surfaces(*found), PINS) == files


@pytest.mark.parametrize(
    ("header", "found", "said"),
    [
        (HeaderClass("default"), [TWO], "its header is not as p pins class 'default'"),
        (HeaderClass("new"), [TWO], "no scenario of the suite pins header class 'new'"),
        (HeaderClass("own", pin=True), [ONE], "the run has 0 headers that nobody else pins"),
        (HeaderClass("own", pin=True), [TWO, Header(("three",), ())], "the run has 2 headers that nobody else pins"),
    ],
)
def test_a_header_that_is_nobodys(header: HeaderClass, found: list[Header], said: str) -> None:
    with pytest.raises(FixtureError) as caught:
        pin_files(loaded(header=header), surfaces(*found), PINS)
    assert said in str(caught.value)


def test_rows_of_the_wire() -> None:
    rows = wire_rows(4, call(answer("hi")))
    assert [kind for kind, _ in rows] == ["llm/call", "assistant/chunk", "assistant/chunk"]
    assert rows[0][1] == {"call": 4, "model": "m"}
    assert rows[1][1] == {
        "call": 4, "chunk": {"type": "block-end", "index": 0, "block": {"type": "text", "text": "hi"}},
    }  # fmt: skip
    assert wire_rows(0, call(THROW)) == [("llm/call", {"call": 0, "model": "m"})]
