"""What is taken out of damaged files: all that decodes, and a list of what does not."""

from __future__ import annotations

import errno
import io
import os
import random
import shutil
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from operated import Store, content, data_file, fill, flip, make, mutated, user

import zlmdb
from zlmdb.store import layout
from zlmdb.store.definitions import key_of

pytestmark = pytest.mark.once  # what is in a file does not depend on the interpreter

IMAGES = int(os.environ.get("ZLMDB_TEST_IMAGES", "60"))
LAYOUTS = pytest.mark.parametrize("layout", ["tables", "classic"])
salvage = zlmdb.Database.salvage
ODD_NAME = pytest.param(
    "it's\na \\", marks=pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such file names")
)


@LAYOUTS
@pytest.mark.parametrize("version", ["0.9", "1.0"])
def test_a_sound_database_comes_out_whole(layout: Any, version: str, tmp_path: Path) -> None:
    zlmdb.Database(tmp_path / "db", layout=layout, lib_version=version).close()
    make(tmp_path / "db")
    report = salvage(tmp_path / "db", tmp_path / "out")
    assert report.complete, report
    assert report.records == 500
    assert report.lost == []
    assert any("by_email" in note or "declared indexes" in note for note in report.notes)
    with zlmdb.open(tmp_path / "db", Store) as old, zlmdb.open(tmp_path / "out", Store) as new:
        assert new.layout == layout
        assert new.lib_version == version
        assert content(new) == content(old)
        assert new.check().ok
        with new.read() as t:
            assert t.users.by_email["u7@example.com"] == user(7)
    assert {path.name for path in tmp_path.iterdir()} == {"db", "out"}


def test_indexes_are_never_read_before_they_are_built(tmp_path: Path) -> None:
    make(tmp_path / "db")
    salvage(tmp_path / "db", tmp_path / "out")
    with (
        zlmdb.open(tmp_path / "out", Store, readonly=True) as db,
        db.read() as t,
        pytest.raises(zlmdb.IndexNotBuilt),
    ):
        t.users.by_email["u7@example.com"]


def test_records_that_do_not_decode_are_listed(tmp_path: Path) -> None:
    make(tmp_path / "db")
    assert flip(tmp_path / "db", bytes([13]) * 20, 4)  # the checked blob 13
    report = salvage(tmp_path / "db", tmp_path / "out")
    assert [(one.table, bytes.fromhex(one.key)) for one in report.lost] == [("blobs", b"000013")]
    assert "checksum" in report.lost[0].reason
    assert report.copied["blobs"] == 99
    assert not report.complete
    with zlmdb.open(tmp_path / "out", Store) as db:
        assert db.check().ok


def test_a_lost_page_costs_its_records_and_no_others(tmp_path: Path) -> None:
    make(tmp_path / "db", 2000)
    with zlmdb.open(tmp_path / "db", Store) as db:
        before = content(db)
    file = data_file(tmp_path / "db")
    data = bytearray(file.read_bytes())
    place = data.rfind(b"u1234@example.com\xa3age") // 4096 * 4096
    data[place : place + 4096] = bytes(4096)
    file.write_bytes(data)
    report = salvage(tmp_path / "db", tmp_path / "out")
    assert report.damage
    assert not report.complete
    with zlmdb.open(tmp_path / "out", Store) as db:
        after = content(db)
        assert db.check().ok
    lost = {name: before[name].keys() - after[name].keys() for name in before}
    assert 0 < sum(map(len, lost.values())) < 300
    for name, rows in after.items():
        assert all(before[name][key] == value for key, value in rows.items())


def test_a_truncated_file_gives_what_is_left(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store, durability="none") as db:
        fill(db, 1000)
        for n in range(8):  # each commit writes the pages that lead to all others; only then are they not the last ones
            with db.write() as t:
                t.logins["more"] = n
                t.objects[1] = t.users[UUID(int=1)] = user(1)
    file = data_file(tmp_path / "db")
    whole = file.read_bytes()
    best = 0
    for share in (0.5, 0.7, 0.9):
        (tmp_path / "cut").write_bytes(whole[: int(len(whole) * share)])
        try:
            report = salvage(tmp_path / "cut", tmp_path / f"out {share}")
        except zlmdb.CorruptDatabase:
            continue  # the pages of the catalogue were among the last
        assert zlmdb.Database.verify(tmp_path / f"out {share}") == []
        best = max(best, report.records)
    assert best > 0


def test_a_file_without_the_pages_that_lead_to_its_tables_is_told_as_such(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store, durability="none") as db:
        fill(db, 100)
    file = data_file(tmp_path / "db")
    (tmp_path / "cut").write_bytes(file.read_bytes()[: 2 * 4096])
    with pytest.raises(zlmdb.CorruptDatabase, match="no tables of zlmdb: the pages .* is beyond the end"):
        salvage(tmp_path / "cut", tmp_path / "out")


def test_a_damaged_newest_state_falls_back_to_the_one_before(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store) as db:
        fill(db, 20)
        with db.write() as t:
            t.logins["last"] = 1
    file = data_file(tmp_path / "db")
    data = bytearray(file.read_bytes())
    newest = max((0, 1), key=lambda page: int.from_bytes(data[page * 4096 + 144 : page * 4096 + 152], "little"))
    data[newest * 4096 + 16] ^= 0xFF  # its magic number
    file.write_bytes(data)
    report = salvage(tmp_path / "db", tmp_path / "out")
    assert any("last commits may be missing" in note for note in report.notes)
    with zlmdb.open(tmp_path / "out", Store) as db, db.read() as t:
        assert "last" not in t.logins
        assert t.logins["user 7"] == 7


@LAYOUTS
def test_no_mutation_crashes_and_what_comes_out_is_sound(layout: Any, tmp_path: Path) -> None:
    """With checksums, what comes out also is what was stored."""

    class Safe(zlmdb.Schema):
        rows: zlmdb.Table[int, zlmdb.Checked[zlmdb.Cbor[dict[str, int]]]]

    with zlmdb.open(tmp_path / "db", Safe, layout=layout, durability="none") as db, db.write() as t:
        for n in range(600):
            t.rows[n] = {"n": n}
    whole = data_file(tmp_path / "db").read_bytes()
    rnd = random.Random(7)
    came_out = 0
    for number in range(IMAGES):
        (tmp_path / "image").write_bytes(mutated(whole, rnd))
        try:
            report = salvage(tmp_path / "image", tmp_path / f"out {number}")
        except (zlmdb.CorruptDatabase, zlmdb.InvalidDatabase):
            continue
        if "rows" not in report.copied or any("copied as they are" in note for note in report.notes):
            continue  # the catalogue had lost its name, or that of a type
        came_out += 1
        with zlmdb.open(tmp_path / f"out {number}", readonly=True) as db, db.read() as t:
            assert db.check().ok
            for key, value in t["rows"].items():
                if 0 <= key < 600 and value != {"n": key}:
                    # A damaged key: the checksum is of the value only.
                    assert report.damage or layout == "classic" or key != value["n"]
    assert came_out > IMAGES // 2


def test_a_table_that_the_catalogue_has_lost_comes_along_without_types(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store) as db:
        fill(db, 10)
        db._open_store.change(lambda txn, _: txn.delete(b"t:logins", db=db._open_store.space(layout.CATALOGUE).handle))
    report = salvage(tmp_path / "db", tmp_path / "out")
    assert any("logins" in one for one in report.damage)
    with zlmdb.open(tmp_path / "out", Store) as db, db.read() as t:
        assert dict(t.logins) == {f"user {n}": n for n in range(10)}


@LAYOUTS
@pytest.mark.parametrize("member", ["key", "value", "model"])
def test_a_type_that_is_no_text_is_damage_of_the_catalogue(layout: Any, member: str, tmp_path: Path) -> None:
    """In CBOR one bit makes bytes of a text."""

    def damage(txn: Any, space: Any) -> None:
        classic_key = key_of("logins")
        definitions = zlmdb.store.layout.decode(txn.get(classic_key)) if layout == "classic" else {}
        record = definitions.get("logins") or zlmdb.store.layout.decode(txn.get(b"t:logins", db=space(b"__zlmdb__")))
        record[member] = b"str"
        if layout == "classic":
            txn.put(classic_key, zlmdb.store.layout.encode(definitions))
        else:
            txn.put(b"t:logins", zlmdb.store.layout.encode(record), db=space(b"__zlmdb__"))

    with zlmdb.open(tmp_path / "db", Store, layout=layout) as db:
        fill(db, 10)
        db._open_store.change(damage)
        report = db.check()
        assert [one.kind for one in report.problems] == ["catalogue"]
        assert f"its {member} is not text" in report.problems[0].text
        with pytest.raises(zlmdb.DecodeError, match=f"its {member} is not text"):
            db.dump(io.BytesIO())
    salvaged = salvage(tmp_path / "db", tmp_path / "out")
    assert [one.table for one in salvaged.lost] == ["catalogue"]
    assert salvaged.records >= 20


# -- classic maps ---------------------------------------------------------------------------------------------------


@LAYOUTS
def test_slots_by_hand_and_registered_maps_come_along(layout: Any, tmp_path: Path) -> None:
    @zlmdb.table("d6a4c7f0-0000-4000-8000-000000000011")
    class People(zlmdb.MapOidPickle[Any]):
        """People."""

    @zlmdb.table("d6a4c7f0-0000-4000-8000-000000000012")
    class Names(zlmdb.MapStringOid):
        """Names."""

    def read(path: Path) -> list[Any]:
        with zlmdb.Database(path) as db:
            people, names, by_hand = db.attach_table(People), db.attach_table(Names), zlmdb.MapUuidString(70)
            people.attach_index("name", names, lambda one: one["name"])
            with db.begin() as txn:
                return [list(one.select(txn)) for one in (people, by_hand)]

    with zlmdb.Database(tmp_path / "db", layout=layout) as db:
        people, names, by_hand = db.attach_table(People), db.attach_table(Names), zlmdb.MapUuidString(70)
        people.attach_index("name", names, lambda one: one["name"])
        with db.begin(write=True) as txn:
            for n in range(10):
                people[txn, n] = {"name": f"n{n}"}
                by_hand[txn, UUID(int=n)] = f"v{n}"
    report = salvage(tmp_path / "db", tmp_path / "out")
    assert report.complete, report
    assert read(tmp_path / "out") == read(tmp_path / "db")


# -- refusals -------------------------------------------------------------------------------------------------------


def test_an_existing_target_and_a_source_that_is_none_are_refused(tmp_path: Path) -> None:
    make(tmp_path / "db", 5)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    with pytest.raises(FileExistsError):
        salvage(tmp_path / "db", tmp_path / "out")
    with pytest.raises(FileNotFoundError):
        salvage(tmp_path / "nothing", tmp_path / "new")
    (tmp_path / "text").write_text("text" * 5000)
    with pytest.raises(zlmdb.InvalidDatabase):
        salvage(tmp_path / "text", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


def test_progress_is_told(tmp_path: Path) -> None:
    make(tmp_path / "db", 5)
    told: list[Any] = []
    salvage(tmp_path / "db", tmp_path / "out", progress=told.append)
    assert {"users", "logins"} <= {one.stage for one in told}


def test_a_disk_without_room_is_told_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "db", 5)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(100, 99, 1))
    with pytest.raises(zlmdb.DatabaseFull, match="1 bytes free"):
        salvage(tmp_path / "db", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_slot_beyond_the_last_one_is_told_as_lost(tmp_path: Path) -> None:
    with zlmdb.Database(tmp_path / "db", layout="classic") as db:
        notes = zlmdb.MapStringString(1)
        with db.begin(write=True) as txn:
            notes[txn, "a"] = "b"
        db._open_store.change(lambda txn, _: txn.put(b"\xff\xffx", b"y"))
    report = salvage(tmp_path / "db", tmp_path / "out")
    assert (report.copied, [one.table for one in report.lost]) == ({"slot 1": 1}, ["slot 65535"])


# -- damaged records of the catalogue -------------------------------------------------------------------------------


class Stepped(Store):
    migrations = (zlmdb.Migration(1, "one", lambda t: None), zlmdb.Migration(2, "two", lambda t: None))


WRONG_STEPS: list[Any] = [
    {"version": -1, "name": "two"}, {"version": 0, "name": "two"}, {"version": 1 << 64, "name": "two"},
    {"version": "two", "name": "two"}, {"version": float("inf"), "name": "two"}, {"version": True, "name": "two"},
    {"version": [2], "name": "two"}, {"version": 2}, {"version": 2, "name": b"two"}, {},
]  # fmt: skip


@LAYOUTS
@pytest.mark.parametrize("wrong", WRONG_STEPS, ids=str)
def test_a_damaged_record_of_a_migration_is_lost_alone(wrong: Any, layout: Any, tmp_path: Path) -> None:
    def damage(txn: Any, space: Any) -> None:
        if layout == "classic":
            records = zlmdb.store.layout.decode(txn.get(zlmdb.store.layout.MIGRATIONS_KEY))["migrations"]
            txn.put(zlmdb.store.layout.MIGRATIONS_KEY, zlmdb.store.layout.encode({"migrations": [*records[:1], wrong]}))
        else:
            txn.put(b"m:" + (2).to_bytes(8, "big"), zlmdb.store.layout.encode(wrong), db=space(b"__zlmdb__"))

    with zlmdb.open(tmp_path / "db", Stepped, layout=layout) as db:
        fill(db, 10)
        db.migrate()
        db._open_store.change(damage)
    report = salvage(tmp_path / "db", tmp_path / "out")
    assert [one.table for one in report.lost] == ["catalogue"]
    assert report.records == 50
    with zlmdb.open(tmp_path / "out", Stepped) as db:
        assert db.schema_version == 1


def test_migrations_that_are_no_list_are_lost(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store, layout="classic") as db:
        fill(db, 10)
        db._open_store.change(lambda txn, _: txn.put(layout.MIGRATIONS_KEY, layout.encode({"migrations": 7})))
    report = salvage(tmp_path / "db", tmp_path / "out")
    assert ([one.table for one in report.lost], report.records) == (["catalogue"], 50)


@pytest.mark.parametrize(
    "wrong",
    [
        7, None, [], {"indexes": 7}, {"indexes": {"by_email": 7}}, {"indexes": {"by_email": {"slot": [3]}}},
        {"indexes": {"by_email": {"slot": "3"}}}, {"indexes": {7: {"slot": 3}}},
        {"indexes": {"by_email": {"slot": 3, "table": 7}}},
    ],
    ids=str,
)  # fmt: skip
def test_a_damaged_classic_definition_costs_no_records(wrong: Any, tmp_path: Path) -> None:
    def damage(txn: Any, _: Any) -> None:
        definitions = layout.decode(txn.get(key_of("users")))
        definitions["users"] = {**definitions["users"], **wrong} if isinstance(wrong, dict) else wrong
        txn.put(key_of("users"), layout.encode(definitions))

    make(tmp_path / "db", 10, layout="classic")
    with zlmdb.open(tmp_path / "db", Store) as db:
        expected = content(db)
        db._open_store.change(damage)
    report = salvage(tmp_path / "db", tmp_path / "out")
    assert {one.table for one in report.lost} == {"catalogue"}
    assert "users" in report.lost[0].reason
    with zlmdb.open(tmp_path / "out", Store) as db, db.read() as t:
        assert {name: dict(t[name]) for name in expected} == expected
        assert t.users.by_email["u7@example.com"] == user(7)


def test_a_name_in_the_classic_definitions_that_is_no_text_is_lost(tmp_path: Path) -> None:
    def damage(txn: Any, _: Any) -> None:
        definitions = layout.decode(txn.get(key_of("users")))
        txn.put(key_of("users"), layout.encode({**definitions, 7: {}}))

    make(tmp_path / "db", 10, layout="classic")
    with zlmdb.open(tmp_path / "db", Store) as db:
        db._open_store.change(damage)
    report = salvage(tmp_path / "db", tmp_path / "out")
    assert [one.reason for one in report.lost] == ["7 is no name of a table"]


# -- the target -----------------------------------------------------------------------------------------------------


def test_an_empty_directory_is_filled_and_not_replaced(tmp_path: Path) -> None:
    """It may be a mount point, or a link to a directory on another disk."""
    make(tmp_path / "db", 10)
    for name in ("empty", "disk"):
        (tmp_path / name).mkdir()
    targets = [tmp_path / "empty"]
    if os.name != "nt":
        (tmp_path / "link").symlink_to(tmp_path / "disk")
        targets.append(tmp_path / "link")
    for target in targets:
        before = target.stat().st_ino
        assert salvage(tmp_path / "db", target).complete
        assert target.stat().st_ino == before
        assert [path.name for path in target.iterdir()] == ["data.mdb"]
        with zlmdb.open(target, Store) as db:
            assert db.check().ok


def test_what_fails_leaves_an_empty_directory_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "db", 10)
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr("zlmdb.engines.lmdb.structure.check", lambda *args: ["a page is gone"])
    with pytest.raises(zlmdb.CorruptDatabase, match="a page is gone"):
        salvage(tmp_path / "db", tmp_path / "empty")
    assert list((tmp_path / "empty").iterdir()) == []


def test_what_a_renamed_table_leaves_behind_is_no_damage(tmp_path: Path) -> None:
    class Old(zlmdb.Schema):
        users: zlmdb.Table[int, str]

    class People(zlmdb.Table[int, str], was="users"):
        pass

    class New(zlmdb.Schema):
        people: People

    with zlmdb.open(tmp_path / "db", Old) as db, db.write() as t:
        t.users[1] = "Ann"
    zlmdb.open(tmp_path / "db", New).close()
    report = salvage(tmp_path / "db", tmp_path / "out")
    assert report.complete, report
    assert report.copied == {"people": 1, "slots": 0}


@LAYOUTS
def test_a_key_whose_values_are_lost_gets_none_of_a_new_key(layout: Any, tmp_path: Path) -> None:
    class Tags(zlmdb.SetTable[str, int]):
        pass

    class Tagged(zlmdb.Schema):
        tags: Tags

    with zlmdb.open(tmp_path / "db", Tagged, layout=layout) as db, db.write() as t:
        t.tags.add("a", 1)
        t.tags.add("b", 2)
        del t.tags._values[1, 2]  # what damage does
    report = salvage(tmp_path / "db", tmp_path / "out")
    assert [(one.table, one.reason) for one in report.lost] == [("tags", "its values are lost")]
    assert report.copied["tags"] == 1
    with zlmdb.open(tmp_path / "out", Tagged) as db, db.write() as t:
        t.tags.add("c", 3)
        assert {key: list(t.tags[key]) for key in t.tags} == {"a": [1], "c": [3]}


def test_a_target_that_another_program_makes_meanwhile_is_kept(tmp_path: Path) -> None:
    make(tmp_path / "db")

    def told(progress: zlmdb.Progress) -> None:
        (tmp_path / "new").mkdir(exist_ok=True)
        (tmp_path / "new" / "data.mdb").touch()

    with pytest.raises(FileExistsError, match="by another program meanwhile"):
        salvage(tmp_path / "db", tmp_path / "new", progress=told)
    assert {path.name for path in tmp_path.iterdir()} == {"db", "new"}


@pytest.mark.parametrize("failing", ["fsync", "rename"])
def test_an_error_of_the_disk_at_the_end_is_one_of_ours(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "db")

    def fail(*arguments: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, fail)
        with pytest.raises(zlmdb.DiskError, match="new' could not be written"):
            salvage(tmp_path / "db", tmp_path / "new")
    assert {path.name for path in tmp_path.iterdir()} == {"db"}


class _BadSectors(io.FileIO):
    """A file on a disk that does not give some of its bytes, or after some reads none at all."""

    bad: range
    dies_after = 1 << 60

    def read(self, size: Any = -1, /) -> Any:
        type(self).dies_after -= 1
        if self.dies_after < 0 or (self.bad.start < self.tell() + size and self.tell() < self.bad.stop):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().read(size)


def _bad(monkeypatch: pytest.MonkeyPatch, start: int, stop: int, dies_after: int = 1 << 60) -> None:
    """Let the data file of "db", and its backup, have a bad sector at these offsets."""
    kind = type("Bad", (_BadSectors,), {"bad": range(start, stop), "dies_after": dies_after})

    def opened(path: str, *mode: Any, **how: Any) -> Any:
        bad = path.endswith(("/backup", "/db/data.mdb")) and "tmp/new" not in path
        return kind(path, "r") if bad else open(path, *mode, **how)

    places = "engines.lmdb.access", "engines.lmdb.openable", "engines.lmdb.roots", "operations.backup"
    for module in places:
        monkeypatch.setattr(
            f"zlmdb.{module}.open", lambda path, *mode, **how: opened(path, *mode, **how), raising=False
        )


def test_a_bad_sector_costs_its_records_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "db", 120)
    with zlmdb.open(tmp_path / "db", Store) as db:
        before = content(db)
    data = data_file(tmp_path / "db").read_bytes()
    leaf = data.find(b"u63@example.com\xa3age") // 4096 * 4096
    value = data.find(bytes([70]) * 5000) // 4096 * 4096  # the second page of a long value
    for place, table in ((leaf, "users"), (value, "blobs")):
        with monkeypatch.context() as patch:
            _bad(patch, place + 100, place + 200)
            report = salvage(tmp_path / "db", tmp_path / table)
        assert not report.complete
        assert any("part of the disk that could not be read" in one for one in report.damage)
        with zlmdb.open(tmp_path / table, Store) as db:
            for name, records in content(db).items():
                assert (len(records) < len(before[name])) == (name == table), name
                assert all(before[name][key] == record for key, record in records.items())


def test_a_disk_that_dies_before_anything_is_copied_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that could be read once, and then not, was a KeyError."""
    make(tmp_path / "db", 5)
    errors = set[str]()
    for reads in range(12):
        with monkeypatch.context() as patch:
            _bad(patch, 0, 0, dies_after=reads)
            with pytest.raises(zlmdb.Error) as caught:
                salvage(tmp_path / "db", tmp_path / "new")
        errors.add(type(caught.value).__name__)
        if "gave the page that leads to the tables only once" in str(caught.value):
            break
    else:
        pytest.fail(f"only {errors}")
    assert {path.name for path in tmp_path.iterdir()} == {"db"}


def test_a_disk_that_dies_on_the_way_leaves_what_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "db", 100)
    with monkeypatch.context() as patch:
        _bad(patch, 0, 0, dies_after=30)
        report = salvage(tmp_path / "db", tmp_path / "out")
    assert not report.complete
    assert 0 < report.records < 500
    with zlmdb.open(tmp_path / "out", Store) as db:
        assert db.check().ok


def test_a_bad_sector_is_an_error_of_ours_for_all_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "db", 100)
    with zlmdb.open(tmp_path / "db", Store) as db:
        db.backup(tmp_path / "backup")
        place = data_file(tmp_path / "db").stat().st_size // 2
        with monkeypatch.context() as patch:
            _bad(patch, place, place + 10)
            for operation in (
                lambda: db.backup(tmp_path / "copy", compact=False),
                lambda: zlmdb.Database.restore(tmp_path / "backup", tmp_path / "new"),
            ):
                with pytest.raises(zlmdb.DiskError, match=r"(data.mdb|backup)' could not be read: "):
                    operation()
    assert {path.name for path in tmp_path.iterdir()} == {"db", "backup"}


def test_a_directory_in_which_nothing_can_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "db", 10)

    def refuse(path: str, *more: Any) -> Any:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    with zlmdb.open(tmp_path / "db", Store) as db, monkeypatch.context() as patch:
        for made in ("_new_file", "_new_directory"):
            patch.setattr(f"zlmdb.operations.temporary.{made}", refuse)
        for operation in (
            lambda: salvage(tmp_path / "db", tmp_path / "new"),
            lambda: db.backup(tmp_path / "new"),
            lambda: zlmdb.Database.restore(tmp_path / "db", tmp_path / "fresh"),
        ):
            with pytest.raises(PermissionError, match="nothing can be written in the directory .*permit") as caught:
                operation()
            assert ".tmp" not in str(caught.value)
    assert {path.name for path in tmp_path.iterdir()} == {"db"}


@pytest.mark.parametrize("within", [".", ODD_NAME])
def test_a_full_disk_is_told_with_the_name_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, within: str
) -> None:
    tmp_path /= within
    tmp_path.mkdir(exist_ok=True)
    make(tmp_path / "db", 10)

    def fail(*arguments: Any) -> Any:
        raise zlmdb.DiskError(f"{arguments[0].engine.path!r}: no space", path=arguments[0].engine.path)

    monkeypatch.setattr("zlmdb.operations.filling.Filler._commit", lambda filler: fail(filler.store))
    with pytest.raises(zlmdb.DiskError) as caught:
        salvage(tmp_path / "db", tmp_path / "new")
    assert (str(caught.value), caught.value.path) == (f"{str(tmp_path / 'new')!r}: no space", str(tmp_path / "new"))
    assert {path.name for path in tmp_path.iterdir()} == {"db"}


@LAYOUTS
def test_a_table_whose_definition_is_lost_is_found_with_its_indexes_built(layout: Any, tmp_path: Path) -> None:
    """A classic file then has lost its name, too: it has the UUID that is derived from it."""
    zlmdb.Database(tmp_path / "db", layout=layout).close()
    make(tmp_path / "db", 10)
    assert flip(tmp_path / "db", b"ckeyduuidevaluegmsgpack")
    salvage(tmp_path / "db", tmp_path / "out")
    with zlmdb.open(tmp_path / "out", Store, create=False, readonly=True) as db, db.read() as t:
        assert len(t.users) == 10
    for _ in range(2):
        with zlmdb.open(tmp_path / "out", Store) as db, db.write() as t:
            assert (t.users.by_email["u7@example.com"], len(t.users)) == (user(7), 10)
            assert db.check().ok
            t.users[UUID(int=3)] = user(3)


@LAYOUTS
def test_the_records_are_not_all_in_memory_at_once(layout: Any, tmp_path: Path) -> None:
    tracemalloc = pytest.importorskip("tracemalloc")  # PyPy has none
    many = type("Many", (zlmdb.Schema,), {"__annotations__": {"rows": zlmdb.Table[int, bytes]}})
    with zlmdb.open(tmp_path / "db", many, layout=layout, durability="none") as db, db.write() as t:
        t.rows.update({number: bytes(1500) for number in range(8000)})
    tracemalloc.start()
    try:
        report = salvage(tmp_path / "db", tmp_path / "out")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (report.complete, report.records) == (True, 8000)
    assert peak < 6_000_000  # and not 12
