"""Tables that a program keeps after their transaction: what is done with them never reaches a later one."""

from __future__ import annotations

import gc
import platform
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import zlmdb


@dataclass
class User:
    name: str
    age: int


class Users(zlmdb.Table[int, User]):
    """Users by number."""

    by_age = zlmdb.Index[int]("age")


class Store(zlmdb.Schema):
    users: Users
    notes: zlmdb.Table[int, str]
    more: zlmdb.Table[int, str]


USES: dict[str, Callable[[Any], object]] = {
    "get": lambda users: users.get(1),
    "iterate": list,
    "put": lambda users: users.__setitem__(1, User("bob", 2)),
    "delete": lambda users: users.__delitem__(1),
    "pop": lambda users: users.pop(1),
    "update": lambda users: users.update({2: User("bob", 2)}),
    "clear": lambda users: users.clear(),
    "edit": lambda users: users.edit(1).__enter__(),
    "change": lambda users: users.change(1, lambda user: user),
    "where": lambda users: list(users.where(lambda user: user.age > 1)),
    "delete where": lambda users: users.where(lambda user: user.age > 1).delete(),
    "index": lambda users: list(users.by_age.select()),
    "put many": lambda users: users.put_many([(2, User("bob", 2))]),
    "append": lambda users: users.put_many([(2, User("bob", 2))], append=True),
    "truncate": lambda users: users.truncate(),
    "savepoint": lambda users: users.txn.savepoint().__enter__(),
    "raw": lambda users: users.txn.put(b"a", b"b"),
}


@pytest.fixture
def db(make_db: Callable[..., Any]) -> Any:
    return make_db(Store)


def kept_table(db: Any, write: bool, tables: int) -> Any:
    """A table of a block that is over, which used so many."""
    with db.write() if write else db.read() as t:
        others = [t.notes, t.more][: tables - 1]
        assert len(others) == tables - 1
        return t.users


@pytest.mark.parametrize("tables", [1, 3])
@pytest.mark.parametrize("name", USES)
def test_a_table_of_an_earlier_block_does_nothing_in_a_later_one(db: Any, name: str, tables: int) -> None:
    with db.write() as t:
        t.users[1] = User("ann", 30)
    users = kept_table(db, write=True, tables=tables)
    with db.write() as t:
        t.notes[1] = "a"
        with pytest.raises(zlmdb.TransactionClosed):
            USES[name](users)
        t.users[3] = User("cid", 50)
    with db.read() as t:
        assert (dict(t.users), dict(t.notes)) == ({1: User("ann", 30), 3: User("cid", 50)}, {1: "a"})


@pytest.mark.parametrize("name", USES)
def test_nor_in_one_of_another_thread(db: Any, name: str) -> None:
    with db.write() as t:
        t.users[1] = User("ann", 30)
    users = kept_table(db, write=True, tables=1)
    found: list[Exception] = []

    def use() -> None:
        try:
            USES[name](users)
        except Exception as error:
            found.append(error)

    with db.write() as t:
        t.notes[1] = "a"
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
    assert [type(error) for error in found] == [zlmdb.TransactionClosed]
    with db.read() as t:
        assert (dict(t.users), dict(t.notes)) == ({1: User("ann", 30)}, {1: "a"})


@pytest.fixture
def no_collector() -> Any:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


counted = pytest.mark.skipif(
    platform.python_implementation() != "CPython",
    reason="references are not counted: a lost read stays open until the collector finds it",
)


@counted
@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("tables", [1, 3])
def test_a_kept_table_keeps_no_later_read_open(db: Any, tables: int) -> None:
    users = kept_table(db, write=False, tables=tables)
    db.read()  # begins, and is lost
    db.close(timeout=10)
    with pytest.raises(zlmdb.TransactionClosed):
        users.get(1)


@counted
@pytest.mark.usefixtures("no_collector")
def test_nor_does_one_that_nobody_keeps_when_another_table_is_made(db: Any) -> None:
    with db.read() as t:
        assert not list(t.users.by_age.select())
    del t
    made = db.table("made", int, int)
    with db.write() as t:
        t[made][1] = 1
    del t
    db.read()  # begins, and is lost
    db.close(timeout=10)
