"""What kind of file this is: recognised, marked against zlmdb <= 26, not written to beside another's rows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import new_class
from typing import Any

import lmdb
import pytest

import zlmdb
from zlmdb.store import layout

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
    (tmp_path / "data.mdb").write_bytes(b"no database" * 1000)
    with pytest.raises(zlmdb.InvalidDatabase, match=r"no LMDB data file|another version"):
        zlmdb.open(tmp_path, Store)
    assert (tmp_path / "data.mdb").read_bytes() == b"no database" * 1000


def test_an_existing_file_keeps_its_layout(tmp_path: Path) -> None:
    new(tmp_path / "classic", layout="classic")
    new(tmp_path / "tables")
    for name, other in (("classic", "tables"), ("tables", "classic")):
        with zlmdb.open(tmp_path / name, Store, layout=other) as db:
            assert db.layout == name


def steps_to_make(path: Path, file_layout: Any, count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """The calls of functions, and the bytes of catalogue records, that a new file of so many tables takes."""
    names = {f"t{i}": new_class(f"T{i}", (zlmdb.Table[int, str],)) for i in range(count)}
    schema: Any = new_class("Many", (zlmdb.Schema,), exec_body=lambda body: body.update(__annotations__=names))
    calls, size = 0, 0

    def counted(function: Any) -> Any:
        def called(record: Any) -> Any:
            nonlocal size
            made = function(record)
            size += len(record if isinstance(record, bytes) else made)
            return made

        return called

    def count_call(frame: Any, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    with monkeypatch.context() as patched:
        patched.setattr(layout, "encode", counted(layout.encode))
        patched.setattr(layout, "decode", counted(layout.decode))
        zlmdb.open(path / "warm", schema, layout=file_layout).close()  # what is done once for each class
        size = 0
        sys.setprofile(count_call)
        try:
            db = zlmdb.open(path / "made", schema, layout=file_layout)
        finally:
            sys.setprofile(None)
        db.close()
    return calls, size


@pytest.mark.parametrize("file_layout", ["tables", "classic"])
def test_making_many_tables_takes_as_many_steps_for_each(
    tmp_path: Path, file_layout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = steps_to_make(tmp_path / "few", file_layout, 50, monkeypatch)
    many = steps_to_make(tmp_path / "many", file_layout, 500, monkeypatch)
    assert many[0] < 11 * few[0]
    assert many[1] < 11 * few[1]
