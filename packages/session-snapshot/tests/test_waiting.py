"""Waiting is woken by changes; a deadline names what was not done."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from session_snapshot.errors import AgentError, FixtureError
from session_snapshot.files import holds, inside, remove_file, wait_for_file, write_file
from session_snapshot.waiting import Changes, deadline, run_deadline


def run(work: Callable[[], Awaitable[object]]) -> object:
    async def bounded() -> object:
        async with asyncio.timeout(20):
            return await work()

    return asyncio.run(bounded())


def test_until_looks_again_at_every_ring() -> None:
    async def work() -> list[int]:
        changes, seen = Changes(), [0]

        def true() -> bool:
            seen.append(seen[-1] + 1)
            return seen[-1] == 3

        waiter = asyncio.create_task(changes.until(true))
        while not waiter.done():
            await asyncio.sleep(0)
            changes.ring()
        return seen

    assert run(work) == [0, 1, 2, 3]


def test_every_waiter_is_woken_and_one_that_gave_up_is_forgotten() -> None:
    async def work() -> None:
        changes = Changes()
        waiters = [asyncio.create_task(changes.next()) for _ in range(3)]
        await asyncio.sleep(0)
        waiters[0].cancel()
        changes.ring()
        assert [type(one) for one in await asyncio.gather(*waiters, return_exceptions=True)] == [
            asyncio.CancelledError, type(None), type(None),
        ]  # fmt: skip
        changes.ring()

    run(work)


def test_within() -> None:
    async def work() -> list[bool]:
        changes = Changes()
        return [await changes.within(0.01, lambda: False), await changes.within(0, lambda: True)]

    assert run(work) == [False, True]


def test_a_deadline_names_the_work() -> None:
    async def work() -> None:
        await deadline(0.01, "step 1 (prompt)", asyncio.Event().wait(), "be quick")

    with pytest.raises(AgentError, match=r"step 1 \(prompt\) was not done within 0\.01 s\nmend: be quick"):
        run(work)


def test_a_run_deadline() -> None:
    async def work() -> None:
        async with run_deadline(0.01):
            await asyncio.Event().wait()

    with pytest.raises(AgentError, match=r"the run was not done within 0\.01 s"):
        run(work)


@pytest.mark.parametrize("bound", [deadline, run_deadline])
def test_a_timeout_from_inside_is_not_the_deadlines(bound: Callable) -> None:
    async def fails() -> None:
        raise TimeoutError("from inside")

    async def work() -> None:
        if bound is deadline:
            await deadline(10, "work", fails(), "")
        else:
            async with run_deadline(10):
                await fails()

    with pytest.raises(TimeoutError, match="from inside"):
        run(work)


def test_a_file_is_waited_for(tmp_path) -> None:
    async def work() -> None:
        waiter = asyncio.create_task(wait_for_file(tmp_path, tmp_path / "d/f", "done"))
        for text in ("", "not yet", "it is done"):
            await asyncio.sleep(0)
            assert not waiter.done()
            write_file(tmp_path / "d/f", text)
        await waiter

    run(work)


def test_files_are_written_as_they_are(tmp_path) -> None:
    write_file(tmp_path / "d/f", "a\r\nb")
    assert (tmp_path / "d/f").read_bytes() == b"a\r\nb"
    remove_file(tmp_path / "d/f")
    assert not (tmp_path / "d/f").exists()


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda cwd: remove_file(cwd / "gone"), "removeFile 'gone': No such file or directory"),
        (lambda cwd: remove_file(cwd / "d"), "removeFile 'd': "),
        (lambda cwd: write_file(cwd / "d", ""), "writeFile 'd': "),
        (lambda cwd: write_file(cwd / "f/below", ""), "writeFile 'below': "),
        (lambda cwd: inside(cwd, "../f", "input.json"), "input.json: '../f' is not under the run's cwd"),
        (lambda cwd: inside(cwd, "/etc/passwd", "input.json"), "'/etc/passwd' is not under the run's cwd"),
        (lambda cwd: inside(cwd, "out/f", "input.json"), "'out/f' is not under the run's cwd"),
    ],
)
def test_what_a_step_cannot_do(tmp_path, act: Callable, said: str) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").touch()
    (tmp_path / "out").symlink_to(tmp_path.parent)
    with pytest.raises(FixtureError) as caught:
        act(tmp_path)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "held"), [("f", "", True), ("f", "x", False), ("d", "", False), ("n", "", False)]
)
def test_holds(tmp_path, name: str, text: str, held: bool) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_text("abc")
    assert holds(tmp_path / name, text) is held
