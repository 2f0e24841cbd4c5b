"""Tables are made in one place, under the write lock: no handle of an aborted or older transaction is ever used.

LMDB gives the number of a handle that was opened in an aborted transaction to the next one, so that a later put would
land in another table. These tests abort at every point where handles are opened, and look where the records are.
"""

from __future__ import annotations

import multiprocessing
import random
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import pytest

import zlmdb

pytestmark = pytest.mark.twice  # processes and what is in files, which no version of Python makes different

on_disk = pytest.mark.parametrize("combo", ["lmdb-tables", "lmdb-classic"], indirect=True)


@dataclass
class User:
    name: str
    city: str


class Nothing(zlmdb.Schema):
    """Declares no table."""


class Users(zlmdb.Table[int, User]):
    by_name = zlmdb.UniqueIndex[str]("name")


class Store(zlmdb.Schema):
    users: Users
    numbers: zlmdb.Table[str, int]


def schema(**tables: Any) -> type[zlmdb.Schema]:
    return type("Made", (zlmdb.Schema,), {"__annotations__": tables})


def classic(number: int) -> Any:
    """A class of zlmdb <= 26, registered under a UUID of its own."""

    class Registered(zlmdb.MapOidString): ...

    return zlmdb.table(f"0d1f7a50-6a4c-4b57-9d52-4a45b6a30{number:03}")(Registered)


def places(db: Any) -> dict[str, list[str]]:
    """What each table of the file holds, read by a fresh transaction."""
    with db.read() as t:
        return {name: [repr(row) for row in t[name].items()] for name in t}


# -- aborted creations ------------------------------------------------------------------------------------------------


class Halt(BaseException):
    """Raised in the middle of the creation of tables."""


@on_disk
@pytest.mark.parametrize("error", [Halt, KeyboardInterrupt, ZeroDivisionError])
def test_tables_made_after_an_aborted_creation_are_where_they_belong(
    make_db: Callable[..., Any], combo: str, error: type[BaseException]
) -> None:
    def fails(user: User) -> str:
        raise error

    class Wrong(zlmdb.Table[int, User]):
        by_name = zlmdb.UniqueIndex[str](fails, version=1)

    kept: list[BaseException] = []  # with their frames, which hold the handles that were opened
    with make_db(schema(users=zlmdb.Table[int, User])) as db, db.write() as t:
        t.users[1] = User("ann", "Oslo")
    base = make_db(schema(numbers=zlmdb.Table[str, int]))
    for i in range(3):
        attempt = schema(**{f"early{i}": zlmdb.Table[int, int]}, users=Wrong, late=zlmdb.Table[int, int])
        try:
            make_db(attempt)
        except error as raised:
            kept.append(raised)
        with base.write() as t:
            t.numbers[f"n{i}"] = i
    assert len(kept) == 3
    ann = {"name": "ann", "city": "Oslo"}
    expected = {"numbers": [repr((f"n{i}", i)) for i in range(3)], "users": [repr((1, ann))]}
    assert places(base) == expected
    other = make_db(schema(late=zlmdb.Table[int, int], early1=zlmdb.Table[int, int], new=zlmdb.Table[int, str]))
    with other.write() as t:
        t.new[1] = "new"
        t.late[2] = 22
        t.early1[3] = 33
    expected = {**expected, "new": [repr((1, "new"))], "late": [repr((2, 22))], "early1": [repr((3, 33))]}
    assert places(other) == expected
    kept.clear()
    other.close()
    base.close()
    with make_db(Nothing) as db:
        assert places(db) == expected


@on_disk
def test_a_duplicate_key_while_building_leaves_no_handle_behind(make_db: Callable[..., Any], combo: str) -> None:
    with make_db(schema(users=zlmdb.Table[int, User])) as db, db.write() as t:
        t.users.update({1: User("ann", "Oslo"), 2: User("ann", "Rome")})
    base = make_db(Nothing)
    with pytest.raises(zlmdb.DuplicateKey) as caught:
        make_db(Store)
    other = make_db(schema(first=zlmdb.Table[int, int], numbers=zlmdb.Table[str, int]))
    with other.write() as t:
        t.first[1] = 1
        t.numbers["a"] = 2
    assert caught.value.__traceback__ is not None
    found = places(base)
    assert found["first"] == [repr((1, 1))]
    assert found["numbers"] == [repr(("a", 2))]
    assert len(found["users"]) == 2
    assert sorted(found) == ["first", "numbers", "users"]


@pytest.mark.parametrize("ends", ["abort", "exception", "savepoint"])
def test_an_aborted_transaction_makes_no_table(make_db: Callable[..., Any], ends: str) -> None:
    """A table that is attached before, and first written in a transaction that aborts, is there, and empty."""
    db = make_db(Store)
    one, other = db.attach_table(classic(1)), db.attach_table(classic(2))
    with suppress(ZeroDivisionError), db.begin(write=True) as txn:
        if ends == "savepoint":
            with suppress(ZeroDivisionError), txn.savepoint():
                one[txn, 1] = "lost"
                raise ZeroDivisionError
        else:
            one[txn, 1] = "lost"
            if ends == "abort":
                txn.abort()
            else:
                raise ZeroDivisionError
    third = db.attach_table(classic(3))
    with db.begin(write=True) as txn:
        third[txn, 3] = "three"
        other[txn, 2] = "two"
        one[txn, 1] = "one"
    with db.begin() as txn:
        assert [dict(pmap.bind(txn)) for pmap in (one, other, third)] == [{1: "one"}, {2: "two"}, {3: "three"}]


def test_random_creations_and_aborts_never_mix_tables(make_db: Callable[..., Any]) -> None:
    """As many tables as there are steps, made between transactions that end in every way."""
    chance = random.Random(11)
    db = make_db(Nothing)
    maps: list[Any] = []
    expected: list[dict[int, str]] = []
    for step in range(40):
        if chance.random() < 0.5 or not maps:
            maps.append(db.attach_table(classic(100 + len(maps))))
            expected.append({})
        ends = chance.choice(["commit", "abort", "savepoint", "error"])
        with suppress(ZeroDivisionError), db.begin(write=True) as txn:
            chosen = chance.sample(range(len(maps)), min(3, len(maps)))
            with suppress(ZeroDivisionError), txn.savepoint():
                for i in chosen:
                    maps[i][txn, step] = f"{i}/{step}"
                if ends == "savepoint":
                    raise ZeroDivisionError
            if ends == "error":
                raise ZeroDivisionError
            if ends == "abort":
                txn.abort()
        if ends == "commit":
            for i in chosen:
                expected[i][step] = f"{i}/{step}"
    with db.begin() as txn:
        assert [dict(pmap.bind(txn)) for pmap in maps] == expected


# -- inside transactions, and beside them -----------------------------------------------------------------------------


@pytest.mark.parametrize("write", [False, True])
def test_attaching_inside_a_transaction_is_refused(make_db: Callable[..., Any], write: bool) -> None:
    db = make_db(Nothing)
    with db.begin(write=write) as txn:
        with pytest.raises(zlmdb.NestedTransaction, match="before you begin"):
            db.attach_table(classic(1))
        assert txn.id() >= 0
    pmap = db.attach_table(classic(1))
    with db.begin(write=True) as txn:
        pmap[txn, 1] = "x"


@on_disk
def test_opening_a_schema_inside_a_write_transaction_is_refused(make_db: Callable[..., Any], combo: str) -> None:
    db = make_db(schema(numbers=zlmdb.Table[str, int]))
    with db.write() as t:
        t.numbers["a"] = 1
        with pytest.raises(zlmdb.NestedTransaction):
            make_db(Store)
        t.numbers["b"] = 2
    with make_db(Store) as both, both.read() as t:
        assert dict(t.numbers) == {"a": 1, "b": 2}


@on_disk
def test_opening_what_is_there_already_works_inside_a_transaction(make_db: Callable[..., Any], combo: str) -> None:
    db = make_db(Store)
    with db.write() as t:
        t.numbers["a"] = 1
        with make_db(Store) as other, other.read() as u:
            assert dict(u.numbers) == {}
    with db.read() as t, make_db(Store) as other, other.write() as u:
        u.numbers["b"] = 2
        assert dict(t.numbers) == {"a": 1}


@on_disk
def test_a_reader_older_than_a_table_is_told_to_begin_again(make_db: Callable[..., Any], combo: str) -> None:
    db = make_db(Nothing)
    reader = db.begin().begin()
    declared = db.read()
    outcome: list[Any] = []
    thread = threading.Thread(target=lambda: outcome.append(db.attach_table(classic(1))))  # this one has transactions
    thread.start()
    thread.join(300)
    [pmap] = outcome
    with db.begin(write=True) as txn:
        pmap[txn, 1] = "x"
    if combo.endswith("tables"):
        with pytest.raises(zlmdb.TransactionStale, match="begin again"):
            pmap[reader, 1]
        with pytest.raises(zlmdb.TransactionStale):
            pmap.bind(declared.txn)
    else:  # there all tables are in one keyspace, and the old snapshot has none of its records
        assert pmap[reader, 1] is None
        assert dict(pmap.bind(declared.txn)) == {}
    reader.abort()
    declared.txn.abort()
    with db.begin() as txn:
        assert pmap[txn, 1] == "x"


@on_disk
def test_a_writer_older_than_a_table_is_told_to_begin_again(make_db: Callable[..., Any], combo: str) -> None:
    """Another thread opens the handles of a table that another process made, while this one writes."""
    db = make_db(schema(numbers=zlmdb.Table[str, int]))
    with db.write() as t:
        t.numbers["a"] = 1
        began = threading.Event()
        outcome: list[Any] = []

        def opens() -> None:
            began.set()
            outcome.append(make_db(Store))

        thread = threading.Thread(target=opens)
        thread.start()
        began.wait(10)
        time.sleep(0.02)
        assert outcome == [], "it waits for this transaction, in which it must not open handles"
        t.numbers["b"] = 2
    thread.join(300)
    [other] = outcome
    with other.write() as t:
        t.users[1] = User("ann", "Oslo")
        assert dict(t.numbers) == {"a": 1, "b": 2}


@on_disk
def test_a_table_that_another_handle_made_is_found(make_db: Callable[..., Any], combo: str) -> None:
    db = make_db(Nothing)
    with make_db(Store) as other, other.write() as t:
        t.numbers["a"] = 1
        t.users[1] = User("ann", "Oslo")
    with db.read() as t:
        assert sorted(t) == ["numbers", "users"]
        assert t["numbers"]["a"] == 1
    with db.write() as t:
        t["numbers"]["b"] = 2
        assert len(t["numbers"]) == 2


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pytest.mark.parametrize("combo", ["lmdb-tables"], indirect=True)
def test_a_table_that_another_process_made_is_found_in_the_next_transaction(
    make_db: Callable[..., Any], combo: str, tmp_path: Path
) -> None:
    with make_db(Nothing):
        pass
    program = f"""if 1:
        import sys, zlmdb
        class Store(zlmdb.Schema):
            late: zlmdb.Table[str, int]
            later: zlmdb.Table[str, int]
        sys.stdin.readline()
        with zlmdb.open({str(tmp_path / "db")!r}, Store) as db, db.write() as t:
            t.late["a"] = t.later["a"] = 1
    """
    with (
        subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, text=True) as other,
        make_db(Nothing) as db,
    ):
        other.communicate("go\n", timeout=300)
        with db.write() as t:
            for _ in range(2):
                with pytest.raises(zlmdb.TransactionStale, match="late.*begin again"):
                    t["late"]
        with db.write() as t:
            t["late"]["b"] = 2
            assert len(t["late"]) == 2
        with db.read() as t, pytest.raises(zlmdb.TransactionStale, match="later.*begin again"):
            t["later"]
        with db.read() as t:
            assert dict(t["later"]) == {"a": 1}


# -- threads ----------------------------------------------------------------------------------------------------------


def test_threads_attach_at_once(make_db: Callable[..., Any]) -> None:
    db = make_db(Nothing)
    classes = [classic(i) for i in range(6)]
    start = threading.Barrier(6)
    outcome: dict[int, Any] = {}
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            start.wait(30)
            mine = [db.attach_table(classes[(number + i) % 6]) for i in range(6)]
            for i, pmap in enumerate(mine):
                with db.begin(write=True) as txn:
                    pmap[txn, number] = str((number + i) % 6)
            outcome[number] = mine
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    for error in errors:
        raise error
    with db.begin() as txn:
        for number, mine in outcome.items():
            for i, pmap in enumerate(mine):
                assert dict(pmap.bind(txn)) == {other: str((number + i) % 6) for other in range(6)}


@on_disk
def test_threads_open_the_same_new_file_at_once(make_db: Callable[..., Any], combo: str) -> None:
    start = threading.Barrier(5)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            start.wait(30)
            db = make_db(schema(**{f"table{number % 3}": zlmdb.Table[int, int], "shared": zlmdb.Table[int, int]}))
            for i in range(5):
                with db.write() as t:
                    t["shared"][number * 100 + i] = number
                    t[f"table{number % 3}"][number * 100 + i] = number
            db.close()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    for error in errors:
        raise error
    with make_db(Nothing) as db, db.read() as t:
        rows = {number * 100 + i: number for number in range(5) for i in range(5)}
        assert dict(t["shared"]) == rows
        for table in range(3):
            assert dict(t[f"table{table}"]) == {key: number for key, number in rows.items() if number % 3 == table}


@on_disk
def test_handles_that_another_thread_opened_meanwhile_stay_as_they_are(
    make_db: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While this thread waits to be the writer; what has begun since then would have to begin again."""
    with make_db(Store) as db:
        store, spaces = db._open_store, dict(db._open_store.spaces)
        acquire = store.writer.acquire

        def acquire_after_another(timeout: Any, hold: Any) -> None:
            acquire(timeout, hold)
            store.spaces.update(spaces)

        monkeypatch.setattr(store.writer, "acquire", acquire_after_another)
        store.spaces.clear()
        store.open_spaces(list(spaces))
        assert store.spaces == spaces


@on_disk
def test_a_writer_that_waited_uses_tables_made_meanwhile(
    make_db: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_db(schema(first=zlmdb.Table[int, int])) as db:
        later = schema(later=zlmdb.Table[int, int])
        acquire = db._open_store.writer.acquire

        def acquire_after_another(timeout: Any, hold: Any) -> None:
            monkeypatch.undo()
            make_db(later).close()
            acquire(timeout, hold)

        monkeypatch.setattr(db._open_store.writer, "acquire", acquire_after_another)
        with db.write() as t:
            t["later"][1] = 2
            assert dict(t["later"]) == {1: 2}


# -- processes --------------------------------------------------------------------------------------------------------


def open_and_write(path: str, number: int, layout: Any) -> None:
    """Run in several processes at once, on a file that none of them has made yet."""
    with zlmdb.open(path, Store, layout=layout, durability="none", timeout=300) as db:
        for i in range(5):
            with db.write() as t:
                t.users.add(User(f"{number}/{i}", "Oslo"))
                t.numbers[f"{number}/{i}"] = number


@pytest.mark.parametrize("layout", ["tables", pytest.param("classic", marks=pytest.mark.once)])
def test_processes_open_the_same_new_file_at_once(tmp_path: Path, layout: Any) -> None:
    path = str(tmp_path / "db")
    context = multiprocessing.get_context("spawn")
    count = 2 if sys.implementation.name == "pypy" else 3
    workers = [context.Process(target=open_and_write, args=(path, i, layout)) for i in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(600)
        assert worker.exitcode == 0
    with zlmdb.open(path, Store) as db:
        assert db.layout == layout
        with db.read() as t:
            assert len(t.users) == len(t.numbers) == 5 * count
            assert sorted(t.users) == list(range(1, 5 * count + 1))
            for number in range(count):
                for i in range(5):
                    assert t.users.by_name[f"{number}/{i}"].city == "Oslo"


# -- types ------------------------------------------------------------------------------------------------------------


@on_disk
def test_registered_tables_of_other_types_are_refused_with_both(make_db: Callable[..., Any], combo: str) -> None:
    ident = "0d1f7a50-6a4c-4b57-9d52-4a45b6a30999"

    @zlmdb.table(ident)
    class Before(zlmdb.MapOidString): ...

    @zlmdb.table(ident)
    class After(zlmdb.MapUuidString): ...

    db = make_db(Nothing)
    before = db.attach_table(Before)
    with pytest.raises(zlmdb.SchemaMismatch, match="oid.*Before.*After.*uuid"):
        db.attach_table(After)
    with db.begin(write=True) as txn:
        before[txn, 1] = "x"

    class Declared(zlmdb.Table[zlmdb.keys.Oid, zlmdb.values.String], uuid=ident): ...

    with make_db(schema(things=Declared)) as declared, declared.read() as t:
        assert dict(t.things) == {1: "x"}

    class Wrong(zlmdb.Table[int, str], uuid=ident): ...

    with pytest.raises(zlmdb.SchemaMismatch, match=ident):
        make_db(schema(things=Wrong))


def test_only_registered_maps_are_attached(make_db: Callable[..., Any]) -> None:
    db = make_db(Nothing)

    class Plain(zlmdb.MapOidString): ...

    with pytest.raises(TypeError, match="@zlmdb.table"):
        db.attach_table(Plain)
    for wrong in (int, Users, 5, None, zlmdb.MapOidString(1)):
        with pytest.raises(TypeError):
            db.attach_table(wrong)


@on_disk
def test_attaching_to_a_read_only_file_without_the_table_is_refused(make_db: Callable[..., Any], combo: str) -> None:
    with make_db(Nothing) as db:
        db.attach_table(classic(1))
    with make_db(Nothing, readonly=True) as db:
        pmap = db.attach_table(classic(1))
        with db.begin() as txn:
            assert pmap[txn, 1] is None
        with pytest.raises(zlmdb.ReadonlyDatabase, match="not in"):
            db.attach_table(classic(2))
