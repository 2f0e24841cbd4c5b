"""Which thread may write by a bound table."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import pytest

import zlmdb
from zlmdb.store import access
from zlmdb.store.access import NOBODY, lock_of


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[int, str]


def in_a_thread(work: Any) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_a_lock_is_owned_by_its_thread_alone() -> None:
    mine = lock_of(threading.get_ident())
    assert mine is lock_of(threading.get_ident())
    assert mine._is_owned()
    assert not in_a_thread(mine._is_owned)
    assert not NOBODY[0]._is_owned()
    assert in_a_thread(lambda: lock_of(threading.get_ident())._is_owned())


def test_theLOCKS_of_threads_that_ended_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_MOST", 3)
    monkeypatch.setattr(access, "LOCKS", {-1: None, -2: None, -3: None})
    kept = in_a_thread(lambda: lock_of(threading.get_ident()))
    assert list(access.LOCKS.values()) == [kept]


def test_another_thread_may_not_write_by_the_generated_functions() -> None:
    with zlmdb.open(None, Store) as db, db.write() as t:
        t.numbers[1] = "one"
        t.numbers[1] = "first"
        del t.numbers[1]

        def write() -> str:
            with pytest.raises(zlmdb.WrongThread):
                t.numbers[2] = "two"
            with pytest.raises(zlmdb.WrongThread):
                del t.numbers[1]
            return "refused"

        assert in_a_thread(write) == "refused"
        t.numbers[1] = "one"
        assert dict(t.numbers) == {1: "one"}


def test_generated_functions_write_with_what_the_table_has_at_any_time() -> None:
    with zlmdb.open(None, Store) as db:

        def check(t: Any, may: bool = True) -> None:
            table = t.numbers
            assert (table._writer is not NOBODY) is may
            if may:
                owner, *rest = table._writer
                assert owner._is_owned()
                assert rest == [t.txn, table._raw, table._db, table._watched, table._handles]
                assert table._raw is t.txn._raw
            assert table._reader == (table._get, table._db) == (table._raw.get, table._db)

        for _ in range(3):
            with db.write() as t:
                check(t)
                t.numbers.update({1: "one", 2: "two"})
                with t.txn.savepoint():
                    check(t)
                    t.numbers[3] = "three"
                check(t)
                with suppress(ZeroDivisionError), t.txn.savepoint():
                    check(t)
                    t.numbers[4] = str(1 / 0)
                assert 4 not in t.numbers
                check(t)
                rows = iter(t.numbers.select())
                next(rows)
                check(t, may=False)
                t.numbers[1] = "first"
                check(t)
                rows.close()
                check(t)
        with db.read() as t:
            check(t, may=False)


@pytest.mark.parametrize("annotation", [int, zlmdb.keys.Oid])
def test_true_is_no_key_that_is_a_number(annotation: Any) -> None:
    schema: Any = type("Schema", (zlmdb.Schema,), {"__annotations__": {"numbers": zlmdb.Table[annotation, str]}})
    with zlmdb.open(None, schema) as db, db.write() as t:
        for _ in range(3):
            t.numbers[1] = "one"
            for key in (True, False):
                with pytest.raises(zlmdb.EncodeError):
                    t.numbers[key] = "none"
                with pytest.raises(zlmdb.EncodeError):
                    del t.numbers[key]
            assert dict(t.numbers) == {1: "one"}
            del t.numbers[1]


def test_a_method_that_somebody_keeps_of_a_block_ends_no_other_block() -> None:
    with zlmdb.open(None, Store) as db:
        for begin in (db.write, db.read) * 3:
            with begin() as t:
                t.numbers.get(1)
            leave = t.__exit__
            del t
            with begin() as other:
                leave(None, None, None)
                assert other.txn.active
                other.numbers.get(1)


def test_a_block_inside_its_own_block_ends_both_and_no_later_one() -> None:
    with zlmdb.open(None, Store) as db:
        t = db.write()
        with t:
            with t:
                t.numbers[1] = "a"
            assert not t.txn.active
            with db.write() as other:
                other.numbers[1] = "b"
                assert other.txn.active
        with db.read() as t:
            assert t.numbers[1] == "b"


def test_what_a_failed_commit_would_have_stored_belongs_to_no_era() -> None:
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            t.numbers[1] = "a"
        store = db._open_store
        with db.read() as t:
            snapshot = t.txn.id()
        assert store.era_of(snapshot) is not None

        class Fails:
            def __init__(self, raw: Any) -> None:
                self.abort = raw.abort

            def commit(self) -> None:
                raise OSError("full")

        def fail() -> None:
            with db.write() as t:
                t.numbers[1] = "b"
                t.txn._raw = Fails(t.txn._raw)

        with pytest.raises(OSError, match="full"):
            fail()
        assert store.era_of(snapshot + 1) is None
        with db.read() as t:
            assert t.numbers[1] == "a"
