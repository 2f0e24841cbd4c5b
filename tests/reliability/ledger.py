"""The database that is abused: what its content is after any number of transactions is known in advance.

Transaction *n* changes tables with indexes of each kind, links, a change feed and records that expire, and the record
of its own number, so that half a transaction shows.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Optional

import zlmdb
from tests.office import Office, Plain, change

KEYS = 80
KEPT = 40  # transactions in the log
EXPIRED, LATER, LATEST = 1.0, 4e9, 5e9  # in seconds since 1970


class Item(NamedTuple):
    name: str
    group: int
    data: bytes


class Items(zlmdb.Table[int, zlmdb.Checked[zlmdb.Msgpack[Item]]]):
    by_name = zlmdb.UniqueIndex[str]("name")
    by_group = zlmdb.Index[int]("group")


class Log(zlmdb.Table[int, zlmdb.Checked[zlmdb.Msgpack[dict[str, int]]]]):
    by_parity = zlmdb.Index[int](lambda entry: entry["n"] % 2, version=1)


class State(zlmdb.Table[str, zlmdb.Checked[int]]):
    by_value = zlmdb.Index[int](lambda number: number, version=1)


class Mark(NamedTuple):
    owner: str
    tags: list[str]
    group: int
    until: Optional[float]


class Marks(zlmdb.Table[int, zlmdb.Checked[zlmdb.Msgpack[Mark]]], expires="until", feed=zlmdb.Feed(max_count=300)):
    """Of which some have expired when they are stored, and are swept by later transactions."""

    by_owner = zlmdb.UniqueIndex[str]("owner.casefold()")
    by_tag = zlmdb.Index[str]("tags", each=True)
    by_group = zlmdb.Index(zlmdb.desc("group"), where=lambda r: r.group > 1, carries=("owner", "until"))


class Ledger(Office):
    items: Items
    log: Log
    state: State
    marks: Marks


def step(tables: Any, n: int) -> None:
    """Transaction *n*, on the tables of a database or on plain dicts."""
    rnd = random.Random(n)
    for i in range(6):
        key = rnd.randrange(KEYS)
        if rnd.random() < 0.3:
            tables.items.pop(key, None)
        else:
            size = 9000 if rnd.random() < 0.03 else rnd.randrange(300)
            tables.items[key] = Item(f"{n} {i}", rnd.randrange(5), bytes([n % 256]) * size)
    with suppress(zlmdb.ConstraintError):  # a mark that has not expired may have this owner
        owner, until = f"Owner {rnd.randrange(9)}", rnd.choice([EXPIRED, EXPIRED, LATER, None])
        tables.marks[rnd.randrange(6)] = Mark(owner, rnd.choices("abcd", k=2), rnd.randrange(4), until)
    if n % 4 == 0:
        tables.marks.pop(rnd.randrange(6), None)
    change(tables, n)
    tables.log[n] = {"n": n, "seed": rnd.randrange(1 << 30)}
    tables.log.pop(n - KEPT, None)
    tables.state["n"] = n


class PlainMarks(dict[int, Mark]):
    """The marks as a dict: what has expired is not there."""

    def __setitem__(self, key: int, mark: Mark) -> None:
        if any(other.owner == mark.owner for at, other in self.items() if at != key):
            raise zlmdb.ConstraintError
        self.pop(key, None)
        if mark.until != EXPIRED:
            super().__setitem__(key, mark)


class PlainLedger(Plain):
    """The tables as dicts."""

    def __init__(self) -> None:
        super().__init__()
        self.items: dict[int, Item] = {}
        self.log: dict[int, dict[str, int]] = {}
        self.state: dict[str, int] = {}
        self.marks = PlainMarks()


class Model:
    """The digests of the content after 0, 1, 2, ... transactions."""

    def __init__(self) -> None:
        self._tables = PlainLedger()
        self._digests = [digest(self._tables)]

    def after(self, n: int) -> str:
        """The digest after *n* transactions."""
        while len(self._digests) <= n:
            step(self._tables, len(self._digests))
            self._digests.append(digest(self._tables))
        return self._digests[n]


def digest(tables: Any) -> str:
    """A digest of the whole content."""
    names = ("items", "log", "state", "marks", "people", "tasks", "notes")
    content = [sorted(getattr(tables, name).items()) for name in names]
    return hashlib.sha256(repr(content).encode()).hexdigest()


def reached(db: zlmdb.Database[Ledger]) -> tuple[int, str]:
    """The number of the last transaction that *db* has, and the digest of its content."""
    with db.read() as t:
        return t.state.get("n", 0), digest(t)


def wrong(db: zlmdb.Database[Ledger], model: Model, least: int, most: int) -> str:
    """What is wrong with *db*, which must hold the transactions up to one of *least* to *most*; or nothing."""
    n, found = reached(db)
    if not least <= n <= most:
        return f"transaction {n} is the last, expected {least} to {most}"
    if found != model.after(n):
        return f"the content is not that after transaction {n}"
    report = db.check()
    return f"check: {report.problems[0].text}" if report.problems else unlike_feed(db)


def unlike_feed(db: Any) -> str:
    """How the marks differ from what their feed tells, read backwards; and whether some stay longer than they may."""
    with at(db, 0.0) as t:
        marks: dict[int, Optional[Mark]] = dict(t.marks)
    for one in reversed(list(db.changes(Marks, after=db.changes(Marks).first() - 1))):
        if marks.get(one.key) != one.new:
            return f"the change {one.number} of the mark {one.key} left {one.new}, the next has {marks.get(one.key)}"
        marks[one.key] = one.old
    with at(db, LATEST) as t:
        return "" if all(mark.until is None for mark in t.marks.values()) else "there are expired marks"


@contextmanager
def at(db: Any, time: float) -> Iterator[Any]:
    """A snapshot at *time* by the clock of the database."""
    clock, db.clock = db.clock, lambda: time
    try:
        with db.read() as t:
            yield t
    finally:
        db.clock = clock
