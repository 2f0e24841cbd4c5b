"""Dump and load: across layouts, LMDB versions and engines; streams that were cut off or changed."""

from __future__ import annotations

import base64
import hashlib
import io
import itertools
import json
from pathlib import Path
from typing import Any, Optional
from uuid import UUID

import numpy
import pytest
from operated import Store, content, fill, make

import zlmdb
from zlmdb.store.catalogue import catalogue_of

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python

LAYOUTS = ("tables", "classic")


def dumped(path: Path) -> bytes:
    file = io.BytesIO()
    with zlmdb.open(path, readonly=True) as db:
        db.dump(file)
    return file.getvalue()


def loaded(data: bytes, path: Optional[Path], layout: Any = "tables", version: str = "0.9") -> zlmdb.Database[Any]:
    if path is None:
        db: zlmdb.Database[Any] = zlmdb.open(None, zlmdb.Schema, layout=layout)
    else:
        db = zlmdb.Database(path, layout=layout, lib_version=version)
    db.load(io.BytesIO(data))
    return db


@pytest.mark.parametrize("to", LAYOUTS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("version", ["0.9", pytest.param("1.0", marks=pytest.mark.once)])
def test_a_database_crosses_layouts_versions_and_engines(layout: Any, to: Any, version: str, tmp_path: Path) -> None:
    make(tmp_path / "db", layout=layout)
    stream = dumped(tmp_path / "db")
    with zlmdb.open(tmp_path / "db", readonly=True) as db:
        expected = content(db)
    with loaded(stream, None, to) as memory:
        assert content(memory) == expected
        again = io.BytesIO()
        memory.dump(again)
    with loaded(again.getvalue(), tmp_path / "new", to, version) as db:
        assert (db.layout, db.lib_version) == (to, version)
    with zlmdb.open(tmp_path / "db", Store) as old, zlmdb.open(tmp_path / "new", Store) as new:
        assert content(new) == content(old)
        report = new.check()
        assert report.ok, report.problems
        assert report.tables["users"].indexes["by_email"] == 100
    assert sorted(dumped(tmp_path / "new").splitlines()[:-1]) == sorted(stream.splitlines()[:-1])


def test_the_stream_is_lines_of_json_with_typed_keys(tmp_path: Path) -> None:
    make(tmp_path / "db", 3)
    lines = [json.loads(line) for line in dumped(tmp_path / "db").splitlines()]
    assert lines[0] == {"zlmdb": "dump", "version": 1}
    assert lines[-1] == {"end": None, "tables": 5, "records": 15}
    users = next(line for line in lines if line.get("table") == "users")
    assert (users["key"], users["value"]) == ("uuid", "msgpack")
    keys = [line["k"] for line in lines if "k" in line]
    assert "00000000-0000-0000-0000-000000000001" in keys
    assert ["Lima", "2024-01-02T00:00:00+00:00"] in keys


@zlmdb.table("d6a4c7f0-0000-4000-8000-000000000021")
class Points(zlmdb.MapOidTimestampOid):
    """Keys that the classic layout stores little-endian."""


@zlmdb.table("d6a4c7f0-0000-4000-8000-000000000022")
class Names(zlmdb.MapStringTimestampCbor[Any]):
    """Keys that the classic layout stores without an end of the text."""


@pytest.mark.parametrize(("layout", "to"), [("classic", "tables"), ("tables", "classic")])
def test_keys_that_the_layouts_store_differently_are_converted(layout: Any, to: Any, tmp_path: Path) -> None:
    with zlmdb.Database(tmp_path / "db", layout=layout) as db:
        points, names = db.attach_table(Points), db.attach_table(Names)
        with db.begin(write=True) as txn:
            for n in (1, 256, 65536):
                points[txn, (n, numpy.datetime64(n, "ns"))] = n
                names[txn, (f"n{n}", numpy.datetime64(n, "ns"))] = [n]
    with loaded(dumped(tmp_path / "db"), tmp_path / "new", to) as db:
        points, names = db.attach_table(Points), db.attach_table(Names)
        with db.begin() as txn:
            assert sorted((oid, int(at.astype(int)), value) for (oid, at), value in points.select(txn)) == [
                (n, n, n) for n in (1, 256, 65536)
            ]
            assert names[txn, ("n256", numpy.datetime64(256, "ns"))] == [256]


def test_a_key_that_could_not_be_loaded_is_told_when_it_is_dumped(tmp_path: Path) -> None:
    with zlmdb.Database(tmp_path / "db", layout="classic") as db:
        points = db.attach_table(Points)
        with db.begin(write=True) as txn:
            points[txn, (1, numpy.datetime64(5, "ns"))] = 7
        key = (1).to_bytes(8, "big") + (-5).to_bytes(8, "little", signed=True)
        with db.begin(write=True) as txn:
            txn.put(points._storage_in(db._open_store).prefix + key, (8).to_bytes(8, "big"))
        with pytest.raises(zlmdb.DecodeError, match="before 1970") as caught:
            db.dump(io.BytesIO())
    assert caught.value.key == key


def test_slots_by_hand_go_into_the_same_layout_only(tmp_path: Path) -> None:
    with zlmdb.Database(tmp_path / "db", layout="classic") as db, db.begin(write=True) as txn:
        zlmdb.MapUuidString(70)[txn, UUID(int=1)] = "one"
        txn.put(b"\0\0\0\x09", b"\xa2coidx$00000000-0000-4000-8000-000000000009dslot\x09")  # so that it opens by itself
    stream = dumped(tmp_path / "db")
    with loaded(stream, tmp_path / "new", "classic") as db, db.begin() as txn:
        assert zlmdb.MapUuidString(70)[txn, UUID(int=1)] == "one"
    with pytest.raises(zlmdb.SchemaMismatch, match="classic layout"):
        loaded(stream, None)


def test_attached_indexes_are_known_after_loading(tmp_path: Path) -> None:
    @zlmdb.table("d6a4c7f0-0000-4000-8000-000000000023")
    class People(zlmdb.MapOidPickle[Any]):
        """People."""

    @zlmdb.table("d6a4c7f0-0000-4000-8000-000000000024")
    class ByName(zlmdb.MapStringOid):
        """Ids by name."""

    with zlmdb.Database(tmp_path / "db") as db:
        people = db.attach_table(People)
        people.attach_index("name", db.attach_table(ByName), lambda one: one["name"])
        with db.begin(write=True) as txn:
            people[txn, 1] = {"name": "Ann"}
    with loaded(dumped(tmp_path / "db"), tmp_path / "new") as db:
        people = db.attach_table(People)
        with db.begin(write=True) as txn, pytest.raises(zlmdb.IndexNotAttached):
            people[txn, 2] = {"name": "Bob"}


def test_an_attached_index_that_was_not_dumped_is_built_after_loading(tmp_path: Path) -> None:
    owner, index = "d6a4c7f0-0000-4000-8000-000000000025", "d6a4c7f0-0000-4000-8000-000000000026"

    @zlmdb.table(owner)
    class People(zlmdb.MapOidPickle[Any]):
        """People."""

    @zlmdb.table(index)
    class ByName(zlmdb.MapStringOid):
        """Ids by name."""

    def attach(db: zlmdb.Database[Any]) -> Any:
        people, by_name = db.attach_table(People), db.attach_table(ByName)
        people.attach_index("name", by_name, lambda one: one["name"])
        return people, by_name

    file = io.BytesIO()
    with zlmdb.Database(tmp_path / "db") as db:
        people, _ = attach(db)
        with db.begin(write=True) as txn:
            people[txn, 1] = {"name": "Ann"}
        db.dump(file, tables=[owner])
    with loaded(file.getvalue(), tmp_path / "new") as db:
        people, by_name = attach(db)
        with db.begin() as txn, pytest.raises(zlmdb.IndexNotBuilt):
            by_name[txn, "Ann"]
        with db.begin(write=True) as txn:
            people[txn, 2] = {"name": "Bob"}
            assert (by_name[txn, "Ann"], by_name[txn, "Bob"]) == (1, 2)


def test_a_dump_is_one_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "db", 3)
    file, steps = io.BytesIO(), itertools.count(1)
    with zlmdb.open(tmp_path / "db", Store) as db:
        reading = db._open_store.reading

        def between() -> Any:
            """Before each reading another one writes to the catalogue and a table, in one transaction."""
            with db.write() as t:
                t.logins["late"] = step = next(steps)
                catalogue_of(db._open_store).write_migration(t.txn._engine_txn, {"version": step, "name": "late"})
            return reading()

        monkeypatch.setattr(db._open_store, "reading", between)
        db.dump(file)
    monkeypatch.undo()
    applied = json.loads(file.getvalue().splitlines()[0])["migrations"]
    with loaded(file.getvalue(), None) as db, db.read() as t:
        assert t["logins"]["late"] == len(applied)


def test_chosen_tables_only(tmp_path: Path) -> None:
    make(tmp_path / "db", 3)
    file = io.BytesIO()
    with zlmdb.open(tmp_path / "db", readonly=True) as db:
        assert db.dump(file, tables=["logins"]) == (1, 3)
        with pytest.raises(KeyError, match="logings"):
            db.dump(file, tables=["logings"])
    with loaded(file.getvalue(), None) as db:
        assert list(db.tables()) == ["logins"]


# -- refusals -------------------------------------------------------------------------------------------------------


def test_a_stream_that_was_cut_off_or_changed_stores_nothing(tmp_path: Path) -> None:
    make(tmp_path / "db", 20)
    stream = dumped(tmp_path / "db")
    lines = stream.splitlines(keepends=True)
    swapped = [*lines[:3], lines[4], lines[3], *lines[5:]]
    cases = [
        b"", b"text\n", b"{}\n", b'{"zlmdb": "dump", "version": 99}\n', b"".join(lines[:-1]),
        stream[: len(stream) // 2],
        b"".join(swapped), stream.replace(b'"k": "user 7"', b'"k": "user 8"'), b"".join(lines[:5] + lines[6:]),
    ]  # fmt: skip
    for case in cases:
        db = zlmdb.open(None, zlmdb.Schema)
        with pytest.raises(zlmdb.DecodeError):
            db.load(io.BytesIO(case))
        assert db.tables() == {}
        db.close()


def test_a_table_that_is_there_already_is_kept(tmp_path: Path) -> None:
    make(tmp_path / "db", 5)
    stream = dumped(tmp_path / "db")
    with zlmdb.open(tmp_path / "db", Store) as db:
        before = content(db)
        with pytest.raises(zlmdb.ConstraintError, match="already"):
            db.load(io.BytesIO(stream))
        assert content(db) == before
        with db.write(), pytest.raises(zlmdb.NestedTransaction):
            db.load(io.BytesIO(stream))
    with zlmdb.open(tmp_path / "db", readonly=True) as db, pytest.raises(zlmdb.ReadonlyDatabase):
        db.load(io.BytesIO(stream))


def test_a_stream_from_a_pipe_is_loaded(tmp_path: Path) -> None:
    make(tmp_path / "db", 5)

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    with zlmdb.open(None, zlmdb.Schema) as db:
        assert db.load(Pipe(dumped(tmp_path / "db"))) == (5, 25)


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[Any] = []
    with zlmdb.open(None, Store) as db:
        fill(db, 3)
        db.dump(io.BytesIO(), progress=told.append)
    assert {one.stage for one in told} == {"users", "logins", "weather", "objects", "blobs"}


BY_HAND = UUID("d6a4c7f0-0000-4000-8000-000000000051")


@zlmdb.table(BY_HAND)
class Numbered(zlmdb.MapStringString):
    """A table that had another slot than it gets."""


def by_hand(path: Path, layout: Any = "classic") -> bytes:
    """The stream of a database whose slot 1 was given by hand."""
    with zlmdb.Database(path, layout=layout) as db:
        notes = zlmdb.MapStringString(1)
        with db.begin(write=True) as txn:
            notes[txn, "hand"] = "by hand"
        numbered = db.attach_table(Numbered)
        with db.begin(write=True) as txn:
            numbered[txn, "ann"] = "user"
    return dumped(path)


def test_a_table_gets_no_slot_that_was_given_by_hand(tmp_path: Path) -> None:
    with loaded(by_hand(tmp_path / "db"), tmp_path / "new", "classic") as db:
        numbered, notes = db.attach_table(Numbered), zlmdb.MapStringString(1)
        with db.begin() as txn:
            assert dict(numbered.bind(txn)) == {"ann": "user"}
            assert dict(notes.bind(txn)) == {"hand": "by hand"}
        assert db.check().ok


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_slot_that_is_there_already_is_kept(layout: Any, tmp_path: Path) -> None:
    stream = by_hand(tmp_path / "db", layout)
    with zlmdb.Database(tmp_path / "new", layout=layout) as db:
        notes = zlmdb.MapStringString(1)
        with db.begin(write=True) as txn:
            notes[txn, "mine"] = "kept"
        with pytest.raises(zlmdb.ConstraintError, match="'slot 1' is in the database already: .*zlmdb.Schema"):
            db.load(io.BytesIO(stream))
        with db.begin() as txn:
            assert dict(notes.bind(txn)) == {"mine": "kept"}


class Early(zlmdb.Schema):
    mine: zlmdb.Table[str, int]
    migrations = (zlmdb.Migration(1, "mine", lambda t: None),)


class Other(zlmdb.Schema):
    theirs: zlmdb.Table[str, int]
    migrations = (zlmdb.Migration(1, "theirs", lambda t: None),)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_versions_of_two_schemas_are_not_mixed(layout: Any, tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "other", Other) as other:
        other.migrate()
    with zlmdb.open(tmp_path / "db", Early, layout=layout) as db:
        db.migrate()
        with pytest.raises(zlmdb.SchemaMismatch, match="load it into a new"):
            db.load(io.BytesIO(dumped(tmp_path / "other")))
        assert list(db.tables()) == ["mine"]
    with zlmdb.open(tmp_path / "db", Early) as db:
        assert db.schema_version == 1


@pytest.mark.once
@pytest.mark.parametrize("layout", LAYOUTS)
def test_loading_is_one_transaction(layout: Any, tmp_path: Path) -> None:
    make(tmp_path / "db", 4_500)  # of each of five kinds
    stream = dumped(tmp_path / "db")
    told: list[Any] = []

    def stop(progress: Any) -> None:
        told.append(progress)
        if len(told) == 2:
            raise KeyboardInterrupt

    with zlmdb.open(tmp_path / "new", zlmdb.Schema, layout=layout) as db:
        with pytest.raises(KeyboardInterrupt):
            db.load(io.BytesIO(stream), progress=stop)
        assert db.tables() == {}
        assert db.load(io.BytesIO(stream)).records > 12_000
        assert db.check().ok


WRONG_STEPS: list[Any] = [
    7, {"version": 1, "name": "one"}, [7], [{"version": -1, "name": "one"}], [{"version": 1 << 64, "name": "one"}],
    [{"version": "1", "name": "one"}], [{"version": 1}],
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG_STEPS, ids=str)
def test_a_stream_with_a_damaged_migration_stores_nothing(wrong: Any, tmp_path: Path) -> None:
    make(tmp_path / "db", 5)
    first, _, rest = dumped(tmp_path / "db").partition(b"\n")
    stream = json.dumps({**json.loads(first), "migrations": wrong}).encode() + b"\n" + rest
    with zlmdb.open(tmp_path / "new", zlmdb.Schema) as db:
        with pytest.raises(zlmdb.DecodeError, match="migration"):
            db.load(io.BytesIO(stream))
        assert db.tables() == {}


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    make(tmp_path / "db", 5)
    stream = dumped(tmp_path / "db")

    class Endless(io.RawIOBase):
        """A stream whose second line never ends."""

        asked = 0

        def readable(self) -> bool:
            return True

        def seekable(self) -> bool:
            return True

        def tell(self) -> int:
            return 0

        def readline(self, size: Optional[int] = -1, /) -> bytes:
            assert size is not None
            assert size > 0, "a line of any length was asked for"
            self.asked += 1
            return stream.splitlines(keepends=True)[0] if self.asked == 1 else b"x" * size

    with zlmdb.open(None, zlmdb.Schema) as db:
        with pytest.raises(zlmdb.DecodeError, match="longer than 1000 bytes"):
            db.load(Endless(), max_line=1000)  # type: ignore[arg-type]
        with pytest.raises(zlmdb.DecodeError, match="max_line"):
            db.load(io.BytesIO(stream), max_line=100)
        assert db.tables() == {}
        assert db.load(io.BytesIO(stream), max_line=1 << 20).tables == 5


def test_a_stream_that_cannot_be_read_is_an_error_of_ours_with_its_name() -> None:
    class Failing(io.BytesIO):
        name = "stream.jsonl"

        def readline(self, size: Optional[int] = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    with zlmdb.open(None, zlmdb.Schema) as db, pytest.raises(zlmdb.DiskError, match="'stream.jsonl' could not be read"):
        db.load(Failing())


def test_a_line_that_is_nested_too_deeply_is_a_decode_error() -> None:
    with zlmdb.open(None, zlmdb.Schema) as db, pytest.raises(zlmdb.DecodeError, match="not JSON"):
        db.load(io.BytesIO(b'{"zlmdb": "dump", "version": 1}\n{"table": ' + b"[" * 100_000))


# -- indexes and values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", LAYOUTS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_indexes_come_with_the_stream(layout: Any, to: Any, tmp_path: Path) -> None:
    make(tmp_path / "db", 50, layout=layout)
    stream = dumped(tmp_path / "db")
    with loaded(stream, tmp_path / "new", to) as new:
        assert len(new.tables()["users"].indexes) == 6
    with zlmdb.open(tmp_path / "new", zlmdb.Schema) as db, db.write() as t, pytest.raises(zlmdb.IndexNotAttached):
        t["users"].pop(UUID(int=1))
    before = (tmp_path / "new" / "data.mdb").read_bytes()
    with zlmdb.open(tmp_path / "new", Store, readonly=True) as db:  # which builds nothing
        assert db.check().ok
        with db.read() as t:
            assert [key for key, _ in t.users.by_age.select(3, 4)] == [UUID(int=3)]
            assert t.users.by_initial.select("u", "v").count() == 50
    assert (tmp_path / "new" / "data.mdb").read_bytes() == before


def changed_stream(stream: bytes, change: Any) -> bytes:
    """*stream* with the lines that *change* makes of its own, and the checksums that these have."""
    lines: list[bytes] = []
    digest = hashlib.sha256()
    for line in stream.splitlines(keepends=True):
        content = change(json.loads(line))
        line = json.dumps(content).encode() + b"\n"
        if "table" in content:
            digest = hashlib.sha256()
        elif content.get("end") is None:
            digest.update(line)
        else:
            line = json.dumps({**content, "sha256": digest.hexdigest()}).encode() + b"\n"
        lines.append(line)
    return b"".join(lines)


def test_a_value_without_its_fields_is_not_loaded_unless_asked(tmp_path: Path) -> None:
    make(tmp_path / "db", 5)
    codec = zlmdb.values.MsgpackSerializer[Any]()

    def without_email(line: dict[str, Any]) -> dict[str, Any]:
        if line.get("k") != str(UUID(int=3)) or "i" in line:
            return line
        fields = codec.decode(base64.b64decode(line["v"]))
        del fields["email"]
        return {**line, "v": base64.b64encode(codec.encode(fields)).decode()}

    stream = changed_stream(dumped(tmp_path / "db"), without_email)
    with zlmdb.Database(tmp_path / "new") as db:
        with pytest.raises(zlmdb.DecodeError, match=r"00000003.*--no-check"):
            db.load(io.BytesIO(stream))
        assert db.tables() == {}
        db.load(io.BytesIO(stream), check=False)
        assert db.tables()["users"].count == 5


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"p": str(UUID(int=99))}, "no such record"),
        ({"i": "by_nothing"}, "no index 'by_nothing'"),
        ({"k": []}, "by_"),
    ],
)
def test_an_entry_that_does_not_fit_is_not_loaded(change: Any, text: str, tmp_path: Path) -> None:
    make(tmp_path / "db", 2)
    stream = changed_stream(dumped(tmp_path / "db"), lambda line: {**line, **change} if "i" in line else line)
    with zlmdb.Database(tmp_path / "new") as db, pytest.raises(zlmdb.DecodeError, match=text):
        db.load(io.BytesIO(stream))


@pytest.mark.parametrize("change", [{"v": None}, {"v": "\udcff"}, {"i": []}, {"value": True}])
def test_a_line_that_is_none_of_a_dump_is_a_decode_error(change: dict[str, Any], tmp_path: Path) -> None:
    make(tmp_path / "db", 2)
    stream = changed_stream(
        dumped(tmp_path / "db"), lambda line: {**line, **change} if change.keys() <= line.keys() else line
    )
    with zlmdb.Database(tmp_path / "new") as db, pytest.raises(zlmdb.DecodeError, match="the stream"):
        db.load(io.BytesIO(stream))
