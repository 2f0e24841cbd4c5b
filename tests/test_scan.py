"""An iteration ends whatever its body writes: it visits what was there when it began, once, and nothing else."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Callable

import pytest

import zlmdb
from zlmdb.store.access import NOBODY
from zlmdb.store.blocks import COUNTS_REFERENCES

pytestmark = pytest.mark.twice  # what engines and tables do does not depend on the version of Python


@dataclass
class User:
    name: str
    age: int


class Users(zlmdb.Table[int, User]):
    by_age = zlmdb.Index[int]("age")
    by_name = zlmdb.UniqueIndex[str]("name")


class Names(zlmdb.Table[str, User]):
    """Keys of any length: the entries of its index hold them as values, too."""

    by_age = zlmdb.Index[int]("age")


class Store(zlmdb.Schema):
    users: Users
    names: Names
    numbers: zlmdb.Table[int, int]
    other: zlmdb.Table[int, int]


def fill(t: Any, count: int) -> None:
    for i in range(count):
        t.users[i] = User(f"user {i:04}", i % 50)
        t.names[f"key {i:04}"] = User(f"user {i:04}", i % 50)
        t.numbers[i] = i


@pytest.fixture
def db(make_db: Callable[..., Any]) -> Any:
    db = make_db(Store)
    with db.write() as t:
        fill(t, 100)
    return db


@pytest.fixture
def t(db: Any) -> Iterator[Any]:
    with db.write() as tables:
        yield tables


directions = pytest.mark.parametrize("reverse", [False, True])


# -- what every program writes first -----------------------------------------------------------------------------------


def test_the_first_loop_that_people_write_ends(t: Any) -> None:
    seen = []
    for key, user in t.users.by_age.select():
        seen.append(key)
        user.age += 10
        t.users[key] = user
    assert sorted(seen) == list(range(100))
    assert [user.age for user in t.users.values()] == [i % 50 + 10 for i in range(100)]


@pytest.mark.parametrize("read", ["keys", "values", "items"])
def test_adding_to_a_table_while_it_is_read_ends(t: Any, read: str) -> None:
    count = 0
    for _ in getattr(t.numbers, read)():
        count += 1
        t.numbers.add(0)
        t.numbers.put_many([(1000 + count * 10 + i, 0) for i in range(3)])
    assert count == 100
    assert len(t.numbers) == 500


def test_put_many_of_what_is_read_from_the_same_table_ends(t: Any) -> None:
    assert t.numbers.put_many((key + 1, value) for key, value in t.numbers.items()) == 100
    assert dict(t.numbers) == dict.fromkeys(range(101), 0)  # each value is read as it is when its turn comes
    assert t.numbers.put_many((key + 1000, value) for key, value in t.numbers.select(50)) == 51
    rows = iter(t.numbers.select())
    assert next(rows) == (0, 0)
    assert t.numbers.put_many((key + 5000, value) for key, value in rows) == 151
    assert len(t.numbers) == 101 + 51 + 151


def test_a_filter_visits_a_record_once_although_the_body_moves_it_ahead(t: Any) -> None:
    seen = []
    for key, user in t.users.by_age.where(lambda user: user.age < 1000):
        seen.append(key)
        t.users[key] = replace(user, age=user.age + 7)
    assert sorted(seen) == list(range(100))
    for key, user in t.users.where(lambda user: user.age < 1000):
        t.users[key + 1000] = User(f"new {user.name}", 3)
    assert len(t.users) == 200


def test_many_records_are_updated_while_a_table_is_read(t: Any) -> None:
    t.numbers.put_many([(i, i) for i in range(5000)])
    for key, value in t.numbers.items():
        t.numbers[key] = value + 1
        t.numbers[10_000 + key] = 0
    assert list(t.numbers.values())[:5000] == [i + 1 for i in range(5000)]
    assert len(t.numbers) == 10_000


@directions
def test_a_record_that_moved_is_visited_although_its_other_fields_are_edited(t: Any, reverse: bool) -> None:
    """In a classic file, that another index has other entries was taken for a deletion from this one."""
    seen = []
    for key, _ in t.users.by_name.select(reverse=reverse):
        seen.append(key)
        if len(seen) == 1:  # the other one moves from ahead to behind, and stays there
            t.users[30] = User("z" if reverse else "a", 5)
            with t.users.where(lambda k, u: k == 30).edit() as users:
                for user in users:
                    user.age = 6
    assert sorted(seen) == list(range(100))


# -- against a model ---------------------------------------------------------------------------------------------------


class Body:
    """Does things to the users at random, and knows which had to be visited."""

    def __init__(
        self, t: Any, table: Any, dice: random.Random, within: Callable[[Any, User], bool], drops: bool
    ) -> None:
        self.t, self.table, self.dice, self.within, self.drops = t, table, dice, within, drops
        self.initial = {key for key, user in table.items() if within(key, user)}
        self.disturbed: set[Any] = set()  # deleted, or out of the range, at some time
        self.number = 0

    def key(self) -> Any:
        number = self.dice.randrange(160)
        return number if self.table._name == "users" else f"key {number:04}"

    def put(self, key: Any) -> None:
        self.number += 1
        user = User(f"name {self.dice.randrange(1000):04} {self.number}", self.dice.randrange(60))
        self.table[key] = user
        if not self.within(key, user):
            self.disturbed.add(key)

    def delete(self, key: Any) -> None:
        self.table.pop(key, None)
        self.disturbed.add(key)

    def step(self) -> None:
        for _ in range(self.dice.choice((0, 0, 1, 1, 2, 8))):
            self.dice.choice((self.put, self.put, self.put, self.delete))(self.key())
        if self.dice.random() < 0.05:
            disturbed = set(self.disturbed)
            with suppress(ZeroDivisionError), self.t.txn.savepoint():
                for key in (self.key(), self.key()):
                    for _ in range(3):
                        self.dice.choice((self.put, self.delete))(key)
                if self.dice.random() < 0.5:
                    self.disturbed = disturbed
                    raise ZeroDivisionError
        if self.dice.random() < 0.05:
            self.t.other[self.number] = 1
        if self.dice.random() < 0.02:
            other: Any = iter(self.table.by_age.select())  # another scan
            next(other, None)
            if not self.drops:
                other.close()


SELECTIONS: dict[str, tuple[Callable[..., Any], Callable[[Any, User], bool]]] = {
    "users": (lambda t, **k: t.users.select(**k), lambda key, user: True),
    "users range": (lambda t, **k: t.users.select(20, 120, **k), lambda key, user: 20 <= key < 120),
    "users by age": (lambda t, **k: t.users.by_age.select(**k), lambda key, user: True),
    "users by age range": (lambda t, **k: t.users.by_age.select(10, 40, **k), lambda key, user: 10 <= user.age < 40),
    "users by name": (lambda t, **k: t.users.by_name.select(**k), lambda key, user: True),
    "names": (lambda t, **k: t.names.select(**k), lambda key, user: True),
    "names by age": (lambda t, **k: t.names.by_age.select(**k), lambda key, user: True),
    "names by age range": (lambda t, **k: t.names.by_age.select(10, 40, **k), lambda key, user: 10 <= user.age < 40),
}


@directions
@pytest.mark.parametrize("what", SELECTIONS)
@pytest.mark.parametrize("filtered", [False, True])
def test_whatever_the_body_does_each_record_is_visited_once(t: Any, what: str, reverse: bool, filtered: bool) -> None:
    select, within = SELECTIONS[what]
    drops = COUNTS_REFERENCES or what == "users"  # else collections take longer than all else here
    for seed in range(2 if COUNTS_REFERENCES else 1):
        t.users.clear()
        t.names.clear()
        fill(t, 100)
        body = Body(t, getattr(t, what.split()[0]), random.Random(f"{what} {reverse} {seed}"), within, drops)
        rows = select(t, reverse=reverse)
        seen = []
        for key, user in rows.where(lambda user: user.age >= 0) if filtered else rows:
            assert within(key, user)
            assert body.table[key] == user  # as it is when its turn comes
            seen.append(key)
            body.step()
        assert len(set(seen)) == len(seen), "a record was visited twice"
        assert set(seen) <= body.initial, "a record that the body inserted was visited"
        assert body.initial - body.disturbed <= set(seen), "a record was not visited"
        if drops and not COUNTS_REFERENCES:
            gc.collect()  # with which iterators end that nobody has any more
        assert t.txn._open_scans().journal == []
        assert body.table._writer is not NOBODY


def test_records_that_stay_in_their_place_take_no_memory_while_a_scan_replaces_them(db: Any) -> None:
    """A step of a migration that rewrote three million records by a loop took a kilobyte for each, for four indexes."""
    with db.write() as t:
        older = int(db.layout == "tables")  # a classic file has indexes and records in one keyspace
        for key, user in t.users.items():
            t.users[key] = replace(user, age=user.age + older)
            assert t.txn._open_scans().journal == []
        for key, user in t.users.by_age.select():
            t.users[key] = replace(user, name=user.name + "!" * older)
            assert t.txn._open_scans().journal == []
        for key, user in t.users.by_age.select():
            t.users[key] = replace(user, age=user.age + 1)
            (moved,) = t.txn._open_scans().journal
            assert moved.old != moved.new
            break


# -- whoever writes ----------------------------------------------------------------------------------------------------


def test_two_maps_of_one_slot_know_of_each_other(make_db: Callable[..., Any]) -> None:
    one, other = zlmdb.MapStringString(7), zlmdb.MapStringString(7)
    db = make_db(type("Empty", (zlmdb.Schema,), {}))
    with db.begin(write=True) as txn:
        for i in range(10):
            one[txn, f"k{i}"] = "v"
        seen = []
        for key in one.select(txn, return_values=False):
            seen.append(key)
            other[txn, key + "x"] = "new"
            txn.put(b"\x00\x07" + key.encode() + b"y", b"raw")
        assert seen == [f"k{i}" for i in range(10)]
        assert one.count(txn) == 30


def test_writes_to_another_table_leave_a_scan_as_fast_as_it_is(t: Any) -> None:
    rows = t.numbers.select()._scan()
    keys = iter(rows.keys())
    next(keys)
    shared = t.other._storage.space == t.numbers._storage.space  # in a classic file all tables are in one keyspace
    t.other[5] = 5
    assert rows.paused == shared
    t.numbers[5] = 5
    assert rows.paused
    rows.close()


# -- the end of the transaction ----------------------------------------------------------------------------------------

READS: dict[str, Callable[[Any], Iterator[Any]]] = {
    "pairs": lambda t: iter(t.users.select()),
    "range": lambda t: iter(t.users.select(1, 50)),
    "keys": lambda t: iter(t.users.keys()),
    "values": lambda t: iter(t.users.values()),
    "index": lambda t: iter(t.users.by_age.select()),
    "filter": lambda t: iter(t.users.where(lambda user: user.age >= 0)),
    "index filter": lambda t: iter(t.users.by_name.where(lambda user: user.age >= 0).keys()),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("paused", [False, True])
def test_an_iteration_never_goes_on_in_a_later_transaction(db: Any, read: str, write: bool, paused: bool) -> None:
    with db.write() if write else db.read() as t:
        rows = READS[read](t)
        next(rows)
        if write and paused:
            t.users[50] = User("changed", 50)
            next(rows)
    for later in (db.read, db.write):
        with later() as t:
            list(t.users.select())
            with pytest.raises((zlmdb.TransactionClosed, StopIteration)) as caught:
                next(rows)
    del caught
    with db.write() if write else db.read() as t:
        rows = READS[read](t)
        next(rows)
    with db.read() as t, pytest.raises(zlmdb.TransactionClosed):
        next(rows)


def test_what_the_body_raises_and_what_a_caller_throws_in_are_not_swallowed(t: Any) -> None:
    rows = iter(t.users.select())
    generator: Any = t.users.select()._read(zlmdb.tables.keyrange.pairs_of)
    next(generator)
    t.users[1] = User("changed", 1)
    with pytest.raises(ZeroDivisionError):
        generator.throw(ZeroDivisionError())
    next(rows)
    t.users[2] = User("changed too", 1)
    assert len(list(rows)) == 99
