"""Databases in asyncio programs: reads in threads, rows page by page, cancellation, and an orderly end."""

from __future__ import annotations

import asyncio
import gc
import platform
import sys
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import zlmdb
from zlmdb.store import asyncfutures

try:
    import uvloop
except ImportError:
    uvloop = None


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[int, int]


class Log(zlmdb.Table[int, int], feed=True): ...


class Logged(Store):
    log: Log


def in_asyncio(program: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(program)


def in_uvloop(program: Coroutine[Any, Any, Any]) -> Any:
    loop = uvloop.new_event_loop()
    try:
        return loop.run_until_complete(program)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


LOOPS = [
    pytest.param(in_asyncio, id="asyncio"),
    pytest.param(in_uvloop, id="uvloop", marks=pytest.mark.skipif(uvloop is None, reason="uvloop is not installed")),
]


@pytest.fixture
def db(make_db: Callable[..., Any]) -> Any:
    db = make_db(Store)
    with db.write() as t:
        t.numbers.update({n: -n for n in range(100)})
    return db


def our_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("zlmdb")]


@pytest.mark.parametrize("run", LOOPS)
def test_many_tasks_read_and_write(db: Any, run: Any) -> None:
    async def task(number: int) -> int:
        def add(t: Any) -> None:
            t.numbers[0] += 1
            t.numbers[1000 + number] = number

        await db.arun(add)
        found: int = await db.aread(lambda t: t.numbers[1000 + number])
        return found

    async def main() -> list[int]:
        return await asyncio.gather(*[task(number) for number in range(100)])

    assert run(main()) == list(range(100))
    assert db.auto.numbers[0] == 100
    db.close()
    assert our_threads() == []


def test_what_a_read_raises_comes_to_its_task(db: Any) -> None:
    async def main() -> None:
        with pytest.raises(KeyError):
            await db.aread(lambda t: t.numbers[12345])
        with pytest.raises(zlmdb.ReadonlyDatabase):
            await db.aread(lambda t: t.numbers.clear())

    asyncio.run(main())


@pytest.mark.parametrize("run", LOOPS)
@pytest.mark.parametrize("snapshot", [False, True])
def test_rows_come_in_pages(db: Any, run: Any, snapshot: bool) -> None:
    async def main() -> None:
        rows = [row async for row in db.arows(lambda t: t.numbers, size=7, snapshot=snapshot)]
        assert rows == [(n, -n) for n in range(100)]
        even = [
            n async for n in db.arows(
                lambda t: t.numbers.where(lambda v: v % 2 == 0).order_by(lambda v: v).fields(lambda k, v: k), size=10,
                snapshot=snapshot,
            )
        ]  # fmt: skip
        assert even == list(range(98, -1, -2))
        assert [row async for row in db.arows(lambda t: t.numbers.select(500), snapshot=snapshot)] == []

    run(main())
    db.close()


@pytest.mark.parametrize("snapshot", [False, True])
def test_rows_that_are_written_meanwhile(db: Any, snapshot: bool) -> None:
    async def main() -> list[int]:
        seen: list[int] = []
        async for key, _ in db.arows(lambda t: t.numbers, size=10, snapshot=snapshot):
            if key == 5:
                await db.arun(lambda t: t.numbers.pop(50))
                await db.arun(lambda t: t.numbers.__setitem__(200, 0))
            seen.append(key)
        return seen

    expected = [n for n in range(100) if n != 50] + [200]
    assert asyncio.run(main()) == (list(range(100)) if snapshot else expected)


def test_a_loop_that_is_left_early_ends_its_snapshot(db: Any) -> None:
    async def main() -> None:
        rows = db.arows(lambda t: t.numbers, size=10, snapshot=True)
        try:
            async for _ in rows:
                break
        finally:
            await rows.aclose()
        assert [one for one in db._open_store.live.alive() if one.active] == []

    asyncio.run(main())


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_task_that_is_cancelled_leaves_nothing_behind(db: Any, snapshot: bool) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def slowly(n: int) -> bool:
        begun.set()
        goes_on.wait(10)
        return True

    async def read() -> None:
        async for _ in db.arows(lambda t: t.numbers.where(slowly), size=10, snapshot=snapshot):
            pass

    async def main() -> None:
        task = asyncio.ensure_future(read())
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        threading.Timer(0.05, goes_on.set).start()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())
    gc.collect()
    db.close()
    assert our_threads() == []


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_task_that_is_cancelled_does_not_wait_for_the_page_that_is_read(db: Any, snapshot: bool) -> None:
    begun, goes_on, waited = threading.Event(), threading.Event(), threading.Event()

    def slowly(n: int) -> bool:
        begun.set()
        if not waited.is_set() and not goes_on.wait(5):
            waited.set()
        return False

    async def main() -> None:
        rows = db.arows(lambda t: t.numbers.where(slowly), snapshot=snapshot)
        task = asyncio.ensure_future(rows.__anext__())
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not waited.is_set()
        goes_on.set()

    asyncio.run(main())
    db.close()  # refused while a snapshot is open


def test_a_closed_database_says_so(db: Any) -> None:
    async def main() -> None:
        assert await db.aread(lambda t: len(t.numbers)) == 100
        db.close()
        with pytest.raises(zlmdb.DatabaseClosed):
            await db.aread(lambda t: len(t.numbers))
        for size in (0, None, 1.5, 1 << 70):
            with pytest.raises(ValueError, match=f"size={size}: give the number"):
                db.arows(lambda t: t.numbers, size=size)

    asyncio.run(main())
    assert our_threads() == []


def test_closing_while_tasks_read_leaves_no_thread_and_tells_them(tmp_path: Path) -> None:
    others: list[BaseException] = []
    before = set(threading.enumerate())

    async def read(db: Any) -> None:
        while True:
            await db.aread(lambda t: t.numbers.get(1))

    def reads(db: Any) -> None:
        try:
            asyncio.run(read(db))
        except zlmdb.DatabaseClosed:
            pass
        except BaseException as error:
            others.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(20):
            db = zlmdb.open(tmp_path / "db", Store, durability="none")
            threads = [threading.Thread(target=reads, args=(db,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            while db.is_open:
                time.sleep(0.005)
                with suppress(zlmdb.DatabaseInUse):
                    db.close()
            for thread in threads:
                thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    for error in others:
        raise error
    assert set(threading.enumerate()) == before


@pytest.mark.skipif(
    platform.python_implementation() != "CPython",
    reason="PyPy counts no references: when it closes a dropped loop is up to its collector",
)
@pytest.mark.filterwarnings(
    "ignore:unclosed",
    # Of a loop and its sockets, which refer to each other, the collector may close the sockets first: then the loop,
    # which asks them for their descriptors, fails to close.
    "ignore:Exception ignored in. <function BaseEventLoop.__del__:pytest.PytestUnraisableExceptionWarning",
)
@pytest.mark.parametrize("waits", [False, True])
def test_a_loop_that_nobody_closes_is_collected(tmp_path: Path, waits: bool) -> None:
    """With its files, which Python closes then: the database must not keep it."""

    async def main(db: Any) -> None:
        await db.arun(lambda t: t.numbers.update({1: 1}))
        assert await db.aread(lambda t: t.numbers[1]) == 1
        if waits:
            task: Any = asyncio.ensure_future(db.changes(Log, timeout=None).atake())
            await asyncio.sleep(0.01)
            task._log_destroy_pending = False

    def run(db: Any) -> weakref.ref[Any]:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main(db))
        return weakref.ref(loop)

    with zlmdb.open(tmp_path / "db", Logged) as db:
        loops = [run(db) for _ in range(3)]
        end = time.monotonic() + 20
        while any(loop() is not None for loop in loops) and time.monotonic() < end:
            time.sleep(0.01)  # a thread that has told a loop of its result may still be about to let go of it
            gc.collect()
        assert [loop() for loop in loops] == [None] * 3


def test_pages_take_no_limit(db: Any) -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match="limit"):
            _ = [row async for row in db.arows(lambda t: t.numbers.limit(3))]
        assert len([row async for row in db.arows(lambda t: t.numbers.limit(3), snapshot=True)]) == 3

    asyncio.run(main())


def test_the_forms_that_are_not_there_say_what_to_write(db: Any) -> None:
    worker: Any = zlmdb.Worker(db, lambda t: t.jobs)

    async def awaits_a_submitted() -> None:
        await db.submit(lambda t: 1)

    async def database() -> None:
        async with db:
            pass

    async def plain_block() -> None:
        async with worker.job():
            pass

    async def async_block() -> None:
        with worker.ajob():
            pass

    async def chooses(t: Any) -> Any:
        return t.numbers

    async def rows(snapshot: bool) -> None:
        async for _ in db.arows(chooses, snapshot=snapshot):
            pass

    for mistake, advice in [
        (awaits_a_submitted(), "await db.arun"),
        (database(), "with zlmdb.open"),
        (plain_block(), "`async with worker.ajob"),
        (async_block(), "in asyncio `async with worker.ajob"),
        (rows(False), "give a plain function"),
        (rows(True), "give a plain function"),
    ]:
        with pytest.raises(TypeError, match=advice):
            asyncio.run(mistake)


async def without_a_name(db: Any) -> Any:
    with db.write():
        return await db.arun(len)


async def begun(db: Any) -> Any:
    with db.begin(write=True):
        return await db.arun(len)


async def with_a_time(db: Any) -> Any:
    with db.write() as t:
        t.numbers[1] = 1
        return await asyncio.wait_for(db.arun(len), 60)


async def gathered(db: Any) -> Any:
    with db.write():
        return await asyncio.gather(db.arun(len), asyncio.sleep(0))


async def shielded(db: Any) -> Any:
    with db.write():
        return await asyncio.shield(db.arun(len))


async def in_a_task(db: Any) -> Any:
    with db.write():
        task = asyncio.ensure_future(db.arun(len))
        await asyncio.sleep(0.01)
        return await task


async def in_an_exit_stack(db: Any) -> Any:
    async with AsyncExitStack() as stack:
        stack.enter_context(db.write())
        return await db.arun(len)


async def wrapped(db: Any) -> Any:
    with db.write():
        return await asyncio.wrap_future(db.submit(len))


async def wrapped_before(db: Any) -> Any:
    with db.write():
        waits = asyncio.wait_for(asyncio.wrap_future(db.submit(len)), 60)
        return (await asyncio.gather(waits))[0]


async def in_a_helper(db: Any) -> Any:
    @contextmanager
    def block() -> Any:
        with db.write():
            yield

    with block():
        return await asyncio.gather(db.arun(len))


SHAPES = [
    without_a_name, begun, with_a_time, gathered, shielded, in_a_task, in_an_exit_stack, in_a_helper, wrapped,
    wrapped_before,
]  # fmt: skip


@pytest.mark.parametrize("run", LOOPS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_task_that_waits_for_itself_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any, shape: Any
) -> None:
    monkeypatch.setattr(asyncfutures, "PATIENCE", 0.05)
    with zlmdb.open(tmp_path / "db", Store) as db:
        with pytest.raises(zlmdb.NestedTransaction, match="end the block before you await"):
            run(shape(db))
        assert asyncio.run(db.arun(lambda t: list(t.numbers))) == []


@pytest.mark.parametrize("call", ["run", "submit", "block"])
def test_a_loop_that_a_write_transaction_runs_cannot_wait_for_its_end(db: Any, call: str) -> None:
    def waits(t: Any = None) -> None:
        asyncio.run(asyncio.wait_for(db.arun(len), 60))

    def in_a_block() -> None:
        with db.write():
            waits()

    calls = {"run": lambda: db.run(waits), "submit": lambda: db.submit(waits).result(60), "block": in_a_block}
    with pytest.raises(zlmdb.NestedTransaction, match="end the block before you await"):
        calls[call]()
    assert asyncio.run(db.arun(lambda t: 3)) == 3


def test_a_task_that_runs_an_event_loop_in_its_block_is_refused(db: Any) -> None:
    """As nest_asyncio lets tasks do, and notebooks with it. The task goes on when the loop has ended."""

    def nested(program: Coroutine[Any, Any, Any]) -> Any:
        running = asyncio.get_running_loop()
        task: Any = asyncio.current_task()
        asyncio.tasks._leave_task(running, task)  # of which a thread runs one at a time, since Python 3.14
        asyncio._set_running_loop(None)
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(program)
        finally:
            loop.close()
            asyncio._set_running_loop(running)
            asyncio.tasks._enter_task(running, task)

    async def main() -> None:
        with db.write():
            nested(db.arun(lambda t: t.numbers.increment(300)))

    with pytest.raises(zlmdb.NestedTransaction, match="end the block before you await"):
        asyncio.run(main())
    assert asyncio.run(db.arun(lambda t: t.numbers.get(300))) is None


def test_who_waits_for_the_block_of_another_task_with_a_future_is_left_alone(
    db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asyncfutures, "PATIENCE", 0.02)

    async def writes() -> None:
        with db.write():
            await asyncio.sleep(0.2)

    async def main() -> Any:
        task = asyncio.ensure_future(writes())
        await asyncio.sleep(0.01)
        found = await asyncio.gather(asyncio.wrap_future(db.submit(lambda t: 1)), db.arun(lambda t: 2))
        await task
        return found

    assert asyncio.run(main()) == [1, 2]


@pytest.mark.parametrize("run", LOOPS)
def test_a_stop_iteration_reaches_the_task_as_from_a_coroutine(db: Any, run: Any) -> None:
    async def main() -> None:
        for call in (db.aread, db.arun):
            with pytest.raises(RuntimeError, match="StopIteration"):
                await call(lambda t: next(iter(t.numbers.select(500))))
        for snapshot in (False, True):
            with pytest.raises(RuntimeError, match="StopIteration"):
                _ = [row async for row in db.arows(lambda t: next(iter(t.numbers.select(500))), snapshot=snapshot)]

    run(main())


@pytest.mark.parametrize("runs", [False, True])
def test_a_submitted_function_tells_a_cancelled_task_whether_it_is_stored(db: Any, runs: bool) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def first(t: Any) -> None:
        begun.set()
        goes_on.wait(10)

    def change(t: Any) -> int:
        if runs:
            first(t)
        return t.numbers.increment(200)

    async def main() -> None:
        before = None if runs else db.submit(first)
        if not runs:
            begun.wait(10)
        future = db.submit(change)
        task = asyncio.ensure_future(asyncio.wait_for(asyncio.wrap_future(future), 60))
        await asyncio.sleep(0)
        begun.wait(10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert future.cancelled() is (not runs)
        goes_on.set()
        if runs:
            assert await asyncio.wrap_future(future) == 1
        if before is not None:
            await asyncio.wrap_future(before)

    asyncio.run(main())
    assert db.auto.numbers.get(200) == (1 if runs else None)


def test_tasks_that_wait_for_the_block_of_another_are_left_alone(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else they hold: the task with the block is in a list, and waits for a third one."""
    monkeypatch.setattr(asyncfutures, "PATIENCE", 0.02)

    async def writes() -> int:
        with db.write() as t:
            later = asyncio.ensure_future(db.arun(lambda t: 3))
            t.numbers[1] = 1
            await asyncio.gather(asyncio.sleep(0.2))
        return await later

    async def waits(tasks: list[Any]) -> int:
        return await asyncio.wait_for(db.arun(lambda t: 2), 60)

    async def main() -> Any:
        tasks: list[Any] = [asyncio.ensure_future(writes())]
        await asyncio.sleep(0.01)
        tasks.append(asyncio.ensure_future(waits(tasks)))
        tasks.append(asyncio.ensure_future(waits(tasks)))
        return await asyncio.gather(*tasks)

    assert asyncio.run(main()) == [3, 2, 2]


def test_without_a_loop_of_asyncio_nothing_is_begun(tmp_path: Path) -> None:
    """As under trio: the error says what to write, and nothing is stored, claimed or left behind."""

    class Office(zlmdb.Schema):
        numbers: zlmdb.Table[int, int]
        jobs: zlmdb.Queue[str]
        log: Log

    with zlmdb.open(tmp_path / "db", Office) as db:
        worker = zlmdb.Worker(db, lambda t: t.jobs)
        changes = db.changes(Log, timeout=None)

        async def loop() -> None:
            async for _ in changes:
                pass

        async def rows(snapshot: bool) -> None:
            async for _ in db.arows(lambda t: t.numbers, snapshot=snapshot):
                pass

        async def block() -> None:
            async with worker.ajob():
                pass

        def refused(coroutine: Coroutine[Any, Any, Any]) -> None:
            with pytest.raises(RuntimeError, match=r"with trio, .*to_thread.run_sync\(db.run, function"):
                coroutine.send(None)

        for empty in (worker.aget(), worker.ajob().__aenter__(), block(), loop(), changes.atake()):
            refused(empty)
        worker.put("a")
        for one in (db.arun(lambda t: t.numbers.update({1: 1})), db.aread(len), rows(False), rows(True), worker.aget()):
            refused(one)
        refused(worker.aput("b"))
        with db.write() as t:
            assert len(t.numbers) == 0
            assert [job.attempts for job in t.jobs.ready.values()] == [0]
        assert [one.name for one in tmp_path.iterdir()] == ["db"]
