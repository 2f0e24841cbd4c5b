"""What a check finds: damaged pages, values, entries, catalogues and counts, each made by hand; and no false alarm."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Callable
from uuid import UUID

import lmdb
import pytest
from operated import START, Store, User, Users, fill, flip, make, user

import zlmdb
from zlmdb.store.layout import encode

from .waiters import in_another_thread

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python


def raw(db: Any, work: Callable[[Any, Callable[[str], Any]], object]) -> None:
    """Change the file behind the back of the tables: ``work(txn, handle_of)``."""
    store = db._open_store
    store.change(lambda txn, _: work(txn, lambda name: store.space(name.encode()).handle))


def kinds(report: zlmdb.CheckReport) -> list[tuple[str, Any, Any]]:
    return [(one.kind, one.table, one.index) for one in report.problems]


def test_a_sound_database_is_ok_on_every_engine_and_layout(make_db: Any) -> None:
    db = make_db(Store)
    fill(db)
    report = db.check()
    assert report.ok, report.problems
    assert report.records == 500
    assert report.tables["users"].indexes == {
        "by_email": 100, "by_age": 100, "by_joined": 100, "by_boss": 32, "by_both": 100, "by_initial": 100
    }  # fmt: skip
    assert {table.codecs for table in report.tables.values()} == {"declared"}
    assert report.notes == []
    assert "ok, 5 tables, 500 records" in str(report)
    assert report.as_dict()["ok"] is True


@pytest.mark.parametrize("layout", ["tables", "classic"])
def test_without_the_classes_the_file_says_enough(layout: Any, tmp_path: Path) -> None:
    make(tmp_path / "db", layout=layout)
    with zlmdb.open(tmp_path / "db", readonly=True) as db:
        report = db.check()
    assert report.ok, report.problems
    assert report.records == 500
    assert report.tables["users"].indexes["by_boss"] == 32
    assert any("by_initial" in note and "made by the program" in note for note in report.notes)
    assert any("pickle" in note for note in report.notes)


def test_a_check_sees_one_state_while_others_write_and_tells_its_progress(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store, durability="none") as db:
        fill(db)
        told: list[Any] = []

        def write(progress: Any) -> None:
            told.append(progress)
            if len(told) < 50:
                with db.write() as t:
                    t.users[UUID(int=1000 + len(told))] = user(1000 + len(told))

        report = db.check(progress=write)
        assert report.ok, report.problems
        assert {"pages", "users", "logins"} <= {one.stage for one in told}
        assert db.check().ok


def makes_a_table(db: Any) -> None:
    made = db.table("late", int, int)
    with db.write() as t:
        t[made][1] = 1


@pytest.mark.parametrize("change", [makes_a_table, lambda db: db.drop_index("users", "by_age")])
def test_what_others_make_or_drop_while_a_check_begins_is_no_problem(
    change: Callable[[Any], None], make_db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalogue was read in an earlier snapshot than the rest."""
    db = make_db(Store)
    fill(db)
    store = db._open_store
    real, changes = store.open_spaces, [change]

    def open_spaces(names: Any, **options: Any) -> None:
        real(names, **options)
        if changes:
            changes.pop()(db)

    monkeypatch.setattr(store, "open_spaces", open_spaces)
    report = db.check()
    assert report.ok, report.problems
    assert not changes


def test_a_check_of_a_file_that_looks_damaged_waits_for_a_writer_no_longer_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zlmdb.open(tmp_path / "busy", Store, timeout=0.05) as db:
        monkeypatch.setattr(db._open_store, "_verify", lambda file, told: ["damaged"])
        with in_another_thread(db.write), pytest.raises(zlmdb.WriterTimeout):
            db.check()
        assert not db.check().ok


# -- each kind of damage --------------------------------------------------------------------------------------------


@pytest.fixture
def db(tmp_path: Path) -> Any:
    with zlmdb.open(tmp_path / "db", Store, durability="none") as db:
        fill(db)
        yield db


def test_a_value_and_a_key_that_do_not_decode(db: Any) -> None:
    def damage(txn: Any, handle: Any) -> None:
        txn.put(UUID(int=3).bytes, b"\xc1", db=handle("t:users"))
        txn.put(b"short", b"\x00" * 8, db=handle("t:users"))

    raw(db, damage)
    report = db.check()
    assert kinds(report)[:2] == [("record", "users", None)] * 2
    assert "00000003" in str(report.problems[0].key)
    assert not report.ok


def test_a_record_without_its_entries(db: Any) -> None:
    raw(db, lambda txn, handle: txn.delete(b"ku7@example.com", db=handle("i:users:by_email")))
    report = db.check()
    assert kinds(report) == [("index", "users", "by_email")]
    assert "has no entry" in report.problems[0].text
    with zlmdb.open(db.dbpath, Store, durability="none"):
        pass


def test_an_entry_without_its_record(db: Any) -> None:
    raw(db, lambda txn, handle: txn.delete(UUID(int=7).bytes, db=handle("t:users")))
    report = db.check()
    assert {index for _, _, index in kinds(report)} == {
        "by_email",
        "by_age",
        "by_joined",
        "by_boss",
        "by_both",
        "by_initial",
    }
    assert all("has no record" in one.text for one in report.problems)


def test_an_entry_that_is_of_another_value(db: Any) -> None:
    raw(db, lambda txn, handle: txn.put(b"kold@example.com", UUID(int=7).bytes, db=handle("i:users:by_email")))
    report = db.check()
    assert kinds(report) == [("index", "users", "by_email")]
    assert "not that of its record" in report.problems[0].text


def test_without_the_classes_the_same_entries_are_missed(db: Any, tmp_path: Path) -> None:
    def damage(txn: Any, handle: Any) -> None:
        txn.delete(b"ku7@example.com", db=handle("i:users:by_email"))
        txn.put(b"kold@example.com", UUID(int=8).bytes, db=handle("i:users:by_email"))
        txn.delete(UUID(int=9).bytes, db=handle("t:users"))

    raw(db, damage)
    db.close()
    with zlmdb.open(tmp_path / "db", readonly=True) as plain:
        report = plain.check()
    found = {(index, problem.text.split()[-3:][0]) for problem in report.problems for index in [problem.index]}
    assert {index for index, _ in found} >= {"by_email", "by_age", "by_joined", "by_initial"}
    texts = " ".join(problem.text for problem in report.problems if problem.index == "by_email")
    assert "has no entry" in texts
    assert "not that of its record" in texts
    assert "has no record" in texts


def test_two_records_under_one_unique_key(db: Any) -> None:
    again = zlmdb.values.serializer(User).encode(user(1))

    def damage(txn: Any, handle: Any) -> None:
        txn.put(UUID(int=7777).bytes, again, db=handle("t:users"))

    raw(db, damage)
    assert ("duplicate", "users", "by_email") in kinds(db.check())


def test_an_index_function_that_fails_is_a_problem_and_no_crash(tmp_path: Path) -> None:
    make(tmp_path / "db", 5)

    class Broken(zlmdb.Table[UUID, User], name="users"):
        by_email = Users.by_email
        by_age = Users.by_age
        by_joined = Users.by_joined
        by_boss = Users.by_boss
        by_both = Users.by_both
        by_initial = zlmdb.Index[str](lambda user: user.nothing, version=1)

    class Schema(zlmdb.Schema):
        users: Broken

    with zlmdb.open(tmp_path / "db", Schema, readonly=True) as db:
        report = db.check()
    assert kinds(report) == [("index", "users", "by_initial")]
    assert "AttributeError" in report.problems[0].text


def test_catalogue_and_sub_databases_that_do_not_agree(db: Any) -> None:
    def damage(txn: Any, handle: Any) -> None:
        txn.delete(b"t:logins", db=handle("__zlmdb__"))

    raw(db, damage)
    assert any(one.kind == "catalogue" and "t:logins" in one.text for one in db.check().problems)
    raw(
        db,
        lambda txn, handle: txn.put(
            b"t:logins", encode({"slot": 2, "name": "x", "key": "str", "value": "int64"}), db=handle("__zlmdb__")
        ),
    )
    assert db.check().ok
    raw(
        db,
        lambda txn, handle: txn.put(
            b"t:absent", encode({"slot": 9, "name": "x", "key": "str", "value": "int64"}), db=handle("__zlmdb__")
        ),
    )
    assert any(one.kind == "catalogue" and "missing" in one.text for one in db.check().problems)
    raw(db, lambda txn, handle: txn.put(b"t:absent", b"\xff", db=handle("__zlmdb__")))
    assert [one.kind for one in db.check().problems] == ["catalogue"]


def test_rows_of_another_program_in_the_main_database(db: Any) -> None:
    raw(db, lambda txn, handle: txn.put(b"foreign", b"row"))
    assert any("foreign" in one.text for one in db.check().problems)


def test_a_flipped_bit_under_a_checksum_is_found_and_without_one_may_not_be(tmp_path: Path) -> None:
    class Blobs(zlmdb.Schema):
        safe: zlmdb.Table[int, zlmdb.Checked[str]]
        bare: zlmdb.Table[int, str]

    with zlmdb.open(tmp_path / "db", Blobs) as db, db.write() as t:
        for n in range(50):
            t.safe[n] = f"safe value {n:02}"
            t.bare[n] = f"bare value {n:02}"
    assert flip(tmp_path / "db", b"safe value 17", 3)
    assert flip(tmp_path / "db", b"bare value 18", 3)
    with zlmdb.open(tmp_path / "db", Blobs) as db:
        report = db.check()
        assert [(one.table, one.key) for one in report.problems] == [("safe", "17")]
        assert "checksum" in report.problems[0].text
        with db.read() as t:
            with pytest.raises(zlmdb.DecodeError, match="checksum"):
                t.safe[17]
            assert t.bare[18] != "bare value 18"
            assert t.safe[18] == "safe value 18"


def test_damaged_pages_end_the_check_before_records_are_read(tmp_path: Path) -> None:
    make(tmp_path / "db", 300)
    found = 0
    whole = (tmp_path / "db" / "data.mdb").read_bytes()
    rnd = random.Random(3)
    for number in range(20):
        image = bytearray(whole)
        image[rnd.randrange(2, len(whole) // 4096) * 4096 :][:8] = b""
        page = rnd.randrange(2, len(whole) // 4096) * 4096
        image = bytearray(whole)
        image[page : page + 8] = b"\xff" * 8  # the page's own number
        (tmp_path / f"{number}").write_bytes(image)
        if not zlmdb.Database.verify(tmp_path / f"{number}"):
            continue  # a free page
        found += 1
        with zlmdb.open(tmp_path / f"{number}", readonly=True) as db:
            report = db.check()
            assert {one.kind for one in report.problems} == {"structure"}
    assert found > 5


# -- classic --------------------------------------------------------------------------------------------------------


@zlmdb.table("d6a4c7f0-0000-4000-8000-000000000001")
class People(zlmdb.MapOidPickle[Any]):
    """People."""


@zlmdb.table("d6a4c7f0-0000-4000-8000-000000000002")
class PeopleByName(zlmdb.MapStringOid):
    """Ids by name."""


@pytest.mark.parametrize("layout", ["tables", "classic"])
def test_attached_maps_and_slots_by_hand(layout: Any, tmp_path: Path) -> None:
    with zlmdb.Database(tmp_path, layout=layout) as db:
        people, names = db.attach_table(People), db.attach_table(PeopleByName)
        people.attach_index("name", names, lambda one: one["name"])
        by_hand, other = zlmdb.MapUuidCbor(70), zlmdb.MapStringString(71)
        with db.begin(write=True) as txn:
            for n in range(10):
                people[txn, n] = {"name": f"n{n}"}
                by_hand[txn, UUID(int=n)] = [n, str(START)]
                other[txn, "k"] = "v"
        report = db.check()
        assert report.ok, report.problems
        assert report.tables[str(People._zlmdb_oid)].indexes == {"name": 10}
        assert report.tables["slot 70"].codecs == "declared"
        with db.begin(write=True) as txn:
            txn.put(b"\0\x46" + UUID(int=3).bytes, b"\xff")
            del names[txn, "n4"]
        assert sorted(kinds(db.check())) == [("index", str(People._zlmdb_oid), "name"), ("record", "slot 70", None)]
    with zlmdb.open(tmp_path, readonly=True) as db:
        report = db.check()
        assert report.ok
        assert report.tables["slot 71"].records == 1
        assert any("slot 71" in note for note in report.notes)


def test_a_classic_table_whose_metadata_is_damaged_is_found_and_not_made_anew(tmp_path: Path) -> None:
    @zlmdb.table("d6a4c7f0-0000-4000-8000-000000000061")
    class Words(zlmdb.MapStringString):
        pass

    with zlmdb.Database(tmp_path / "db", layout="classic") as db:
        words = db.attach_table(Words)
        with db.begin(write=True) as txn:
            words[txn, "a"] = "b"
        raw(db, lambda txn, _: txn.put(b"\0\0\0\1", b"\xff"))
    with zlmdb.Database(tmp_path / "db") as db:
        report = db.check()
        assert [problem.text for problem in report.problems] == [
            "the metadata record of slot 1 is damaged",
            "table d6a4c7f0-0000-4000-8000-000000000061 is defined, and has no metadata record",
        ]
        with pytest.raises(zlmdb.CorruptDatabase, match="slot 1 is damaged"):
            db.attach_table(Words)
        assert list(db.tables()) == []


def test_an_index_that_another_program_dropped_is_no_damage(tmp_path: Path) -> None:
    class Rows(zlmdb.Table[int, dict[str, int]], name="rows"):
        by_age = zlmdb.Index[int](lambda row: row["age"], version=1)

    class Plain(zlmdb.Table[int, dict[str, int]], name="rows"):
        """The same without the index."""

    class With(zlmdb.Schema):
        rows: Rows

    class Without(zlmdb.Schema):
        rows: Plain

    with zlmdb.open(tmp_path / "db", With) as db:
        with db.write() as t:
            t.rows[1] = {"age": 7}
        with zlmdb.open(tmp_path / "db", Without):
            report = db.check()
            assert report.ok, report.problems


def test_records_of_a_newer_program_are_checked_by_its_types(tmp_path: Path) -> None:
    @dataclass
    class Named:
        name: str

    @dataclass
    class Titled:
        title: Annotated[str, zlmdb.Was("name")]

    class Older(zlmdb.Schema):
        rows: zlmdb.Table[int, Named]

    class Newer(zlmdb.Schema):
        rows: zlmdb.Table[int, Titled]

    with zlmdb.open(tmp_path / "db", Older) as db:
        with db.write() as t:
            t.rows[1] = Named("Emma")
        with zlmdb.open(tmp_path / "db", Newer) as newer, newer.write() as t:
            t.rows[2] = Titled("Ida")
        for _ in range(2):
            with db.read() as t, pytest.raises(zlmdb.SchemaMismatch, match="newer than this program") as refused:
                len(list(t.rows.values()))
            report = db.check()
            assert report.ok, report.problems
            assert f"{refused.value}: checked by the types in the file" in report.notes


def test_bytes_in_json_are_not_taken_for_hexadecimal(tmp_path: Path) -> None:
    @dataclass
    class Pass:
        token: bytes

    class Passes(zlmdb.Table[int, zlmdb.Json[Pass]]):
        by_token = zlmdb.Index[bytes]("token")

    class Doors(zlmdb.Schema):
        passes: Passes

    with zlmdb.open(tmp_path / "db", Doors) as db, db.write() as t:
        t.passes[1] = Pass(bytes(3))  # AAAA in base64
    with zlmdb.open(tmp_path / "db", readonly=True) as db:
        report = db.check()
    assert report.ok, report.problems
    assert any("its keys are bytes" in note for note in report.notes)


@pytest.mark.parametrize("version", ["0.9", "1.0"])
@pytest.mark.parametrize("key", [b"T:rows", b"t:rowr"])
def test_a_table_that_a_flipped_bit_in_the_catalogue_renames_is_missed(
    tmp_path: Path, version: str, key: bytes
) -> None:
    """Opened to read, it was taken for one that is not there yet, and `check` found nothing wrong."""

    class Rows(zlmdb.Schema):
        rows: zlmdb.Table[int, str]

    zlmdb.Database(tmp_path / "db", lib_version=version).close()
    with zlmdb.open(tmp_path / "db", Rows) as db, db.write() as t:
        t.rows[1] = "one"
    with lmdb.open(str(tmp_path / "db"), max_dbs=10) as env:
        catalogue = env.open_db(b"__zlmdb__", create=False)
        with env.begin(write=True, db=catalogue) as txn:
            record = txn.pop(b"t:rows")
            assert record is not None
            txn.put(key, record)
    with zlmdb.open(tmp_path / "db", readonly=True) as db:
        report = db.check()
        assert any("'t:rows' is of no known table" in problem.text for problem in report.problems), report.problems


def test_a_file_whose_first_program_was_killed_before_it_stored_anything_is_sound(tmp_path: Path) -> None:
    lmdb.open(str(tmp_path)).close()
    with zlmdb.open(tmp_path, readonly=True) as db:
        report = db.check()
    assert report.ok
    assert report.notes == ["nothing was ever stored in the file: the first program that opened it ended before that"]


@pytest.mark.parametrize("what", ["keys", "items"])
def test_a_key_that_has_lost_its_bytes_is_an_error_of_decoding(what: str, tmp_path: Path) -> None:
    class Rows(zlmdb.Schema):
        rows: zlmdb.Table[int, str]

    with zlmdb.open(tmp_path, Rows) as db, db.write() as t:
        t.rows.update({1: "a", 2: "b", 3: "c"})
    file = tmp_path / "data.mdb"
    data = bytearray(file.read_bytes())
    place = data.index((2**63 + 2).to_bytes(8, "big"))
    data[place - 2 : place] = bytes(2)  # the length of the key
    file.write_bytes(data)
    with zlmdb.open(tmp_path, Rows, readonly=True) as db, db.read() as t, pytest.raises(zlmdb.DecodeError):
        list(getattr(t.rows, what)())
