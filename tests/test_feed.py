"""The change feed: each committed change once, in order, with what was before and after; who reads it misses none."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from threading import Event, Thread
from types import new_class
from typing import Annotated, Any, ClassVar, Optional
from uuid import UUID

import lmdb
import pytest

import zlmdb
from zlmdb.feed import log
from zlmdb.operations.salvage import salvage
from zlmdb.testing import kill_points

from .waiters import first_group_fails
from .workers import kill

pytestmark = pytest.mark.twice  # processes and what is in files, which no version of Python makes different

U = UUID("6c4ea3a1-6b5d-4d3c-9a55-000000000001")


@dataclass
class User:
    name: str
    age: int = 0


class Users(zlmdb.Table[int, User], feed=True):
    by_name = zlmdb.Index[str]("name")


class Logins(zlmdb.Table[str, int], feed=zlmdb.Feed(max_count=5)):
    pass


class Store(zlmdb.Schema):
    users: Users
    logins: Logins
    copies: zlmdb.Table[int, User]


class Boom(Exception):
    """What the tests raise."""


@pytest.fixture(params=["memory", "lmdb"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with zlmdb.open(None if request.param == "memory" else tmp_path / "db", Store, durability="none") as opened:
        yield opened


def told(changes: Any) -> list[tuple[Any, ...]]:
    return [(one.number, one.kind, one.key, one.old, one.new) for one in changes]


# -- what is recorded -----------------------------------------------------------------------------------------------


def test_writes_without_a_block_are_recorded(db: Any) -> None:
    """Those to a table without an index, too, which have a way of their own where nothing follows the records."""
    for number in range(4):  # the first ones find out how later ones are stored
        db.auto.logins["ann"] = number
    changes = [(change.old, change.new) for change in db.changes(Logins)]
    assert changes == [(None, 0), (0, 1), (1, 2), (2, 3)]


def test_every_statement_is_recorded_with_what_was_before_and_after(db: Any) -> None:
    ann, bob = User("ann"), User("bob")
    with db.write() as t:
        t.users[1] = ann
        t.users[1] = bob
        t.users.update({2: ann})
        assert t.users.pop(2) == ann
        t.users.put_many([(3, ann), (4, bob)])
        t.users.change(3, lambda user: None)
        with t.users.edit(4) as user:
            user.age = 7
        t.users.select(1, 2).delete()
        t.users.where(lambda user: user.age == 7).change(lambda user: User("eve"))
        t.users.where(lambda user: user.name == "eve").delete()
        t.users[5] = ann
        t.users[6] = ann
        t.users.clear()
        t.users.clear()  # of nothing
        t.users.setdefault(7, bob)
    old, eve = User("bob", 7), User("eve")
    assert told(db.changes(Users)) == [
        (1, "put", 1, None, ann),
        (2, "put", 1, ann, bob),
        (3, "put", 2, None, ann),
        (4, "delete", 2, ann, None),
        (5, "put", 3, None, ann),
        (6, "put", 4, None, bob),
        (7, "delete", 3, ann, None),
        (8, "put", 4, bob, old),
        (9, "delete", 1, bob, None),
        (10, "put", 4, old, eve),
        (11, "delete", 4, eve, None),
        (12, "put", 5, None, ann),
        (13, "put", 6, None, ann),
        (14, "clear", None, None, None),
        (15, "put", 7, None, bob),
    ]
    changes = list(db.changes(Users))
    assert [one.count for one in changes if one.kind == "clear"] == [2]
    assert [one.is_new for one in changes[:2]] == [True, False]
    assert db.check().ok


def test_nothing_is_recorded_of_what_is_undone_or_refused(db: Any) -> None:
    with db.write() as t:
        t.users[1] = User("ann")
        with suppress(KeyError), t.txn.savepoint():
            t.users[2] = User("bob")
            raise KeyError
        with t.txn.savepoint(), suppress(KeyError), t.txn.savepoint():
            t.users[3] = User("cid")
            raise KeyError
        with t.txn.savepoint():
            t.users[4] = User("dan")
        with pytest.raises(zlmdb.EncodeError):
            t.users[5] = "no user"
        del_missing = t.users.pop(99, None)
        assert del_missing is None
        t.users[6] = User("eve")
    with suppress(ValueError), db.write() as t:
        t.users[7] = User("fay")
        raise ValueError("stop")
    with db.write() as t:
        t.users[8] = User("gil")
    assert [(one.number, one.key) for one in db.changes("users")] == [(1, 1), (2, 4), (3, 6), (4, 8)]


def test_changes_of_one_transaction_have_its_number_in_all_tables(db: Any) -> None:
    before = datetime.now(timezone.utc)
    for n in range(2):
        with db.write() as t:
            t.users[n] = User("ann")
            t.logins["ann"] = n
            t.users[n] = User("bob")
    users, logins = list(db.changes(Users)), list(db.changes(Logins))
    assert [one.transaction for one in users[:3:2]] == [one.transaction for one in logins]
    assert users[0].transaction == users[1].transaction < users[2].transaction
    assert before <= users[0].time <= users[3].time <= datetime.now(timezone.utc)


def test_a_group_of_writers_is_recorded_in_the_order_of_their_functions(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Store, durability="none") as db:

        def store(n: int) -> Any:
            def work(t: Any) -> None:
                t.users[n] = User(f"u{n}")
                if n % 5 == 0:
                    raise ValueError(n)

            return work

        futures = [db.submit(store(n)) for n in range(40)]
        assert sum(one.exception() is None for one in futures) == 32
        changes = list(db.changes(Users))
        assert [one.key for one in changes] == [n for n in range(40) if n % 5]
        assert [one.number for one in changes] == list(range(1, 33))


def test_what_runs_late_after_a_commit_disturbs_no_change_of_the_next_writer(
    db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Functions after a commit run when the writer lock is free: the next transaction may be anywhere by then."""
    encode, stored, writing, ended = log.encode, Event(), Event(), Event()

    def encode_late(*change: Any) -> bytes:
        if stored.is_set():
            writing.set()
            assert ended.wait(20)
        return encode(*change)

    def first() -> None:
        with db.write() as t:
            t.txn.after_commit(lambda: stored.set() or writing.wait(20))
            t.users[1] = User("ann")
        ended.set()

    monkeypatch.setattr(log, "encode", encode_late)
    thread = Thread(target=first, daemon=True)
    thread.start()
    assert stored.wait(20)
    with db.write() as t:
        t.users[2] = User("bob")
    thread.join(20)
    assert [change.key for change in db.changes("users")] == [1, 2]


def test_the_feed_replayed_is_the_table(db: Any) -> None:
    """Random programs: transactions, savepoints, statements of all kinds."""
    rnd = random.Random(11)
    changes, model = db.changes(Users), {}
    for _ in range(60):
        try:
            with db.write() as t:
                for _ in range(rnd.randrange(6)):
                    step(t, rnd)
                if rnd.random() < 0.2:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        for one in changes:
            if one.kind == "clear":
                assert one.count == len(model)
                model.clear()
            else:
                assert model.get(one.key) == one.old
                model.pop(one.key, None)
                if one.kind == "put":
                    model[one.key] = one.new
        with db.read() as t:
            assert dict(t.users) == model
            assert changes.last(t) == changes.after
    assert changes.after > 40
    assert db.check().ok


def step(t: Any, rnd: random.Random) -> None:
    key, user = rnd.randrange(8), User(rnd.choice("abc"), rnd.randrange(9))
    kind = rnd.randrange(7)
    if kind == 0:
        t.users.pop(key, None)
    elif kind == 1:
        t.users.put_many([(key, user), (key + 1, user)])
    elif kind == 2:
        t.users.select(key, key + 2).delete()
    elif kind == 3 and rnd.random() < 0.2:
        t.users.clear()
    elif kind == 4:
        try:
            with t.txn.savepoint():
                step(t, rnd)
                step(t, rnd)
                if rnd.random() < 0.5:
                    raise KeyError
        except KeyError:
            pass
    else:
        t.users[key] = user


def test_a_table_without_a_feed_has_no_followers(db: Any) -> None:
    assert db._storages["copies"][1].followers == ()
    with db.write() as t:
        t.copies[1] = User("ann")
        assert t.copies._generated
        assert t.txn._hooks == []
    with pytest.raises(zlmdb.SchemaMismatch, match="no change feed"):
        db.changes("copies")


def test_a_name_that_is_misspelt_is_no_table_without_a_feed(db: Any) -> None:
    with pytest.raises(KeyError, match="no table 'user' in the file; did you mean 'users'?"):
        db.changes("user")


# -- reading --------------------------------------------------------------------------------------------------------


def fill(db: Any, count: int, first: int = 0) -> None:
    with db.write() as t:
        for n in range(first, first + count):
            t.users[n] = User(f"u{n}", n)


def test_reading_goes_on_where_it_was(db: Any) -> None:
    fill(db, 600)
    changes = db.changes("users", after=10)
    assert [one.number for _, one in zip(range(5), changes)] == [11, 12, 13, 14, 15]
    assert changes.after == 15
    assert [one.number for one in changes.take(2)] == [16, 17]
    assert [one.number for one in changes] == list(range(18, 601))
    assert list(changes) == []
    fill(db, 1)
    assert [(one.number, one.old) for one in changes] == [(601, User("u0"))]
    assert (changes.first(), changes.last()) == (1, 601)


def test_a_number_beyond_all_changes_and_a_name_that_is_no_text_are_no_errors_of_python(db: Any) -> None:
    fill(db, 2)
    assert len(db.changes(Users, after=0, timeout=0).take(1 << 62)) == 2
    assert len(db.changes(Users, after=0, timeout=0).take(1 << 70)) == 2
    with pytest.raises(ValueError, match="^consumer=.*expected a name of 1 to"):
        db.changes(Users, consumer="\ud800")


def test_a_consumer_that_begins_after_changes_that_are_not_there_is_not_entered(db: Any) -> None:
    fill(db, 2)
    for after in (3, 1 << 64):
        with pytest.raises(zlmdb.ChangesLost, match=f"changes after {after} were .* the feed ends with 2"):
            db.changes(Users, consumer="early", after=after)
    assert db.changes(Users).consumers() == {}, "what comes until then would count as acknowledged, and be removed"
    assert db.changes(Users, consumer="next", after=2).take() == []
    assert db.changes(Users, consumer="next", after=1 << 64).after == 2


def test_a_consumer_goes_on_after_what_it_acknowledged(db: Any) -> None:
    fill(db, 10)
    changes = db.changes(Users, consumer="index")
    for one in changes:
        if one.number == 4:
            changes.acknowledge(one)
    again = db.changes(Users, consumer="index", after=9)
    assert next(iter(again)).number == 5
    assert [one.number for one in again] == [6, 7, 8, 9, 10]
    again.acknowledge()
    again.acknowledge(3)  # which it has: nothing goes back
    assert db.changes(Users, consumer="index").after == 10
    assert db.changes(Users, consumer="new", after=7).after == 7
    assert again.consumers() == {"index": 10, "new": 7}
    again.forget()
    assert db.changes(Users, consumer="new").consumers() == {"new": 7}
    for wrong in (11, -1):
        with pytest.raises(ValueError, match="end with 10"):
            db.changes(Users, consumer="new").acknowledge(wrong)
    with pytest.raises(ValueError, match="named consumer"):
        db.changes(Users).acknowledge(3)
    for name in ("", "x" * 256):
        with pytest.raises(ValueError, match="1 to 255 bytes"):
            db.changes(Users, consumer=name)


def test_a_second_table_and_the_acknowledgement_are_one_transaction(db: Any) -> None:
    fill(db, 4)
    changes = db.changes(Users, consumer="copies")
    with suppress(KeyError), db.write() as t:
        for one in changes.take():
            t.copies[one.key] = one.new
        changes.acknowledge(t=t)
        raise KeyError
    changes = db.changes(Users, consumer="copies")
    assert changes.after == 0
    with db.write() as t:
        for one in changes.take():
            t.copies[one.key] = one.new
        changes.acknowledge(t=t)
    with db.read() as t:
        assert dict(t.copies) == dict(t.users)
    assert db.changes(Users, consumer="copies").after == 4


def copied(changes: Any, t: Any, then: Any = None) -> None:
    for one in changes.take(2):
        t.copies[one.key] = one.new
    changes.acknowledge(t=t)
    if then is not None:
        then()


@pytest.mark.parametrize("how", ["block", "savepoint", "abort", "loop", "run", "submit"])
def test_changes_that_were_taken_in_a_transaction_that_is_undone_are_given_again(db: Any, how: str) -> None:
    fill(db, 5)
    changes = db.changes(Users, consumer="copies")

    def fails() -> None:
        raise Boom

    with db.write() as t:
        copied(changes, t)
    with suppress(Boom):
        if how == "run":
            db.run(lambda t: copied(changes, t, fails))
        elif how == "submit":
            db.submit(lambda t: copied(changes, t, fails)).result()
        else:
            with db.write() as t:
                if how == "savepoint":
                    with suppress(Boom), t.txn.savepoint():
                        copied(changes, t, fails)
                elif how == "loop":
                    assert [one.number for one in changes] == [3, 4, 5]
                    fails()
                else:
                    copied(changes, t, fails if how == "block" else t.txn.abort)
    assert changes.after == 2
    with db.write() as t:
        copied(changes, t)
    assert changes.after == 4
    db.run(lambda t: copied(changes, t))
    with db.read() as t:
        assert dict(t.copies) == dict(t.users)


def test_changes_that_were_taken_in_a_group_that_is_not_stored_are_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zlmdb.open(tmp_path / "db", Store) as db:
        fill(db, 4)
        changes = db.changes(Users, consumer="copies")
        failed = first_group_fails(monkeypatch)
        for future in [db.submit(lambda t: copied(changes, t)) for _ in range(2)]:
            future.result(60)
        assert failed
        with db.read() as t:
            assert dict(t.copies) == dict(t.users)


def test_after_a_copy_of_the_table_the_feed_goes_on_with_the_next_change(db: Any) -> None:
    fill(db, 5)
    feed = db.changes(Users)
    with db.read() as t:
        copy, number = dict(t.users), feed.last(t)
        with db.write() as later:
            later.users[1] = User("eve")
        assert feed.last(t) == number == 5
    for one in db.changes(Users, after=number):
        copy[one.key] = one.new
    with db.read() as t:
        assert copy == dict(t.users)
    with zlmdb.open(None, Store) as other, other.read() as t, pytest.raises(ValueError, match="another database"):
        feed.last(t)


def test_types_are_not_needed_to_read(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Store) as db:
        fill(db, 1)
    with zlmdb.open(tmp_path) as db:
        [one] = db.changes("users")
        assert (one.key, one.new) == (0, {"name": "u0", "age": 0})
        with db.write() as t:
            with pytest.raises(zlmdb.IndexNotAttached):
                t["users"][1] = {"name": "u1"}
            t["logins"]["ann"] = 1
        assert [(one.key, one.new) for one in db.changes("logins")] == [("ann", 1)]
    with zlmdb.open(tmp_path, Store, readonly=True) as db:
        assert [one.new for one in db.changes(Users)] == [User("u0")]
        with pytest.raises(zlmdb.ReadonlyDatabase):
            db.changes(Users, consumer="index")
        with pytest.raises(TypeError, match="name of a table"):
            db.changes(7)


def test_one_transaction_may_write_by_two_classes(db: Any) -> None:
    from zlmdb.schema.undeclared import undeclared
    from zlmdb.tables.table import Table

    with db.write() as t:
        t.logins["a"] = 1
        other: Any = Table._bound(t.txn, undeclared(db._open_store, "logins"))
        other["b"] = 2
        t.logins["c"] = 3
    assert [one.key for one in db.changes(Logins)] == ["a", "b", "c"]


# -- removing -------------------------------------------------------------------------------------------------------


def test_writers_remove_what_is_more_than_the_feed_keeps(db: Any) -> None:
    for n in range(20):
        with db.write() as t:
            t.logins[f"l{n}"] = n
    changes = db.changes(Logins, after=15)
    assert (changes.first(), changes.last(), len(list(changes))) == (16, 20, 5)
    with pytest.raises(zlmdb.ChangesLost, match="16 is the oldest"):
        db.changes(Logins).take()
    behind = db.changes(Logins, after=15)
    fill_logins(db, 10)
    with pytest.raises(zlmdb.ChangesLost):
        list(behind)
    assert db.check().ok


def fill_logins(db: Any, count: int) -> None:
    with db.write() as t:
        for n in range(count):
            t.logins[f"m{n}"] = n


def test_a_consumer_that_missed_changes_copies_the_table_and_goes_on(db: Any) -> None:
    fill_logins(db, 9)
    changes = db.changes(Logins, consumer="copy")
    with pytest.raises(zlmdb.ChangesLost):
        changes.take()
    with db.read() as t:
        copy, number = dict(t.logins), changes.last(t)
    changes.acknowledge(number)
    with db.write() as t:
        t.logins["new"] = 1
    for one in changes:
        copy[one.key] = one.new
    with db.read() as t:
        assert copy == dict(t.logins)
    fill_logins(db, 9)
    changes = db.changes(Logins, consumer="copy")
    with suppress(KeyError), db.write() as t:
        changes.acknowledge(changes.last(t), t)
        raise KeyError
    with pytest.raises(zlmdb.ChangesLost):
        changes.take()
    with db.write() as t:
        changes.acknowledge(changes.last(t), t)
    assert changes.take() == []


def test_what_all_consumers_have_acknowledged_can_be_removed(db: Any) -> None:
    fill(db, 10)
    assert db.changes(Users).trim(acknowledged=True) == 0  # nobody has
    one, two = (db.changes(Users, consumer=name) for name in ("one", "two"))
    one.acknowledge(7)
    two.acknowledge(4)
    assert one.trim(acknowledged=True) == 4
    two.forget()
    assert one.trim(acknowledged=True) == 3
    assert one.trim(max_count=1) == 2
    assert one.trim() == 0  # as the class says: it keeps all
    assert one.trim(through=99) == 1
    assert (one.first(), one.last()) == (11, 10)
    fill(db, 1)
    assert one.last() == 11


def test_old_changes_are_removed(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns()
    with monkeypatch.context() as patched:
        patched.setattr(time, "time_ns", lambda: now - 3600 * 10**9)
        fill(db, 3)
    fill(db, 2)
    assert db.changes(Users).trim(max_age=timedelta(hours=2)) == 0
    assert db.changes(Users).trim(max_age=timedelta(minutes=30)) == 3
    assert db.changes(Users, after=3).first() == 4


def test_a_clock_before_1970_is_one_of_1970(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: -(10**18))
    with db.write() as t:
        t.users[1] = User("Ann")
    changes = db.changes(Users, consumer="one")
    assert [change.time.year for change in changes] == [1970]
    changes.acknowledge()
    assert changes.trim(max_age=timedelta(0)) == 0


@pytest.mark.parametrize("wrong", ["yes", 1])
def test_a_feed_that_is_none_is_refused(wrong: Any) -> None:
    class Wrong(zlmdb.Table[int, int], feed=wrong):
        pass

    class Other(zlmdb.Schema):
        wrong: Wrong

    with pytest.raises(TypeError, match="expected True"):
        zlmdb.open(None, Other)
    with pytest.raises(ValueError, match="max_count"):
        zlmdb.Feed(max_count=-1)
    with pytest.raises(ValueError, match="max_age"):
        zlmdb.Feed(max_age=timedelta(-1))
    text: Any = "no"
    with pytest.raises(TypeError, match="acknowledged='no'.: expected True or False"):
        zlmdb.Feed(acknowledged=text)


# -- programs that disagree -----------------------------------------------------------------------------------------


class WithoutFeed(zlmdb.Table[int, User]):
    by_name = zlmdb.Index[str]("name")


def test_a_class_without_the_feed_only_reads(tmp_path: Path) -> None:
    class Early(zlmdb.Schema):
        users: WithoutFeed

    with zlmdb.open(tmp_path, Early) as db, db.write() as t:
        t.users[1] = User("ann")
    with zlmdb.open(tmp_path, Store) as db:
        fill(db, 1, first=2)
        assert [one.number for one in db.changes(Users, after=1)] == [2]
        with pytest.raises(zlmdb.ChangesLost):  # there were records before
            db.changes(Users).take()
    with zlmdb.open(tmp_path, Early) as db:
        with db.read() as t:
            assert len(t.users) == 2
        with pytest.raises(zlmdb.SchemaMismatch, match=r"declares no feed.*newer than this program"), db.write() as t:
            t.users[3] = User("cid")
        assert db.drop_feed("users") == 2
        with db.write() as t:
            t.users[3] = User("cid")
    with zlmdb.open(tmp_path, Store) as db:
        with pytest.raises(zlmdb.ChangesLost):  # made without the feed
            db.changes(Users, after=2).take()
        assert list(db.changes(Users, after=3)) == []
        fill(db, 1, first=4)
        assert [one.number for one in db.changes(Users, after=3)] == [4]
        assert db.check().ok


DECLARE = """if 1:
    import sys
    sys.path.insert(0, sys.argv[2])
    import zlmdb
    from tests.test_feed import Indexed, Store, User
    with zlmdb.open(sys.argv[1], Indexed if sys.argv[3] == "index" else Store) as db:
        if sys.argv[3] == "index":
            pass
        elif sys.argv[3] == "drop":
            db.drop_feed("users")
        else:
            with db.write() as t:
                t.users[9] = User("new")
"""
ROOT = str(Path(__file__).parents[1])


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_a_writer_that_had_opened_before_the_feed_was_declared_is_refused(tmp_path: Path) -> None:
    class Early(zlmdb.Schema):
        users: WithoutFeed

    with zlmdb.open(tmp_path, Early) as db:
        with db.write() as t:
            t.users[1] = User("ann")
        subprocess.run([sys.executable, "-c", DECLARE, str(tmp_path), ROOT, "declare"], check=True)
        with pytest.raises(zlmdb.SchemaMismatch, match="declares no feed"), db.write() as t:
            t.users[3] = User("cid")
    with zlmdb.open(tmp_path, Store) as db:
        subprocess.run([sys.executable, "-c", DECLARE, str(tmp_path), ROOT, "drop"], check=True)
        with pytest.raises(zlmdb.SchemaMismatch, match=r"open\b.*again, to write"), db.write() as t:
            t.users[3] = User("cid")


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_a_writer_that_had_opened_without_making_the_feed_is_refused_when_another_has(tmp_path: Path) -> None:
    class Early(zlmdb.Schema):
        users: WithoutFeed

    zlmdb.open(tmp_path, Early).close()
    with zlmdb.open(tmp_path, Store, create=False) as db:
        subprocess.run([sys.executable, "-c", DECLARE, str(tmp_path), ROOT, "declare"], check=True)
        with pytest.raises(zlmdb.SchemaMismatch, match="has begun to record.*open the database again"):
            db.auto.users[9] = User("cid")
    with zlmdb.open(tmp_path, Store) as db, db.write() as t:
        t.users[9] = User("cid")
        assert db.check().ok


class IndexedUsers(zlmdb.Table[int, User], name="users", feed=True):
    by_name = zlmdb.Index[str]("name")
    by_age = zlmdb.Index[int]("age")


class Indexed(zlmdb.Schema):
    users: IndexedUsers


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_an_acknowledgement_that_stores_nothing_hides_no_index_of_another_process(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Store) as db:
        fill(db, 2)
        changes = db.changes(Users, consumer="one")
        changes.take()
        changes.acknowledge()
        changes.acknowledge(1)  # it has acknowledged more
        subprocess.run([sys.executable, "-c", DECLARE, str(tmp_path), ROOT, "index"], check=True)
        with pytest.raises(zlmdb.IndexNotAttached), db.write() as t:
            t.users[9] = User("cid", 7)
    with zlmdb.open(tmp_path, Indexed) as db:
        assert db.check().ok


def test_a_map_of_the_table_does_not_write_past_the_feed(tmp_path: Path) -> None:
    class Named(zlmdb.Table[int, str], uuid=U, feed=True):
        pass

    class Both(zlmdb.Schema):
        named: Named

    with zlmdb.open(tmp_path, Both) as db, db.write() as t:
        t.named[1] = "one"
    with zlmdb.Database(tmp_path) as classic:
        pmap: Any = zlmdb.table(U)(new_class("Names", (zlmdb.PersistentMap[int, str],)))
        names = classic.attach_table(pmap)
        with classic.begin(write=True) as txn:
            assert names[txn, 1] == "one"
            with pytest.raises(zlmdb.SchemaMismatch, match="declares no feed"):
                names[txn, 2] = "two"


def test_the_classic_layout_has_no_feeds(tmp_path: Path) -> None:
    with pytest.raises(zlmdb.SchemaMismatch, match="classic layout"):
        zlmdb.open(tmp_path, Store, layout="classic")

    class Early(zlmdb.Schema):
        users: WithoutFeed

    with zlmdb.open(tmp_path, Early, layout="classic") as db, db.write() as t:
        t.users[1] = User("ann")
    with zlmdb.open(tmp_path, Store, readonly=True) as db, db.read() as t:
        assert t.users[1] == User("ann")
        with pytest.raises(zlmdb.SchemaMismatch, match="no change feed"):
            db.changes(Users)


def test_files_of_other_programs_have_no_feeds(tmp_path: Path) -> None:
    class Logs(zlmdb.Table[bytes, bytes], feed=True):
        pass

    class Raw(zlmdb.Schema):
        logs: Logs

    with lmdb.open(str(tmp_path), max_dbs=2) as env:
        env.open_db(b"logs")
    with pytest.raises(zlmdb.SchemaMismatch, match="another program"):
        zlmdb.open(tmp_path, Raw, layout="raw")


def test_operations_without_a_block_and_tables_made_at_run_time_are_recorded(db: Any) -> None:
    class Logs(zlmdb.Table[int, str], feed=True):
        pass

    db.auto.users[1] = User("ann")
    db.auto.users.pop(1)
    assert [one.kind for one in db.changes(Users)] == ["put", "delete"]
    logs = db.table("logs", Logs)
    with db.write() as t:
        t[logs][1] = "one"
    assert [one.new for one in db.changes(logs)] == ["one"]


# -- files ----------------------------------------------------------------------------------------------------------


def in_feed(path: Path, work: Any) -> Any:
    with lmdb.open(str(path), max_dbs=20) as env:
        feed = env.open_db(b"f:users", create=False)
        with env.begin(write=True) as txn:
            return work(txn, feed)


@pytest.mark.parametrize(
    ("work", "text"),
    [
        (lambda txn, feed: txn.delete(log.key_of(2), db=feed), "change 2 is missing"),
        (lambda txn, feed: txn.put(log.key_of(2), b"\x01", db=feed), "damaged"),
        (lambda txn, feed: txn.delete(log.key_of(3), db=feed), "left another value"),
        (lambda txn, feed: txn.put(b"\x00cindex", b"7", db=feed), "position of the consumer 'index'"),
        (lambda txn, feed: txn.put(b"\x05", b"7", db=feed), "says nothing"),
        (lambda txn, feed: txn.drop(feed, delete=False), "lacks its first record"),
    ],
)
def test_check_finds_a_damaged_feed(work: Any, text: str, tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Store) as db:
        fill(db, 2)
        with db.write() as t:
            t.users[0] = User("eve")
        assert db.check().ok
    in_feed(tmp_path, work)
    with zlmdb.open(tmp_path, Store) as db:
        report = db.check()
        assert any(one.kind == "feed" and text in one.text for one in report.problems), report.problems


def test_a_feed_that_another_program_dropped_begins_again_with_higher_numbers(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Store) as db:
        fill(db, 3)
    in_feed(tmp_path, lambda txn, feed: txn.drop(feed))
    with zlmdb.open(tmp_path, Store) as db:
        with pytest.raises(zlmdb.ChangesLost):
            db.changes(Users, after=3).take()
        fill(db, 1)
        assert [one.number for one in db.changes(Users, after=log.LOST)] == [log.LOST + 1]


def test_copies_have_the_feed_and_streams_its_number(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store) as db:
        fill(db, 3)
        db.changes(Users, consumer="index").acknowledge(2)
        db.backup(tmp_path / "copy.mdb")
        db.compact()
        assert len(list(db.changes(Users))) == 3
        stream = io.BytesIO()
        db.dump(stream)
    with zlmdb.open(tmp_path / "copy.mdb", Store) as db:
        assert db.changes(Users, consumer="index").after == 2
        assert len(list(db.changes(Users))) == 3
    stream.seek(0)
    with zlmdb.open(tmp_path / "loaded", zlmdb.Schema) as db:
        db.load(stream)
    with zlmdb.open(tmp_path / "loaded", Store) as db:
        assert db.check().ok
        with pytest.raises(zlmdb.ChangesLost):
            db.changes(Users, consumer="index").take()
        fill(db, 1)
        assert [one.number for one in db.changes(Users, after=3)] == [4]
    stream.seek(0)
    with zlmdb.open(tmp_path / "classic", zlmdb.Schema, layout="classic") as db:
        db.load(stream)  # which has none
        assert db.check().ok


@pytest.mark.parametrize("version", ["0.9", "1.0"])
@pytest.mark.parametrize("compact", [True, False])
def test_no_later_transaction_of_a_copy_has_the_number_of_one_before(
    tmp_path: Path, version: Any, compact: bool
) -> None:
    """A consumer puts changes of one number together: LMDB counts anew in a copy without unused pages."""
    numbers: list[int] = []

    def write(db: zlmdb.Database[Store]) -> None:
        for user in range(3):
            with db.write() as t:
                t.users[user] = User(str(user))
        numbers[:] = [change.transaction for change in db.changes(Users, timeout=0)]

    with zlmdb.open(tmp_path / "db", Store, lib_version=version) as db:
        write(db)
        if compact:
            db.compact()
            write(db)
        db.backup(tmp_path / "copy", compact=compact)
    zlmdb.Database.restore(tmp_path / "copy", tmp_path / "db", overwrite=True)
    with zlmdb.open(tmp_path / "db", Store) as db:
        write(db)
        assert numbers == sorted(set(numbers))
        assert db.check().ok
    assert zlmdb.Database.verify(tmp_path / "db") == []


def test_a_salvaged_feed_begins_anew_and_says_so(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store) as db:
        fill(db, 3)
    report = salvage(tmp_path / "db", tmp_path / "out")
    assert any("change feed of users is not copied" in note for note in report.notes)
    with zlmdb.open(tmp_path / "out", Store) as db:
        assert db.check().ok
        with pytest.raises(zlmdb.ChangesLost):
            db.changes(Users, after=3).take()
        fill(db, 1)
        assert [one.number for one in db.changes(Users, after=log.LOST)] == [log.LOST + 1]


def test_a_renamed_field_is_renamed_in_the_feed(tmp_path: Path) -> None:
    @dataclass
    class Person:
        title: Annotated[str, zlmdb.Was("name")]
        age: int = 0

    class People(zlmdb.Table[int, Person], name="users", feed=True):
        pass

    class Plain(zlmdb.Table[int, User], name="users", feed=True):
        pass

    class Before(zlmdb.Schema):
        users: Plain

    class After(zlmdb.Schema):
        users: People

    with zlmdb.open(tmp_path, Before) as db, db.write() as t:
        t.users[1] = User("ann")
        t.users[1] = User("bob")
        t.users.clear()
    with zlmdb.open(tmp_path, After) as db:
        assert [(one.old, one.new) for one in db.changes(People)] == [
            (None, Person("ann")),
            (Person("ann"), Person("bob")),
            (None, None),
        ]
        assert db.check().ok


def test_a_renamed_table_takes_its_feed_along(tmp_path: Path) -> None:
    class People(zlmdb.Table[int, User], was="users", feed=True):
        by_name = zlmdb.Index[str]("name")

    class After(zlmdb.Schema):
        people: People

    with zlmdb.open(tmp_path, Store) as db:
        fill(db, 2)
        db.changes(Users, consumer="index").acknowledge(1)
    with zlmdb.open(tmp_path, After) as db:
        assert [one.number for one in db.changes(People, consumer="index")] == [2]
        with db.write() as t:
            t.people[1] = User("ann")
        assert [one.number for one in db.changes(People, after=2)] == [3]
        assert db.check().ok


TAKE_AWAY = """if 1:
    import sys
    sys.path.insert(0, sys.argv[2])
    import zlmdb
    from tests.test_feed import Store, User
    class People(zlmdb.Table[int, User], was="users", feed=True):
        pass
    class After(zlmdb.Schema):
        people: People
    with zlmdb.open(sys.argv[1], Store if sys.argv[3] == "drop" else After) as db:
        if sys.argv[3] == "drop":
            db.drop_feed("users")
"""


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pytest.mark.parametrize("how", ["drop", "rename"])
def test_a_feed_that_another_program_took_away_is_missed_in_words(how: str, tmp_path: Path) -> None:
    """What was asked then was a KeyError, or there were no consumers, and 0 was the last change."""
    with zlmdb.open(tmp_path, Store) as db:
        fill(db, 2)
        changes = db.changes(Users, consumer="index")
        subprocess.run([sys.executable, "-c", TAKE_AWAY, str(tmp_path), ROOT, how], check=True)
        for ask in (changes.take, changes.acknowledge, changes.trim, changes.forget, changes.consumers, changes.last):
            with pytest.raises(zlmdb.SchemaMismatch, match="users"):
                ask()
        with pytest.raises(zlmdb.SchemaMismatch, match="users"):
            db.changes(Users, consumer="another")


def test_links_and_expired_records_are_recorded(tmp_path: Path) -> None:
    @dataclass
    class Post:
        author: int
        until: datetime

    class Authors(zlmdb.Table[int, str], feed=True):
        pass

    class Posts(zlmdb.Table[int, Post], feed=True, expires="until"):
        author = zlmdb.ForeignKey[Authors]("author", on_delete="cascade")

    class Blog(zlmdb.Schema):
        authors: Authors
        posts: Posts

    later = datetime.now(timezone.utc) + timedelta(hours=1)
    with zlmdb.open(tmp_path, Blog) as db:
        with db.write() as t:
            t.authors[1] = "ann"
            t.posts[1] = Post(1, later)
            t.posts[2] = Post(1, later)
            del t.authors[1]
        with db.write() as t:
            t.authors[2] = "bob"
            t.posts[3] = Post(2, datetime.now(timezone.utc) - timedelta(seconds=1))
        db.sweep()
        kinds = [(one.kind, one.key) for one in db.changes(Posts)]
        assert kinds == [("put", 1), ("put", 2), ("delete", 1), ("delete", 2), ("put", 3), ("delete", 3)]
        assert [one.kind for one in db.changes(Authors)] == ["put", "delete", "put"]
        assert db.check().ok


@dataclass
class Person:
    """A `User` after a migration."""

    name: str
    birth: int


class People(zlmdb.Table[int, Person], name="users", feed=True):
    pass


def take_users(t: Any, old: Any) -> None:
    for key, fields in old.take("users").items():
        t.users[key] = Person(fields["name"], 2000 - fields["age"])


def test_a_migration_of_the_records_ends_what_was_recorded_before(tmp_path: Path) -> None:
    class Plain(zlmdb.Table[int, User], name="users", feed=True):
        pass

    class Before(zlmdb.Schema):
        users: Plain

    class After(zlmdb.Schema):
        users: People
        migrations: ClassVar[Any] = [zlmdb.Migration(1, "births", take_users)]

    with zlmdb.open(tmp_path, Before) as db, db.write() as t:
        t.users[1] = User("ann", 30)
    with zlmdb.open(tmp_path, After) as db:
        db.migrate()
        with pytest.raises(zlmdb.ChangesLost):
            db.changes(People).take()
        assert told(db.changes(People, after=1)) == [(2, "put", 1, None, Person("ann", 1970))]
        assert db.check().ok


def test_a_migration_takes_a_table_whose_new_class_is_the_first_with_a_feed(tmp_path: Path) -> None:
    def drop_one(t: Any) -> None:
        del t.users[2]

    class After(zlmdb.Schema):
        users: People
        migrations: ClassVar[Any] = [zlmdb.Migration(1, "births", take_users), zlmdb.Migration(2, "one less", drop_one)]

    class Plain(zlmdb.Table[int, User], name="users"):
        pass

    class Before(zlmdb.Schema):
        users: Plain

    with zlmdb.open(tmp_path, Before) as db, db.write() as t:
        t.users[1], t.users[2] = User("ann", 30), User("bob", 40)
    with zlmdb.open(tmp_path, After) as db:
        assert len(db.migrate(dry_run=True)) == 2
        assert len(db.migrate()) == 2
        kinds = [(one.number, one.kind, one.key) for one in db.changes(People)]
        assert kinds == [(1, "put", 1), (2, "put", 2), (3, "delete", 2)]
        assert db.check().ok


# -- kills ----------------------------------------------------------------------------------------------------------


def follow(path: Path, version: str) -> None:
    """Change records, and keep a second table in step."""
    with zlmdb.open(path, Store, durability="none", lib_version=version) as db:
        db.changes(Users).trim(acknowledged=True)
        with db.write() as t:
            number = db.changes(Users).last(t)
            t.users[number % 3] = User("ann", number)
            t.users.pop((number + 1) % 3, None)
            t.logins.update({"a": number, "b": number, "c": number})
        changes = db.changes(Users, consumer="copies")
        for page in iter(lambda: changes.take(2), []):
            with db.write() as t:
                for one in page:
                    apply(t.copies, one)
                changes.acknowledge(t=t)


def apply(records: Any, change: Any) -> None:
    if change.kind == "clear":
        records.clear()
    elif change.new is None:
        del records[change.key]  # raises where it is missing
    else:
        assert records.get(change.key) == change.old
        records[change.key] = change.new


@pytest.mark.once
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("version", ["0.9", "1.0"])
def test_a_program_killed_at_any_write_misses_no_change(version: str, tmp_path: Path) -> None:
    count = 0
    for point in kill_points(follow, tmp_path, version):
        count += 1
        with zlmdb.open(tmp_path, Store) as db:
            with db.read() as t:
                copies, users = dict(t.copies), dict(t.users)
            for one in db.changes(Users, consumer="copies"):
                apply(copies, one)
            assert copies == users, point
            assert db.check().ok, point
    assert count > 40


WRITER = """if 1:
    import sys, random, time
    sys.path.insert(0, sys.argv[2])
    import zlmdb
    from tests.test_feed import Store, User
    rnd = random.Random(int(sys.argv[3]))
    with zlmdb.open(sys.argv[1], Store, durability="none") as db:
        print("go", flush=True)
        while True:
            time.sleep(0.001)
            with db.write() as t:
                for _ in range(rnd.randrange(1, 4)):
                    key = rnd.randrange(20)
                    if rnd.random() < 0.3:
                        t.users.pop(key, None)
                    else:
                        t.users[key] = User("u", rnd.randrange(10**6))
"""

CONSUMER = """if 1:
    import sys
    sys.path.insert(0, sys.argv[2])
    import zlmdb
    from tests.test_feed import Store
    with zlmdb.open(sys.argv[1], Store, durability="none") as db, open(sys.argv[3], "a") as index:
        print("go", flush=True)
        changes = db.changes("users", consumer="index", timeout=None)
        index.write(f"begin {changes.after}\\n")
        while True:
            for one in changes.take(7):
                index.write(f"{one.number} {one.key} {one.new.age if one.new else None}\\n")
            index.flush()
            changes.acknowledge()
            index.write(f"done {changes.after}\\n")
            index.flush()
"""


@dataclass
class Seen:
    """What an external index has been told."""

    number: int = 0
    acknowledged: int = 0
    records: dict[int, int] = field(default_factory=dict)

    def line(self, line: str) -> None:
        words = line.split()
        if words[0] == "begin":
            assert self.acknowledged <= int(words[1]) <= self.number  # it may have been stored and not yet been said
            self.number = int(words[1])
        elif words[0] == "done":
            self.acknowledged = int(words[1])
        else:
            assert int(words[0]) == self.number + 1
            self.number += 1
            self.records.pop(int(words[1]), None)
            if words[2] != "None":
                self.records[int(words[1])] = int(words[2])


@pytest.mark.once
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_killed_writers_and_consumers_miss_nothing(tmp_path: Path) -> None:
    index = tmp_path / "index"
    zlmdb.open(tmp_path / "db", Store).close()
    rnd = random.Random(5)

    def start(program: str, argument: Any) -> Any:
        command = [sys.executable, "-c", program, str(tmp_path / "db"), ROOT, str(argument)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"go\n"
        return process

    running = [start(WRITER, 1), start(CONSUMER, index)]
    for n in range(4):
        time.sleep(rnd.uniform(0.01, 0.1))
        which = n % 2
        kill(running[which])
        running[which] = start(WRITER, n) if which == 0 else start(CONSUMER, index)
    for process in running:
        kill(process)
    seen = Seen()
    for line in index.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            seen.line(line)
    with zlmdb.open(tmp_path / "db", Store) as db:
        changes = db.changes(Users, consumer="index")
        assert seen.acknowledged <= changes.after
        assert seen.number > 50
        model: dict[int, Optional[User]] = {}
        for one in db.changes(Users):
            assert one.old == model.get(one.key)
            model[one.key] = one.new
        with db.read() as t:
            assert dict(t.users) == {key: user for key, user in model.items() if user is not None}
        for one in db.changes(Users, after=seen.number):
            seen.line(f"{one.number} {one.key} {one.new.age if one.new else None}")
        with db.read() as t:
            assert seen.records == {key: user.age for key, user in t.users.items()}
        assert db.check().ok


# -- feeds that do not keep all changes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keep",
    [
        zlmdb.Feed(max_count=3),
        zlmdb.Feed(max_age=timedelta(seconds=10)),
        zlmdb.Feed(acknowledged=True),
        zlmdb.Feed(max_count=4, max_age=timedelta(seconds=20), acknowledged=True),
    ],
    ids=["count", "age", "acknowledged", "all"],
)
def test_each_write_removes_what_trimming_after_it_would(keep: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a writer remembers of the feed within its transaction is what it would read."""

    class Short(zlmdb.Table[int, str], feed=keep):
        pass

    class Long(zlmdb.Table[int, str], feed=True):
        pass

    class Two(zlmdb.Schema):
        short: Short
        long: Long

    now, dice = [1_000_000_000], random.Random(5)
    monkeypatch.setattr(log, "now", lambda: now[0] * 1_000_000)

    def removed_and_last(table: Any) -> tuple[Any, int]:
        ((follower,), raw) = table._storage.followers, table.txn._engine_txn
        handle = follower.present.handle
        if table._name == "long":
            log.trim(raw, handle, keep, now[0] * 1_000_000, 2)
        return log.removed(raw, handle), log.last(raw, handle)

    def write(t: Any) -> None:
        key = dice.randrange(5)
        t.short[key] = t.long[key] = "text"
        assert removed_and_last(t.short) == removed_and_last(t.long)

    with zlmdb.open(None, Two) as db:
        for _ in range(60):
            name = dice.choice(["one", "two", "three"])
            after = max(db.changes(Short).first(), db.changes(Long).first()) - 1
            consumers = [db.changes(table, consumer=name, after=after) for table in (Short, Long)]
            now[0] += dice.choice([0, 1, 8, 30])
            with db.write() as t:
                for _ in range(dice.choice([1, 2, 5])):
                    write(t)
                    if dice.random() < 0.2:
                        with suppress(KeyError), t.txn.savepoint():
                            write(t)
                            raise KeyError
            done = dice.randrange(after, db.changes(Long).last() + 1)
            for consumer in consumers:
                if done % 5:
                    consumer.acknowledge(done)
                else:
                    consumer.forget()
        assert db.changes(Short).last() > 50


def test_a_write_reads_one_consumer_as_long_as_that_holds_the_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kept(zlmdb.Table[int, str], feed=zlmdb.Feed(acknowledged=True)):
        pass

    class One(zlmdb.Schema):
        kept: Kept

    read: list[int] = []
    real = log.acknowledged_by_all
    monkeypatch.setattr(log, "acknowledged_by_all", lambda *given: read.append(1) or real(*given))
    with zlmdb.open(None, One) as db:
        consumers = [db.changes(Kept, consumer=name) for name in ("one", "two", "three")]
        for n in range(10):
            db.auto.kept[n] = "text"
            consumers[n % 2].acknowledge(n)
        assert len(read) <= 2  # "three" was not known to be the last before the others went on
        consumers[2].acknowledge(9)
        for n in range(10, 20):
            db.auto.kept[n] = "text"
        assert len(read) < 8  # two changes go with each write, up to the eighth, after which "one" stays where it is
        assert db.changes(Kept).first() == 9


def test_a_writer_sees_what_functions_of_its_group_remove_and_forget() -> None:
    """They share a transaction of the engine."""

    class Short(zlmdb.Table[int, str], feed=zlmdb.Feed(max_count=10)):
        pass

    class Kept(zlmdb.Table[int, str], feed=zlmdb.Feed(acknowledged=True)):
        pass

    class Two(zlmdb.Schema):
        short: Short
        kept: Kept

    with zlmdb.open(None, Two) as db:
        short, kept = db.changes(Short), db.changes(Kept, consumer="one")
        for n in range(8):
            db.auto.short[n] = db.auto.kept[n] = "text"
        kept.acknowledge(5)
        with db.write() as t:
            t.short[8] = t.kept[8] = "text"
            short._write(t, lambda raw, handle: log.trim_through(raw, handle, 7))  # as `trim` in its function
            kept.forget(t)
            kept.acknowledge(2, t)
            for n in range(9, 14):
                t.short[n] = t.kept[n] = "text"
        assert short.first() == 8
        assert [change.number for change in db.changes(Short, after=7).take()] == list(range(8, 15))
        assert kept.first() == 3
