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
