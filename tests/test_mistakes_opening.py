"""What newcomers get wrong with files, options and names: each is told what to write instead."""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import new_class
from typing import Any, NamedTuple

import pytest
from newcomers import Account, Books, Notebook, Planner, Task

import zlmdb
from zlmdb.values.base import library


def test_a_file_of_something_else_is_shown_as_text(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(8192))
    with pytest.raises(zlmdb.InvalidDatabase, match=r"begins with b'SQLite format 3.*check the path"):
        zlmdb.open(path, Notebook)


def test_options_of_other_stores_are_told_what_is_written_here(tmp_path: Path) -> None:
    open_any: Any = zlmdb.open
    for options, said in (
        ({"map_size": 1 << 30}, r"map_size=...\): there is no such option; .* maxsize= bytes"),
        ({"read_only": True}, r"read_only=...\): there is no such option; did you mean 'readonly'"),
        ({"writeback": True}, r"writeback=.*table\.edit\(key\)"),
    ):
        with pytest.raises(TypeError, match=rf"^open\(\.\.\., {said}"):
            open_any(tmp_path / "db", Notebook, **options)
    with pytest.raises(TypeError, match=r"^open\(\) takes a path and a schema, and got 'r' as well: .*readonly=True"):
        open_any(tmp_path / "db", Notebook, "r")
    assert not (tmp_path / "db").exists()


def test_a_database_that_nothing_refers_to_any_more_says_so() -> None:
    kept = zlmdb.open(None, Notebook)
    t = kept.write()
    kept.close()
    with pytest.raises(zlmdb.DatabaseClosed, match=r"^the database in memory is closed: .*nothing refers to"), t:
        pass


def test_a_path_without_a_database_is_named_by_salvage_and_verify(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no database at '.*gone.*': check the path"):
        zlmdb.Database.salvage(tmp_path / "gone", tmp_path / "new")
    with pytest.raises(FileNotFoundError, match=r"no database at '.*gone.*': check the path"):
        zlmdb.Database.verify(tmp_path / "gone")
    assert not list(tmp_path.iterdir())


def test_a_path_with_a_tilde_makes_no_directory_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"write os\.path\.expanduser\('~/data'\)"):
        zlmdb.open("~/data", Notebook)
    (tmp_path / "~").mkdir()
    zlmdb.open("~/data", Notebook).close()


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(zlmdb.InvalidDatabase, match=r"data' is empty: check the path"):
        zlmdb.open(tmp_path / "data", readonly=True)
    for schema in (None, zlmdb.Schema):  # which must not make a database either
        with pytest.raises(zlmdb.InvalidDatabase, match=r"data' is empty: check the path"):
            zlmdb.open(tmp_path / "data", schema, create=False)
    assert [one.name for one in tmp_path.iterdir()] == ["data"]


def test_a_database_lists_what_it_has_only_and_says_of_its_own_tables_where_they_are(
    notebook: Any, tmp_path: Path
) -> None:
    class Others(zlmdb.Schema):
        elsewhere: zlmdb.Table[str, int]

    with zlmdb.open(tmp_path, Others) as other:
        made = other.table("made", str, int)
        for name in ("elsewhere", made.name):
            with pytest.raises(
                AttributeError, match=rf"no attribute '{name}': tables are in a transaction.*t\.{name}$"
            ):
                getattr(other, name)
            with pytest.raises(AttributeError, match=rf"'Database' object has no attribute '{name}'$"):
                getattr(notebook, name)
        assert {"read", "auto"} <= set(dir(other))
        assert {"elsewhere", "made", "get"}.isdisjoint(dir(other))
        assert not hasattr(type(other), "elsewhere")
    with pytest.raises(AttributeError, match=r"'Database' object has no attribute 'raed'$"):
        getattr(notebook, "raed")  # noqa: B009


ByText = zlmdb.Table[str, Task]


def _with(index: Any, model: Any = Task) -> Any:
    """A schema whose table has the *index*."""
    table = new_class("Indexed", (zlmdb.Table[int, model],), {}, lambda body: body.update({"by_it": index}))
    return new_class("S", (zlmdb.Schema,), {}, lambda body: body.update({"__annotations__": {"tasks": table}}))


def _annotated(model: Any) -> Any:
    return lambda body: body.update({"__annotations__": {"tasks": zlmdb.Table[int, model]}})


def test_a_mismatch_names_the_class_of_a_table_only_if_it_has_one(tmp_path: Path) -> None:
    @dataclass
    class Other:
        title: str

    with zlmdb.open(tmp_path, new_class("S", (zlmdb.Schema,), {}, _annotated(Task))):
        pass
    with pytest.raises(zlmdb.SchemaMismatch, match=r"^table 'tasks': "):
        zlmdb.open(tmp_path, new_class("S", (zlmdb.Schema,), {}, _annotated(Other)))
    with pytest.raises(zlmdb.SchemaMismatch, match=r"^table 'tasks' of the class Indexed: "):
        zlmdb.open(tmp_path, _with(zlmdb.Index[str]("title"), Other))
    text_keys: Any = new_class("S", (zlmdb.Schema,), {}, lambda body: body.update(__annotations__={"tasks": ByText}))
    with pytest.raises(zlmdb.SchemaMismatch, match=r"^table 'tasks' in the file has keys of type int, the program"):
        zlmdb.open(tmp_path, text_keys)


def test_a_mode_for_reading_is_answered_with_readonly(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^mode='r': expected the mode of new files.*readonly=True"):
        zlmdb.open(tmp_path, Planner, mode="r")  # type: ignore[call-overload]


def test_the_names_of_tables_are_not_listed_among_constants_of_classic_programs(planner: Any) -> None:
    with planner.read() as t:
        assert [name for name in dir(t) if not name.startswith("_")] == ["jobs", "slot", "tasks", "txn"]


def test_one_migration_in_place_of_a_tuple_is_told_so() -> None:
    class Alone(zlmdb.Schema):
        posts: zlmdb.Table[int, str]
        migrations = zlmdb.Migration(1, "alone", lambda t: None)

    with pytest.raises(TypeError, match="migrations is one migration: expected a tuple"):
        zlmdb.open(None, Alone)


ANY: Any = zlmdb


def test_what_the_package_lacks_gets_no_second_suggestion() -> None:
    """Python adds the nearest name to an error that names the object, when it shows a traceback."""
    with pytest.raises(AttributeError, match="there are zlmdb.Cache") as caught:
        _ = ANY.Lock
    assert "".join(traceback.format_exception_only(AttributeError, caught.value)).endswith("of the documentation\n")
    assert getattr(caught.value, "obj", None) is None


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


@pytest.mark.parametrize("given", [{}, {"path": "data", "schema": Books}, {"schema": Books}])
def test_a_path_and_a_schema_that_are_given_by_name_are_told_to_be_without(given: Any) -> None:
    """Python said that the argument 'path' is missing, also to those who gave it."""
    function: Any = zlmdb.open
    with pytest.raises(TypeError, match=r"without their names: write zlmdb\.open\(path, Schema\)"):
        function(**given)


def test_a_file_where_a_directory_would_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    with pytest.raises(NotADirectoryError, match="notes/data' cannot be used .*a file is where a directory would be"):
        zlmdb.open(tmp_path / "notes" / "data", Books)
    told = pytest.raises(NotADirectoryError, match="notes' is a file, not a directory: choose another path")
    with zlmdb.open(tmp_path / "db", Books) as books, told:
        books.backup(tmp_path / "notes" / "copy")


def test_a_table_that_was_renamed_without_its_former_name_is_told_and_its_records_are_moved(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The new attribute was an empty table, of which nobody was told, and ``was=`` came too late to change that."""

    class Members(zlmdb.Table[int, Account]):
        by_name = zlmdb.UniqueIndex[str]("name")

    class Renamed(zlmdb.Table[int, Account], was="members"):
        by_name = zlmdb.UniqueIndex[str]("name")

    def move(t: Any, old: zlmdb.OldTables) -> None:
        t.people.update({key: Account(**fields) for key, fields in old["members"].items()})
        old.drop("members")

    def opened(cls: Any, *migrations: zlmdb.Migration, **options: Any) -> Any:
        name = "members" if cls is Members and not migrations and not list(tmp_path.iterdir()) else "people"
        schema = type("Club", (zlmdb.Schema,), {"__annotations__": {name: cls}, "migrations": migrations})
        return zlmdb.open(tmp_path / "db", schema, **options)

    with opened(Members) as books, books.write() as t:
        t.members[1] = Account("Ann")
    assert not caplog.records
    for _ in range(2):  # it is told once
        opened(Members).close()
    assert [record.getMessage() for record in caplog.records] == [
        "table people is new and empty, and members, of the same class Members, is in the file: if that is its former "
        "name, move the records with a migration, in which they are old['members']"
    ]
    with opened(Members) as books:
        books.table("guests", Members)  # several tables of a class that are made at run time are no renamed ones
        books.table("others", Members)
    assert len(caplog.records) == 1
    for readonly in (True, False):
        with pytest.raises(
            zlmdb.SchemaMismatch, match=r"^table 'people' of .* was begun before .* was='members', .*old"
        ):
            opened(Renamed, readonly=readonly)
    with opened(Members, zlmdb.Migration(1, "move", move)) as books:
        books.migrate()
        with books.read() as t:
            assert dict(t.people) == {1: Account("Ann")}
            assert "members" not in t
    with opened(Renamed) as books, books.read() as t:
        assert dict(t.people) == {1: Account("Ann")}


def test_a_library_that_a_frozen_program_lacks_is_not_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyInstaller puts into a program what code imports by name, and an optional library is imported by its use."""
    with pytest.raises(ImportError, match=r"^no_such_library is needed and not installed: pip install no-such$"):
        library("no_such_library", "no-such")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(ImportError, match=r": freeze the program with --hidden-import no_such_library$"):
        library("no_such_library", "no-such")


@pytest.mark.skipif(
    sys.version_info < (3, 10) or sys.implementation.name == "pypy",
    reason="only CPython, from 3.10 on, says in an error which object has no such attribute, and whose method it is",
)
@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda db: db.runs, "'runs': did you mean 'run'"),
        (lambda db: db.reed, "'reed': did you mean 'read'"),
        (lambda db: db.watch, r"'watch': write db.changes\('users'\)"),
        (lambda db: db.save, r"'save': .*commits, .*; db.backup\(path\) copies the file"),
        (lambda db: db.run(len, 1), r"write db.run\(lambda t: function\(t, ...\)\)$"),
        (lambda db: db.nosuch, "no attribute 'nosuch'$"),
        (lambda db: db.dump("x", "notes"), r"but 3 were given; write db.dump\(file, tables="),
        (lambda db: db.dump("x", notes=True), r"'notes'; write db.dump\(file, tables="),
        (lambda db: db.load("notes", "x"), r"were given; it stores the tables that the file has: .*db.load\(file\)"),
    ],
)
def test_the_end_of_the_block_of_a_database_says_what_it_has(use: Any, said: str) -> None:
    with pytest.raises((AttributeError, TypeError), match=said), zlmdb.open(None, Notebook) as db:
        use(db)


def test_what_is_dumped_and_where_to_is_told(tmp_path: Path) -> None:
    path = tmp_path / "dump"
    with zlmdb.open(None, Notebook) as db:
        given: Any = db
        with path.open("wb") as binary, path.open("w+") as text:
            for tables in ("notes", [Notebook], [None]):
                with pytest.raises(TypeError, match=r"give a list of names of tables, such as tables=\['users'\]$"):
                    given.dump(binary, tables=tables)
            with pytest.raises(TypeError, match=r"give an open binary file, with open\(path, 'wb'\)"):
                given.dump(text)
            with pytest.raises(TypeError, match=r"give an open binary file, with open\(path, 'rb'\)"):
                given.load(text)
        assert path.read_bytes() == b""
        with pytest.raises(
            TypeError, match=r"^table\(\) takes a name, and then a class: write db.table\('...', Task\)$"
        ):
            given.table(Task)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("create", r"write zlmdb.open\(path, Schema\)"),
        ("open_database", r"write zlmdb.open\(path, Schema\)"),
        ("Abort", r"any exception that leaves the block undoes it, and so does t.txn.abort\(\)"),
        ("Key", r"the key has no field: class Users\(zlmdb.Table\[int, User\]\) has int keys"),
    ],
)
def test_names_of_other_modules_are_answered(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module 'zlmdb' has no attribute '{name}': {said}"):
        getattr(zlmdb, name)


class Place(NamedTuple):
    x: int
    y: str


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (dict[str, int], r"Table\[KeyType, ValueType\]; a dict is a Table with the same types$"),
        (set[str], r"Table\[KeyType, ValueType\], such as zlmdb.Table\[str, bool\]$"),
        (zlmdb.Cache, r"; a cache is a file of its own, zlmdb.Cache\(path\)$"),
        (zlmdb.Table[Place, int], r"Of a NamedTuple, write tuple\[int, str\]: its objects are keys of that type$"),
    ],
)
def test_what_is_no_table_and_no_key_is_answered_with_one(declared: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        zlmdb.open(None, type("Store", (zlmdb.Schema,), {"__annotations__": {"things": declared}}))


def test_the_place_of_the_schema_is_told() -> None:
    given: Any = zlmdb.open
    with pytest.raises(TypeError, match=r"^the path comes first: write zlmdb.open\('data', Notebook\)$"):
        given(Notebook, "data")
    with pytest.raises(TypeError, match=r"got 'r': give the class .*, and readonly=True only reads it$"):
        given("data", "r")


def test_a_link_to_a_table_without_a_class_of_its_own_is_told() -> None:
    link: Any = zlmdb.ForeignKey[zlmdb.Table[int, Task]]("stars")

    class Linked(zlmdb.Table[int, Task]):
        by_stars = link

    store = type("Store", (zlmdb.Schema,), {"__annotations__": {"linked": Linked, "tasks": zlmdb.Table[int, Task]}})
    with pytest.raises(TypeError, match=r"which may be any table: give the linked table a class of its own"):
        zlmdb.open(None, store)
