"""``db.auto``: operations without a block, each a transaction of its own."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import lmdb
import pytest

import zlmdb
from tests.combinations import EVERYWHERE
from zlmdb.schema import auto
from zlmdb.tables.table import Table


@dataclass
class User:
    name: str
    age: int


class Users(zlmdb.Table[int, User]):
    by_name = zlmdb.UniqueIndex[str]("name")
    by_age = zlmdb.Index[int]("age")


class Store(zlmdb.Schema):
    users: Users
    counts: zlmdb.Table[str, int]


@pytest.fixture(params=EVERYWHERE)
def combo(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def db(make_db: Callable[..., Any]) -> Any:
    db = make_db(Store)
    db.auto.users[1] = User("ann", 30)
    db.auto.counts["a"] = 1
    return db


CALLS: dict[str, tuple[Any, ...]] = {
    "__getitem__": ("a",),
    "get": ("a",),
    "__contains__": ("a",),
    "__setitem__": ("b", 7),
    "__delitem__": ("a",),
    "add": (),  # below: it takes a table that makes keys
    "put_new": ("c", 8),
    "replace": ("a", 9),
    "change": ("a", lambda n: n + 1),
    "increment": ("a", 5),
    "pop": ("a",),
    "setdefault": ("d", 4),
}


def content(db: Any, name: str) -> Any:
    with db.read() as t:
        return dict(t[name])


@pytest.mark.parametrize("method", [*auto.READS, *auto.WRITES, "get_many", "put_many", "update"])
def test_each_operation_does_what_it_does_in_a_block(db: Any, method: str) -> None:
    args = {
        **CALLS,
        "get_many": (iter(["a", "zz"]),),
        "put_many": (iter([("p", 1), ("q", 2)]),),
        "update": ({"a": 3, "u": 4},),
    }.get(method, ())
    again = {
        **CALLS,
        "get_many": (["a", "zz"],),
        "put_many": ([("p", 1), ("q", 2)],),
        "update": ({"a": 3, "u": 4},),
    }.get(method, ())
    if method == "add":
        assert db.auto.users.add(User("bob", 20)) == 2
        assert content(db, "users")[2] == User("bob", 20)
        return
    other = zlmdb.open(None, Store)
    with other.write() as t:
        t.counts["a"] = 1
    with other.write() as t:
        expected = getattr(t.counts, method)(*again)
        expected = list(expected) if method == "get_many" else expected
    assert getattr(db.auto.counts, method)(*args) == expected
    assert content(db, "counts") == content(other, "counts")


def test_every_method_of_a_table_is_here_or_takes_a_block(db: Any) -> None:
    here = {*auto.READS, *auto.WRITES, "get_many", "put_many", "update"}
    methods = {name for name in dir(Table) if not name.startswith("_")}
    for name in methods - here:
        with pytest.raises(AttributeError, match=f"with db.read.*t.users.{name}"):
            getattr(db.auto.users, name)
    assert methods & here == {name for name in here if not name.startswith("_")}


def test_what_takes_a_block_says_so(db: Any) -> None:
    with pytest.raises(TypeError, match=r"with db.read\(\) as t.*t.users"):
        iter(db.auto.users)
    with pytest.raises(TypeError, match="by_age is not unique"):
        db.auto.users.by_age[30]
    for name, advice in (
        ("insert", r"table\.add\(value\)"),
        ("search", r"\.where\(lambda"),
        ("sync", "when it returns"),
    ):
        with pytest.raises(AttributeError, match=rf"db\.auto\.users has no '{name}': .*{advice}.* takes a block"):
            getattr(db.auto.users, name)
    with pytest.raises(AttributeError, match=r"t.users.by_age.select"):
        _ = db.auto.users.by_age.select
    with pytest.raises(AttributeError, match="did you mean 'users'"):
        _ = db.auto.user
    with pytest.raises(AttributeError, match="each operation has its own"):
        _ = db.auto.txn
    with pytest.raises(AttributeError, match=r"db.auto.users\[key\] = value"):
        db.auto.users = {}
    with pytest.raises(TypeError, match=r"with db.write\(\) as t"), db.auto:
        pass


def test_shells_list_the_tables(db: Any) -> None:
    assert [name for name in dir(db.auto) if not name.startswith("_")] == ["counts", "users"]


def test_unique_indexes_are_looked_up(db: Any) -> None:
    by_name = db.auto.users.by_name
    assert by_name["ann"] == by_name.get("ann") == User("ann", 30)
    assert by_name.key("ann") == 1
    assert "ann" in by_name
    assert "bob" not in by_name
    assert 30 in db.auto.users.by_age
    with pytest.raises(KeyError):
        by_name["bob"]
    with pytest.raises(zlmdb.DuplicateKey):
        db.auto.users[2] = User("ann", 31)
    assert list(content(db, "users")) == [1]


def test_missing_records_and_wrong_keys(db: Any) -> None:
    counts = db.auto.counts
    for _ in range(3):  # the general form, and then the fast path
        with pytest.raises(KeyError, match="zz"):
            counts["zz"]
        assert counts.get("zz") is None
        assert counts.get("zz", 5) == 5
        assert "zz" not in counts
        for wrong in (5, None, b"a"):
            for read in (counts.__getitem__, counts.get, counts.__contains__):
                with pytest.raises(zlmdb.EncodeError):
                    read(wrong)


def test_reads_see_what_blocks_and_other_databases_have_written(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store) as db, zlmdb.open(tmp_path / "db", Store) as other:
        counts = db.auto.counts
        for n in range(5):
            with other.write() as t:
                t.counts["n"] = n
            assert counts["n"] == n
            other.auto.counts["n"] = -n
            assert counts["n"] == -n
        other.table("made", str, int)  # opens handles
        assert counts["n"] == -4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_reads_see_what_other_processes_have_written(tmp_path: Path) -> None:
    program = (
        "import sys, zlmdb\n"
        "class Store(zlmdb.Schema):\n    counts: zlmdb.Table[str, int]\n"
        "with zlmdb.open(sys.argv[1], Store) as db: db.auto.counts['n'] = int(sys.argv[2])\n"
    )
    with zlmdb.open(tmp_path / "db", Store) as db:
        for n in range(2):
            subprocess.run([sys.executable, "-c", program, str(tmp_path / "db"), str(n)], check=True)
            assert db.auto.counts["n"] == n
            assert db.auto.counts["n"] == n


RENAMING = """
import sys, zlmdb
from dataclasses import dataclass
from typing import Annotated

@dataclass
class Person:
    title: Annotated[str, zlmdb.Was("name")]

class Store(zlmdb.Schema):
    people: zlmdb.Table[int, Person]

with zlmdb.open(sys.argv[1], Store) as db, db.write() as t:
    assert t.people[1] == Person("ann")
"""


@dataclass
class Person:
    name: str


class People(zlmdb.Schema):
    people: zlmdb.Table[int, Person]


class Named(zlmdb.Table[int, Person]):
    by_name = zlmdb.Index[str]("name")


class Indexed(zlmdb.Schema):
    people: Named


INDEXING = """
import sys, zlmdb
from dataclasses import dataclass

@dataclass
class Person:
    name: str

class Named(zlmdb.Table[int, Person]):
    by_name = zlmdb.Index[str]("name")

class Indexed(zlmdb.Schema):
    people: Named

zlmdb.open(sys.argv[1], Indexed).close()
"""


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_a_class_that_another_program_has_outdated_is_refused(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", People) as db:
        db.auto.people[1] = Person("ann")
        for _ in range(3):
            assert db.auto.people[1] == Person("ann")
        subprocess.run([sys.executable, "-c", RENAMING, str(tmp_path / "db")], check=True)
        for _ in range(3):
            with pytest.raises(zlmdb.SchemaMismatch, match="title"):
                db.auto.people[1]
        with pytest.raises(zlmdb.SchemaMismatch, match="title"):
            db.auto.people[2] = Person("bob")


def test_made_tables_are_items(db: Any) -> None:
    made = db.table("made", str, int)
    db.auto[made]["x"] = 1
    assert db.auto[made]["x"] == 1
    assert db.auto["counts"]["a"] == 1
    with pytest.raises(KeyError, match="nothing"):
        db.auto["nothing"]


@pytest.mark.parametrize("name", ["_db", "_idle", "_forget", "__dict__"])
def test_a_made_table_may_have_the_name_of_an_attribute(db: Any, name: str) -> None:
    made = db.table(name, str, int)
    db.auto[made]["a"] = 1
    assert (db.auto[name]["a"], db.auto.counts["a"]) == (1, 1)


def test_a_closed_database_says_so(tmp_path: Path) -> None:
    db = zlmdb.open(tmp_path / "db", Store)
    counts = db.auto.counts
    counts["a"] = 1
    assert counts["a"] == 1
    db.close()
    with pytest.raises(zlmdb.DatabaseClosed):
        counts["a"]
    with pytest.raises(zlmdb.DatabaseClosed):
        counts["b"] = 1


def test_a_closed_database_says_so_while_another_has_the_file_open(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store) as other:
        db = zlmdb.open(tmp_path / "db", Store)
        counts = db.auto.counts
        for n in range(3):
            counts["a"] = n
            assert counts["a"] == n
        db.close()
        with pytest.raises(zlmdb.DatabaseClosed):
            counts["a"] = 9
        with pytest.raises(zlmdb.DatabaseClosed):
            counts["a"]
        assert other.auto.counts["a"] == 2


def test_a_write_inside_of_a_block_is_refused(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store, durability="none") as db:
        for n in range(3):
            db.auto.counts["a"] = n
        with db.write() as t:
            t.counts["b"] = 1
            with pytest.raises(zlmdb.NestedTransaction):
                db.auto.counts["a"] = 9
        assert content(db, "counts") == {"a": 2, "b": 1}


def test_a_write_waits_for_a_block_of_another_thread_no_longer_than_the_timeout(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store, durability="none", timeout=0.05) as db:
        for n in range(3):
            db.auto.counts["a"] = n
        failed: list[BaseException] = []

        def write() -> None:
            try:
                db.auto.counts["a"] = 9
            except BaseException as error:
                failed.append(error)

        with db.write():
            thread = threading.Thread(target=write)
            thread.start()
            thread.join(20)
        assert [type(error) for error in failed] == [zlmdb.WriterTimeout]
        assert db.auto.counts["a"] == 2
        db.auto.counts["a"] = 3
        assert db.auto.counts["a"] == 3


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_write_leaves_no_index_incomplete_that_was_made_meanwhile(tmp_path: Path, elsewhere: bool) -> None:
    with zlmdb.open(tmp_path / "db", People) as db:
        for n in range(3):
            db.auto.people[n] = Person(f"name {n}")
        if elsewhere:
            subprocess.run([sys.executable, "-c", INDEXING, str(tmp_path / "db")], check=True)
            with pytest.raises(zlmdb.IndexNotAttached, match="by_name"):
                db.auto.people[3] = Person("name 3")
        with zlmdb.open(tmp_path / "db", Indexed) as other:
            with contextlib.suppress(zlmdb.IndexNotAttached):
                db.auto.people[3] = Person("name 3")
            other.auto.people[4] = Person("name 4")
            with other.read() as t:
                assert t.people.by_name.select().count() == len(t.people) > 3


def test_a_commit_that_fails_raises_and_the_next_one_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zlmdb.open(tmp_path / "db", Store, durability="none") as db:
        for n in range(3):
            db.auto.counts["a"] = n
        env = db._open_store.env

        class Failing:
            def __init__(self, raw: Any) -> None:
                self.raw = raw

            def __getattr__(self, name: str) -> Any:
                return getattr(self.raw, name)

            def commit(self) -> None:
                self.raw.abort()
                raise lmdb.DiskError("mdb_txn_commit: no")

        class Env:
            def __getattr__(self, name: str) -> Any:
                return getattr(env, name)

            def begin(self, *args: Any) -> Any:
                return Failing(env.begin(*args))

        with monkeypatch.context() as patched:
            patched.setattr(db._open_store, "env", Env())
            with pytest.raises(zlmdb.DiskError):
                db.auto.counts["a"] = 9
        assert db.auto.counts["a"] == 2
        db.auto.counts["a"] = 3
        assert db.auto.counts["a"] == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_reads_and_writes(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store) as db:
        counts = db.auto.counts
        counts["a"] = 1
        assert counts["a"] == 1

        def child() -> None:
            counts["b"] = counts["a"] + 1

        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join(20)
        assert process.exitcode == 0
        assert counts["b"] == 2


def test_the_map_grows_while_threads_read(tmp_path: Path) -> None:
    class Big(zlmdb.Schema):
        blobs: zlmdb.Table[int, bytes]

    with zlmdb.open(tmp_path / "db", Big, durability="none") as db:
        blobs = db.auto.blobs
        blobs[0] = b"first"
        stop = threading.Event()
        failures: list[BaseException] = []

        def read() -> None:
            try:
                while not stop.is_set():
                    assert blobs[0] == b"first"
                    time.sleep(0.0001)  # for the writer, who else waits for the interpreter at each step of LMDB
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for n in range(1, 60):
            blobs[n] = b"x" * 1_000_000
        stop.set()
        for thread in threads:
            thread.join(20)
        assert not failures
        assert len(blobs) == 60


def test_reads_beside_writers_leave_no_slots_of_readers(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store, durability="none") as db:
        db.auto.counts["a"] = 1

        def work() -> None:
            for _ in range(200):
                assert db.auto.counts["a"] == 1
                db.auto.counts["b"] = 2

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        gc.collect()  # PyPy frees objects only then
        most = 3 if sys.implementation.name == "cpython" else len(threads) + 1  # one each, to be used again
        assert len(db.readers()) <= most, "transactions are kept by the tracebacks of exceptions"


def test_threads_increment_without_losing_any(db: Any) -> None:
    def work() -> None:
        for _ in range(50):
            db.auto.counts.increment("n")

    db.auto.counts["n"] = 0
    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert db.auto.counts["n"] == 300


def test_no_read_stays_open(db: Any) -> None:
    for _ in range(3):
        assert db.auto.counts["a"] == 1
    assert [one for one in db._open_store.live.alive() if one.active] == []
    assert all(reader.snapshot is None or reader.age is None for reader in db.readers())
