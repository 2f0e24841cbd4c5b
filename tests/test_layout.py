"""What kind of file this is: recognised, marked against zlmdb <= 26, not written to beside another's rows."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import new_class
from typing import Any
from uuid import UUID

import lmdb
import pytest

import zlmdb
from zlmdb.schema import contents
from zlmdb.store import definitions, layout

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python

VERSIONS = ["0.9", "1.0"]


class Store(zlmdb.Schema):
    names: zlmdb.Table[int, str]


def in_main(path: Path, work: Callable[[Any, Any], Any]) -> Any:
    """Run ``work(env, txn)`` on the file as any LMDB program could."""
    with lmdb.open(str(path), max_dbs=10) as env, env.begin(write=True) as txn:
        return work(env, txn)


def new(path: Path, version: str = "0.9", **options: Any) -> None:
    zlmdb.Database(path, lib_version=version, **options).close()
    with zlmdb.open(path, Store) as db, db.write() as t:
        t.names[1] = "one"


@pytest.mark.parametrize("version", VERSIONS)
def test_foreign_rows_in_the_main_database_stop_writers_and_not_readers(tmp_path: Path, version: str) -> None:
    new(tmp_path, version)
    in_main(tmp_path, lambda env, txn: txn.put(b"\x00\x01abc", b"of another program"))
    with zlmdb.open(tmp_path, Store) as db:
        with db.read() as t:
            assert dict(t.names) == {1: "one"}
        with pytest.raises(zlmdb.InvalidDatabase, match=r"x00\\x01abc"):
            db.write().__enter__()
    in_main(tmp_path, lambda env, txn: txn.delete(b"\x00\x01abc"))
    with zlmdb.open(tmp_path, Store) as db, db.write() as t:
        t.names[2] = "two"


FOREIGN = """if 1:
    import lmdb, sys
    with lmdb.open(sys.argv[1], max_dbs=10) as env, env.begin(write=True) as txn:
        txn.put(b"key", b"of another program")
"""


def store_one(db: Any) -> None:
    with db.write() as t:
        t.names[2] = "two"


def store_nothing(db: Any) -> None:
    with db.write() as t:
        t.names.pop(3, None)


def abort(db: Any) -> None:
    with db.write() as t:
        t.names[2] = "two"
        t.txn.abort()


def undo(db: Any) -> None:
    with db.write() as t, suppress(KeyError), t.txn.savepoint():
        t.names[2] = "two"
        raise KeyError


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pytest.mark.parametrize("last", [store_one, store_nothing, abort, undo])
def test_a_foreign_row_is_met_by_the_first_writer_after_it(tmp_path: Path, last: Callable[[Any], None]) -> None:
    """Snapshots are numbered: one that another program stored must not be taken for one of ours that stored nothing."""
    new(tmp_path)
    with zlmdb.open(tmp_path, Store) as db:
        store_one(db)
        last(db)
        subprocess.run([sys.executable, "-c", FOREIGN, str(tmp_path)], check=True, timeout=120)
        with pytest.raises(zlmdb.InvalidDatabase, match="key"):
            db.write().__enter__()


@pytest.mark.parametrize("version", VERSIONS)
def test_sub_databases_of_others_are_left_alone(tmp_path: Path, version: str) -> None:
    new(tmp_path, version)
    in_main(tmp_path, lambda env, txn: txn.put(b"key", b"value", db=env.open_db(b"theirs", txn=txn)))
    with zlmdb.open(tmp_path, Store) as db, db.write() as t:
        t.names[2] = "two"
        assert list(t) == ["names"]
    assert in_main(tmp_path, lambda env, txn: txn.get(b"key", db=env.open_db(b"theirs", txn=txn))) == b"value"


def test_a_tables_file_carries_the_record_on_which_the_predecessor_stops(tmp_path: Path) -> None:
    new(tmp_path)
    assert in_main(tmp_path, lambda env, txn: txn.get(layout.GUARD[0])) == layout.GUARD[1]


def test_a_newer_catalogue_is_refused_by_name(tmp_path: Path) -> None:
    new(tmp_path)

    def age(env: Any, txn: Any) -> None:
        txn.put(layout.MAGIC_KEY, layout.encode({"format": 2}), db=env.open_db(layout.CATALOGUE, txn=txn))

    in_main(tmp_path, age)
    with pytest.raises(zlmdb.InvalidDatabase, match="format 2.*newer"):
        zlmdb.open(tmp_path, Store)
    in_main(tmp_path, lambda env, txn: txn.delete(layout.MAGIC_KEY, db=env.open_db(layout.CATALOGUE, txn=txn)))
    with pytest.raises(zlmdb.InvalidDatabase, match="did not create"):
        zlmdb.open(tmp_path, Store)


@pytest.mark.parametrize("opens", [zlmdb.Database, lambda path: zlmdb.open(path, Store)])
@pytest.mark.parametrize("content", ["records", "sub-databases", "short keys"])
def test_another_programs_file_is_refused_and_untouched(tmp_path: Path, opens: Any, content: str) -> None:
    def fill(env: Any, txn: Any) -> None:
        if content == "sub-databases":
            txn.put(b"key", b"value", db=env.open_db(b"theirs", txn=txn))
        else:
            txn.put(b"k" if content == "short keys" else b"\x00\x00\x00\x07", b"\x01")

    in_main(tmp_path, fill)
    before = in_main(tmp_path, lambda env, txn: list(txn.cursor()))
    with pytest.raises(zlmdb.InvalidDatabase, match="not one of zlmdb"):
        opens(tmp_path)
    assert in_main(tmp_path, lambda env, txn: list(txn.cursor())) == before
    assert sorted(os.listdir(tmp_path)) == ["data.mdb", "lock.mdb"]


def test_slots_given_by_hand_without_metadata_are_classic_for_those_who_say_so(tmp_path: Path) -> None:
    in_main(tmp_path, lambda env, txn: txn.put(b"\x00\x07ab", b"\x00" * 7 + b"\x05"))
    with pytest.raises(zlmdb.InvalidDatabase, match="classic"):
        zlmdb.open(tmp_path)
    users = zlmdb.MapStringOid(7)
    with zlmdb.Database(tmp_path) as db, db.begin() as txn:
        assert db.layout == "classic"
        assert users[txn, "ab"] == 5
    with zlmdb.open(tmp_path, Store, layout="classic") as db, db.write() as t:
        t.names[1] = "one"
    with zlmdb.open(tmp_path) as db:
        assert db.layout == "classic"


def test_a_file_that_is_not_lmdbs_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data.mdb"
    for content in (b"no database" * 1000, b"short", b"\0" * 9000, b""):
        for readonly in (False, True):
            if content or readonly:  # of an empty file, a writer makes a database
                data.write_bytes(content)
                with pytest.raises(zlmdb.InvalidDatabase, match="no LMDB data file" if content else "is empty"):
                    zlmdb.open(tmp_path, Store, readonly=readonly)
                assert data.read_bytes() == content
                assert list(tmp_path.iterdir()) == [data]


@pytest.mark.parametrize("version", VERSIONS)
def test_damage_that_lmdb_takes_for_the_end_of_a_transaction_is_damage(tmp_path: Path, version: str) -> None:
    new(tmp_path, version)
    data = bytearray((tmp_path / "data.mdb").read_bytes())
    place = data.find(layout.CATALOGUE)
    while place >= 0:  # what LMDB stores of a sub-database ends with the number of its root page, 40 bytes behind
        root = place + len(layout.CATALOGUE) + (version != "0.9") + 40
        if 0 < int.from_bytes(data[root - 8 : root], "little") < 10:  # its entries
            data[root : root + 8] = (1 << 40).to_bytes(8, "little")
        place = data.find(layout.CATALOGUE, place + 1)
    (tmp_path / "data.mdb").write_bytes(data)
    for readonly in (True, False):
        with pytest.raises(zlmdb.CorruptDatabase, match=r"salvage\(\)") as caught:
            zlmdb.open(tmp_path, Store, readonly=readonly)
        assert repr(str(tmp_path)) in str(caught.value)


@pytest.mark.parametrize("damage", [b"ckeyc\xffnt", b"ckeyCint"])
def test_a_damaged_catalogue_is_told_with_the_path_and_what_to_do(tmp_path: Path, damage: bytes) -> None:
    new(tmp_path)
    data = (tmp_path / "data.mdb").read_bytes()
    (tmp_path / "data.mdb").write_bytes(data.replace(b"ckeycint", damage))
    with pytest.raises(zlmdb.DecodeError, match=r"salvage\(\)") as caught:
        zlmdb.open(tmp_path, Store)
    assert caught.value.path == str(tmp_path)


@pytest.mark.parametrize("in_file", [True, False])
def test_a_name_that_is_too_long_is_refused_with_the_limit(in_file: bool, tmp_path: Path) -> None:
    with zlmdb.open(tmp_path if in_file else None, Store) as db:
        limit = db._open_store.environment.max_key_size() - len("t:")
        longest = "\u00e4" + (limit - 2) * "x"
        with pytest.raises(
            zlmdb.EncodeError, match=f": {limit + 1} bytes in UTF-8, and at most {limit} are possible"
        ) as raised:
            db.table(longest + "x", int, str)
        assert (raised.value.size, raised.value.limit, raised.value.table) == (limit + 1, limit, longest + "x")
        table = db.table(longest, int, str)
        with db.write() as t:
            t[table][1] = "one"

        class Indexed(zlmdb.Table[int, str]):
            by_text = zlmdb.Index[str](lambda text: text, version=1)

        with pytest.raises(zlmdb.EncodeError, match=f"index .*{limit + 4} bytes in UTF-8, and at most {limit - 1} are"):
            db.table((limit - 3) * "y", Indexed)


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_is_none_for_the_engine_is_refused(name: str, tmp_path: Path) -> None:
    """LMDB ends a name at NUL: two tables shared their records."""
    with zlmdb.open(tmp_path / "db", type("Empty", (zlmdb.Schema,), {})) as db:
        with pytest.raises(zlmdb.EncodeError, match="neither a NUL character nor half a surrogate pair"):
            db.table(name, str, int)
        db.table("a", str, int)
        assert (list(db.tables()), db.check().ok) == (["a"], True)


def test_an_existing_file_keeps_its_layout(tmp_path: Path) -> None:
    new(tmp_path / "classic", layout="classic")
    new(tmp_path / "tables")
    for name, other in (("classic", "tables"), ("tables", "classic")):
        with zlmdb.open(tmp_path / name, Store, layout=other) as db:
            assert db.layout == name


class Steps:
    """Counts the calls of functions in a block, and the bytes of catalogue records that it encodes and decodes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = self.bytes = 0
        self._monkeypatch = monkeypatch

    def __enter__(self) -> Steps:
        self._patched = self._monkeypatch.context()
        patched = self._patched.__enter__()
        patched.setattr(layout, "encode", self._counted(layout.encode))
        patched.setattr(layout, "decode", self._counted(layout.decode))
        gc.collect()  # or PyPy counts calls for what earlier tests have left
        sys.setprofile(self._count_call)
        return self

    def __exit__(self, *error: Any) -> None:
        sys.setprofile(None)
        self._patched.__exit__(None, None, None)

    def _count_call(self, frame: Any, event: str, arg: Any) -> None:
        self.calls += event in ("call", "c_call")

    def _counted(self, function: Any) -> Any:
        def called(record: Any) -> Any:
            made = function(record)
            self.bytes += len(record if isinstance(record, bytes) else made)
            return made

        return called


def steps_to_make(path: Path, file_layout: Any, count: int, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """The steps that a new file of so many tables takes."""
    names = {f"t{i}": new_class(f"T{i}", (zlmdb.Table[int, str],)) for i in range(count)}
    schema: Any = new_class("Many", (zlmdb.Schema,), exec_body=lambda body: body.update(__annotations__=names))
    zlmdb.open(path / "warm", schema, layout=file_layout).close()  # what is done once for each class
    with Steps(monkeypatch) as steps:
        db = zlmdb.open(path / "made", schema, layout=file_layout)
    db.close()
    return steps


@pytest.mark.once  # the same on every interpreter
@pytest.mark.parametrize("file_layout", ["tables", "classic"])
def test_making_many_tables_takes_as_many_steps_for_each(
    tmp_path: Path, file_layout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = steps_to_make(tmp_path / "few", file_layout, 50, monkeypatch)
    many = steps_to_make(tmp_path / "many", file_layout, 500, monkeypatch)
    assert many.calls < 11 * few.calls
    assert many.bytes < 13 * few.bytes  # in a classic file some share a record


def classic_map(number: int) -> Any:
    return zlmdb.table(UUID(int=number + 1))(new_class(f"M{number}", (zlmdb.MapOidString,)))


def attach_map(db: Any, number: int) -> None:
    db.attach_table(classic_map(number))


def make_table(db: Any, number: int) -> None:
    db.table(f"t{number}", int, str)


def attach_map_and_write(db: Any, number: int) -> None:
    table = db.attach_table(classic_map(number))
    with db.begin(write=True) as txn:
        table[txn, 1] = "one"


@pytest.mark.once
@pytest.mark.parametrize("file_layout", ["tables", "classic"])
@pytest.mark.parametrize("one", [attach_map, make_table, attach_map_and_write])
def test_attaching_one_table_after_another_takes_as_many_steps_for_each(
    tmp_path: Path, file_layout: Any, one: Callable[[Any, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Steps] = []
    with zlmdb.Database(tmp_path, layout=file_layout, sync=False) as db:
        for number in range(150):
            if number in (10, 140):
                seen.append(Steps(monkeypatch))
            if 10 <= number < 20 or number >= 140:
                with seen[-1]:
                    one(db, number)
            else:
                one(db, number)
    first, last = seen
    assert last.calls < 2 * first.calls  # on PyPy it also depends on when garbage is collected
    assert last.bytes < 3 * first.bytes  # in a classic file some share a record


@pytest.mark.once  # the same on every interpreter
@pytest.mark.parametrize("file_layout", ["tables", "classic"])
def test_using_an_attached_map_takes_as_many_steps_in_a_file_of_many(
    tmp_path: Path, file_layout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each was attached before others, so that what is known of the file is not what it says now."""
    seen: list[Steps] = []
    for count in (20, 200):
        with zlmdb.Database(tmp_path / str(count), layout=file_layout, sync=False) as db:
            tables = [db.attach_table(classic_map(number)) for number in range(count)]
            with db.begin() as txn, Steps(monkeypatch) as steps:
                for table in tables[:10]:
                    table[txn, 1]
        seen.append(steps)
    few, many = seen
    # of ten times as many tables; PyPy counts what its collector calls, too
    assert many.calls < (2 if sys.implementation.name == "cpython" else 3) * few.calls
    assert many.bytes < 3 * few.bytes + 3000  # in a classic file some share a record


ATTACH_ANOTHER = """if 1:
    import sys, uuid, zlmdb
    @zlmdb.table(uuid.UUID(int=int(sys.argv[2])))
    class Other(zlmdb.MapOidString):
        pass
    with zlmdb.Database(sys.argv[1]) as db:
        other = db.attach_table(Other)
        with db.begin(write=True) as txn:
            other[txn, 1] = "other"
"""


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pytest.mark.parametrize("file_layout", ["tables", "classic"])
def test_tables_that_another_process_attaches_in_between_are_seen(tmp_path: Path, file_layout: Any) -> None:
    with zlmdb.Database(tmp_path, layout=file_layout) as db:
        ours: list[Any] = []
        for number in range(2):
            ours.append(db.attach_table(classic_map(number)))
            subprocess.run([sys.executable, "-c", ATTACH_ANOTHER, str(tmp_path), str(501 + number)], check=True)
        ours.append(db.attach_table(classic_map(2)))
        with db.begin(write=True) as txn:
            for table in ours:
                assert len(table.bind(txn)) == 0  # which it would not be in a slot of theirs
                table[txn, 1] = "ours"
        numbers = {name: info.number for name, info in contents.tables(db._open_store).items()}
        assert len(numbers) == len(set(numbers.values())) == 5
        theirs = [db.attach_table(classic_map(number)) for number in (500, 501)]
        with db.begin() as txn:
            assert [dict(table.bind(txn)) for table in theirs] == [{1: "other"}, {1: "other"}]


def test_definitions_in_one_record_are_read_and_spread_by_the_next_writer(tmp_path: Path) -> None:
    """As the first versions of 27 wrote them."""
    keys = [layout.DEFINITIONS_KEY, *(definitions.key_of(f"t{number}") for number in range(3))]
    with zlmdb.Database(tmp_path, layout="classic") as db:
        for number in range(2):
            make_table(db, number)
    with lmdb.open(str(tmp_path)) as env, env.begin(write=True) as txn:
        merged = {name: one for key in keys for name, one in layout.decode(txn.get(key, b"\xa0")).items()}
        for key in keys[1:]:
            txn.delete(key)
        txn.put(keys[0], layout.encode(merged))
    with zlmdb.Database(tmp_path) as db:
        assert db.check().ok
        with pytest.raises(zlmdb.SchemaMismatch):
            db.table("t0", str, str)
        make_table(db, 2)
        for number in range(3):
            with pytest.raises(zlmdb.SchemaMismatch):
                db.table(f"t{number}", str, str)
    with lmdb.open(str(tmp_path)) as env, env.begin() as txn:
        assert txn.get(keys[0]) == b"\xa0"
        assert {name for key in keys[1:] for name in layout.decode(txn.get(key))} == {"t0", "t1", "t2"}


@pytest.mark.once  # the same on every interpreter
@pytest.mark.parametrize("file_layout", ["tables", "classic"])
def test_loading_many_tables_takes_as_many_steps_for_each(
    tmp_path: Path, file_layout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    for count in (20, 120):
        stream = io.BytesIO()
        with zlmdb.Database(tmp_path / f"from {count}", layout=file_layout, sync=False) as db:
            for number in range(count):
                make_table(db, number)
            db.dump(stream)
        stream.seek(0)
        with zlmdb.Database(tmp_path / f"to {count}", layout=file_layout, sync=False) as db:
            with Steps(monkeypatch) as steps:
                db.load(stream)
            assert len(db.tables()) == count
            numbers = {slot.number for slot in contents.tables(db._open_store).values()}
            assert len(numbers) == count
        seen.append(steps.calls // count)
    assert seen[1] < 1.5 * seen[0]
