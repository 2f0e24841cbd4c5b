"""What newcomers write first who come from an ORM, a dict on disk, documents or a notebook: what they are told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

import zlmdb
from zlmdb.values.base import library


@dataclass
class User:
    name: str
    id: int = 0


class Users(zlmdb.Table[int, User], key="id"):
    pass


class Store(zlmdb.Schema):
    users: Users
    texts: zlmdb.Table[str, str]


@pytest.fixture
def db() -> Iterator[Any]:
    with zlmdb.open(None, Store) as opened:
        yield opened


def test_an_id_that_no_store_gives_is_not_answered_with_how_to_lose_a_record(db: Any) -> None:
    """An ORM gives ids; here both records say 0, and the advice was to replace the first one with the second."""
    with db.write() as t:
        t.users.add(User("Ann"))
        with pytest.raises(
            zlmdb.DuplicateKey, match=r"takes the key from the field 'id'.*: give the record another one"
        ):
            t.users.add(User("Bob"))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda t: t.texts.close(), r"db\.close\(\), the database$"),
        (lambda t: t.users.where(lambda u: u.id > 1).close(), r"db\.close\(\), the database$"),
        (lambda t: t.texts.sync(), "the end of the block .* commits what was stored"),
        (lambda t: t.users.avg(lambda u: u.id), r"write \.fields\(lambda record: \.\.\.\)\.mean\(\)"),
        (lambda t: t.users.dicts(), r"write \.fields\("),
        (lambda t: t.users.insert_multiple([]), r"write \.put_many\("),
        (lambda t: t.texts.cursor(), r"write \.select\(start, stop\)"),
        (lambda t: t.close, r"t\.txn\.abort\(\), ends the transaction"),
    ],
)
def test_a_method_of_another_store_is_answered(db: Any, asked: Callable[[Any], Any], said: str) -> None:
    """Of close, Python itself suggested clear, which deletes all records."""
    with pytest.raises(AttributeError, match=said) as raised, db.write() as t:
        asked(t)
    assert "clear" not in str(raised.value)
    assert getattr(raised.value, "obj", None) is None  # which Python makes suggestions from


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("atomic", r"write `with db\.write\(\) as t:`"),
        ("search", r"write `with db\.write\(\) as t:`"),
        ("copy", r"db\.backup\(path\)"),
        ("stat", r"db\.stats\(\)"),
        ("set_mapsize", "the file grows by itself"),
        ("drop_tables", r"t\.table\.clear\(\) empties a table"),
    ],
)
def test_a_method_of_another_database_is_answered(db: Any, name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        getattr(db, name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Query", "a query is a function of a record"),
        ("where", "a query is a function of a record"),
        ("SqliteDict", r"write zlmdb\.open\(path, Schema\)"),
        ("open_cache", None),
        ("cashed", None),
    ],
)
def test_a_name_of_another_package_is_answered_and_not_with_what_is_private(name: str, said: Any) -> None:
    with pytest.raises(AttributeError, match=said) as raised:
        getattr(zlmdb, name)
    assert "did you mean '_" not in str(raised.value)


@pytest.mark.parametrize("given", [{}, {"path": "data", "schema": Store}, {"schema": Store}])
def test_a_path_and_a_schema_that_are_given_by_name_are_told_to_be_without(given: Any) -> None:
    """Python said that the argument 'path' is missing, also to those who gave it."""
    function: Any = zlmdb.open
    with pytest.raises(TypeError, match=r"without their names: write zlmdb\.open\(path, Schema\)"):
        function(**given)


def test_a_file_where_a_directory_would_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    with pytest.raises(NotADirectoryError, match="notes/data' cannot be used .*a file is where a directory would be"):
        zlmdb.open(tmp_path / "notes" / "data", Store)
    told = pytest.raises(NotADirectoryError, match="notes' is a file, not a directory: choose another path")
    with zlmdb.open(tmp_path / "db", Store) as db, told:
        db.backup(tmp_path / "notes" / "copy")


def test_two_functions_to_order_by_are_answered_with_a_tuple(db: Any) -> None:
    with db.read() as t, pytest.raises(TypeError, match=r"which may return a tuple, \(record\.name, desc\(record"):
        t.users.order_by(lambda user: user.name, lambda user: user.id)


def test_a_selection_that_leaves_its_block_is_answered_with_a_list(db: Any) -> None:
    def found() -> Any:
        with db.read() as t:
            return t.users.where(lambda user: user.name == "Ann")

    with pytest.raises(
        zlmdb.TransactionClosed, match=r"inside its with block, .* returns a list, as \.all\(\) gives it"
    ):
        list(found())


class Peer(zlmdb.Table[int, User]):
    """A table class may have constants, with an annotation or without."""

    SIZE = 10
    limit: int = 20
    kind: ClassVar[str]
    _own: int
    by_name: Any = zlmdb.Index[str]("name")


def test_a_column_in_a_table_class_is_answered_with_a_class_of_records() -> None:
    """It was taken for nothing: the table had no such field, and its records were those of another class."""
    said = r"^T: age: int declares no field, .* such as a dataclass with this line, .* class T\(zlmdb\.Table\[KeyType, "
    base: Any = zlmdb.Table
    for annotation in (int, "int"):
        with pytest.raises(TypeError, match=said):
            type("T", (base,), {"__annotations__": {"age": annotation}})
    with zlmdb.open(None, type("S", (zlmdb.Schema,), {"__annotations__": {"peers": Peer}})) as db, db.read() as t:
        peers: Any = t["peers"]
        assert (peers.SIZE, peers.limit, list(peers.by_name["Ann"])) == (10, 20, [])


def test_a_table_that_was_renamed_without_its_former_name_is_told_and_its_records_are_moved(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The new attribute was an empty table, of which nobody was told, and ``was=`` came too late to change that."""

    class Members(zlmdb.Table[int, User]):
        by_name = zlmdb.UniqueIndex[str]("name")

    class Renamed(zlmdb.Table[int, User], was="members"):
        by_name = zlmdb.UniqueIndex[str]("name")

    def move(t: Any, old: zlmdb.OldTables) -> None:
        t.people.update({key: User(**fields) for key, fields in old["members"].items()})
        old.drop("members")

    def opened(cls: Any, *migrations: zlmdb.Migration, **options: Any) -> Any:
        name = "members" if cls is Members and not migrations and not list(tmp_path.iterdir()) else "people"
        schema = type("Club", (zlmdb.Schema,), {"__annotations__": {name: cls}, "migrations": migrations})
        return zlmdb.open(tmp_path / "db", schema, **options)

    with opened(Members) as db, db.write() as t:
        t.members[1] = User("Ann")
    assert not caplog.records
    for _ in range(2):  # it is told once
        opened(Members).close()
    assert [record.getMessage() for record in caplog.records] == [
        "table people is new and empty, and members, of the same class Members, is in the file: if that is its former "
        "name, move the records with a migration, in which they are old['members']"
    ]
    with opened(Members) as db:
        db.table("guests", Members)  # several tables of a class that are made at run time are no renamed ones
        db.table("others", Members)
    assert len(caplog.records) == 1
    for readonly in (True, False):
        with pytest.raises(
            zlmdb.SchemaMismatch, match=r"^table 'people' of .* was begun before .* was='members', .*old"
        ):
            opened(Renamed, readonly=readonly)
    with opened(Members, zlmdb.Migration(1, "move", move)) as db:
        db.migrate()
        with db.read() as t:
            assert dict(t.people) == {1: User("Ann")}
            assert "members" not in t
    with opened(Renamed) as db, db.read() as t:
        assert dict(t.people) == {1: User("Ann")}


def test_a_library_that_a_frozen_program_lacks_is_not_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyInstaller puts into a program what code imports by name, and an optional library is imported by its use."""
    with pytest.raises(ImportError, match=r"^no_such_library is needed and not installed: pip install no-such$"):
        library("no_such_library", "no-such")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(ImportError, match=r": freeze the program with --hidden-import no_such_library$"):
        library("no_such_library", "no-such")


def test_a_duration_as_the_field_of_an_expiry_is_answered_with_both() -> None:
    with pytest.raises(TypeError, match=r"^expires=datetime.timedelta\(.*\): expected the name of a field, .*ttl="):

        class T(zlmdb.Table[int, User], expires=timedelta(hours=1)):  # type: ignore[arg-type]  # the mistake
            pass
