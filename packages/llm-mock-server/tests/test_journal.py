"""What the journal keeps, what it forgets, and what it says of both."""

import json

import pytest
from llm_mock_server.journal import MAX_FAILURES, Journal, size_of


def opened(journal, body=b"", kind="call", headers=(), **members):
    return journal.open(
        kind=kind,
        dialect="openai-chat",
        method="POST",
        path="/",
        query="",
        headers=headers,
        body=body,
        **members,
    )


def numbers(journal):
    return [entry.number for entry in journal.entries]


def test_it_keeps_so_many_and_counts_the_rest():
    journal = Journal(keep=3)
    for _ in range(10):
        opened(journal)
    assert (numbers(journal), journal.dropped) == ([7, 8, 9], 7)


def test_it_keeps_so_many_bytes_and_the_newest_whatever_its_size():
    journal = Journal(keep_bytes=100)
    for size in (40, 40, 10, 60):
        opened(journal, bytes(size))
    assert (numbers(journal), journal.dropped) == ([2, 3], 2)
    opened(journal, bytes(1000))
    assert (numbers(journal), journal.dropped) == ([4], 4)
    opened(journal, bytes(40))
    assert numbers(journal) == [5]


def test_heads_weigh_too():
    journal = Journal(keep_bytes=1000)
    for _ in range(3):
        opened(journal, headers=(("x", "y" * 600),))
    assert numbers(journal) == [2]
    assert size_of(journal.entries[0]) == 602


def test_it_can_keep_all_and_none():
    journal = Journal(keep=None, keep_bytes=None)
    for _ in range(20_000):
        opened(journal)
    assert (len(journal.entries), journal.dropped) == (20_000, 0)
    journal = Journal(keep=0)
    opened(journal)
    assert (numbers(journal), journal.dropped) == ([], 1)


def test_what_is_dropped_in_the_middle_still_ends():
    journal, seen = Journal(keep=1), []
    first = opened(journal)
    opened(journal)
    journal.observers.append(seen.append)
    journal.close(first, "completed")
    journal.close(first, "failed")
    assert (seen, first.outcome, journal.in_flight, journal.ended) == ([first], "completed", 1, 1)


def test_a_reset_counts_from_zero():
    journal = Journal(keep=1)
    journal.close(opened(journal), "completed")
    opened(journal, kind="side")
    journal.fail(ValueError())
    journal.reset()
    assert (numbers(journal), journal.dropped, journal.ended, journal.failures) == ([], 0, 0, [])
    assert (opened(journal).number, journal.entries[0].call) == (0, 0)


def test_failures_that_come_with_every_request_do_not_fill_the_memory():
    journal = Journal()
    journal.observers.append(lambda captured: 1 / 0)
    for _ in range(MAX_FAILURES + 10):
        opened(journal)
    assert len(journal.failures) == MAX_FAILURES
    late = opened(journal)
    try:
        raise ValueError("late")
    except ValueError as error:
        journal.fail(error, late)
    assert (late.error_text, late.error.__traceback__) == ("ValueError: late", None)


@pytest.mark.parametrize(
    ("body", "shown", "value"),
    [
        (b'{"model": "m"}', '{"model": "m"}', {"model": "m"}),
        (b"\xff", {"base64": "/w=="}, None),
        (b"", "", None),
        (b"[" * 100_000, "[" * 100_000, None),
        (b'{"a": "\\ud800"}', '{"a": "\\ud800"}', {"a": "\ud800"}),
    ],
)
def test_a_body_is_there_raw_and_read(body, shown, value):
    entry = opened(Journal(), body)
    assert entry.body == body
    assert entry.json == value
    assert entry.to_json()["body"] == shown
    json.dumps(entry.to_json())
