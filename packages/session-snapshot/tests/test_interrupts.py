"""Signals, raised in this very process: when they are heard, and what becomes of a task."""

import asyncio
import signal
from collections.abc import Iterator

import pytest
from session_snapshot.interrupts import (
    Ear,
    cancelled_by_signals,
    hear,
    hear_nothing,
    hearing,
    undisturbed,
    was_heard,
)

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@BOTH
def test_a_signal_is_heard_once_whatever_was_inherited(number: signal.Signals) -> None:
    signal.signal(number, signal.SIG_IGN)
    hear()
    assert not was_heard()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    assert was_heard()
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGTERM)


def test_one_that_comes_much_later_is_heard_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("session_snapshot.interrupts.PATIENCE_SECONDS", 0)
    hear()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@BOTH
def test_a_signal_cancels_the_task_and_no_other_and_its_end_is_not_disturbed(number: signal.Signals) -> None:
    ended: list[str] = []

    async def work() -> None:
        other = asyncio.create_task(asyncio.Event().wait())
        with cancelled_by_signals():
            try:
                signal.raise_signal(number)
                await asyncio.Event().wait()
            finally:
                signal.raise_signal(number)
                await asyncio.sleep(0)
                ended.append("other runs" if not other.done() else "other was cancelled")

    hear()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(work())
    assert ended == ["other runs"]


@BOTH
def test_a_signal_that_no_task_takes_stops_the_loop(number: signal.Signals) -> None:
    async def work() -> None:
        signal.raise_signal(number)
        await asyncio.Event().wait()

    hear()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(work())


def test_a_cancellation_by_somebody_else_is_one() -> None:
    async def work() -> None:
        with cancelled_by_signals():
            asyncio.current_task().cancel()  # type: ignore[union-attr]
            await asyncio.sleep(0)

    hear()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work())


@BOTH
def test_a_signal_is_put_off(number: signal.Signals) -> None:
    heard: list[int] = []
    signal.signal(number, lambda number, _: heard.append(number))
    with undisturbed():
        signal.raise_signal(number)
        signal.raise_signal(number)
        assert heard == []
    assert heard == [number]


@BOTH
def test_a_signal_that_was_put_off_is_raised_at_once_although_a_loop_runs(number: signal.Signals) -> None:
    done: list[str] = []

    async def work() -> None:
        with undisturbed():
            signal.raise_signal(number)
            done.append("in the block")
        done.append("behind it")

    hear()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(work())
    assert done == ["in the block"]


def test_a_program_of_its_own_ways_keeps_them() -> None:
    for handler in (signal.SIG_IGN, lambda _number, _frame: None):
        signal.signal(signal.SIGINT, handler)
        with hearing():
            assert signal.getsignal(signal.SIGINT) is handler
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with hearing():
        assert isinstance(signal.getsignal(signal.SIGINT), Ear)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_nothing_is_heard_at_the_end() -> None:
    hear_nothing()
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGTERM)
