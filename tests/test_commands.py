"""The commands: what they print, in words and in JSON, their exit codes, what they refuse, and the page about them."""

from __future__ import annotations

import errno
import inspect
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, Optional
from uuid import UUID

import click
import lmdb
import pytest
from click.testing import CliRunner, Result
from operated import Store, child, content, data_file, flip, make

import zlmdb
from zlmdb.cli import main, output
from zlmdb.operations.progress import silent
from zlmdb.schema import indexbuilding
from zlmdb.store.definitions import key_of

pytestmark = pytest.mark.once  # commands say the same on every interpreter

PAGE = Path(__file__).parent.parent / "docs" / "cli.rst"
ID = str(UUID(int=7))
ODD_NAME = pytest.param(
    "it's\na \\", marks=pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such file names")
)


def run(*arguments: object, **options: Any) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments], **options)


def ok(*arguments: object, **options: Any) -> str:
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def answer(*arguments: object) -> Any:
    return json.loads(ok(*arguments, "--json"))


def rows(*arguments: object) -> list[Any]:
    return [json.loads(line) for line in ok(*arguments).splitlines()]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    make(tmp_path / "db", 20)
    return tmp_path / "db"


# -- looking --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["tables", "classic"])
def test_info_and_tables(layout: Any, tmp_path: Path) -> None:
    make(tmp_path / "db", 20, layout=layout)
    facts = answer("info", tmp_path / "db")
    assert (facts["layout"], facts["lmdb_format"], facts["tables"], facts["records"]) == (layout, "0.9", 5, 100)
    assert "lmdb format" in ok("info", tmp_path / "db")
    by_name = {one["table"]: one for one in answer("tables", tmp_path / "db")}
    assert by_name["users"]["key"] == "uuid"
    assert by_name["users"]["indexes"][0] == "by_email"
    assert by_name["weather"]["value"] == "zlib(json)"
    assert re.search(r"logins +str +int64 +20 ", ok("tables", tmp_path / "db"))


def test_info_can_require_a_format_of_lmdb(db: Path, tmp_path: Path) -> None:
    assert "lmdb format" in ok("info", db, "--lib-version", "0.9")
    other = run("info", db, "--lib-version", "1.0")
    assert other.exit_code == 1
    assert "has the LMDB 0.9 format, --lib-version requires 1.0" in other.output
    assert "lmdb format" not in other.output
    lmdb.open(str(tmp_path / "foreign")).close()
    assert run("info", tmp_path / "foreign", "--lib-version", "1.0").exit_code == 1
    assert run("info", db, "--lib-version", "2.0").exit_code == 2


@pytest.mark.skipif(not os.path.exists("/proc/self/ns/pid"), reason="this system has no namespaces of process ids")
def test_info_tells_the_namespace_of_process_ids(db: Path) -> None:
    assert answer("info", db)["pid_namespace"] == os.readlink("/proc/self/ns/pid")


def test_get_takes_and_gives_typed_keys_and_values(db: Path) -> None:
    assert json.loads(ok("get", db, "users", ID))["email"] == "u7@example.com"
    assert ok("get", db, "logins", "user 7") == "7\n"
    assert json.loads(ok("get", db, "weather", '["Lima", "2024-01-03T00:00:00Z"]')) == {"degrees": 2.5}
    assert list(json.loads(ok("get", db, "blobs", b"000007".hex()))) == ["$bytes"]


def test_get_of_no_record_has_an_exit_code_of_its_own(db: Path) -> None:
    assert run("get", db, "logins", "nobody").exit_code == 4
    assert run("delete", db, "logins", "nobody").exit_code == 4
    assert run("get", db, "logins", "nobody", "--json").stdout == "null\n"


def test_select_gives_ranges_as_lines_of_json(db: Path) -> None:
    assert [row["key"] for row in rows("select", db, "objects", "--from", 3, "--to", 6)] == [3, 4, 5]
    assert [row["key"] for row in rows("select", db, "objects", "--reverse", "--limit", 2, "--keys")] == [19, 18]
    assert [row["value"] for row in rows("select", db, "logins", "--startswith", "user 1", "--limit", 3)] == [1, 10, 11]
    assert len(rows("select", db, "weather", "--prefix", '["Lima"]')) == 20
    assert ok("select", db, "users", "--count") == "20\n"
    assert rows("select", db, "users", "--limit", 1)[0]["key"] == str(UUID(int=0))


def test_nothing_is_unpickled_unless_asked(db: Path, tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "exploded"),)

    with zlmdb.open(db, Store) as store, store.write() as t:
        t.objects[99] = Bomb()
    assert list(rows("select", db, "objects", "--limit", 1)[0]["value"]) == ["$pickle"]
    for command in (["select", db, "objects"], ["get", db, "objects", 99], ["check", db], ["dump", db], ["tables", db]):
        ok(*command)
    ok("salvage", db, tmp_path / "salvaged")
    assert not (tmp_path / "exploded").exists()
    assert json.loads(ok("get", db, "objects", 7, "--unpickle")) == {"n": 7}
    run("get", db, "objects", 99, "--unpickle")
    assert (tmp_path / "exploded").exists()


def test_put_and_delete(db: Path) -> None:
    ok("put", db, "logins", "new", "5")
    assert ok("get", db, "logins", "new") == "5\n"
    ok("put", db, "weather", '["Oslo", "2024-01-03T00:00:00Z"]', '{"degrees": -3.5}')
    assert answer("put", db, "blobs", "ff", "00ff") == {"stored": 1}
    assert answer("delete", db, "logins", "new") == {"deleted": 1}
    with zlmdb.open(db, Store) as store, store.read() as t:
        assert "new" not in t.logins
        assert t.blobs[b"\xff"] == b"\x00\xff"
        assert t.weather.select(prefix=("Oslo",)).count() == 1


def test_put_refuses_what_only_a_program_can_write(db: Path) -> None:
    assert (
        f"with zlmdb.open({str(db)!r}, Store) as db: db.auto.users[key] = " in run("put", db, "users", ID, "{}").output
    )
    assert "Store) as db: del db.auto.users[key]" in run("delete", db, "users", ID).output
    assert run("put", db, "users", ID, "{}").exit_code == 1
    assert run("put", db, "objects", "1", "1").exit_code == 2
    assert run("put", db, "logins", "a", "not json").exit_code == 2
    assert run("put", db, "logins", "a", '"text"').exit_code == 1
    assert run("put", db, "users", "one", "{}").exit_code == 1


@pytest.mark.once  # twenty times the command line, of which PyPy is slow to begin
def test_put_checks_the_fields_that_the_file_records(tmp_path: Path) -> None:
    @dataclass
    class Address:
        city: str
        tags: set[str] = field(default_factory=set)

    @dataclass
    class Person:
        name: str
        born: date
        address: Address
        age: int = 5
        made: dict[str, int] = field(default_factory=lambda: {"a": 1})

    class Point(NamedTuple):
        x: int
        y: int = 7

    class People(zlmdb.Schema):
        people: zlmdb.Table[int, Person]
        cbor: zlmdb.Table[int, zlmdb.Zlib[zlmdb.Cbor[Person]]]
        flat: zlmdb.Table[int, zlmdb.FlatBuffers[Person]]
        points: zlmdb.Table[int, Point]

    path = tmp_path / "people"
    zlmdb.open(path, People).close()
    given: dict[str, Any] = {"name": "Ann", "born": "2001-02-03", "address": {"city": "Rome"}, "made": {}}
    for table in ("people", "cbor", "flat"):
        ok("put", path, table, 1, json.dumps(given))
        for wrong in (
            {**given, "born": "soon"},
            {**given, "mame": 1},
            {**given, "address": {"city": "Rome", "zip": 1}},
            {**given, "age": "old"},
            {name: value for name, value in given.items() if name != "name"},
            {name: value for name, value in given.items() if name != "made"},  # whose default only the program knows
        ):
            found = run("put", path, table, 2, json.dumps(wrong))
            assert found.exit_code == 1
            assert "does not fit the fields that the file records, {name: str" in found.output
    ok("put", path, "points", 1, "[3]")
    assert run("put", path, "points", 2, '[3, "x"]').exit_code == 1
    with zlmdb.open(path, People, create=False) as db, db.read() as t:
        ann = Person("Ann", date(2001, 2, 3), Address("Rome"), made={})
        assert [dict(table) for table in (t.people, t.cbor, t.flat)] == [{1: ann}] * 3
        assert dict(t.points) == {1: Point(3)}
    ok("delete", path, "people", 1)
    assert rows("select", path, "people") == []


def test_flatbuffers_are_shown_by_the_fields_that_the_file_records(tmp_path: Path) -> None:
    class Colour(Enum):
        RED = "red"
        BLUE = "blue"

    @dataclass
    class Part:
        name: str
        data: bytes = b""

    @dataclass
    class Car:
        made: date
        colour: Colour
        parts: list[Part]
        owner: Optional[str] = None
        by_name: dict[str, int] = field(default_factory=lambda: {"a": 1})

    class Cars(zlmdb.Schema):
        cars: zlmdb.Table[int, zlmdb.FlatBuffers[Car]]
        zipped: zlmdb.Table[int, zlmdb.Zlib[zlmdb.FlatBuffers[Car]]]

    path = tmp_path / "cars"
    with zlmdb.open(path, Cars) as db, db.write() as t:
        t.cars[1] = t.zipped[1] = Car(date(2001, 2, 3), Colour.BLUE, [Part("wheel", b"\xff")], by_name={"b": 2})
    stored = {
        "made": "2001-02-03", "colour": "blue", "parts": [{"name": "wheel", "data": {"$bytes": "/w=="}}],
        "owner": None, "by_name": {"b": 2},
    }  # fmt: skip
    for table in ("cars", "zipped"):
        assert json.loads(ok("get", path, table, 1)) == stored
        assert rows("select", path, table) == [{"key": 1, "value": stored}]
    raw = run("get", path, "cars", 1, "--raw")
    assert (raw.exit_code, b"wheel" in raw.stdout_bytes) == (0, True)


def test_put_checks_the_type_of_values_without_fields(tmp_path: Path) -> None:
    class Plain(zlmdb.Schema):
        documents: zlmdb.Table[str, dict[str, Any]]
        numbers: zlmdb.Table[str, zlmdb.Json[list[int]]]
        sets: zlmdb.Table[str, zlmdb.Zlib[zlmdb.Cbor[dict[str, set[int]]]]]
        anything: zlmdb.Table[str, Any]

    path = tmp_path / "plain"
    zlmdb.open(path, Plain).close()
    for table, wrong, right in (
        ("documents", "[1]", '{"a": [1]}'),
        ("numbers", '["a"]', "[1]"),
        ("sets", '{"a": 1}', '{"a": [1]}'),
    ):
        found = run("put", path, table, "a", wrong)
        assert found.exit_code == 1
        assert "does not fit the type that the file records, " in found.output
        ok("put", path, table, "a", right)
    ok("put", path, "anything", "a", "[1]")

    class Indexed(zlmdb.Table[str, dict[str, Any]], name="documents"):
        by_a = zlmdb.Index[int](lambda document: document["a"][0], version=1)

    class Later(Plain):
        documents: Indexed  # type: ignore[assignment]  # of the same table, with an index

    with zlmdb.open(path, Later) as db, db.read() as t:
        assert dict(t.documents) == {"a": {"a": [1]}}
        assert (t.numbers["a"], t.sets["a"], t.anything["a"]) == ([1], {"a": {1}}, [1])


def test_put_knows_the_field_that_is_the_key(tmp_path: Path) -> None:
    @dataclass
    class City:
        code: str
        name: str

    class Cities(zlmdb.Table[str, City], key="code"):
        """Cities by their code."""

    class Notes(zlmdb.Table[int, dict[str, int]], key="id"):
        """Documents by their number."""

    class Atlas(zlmdb.Schema):
        cities: Cities
        notes: Notes

    zlmdb.open(tmp_path / "db", Atlas).close()
    ok("put", tmp_path / "db", "cities", "CDG", '{"code": "CDG", "name": "Paris"}')
    ok("put", tmp_path / "db", "notes", "5", '{"id": 5}')
    for table, key, value in (("cities", "ORY", '{"code": "CDG", "name": "Paris"}'), ("notes", "6", '{"id": 5}')):
        result = run("put", tmp_path / "db", table, key, value)
        assert result.exit_code == 1
        assert "takes its keys from the field" in result.output
    with zlmdb.open(tmp_path / "db", Atlas) as db, db.read() as t:
        assert (dict(t.cities), dict(t.notes)) == ({"CDG": City("CDG", "Paris")}, {5: {"id": 5}})


def test_no_put_locks_a_program_out_after_a_load(tmp_path: Path) -> None:
    @dataclass
    class Person:
        mail: str

    class Persons(zlmdb.Table[int, Person]):
        by_mail = zlmdb.UniqueIndex[str](lambda person: person.mail.upper(), version=1)

    class People(zlmdb.Schema):
        people: Persons

    with zlmdb.open(tmp_path / "db", People) as db, db.write() as t:
        t.people[1] = Person("a@x")
    ok("dump", tmp_path / "db", tmp_path / "stream")
    ok("load", tmp_path / "stream", tmp_path / "new")
    assert "indexes by_mail" in run("put", tmp_path / "new", "people", 2, '{"nothing": 1}').output
    with zlmdb.open(tmp_path / "new", People) as db, db.read() as t:
        assert t.people.by_mail["A@X"] == Person("a@x")


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_readers_lists_other_processes(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = f"""
import sys, zlmdb
with zlmdb.open({str(db)!r}) as db, db.read() as t:
    t["logins"]["user 7"]
    print("open", flush=True)
    sys.stdin.read()
"""
    process = subprocess.Popen(child(program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "open\n"
        [reader] = [
            one for one in answer("readers", db) if one["process"] == process.pid and one["transaction"] is not None
        ]
        assert reader["alive"] == ("unknown" if os.name == "nt" else "yes")
        with monkeypatch.context() as windows:
            windows.setattr("zlmdb.cli.inspect.WINDOWS", True)
            windows.setattr(os, "kill", None)
            assert answer("readers", db)[0]["alive"] == "unknown"
        assert "process" in ok("readers", db)
        assert answer("check", db)["ok"]
    finally:
        process.kill()
        process.communicate()
    assert "freed" in ok("readers", db, "--clear")
    assert answer("readers", db) == []


# -- the file as a whole --------------------------------------------------------------------------------------------


def test_backup_restore_and_compact(db: Path, tmp_path: Path) -> None:
    assert answer("backup", db, tmp_path / "copy")["bytes"] == (tmp_path / "copy").stat().st_size
    assert run("backup", db, tmp_path / "copy").exit_code == 1
    ok("backup", db, tmp_path / "copy", "--overwrite", "--no-compact")
    assert "path" in ok("restore", tmp_path / "copy", tmp_path / "again")
    assert run("restore", tmp_path / "copy", tmp_path / "again").exit_code == 1
    ok("restore", tmp_path / "copy", tmp_path / "again", "--overwrite")
    sizes = answer("compact", tmp_path / "again")
    assert sizes["bytes_after"] <= sizes["bytes_before"]
    with zlmdb.open(db, Store) as old, zlmdb.open(tmp_path / "again", Store) as new:
        assert content(new) == content(old)


def test_check_says_what_is_wrong_with_an_exit_code(db: Path) -> None:
    assert "ok, 5 tables, 100 records" in ok("check", db)
    assert flip(db, bytes([13]) * 20, 4)
    result = run("check", db)
    assert result.exit_code == 3
    assert "record: blobs" in result.output
    assert "checksum" in result.output
    report = json.loads(run("check", db, "--json").stdout)
    assert (report["ok"], report["problems"][0]["table"]) == (False, "blobs")


def test_check_does_not_open_a_file_with_damaged_pages(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray(data_file(db).read_bytes())
    page = data.rfind(b"u7@example.com\xa3age") // 4096 * 4096
    data[page : page + 8] = b"\xff" * 8
    data_file(db).write_bytes(data)
    monkeypatch.setattr(zlmdb, "open", None)
    result = run("check", db)
    assert result.exit_code == 3
    assert "structure: " in result.output
    monkeypatch.undo()
    result = run("salvage", db, db.parent / "salvaged")
    assert result.exit_code == 3
    assert re.search(r"logins +20 +20", result.output)
    assert json.loads(run("salvage", db, db.parent / "again", "--json").stdout)["complete"] is False


def test_dump_and_load(db: Path, tmp_path: Path) -> None:
    result = run("dump", db, tmp_path / "stream")
    assert result.exit_code == 0
    assert "5 tables, 100 records" in result.output
    assert answer("load", tmp_path / "stream", tmp_path / "new", "--layout", "classic", "--lmdb", "1.0") == {
        "tables": 5, "records": 100
    }  # fmt: skip
    with zlmdb.open(db, Store) as old, zlmdb.open(tmp_path / "new", Store) as new:
        assert (new.layout, new.lib_version) == ("classic", "1.0")
        assert content(new) == content(old)
    assert run("load", tmp_path / "stream", tmp_path / "new").exit_code == 1
    only = run("dump", db, "--table", "logins").stdout
    assert '"table": "users"' not in only
    ok("load", "-", tmp_path / "piped", input="\n".join(line for line in only.splitlines() if line.startswith("{")))
    (tmp_path / "bad").write_text(only[:100])
    assert run("load", tmp_path / "bad", tmp_path / "none").exit_code == 1
    assert not (tmp_path / "none").exists()


# -- from old to new ------------------------------------------------------------------------------------------------

TABLE = "d6a4c7f0-0000-4000-8000-000000000041"


@pytest.fixture
def classic(tmp_path: Path) -> Path:
    import lmdb

    @zlmdb.table(TABLE, compress=1)
    class Objects(zlmdb.MapOidPickle[Any]):
        """Objects."""

    with zlmdb.Database(tmp_path / "old", layout="classic") as db:
        objects = db.attach_table(Objects)
        with db.begin(write=True) as txn:
            for n in range(5):
                objects[txn, n] = {"n": n}
                zlmdb.MapStringString(70)[txn, f"k{n}"] = f"v{n}"
    del zlmdb.TABLES_BY_UUID[UUID(TABLE)]
    with lmdb.open(str(tmp_path / "old")) as env, env.begin(write=True) as txn:
        for key in (b"\0\0z", key_of(TABLE)):
            txn.delete(key)  # what zlmdb 26 does not store
    return tmp_path / "old"


def test_tables_without_types_are_read_as_a_named_map(classic: Path) -> None:
    assert answer("tables", classic)[0]["key"] is None
    assert run("select", classic, TABLE).exit_code == 1
    [first, *_] = rows("select", classic, TABLE, "--map", "MapOidPickle:zlib")
    assert first["key"] == 0
    assert list(first["value"]) == ["$pickle"]
    assert rows("select", classic, TABLE, "--map", "MapOidPickle:zlib", "--unpickle")[3]["value"] == {"n": 3}
    assert ok("get", classic, "slot:70", "k3", "--map", "MapStringString") == '"v3"\n'
    assert run("get", classic, "slot:70", "k3", "--map", "MapNothing").exit_code == 2


def test_a_map_for_a_table_with_types_is_told_to_be_none_of_its(db: Path) -> None:
    result = run("select", db, "users", "--map", "MapOidPickle")
    assert result.exit_code == 2
    assert "the file records the types of the table 'users': leave --map out" in result.output


def test_a_stream_of_nothing_is_told_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "nothing").touch()
    assert "the stream is empty" in run("load", tmp_path / "nothing", tmp_path / "new").output


def test_a_stream_from_standard_input_that_is_closed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(click.BadParameter, match="standard input is closed"):
        main.main(["load", "-", str(tmp_path / "new")], standalone_mode=False)


def test_migrate(classic: Path, tmp_path: Path) -> None:
    types = ["--map", f"{TABLE}=MapOidPickle:zlib", "--slot", "70=MapStringString"]
    assert "are not given" in run("migrate", classic, tmp_path / "new").output
    assert "nothing was written" in ok("migrate", classic, tmp_path / "new", *types, "--dry-run")
    assert not (tmp_path / "new").exists()
    assert "10 records compared, all equal" in ok("migrate", classic, tmp_path / "new", *types)
    assert answer("migrate", classic, tmp_path / "newer", *types, "--lmdb", "1.0")["verified"] == 10
    with zlmdb.open(tmp_path / "new", readonly=True) as db:
        assert db.layout == "tables"
        assert db.tables()[TABLE].value == "zlib(pickle)"
    assert rows("select", tmp_path / "new", TABLE, "--unpickle")[3]["value"] == {"n": 3}


def test_migrate_imports_the_classes_of_a_program(
    classic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop_maps.py").write_text(
        f"import zlmdb\n@zlmdb.table('{TABLE}', compress=1)\nclass Objects(zlmdb.MapOidPickle):\n    '''Objects.'''\n"
    )
    ok("migrate", classic, tmp_path / "new", "--import", "shop_maps", "--slot", "70=MapStringString")
    zlmdb.TABLES_BY_UUID.pop(UUID(TABLE), None)


def test_upgrade_applies_the_steps_of_a_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop_steps.py").write_text(
        "import zlmdb\n"
        "def step(t):\n    t.logins['n'] = 1\n"
        "class Store(zlmdb.Schema):\n"
        "    logins: zlmdb.Table[str, int]\n"
        "    migrations = (zlmdb.Migration(1, 'count', step),)\n"
    )
    make(tmp_path / "db", 2)
    assert run("upgrade", tmp_path / "db", "shop_steps").exit_code == 2
    assert run("upgrade", tmp_path / "db", "shop_steps:Missing").exit_code == 2
    assert answer("upgrade", tmp_path / "db", "shop_steps:Store", "--dry-run")["version"] == 0
    assert "version 1" in ok("upgrade", tmp_path / "db", "shop_steps:Store")
    assert ok("get", tmp_path / "db", "logins", "n") == "1\n"
    assert answer("info", tmp_path / "db")["schema_version"] == 1


def test_build_indexes_builds_those_of_a_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(indexbuilding, "BATCH", 1)
    (tmp_path / "shop_indexes.py").write_text(
        "import zlmdb\n"
        "class Logins(zlmdb.Table[str, int]):\n"
        "    by_number = zlmdb.Index[int](lambda number: number, version=1)\n"
        "class Store(zlmdb.Schema):\n"
        "    logins: Logins\n"
    )
    make(tmp_path / "db", 3)
    assert run("build-indexes", tmp_path / "db", "shop_indexes").exit_code == 2
    assert run("build-indexes", tmp_path / "missing", "shop_indexes:Store").exit_code == 1
    assert not (tmp_path / "missing").exists()
    assert "built: logins.by_number" in ok("build-indexes", tmp_path / "db", "shop_indexes:Store")
    assert answer("build-indexes", tmp_path / "db", "shop_indexes:Store") == {"built": []}
    assert answer("check", tmp_path / "db")["ok"]


# -- errors ---------------------------------------------------------------------------------------------------------


def test_errors_are_a_line_and_no_traceback(db: Path, tmp_path: Path) -> None:
    for arguments in (["info", tmp_path / "nothing"], ["get", db, "logings", "a"], ["get", db, "users", "no uuid"]):
        result = run(*arguments)
        assert result.exit_code == 1
        assert isinstance(result.exception, SystemExit)
        assert result.output.startswith("Error: ")
        assert len(result.output.splitlines()) == 1
        error = json.loads(run(*arguments, "--json").output)
        assert set(error) == {"error", "type"}
    assert "did you mean 'logins'" in run("get", db, "logings", "a").output
    (tmp_path / "text").write_text("text" * 2000)
    for name in ("info", "check"):
        assert "no LMDB" in run(name, tmp_path / "text").output


def damaged(path: Path) -> None:
    with zlmdb.open(path, Store) as db, db.write() as t:
        t.logins["a"] = 1
    data = path / "data.mdb"
    data.write_bytes(bytes(4096) + data.read_bytes()[4096:])


@pytest.mark.parametrize("command", ["info", "tables", "select", "put", "backup", "upgrade", "restore"])
@pytest.mark.parametrize("kind", ["absent", "damaged", "foreign", "refused", "readonly"])
def test_errors_advise_what_there_is_on_the_command_line(
    kind: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, more = tmp_path / "data", {"select": ["logins"], "put": ["logins", "a", "1"]}.get(command, [])
    if command in ("backup", "restore"):
        more = [tmp_path / "copy"]
    if command == "upgrade":
        more = ["operated:Store"]
    if kind == "damaged":
        damaged(path)
    elif kind == "foreign":
        with zlmdb.lmdb.open(str(path)) as env, env.begin(write=True) as txn:
            txn.put(b"key", b"value")
    elif kind != "absent":
        text = os.strerror(errno.EACCES if kind == "refused" else errno.EROFS)

        def refuse(*_: Any, **__: Any) -> Any:
            raise zlmdb.lmdb.ReadonlyError(text)

        zlmdb.open(path, Store).close()
        monkeypatch.setattr("zlmdb.engines.lmdb.engine.lmdb.open", refuse)
    output = run(command, path, *more).output
    assert not re.search(r"=(True|False|'\w+')|Database\.", output), output


def test_a_file_with_keys_of_one_byte_is_told_and_migrate_ends(tmp_path: Path) -> None:
    with zlmdb.lmdb.open(str(tmp_path / "data")) as env, env.begin(write=True) as txn:
        for key in (b"a", b"key"):
            txn.put(key, b"value")
    result = run("migrate", tmp_path / "data", tmp_path / "new")
    assert (result.exit_code, "written the key b'a'" in result.output) == (1, True)


def test_a_key_of_one_byte_in_a_classic_file_is_told_and_check_and_dump_end(tmp_path: Path) -> None:
    with zlmdb.Database(tmp_path / "data", layout="classic") as db, db.begin(write=True) as txn:
        zlmdb.MapStringOid(97 * 256)[txn, "x"] = 1
    with zlmdb.lmdb.open(str(tmp_path / "data")) as env, env.begin(write=True) as txn:
        txn.put(b"a", b"value")
    for command, *more in (["dump", tmp_path / "data"], ["check", tmp_path / "data"]):
        result = run(command, *more)
        assert (result.exit_code, "written the key b'a'" in result.output) == (1 if command == "dump" else 3, True)
    assert "slot 24832" in result.output


def test_a_link_that_leads_nowhere_is_told_as_such(db: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    try:
        link.symlink_to(tmp_path / "nowhere")
    except OSError:
        pytest.skip("this user may not make links")
    for refused in (
        lambda: zlmdb.open(link, Store),
        lambda: zlmdb.Cache(link),
        lambda: zlmdb.Database.restore(db, link),
    ):
        with pytest.raises(FileExistsError, match=r"is a link to .*nowhere', where no directory is: make that"):
            refused()
    (tmp_path / "nowhere").mkdir()
    (tmp_path / "nowhere" / "data.mdb").symlink_to(tmp_path / "nothing")
    for command in ("check", "salvage"):
        output = run(command, link, *[tmp_path / "copy"][: command == "salvage"]).output
        assert "nothing', where nothing is: check the path" in output.replace("\n", "")


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_the_installed_program_works_without_rich(db: Path) -> None:
    program = f"""
import sys
import threading
sys.modules["rich"] = None
sys.argv = ["zlmdb", "tables", {str(db)!r}]
import runpy
runpy.run_module("zlmdb", run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "logins" in done.stdout


@pytest.mark.once  # its process has to start, which takes a while on PyPy
def test_a_command_that_waits_for_a_writer_says_for_which_one(db: Path) -> None:
    command = [sys.executable, "-m", "zlmdb", "put", str(db), "logins", "eve", "7"]
    with zlmdb.open(db, zlmdb.Schema) as other:
        t = other.write()
        with t, subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as waiting:
            assert waiting.stderr is not None
            said = waiting.stderr.readline()
            t.txn.abort()
    where = repr(str(db))[:-1]
    assert f"waiting for process {os.getpid()} to end its write transaction on {where}" in said
    assert waiting.returncode == 0


def test_ctrl_c_ends_without_a_traceback(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(zlmdb.Database, "check", stop)
    assert run("check", db).exit_code == 130


# -- the page -------------------------------------------------------------------------------------------------------


def described(name: str, command: click.Command) -> str:
    """The section of a command: its usage, its docstring, its options."""
    arguments = " ".join(_metavar(one, command) for one in command.params if isinstance(one, click.Argument))
    lines = [name, "-" * len(name), "", f"``zlmdb {name} {arguments} [OPTIONS]``", ""]
    lines += [inspect.cleandoc(command.help or "").replace("*", "\\*"), ""]
    for option in command.params:
        if isinstance(option, click.Option):
            value = "" if option.is_flag else f" {option.metavar or _choices(option)}"
            lines += [f"``{', '.join(option.opts)}{value}``", f"    {option.help}", ""]
    return "\n".join(lines)


def _metavar(argument: click.Argument, command: click.Command) -> str:
    make: Any = argument.make_metavar
    return str(make(click.Context(command)) if inspect.signature(make).parameters else make())  # click 8.2 or older


def _choices(option: click.Option) -> str:
    return "|".join(getattr(option.type, "choices", [option.name or ""]))


def test_every_command_has_help_and_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    sections = "\n".join(described(name, command) for name, command in sorted(main.commands.items()))
    marker = "\n.. The rest is written by tests/test_commands.py, with ZLMDB_WRITE_DOCS=1.\n\n"
    before, _, after = page.partition(marker)
    if os.environ.get("ZLMDB_WRITE_DOCS"):
        PAGE.write_text(before + marker + sections, encoding="utf-8")
    else:
        assert after == sections
    assert all(command.help for command in main.commands.values())
    wanted = "info tables get put delete select check backup restore compact salvage migrate readers dump load upgrade"
    assert {*wanted.split(), "demo", "fbs"} <= main.commands.keys()


def test_what_a_path_lacks_is_told_by_us_and_not_as_a_wrong_command_line() -> None:
    params = [param for command in main.commands.values() for param in command.params]
    paths = [param for param in params if isinstance(param.type, click.Path) and param.name in ("path", "source")]
    assert len(paths) > 10
    assert not any(param.type.readable for param in paths if isinstance(param.type, click.Path))


def test_every_command_but_two_has_json() -> None:
    without = {
        name
        for name, command in main.commands.items()
        if not any(option.name == "as_json" for option in command.params)
    }
    assert without == {"demo", "fbs"}


def test_long_work_shows_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with output.progress(False) as told:
        told(zlmdb.Progress("verify", 1, 2))
        told(zlmdb.Progress("verify", 2, 2))
        assert told is not silent
    with output.progress(True) as told:  # JSON is for programs
        assert told is silent
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with output.progress(False) as told:
        assert told is silent


U = "d6a4c7f0-0000-4000-8000-000000000081"


def test_a_dump_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    @zlmdb.table(U)
    class Ids(zlmdb.MapUuidString):
        pass

    with zlmdb.Database(tmp_path / "db", layout="classic") as db:
        ids = db.attach_table(Ids)
        with db.begin(write=True) as txn:
            ids[txn, UUID(int=1)] = "x"
    out = tmp_path / "out.jsonl"
    ok("dump", tmp_path / "db", out)
    good = out.read_bytes()
    with zlmdb.Database(tmp_path / "db") as db, db.begin(write=True) as txn:
        txn.put(b"\0\1bad", b"x")
    assert run("dump", tmp_path / "db", out, "--overwrite").exit_code == 1
    assert out.read_bytes() == good
    assert sorted(os.listdir(tmp_path)) == ["db", "out.jsonl"]


def test_a_dump_goes_to_a_pipe_or_a_device(db: Path) -> None:
    assert run("dump", db, os.devnull).exit_code == 0
    assert not os.path.isfile(os.devnull)
    assert ok("dump", db).startswith('{"zlmdb": "dump"')


def test_a_guess_at_the_types_of_a_table_does_not_stay_in_the_file(tmp_path: Path) -> None:
    @zlmdb.table(U, compress=1)
    class Packed(zlmdb.MapOidCbor):
        pass

    with zlmdb.Database(tmp_path / "db", layout="classic") as db:
        packed = db.attach_table(Packed)
        with db.begin(write=True) as txn:
            packed[txn, 1] = {"a": 1}
        for key in (zlmdb.store.layout.DEFINITIONS_KEY, key_of(U)):  # as zlmdb 26 leaves it
            db._open_store.change(lambda txn, _, key=key: txn.delete(key))
    assert run("delete", tmp_path / "db", U, "999", "--map", "MapOidCbor").exit_code == 4
    assert run("put", tmp_path / "db", U, "x", "1", "--map", "MapOidCbor:zlib").exit_code != 0
    assert ok("put", tmp_path / "db", U, "2", '{"b": 2}', "--map", "MapOidCbor:zlib") == ""
    with zlmdb.Database(tmp_path / "db") as db:
        packed = db.attach_table(Packed)
        with db.begin() as txn:
            assert dict(packed.bind(txn)) == {1: {"a": 1}, 2: {"b": 2}}


def test_a_table_with_indexes_that_a_program_attached_is_not_written(tmp_path: Path) -> None:
    @zlmdb.table(U)
    class People(zlmdb.MapOidCbor):
        pass

    @zlmdb.table(ID)
    class Names(zlmdb.MapStringOid):
        pass

    with zlmdb.Database(tmp_path / "db") as db:
        people, names = db.attach_table(People), db.attach_table(Names)
        people.attach_index("name", names, lambda person: person["name"])
        with db.begin(write=True) as txn:
            people[txn, 1] = {"name": "ann"}
    for arguments in (("put", tmp_path / "db", U, "1", '{"name": "bob"}'), ("delete", tmp_path / "db", U, "1")):
        result = run(*arguments)
        assert (result.exit_code, "indexes name" in result.output) == (1, True)
    assert "attached by a program" in ok("check", tmp_path / "db")


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_a_reader_that_has_seen_enough_ends_a_select_quietly(db: Path) -> None:
    with zlmdb.open(db) as opened, opened.write() as t:
        for n in range(20_000):
            t["logins"][f"user {n}"] = n
    command = f"{sys.executable} -m zlmdb select {db} logins | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
def test_what_standard_output_does_not_take_is_one_line_and_a_reader_that_has_gone_is_none(db: Path) -> None:
    reader, broken = os.pipe()
    os.close(reader)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "wb") as full, open(broken, "wb") as gone:
        for arguments, output, said in (
            (["dump", db], full, "Error: standard output could not be written: No space left on device\n"),
            (["--help"], full, "Error: No space left on device\n"),
            (["dump", db], gone, ""),
        ):
            command = [sys.executable, "-m", "zlmdb", *arguments]
            done = subprocess.run(
                command, stdout=output, stderr=subprocess.PIPE, text=True, check=False, env=environment
            )
            assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.parametrize(("system", "raised"), [("nt", BrokenPipeError), ("posix", zlmdb.DiskError)])
def test_a_reader_that_has_gone_is_an_invalid_argument_to_windows(
    system: str, raised: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def echo(*args: Any, **options: Any) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(click, "echo", echo)
    monkeypatch.setattr(output, "discard", lambda: None)
    monkeypatch.setattr(output, "os", SimpleNamespace(name=system, strerror=os.strerror))
    with pytest.raises(raised):
        output.say("a line")


def test_a_full_device_is_named(db: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no device that is always full")
    result = run("dump", db, "/dev/full")
    assert (result.exit_code, result.output.count("'/dev/full' could not be written")) == (1, 1)


def test_a_directory_that_a_target_lacks_is_told(db: Path, tmp_path: Path) -> None:
    ok("dump", db, tmp_path / "dump")
    for command, source in (("backup", db), ("salvage", db), ("load", tmp_path / "dump")):
        result = run(command, source, tmp_path / "no" / "new")
        assert (result.exit_code, result.output.endswith("no': create it first\n")) == (1, True)


@pytest.mark.parametrize("within", [".", ODD_NAME])
def test_a_path_that_leads_to_no_database_is_answered_with_what_there_is(tmp_path: Path, within: str) -> None:
    (tmp_path / within).mkdir(exist_ok=True)
    db = tmp_path / within / "db"
    make(db, 20)
    for path, said in (
        (db.parent / f"{db.name}x", f"check the path; did you mean {db.name!r}?\n"),
        (db.parent, f"check the path; there are databases in it: {db.name!r}\n"),
        (db.parent / "nowhere", "check the path\n"),
    ):
        assert run("tables", path).output.endswith(said)
    assert "did you mean" in run("drop-index", db, "login", "by_name").output


def test_what_a_program_would_see_as_a_traceback_is_a_line(db: Path) -> None:
    for arguments in (
        ("get", db, "slot:0", "k", "--map", "MapUuidCbor"),
        ("migrate", db, db.parent / "new", "--slot", "70000=MapOidCbor"),
        ("upgrade", db, "json:JSONDecoder"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1, result.output
        assert result.output.startswith("Error: ")
        assert isinstance(result.exception, SystemExit)


def test_a_dump_keeps_the_permissions_of_the_file(db: Path, tmp_path: Path) -> None:
    out = tmp_path / "private.jsonl"
    out.touch(mode=0o600)
    ok("dump", db, out, "--overwrite")
    assert out.stat().st_size > 0
    assert out.stat().st_mode & 0o777 == 0o600


def test_check_reports_damage_where_no_lock_is_to_be_had(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zlmdb.cli.repair._wrong", lambda *_: ["page 3 is damaged"])

    @contextmanager
    def refuse(file: str) -> Iterator[None]:
        raise PermissionError(13, "Permission denied")
        yield

    monkeypatch.setattr("zlmdb.cli.repair.alone", refuse)
    result = run("check", db)
    assert (result.exit_code, "page 3 is damaged" in result.output) == (3, True)


# -- what is typed wrong must not cost a file -----------------------------------------------------------------------


def test_a_dump_does_not_replace_the_database(db: Path, tmp_path: Path) -> None:
    ok("backup", db, tmp_path / "app.mdb")
    ok("info", tmp_path / "app.mdb")
    data = data_file(db).read_bytes()
    for path, file in (
        (db, data_file(db)), (data_file(db), data_file(db)), (db, db / "lock.mdb"),
        (tmp_path / "app.mdb", tmp_path / "app.mdb"), (tmp_path / "app.mdb", tmp_path / "app.mdb-lock"),
    ):  # fmt: skip
        result = run("dump", path, file)
        assert result.exit_code == 1
        assert "the database itself" in result.output
    assert data_file(db).read_bytes() == data
    assert zlmdb.Database.verify(tmp_path / "app.mdb") == []


def test_a_named_map_makes_no_database_where_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for arguments in (("put", tmp_path / "empty", "slot:1", "a", "b"), ("delete", tmp_path / "empty", "slot:1", "a")):
        result = run(*arguments, "--map", "MapStringString")
        assert result.exit_code == 1
        assert "no database at" in result.output
    assert list((tmp_path / "empty").iterdir()) == []


def test_negative_numbers_are_keys_and_values(tmp_path: Path) -> None:
    class Numbers(zlmdb.Schema):
        temperatures: zlmdb.Table[int, float]
        places: zlmdb.Table[float, int]
        notes: zlmdb.Table[str, str]

    zlmdb.open(tmp_path / "db", Numbers).close()
    ok("put", tmp_path / "db", "temperatures", "-5", "-1.5e3")
    assert ok("get", tmp_path / "db", "temperatures", "-5") == "-1500.0\n"
    ok("put", tmp_path / "db", "places", "-Infinity", "-7")
    assert ok("get", tmp_path / "db", "places", "-Infinity") == "-7\n"
    assert run("delete", tmp_path / "db", "temperatures", "-6").exit_code == 4
    ok("delete", tmp_path / "db", "temperatures", "-5")
    assert rows("select", tmp_path / "db", "places", "--from", "-8", "--keys") == []


def test_a_misspelt_option_is_no_key_and_no_value(db: Path, tmp_path: Path) -> None:
    class Notes(zlmdb.Schema):
        notes: zlmdb.Table[str, str]

    zlmdb.open(tmp_path / "notes", Notes).close()
    for arguments in (("get", db, "logins", "--jsn"), ("put", tmp_path / "notes", "notes", "a", "--jsn"),
                      ("put", tmp_path / "notes", "notes", "--jsn", "--", "a"),
                      ("get", db, "logins", "user 7", "--unpickel")):  # fmt: skip
        result = run(*arguments)
        assert result.exit_code == 2
        assert str(next(one for one in arguments if str(one)[:3] in ("--j", "--u"))) in result.output
    ok("put", tmp_path / "notes", "notes", "--", "-a", "--jsn")
    assert ok("get", tmp_path / "notes", "notes", "--", "-a") == '"--jsn"\n'
    assert "Usage" in ok("get", "-h")


@pytest.mark.parametrize("prefix", ['["Lima", "2024-01-03T00:00:00Z", 2, 3]', '"Lima"', "{}", "Lima"])
def test_a_prefix_that_is_no_list_of_leading_parts_is_refused(prefix: str, db: Path) -> None:
    result = run("select", db, "weather", "--prefix", prefix)
    assert result.exit_code == 2
    assert "a key has 2" in result.output


def test_a_damaged_pickle_is_an_error_and_no_traceback(tmp_path: Path) -> None:
    @zlmdb.table(U)
    class Objects(zlmdb.MapOidPickle[Any]):
        """Objects."""

    with zlmdb.Database(tmp_path / "db", layout="classic") as db:
        objects = db.attach_table(Objects)
        with db.begin(write=True) as txn:
            objects[txn, 1] = {"a": [1, 2]}
    assert flip(tmp_path / "db", b"\x80\x04", 2) or flip(tmp_path / "db", b"\x80\x05", 2)
    result = run("get", tmp_path / "db", U, 1, "--unpickle")
    assert isinstance(result.exception, SystemExit), result.exception
    assert (result.exit_code, result.output.startswith("Error: a pickle of")) == (1, True)


def test_a_key_that_does_not_fit_is_answered_with_an_ordinary_one(db: Path, tmp_path: Path) -> None:
    class Numbers(zlmdb.Schema):
        counts: zlmdb.Table[int, int]
        places: zlmdb.Table[tuple[str, int], int]

    zlmdb.open(tmp_path / "numbers", Numbers).close()
    for path, table, key, example in (
        (db, "users", "7", '"7fffffff-ffff-ffff-ffff-ffffffffffff"'), (tmp_path / "numbers", "counts", "x", "1"),
        (tmp_path / "numbers", "places", "x", '["b", 1]'),
    ):  # fmt: skip
        result = run("get", path, table, key)
        assert result.exit_code == 1
        assert result.output.rstrip().endswith(f"such as {example}")


def test_an_existing_target_is_answered_with_the_option_of_the_command(db: Path, tmp_path: Path) -> None:
    ok("dump", db, tmp_path / "stream")
    for arguments in (("dump", db, tmp_path / "stream"), ("dump", db, tmp_path / "stream", "--json")):
        result = run(*arguments)
        assert result.exit_code == 1
        assert "give --overwrite" in result.output


def test_migrate_names_the_options_that_it_lacks(tmp_path: Path) -> None:
    with zlmdb.Database(tmp_path / "db", layout="classic") as db, db.begin(write=True) as txn:
        zlmdb.MapStringString(1)[txn, "a"] = "b"
    for more, said in (
        ((), "slot 1 are not given: name the map of each, with --import MODULE, --map UUID=MAP or --slot N=MAP"),
        (("--slot", "1=MapUuidString"), "Delete them, or leave them out with --skip"),
        (("--import", "shop:Store"), "no module 'shop:Store' in the current directory, and none is installed"),
        (("--slot", "1=MapStringStrin"), "did you mean 'MapStringString'?"),
    ):
        assert said in run("migrate", tmp_path / "db", tmp_path / "new", *more).output
