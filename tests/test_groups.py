"""Group commit: functions of several callers are stored by one commit, and each is told of its own outcome only."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent import futures
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, Callable

import lmdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlmdb
from zlmdb.store import asyncfutures, groups, members
from zlmdb.store.waking import wake_some

from .interrupts import INTERRUPTS, Interrupt, interrupting, traces_instructions
from .waiters import Caller, first_group_fails, in_another_thread, last, put, wait_until, waiting_together
from .workers import kill


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[int, int]
    texts: zlmdb.Table[str, str]


@pytest.fixture
def db(make_db: Callable[..., Any]) -> Any:
    return make_db(Store, durability="full")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Any]:
    db = zlmdb.open(tmp_path / "disk", Store)
    yield db
    db.close()


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No group ends because its functions take long, as they do on a slow machine: for it, no time passes."""
    monkeypatch.setattr(groups, "_clock", lambda: 0.0)


def waiting(db: Any) -> int:
    return 0 if db._groups is None else len(db._groups._queue)


def together(db: Any, functions: list[Callable[[Any], Any]]) -> AbstractContextManager[list[Caller]]:
    return waiting_together(db, Caller, functions, waiting)


@pytest.mark.usefixtures("unhurried")
def test_those_who_are_stored_wake_one_another(disk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.run(put(0))
    by: list[int] = []
    wake = members.Member.wake

    def seen(member: members.Member) -> None:
        if member.told:
            by.append(threading.get_ident())
        wake(member)

    monkeypatch.setattr(members.Member, "wake", seen)
    before = last(disk)
    with together(disk, [put(n) for n in range(1, 21)]):
        pass
    assert last(disk) <= before + 2
    assert len(by) >= 20
    assert max(map(by.count, by)) <= 6  # the one who led, too: each that is awake has to wait for the interpreter


def test_who_has_left_wakes_nobody_so_another_is_woken_instead() -> None:
    class One:
        left = woken = False

        def wake(self) -> None:
            self.woken = True

    waiting = deque([One() for _ in range(6)])
    everybody = list(waiting)
    for at in (0, 1, 3):
        everybody[at].left = True
    wake_some(waiting)
    assert [one.woken for one in everybody] == [True] * 5 + [False]
    wake_some(waiting)
    wake_some(waiting)
    assert everybody[5].woken


@pytest.mark.usefixtures("unhurried")
def test_those_who_wait_for_the_writer_are_stored_by_one_commit(disk: Any) -> None:
    disk.run(put(0))
    before = last(disk)
    with together(disk, [put(n) for n in range(10)]) as callers:
        assert last(disk) == before
    assert [caller.got for caller in callers] == list(range(10))
    # The block itself has written nothing. Whoever came first may have led alone.
    assert 1 <= last(disk) - before <= 2
    with disk.read() as t:
        assert dict(t.numbers) == {0: 2, **dict.fromkeys(range(1, 10), 1)}


def test_one_writer_makes_no_group(db: Any) -> None:
    for n in range(5):
        assert db.run(put(n)) == n
    assert db._groups is None


def test_an_exception_undoes_what_its_function_did_and_nothing_else(db: Any) -> None:
    def fails(t: Any) -> None:
        t.numbers[1] = 5
        t.numbers[100] = 1
        raise LookupError("mine")

    with together(db, [put(1), fails, put(2)]) as callers:
        pass
    assert [caller.got for caller in callers] == [1, None, 2]
    assert isinstance(callers[1].raised, LookupError)
    with db.read() as t:
        assert dict(t.numbers) == {1: 1, 2: 1}


@pytest.mark.usefixtures("unhurried")
def test_functions_share_a_savepoint_until_one_raises(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    savepoints: list[int] = []
    ran: list[int] = []
    hooked: list[int] = []
    begin = zlmdb.Transaction._enter_savepoint

    def counted(self: Any, *arguments: Any) -> None:
        savepoints.append(1)
        begin(self, *arguments)

    def member(key: int, raises: bool = False) -> Callable[[Any], int]:
        def fn(t: Any) -> int:
            ran.append(key)
            t.txn.after_commit(lambda: hooked.append(key))
            t.numbers[key] = t.numbers.get(key, 0) + 1
            if raises:
                raise LookupError
            return key

        return fn

    monkeypatch.setattr(zlmdb.Transaction, "_enter_savepoint", counted)
    for raising, least, most in (([], 1, 2), ([2], 6, 12), ([], 6, 6), ([1, 4], 6, 6)):
        savepoints.clear()
        ran.clear()
        hooked.clear()
        with together(db, [member(n, n in raising) for n in range(6)]) as callers:
            pass
        expected = [n for n in range(6) if n not in raising]
        assert [n for n, caller in enumerate(callers) if caller.got == n] == expected
        assert all(isinstance(callers[n].raised, LookupError) for n in raising)
        assert sorted(hooked) == expected
        assert least <= len(savepoints) <= most
        assert set(ran) == set(range(6))
        assert all(ran.count(n) <= 2 for n in range(6))
    with db.read() as t:
        assert dict(t.numbers) == {0: 4, 1: 3, 2: 3, 3: 4, 4: 3, 5: 4}


def test_members_see_what_those_before_them_wrote_in_the_order_of_the_queue(db: Any) -> None:
    def append(text: str) -> Callable[[Any], str]:
        def fn(t: Any) -> str:
            t.texts["all"] = t.texts.get("all", "") + text
            found: str = t.texts["all"]
            return found

        return fn

    with together(db, [append(c) for c in "abc"]) as callers:
        pass
    assert [caller.got for caller in callers] == ["a", "ab", "abc"]


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_function_that_ends_its_transaction_gets_one_of_its_own(db: Any, end: str) -> None:
    def ends(t: Any) -> str:
        t.numbers[1] = 1
        getattr(t.txn, end)()
        return "done"

    with together(db, [put(0), ends, put(2)]) as callers:
        pass
    assert [(caller.got, caller.raised) for caller in callers] == [(0, None), ("done", None), (2, None)]
    with db.read() as t:
        assert sorted(t.numbers) == ([0, 1, 2] if end == "commit" else [0, 2])


def test_savepoints_and_scans_inside_of_a_member(db: Any) -> None:
    def work(t: Any) -> int:
        t.numbers[1] = 1
        with suppress(KeyError), t.txn.savepoint():
            t.numbers[2] = 2
            raise KeyError
        return sum(1 for _ in t.numbers)

    with together(db, [put(0), work, work]) as callers:
        pass
    assert [caller.got for caller in callers] == [0, 2, 2]


def test_what_waits_for_the_commit_runs_after_it_in_the_thread_of_its_caller(db: Any) -> None:
    ran: list[tuple[int, int]] = []

    def hooked(key: int, raises: bool = False) -> Callable[[Any], int]:
        def hook() -> None:
            with db.read() as t:
                ran.append((key, threading.get_ident()))
                assert t.numbers[key] == 1
            if raises:
                raise OverflowError(key)

        def fn(t: Any) -> int:
            t.txn.after_commit(hook)
            t.numbers[key] = 1
            if key == 9:
                raise LookupError
            return key

        return fn

    with together(db, [hooked(1), hooked(9), hooked(2, raises=True), hooked(3)]) as callers:
        pass
    assert sorted(ran) == sorted((key, callers[at].ident) for key, at in ((1, 0), (2, 2), (3, 3)))
    assert [type(caller.raised) for caller in callers] == [type(None), LookupError, OverflowError, type(None)]


def test_a_function_runs_in_the_context_of_its_caller(db: Any) -> None:
    variable: ContextVar[int] = ContextVar("variable", default=0)

    def called(n: int) -> Callable[[Any], int]:
        return lambda t: n * 1000 + variable.get()

    class InContext(Caller):
        def run(self) -> None:
            variable.set(int(self.name.split("-")[1].split(" ")[0]))
            super().run()

    callers = []
    with db.write():
        for n in range(3):
            callers.append(InContext(db, called(n)))
            wait_until(lambda n=n: waiting(db) == n + 1)  # type: ignore[misc]
    for n, caller in enumerate(callers):
        assert caller.ended().got == n * 1000 + int(caller.name.split("-")[1].split(" ")[0])


def test_a_group_that_cannot_be_stored_is_dissolved_and_each_runs_alone(
    disk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it was stored: no function has its effect twice."""
    failed = first_group_fails(monkeypatch)
    with together(disk, [put(n) for n in range(4)]) as callers:
        pass
    assert failed
    assert [caller.got for caller in callers] == [0, 1, 2, 3]
    with disk.read() as t:
        assert dict(t.numbers) == dict.fromkeys(range(4), 1)


def test_where_nothing_can_be_stored_each_member_gets_an_error_of_its_own(
    disk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Any) -> None:
        self.abort()
        raise zlmdb.DiskError("the disk is broken")

    with monkeypatch.context() as broken:
        with pytest.raises(zlmdb.DiskError), disk.write() as t:  # noqa: PT012
            callers = [Caller(disk, put(n)) for n in range(3)]
            wait_until(lambda: waiting(disk) == 3)
            t.txn.after_commit(lambda: None)  # so that it does not end the short way
            broken.setattr(zlmdb.Transaction, "commit", fails)
        raised = [caller.ended().raised for caller in callers]
    assert [type(error) for error in raised] == [zlmdb.DiskError] * 3
    assert len({id(error) for error in raised}) == 3
    assert disk.run(put(9)) == 9
    with disk.read() as t:
        assert dict(t.numbers) == {9: 1}


def test_a_member_that_fills_the_map_takes_nobody_with_it(tmp_path: Path) -> None:
    class Texts(zlmdb.Schema):
        texts: zlmdb.Table[str, str]

    with zlmdb.open(tmp_path / "small", Texts, maxsize=1 << 20) as db:

        def small(key: str) -> Callable[[Any], str]:
            def fn(t: Any) -> str:
                t.texts[key] = key
                return key

            return fn

        def large(t: Any) -> None:
            t.texts["large"] = "x" * (1 << 21)

        with together(db, [small("a"), large, small("b")]) as callers:
            pass
        assert [caller.got for caller in callers] == ["a", None, "b"]
        assert isinstance(callers[1].raised, zlmdb.DatabaseFull)
        with db.read() as t:
            assert sorted(t.texts) == ["a", "b"]


def test_a_map_that_has_to_grow_grows_for_a_group(tmp_path: Path) -> None:
    class Texts(zlmdb.Schema):
        texts: zlmdb.Table[int, str]

    def large(key: int) -> Callable[[Any], int]:
        def fn(t: Any) -> int:
            t.texts[key] = "x" * (4 << 20)
            return key

        return fn

    with zlmdb.open(tmp_path / "grows", Texts) as db:
        with together(db, [large(n) for n in range(12)]) as callers:
            pass
        assert [caller.got for caller in callers] == list(range(12))
        with db.read() as t:
            assert len(t.texts) == 12


def test_a_member_waits_no_longer_than_its_timeout_and_never_runs_then(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "t", Store, timeout=0.2) as db:
        with db.write():
            callers = [Caller(db, put(n)) for n in range(3)]
            for caller in callers:
                caller.ended()
                assert isinstance(caller.raised, zlmdb.WriterTimeout)
        assert db.run(put(7)) == 7
        with db.read() as t:
            assert dict(t.numbers) == {7: 1}


def test_to_run_inside_of_a_write_is_refused_at_once(db: Any) -> None:
    with db.write(), pytest.raises(zlmdb.NestedTransaction):
        db.run(put(1))
    nested: list[BaseException] = []

    def inner(t: Any) -> None:
        try:
            db.run(put(1))
        except zlmdb.NestedTransaction as error:
            nested.append(error)

    with together(db, [put(0), inner, inner]):
        pass
    assert len(nested) == 2


def test_a_group_takes_no_more_members_than_fit_the_time_of_a_commit(disk: Any) -> None:
    """So that a slow function delays nobody for long: those after it are the next group."""

    def slow(t: Any) -> None:
        t.numbers[50] = 1
        time.sleep(0.05)

    before = last(disk)
    with together(disk, [slow, *[put(n) for n in range(4)]]) as callers:
        pass
    assert last(disk) - before >= 2
    assert [caller.got for caller in callers[1:]] == [0, 1, 2, 3]


def test_without_waits_for_the_disk_or_savepoints_there_are_no_groups(tmp_path: Path) -> None:
    for options in ({"sync": False}, {"writemap": True, "maxsize": 1 << 20}):
        with zlmdb.Database(str(tmp_path / next(iter(options))), **options) as db:  # type: ignore[arg-type]
            assert not db._group_commit()._joins
            assert db.submit(lambda t: 7).result(20) == 7


# -- what is submitted -------------------------------------------------------------------------------------------------


def no_worker_is_left() -> bool:
    return not any(one.name == "zlmdb-submit" for one in threading.enumerate())


@pytest.mark.usefixtures("unhurried")
def test_what_is_submitted_is_stored_in_order_by_few_commits(db: Any) -> None:
    before = last(db)
    with db.write():
        futures = [db.submit(put(n % 10)) for n in range(200)]
    assert [future.result(20) for future in futures] == [n % 10 for n in range(200)]
    assert last(db) - before < 100
    with db.read() as t:
        assert dict(t.numbers) == dict.fromkeys(range(10), 20)
    wait_until(no_worker_is_left)


def test_an_exception_of_what_is_submitted_is_in_its_future(db: Any) -> None:
    def fails(t: Any) -> None:
        t.numbers[1] = 1
        raise LookupError("mine")

    first, second = db.submit(fails), db.submit(put(2))
    with pytest.raises(LookupError, match="mine"):
        first.result(20)
    assert second.result(20) == 2
    with db.read() as t:
        assert dict(t.numbers) == {2: 1}


@pytest.mark.parametrize("kind", [asyncio.CancelledError, GeneratorExit, SystemExit])
def test_a_submitted_function_alone_gets_what_is_no_exception_of_a_program(db: Any, kind: Any) -> None:
    def fails(t: Any) -> None:
        t.numbers[1] = 1
        raise kind

    with db.write():  # so that they wait for each other
        first, second, third = (db.submit(fn) for fn in (put(0), fails, put(2)))
    assert [type(one.exception(20)) for one in (first, second, third)] == [type(None), kind, type(None)]
    with db.read() as t:
        assert sorted(t.numbers) == [0, 2]


class OfTheProgram(BaseException): ...


def raises() -> None:
    raise OfTheProgram


def exits() -> None:
    sys.exit(3)


def exits_by_name() -> None:
    from sys import exit

    exit()


@pytest.mark.parametrize("end", [raises, exits, exits_by_name])
def test_a_function_alone_gets_what_it_raises_although_another_thread_runs_it(db: Any, end: Any) -> None:
    """The thread that led the group got the SystemExit of another one's function, and its own one was undone."""
    found: dict[int, object] = {}

    def run(number: int) -> None:
        def fn(t: Any) -> int:
            t.numbers[number] = number
            if number == 1:
                end()
            return number

        try:
            found[number] = db.run(fn)
        except BaseException as error:
            found[number] = type(error)

    db.submit(put(9)).result(20)  # there is a group commit from now on
    with db.write():  # so that they wait for each other
        threads = []
        for number in range(3):
            threads.append(threading.Thread(target=run, args=(number,)))
            threads[-1].start()
            wait_until(lambda most=number: len(db._groups._queue) > most)
    for thread in threads:
        thread.join(60)
    assert found == {0: 0, 1: OfTheProgram if end is raises else SystemExit, 2: 2}
    with db.read() as t:
        assert sorted(t.numbers) == [0, 2, 9]


def test_what_is_cancelled_before_its_turn_never_runs(db: Any) -> None:
    with db.write():
        futures = [db.submit(put(n)) for n in range(5)]
        assert futures[3].cancel()
    assert [future.result(20) for at, future in enumerate(futures) if at != 3] == [0, 1, 2, 4]
    with pytest.raises(CancelledError):
        futures[3].result(20)
    with db.read() as t:
        assert sorted(t.numbers) == [0, 1, 2, 4]


def test_close_waits_for_what_was_submitted(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "s", Store) as db:
        futures = [db.submit(put(n)) for n in range(100)]
    assert all(future.done() for future in futures)
    assert no_worker_is_left()
    with zlmdb.open(tmp_path / "s", Store) as db, db.read() as t:
        assert len(t.numbers) == 100
    with pytest.raises(zlmdb.DatabaseClosed):
        db.submit(put(1))
    with zlmdb.open(tmp_path / "s", Store, readonly=True) as db, pytest.raises(zlmdb.ReadonlyDatabase):
        db.submit(put(1))


def test_close_ends_although_others_go_on_submitting(tmp_path: Path) -> None:
    refused: list[str] = []
    submitted: list[Any] = []

    def submits() -> None:
        try:
            while True:
                submitted.append(db.submit(lambda t: t.numbers.increment(1)))
                time.sleep(0)
        except zlmdb.DatabaseClosed as error:
            refused.append(str(error))

    with zlmdb.open(tmp_path / "s", Store) as db:
        threads = [threading.Thread(target=submits) for _ in range(2)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(submitted) > 100)
        last = db.submit(lambda t: t.txn.after_commit(lambda: db.submit(put(2))))  # the thread of the database may
    for thread in threads:
        thread.join(60)
    assert len(refused) == 2
    assert last.exception(0) is None
    with zlmdb.open(tmp_path / "s", Store) as db, db.read() as t:
        assert dict(t.numbers) == {1: sum(future.exception(0) is None for future in submitted), 2: 1}


def test_close_waits_for_a_thread_that_another_one_is_about_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(threading.Thread):
        def start(self) -> None:
            if self.name == "zlmdb-submit":
                starting.set()
                time.sleep(0.1)
            super().start()

    starting = threading.Event()
    with zlmdb.open(tmp_path / "s", Store) as db:
        monkeypatch.setattr(threading, "Thread", Slow)
        other = threading.Thread(target=lambda: db.submit(put(1)))
        other.start()
        assert starting.wait(60)
        last = db.submit(put(2))
    assert last.done()
    other.join(60)
    with zlmdb.open(tmp_path / "s", Store) as db, db.read() as t:
        assert set(t.numbers) == {1, 2}


def test_who_led_in_vain_joins_the_groups_of_blocks_again(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "t", Store, timeout=0.1) as db:
        db.submit(put(1)).result(20)  # there is a group commit from now on
        with db.write() as t:
            unit = t.txn._hold
            assert unit.join is not None
        with in_another_thread(lambda: db.begin(write=True)), pytest.raises(zlmdb.WriterTimeout):
            db.run(put(2))
        with db.write() as t:
            assert t.txn._hold.join is not None
        assert unit.join is not None


def test_where_no_thread_can_be_started_nothing_is_submitted(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    wait_until(no_worker_is_left)
    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", refuses)
        with pytest.raises(RuntimeError, match="start new thread"):
            db.submit(put(1))
    assert db.submit(put(2)).result(20) == 2
    with db.read() as t:
        assert list(t.numbers) == [2]


def test_close_waits_for_a_thread_that_has_said_that_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    works = groups.Groups._work_off

    def works_and_stays(self: groups.Groups, db: Any) -> None:
        works(self, db)
        time.sleep(0.3)

    monkeypatch.setattr(groups, "_LINGER", 0.001)
    monkeypatch.setattr(groups.Groups, "_work_off", works_and_stays)
    with zlmdb.open(tmp_path / "s", Store) as db:
        assert db.submit(put(1)).result(20) == 1
        wait_until(lambda: db._groups._worker is None)
        assert not no_worker_is_left()
    assert no_worker_is_left()


def test_close_inside_of_a_block_does_not_wait_for_what_that_block_keeps_from_running(disk: Any) -> None:
    with disk.write():
        future = disk.submit(put(1))
        with pytest.raises(zlmdb.DatabaseInUse):
            disk.close()
    assert future.result(20) == 1


def test_a_function_that_is_submitted_and_ends_its_transaction_gets_one_of_its_own(db: Any) -> None:
    def ends(t: Any) -> int:
        t.numbers[5] = 5
        t.txn.commit()
        return 5

    with db.write():
        futures = [db.submit(fn) for fn in (put(0), ends, put(1))]
    assert [future.result(20) for future in futures] == [0, 5, 1]


def test_submitted_and_called_functions_are_stored_together(db: Any) -> None:
    with together(db, [put(n) for n in range(4)]) as callers:
        futures = [db.submit(put(n)) for n in range(10, 14)]
    assert [caller.got for caller in callers] == [0, 1, 2, 3]
    assert [future.result(20) for future in futures] == [10, 11, 12, 13]


def test_where_no_commit_waits_for_the_disk_single_writes_of_many_threads_make_no_groups(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "fast", Store, durability="none") as db:
        with db.write():
            threads = [threading.Thread(target=db.auto.numbers.__setitem__, args=(n, 1)) for n in range(3)]
            for thread in threads:
                thread.start()
            wait_until(lambda: len(db._open_store.writer._waiters) == 3)
        for thread in threads:
            thread.join(20)
        assert db._groups is None
        assert len(db.auto.numbers) == 3


class Results:
    """Told of results, as the tasks of asyncio are."""

    def __init__(self, results: list[Any]) -> None:
        self.set_result = results.append
        self.set_exception = results.append

    def set_running_or_notify_cancel(self) -> bool:
        return True


@traces_instructions
def test_a_function_is_stored_once_wherever_its_thread_is_stopped_while_it_submits(db: Any) -> None:
    """The thread that stores what was submitted may run between any two instructions of the one that submits."""
    group = groups.Groups(db._open_store)
    results: list[Any] = []
    count = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        if frame.f_code is not groups.Groups._submit.__code__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            count += 1
            if count == at:
                sys.settrace(None)
                group._settle(db)
        return trace

    before, at = sys.gettrace(), 0
    while count == at:
        at, count = at + 1, 0
        sys.settrace(trace)
        try:
            group._submit(db, groups.Member(put(at), group._work, Results(results)))
        finally:
            sys.settrace(before)
        wait_until(lambda: results[-1:] == [at])  # noqa: B023  # asked at once
    group.finish()
    assert results == list(range(1, at + 1))
    with db.read() as t:
        assert dict(t.numbers) == dict.fromkeys(range(1, at + 1), 1)
    assert at > 10


# -- waits that would never end ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask",
    [
        lambda future: future.result(), lambda future: future.exception(60), lambda future: futures.wait([future]),
        lambda future: list(futures.as_completed([future])),
    ],
)  # fmt: skip
@pytest.mark.parametrize("writer", ["block", "unused block", "begin", "run", "submit", "hook", "callback"])
def test_who_keeps_a_function_from_being_stored_cannot_wait_for_it(disk: Any, writer: str, ask: Any) -> None:
    left: list[Any] = []
    raised: list[BaseException] = []

    def wait(t: Any = None) -> None:
        left.append(disk.submit(put(len(left))))
        try:
            ask(left[-1])
        except zlmdb.NestedTransaction as error:
            raised.append(error)

    if writer == "unused block":
        with disk.write():
            wait()
    elif writer == "block":
        with disk.write() as t:
            t.numbers[100] = 1
            wait()
    elif writer == "begin":
        with disk.begin(write=True):
            wait()
    elif writer == "run":
        disk.run(wait)
    elif writer == "submit":
        disk.submit(wait).result(20)
    elif writer == "hook":
        disk.submit(lambda t: t.txn.after_commit(wait)).result(20)
    else:
        goes_on = threading.Event()
        future = disk.submit(lambda t: goes_on.wait(20))
        future.add_done_callback(wait)
        goes_on.set()
        wait_until(lambda: len(raised) == 1)
    assert len(raised) >= 1
    assert [future.result(20) for future in left] == list(range(len(left)))


def test_a_block_can_wait_for_what_was_stored_before(disk: Any) -> None:
    """Its function runs in a transaction of its own, and what is called after the commit takes a while."""

    def ends(t: Any) -> int:
        t.numbers[1] = 1
        t.txn.after_commit(lambda: stored.set() or time.sleep(0.2))
        t.txn.commit()
        return 1

    stored = threading.Event()
    future = disk.submit(ends)
    assert stored.wait(20)
    with disk.write() as t:
        assert t.numbers[1] == 1
        assert future.result() == 1


def test_what_is_no_exception_of_the_leader_goes_to_its_own_caller(disk: Any) -> None:
    """And a Ctrl-C that comes in the function of another one stops the thread that leads, as it always does."""

    class Stop(BaseException):
        pass

    def stops(t: Any) -> None:
        t.numbers[1] = 1
        raise Stop

    for function in (stops, partial(stops)):
        mates: list[Caller] = []

        def lead(t: Any, function: Any = function, mates: list[Caller] = mates) -> int:
            if not mates:
                mates.append(Caller(disk, function))
                wait_until(lambda: len(disk._groups._queue) == 1)
            return put(2)(t)

        disk._group_commit()._recent = 2
        assert disk.run(lead) == 2
        mates[0].ended()
        assert isinstance(mates[0].raised, Stop)
    with disk.read() as t:
        assert list(t.numbers) == [2]


# -- asyncio -----------------------------------------------------------------------------------------------------------


def test_tasks_of_asyncio_commit_together(db: Any) -> None:
    async def main() -> list[int]:
        return list(await asyncio.gather(*[db.arun(put(n)) for n in range(100)]))

    before = last(db)
    assert asyncio.run(main()) == list(range(100))
    assert last(db) - before < 100
    with db.read() as t:
        assert dict(t.numbers) == dict.fromkeys(range(100), 1)


def test_the_loop_is_woken_once_for_a_group(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_SHORTEST", 5.0)

    async def main() -> int:
        loop, woken = asyncio.get_running_loop(), [0]
        wake = loop.call_soon_threadsafe

        def counted(*args: Any, **more: Any) -> Any:
            woken[0] += 1
            return wake(*args, **more)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
        with db.write():
            tasks = [asyncio.ensure_future(db.arun(put(n))) for n in range(50)]
            await asyncio.sleep(0.01)
        assert await asyncio.gather(*tasks) == list(range(50))
        return woken[0]

    assert asyncio.run(main()) <= 3  # what the worker had begun to lead, and the rest


@traces_instructions
def test_a_signal_handler_that_raises_while_tasks_are_told_leaves_none_waiting(
    db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any instruction of what tells them; what is lost with the first one is told when the loop looks again."""
    monkeypatch.setattr(groups, "_SHORTEST", 5.0)
    monkeypatch.setattr(asyncfutures, "PATIENCE", 0.05)
    heard: list[Any] = []

    def inside(file: str) -> bool:
        return file == asyncfutures.__file__

    async def main(at: int) -> int:
        loop, tell = asyncio.get_running_loop(), asyncfutures._arrived
        loop.set_exception_handler(lambda _, context: heard.append(context["exception"]))
        counts = [0]

        def arrived(outcomes: Any) -> None:
            with interrupting(at - counts[0], inside) as count:
                try:
                    tell(outcomes)
                finally:
                    counts[0] += count[0]

        monkeypatch.setattr(asyncfutures, "_arrived", arrived)
        try:
            with db.write():
                tasks = [asyncio.ensure_future(db.arun(put(n))) for n in range(3)]
                await asyncio.sleep(0.01)
            done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
        finally:
            monkeypatch.setattr(asyncfutures, "_arrived", tell)
        assert done == [0, 1, 2]
        return counts[0]

    at, most = 1, 5
    while at < most:
        most = max(most, asyncio.run(main(at)))
        at += 1
    assert at > 50
    assert len(heard) > 40
    assert all(isinstance(error, Interrupt) for error in heard)


def test_what_a_task_gets_of_a_function_that_raises(db: Any) -> None:
    def fails(error: BaseException) -> Callable[[Any], None]:
        def work(t: Any) -> None:
            raise error

        return work

    async def main() -> None:
        with pytest.raises(LookupError, match="mine"):
            await db.arun(fails(LookupError("mine")))
        with pytest.raises(RuntimeError, match="StopIteration") as caught:
            await db.arun(fails(StopIteration("end")))
        assert isinstance(caught.value.__cause__, StopIteration)
        assert await db.arun(put(1)) == 1

    asyncio.run(main())


def test_a_loop_that_was_closed_stops_nobody(db: Any) -> None:
    async def leave() -> Any:
        running = db.arun(put(1))
        running.send(None)  # it waits for its future from now on
        return running

    with in_another_thread(db.write):
        loop = asyncio.new_event_loop()
        left = loop.run_until_complete(leave())
        loop.close()
    assert db.submit(put(2)).result(20) == 2
    assert asyncio.run(db.arun(put(3))) == 3
    with db.read() as t:
        assert sorted(t.numbers) == [1, 2, 3]
    left.close()


def test_a_task_that_is_cancelled_before_its_turn_writes_nothing(db: Any) -> None:
    async def main() -> None:
        with db.write():
            tasks = [asyncio.ensure_future(db.arun(put(n))) for n in range(3)]
            await asyncio.sleep(0.01)
            tasks[1].cancel()
            await asyncio.sleep(0.01)
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert done[0] == 0
        assert isinstance(done[1], asyncio.CancelledError)
        assert done[2] == 2

    asyncio.run(main())
    with db.read() as t:
        assert sorted(t.numbers) == [0, 2]


# -- interrupts, kills and forks ---------------------------------------------------------------------------------------


@traces_instructions
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("unhurried")
def test_an_interrupt_of_the_leader_at_any_instruction_loses_and_doubles_nothing(
    disk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those whom it led are stored once; it itself once or not at all."""
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)
    at = rounds = 0
    ended = False
    while not ended:
        at += 7 if rounds else 1
        rounds += 1
        mates: list[Caller] = []
        returned, count = led(disk, 10 * rounds, mates, at)
        ended = count < at
        for mate in mates:
            mate.ended()
            assert mate.raised is None, (at, mate.raised)
        with disk.read() as t:
            found = [t.numbers.get(10 * rounds + n, 0) for n in range(3)]
        assert found[0] <= 1, (at, found)
        assert found[0] == 1 or not returned, (at, found)
        assert found[1:] == [len(mates) // 2] * 2, (at, found)
    assert rounds > 30
    assert disk.run(put(1)) == 1


def led(db: Any, first: int, mates: list[Caller], at: int) -> tuple[bool, int]:
    """Lead two *mates*, who come meanwhile. Whether the call returned, and how many instructions there were."""

    def lead(t: Any) -> None:
        put(first)(t)
        if not mates:  # where the interrupt became a SystemError, it is not the first time
            mates.extend(Caller(db, put(first + n)) for n in (1, 2))
        until = time.monotonic() + 0.1  # if it runs again, they wait elsewhere
        while len(db._groups._queue) < 2 and time.monotonic() < until:
            time.sleep(0.0005)

    db._group_commit()._recent = 2  # as if there had been others
    db._groups._commit = 0.0
    returned = False
    with suppress(*INTERRUPTS), interrupting(at, groups.__file__.__eq__) as count:
        db.run(lead)
        returned = True
    return returned, count[0]


PROGRAM = """
import os, sys, threading
import zlmdb

class Store(zlmdb.Schema):
    numbers: zlmdb.Table[int, int]

db = zlmdb.open(sys.argv[1], Store)

def work(thread):
    for n in range(100000):
        key = thread * 1000000 + n

        def put(t):
            t.numbers[key] = n
            t.numbers[-key - 1] = n

        if thread % 4 == 0:
            db.run(put)
        elif thread % 4 == 1:
            db.submit(put).result()
        else:
            with db.write() as t:
                put(t)
        os.write(1, b"%d\\n" % key)

for thread in range(8):
    threading.Thread(target=work, args=(thread,), daemon=True).start()
threading.Event().wait()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system kills otherwise")
@pytest.mark.parametrize("after", [0.05, 0.1, 0.3])
def test_a_kill_loses_nothing_that_was_acknowledged_and_stores_no_half(tmp_path: Path, after: float) -> None:
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path / "k")], stdout=subprocess.PIPE)
    assert program.stdout is not None
    program.stdout.readline()
    time.sleep(after)
    said = kill(program)
    acknowledged = [int(line) for line in said.splitlines(keepends=True) if line.endswith(b"\n")]
    with zlmdb.open(tmp_path / "k", Store) as db, db.read() as t:
        stored = set(t.numbers)
    assert stored.issuperset(acknowledged)
    assert {-key - 1 for key in stored} == stored


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_process_has_groups_of_its_own(disk: Any) -> None:
    with disk.write() as t:
        futures = [disk.submit(put(n)) for n in range(3)]
        child = os.fork()
        if child == 0:
            status = 1
            try:
                # The parent is still writing.
                future = disk.submit(put(10))
                with pytest.raises(TimeoutError if sys.version_info >= (3, 11) else Exception):
                    future.result(0.05)
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        t.numbers[5] = 1
    assert [future.result(20) for future in futures] == [0, 1, 2]
    with disk.read() as t:
        assert dict(t.numbers) == {0: 1, 1: 1, 2: 1, 5: 1}


# -- at random ---------------------------------------------------------------------------------------------------------

KINDS = ["stores", "raises", "undoes", "ends", "hooks", "slow"]


@given(plan=st.lists(st.lists(st.sampled_from(KINDS), min_size=1, max_size=5), min_size=2, max_size=6))
def test_random_members_do_what_they_do_alone(plan: list[list[str]]) -> None:
    """Each thread counts in a record of its own, and all of them in one."""
    hooked: list[int] = []

    def member(thread: int, kind: str) -> Callable[[Any], str]:
        def fn(t: Any) -> str:
            t.numbers[thread] = t.numbers.get(thread, 0) + 1
            t.numbers[-1] = t.numbers.get(-1, 0) + 1
            if kind == "raises":
                raise LookupError
            if kind == "undoes":
                with suppress(LookupError), t.txn.savepoint():
                    del t.numbers[thread]
                    t.numbers[-1] = -100
                    raise LookupError
            elif kind == "ends":
                t.txn.commit()
            elif kind == "hooks":
                t.txn.after_commit(lambda: hooked.append(thread))
            elif kind == "slow":
                time.sleep(0.0005)
            return kind

        return fn

    db = zlmdb.open(None, Store)
    wrong: list[Any] = []

    def work(thread: int, kinds: list[str]) -> None:
        for at, kind in enumerate(kinds):
            try:
                fn = member(thread, kind)
                got = db.submit(fn).result(20) if (thread + at) % 3 == 0 else db.run(fn)
                if got != kind or kind == "raises":
                    wrong.append((thread, kind, got))
            except LookupError:
                if kind != "raises":
                    wrong.append((thread, kind))
            except BaseException as error:
                wrong.append(error)

    db._group_commit()._recent = 2
    threads = [threading.Thread(target=work, args=(n, kinds)) for n, kinds in enumerate(plan)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not wrong
    counts = {n: sum(kind != "raises" for kind in kinds) for n, kinds in enumerate(plan)}
    with db.read() as t:
        stored = dict(t.numbers)
    db.close()
    assert stored.pop(-1, 0) == sum(counts.values())
    assert stored == {n: count for n, count in counts.items() if count}
    assert sorted(hooked) == sorted(n for n, kinds in enumerate(plan) for kind in kinds if kind == "hooks")


@pytest.mark.skipif(
    not hasattr(lmdb.Transaction.commit, "__code__"),
    reason="py-lmdb is in C here, and Python runs no signal handler within C",
)
def test_a_signal_after_the_commit_of_a_group_runs_the_functions_of_others_only_once(
    disk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came in the code of py-lmdb in Python, before it was noted that the group is stored."""
    cls: Any = lmdb.Transaction
    commit, threads = cls.commit, list[threading.Thread]()
    group: groups.Groups = disk._group_commit()
    monkeypatch.setattr(group, "_commit", 60.0)  # so long does a group take members

    def signalled(raw: Any) -> None:
        stores = raw._write and raw._parent is None
        commit(raw)
        if stores and threading.current_thread() is threading.main_thread():
            os.kill(os.getpid(), signal.SIGUSR1)
            for _ in range(50):  # a handler runs in one of the next steps
                time.sleep(0.001)

    def raises(*args: Any) -> None:
        raise Interrupt

    def leads(t: Any) -> None:
        threads.append(threading.Thread(target=group.run, args=(disk, lambda t: t.numbers.increment(1), None)))
        threads[0].start()
        wait_until(lambda: len(group._queue) == 1)

    before = signal.signal(signal.SIGUSR1, raises)
    try:
        monkeypatch.setattr(cls, "commit", signalled)
        with pytest.raises(Interrupt):
            group.run(disk, leads, None)
    finally:
        monkeypatch.undo()
        signal.signal(signal.SIGUSR1, before)
        threads[0].join()
    with disk.read() as t:
        assert t.numbers[1] == 1


def test_a_worker_that_ends_leaves_what_comes_to_the_next_one(db: zlmdb.Database[Store]) -> None:
    """Two of them would call what waits for its commit in any order."""
    db.submit(lambda t: None).result(10)
    groups: Any = db._groups
    go = threading.Event()
    later: list[Any] = []

    class Submitted(dict[Any, Any]):
        """Something is submitted as the worker has said that it ends."""

        def __bool__(self) -> bool:
            if groups._worker is None and not later:
                later.append(None)
                later[0] = db.submit(lambda t: go.wait(10))
            return len(self) > 0

    first = groups._worker
    groups._submitted = Submitted()
    first.join(10)
    assert not first.is_alive()
    groups._start(db)  # by another thread, which has seen the first one end
    assert [one for one in groups._workers if one.is_alive()] == [groups._worker]
    go.set()
    assert later[0].result(10)
