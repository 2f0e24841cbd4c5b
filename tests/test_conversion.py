"""From the classic layout to the tables layout: files of ours, and of the real predecessor with every map."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy
import pytest
from operated import Store, content, make

import zlmdb
import zlmdb.operations.conversion

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python

sys.path.insert(0, str(Path(__file__).parent / "interop"))
catalogue: Any = importlib.import_module("catalogue")
predecessor: Any = importlib.import_module("predecessor")
convert = zlmdb.Database.convert


@zlmdb.table("d6a4c7f0-0000-4000-8000-000000000031")
class Points(zlmdb.MapOidTimestampOid):
    """Keys that the classic layout stores little-endian."""


@zlmdb.table("d6a4c7f0-0000-4000-8000-000000000032", compress=1)
class Members(zlmdb.MapUuidUuidSet):
    """Compressed sets."""


@zlmdb.table("d6a4c7f0-0000-4000-8000-000000000033")
class Objects(zlmdb.MapOidPickle[Any]):
    """Pickles."""


MAPS = [Points, Members, Objects]
NUMBERS = (1, 255, 256, 65536)


def make_classic(path: Path) -> None:
    with zlmdb.Database(path, layout="classic") as db:
        points, members, objects = (db.attach_table(cls) for cls in MAPS)
        with db.begin(write=True) as txn:
            for n in NUMBERS:
                points[txn, (n, numpy.datetime64(n, "ns"))] = n
                members[txn, UUID(int=n)] = {UUID(int=one) for one in range(20)}
                objects[txn, n] = {"n": n}
                zlmdb.MapStringOidOid(70)[txn, (f"n{n}", n)] = n
    forget(path)


def forget(path: Path) -> None:
    """Make it a file that zlmdb 26 could have written: without the definitions, which it does not store."""
    import lmdb

    with lmdb.open(str(path)) as env, env.begin(write=True) as txn:
        for key in [key for key, _ in txn.cursor() if len(key) == 3]:
            txn.delete(key)


def test_every_record_arrives_and_keys_sort_afterwards(tmp_path: Path) -> None:
    make_classic(tmp_path / "old")
    report = convert(tmp_path / "old", tmp_path / "new", maps=MAPS, slots={70: zlmdb.MapStringOidOid})
    oids = {cls: str(cls._zlmdb_oid) for cls in MAPS}
    assert report.records == {**dict.fromkeys(oids.values(), 4), "slot 70": 4}
    assert report.keys[oids[Points]] == 4
    assert report.keys[oids[Objects]] == 0
    assert report.verified == 16
    with zlmdb.Database(tmp_path / "new") as db:
        assert db.layout == "tables"
        points, members, objects = (db.attach_table(cls) for cls in MAPS)
        with db.begin() as txn:
            assert [oid for oid, _ in points.select(txn, return_values=False)] == list(NUMBERS)
            assert points.count_range(txn, (2, numpy.datetime64(0, "ns")), (257, numpy.datetime64(0, "ns"))) == 2
            assert members[txn, UUID(int=255)] == {UUID(int=one) for one in range(20)}
            assert objects[txn, 256] == {"n": 256}
            assert zlmdb.MapStringOidOid(70)[txn, ("n1", 1)] == 1
        assert db.check().ok
    assert {path.name for path in tmp_path.iterdir()} == {"old", "new"}


def test_declared_tables_and_indexes_of_a_classic_file_are_known(tmp_path: Path) -> None:
    make(tmp_path / "old", layout="classic")
    report = convert(tmp_path / "old", tmp_path / "new")
    assert report.verified == 500
    with zlmdb.open(tmp_path / "old", Store) as old, zlmdb.open(tmp_path / "new", Store) as new:
        assert new.layout == "tables"
        assert content(new) == content(old)
        assert new.check().ok


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    make_classic(tmp_path / "old")
    report = convert(tmp_path / "old", None, maps=MAPS, slots={70: zlmdb.MapStringOidOid(70)})
    assert sum(report.records.values()) == 16
    assert report.target is None
    assert {path.name for path in tmp_path.iterdir()} == {"old"}


def test_what_is_converted_is_one_state(tmp_path: Path) -> None:
    """What a program wrote between the two passes looked like an error of the conversion."""
    make_classic(tmp_path / "old")
    program = """
import sys, lmdb
with lmdb.open(sys.argv[1]) as env, env.begin(write=True) as txn:
    txn.delete(b"\\0\\x46n1" + bytes(7) + b"\\1")
"""
    stages: list[str] = []

    def told(progress: zlmdb.Progress) -> None:
        if not stages:
            subprocess.run([sys.executable, "-c", program, str(tmp_path / "old")], check=True)
        stages.append(progress.stage)

    slots = {70: zlmdb.MapStringOidOid}
    report = convert(tmp_path / "old", tmp_path / "new", maps=MAPS, slots=slots, progress=told)
    assert report.verified == 16
    assert sum(convert(tmp_path / "old", None, maps=MAPS, slots=slots).records.values()) == 15


def test_a_table_made_when_the_tables_are_known_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records were left out without a word, and those that were stored with it in other tables were not."""
    make_classic(tmp_path / "old")
    program = """
import sys, lmdb
with lmdb.open(sys.argv[1]) as env, env.begin(write=True) as txn:
    txn.put(b"\\0\\x47new", bytes(8))
    txn.put(b"\\0\\x46n9" + bytes(7) + b"\\1", bytes(8))
"""
    plans: Any = zlmdb.operations.conversion._plans

    def late(*arguments: Any) -> Any:
        found = plans(*arguments)
        subprocess.run([sys.executable, "-c", program, str(tmp_path / "old")], check=True)
        return found

    monkeypatch.setattr("zlmdb.operations.conversion._plans", late)
    slots = {70: zlmdb.MapStringOidOid}
    report = convert(tmp_path / "old", tmp_path / "new", maps=MAPS, slots=slots)
    assert report.verified == 16
    with pytest.raises(zlmdb.SchemaMismatch, match="slot 71"):
        convert(tmp_path / "old", tmp_path / "other", maps=MAPS, slots=slots)


def test_types_that_are_not_given_are_all_named(tmp_path: Path) -> None:
    make_classic(tmp_path / "old")
    with pytest.raises(zlmdb.SchemaMismatch, match=r"000000000031.*000000000033.*slot 70"):
        convert(tmp_path / "old", tmp_path / "new", maps=[Members])
    assert not (tmp_path / "new").exists()


def test_a_record_that_cannot_be_converted_stops_it_unless_skipped(tmp_path: Path) -> None:
    make_classic(tmp_path / "old")
    with zlmdb.Database(tmp_path / "old") as db, db.begin(write=True) as txn:
        txn.put(b"\0\x46" + b"\xff", b"bad")
    slots = {70: zlmdb.MapStringOidOid}
    with pytest.raises(zlmdb.DecodeError, match="1 records cannot be converted"):
        convert(tmp_path / "old", tmp_path / "new", maps=MAPS, slots=slots)
    assert not (tmp_path / "new").exists()
    report = convert(tmp_path / "old", tmp_path / "new", maps=MAPS, slots=slots, skip=True)
    assert (report.failed, report.skipped[0].table, report.skipped[0].key) == (1, "slot 70", "ff")
    assert report.verified == 16


def test_no_pickle_is_loaded(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "exploded"),)

    make_classic(tmp_path / "old")
    with zlmdb.Database(tmp_path / "old") as db:
        objects = db.attach_table(Objects)
        with db.begin(write=True) as txn:
            objects[txn, 7] = Bomb()
    convert(tmp_path / "old", tmp_path / "new", maps=MAPS, slots={70: zlmdb.MapStringOidOid})
    zlmdb.Database.salvage(tmp_path / "new", tmp_path / "salvaged")
    with zlmdb.open(tmp_path / "new", readonly=True) as db:
        assert db.check().ok
    assert not (tmp_path / "exploded").exists()


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_classic(tmp_path / "old")
    make(tmp_path / "tables", 2)
    with pytest.raises(zlmdb.InvalidDatabase, match="tables layout already"):
        convert(tmp_path / "tables", tmp_path / "new")
    with pytest.raises(FileExistsError):
        convert(tmp_path / "old", tmp_path / "tables", maps=MAPS, slots={70: zlmdb.MapStringOidOid})
    with pytest.raises(FileNotFoundError):
        convert(tmp_path / "nothing", tmp_path / "new")
    with zlmdb.Database(tmp_path / "old"), pytest.raises(zlmdb.DatabaseInUse):
        convert(tmp_path / "old", tmp_path / "new")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(100, 99, 1))
    with pytest.raises(zlmdb.DatabaseFull, match="1 bytes free"):
        convert(tmp_path / "old", tmp_path / "new", maps=MAPS, slots={70: zlmdb.MapStringOidOid})
    assert not (tmp_path / "new").exists()


# -- the real predecessor -------------------------------------------------------------------------------------------


@pytest.mark.interop
@pytest.mark.parametrize("version", ["default", "0.9"])
def test_a_file_of_the_predecessor_with_every_map_is_converted(
    version: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    predecessor.find(request.config, tmp_path_factory).run("write_all.py", tmp_path / "old", version)
    slots = {slot: catalogue.make(zlmdb, name, slot) for name, slot in catalogue.SLOTS.items()}
    report = convert(tmp_path / "old", tmp_path / "new", slots=slots)
    assert report.verified == sum(len(catalogue.records(name)) for name in catalogue.SLOTS)
    converted = {name for name, slot in catalogue.SLOTS.items() if report.keys[f"slot {slot}"]}
    kinds = {catalogue.MAPS[name][0] for name in converted}
    assert set(catalogue.LITTLE_ENDIAN) <= kinds
    with zlmdb.Database(tmp_path / "new") as db, db.begin() as txn:
        for name, slot in catalogue.SLOTS.items():
            table = catalogue.make(zlmdb, name, slot).bind(txn)
            expected = {
                catalogue.python_key(key): catalogue.python_value(value) for key, value in catalogue.records(name)
            }
            assert dict(table) == expected, name
            assert list(table) == sorted(table), name


@zlmdb.table("d6a4c7f0-0000-4000-8000-000000000041")
class Readings(zlmdb.MapStringCbor):
    """Values that equal nothing, not even themselves; and keys of any length."""


@pytest.mark.parametrize("skip", [False, True])
def test_values_that_equal_nothing_and_keys_that_do_not_fit(skip: bool, tmp_path: Path) -> None:
    with zlmdb.Database(tmp_path / "old", layout="classic", lib_version="1.0") as db:
        readings, blank = db.attach_table(Readings), zlmdb.MapStringString(9)
        with db.begin(write=True) as txn:
            readings[txn, "a"] = {"temperature": float("nan")}
    assert convert(tmp_path / "old", tmp_path / "first", maps=[Readings]).verified == 1
    with zlmdb.Database(tmp_path / "old") as db:
        readings = db.attach_table(Readings)
        with db.begin(write=True) as txn:
            readings[txn, "x" * 600] = {}
            blank[txn, ""] = "no key"
    given: Any = {"maps": [Readings], "slots": {9: zlmdb.MapStringString}, "skip": skip}
    for target in (None, tmp_path / "new"):
        if not skip:
            with pytest.raises(zlmdb.DecodeError, match="600 bytes, 1 to 511 fit"):
                convert(tmp_path / "old", target, **given)
            assert not (tmp_path / "new").exists()
        else:
            report = convert(tmp_path / "old", target, **given)
            assert (report.failed, report.records) == (1, {str(Readings._zlmdb_oid): 1, "slot 9": 1})
    report = convert(tmp_path / "old", tmp_path / "long", lib_version="1.0", **given)
    assert (report.failed, report.verified) == (0, 3)


def test_records_in_a_slot_beyond_the_last_one_are_no_silent_loss(tmp_path: Path) -> None:
    with zlmdb.Database(tmp_path / "db", layout="classic") as db:
        db._open_store.change(lambda txn, _: txn.put(b"\xff\xffx", b"y"))
        assert db.check().tables["slot 65535"].records == 1
        with pytest.raises(zlmdb.InvalidDatabase, match="slot 65535"), open(tmp_path / "dump", "wb") as file:
            db.dump(file)
    with pytest.raises(zlmdb.InvalidDatabase, match="slot 65535"):
        zlmdb.Database.convert(tmp_path / "db", tmp_path / "new")
