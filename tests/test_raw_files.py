"""LMDB files of other programs: their sub-databases as tables, written on request, and adopted for good."""

from __future__ import annotations

import io
import json
import struct
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lmdb
import pytest

import zlmdb
from zlmdb.engines.lmdb import manyspaces
from zlmdb.operations.foreignfile import foreign

from .waiters import in_another_thread

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python


@dataclass
class User:
    name: str


class Users(zlmdb.Table[int, zlmdb.Json[User]]): ...


class Store(zlmdb.Schema):
    users: Users
    names: zlmdb.Table[str, str]


class Indexed(zlmdb.Table[int, zlmdb.Json[User]], name="users"):
    by_name = zlmdb.Index[str]("name")


class Later(zlmdb.Schema):
    users: Indexed
    names: zlmdb.Table[str, str]


def key(number: int) -> bytes:
    return struct.pack(">Q", number + 2**63)


@pytest.fixture(params=[0, 1], ids=["0.9", "1.0"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "other"
    with lmdb.open(str(path), max_dbs=9, lib_version=request.param) as env:
        users, names, blobs = (env.open_db(name) for name in (b"users", b"names", b"blobs"))
        with env.begin(write=True) as txn:
            txn.put(key(1), b'{"name":"Ann"}', db=users)
            txn.put(key(2), b'{"name":"Bob"}', db=users)
            txn.put(b"a", b"one", db=names)
            txn.put(b"\xff", b"\0\1", db=blobs)
    return path


def raw(path: Path, schema: Any = Store, **options: Any) -> Any:
    return zlmdb.open(path, schema, layout="raw", **options)


def test_opening_such_a_file_says_how_to_read_it(path: Path) -> None:
    with pytest.raises(zlmdb.InvalidDatabase, match="layout='raw'"):
        zlmdb.open(path, Store)


def test_sub_databases_are_tables_of_given_types_or_of_bytes(path: Path) -> None:
    before = (path / "data.mdb").read_bytes()
    for options in ({"readonly": True}, {}):
        with raw(path, **options) as db, db.read() as t:
            assert dict(t.users) == {1: User("Ann"), 2: User("Bob")}
            assert list(t.users.select(2)) == [(2, User("Bob"))]
            assert t.users.where(lambda user: user.name == "Ann").count() == 1
            assert dict(t["blobs"]) == {b"\xff": b"\0\1"}
            assert dict(t["names"]) == {"a": "one"}
            assert sorted(t) == ["blobs", "names", "users"]
            with pytest.raises(KeyError):
                t["nothing"]
            assert {name: info.count for name, info in db.tables().items()} == {"blobs": 1, "names": 1, "users": 2}
            assert db.check().ok
    assert (path / "data.mdb").read_bytes() == before


def test_what_is_written_the_other_program_reads_and_nothing_else_changes(path: Path) -> None:
    with raw(path) as db:
        with db.write() as t:
            t.users[3] = User("Cid")
            del t.names["a"]
            t["blobs"][b"new"] = b"blob"
        made = db.table("blobs", bytes, bytes)
        with db.read() as t:
            assert t[made][b"new"] == b"blob"
    with lmdb.open(str(path), max_dbs=9) as env, env.begin() as txn:
        assert sorted(bytes(name) for name in env.dbs(txn)) == [b"blobs", b"names", b"users"]
        assert txn.get(key(3), db=env.open_db(b"users", txn)) == b'{"name":"Cid"}'
        assert txn.stat(env.open_db(b"names", txn))["entries"] == 0


def test_a_table_that_the_file_lacks_is_empty_and_is_not_created(path: Path) -> None:
    class More(zlmdb.Schema):
        more: zlmdb.Table[str, str]

    def write(t: Any) -> None:
        t.more["a"] = "b"

    with raw(path, More) as db:
        with db.read() as t:
            assert not t.more
        with pytest.raises(zlmdb.SchemaMismatch, match="is not in the file"):
            db.run(write)
    with pytest.raises(FileNotFoundError):
        raw(path.parent / "nothing")


def test_the_names_of_tables_are_not_taken_for_records(tmp_path: Path) -> None:
    """A table with a short name was said to be a record of another program, and one with a longer name a slot."""
    for name in (b"n", b"names"):
        with lmdb.open(str(tmp_path), max_dbs=9) as env, env.begin(write=True) as txn:
            txn.put(b"k", b"v", db=env.open_db(name, txn=txn))
    with zlmdb.open(tmp_path, layout="raw") as db:
        report = db.check()
        assert (report.problems, report.notes) == ([], [])
        stream = io.BytesIO()
        assert db.dump(stream).records == 2
        assert b"slot" not in stream.getvalue()
    with zlmdb.open(None, zlmdb.Schema) as db:
        stream.seek(0)
        assert db.load(stream).tables == 2


def test_values_that_do_not_fit_the_given_type_are_errors(path: Path) -> None:
    class Wrong(zlmdb.Schema):
        names: zlmdb.Table[int, str]

    with raw(path, Wrong) as db, db.read() as t, pytest.raises(zlmdb.DecodeError):
        list(t.names)


def test_adopted_it_is_a_file_of_zlmdb(path: Path) -> None:
    with raw(path) as db:
        assert db.adopt() == 4
        with db.write() as t:
            t.users[3] = User("Cid")
        assert db.layout == "tables"
        assert db.check().ok
        with pytest.raises(ValueError, match="already"):
            db.adopt()
    with zlmdb.open(path, Later) as db, db.read() as t:
        assert [user.name for user in t.users.by_name.select().values()] == ["Ann", "Bob", "Cid"]
        assert dict(t["blobs"]) == {b"\xff": b"\0\1"}
        assert db.check().ok
    with pytest.raises(zlmdb.InvalidDatabase, match="is a file of zlmdb"):
        raw(path)
    with zlmdb.open(path, Store) as db, pytest.raises(zlmdb.IndexNotAttached):
        db.run(lambda t: t.users.add(User("Dee")))


def test_adopting_waits_for_a_writer_no_longer_than_it_may(path: Path) -> None:
    with zlmdb.open(path, Store, layout="raw", timeout=0.05) as db:
        with in_another_thread(db.write), pytest.raises(zlmdb.WriterTimeout):
            db.adopt()
        assert db.adopt() == 4


def test_a_file_that_does_not_fit_is_not_adopted(path: Path) -> None:
    class Wrong(zlmdb.Schema):
        names: zlmdb.Table[str, int]

    before = (path / "data.mdb").read_bytes()
    with raw(path, Wrong) as db, pytest.raises(zlmdb.DecodeError, match="names"):
        db.adopt()
    assert (path / "data.mdb").read_bytes() == before
    with lmdb.open(str(path), max_dbs=9) as env, env.begin(write=True) as txn:
        txn.put(b"row", b"of main")
    with raw(path) as db:
        with db.begin() as plain:
            assert plain.get(b"row") == b"of main"
        with pytest.raises(zlmdb.ConstraintError, match="outside of its sub-databases"):
            db.adopt()


@pytest.mark.parametrize("layout", ["tables", "classic"])
def test_a_file_of_zlmdb_is_not_opened_past_its_tables(layout: Any, tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Store, layout=layout) as db, db.write() as t:
        t.users[1] = User("Ann")
    with pytest.raises(zlmdb.InvalidDatabase, match="is a file of zlmdb"):
        raw(tmp_path)


def test_sub_databases_of_other_orders_are_not_misread(tmp_path: Path) -> None:
    class Odd(zlmdb.Schema):
        many: zlmdb.Table[str, str]
        numbers: zlmdb.Table[bytes, bytes]

    with lmdb.open(str(tmp_path), max_dbs=9) as env:
        many, numbers = env.open_db(b"many", dupsort=True), env.open_db(b"numbers", integerkey=True)
        with env.begin(write=True) as txn:
            for value in (b"1", b"2"):
                txn.put(b"a", value, db=many)
            txn.put(struct.pack("=Q", 5), b"5", db=numbers)
    with raw(tmp_path, Odd) as db:
        with db.read() as t:
            with pytest.raises(zlmdb.SchemaMismatch, match="DUPSORT"):
                list(t.many)
            with pytest.raises(zlmdb.SchemaMismatch, match="native integers"):
                list(t.numbers)
        with pytest.raises(zlmdb.SchemaMismatch, match="DUPSORT"):
            db.run(lambda t: t.many.update({"b": "3"}))
        with pytest.raises(zlmdb.SchemaMismatch, match="cannot become a table"):
            db.adopt()


def test_the_commands_show_sub_databases_as_tables_of_bytes(path: Path) -> None:
    from click.testing import CliRunner

    from zlmdb.cli import main

    def run(*arguments: Any) -> Any:
        return CliRunner().invoke(main, [str(one) for one in arguments])

    assert "blobs" in run("tables", path).output
    assert run("get", path, "names", b"a".hex()).output.strip() == json.dumps({"$bytes": b64encode(b"one").decode()})
    assert len(run("select", path, "users").output.splitlines()) == 2
    assert run("put", path, "names", b"a".hex(), "00").exit_code == 1
    empty = path.parent / "empty"
    lmdb.open(str(empty)).close()
    (path.parent / "text").write_text("no database")
    for other in (empty, path.parent / "text"):
        assert run("select", other, "users").exit_code == 1


def test_indexes_and_other_layouts_are_refused(path: Path) -> None:
    with pytest.raises(zlmdb.SchemaMismatch, match="adopt"):
        raw(path, Later)
    with pytest.raises(ValueError, match="give the path"):
        zlmdb.open(None, Store, layout="raw")
    with raw(path), pytest.raises(zlmdb.DatabaseInUse, match="layout='raw'"):
        zlmdb.open(path, Store)


# -- more sub-databases than zlmdb opens of its own files -------------------------------------------------------------


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few tables are many here."""
    monkeypatch.setattr("zlmdb.engines.lmdb.engine.MAX_TABLES", 10)
    monkeypatch.setattr("zlmdb.engines.lmdb.engine._SAMPLE", 10)


def many_spaces(path: Path, count: int, plain: int = 0, lib_version: int = 0) -> None:
    env = lmdb.open(str(path), max_dbs=count, map_size=1 << 24, lib_version=lib_version)
    with env, env.begin(write=True) as txn:
        for number in range(count):
            txn.put(b"key", b"%d" % number, db=env.open_db(b"of %03d" % number, txn=txn))
        for number in range(plain):
            txn.put(b"a %05d" % number, bytes(48))


@pytest.mark.parametrize("lib_version", [0, 1])
def test_a_file_with_more_sub_databases_than_usual_is_read_whole_and_adopted(
    tmp_path: Path, few: None, lib_version: int
) -> None:
    """Those beyond the limit were left out without a word."""
    path = tmp_path / "db"
    many_spaces(path, 100, lib_version=lib_version)
    found = foreign(str(path))
    assert found is not None
    assert (len(found["sub_databases"]), found["records"]) == (100, 0)
    with pytest.raises(zlmdb.InvalidDatabase, match="layout='raw'"):
        zlmdb.open(path)
    with zlmdb.open(path, layout="raw", readonly=True) as db, db.read() as t:
        assert (len(db.tables()), len(list(t)), dict(t["of 099"])) == (100, 100, {b"key": b"99"})
    with zlmdb.open(path, layout="raw") as db:
        assert db.adopt() == 100
    with zlmdb.open(path) as db, db.read() as t:
        assert (len(db.tables()), dict(t["of 099"])) == (100, {b"key": b"99"})
        assert db.check().ok


def test_sub_databases_among_many_records_beyond_the_limit_are_an_error(tmp_path: Path, few: None) -> None:
    path = tmp_path / "db"
    many_spaces(path, 12, plain=500)
    with pytest.raises(zlmdb.DatabaseFull, match="MAX_TABLES"):
        zlmdb.open(path, layout="raw", readonly=True)


def test_a_file_full_of_records_is_opened_for_as_many_tables_as_usual(tmp_path: Path) -> None:
    path = tmp_path / "db"
    many_spaces(path, 3, plain=5000)
    assert manyspaces.handles(str(path / "data.mdb"), 1024) == 1024
    with zlmdb.open(path, layout="raw", readonly=True) as db, db.read() as t:
        assert sorted(t) == [f"of {number:03}" for number in range(3)]


def test_a_damaged_file_is_opened_for_as_many_tables_as_usual(tmp_path: Path) -> None:
    many_spaces(tmp_path / "db", 100)
    data = tmp_path / "db" / "data.mdb"
    whole = data.read_bytes()
    assert manyspaces.handles(str(data), 10) == 210
    data.write_bytes(whole[: 2 * 4096] + bytes(len(whole) - 2 * 4096))
    assert manyspaces.handles(str(data), 10) == 10
    data.write_bytes(b"nothing")
    assert manyspaces.handles(str(data), 10) == 10
