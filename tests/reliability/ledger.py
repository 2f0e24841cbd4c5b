"""The database that is abused: what its content is after any number of transactions is known in advance.

Transaction *n* changes two tables with indexes and the record of its own number, so that half a transaction shows.
"""

from __future__ import annotations

import hashlib
import random
from types import SimpleNamespace
from typing import Any, NamedTuple

import zlmdb

KEYS = 80
KEPT = 40  # transactions in the log


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


class Ledger(zlmdb.Schema):
    items: Items
    log: Log
    state: State


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
    tables.log[n] = {"n": n, "seed": rnd.randrange(1 << 30)}
    tables.log.pop(n - KEPT, None)
    tables.state["n"] = n


class Model:
    """The digests of the content after 0, 1, 2, ... transactions."""

    def __init__(self) -> None:
        self._tables = SimpleNamespace(items={}, log={}, state={})
        self._digests = [digest(self._tables)]

    def after(self, n: int) -> str:
        """The digest after *n* transactions."""
        while len(self._digests) <= n:
            step(self._tables, len(self._digests))
            self._digests.append(digest(self._tables))
        return self._digests[n]


def digest(tables: Any) -> str:
    """A digest of the whole content."""
    content = [sorted(table.items()) for table in (tables.items, tables.log, tables.state)]
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
    return "" if report.ok else f"check: {report.problems[0].text}"
