"""The life of a transaction: what is kept for the next one serves nobody else, and no interrupt leaves a lock."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Callable

import pytest
from hypothesis import settings

import zlmdb
from tests.combinations import EVERYWHERE
from zlmdb.database import database, state
from zlmdb.engines.lmdb import rollback
from zlmdb.schema import auto, autowrites, schema
from zlmdb.store import (
    blocks,
    environment,
    gate,
    holds,
    live,
    maintenance,
    pool,
    processlock,
    savepoints,
    schemaread,
    schemawrite,
    store,
    transaction,
    transactionend,
    transactionstate,
    waking,
    writerlock,
)
from zlmdb.store.blocks import COUNTS_REFERENCES

from .interrupts import INTERRUPTS, Interrupt, interrupting, traces_instructions

MODULES = (
    auto, autowrites, blocks, database, state, environment, gate, holds, live, maintenance, pool, processlock, rollback,
    savepoints, schema, schemaread, schemawrite, store, transaction, transactionend, transactionstate, waking,
    writerlock,
)  # fmt: skip
LIFE = {module.__file__ for module in MODULES}

counts_references = pytest.mark.skipif(
    not COUNTS_REFERENCES, reason="this interpreter counts no references, so that nothing is used again"
)
signals = pytest.mark.skipif(
    not hasattr(signal, "setitimer") or not COUNTS_REFERENCES,
    reason="this system has no timers that send signals, or py-lmdb itself is Python that they interrupt, as on PyPy",
)


SIGNALS = 1000  # each of the moments once


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[int, int]
    others: zlmdb.Table[str, str]


@pytest.fixture(params=EVERYWHERE)
def combo(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(autouse=True)
def _what_comes_into_a_finaliser_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not reported, by a hook of Python into which the next interrupt may come."""
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)


@pytest.fixture(autouse=True)
def _few_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each new unit looks at all others, whose number interrupts make grow: a test would go on for long."""
    monkeypatch.setattr(pool, "_MOST_IDLE", 16)


@pytest.fixture
def db(make_db: Callable[..., Any]) -> Any:
    db = make_db(Store)
    with db.write() as t:
        t.numbers[0] = 0
    return db


@pytest.fixture(params=["tables", "classic"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A database of LMDB: what the engine in memory does by itself is Python, and an interrupt may come there, too."""
    db = zlmdb.open(tmp_path / "disk", Store, layout=request.param, durability="none")
    with db.write() as t:
        t.numbers[0] = 0
    yield db
    with suppress(zlmdb.DatabaseInUse):
        db.close()


# -- what is kept for the next transaction -----------------------------------------------------------------------------


@counts_references
@pytest.mark.parametrize("write", [False, True])
def test_a_loop_uses_two_schema_objects_in_turn(db: Any, write: bool) -> None:
    seen: list[int] = []
    for _ in range(6):
        with db.write() if write else db.read() as t:
            seen.append(id(t))
            assert t.numbers.get(0) == 0
    assert len(set(seen)) == 2
    assert seen[0] == seen[2] == seen[4] != seen[1] == seen[3]


@pytest.mark.parametrize("kept", ["tables", "table", "transaction", "selection", "keys", "iterator", "items"])
def test_what_a_program_keeps_never_serves_another_transaction(db: Any, kept: str) -> None:
    def use(thing: Any) -> Any:
        return {
            "tables": lambda: thing.numbers[0],
            "table": lambda: thing[0],
            "transaction": lambda: thing.get(b"\0\0\0"),
            "selection": lambda: list(thing),
            "keys": lambda: list(thing),
            "iterator": lambda: next(thing),
            "items": lambda: list(thing),
        }[kept]()

    def keep(t: Any) -> Any:
        iterator = iter(t.numbers.select())
        return {
            "tables": t, "table": t.numbers, "transaction": t.txn, "selection": t.numbers.select(),
            "keys": t.numbers.keys(), "iterator": iterator, "items": t.numbers.items(),
        }[kept]  # fmt: skip

    ended = (zlmdb.TransactionClosed, StopIteration) if kept == "iterator" else zlmdb.TransactionClosed
    for begin in (db.read, db.write):
        with begin() as t:
            held = keep(t)
        del t
        for _ in range(4):
            with begin() as t:
                assert t.numbers[0] == 0
                with pytest.raises(ended):
                    use(held)
                assert t.numbers[0] == 0
            del t
        with pytest.raises(ended):
            use(held)


def test_a_kept_view_of_an_index_never_serves_another_transaction(make_db: Callable[..., Any]) -> None:
    class Numbers(zlmdb.Table[int, int]):
        by_square = zlmdb.UniqueIndex[int](lambda n: n * n, version=1)

    class Indexed(zlmdb.Schema):
        numbers: Numbers

    db = make_db(Indexed)
    with db.write() as t:
        t.numbers[1] = 3
    with db.read() as t:
        view = t.numbers.by_square
        assert view[9] == 3
    for _ in range(3):
        with db.read() as t:
            assert t.numbers.by_square[9] == 3
            with pytest.raises(zlmdb.TransactionClosed):
                view[9]


def test_what_was_set_on_a_schema_object_is_not_there_in_the_next_transaction(db: Any) -> None:
    for _ in range(5):
        with db.read() as t:
            assert not hasattr(t, "mine")
            t.mine = 1


@counts_references
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("used_before", [False, True])
@pytest.mark.parametrize("end", ["block", "caught", "abort"])
def test_what_the_collector_ends_serves_no_other_transaction(db: Any, end: str, used_before: bool) -> None:
    """It calls all finalizers: that of the generator ends the read, and another thread may begin one with the same
    objects before that of the transaction is called, which ended the new one: the stream of a web client that has left.
    """
    begun: list[Any] = []

    def rows() -> Iterator[Any]:
        try:
            if end == "abort":
                t = db.read()
                try:
                    yield t.numbers[0]
                finally:
                    t.txn.abort()
                    del t
            else:
                with db.read() as t, suppress(GeneratorExit if end == "caught" else KeyError):
                    yield t.numbers[0]
                del t
        finally:
            begun.append(db.read())  # as another thread does

    db._readers.idle.clear()
    if used_before:  # then the transaction is older than the generator, and its finalizer is called first
        with db.read() as t:
            assert t.numbers[0] == 0
        del t
    cycle: list[Any] = [rows()]
    cycle.append(cycle)
    assert next(cycle[0]) == 0
    del cycle
    gc.collect()
    (t,) = begun
    assert dict(t.numbers) == {0: 0}
    t.txn.abort()
    del t
    begun.clear()
    assert db._open_store.live.count() == 0
    for _ in range(3):
        with db.read() as t:
            assert db._open_store.live.count() == 1  # nobody uses again what the collector has found
            assert dict(t.numbers) == {0: 0}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_read_without_a_block_stays_and_ends_with_its_object(db: Any) -> None:
    t = db.read()
    with db.write() as w:
        w.numbers[0] = 1
    assert t.numbers[0] == 0
    del t
    with db.read() as t:
        assert t.numbers[0] == 1


def test_a_write_outside_of_a_block_says_what_to_write(db: Any) -> None:
    with pytest.raises(zlmdb.TransactionClosed, match="with db.write"):
        db.write().numbers[1] = 1
    with pytest.raises(zlmdb.TransactionClosed, match="with db.write"):
        _ = db.write()["numbers"]
    with db.write() as t:
        t.numbers[1] = 2
    with pytest.raises(zlmdb.TransactionClosed, match="has ended"), t:
        pass


def test_tables_of_a_reused_transaction_wait_for_its_block(db: Any) -> None:
    for _ in range(3):
        with db.write() as t:
            t.numbers[1] = 2
    del t
    with pytest.raises(zlmdb.TransactionClosed, match="with db.write"):
        db.write().numbers[1] = 3
    with pytest.raises(zlmdb.TransactionClosed, match="begins with its block|has not begun"):
        db.write().numbers[1]
    block = db.write()
    early: Any = None
    with suppress(zlmdb.TransactionClosed):
        early = block.numbers
    with block as t:
        t.numbers[1] = 4
        if early is not None:  # where no transaction is reused, there is no such table
            with pytest.raises(zlmdb.TransactionClosed):
                early[1] = 5
            with pytest.raises(zlmdb.TransactionClosed):
                early[1]
    with db.read() as t:
        assert t.numbers[1] == 4


def test_an_exit_stack_takes_transactions(db: Any) -> None:
    with ExitStack() as stack:
        t = stack.enter_context(db.write())
        t.numbers[5] = 5
        with pytest.raises(zlmdb.NestedTransaction):
            db.write().__enter__()
    with ExitStack() as stack:
        assert stack.enter_context(db.read()).numbers[5] == 5
        assert stack.enter_context(db.begin())._begun


def test_a_nested_write_is_refused_without_a_search_where_its_block_is_seen_to_run(
    db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search for what keeps a block that is over takes seconds in a large program, where there is one."""

    def fails(*objects: Any) -> bool:
        raise AssertionError("it searched")

    monkeypatch.setattr(blocks, "clear_frames", fails)

    def nested() -> None:
        with pytest.raises(zlmdb.NestedTransaction), db.write():
            pass

    with db.write():
        nested()
        with pytest.raises(zlmdb.NestedTransaction), db.write():
            pass
    with db.begin(write=True):
        nested()
    db.run(lambda t: nested())


def test_a_block_that_was_entered_by_hand_is_not_taken_for_one_that_is_over(db: Any) -> None:
    block = db.write()
    t = block.__enter__()
    t.numbers[7] = 7
    gc.collect()
    with pytest.raises(zlmdb.NestedTransaction):
        db.write().__enter__()
    with pytest.raises(zlmdb.DatabaseInUse):
        db.close()
    block.__exit__(None, None, None)
    with db.read() as t:
        assert t.numbers[7] == 7


# -- interrupts --------------------------------------------------------------------------------------------------------


def of_the_life(filename: str) -> bool:
    return filename in LIFE or filename.startswith(("<zlmdb single reads", "<zlmdb single writes"))


class Undone(Exception):
    """Of the program: nothing of its block is stored."""


def write_once(db: Any, value: int) -> None:
    with db.write() as t:
        t.numbers[1] = value


def read_once(db: Any, value: int) -> None:
    with db.read() as t:
        assert t.numbers.get(1) in (None, value)


def write_classic(db: Any, value: int) -> None:
    with db.begin(write=True) as txn:
        assert txn._begun


def read_without_block(db: Any, value: int) -> None:
    assert db.auto.numbers.get(1) in (None, value)


def write_without_block(db: Any, value: int) -> None:
    db.auto.numbers[1] = value


def write_undone(db: Any, value: int) -> None:
    with suppress(Undone), db.write() as t:
        t.numbers[1] = value
        raise Undone


LIVES = {
    "write": write_once, "read": read_once, "classic": write_classic, "read without block": read_without_block,
    "write without block": write_without_block,
}  # fmt: skip
UNDONE = {"write undone": write_undone}


@pytest.fixture
def step(combo: str) -> int:
    """From one instruction to the next that is interrupted: one interpreter tries them all, on each engine of ours."""
    return 1 if settings.default.max_examples >= 25 and combo in ("lmdb-tables", "memory-classic") else 4


@traces_instructions
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("life", [*LIVES, *UNDONE])
def test_an_interrupt_at_any_instruction_leaves_nothing_behind(db: Any, life: str, step: int) -> None:
    """The same thread goes on at once, though the traceback is still there; what is stored is the last commit."""
    run, at, kept = {**LIVES, **UNDONE}[life], 0, []
    for _ in range(4):
        run(db, -1)
    done = False
    while not done:
        at += step
        try:
            with interrupting(at, of_the_life) as count:
                run(db, at)
            done = count[0] < at
        except INTERRUPTS as error:
            kept = [error]  # with its traceback, and the frames in it
        with db.write(timeout=5) as t:
            value = t.numbers.get(1)
            assert value is None or value <= at, (at, value)
            t.numbers[2] = at
        with db.read() as t:
            assert t.numbers[2] == at
        if at % (50 * step) == step:
            gc.collect()  # what was left is looked at by each new one, and a large process collects seldom
    assert at > 50
    del kept[:]
    db.close()


@traces_instructions
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("life", list(LIVES))
def test_after_an_interrupt_the_database_closes(make_db: Callable[..., Any], life: str, step: int) -> None:
    run, at, kept, done = LIVES[life], 0, [], False
    late: list[Any] = []
    while not done:
        at += step
        db = make_db(Store)
        for _ in range(2):
            run(db, -1)
        try:
            with interrupting(at, of_the_life) as count:
                run(db, at)
            done = count[0] < at
        except INTERRUPTS as error:
            kept = [error]
        try:
            db.close()
        except zlmdb.DatabaseInUse as error:
            late.append((at, error.__context__))
            del kept[:]
            gc.collect()
            db.close()
    assert at > 50
    # Before Python 3.11 what traces has the variables of a frame in a dict, which keeps what the frame has let go.
    assert len(late) <= (24 if life == "read" and sys.version_info < (3, 11) else 0), late


@traces_instructions
@counts_references
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_after_an_interrupt_the_next_reads_end_the_one_that_was_left(db: Any, step: int) -> None:
    gc.disable()  # it would end it, too
    try:
        at, done = 0, False
        while not done:
            at += step
            for _ in range(3):
                LIVES["read"](db, -1)
            try:
                with interrupting(at, of_the_life) as count:
                    LIVES["read"](db, at)
                done = count[0] < at
            except INTERRUPTS:
                pass
            db.long_read = 60.0  # as if some time had passed
            LIVES["read"](db, -1)
            assert [one for one in db._open_store.live.alive() if one._begun] == [], at
    finally:
        gc.enable()


@pytest.mark.once
@traces_instructions
@counts_references
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("life", list(LIVES))
def test_an_interrupt_at_any_instruction_leaves_the_gate(tmp_path: Path, life: str) -> None:
    with zlmdb.open(tmp_path / "db", Store, maxsize=1 << 22, durability="none") as db:
        run, at, done, gate = LIVES[life], 0, False, db._open_store.gate
        while not done:
            at += 1
            for _ in range(2):
                run(db, at)
            with suppress(*INTERRUPTS), interrupting(at, of_the_life) as count:
                run(db, at)
            done = count[0] < at
            db.long_read = 60.0  # as if some time had passed
            read_once(db, at)
            assert gate is not None
            with gate.alone(0) as alone:
                assert alone, at
    assert at > 50


class Reading:
    """A thread that has a read transaction, then its schema object, a table, and what iterates: one at a time."""

    def __init__(self, db: Any, begun: int) -> None:
        self.held: list[Any] = [db.read().txn]
        self.held[0]._thread = -1
        self.rows: list[Any] = []
        self.steps: list[Callable[[Any], Any]] = [
            lambda txn: txn._unit.view,
            lambda tables: tables.numbers.items(),
            iter,
            lambda rows: self.rows.append(next(rows)) or rows,  # type: ignore[func-returns-value]
        ]
        for _ in range(begun):
            self.go_on()

    def go_on(self) -> None:
        if self.steps:
            self.held.append(self.steps.pop(0)(self.held[0]))
            del self.held[0]

    def end(self) -> dict[Any, Any]:
        while self.steps:
            self.go_on()
        return dict([*self.rows, *self.held.pop()])


@contextmanager
def going_on(reading: Reading, at: tuple[int, ...]) -> Iterator[None]:
    """A block in which *reading* goes on at each of the instructions *at* of the pool."""
    count = [0]

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename != pool.__file__:
            return None
        frame.f_trace_opcodes = True
        count[0] += 1
        if count[0] in at:
            reading.go_on()
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


@traces_instructions
@counts_references
@pytest.mark.parametrize("closes", [False, True])
def test_a_read_that_another_thread_goes_on_with_is_not_ended(db: Any, closes: bool) -> None:
    gc.collect()
    gc.freeze()  # what earlier tests have left: closing would look through it hundreds of times
    dice = random.Random(1)
    moments = [(at,) for at in range(120)] + [tuple(sorted(dice.sample(range(120), 3))) for _ in range(300)]
    expected = {0: 0, 1: 1, 2: 2}
    live = db._open_store.live
    with db.write() as t:
        t.numbers.update(expected)
    for at in moments:
        for begun in (0, 1):
            with db.read() as t:
                assert dict(t.numbers) == expected  # so that the table is bound
            del t
            reading = Reading(db, begun)
            with going_on(reading, at):
                live.end_leftovers() if closes else live.end_dropped()
            assert reading.end() == expected, at
            live.end_dropped()
            assert live.count() == 0, at


@counts_references
def test_of_two_threads_that_find_a_read_dropped_one_ends_it(db: Any) -> None:
    live = db._open_store.live
    with db.read() as t:
        assert dict(t.numbers) == {0: 0}
    del t
    db.read()
    (unit,) = live._units_in_use()
    other: list[Any] = []

    def still() -> bool:
        found: bool = unit.is_dropped()
        assert found
        unit.end_if(lambda: not other.append(1))  # type: ignore[func-returns-value]  # the other thread
        return found

    unit.end_if(still)
    assert (live.count(), other) == (0, [])
    reading = Reading(db, 0)
    unit.end_if(unit.is_dropped)  # late: it is another transaction by now
    assert reading.end() == {0: 0}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@counts_references
@pytest.mark.parametrize("life", ["write", "write without block"])
def test_after_an_interrupt_other_threads_write_at_once(db: Any, life: str) -> None:
    """Although the thread that was interrupted never calls us again, and keeps what it got."""

    def writes(failed: list[Any]) -> None:
        try:
            with db.write(timeout=5) as t:
                t.numbers[3] = 3
        except BaseException as error:
            failed.append(error)

    run = LIVES[life]
    for _ in range(2):
        run(db, 0)
    at = 0
    while True:
        at += 5
        try:
            with interrupting(at, of_the_life) as count:
                run(db, at)
            if count[0] < at:
                break
        except INTERRUPTS:
            pass
        failed: list[Any] = []
        other = threading.Thread(target=writes, args=(failed,))
        other.start()
        other.join(10)
        assert not failed, (at, failed)


@signals
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals come to the main thread")
@pytest.mark.parametrize("life", ["write", "write without block"])
def test_signals_at_any_moment_leave_no_lock(disk: Any, life: str) -> None:
    """Real ones, at random microseconds."""
    stored = came = 0

    armed = False

    def interrupt(*args: Any) -> None:
        if armed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for n in range(SIGNALS):
            try:
                armed = True
                signal.setitimer(signal.ITIMER_REAL, 0.00001 + (n * 7919 % 1000) * 2e-7)
                try:
                    LIVES[life](disk, n)
                    stored = n
                    # Until it comes, so that it does not come into what follows. What comes into a finaliser is lost.
                    time.sleep(0.05)
                finally:
                    armed = False
            except KeyboardInterrupt:
                came += 1
            armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            with disk.write(timeout=5) as t:
                assert t.numbers.get(1, 0) in (stored, n)
                stored = t.numbers.get(1, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert came > 0.9 * SIGNALS
    disk.close()


@signals
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals come to the main thread")
def test_after_a_signal_in_a_read_the_database_closes(tmp_path: Path) -> None:
    """Although the program keeps the exception with its traceback."""
    kept: list[BaseException] = []
    came = 0
    armed = False

    def interrupt(*args: Any) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for n in range(SIGNALS // 5):
            db = zlmdb.open(tmp_path / "disk", Store, durability="none")
            try:
                armed = True
                signal.setitimer(signal.ITIMER_REAL, 0.00001 + (n * 7919 % 1000) * 2e-7)
                for _ in range(1000):  # What comes into a finaliser is lost.
                    with db.read() as t:
                        t.numbers.get(1)
                armed = False
            except KeyboardInterrupt as error:
                came += 1
                kept = [error]
            db.close()
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert came > 0.9 * SIGNALS // 5
    assert kept


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_closing_searches_the_heap_once_however_many_reads_are_open(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[int] = []
    search = gc.get_referrers
    monkeypatch.setattr(gc, "get_referrers", lambda *parts: searches.append(len(parts)) or search(*parts))
    held = [db.read() for _ in range(20)]
    with pytest.raises(
        zlmdb.DatabaseInUse, match=r"open transactions \(20\): \[(<[^>]*>, begun at [^,]*, ){5}\.\.\.\]"
    ):
        db.close()
    assert len(searches) <= 1
    del held
    db.close()


@pytest.mark.skipif(
    COUNTS_REFERENCES,
    reason="where references are counted, a block ends without the collector, and there is nothing to count",
)
def test_closing_collects_as_often_however_many_blocks_are_open(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    collections: list[None] = []
    collect = gc.collect
    monkeypatch.setattr(gc, "collect", lambda: collections.append(collect()))

    def closed_inside(blocks: int) -> None:
        if blocks:
            with db.read(), db.begin():
                closed_inside(blocks - 1)
        else:
            with pytest.raises(zlmdb.DatabaseInUse, match=r"open transactions \(40\)"):
                db.close()

    closed_inside(20)
    assert len(collections) <= 3
    db.close()


@pytest.mark.skipif(not COUNTS_REFERENCES, reason="a function of CPython")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_exception_that_another_thread_sets_leaves_no_lock(disk: Any) -> None:
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    stop = threading.Event()
    came: list[int] = []

    def writes() -> None:
        n = 0
        while not stop.is_set():
            try:
                while not stop.is_set():
                    n += 1
                    with disk.write(timeout=5) as t:
                        t.numbers[1] = n
            except Interrupt:
                came.append(n)

    thread = threading.Thread(target=writes)
    thread.start()
    deadline = time.monotonic() + 10
    while len(came) < 200 and time.monotonic() < deadline:
        raise_in(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Interrupt))
        time.sleep(0.0005)
    time.sleep(0.05)
    stop.set()
    thread.join(20)
    assert not thread.is_alive()
    assert came
    with disk.write(timeout=5) as t:
        t.numbers[2] = 2
    disk.close()


def test_a_task_that_is_cancelled_in_its_block_leaves_no_lock(db: Any) -> None:
    async def writes() -> None:
        with db.write() as t:
            t.numbers[1] = 1
            await asyncio.sleep(10)

    async def main() -> None:
        for _ in range(20):
            task = asyncio.ensure_future(writes())
            await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            write_once(db, 2)

    asyncio.run(main())
    with db.read() as t:
        assert t.numbers[1] == 2


def test_nothing_is_kept_alive_by_a_closed_database(tmp_path: Path) -> None:
    db = zlmdb.open(tmp_path, Store)
    with db.write() as t:
        t.numbers[1] = 1
    with db.read() as t:
        assert t.numbers[1] == 1
    alive = weakref.ref(t.txn)
    del t
    db.close()
    gc.collect()
    assert alive() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_process_gets_transactions_of_its_own(tmp_path: Path) -> None:
    program = """
import os, sys
import zlmdb
class Store(zlmdb.Schema):
    numbers: zlmdb.Table[int, int]
db = zlmdb.open(sys.argv[1], Store)
for n in range(4):
    with db.write() as t: t.numbers[n] = n
    with db.read() as t: assert t.numbers[n] == n
del t
pid = os.fork()
if pid == 0:
    status = 1
    try:
        for n in range(4, 8):
            with db.write() as t: t.numbers[n] = n
            with db.read() as t: assert t.numbers[n] == n
        status = 0
    finally:
        os._exit(status)
assert os.waitpid(pid, 0)[1] == 0
with db.read() as t: assert len(t.numbers) == 8
"""
    subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, str(tmp_path)], check=True)


@pytest.mark.twice
def test_a_block_does_not_look_through_those_that_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    active = transactionstate.TransactionState.active

    def counted(txn: Any) -> bool:
        looked.append(txn)
        return bool(active.__get__(txn))

    with zlmdb.open(None, Store) as db:
        gc.disable()
        try:
            for _ in range(300):
                with db.read():
                    pass
            monkeypatch.setattr(transactionstate.TransactionState, "active", property(counted))
            for _ in range(10):
                with db.read():
                    pass
        finally:
            gc.enable()
        assert len(looked) < 100


class Number:
    """An object that a weak reference may refer to."""


@pytest.mark.skipif(COUNTS_REFERENCES, reason="this interpreter uses the tables of a block again")
@pytest.mark.parametrize("write", [False, True])
def test_the_tables_of_an_ended_block_do_not_wait_for_a_collection_of_everything(write: bool) -> None:
    with zlmdb.open(None, Store) as db:

        def block() -> weakref.ref[Any]:
            with db.write() if write else db.read() as t:
                len(t.numbers)
                return weakref.ref(t.numbers)

        gc.collect()
        gc.disable()  # what is young is freed nevertheless
        try:
            left = [block() for _ in range(5)]
            young = weakref.ref(Number())
            while young() is not None:  # how many objects that takes depends on the caches of the processor
                bytearray(100)
        finally:
            gc.enable()
        assert [one() for one in left] == [None] * 5
