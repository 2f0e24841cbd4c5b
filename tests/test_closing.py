"""A database that is closed by another thread while it is used: who uses it gets what was asked for, or is told so."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Callable, Optional

import pytest

import zlmdb

from .interrupts import traces_instructions

POINTS = 30
PAUSE = 0.005  # seconds that the other thread has for its part, if it need not wait for this one
OURS = os.path.dirname(zlmdb.__file__), "<zlmdb "


@dataclass
class User:
    name: str
    until: float = 0.0


class Users(zlmdb.Table[int, User], feed=zlmdb.Feed(max_count=3)):
    by_name = zlmdb.Index[str]("name")


class Sessions(zlmdb.Table[int, User], expires="until"): ...


class Store(zlmdb.Schema):
    users: Users
    sessions: Sessions
    jobs: zlmdb.Queue[str]
    numbers: zlmdb.Table[int, int]


def block(db: Any) -> None:
    with db.write() as t:
        t.users[2] = User("b")


def read(db: Any) -> None:
    with db.read() as t:
        assert list(t.users.by_name.select())


def changes(db: Any) -> None:
    db.changes(Users, after=db.changes(Users).last() - 1, timeout=0).take()


def consumer(db: Any) -> None:
    db.changes(Users, after=0, consumer="index", timeout=0).acknowledge()


def job(db: Any) -> None:
    worker = zlmdb.Worker(db, lambda t: t.jobs)
    worker.done(worker.get(0))


def put(db: Any) -> None:
    db.auto.users[3] = User("c")


WAYS: dict[str, Callable[[Any], object]] = {
    "block": block,
    "read": read,
    "changes": changes,
    "consumer": consumer,
    "job": job,
    "put": put,
    "get": lambda db: db.auto.numbers.get(1),
    "run": lambda db: db.run(lambda t: t.numbers.increment(1)),
    "submit": lambda db: db.submit(lambda t: t.numbers.increment(1)).result(20),
    "aread": lambda db: asyncio.run(db.aread(lambda t: t.numbers[1])),
    "arun": lambda db: asyncio.run(db.arun(lambda t: t.numbers.increment(1))),
    "sweep": lambda db: db.sweep(),
    "stats": lambda db: db.stats(True),
    "readers": lambda db: db.readers(),
    "clear_readers": lambda db: db.clear_readers(),
    "tables": lambda db: db.tables(),
    "flush": lambda db: db.flush(),
}


@contextmanager
def at_line(number: int, act: Callable[[], object]) -> Iterator[list[int]]:
    """Call *act* at the line *number* of zlmdb that the block comes to; the list gives how many there were."""
    count = [0]

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        if event == "line":
            count[0] += 1
            if count[0] == number:
                act()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before)


class Other(threading.Thread):
    """Does *work*, of which *wrong* has what it must not raise."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self.work = work
        self.wrong: Optional[BaseException] = None

    def begin(self) -> None:
        """Start, and give it the time to end, unless it has to wait for this thread."""
        self.start()
        self.join(PAUSE)

    def run(self) -> None:
        self.wrong = raised(self.work)


def raised(work: Callable[[], object]) -> Optional[BaseException]:
    """What *work* raises, unless it says that the database is closed or cannot be closed now."""
    try:
        work()
    except (zlmdb.DatabaseClosed, zlmdb.DatabaseInUse):
        return None
    except BaseException as error:
        return error
    return None


@pytest.mark.once
@traces_instructions
@pytest.mark.parametrize("closes", ["meanwhile", "first"])
@pytest.mark.parametrize("way", WAYS)
def test_a_database_that_is_closed_at_any_moment_is_used_or_says_so(way: str, closes: str, tmp_path: Path) -> None:
    """Closed by another thread in the middle of its use, or used by another thread while it is being closed."""

    def once(number: int) -> int:
        db = zlmdb.open(tmp_path / f"{number}", Store, durability="none")
        with db.write() as t:
            t.users[1], t.sessions[1], t.numbers[1] = User("a"), User("s", 1.0), 1
            t.jobs.put("x")
        works: list[Callable[[], object]] = [lambda: WAYS[way](db), db.close]
        if closes == "first":
            works.reverse()
        other = Other(works[1])
        with at_line(number, other.begin) as count:
            wrong = raised(works[0])
        if other.ident is not None:
            other.join(20)
            assert not other.is_alive()
        db.close()
        assert (wrong, other.wrong) == (None, None)
        return count[0]

    lines = once(0)
    for number in range(1, lines + 1, max(1, lines // POINTS)):
        once(number)


@pytest.mark.once
@traces_instructions
@pytest.mark.parametrize("alone", [False, True])
def test_a_writer_that_begins_after_a_close_has_looked_says_that_it_is_closed(
    alone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had looked at the lock file before that was closed, and got the error of the system, or of a closed map."""
    monkeypatch.setattr("zlmdb.store.processlock._LOOK_AGAIN", -1.0 if alone else 60.0)

    def once(number: int) -> int:
        db = zlmdb.open(tmp_path / f"{number}", Store, durability="none")
        for _ in range(3):
            block(db)
        reached, closed, count = threading.Event(), threading.Event(), [0]
        store: Any = db._open_store
        look = store._check_rest

        def trace(frame: Any, event: str, arg: Any) -> Any:
            if not frame.f_code.co_filename.endswith(("schemawrite.py", "processlock.py", "writerlock.py")):
                return None
            if event == "line":
                count[0] += 1
                if count[0] == number:
                    reached.set()
                    closed.wait(20)
            return trace

        def work() -> None:
            sys.settrace(trace)
            try:
                block(db)
            finally:
                sys.settrace(None)
                reached.set()

        other = Other(work)

        def looks() -> None:
            look()
            other.start()
            reached.wait(PAUSE)

        monkeypatch.setattr(store, "_check_rest", looks)
        db.close()
        closed.set()
        other.join(20)
        assert not other.is_alive()
        assert other.wrong is None
        return count[0]

    number = 15  # before, it has not looked at anything
    while once(number) >= number:
        number += 1
    assert number > 20


def test_closing_names_the_blocks_that_wait_for_the_writer(tmp_path: Path) -> None:
    db = zlmdb.open(tmp_path, Store)

    def waits() -> None:
        with db.write(timeout=20):
            pass

    with db.write():
        other = Other(waits)
        other.start()
        while not (db._open_store.writer._waiters or db._open_store.turns):
            time.sleep(0.001)
        with pytest.raises(zlmdb.DatabaseInUse) as caught:
            db.close()
    for what in "open>, begun at", "about to begin>, asked for at":
        assert re.search(rf", {what} [^,]*test_closing.py:", str(caught.value))
    assert "not open" not in str(caught.value)
    other.join(20)
    assert other.wrong is None
    db.close()


def test_a_database_that_is_closed_while_it_is_compacted_is_closed(tmp_path: Path) -> None:
    """Each of the two threads has a lock that the other one needs, unless both take them in the same order."""
    db = zlmdb.open(tmp_path, Store)
    with db.write() as t:
        t.numbers.update({number: number for number in range(100)})
    closing: list[Other] = []

    def told(*_: object) -> None:
        if not closing:
            closing.append(Other(db.close))
            closing[0].begin()

    compacting = Other(lambda: db.compact(progress=told))
    compacting.start()
    compacting.join(20)
    for other in (compacting, *closing):
        other.join(20)
        assert not other.is_alive()
        assert other.wrong is None
    with zlmdb.open(tmp_path, Store) as again, again.read() as t:
        assert len(t.numbers) == 100


# -- with time for others to end -----------------------------------------------------------------------------------


class Until(threading.Thread):
    """Does *work* again and again, until it raises."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self.work = work
        self.error: Optional[BaseException] = None
        self.began = threading.Event()
        self.start()

    def run(self) -> None:
        try:
            while True:
                self.work()
                self.began.set()
        except BaseException as error:
            self.error = error


def write(db: Any) -> None:
    with db.write() as t:
        t.numbers.increment(1)


@pytest.fixture(params=["full", "none"])
def used(request: Any, tmp_path: Path) -> Iterator[Any]:
    with zlmdb.open(tmp_path, Store, durability=request.param) as db:
        write(db)
        yield db


def test_close_with_a_timeout_ends_threads_that_never_stop(used: Any) -> None:
    """Each of them is told that the database is being closed, or is closed, and by nothing else."""
    db = used
    ways = [read_number, write, *(WAYS[way] for way in ("get", "run", "arun", "aread", "submit"))]
    others = [Until(partial(way, db)) for way in [*ways, lambda db: db.auto.numbers.increment(2)]]
    for other in others:
        assert other.began.wait(20)
    db.close(timeout=20)
    assert not db.is_open
    for other in others:
        other.join(20)
        assert type(other.error) is zlmdb.DatabaseClosed, other.error


def read_number(db: Any) -> None:
    with db.read() as t:
        assert t.numbers[1]


def test_close_with_a_timeout_ends_beside_threads_that_do_not_give_up(used: Any) -> None:
    db, stopped = used, threading.Event()

    def tries() -> None:
        for way in (read_number, write, WAYS["get"], WAYS["run"]):
            raised(lambda way=way: way(db))
        if stopped.is_set():
            raise StopIteration

    others = [Until(tries) for _ in range(4)]
    try:
        for other in others:
            assert other.began.wait(20)
        db.close(timeout=20)
        assert not db.is_open
    finally:
        stopped.set()
    for other in others:
        other.join(20)
        assert type(other.error) is StopIteration


class Open(threading.Thread):
    """Has a block of *begin* open, from `entered` on until `end`; *inside* is called before it ends."""

    def __init__(self, begin: Callable[[], Any], inside: Callable[[Any], object]) -> None:
        super().__init__(daemon=True)
        self.begin, self.inside = begin, inside
        self.entered, self.end = threading.Event(), threading.Event()
        self.error: Optional[BaseException] = None
        self.start()
        assert self.entered.wait(20)

    def run(self) -> None:
        try:
            with self.begin() as t:
                self.entered.set()
                assert self.end.wait(20)
                self.inside(t)
        except BaseException as error:
            self.error = error


def is_closing(db: Any) -> bool:
    """Whether it is, soon."""
    end = time.monotonic() + 20
    while db._store is not None and db._store.closing is None:
        assert time.monotonic() < end
        time.sleep(0.001)
    return db._store is not None


@pytest.mark.parametrize("begin", ["read", "write"])
def test_what_is_open_goes_on_while_the_database_is_being_closed(used: Any, begin: str) -> None:
    """It binds tables, has savepoints, and begins what it needs besides; others are told so at once."""
    db = used

    def inside(t: Any) -> None:
        assert t.numbers[1] == 1
        assert not list(t.users.by_name.select())
        read_number(db)
        assert db.auto.numbers[1] == 1
        if begin == "write":
            with t.txn.savepoint():
                t.users[1] = User("a")
            t.sessions[1] = User("s")

    block = Open(getattr(db, begin), inside)
    closing = Other(lambda: db.close(timeout=20))
    closing.start()
    assert is_closing(db)
    for way in (read_number, WAYS["get"], WAYS["run"], WAYS["submit"], WAYS["arun"], WAYS["aread"], WAYS["stats"]):
        with pytest.raises(zlmdb.DatabaseClosed, match="is being closed"):
            way(db)
    block.end.set()
    block.join(20)
    closing.join(20)
    assert (block.error, closing.wrong, db.is_open) == (None, None, False)
    with zlmdb.open(db.dbpath, Store, durability=db._opening.options.durability) as again, again.read() as t:
        assert len(t.users) == (begin == "write")


def test_a_database_whose_time_to_close_is_over_goes_on(tmp_path: Path) -> None:
    db = zlmdb.open(tmp_path, Store, durability="commit", flush_every=1000)
    write(db)
    block = Open(db.read, read_number)
    with pytest.raises(zlmdb.DatabaseInUse, match=r"after the timeout of 0.01 s \(1\).*test_closing.py"):
        db.close(timeout=0.01)
    for close in (partial(db.close, timeout=0), db.close):
        with pytest.raises(zlmdb.DatabaseInUse):
            close()
    write(db)
    assert db.submit(lambda t: t.numbers[1]).result(20) == 2
    assert [thread for thread in threading.enumerate() if thread.name == "zlmdb-flush"]
    block.inside = lambda t: None
    block.end.set()
    block.join(20)
    assert block.error is None
    db.close(timeout=0)
    assert not db.is_open
    db.close(timeout=0)


def test_close_with_a_timeout_does_not_wait_for_its_own_thread(used: Any) -> None:
    with used.read() as t:
        with pytest.raises(zlmdb.DatabaseInUse, match="open transactions in this thread"):
            used.close(timeout=1000)
        assert t.numbers[1] == 1
    write(used)


def test_what_was_submitted_is_stored_before_a_database_is_closed(used: Any) -> None:
    db, begun, go = used, threading.Event(), threading.Event()

    def slow(t: Any) -> int:
        begun.set()
        assert go.wait(20)
        return len(t.users)

    futures = [db.submit(slow)]
    assert begun.wait(20)
    futures += [db.submit(lambda t: t.numbers.increment(1)) for _ in range(10)]
    with pytest.raises(zlmdb.DatabaseInUse):
        db.close(timeout=0.01)
    assert not futures[0].done()
    closing = Other(lambda: db.close(timeout=20))
    closing.start()
    assert is_closing(db)
    go.set()
    closing.join(20)
    assert [future.result(0) for future in futures] == [0, *range(2, 12)]
    assert (closing.wrong, db.is_open) == (None, False)


def test_blocks_that_wait_for_the_writer_do_not_begin_while_a_database_is_being_closed(used: Any) -> None:
    db = used
    block = Open(db.write, lambda t: t.numbers.increment(1))
    others = [Until(partial(way, db)) for way in (write, WAYS["run"]) for _ in range(2)]
    while len([one for one in db._open_store.live.alive() if one.active]) < 3:
        time.sleep(0.001)
    closing = Other(lambda: db.close(timeout=20))
    closing.start()
    assert is_closing(db)
    block.end.set()
    for other in (block, *others, closing):
        other.join(20)
        assert not other.is_alive()
    assert [type(other.error) for other in others] == [zlmdb.DatabaseClosed] * 4
    assert (block.error, closing.wrong, db.is_open) == (None, None, False)
    with zlmdb.open(db.dbpath, Store) as again:
        assert again.auto.numbers[1] == 2


@pytest.mark.parametrize("how", ["before", "meanwhile", "shared"])
def test_other_databases_of_the_file_stay_open(used: Any, how: str) -> None:
    db = used
    durability = db._opening.options.durability
    opened: Callable[[], Any] = partial(zlmdb.open, db.dbpath, Store, durability=durability)
    if how == "shared":
        opened = partial(zlmdb.Database.open, db.dbpath, sync=durability == "full")
    block = Open(db.read, read_number)
    other = opened() if how == "before" else None
    closing = Other(lambda: db.close(timeout=20))
    closing.start()
    if other is None:
        assert is_closing(db)
        other = opened()
    closing.join(20)
    assert (closing.wrong, db.is_open, other.is_open) == (None, other is db, True)
    write(other)
    block.inside = lambda t: None
    block.end.set()
    block.join(20)
    other.close(timeout=20)
    assert block.error is None


def test_a_task_closes_a_database_beside_other_tasks(used: Any) -> None:
    db = used

    async def main() -> list[Any]:
        async def goes_on() -> Any:
            while True:
                await db.arun(lambda t: t.numbers.increment(1))
                await db.aread(lambda t: t.numbers[1])

        tasks = [asyncio.ensure_future(goes_on()) for _ in range(5)]
        await asyncio.sleep(PAUSE)
        await asyncio.get_running_loop().run_in_executor(None, lambda: db.close(timeout=20))
        return await asyncio.gather(*tasks, return_exceptions=True)

    assert {type(error) for error in asyncio.run(main())} == {zlmdb.DatabaseClosed}
    assert not db.is_open


@pytest.mark.parametrize("timeout", [-1, "5", True, float("nan")])
def test_a_timeout_of_close_is_seconds(used: Any, timeout: Any) -> None:
    error = TypeError if isinstance(timeout, str) else ValueError
    with pytest.raises(error, match="timeout=.*: expected seconds"):
        used.close(timeout=timeout)
    write(used)
