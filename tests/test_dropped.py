"""Sub-databases that a foreign tool has dropped: nothing is written past an index, and opening makes them again."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from operated import child

import zlmdb

pytestmark = pytest.mark.twice  # processes and what is in files, which no version of Python makes different
both_formats = pytest.mark.parametrize("version", ["0.9", pytest.param("1.0", marks=pytest.mark.once)])
each_index = pytest.mark.parametrize("dropped", ["i:users:by_name", "i:users:by_age"])


@dataclass
class User:
    name: str
    age: int


class Users(zlmdb.Table[int, User]):
    """Users by number."""

    by_name = zlmdb.UniqueIndex[str]("name")
    by_age = zlmdb.Index[int]("age")


class Store(zlmdb.Schema):
    users: Users
    notes: zlmdb.Table[str, int]


def new(path: Path, version: str) -> None:
    zlmdb.Database(path, lib_version=version).close()
    with zlmdb.open(path, Store) as db, db.write() as t:
        t.users.update({1: User("ann", 30), 2: User("bob", 40)})
        t.notes["a"] = 1


def drop(path: Path, *names: str) -> None:
    """As another program does, with LMDB alone."""
    program = f"""
import lmdb
env = lmdb.open({str(path)!r}, max_dbs=10)
for name in {names!r}:
    handle = env.open_db(name.encode(), create=False)
    with env.begin(write=True) as txn:
        txn.drop(handle)
"""
    subprocess.run(child(program), check=True, timeout=60)


@both_formats
@each_index
def test_a_dropped_index_is_built_again_when_the_file_is_opened(dropped: str, version: str, tmp_path: Path) -> None:
    new(tmp_path / "db", version)
    drop(tmp_path / "db", dropped)
    with zlmdb.open(tmp_path / "db", Store) as db:
        assert db.check().ok
        with db.write() as t:
            assert t.users.by_name["bob"] == User("bob", 40)
            assert list(t.users.by_age.select(35).keys()) == [2]
            with pytest.raises(zlmdb.DuplicateKey):
                t.users[3] = User("ann", 1)
            t.users[3] = User("eve", 1)
        assert db.check().ok


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@both_formats
@each_index
def test_until_then_nothing_is_written_past_it(dropped: str, version: str, tmp_path: Path) -> None:
    new(tmp_path / "db", version)
    drop(tmp_path / "db", dropped)
    with zlmdb.open(tmp_path / "db", Store, create=False) as db:
        writes: list[Any] = [
            lambda t: t.users.update({3: User("ann", 1)}),
            lambda t: t.users.__setitem__(3, User("ann", 1)),
            lambda t: t.users.__setitem__(1, User("bob", 1)),
            lambda t: t.users.__delitem__(1),
            lambda t: t.users.put_many([(3, User("ann", 1))]),
            lambda t: t.users.select().delete(),
            lambda t: t.users.clear(),
        ]
        for write in writes:
            with pytest.raises(zlmdb.IndexNotBuilt, match="dropped from the file by another program"), db.write() as t:
                write(t)
        with db.write() as t:
            t.notes["b"] = 2  # other tables go on
            assert len(t.users) == 2
    with zlmdb.open(tmp_path / "db", Store) as db:
        assert db.check().ok
        with db.read() as t:
            assert dict(t.users) == {1: User("ann", 30), 2: User("bob", 40)}


@both_formats
@each_index
def test_a_program_that_has_it_open_cannot_write_past_it(dropped: str, version: str, tmp_path: Path) -> None:
    new(tmp_path / "db", version)
    with zlmdb.open(tmp_path / "db", Store) as db:
        drop(tmp_path / "db", dropped)
        with pytest.raises(zlmdb.Error), db.write() as t:
            t.users[3] = User("cid", 30)
        assert {one.kind for one in db.check().problems} == {"catalogue"}
    with zlmdb.open(tmp_path / "db", Store) as db:
        assert db.check().ok
        with db.read() as t:
            assert list(t.users) == [1, 2]


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@both_formats
def test_a_reader_of_a_dropped_index_is_told_and_changes_nothing(version: str, tmp_path: Path) -> None:
    new(tmp_path / "db", version)
    drop(tmp_path / "db", "i:users:by_name")
    before = (tmp_path / "db" / "data.mdb").read_bytes()
    with zlmdb.open(tmp_path / "db", Store, readonly=True) as db, db.read() as t:
        assert t.users[1] == User("ann", 30)
        with pytest.raises(zlmdb.IndexNotBuilt):
            t.users.by_name["ann"]
    assert (tmp_path / "db" / "data.mdb").read_bytes() == before


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_duplicates_that_came_in_meanwhile_are_named(tmp_path: Path) -> None:
    class Plain(zlmdb.Schema):
        users: zlmdb.Table[int, User]

    new(tmp_path / "db", "0.9")
    with zlmdb.open(tmp_path / "other", Plain) as db, db.write() as t:
        t.users[3] = User("ann", 1)
    drop(tmp_path / "db", "i:users:by_name")
    program = f"""
import lmdb
other = lmdb.open({str(tmp_path / "other")!r}, max_dbs=10)
env = lmdb.open({str(tmp_path / "db")!r}, max_dbs=10)
source, target = other.open_db(b"t:users"), env.open_db(b"t:users")
with other.begin() as old, env.begin(write=True) as txn:
    for key, value in old.cursor(source):
        txn.put(key, value, db=target)
"""
    subprocess.run(child(program), check=True, timeout=60)
    with pytest.raises(zlmdb.DuplicateKey, match="ann"):
        zlmdb.open(tmp_path / "db", Store)


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@both_formats
def test_a_dropped_table_is_empty_with_all_its_indexes(version: str, tmp_path: Path) -> None:
    new(tmp_path / "db", version)
    drop(tmp_path / "db", "t:users", "t:notes")
    with zlmdb.open(tmp_path / "db", Store) as db:
        assert db.check().ok
        with db.write() as t:
            assert list(t.users.by_name.select().keys()) == []
            t.users[7] = User("ann", 1)
            t.notes["a"] = 2
        assert db.check().ok


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_the_index_of_a_classic_map_is_built_again(tmp_path: Path) -> None:
    @zlmdb.table("d6a4c7f0-0000-4000-8000-000000000021")
    class People(zlmdb.MapOidJson):
        """People."""

    @zlmdb.table("d6a4c7f0-0000-4000-8000-000000000022")
    class Names(zlmdb.MapStringOid):
        """Names."""

    def attached(db: Any) -> Any:
        people, names = db.attach_table(People), db.attach_table(Names)
        people.attach_index("name", names, lambda one: one["name"])
        return people, names

    with zlmdb.Database(tmp_path / "db") as db:
        people, _ = attached(db)
        with db.begin(write=True) as txn:
            people[txn, 1] = {"name": "ann"}
    drop(tmp_path / "db", "t:d6a4c7f0-0000-4000-8000-000000000022")
    with zlmdb.Database(tmp_path / "db") as db:
        people, names = attached(db)
        with db.begin(write=True) as txn:
            with pytest.raises(zlmdb.DuplicateKey):
                people[txn, 2] = {"name": "ann"}
            people[txn, 3] = {"name": "eve"}
            assert dict(names.select(txn)) == {"ann": 1, "eve": 3}
        assert db.check().ok
