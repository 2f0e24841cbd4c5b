"""A task that is cancelled at any step of the thread that works for it: nothing is lost, doubled, or left open."""

from __future__ import annotations

import asyncio
import gc
import platform
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import FrameType
from typing import Any, Optional

import pytest

import zlmdb

WATCHED = ("groups.py", "members.py", "holds.py", "waking.py", "asyncfutures.py", "calls.py", "test_cancelled.py")
STRIDE = 1 if platform.python_implementation() == "CPython" else 7
THREADS = ("zlmdb-submit", "zlmdb-read")


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[int, int]


class Canceller:
    """Stops the database's threads at their line number *at* until the task was cancelled."""

    def __init__(self) -> None:
        self.at = self.lines = 0
        self.task: Any = None

    def aim(self, at: int, task: Any) -> None:
        self.at, self.lines, self.task = at, 0, task

    def call(self, frame: FrameType, event: str, argument: Any) -> Optional[Callable[..., Any]]:
        ours = threading.current_thread().name.startswith(THREADS)
        return self.line if ours and frame.f_code.co_filename.endswith(WATCHED) else None

    def line(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        task = self.task
        if event == "line" and task is not None:
            self.lines += 1
            if self.lines == self.at:
                self.task = None
                cancelled = threading.Event()

                def cancel() -> None:
                    task.cancel()
                    cancelled.set()

                with suppress(RuntimeError):  # the loop has ended
                    task.get_loop().call_soon_threadsafe(cancel)
                    cancelled.wait(5)
        return self.line


@pytest.fixture
def canceller() -> Any:
    one = Canceller()
    threading.settrace(one.call)
    yield one
    threading.settrace(None)  # type: ignore[arg-type]


@pytest.fixture
def db(make_db: Callable[..., Any]) -> Any:
    db = make_db(Store)
    with db.write() as t:
        t.numbers.update({n: 0 for n in range(12)})
    return db


def at_each_step(canceller: Canceller, program: Callable[[int], Coroutine[Any, Any, None]]) -> None:
    """Run the program until a step comes that its threads do not reach any more."""
    at = 1
    while True:
        asyncio.run(program(at))
        if canceller.lines < at:
            break
        at += STRIDE
    assert at > 10


def test_a_function_is_stored_once_or_never_begun(db: Any, canceller: Canceller) -> None:
    def counting(key: int, begun: list[int]) -> Callable[[Any], int]:
        def count(t: Any) -> int:
            begun.append(key)
            return t.numbers.increment(key)

        return count

    ends = set()

    async def program(at: int) -> None:
        begun: list[int] = []
        with db.read() as t:
            before = [t.numbers[key] for key in range(3)]
        tasks = [asyncio.ensure_future(db.arun(counting(key, begun))) for key in range(3)]
        canceller.aim(at, tasks[1])
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        canceller.task = None
        while db._groups._submitted:  # what was cancelled may still be stored
            await asyncio.sleep(0)
        with db.read() as t:
            written = [t.numbers[key] - count for key, count in enumerate(before)]
        assert (written[0], written[2]) == (1, 1)
        assert outcomes[::2] == [before[0] + 1, before[2] + 1]
        is_cancelled = isinstance(outcomes[1], asyncio.CancelledError)
        ends.add((is_cancelled, written[1]))
        if is_cancelled:
            assert written[1] == (1 in begun)
        else:
            assert (outcomes[1], written[1]) == (before[1] + 1, 1)

    at_each_step(canceller, program)
    assert {(True, 0), (True, 1)} <= ends


@pytest.mark.parametrize("snapshot", [False, True])
def test_rows_come_once_and_no_transaction_stays(db: Any, canceller: Canceller, snapshot: bool) -> None:
    async def program(at: int) -> None:
        found: list[int] = []

        async def read() -> None:
            async for key in db.arows(lambda t: t.numbers.select().keys(), size=5, snapshot=snapshot):
                found.append(key)

        task = asyncio.ensure_future(read())
        canceller.aim(at, task)
        with suppress(asyncio.CancelledError):
            await task
        assert found == list(range(len(found)))
        assert task.cancelled() or len(found) == 12

    at_each_step(canceller, program)
    gc.collect()
    db.close()  # refused while a transaction is open
    assert not [one for one in threading.enumerate() if one.name.startswith(THREADS)]
