"""Indexes attached to classic maps: never silently incomplete, and every owner is named."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Optional
from uuid import UUID

import pytest

import zlmdb
from tests.combinations import EVERYWHERE

pytestmark = pytest.mark.twice  # what engines and tables do does not depend on the version of Python

U = [UUID(int=n << 64) for n in range(6)]
Open = Callable[..., zlmdb.Database[Any]]
Row = dict[str, Any]


class Maps:
    """A table of plain rows with four indexes: required, optional, composite and of another slot order."""

    def __init__(self, first: int = 10, attach: bool = True, compress: Optional[int] = None) -> None:
        self.rows = zlmdb.MapOidJson(first, compress)
        self.by_name = zlmdb.MapStringOid(first + 1)
        self.by_email = zlmdb.MapStringOid(first + 2)
        self.by_age = zlmdb.MapOidOidOid(first - 5)
        self.below = zlmdb.MapOidString(first - 6)  # neighbours, in the slots around and between
        self.between = zlmdb.MapOidString(first - 1)
        self.above = zlmdb.MapOidString(first + 3)
        if attach:
            self.rows.attach_index("name", self.by_name, lambda row: row["name"])
            self.rows.attach_index("email", self.by_email, lambda row: row.get("email"), nullable=True)
            self.rows.attach_index("age", self.by_age, lambda row: (row["age"], row["id"]), unique=False)

    def fill(self, txn: zlmdb.Transaction, count: int = 6) -> None:
        for n in range(count):
            self.rows[txn, n] = row(n)
        for neighbour in (self.below, self.between, self.above):
            neighbour[txn, 1] = "neighbour"

    def check(self, txn: zlmdb.Transaction) -> None:
        """The indexes hold what the rows say, and the neighbours what they were given."""
        rows = dict(self.rows.select(txn))
        assert dict(self.by_name.select(txn)) == {one["name"]: key for key, one in rows.items()}
        assert dict(self.by_email.select(txn)) == {one["email"]: key for key, one in rows.items() if one.get("email")}
        assert dict(self.by_age.select(txn)) == {(one["age"], key): key for key, one in rows.items()}
        for neighbour in (self.below, self.between, self.above):
            assert list(neighbour.select(txn)) == [(1, "neighbour")]


def row(n: int, **changes: Any) -> Row:
    return {"id": n, "name": f"name {n}", "age": n % 2, **({"email": f"e{n}@x"} if n % 3 else {}), **changes}


@pytest.fixture(params=EVERYWHERE)
def combo(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def db(make_db: Open) -> zlmdb.Database[Any]:
    return make_db(zlmdb.Schema)


@pytest.fixture
def maps(db: zlmdb.Database[Any]) -> Maps:
    """Six rows with their indexes, committed."""
    maps = Maps()
    with db.begin(write=True) as txn:
        maps.fill(txn)
    return maps


@pytest.fixture
def txn(db: zlmdb.Database[Any], maps: Maps) -> Iterator[zlmdb.Transaction]:
    with db.begin(write=True) as txn:
        yield txn


def is_classic(db: zlmdb.Database[Any]) -> bool:
    return db.layout == "classic"


# Kept in step


def test_entries_follow_every_statement(txn: zlmdb.Transaction, maps: Maps) -> None:
    maps.check(txn)
    maps.rows[txn, 1] = row(1, name="other", age=7)
    maps.rows[txn, 2] = row(2, email=None)
    maps.rows[txn, 3] = row(3, email="late@x")
    maps.check(txn)
    del maps.rows[txn, 1]
    del maps.rows[txn, 99]
    maps.rows.pop((txn, 2))
    maps.rows.setdefault((txn, 20), row(20))
    maps.rows.update({(txn, 21): row(21)})
    maps.check(txn)
    table = maps.rows.bind(txn)
    table[22] = row(22)
    del table[3]
    with table.edit(22) as one:
        one["name"] = "edited"
    table.put_many([(30, row(30)), (31, row(31))])
    maps.check(txn)
    assert maps.by_name[txn, "edited"] == 22
    maps.rows.select(txn, 20, 31).delete()
    maps.check(txn)
    assert maps.rows.truncate(txn) > 0
    maps.check(txn)
    assert maps.by_name.count(txn) == 0


def test_entries_are_committed_and_aborted_with_their_records(db: zlmdb.Database[Any], maps: Maps) -> None:
    with suppress(ZeroDivisionError), db.begin(write=True) as txn:
        maps.rows[txn, 50] = row(50)
        raise ZeroDivisionError
    with db.begin() as txn:
        maps.check(txn)
        assert maps.by_name[txn, "name 50"] is None


def test_only_the_differences_are_written(db: zlmdb.Database[Any], maps: Maps) -> None:
    def counts(work: Callable[[zlmdb.Transaction], object]) -> tuple[int, int]:
        stats = zlmdb.TransactionStats()
        with db.begin(write=True, stats=stats) as txn:
            work(txn)
        return stats.puts, stats.dels

    assert counts(lambda txn: maps.rows.__setitem__((txn, 1), row(1))) == (1, 0)
    assert counts(lambda txn: maps.rows.__setitem__((txn, 1), row(1, name="new"))) == (2, 1)
    assert counts(lambda txn: maps.rows.__setitem__((txn, 1), row(1, name="new", email=None))) == (1, 1)
    assert counts(lambda txn: maps.rows.__setitem__((txn, 40), row(40))) == (4, 0)
    assert counts(lambda txn: maps.rows.__delitem__((txn, 40))) == (0, 4)
    assert counts(lambda txn: maps.rows.__delitem__((txn, 40))) == (0, 0)
    rows, emails = 6, 3
    assert counts(maps.rows.truncate) == (0, 3 * rows + emails)


def test_truncate_counts_the_entries(txn: zlmdb.Transaction, maps: Maps) -> None:
    assert maps.rows.truncate(txn) == 6 + 6 + 4 + 6


def test_names_are_sorted_and_maps_know_that_they_are_indexes(maps: Maps) -> None:
    assert maps.rows.indexes() == ["age", "email", "name"]
    assert not maps.rows.is_index()
    assert maps.by_name.is_index()
    maps.rows.detach_index("name")
    assert maps.rows.indexes() == ["age", "email"]
    assert not maps.by_name.is_index()


def test_falsy_values_have_their_entries(db: zlmdb.Database[Any]) -> None:
    class Falsy:
        def __init__(self, name: str) -> None:
            self.name = name

        def __bool__(self) -> bool:
            return False

        def __len__(self) -> int:
            return 0

    rows, by_name = zlmdb.MapOidPickle(1, marshal=None), zlmdb.MapStringOid(2)
    rows.attach_index("name", by_name, lambda value: value["name"].strip() if value else "empty", nullable=True)
    objects, by_object = zlmdb.MapOidCbor(3, marshal=lambda o: o.name, unmarshal=Falsy), zlmdb.MapStringOid(4)
    objects.attach_index("name", by_object, lambda one: one.name)
    with db.begin(write=True) as txn:
        rows[txn, 1] = {}
        objects[txn, 1] = Falsy("a")
        objects[txn, 1] = Falsy("b")
        assert list(by_object.select(txn)) == [("b", 1)]
        rows[txn, 1] = {"name": "full"}
        assert list(by_name.select(txn)) == [("full", 1)]
        rows[txn, 1] = {}
        assert list(by_name.select(txn)) == [("empty", 1)]
        del rows[txn, 1]
        del objects[txn, 1]
        assert by_name.count(txn) == by_object.count(txn) == 0


def test_falsy_index_keys_are_keys(db: zlmdb.Database[Any]) -> None:
    rows, by_text, by_number = zlmdb.MapOidJson(1), zlmdb.MapStringOid(2), zlmdb.MapOidOid(3)
    rows.attach_index("text", by_text, lambda value: value["text"], nullable=True)
    rows.attach_index("number", by_number, lambda value: value["number"], nullable=True)
    with db.begin(write=True) as txn:
        rows[txn, 0] = {"text": "", "number": 0}
        assert list(by_text.select(txn)) == [("", 0)]
        assert list(by_number.select(txn)) == [(0, 0)]
        del rows[txn, 0]
        assert by_text.count(txn) == by_number.count(txn) == 0


def test_tables_and_indexes_of_other_key_types(db: zlmdb.Database[Any]) -> None:
    rows = zlmdb.MapUuidPickle(1, zlmdb.PersistentMap.COMPRESS_ZLIB)
    by_pair = zlmdb.MapUuidStringUuid(2, zlmdb.PersistentMap.COMPRESS_ZLIB)
    by_other = zlmdb.MapStringPickle(3)  # the keys of the table as pickles
    rows.attach_index("pair", by_pair, lambda value: (value["owner"], value["name"]), nullable=True)
    rows.attach_index("other", by_other, lambda value: value["name"], nullable=True)
    with db.begin(write=True) as txn:
        for n in range(4):
            rows[txn, U[n]] = {"owner": U[n % 2], "name": f"n{n}"}
        assert by_pair[txn, (U[1], "n3")] == by_other[txn, "n3"] == U[3]
        with pytest.raises(zlmdb.DuplicateKey) as caught:
            rows[txn, U[5]] = {"owner": U[0], "name": "n0"}
        assert caught.value.owner == U[0]
        rows[txn, U[0]] = {"owner": None, "name": "n0"}
        assert by_pair.count(txn) == 3
        assert rows.rebuild_indexes(txn) == (7, 7)
        del rows[txn, U[3]]
        assert by_other[txn, "n3"] is None


# Null


def test_a_null_key_is_skipped_where_it_may_be(txn: zlmdb.Transaction, maps: Maps) -> None:
    maps.rows[txn, 0] = row(0, email=None)
    maps.rows[txn, 1] = row(1, email=None)
    assert sorted(maps.by_email.select(txn, return_keys=False)) == [2, 4, 5]
    del maps.rows[txn, 0]
    maps.check(txn)


def test_a_refused_null_changes_nothing(txn: zlmdb.Transaction, maps: Maps) -> None:
    before = list(maps.rows.select(txn))
    stats = txn._puts, txn._dels
    for key in (1, 60):
        with pytest.raises(zlmdb.NullValueConstraint, match="nullable=True") as caught:
            maps.rows[txn, key] = row(key, name=None, email="changed@x", age=9)
        assert isinstance(caught.value, RuntimeError)
        assert caught.value.index == "name"
        with pytest.raises(zlmdb.EncodeError, match="MapOidOidOid"):
            maps.rows[txn, key] = row(key, name="changed", email="changed@x", age="old")
    assert list(maps.rows.select(txn)) == before
    assert (txn._puts, txn._dels) == stats
    maps.check(txn)


def test_a_tuple_with_none_is_null(db: zlmdb.Database[Any]) -> None:
    rows, by_pair = zlmdb.MapOidJson(1), zlmdb.MapStringStringUuid(2)
    uuids, by_uuid = zlmdb.MapUuidJson(3), zlmdb.MapStringStringUuid(4)
    rows.attach_index("pair", by_pair, lambda value: (value, None))
    uuids.attach_index("pair", by_uuid, lambda value: (value, None), nullable=True)
    with db.begin(write=True) as txn:
        with pytest.raises(zlmdb.NullValueConstraint):
            rows[txn, 1] = "a"
        uuids[txn, U[1]] = "a"
        assert (rows.count(txn), by_pair.count(txn)) == (0, 0)
        assert (uuids.count(txn), by_uuid.count(txn)) == (1, 0)


def test_an_index_function_that_raises_changes_nothing(txn: zlmdb.Transaction, maps: Maps) -> None:
    with pytest.raises(KeyError):
        maps.rows[txn, 1] = {"name": "no age", "id": 1}
    assert maps.rows[txn, 1] == row(1)
    maps.check(txn)


# Unique


def test_a_duplicate_names_table_index_key_and_owner(txn: zlmdb.Transaction, maps: Maps) -> None:
    before = list(maps.rows.select(txn))
    for key in (2, 60):
        with pytest.raises(zlmdb.DuplicateKey, match="'name 1'") as caught:
            maps.rows[txn, key] = row(key, name="name 1", email="changed@x", age=5)
        error = caught.value
        assert isinstance(error, zlmdb.ConstraintError)
        assert (error.table, error.index, error.key, error.owner) == ("MapOidJson(10)", "name", "name 1", 1)
        assert "MapOidJson(10)" in str(error)
        assert "name" in str(error)
    assert list(maps.rows.select(txn)) == before
    maps.check(txn)


def test_the_last_of_several_indexes_may_refuse(txn: zlmdb.Transaction, maps: Maps) -> None:
    maps.rows.attach_index("nick", zlmdb.MapStringOid(40), lambda value: value.get("nick"), nullable=True)
    maps.rows[txn, 1] = row(1, nick="nick")
    with pytest.raises(zlmdb.DuplicateKey):
        maps.rows[txn, 2] = row(2, name="changed", email="changed@x", age=9, nick="nick")
    maps.check(txn)


def test_one_record_keeps_its_own_keys(txn: zlmdb.Transaction, maps: Maps) -> None:
    maps.rows[txn, 1] = row(1)
    maps.rows[txn, 1] = row(1, age=8)
    del maps.rows[txn, 1]
    maps.rows[txn, 70] = row(70, name="name 1")
    maps.check(txn)


def test_a_non_unique_index_advises_to_put_the_primary_key_last(txn: zlmdb.Transaction, maps: Maps) -> None:
    maps.rows.attach_index("age alone", zlmdb.MapOidOid(41), lambda value: 100 + value["age"] % 2, unique=False)
    with pytest.raises(zlmdb.DuplicateKey, match="put the primary key last, or declare an Index"):
        maps.rows[txn, 1] = row(1)
    maps.rows.detach_index("age alone")
    maps.rows[txn, 1] = row(1)
    maps.check(txn)


# Attaching to records that are there


def test_an_index_new_to_a_table_is_built_by_the_next_writer(db: zlmdb.Database[Any]) -> None:
    maps = Maps(attach=False)
    with db.begin(write=True) as txn:
        maps.fill(txn)
    maps = Maps()
    with db.begin(write=True) as txn:
        maps.rows[txn, 50] = row(50)
        maps.check(txn)
    with db.begin() as txn:
        maps.check(txn)


def test_reading_an_index_in_a_write_transaction_builds_it_first(db: zlmdb.Database[Any]) -> None:
    with db.begin(write=True) as txn:
        Maps(attach=False).fill(txn)
    maps = Maps()
    with db.begin(write=True) as txn:
        assert maps.by_name[txn, "name 3"] == 3
        maps.check(txn)


def test_an_index_not_built_yet_does_not_read_as_empty(db: zlmdb.Database[Any]) -> None:
    with db.begin(write=True) as txn:
        Maps(attach=False).fill(txn)
    maps = Maps()
    for _ in range(2):
        with db.begin() as txn:
            assert maps.rows[txn, 1] == row(1)
            for read in (
                lambda: maps.by_name[txn, "name 1"],
                lambda: maps.by_name.count(txn),
                lambda: maps.by_age.select(txn),
            ):
                with pytest.raises(zlmdb.IndexNotBuilt, match="in a write transaction, which builds"):
                    read()
    with db.begin(write=True) as txn:
        maps.rows.bind(txn)
    with db.begin() as txn:
        maps.check(txn)


def test_an_index_without_any_record_reads_as_empty(db: zlmdb.Database[Any]) -> None:
    maps = Maps()
    with db.begin() as txn:
        assert maps.by_name.count(txn) == 0
    with db.begin(write=True) as txn:
        maps.rows[txn, 1] = row(1)
    with db.begin() as txn:
        assert maps.by_name[txn, "name 1"] == 1


def test_an_index_of_nulls_only_reads_as_empty(db: zlmdb.Database[Any]) -> None:
    rows, index = zlmdb.MapOidJson(1), zlmdb.MapStringOid(2)
    with db.begin(write=True) as txn:
        rows[txn, 1] = {"name": None}
    rows.attach_index("name", index, lambda value: value["name"], nullable=True)
    for _ in range(2):
        with db.begin() as txn:
            assert index.count(txn) == 0
    with db.begin(write=True) as txn:
        rows[txn, 2] = {"name": "a"}
    with db.begin() as txn:
        assert list(index.select(txn)) == [("a", 2)]


def test_attaching_in_the_middle_of_a_transaction(db: zlmdb.Database[Any]) -> None:
    maps = Maps(attach=False)
    with db.begin(write=True) as txn:
        maps.fill(txn)
        assert maps.by_name.count(txn) == 0
        maps.rows.attach_index("name", maps.by_name, lambda value: value["name"])
        assert maps.by_name[txn, "name 2"] == 2
        maps.rows[txn, 50] = row(50)
        assert maps.by_name[txn, "name 50"] == 50
        maps.rows.detach_index("name")
        maps.rows[txn, 51] = row(51)
        assert maps.by_name[txn, "name 51"] is None
        maps.rows.attach_index("name", maps.by_name, lambda value: value["name"])
        assert maps.by_name[txn, "name 51"] == 51


def test_building_a_duplicate_is_refused_and_can_be_mended(db: zlmdb.Database[Any]) -> None:
    with db.begin(write=True) as txn:
        maps = Maps(attach=False)
        maps.fill(txn)
        maps.rows[txn, 7] = row(7, name="name 1")
    maps = Maps()
    with db.begin(write=True) as txn:
        for _ in range(2):
            with pytest.raises(zlmdb.DuplicateKey, match="name 1") as caught:
                maps.rows[txn, 8] = row(8)
            assert caught.value.owner == 1
    with db.begin() as txn:
        assert (txn._puts, txn._dels) == (0, 0)
        with pytest.raises(zlmdb.IndexNotBuilt):
            maps.by_name.count(txn)
    mender = Maps(attach=False)
    with db.begin(write=True) as txn:
        del mender.rows[txn, 7]
    with db.begin(write=True) as txn:
        maps.rows[txn, 8] = row(8)
        maps.check(txn)


def test_a_null_that_may_not_be_refuses_the_build(db: zlmdb.Database[Any]) -> None:
    with db.begin(write=True) as txn:
        Maps(attach=False).rows[txn, 1] = row(1, name=None)
    maps = Maps()
    with db.begin(write=True) as txn, pytest.raises(zlmdb.NullValueConstraint):
        maps.rows[txn, 2] = row(2)
    with db.begin() as txn:
        assert maps.rows.count(txn) == 1


def test_a_build_is_undone_with_its_transaction(db: zlmdb.Database[Any]) -> None:
    with db.begin(write=True) as txn:
        Maps(attach=False).fill(txn)
    maps = Maps()
    with suppress(ZeroDivisionError), db.begin(write=True) as txn:
        maps.check(txn)
        raise ZeroDivisionError
    with db.begin() as txn, pytest.raises(zlmdb.IndexNotBuilt):
        maps.by_name.count(txn)
    with db.begin(write=True) as txn:
        maps.check(txn)


def test_a_build_is_undone_with_its_savepoint(db: zlmdb.Database[Any]) -> None:
    with db.begin(write=True) as txn:
        Maps(attach=False).fill(txn)
    maps = Maps()
    with db.begin(write=True) as txn:
        with suppress(ZeroDivisionError), txn.savepoint():
            bound = maps.rows.bind(txn)
            maps.check(txn)
            raise ZeroDivisionError
        with pytest.raises(zlmdb.IndexNotAttached):  # this table would not build them again
            bound[50] = row(50)
        maps.rows[txn, 50] = row(50)
        maps.check(txn)
        bound[51] = row(51)
        maps.check(txn)
    with db.begin() as txn:
        maps.check(txn)
    with db.begin(write=True) as txn, txn.savepoint():
        maps.rows[txn, 52] = row(52)
        maps.check(txn)


@pytest.mark.parametrize("combo", ["lmdb-tables", "lmdb-classic", "toy-tables"])  # what outlives its opening
def test_an_index_in_another_process_is_found_complete(combo: str, make_db: Open) -> None:
    db = make_db(zlmdb.Schema)
    with db.begin(write=True) as txn:
        Maps().fill(txn)
    db.close()
    db = make_db(zlmdb.Schema)
    maps = Maps()
    with db.begin() as txn:
        maps.check(txn)
    stats = zlmdb.TransactionStats()
    with db.begin(write=True, stats=stats) as txn:
        maps.rows[txn, 1] = row(1)
    assert stats.puts == 1  # nothing was built again


# Writers that do not know an index


def test_a_writer_without_a_recorded_index_is_refused(db: zlmdb.Database[Any], maps: Maps) -> None:
    blind = Maps(attach=False)
    blind.rows.attach_index("email", blind.by_email, lambda value: value.get("email"), nullable=True)
    with db.begin(write=True) as txn:
        assert blind.rows[txn, 1] == row(1)
        if is_classic(db):
            blind.rows[txn, 1] = row(1)
            return
        for write in (
            lambda: blind.rows.__setitem__((txn, 1), row(1)),
            lambda: blind.rows.__delitem__((txn, 1)),
            lambda: blind.rows.truncate(txn),
            lambda: blind.rows.bind(txn).put_many([(9, row(9))]),
            lambda: blind.rows.select(txn).delete(),
        ):
            with pytest.raises(zlmdb.IndexNotAttached, match="age, name") as caught:
                write()
            assert caught.value.index == "age"
    with db.begin(write=True) as txn:
        maps.rows[txn, 1] = row(1, age=3)
        maps.check(txn)


def test_letting_go_of_an_index_by_its_name_lets_a_program_write(db: zlmdb.Database[Any], maps: Maps) -> None:
    other = Maps(attach=False)
    for name in maps.rows.indexes():
        other.rows.detach_index(name)
    with db.begin(write=True) as txn:
        other.rows[txn, 50] = row(50)
    if is_classic(db):
        return
    with db.begin() as txn, pytest.raises(zlmdb.IndexNotBuilt):  # this process may have trusted it until now
        maps.by_name[txn, "name 50"]
    with db.begin(write=True) as txn:
        maps.check(txn)


def test_a_changed_definition_rebuilds_the_index(db: zlmdb.Database[Any], maps: Maps) -> None:
    again = Maps(attach=False)
    again.rows.attach_index("name", zlmdb.MapStringOid(45), lambda value: value["name"])
    again.rows.detach_index("age")
    again.rows.detach_index("email")
    elsewhere = again.rows._attached["name"].pmap
    with db.begin(write=True) as txn:
        again.rows[txn, 50] = row(50)
        assert dict(elsewhere.select(txn)) == {f"name {n}": n for n in (0, 1, 2, 3, 4, 5, 50)}


def test_attached_tables_with_attached_indexes(make_db: Open, combo: str) -> None:
    @zlmdb.table("9d1ee1c4-9d6c-44b4-95ab-3f4ba9c1c001")
    class Rows(zlmdb.MapOidJson[Row]):
        pass

    @zlmdb.table("9d1ee1c4-9d6c-44b4-95ab-3f4ba9c1c002")
    class Names(zlmdb.MapStringOid):
        pass

    db = make_db(zlmdb.Schema)
    names, rows = db.attach_table(Names), db.attach_table(Rows)
    rows.attach_index("name", names, lambda value: value["name"])
    with db.begin(write=True) as txn:
        rows[txn, 1] = row(1)
        assert names[txn, "name 1"] == 1
        with pytest.raises(zlmdb.DuplicateKey) as caught:
            rows[txn, 2] = row(2, name="name 1")
        assert caught.value.table == "9d1ee1c4-9d6c-44b4-95ab-3f4ba9c1c001"
        assert rows.rebuild_index(txn, "name") == (1, 1)
        assert rows.truncate(txn) == 2
        rows[txn, 3] = row(3)
    blind = db.attach_table(Rows)
    with db.begin(write=True) as txn:
        if not combo.endswith("classic"):
            with pytest.raises(zlmdb.IndexNotAttached):
                blind[txn, 2] = row(2)
        assert blind[txn, 3] == row(3)


# Detaching


def test_a_detached_index_is_left_as_it_is(txn: zlmdb.Transaction, maps: Maps) -> None:
    maps.rows.detach_index("name")
    maps.rows.detach_index("name")
    maps.rows.detach_index("unknown")
    maps.rows[txn, 50] = row(50)
    del maps.rows[txn, 1]
    assert maps.by_name[txn, "name 50"] is None
    assert maps.by_name[txn, "name 1"] == 1
    assert maps.by_name.truncate(txn) == 6


def test_an_index_attached_again_is_built_again(db: zlmdb.Database[Any], maps: Maps) -> None:
    maps.rows.detach_index("name")
    with db.begin(write=True) as txn:
        maps.rows[txn, 50] = row(50)
        del maps.rows[txn, 1]
    maps.rows.attach_index("name", maps.by_name, lambda value: value["name"])
    with db.begin() as txn, pytest.raises(zlmdb.IndexNotBuilt):
        maps.by_name[txn, "name 50"]
    with db.begin(write=True) as txn:
        maps.check(txn)
    with db.begin() as txn:
        maps.check(txn)


def test_an_index_attached_again_with_another_function_is_built_again(db: zlmdb.Database[Any], maps: Maps) -> None:
    maps.rows.detach_index("name")
    maps.rows.attach_index("name", maps.by_name, lambda value: value["name"].upper())
    with db.begin(write=True) as txn:
        maps.rows[txn, 1] = row(1)
        assert [key for key, _ in maps.by_name.select(txn)] == [f"NAME {n}" for n in range(6)]


# Maps that cannot be an index


def test_an_index_map_serves_one_table(maps: Maps) -> None:
    other, spare = zlmdb.MapOidJson(60), zlmdb.MapStringOid(61)
    with pytest.raises(ValueError, match="is an index of <MapOidJson, slot 10>"):
        other.attach_index("name", maps.by_name, lambda value: value)
    with pytest.raises(ValueError, match="is an index of"):
        maps.rows.attach_index("other name", maps.by_name, lambda value: value)
    with pytest.raises(ValueError, match="has an index 'name' already"):
        maps.rows.attach_index("name", spare, lambda value: value)
    with pytest.raises(ValueError, match="a map of its own"):
        other.attach_index("self", other, lambda value: value)
    with pytest.raises(ValueError, match="an index has no indexes"):
        maps.by_name.attach_index("name", spare, lambda value: value)
    with pytest.raises(ValueError, match="it has the indexes"):
        other.attach_index("rows", maps.rows, lambda value: value)
    assert not other.indexes()
    maps.rows.detach_index("name")
    other.attach_index("name", maps.by_name, lambda value: value)
    assert maps.by_name.is_index()


# Rebuilding


def test_rebuilding_says_what_it_deleted_and_wrote(txn: zlmdb.Transaction, maps: Maps) -> None:
    assert maps.rows.rebuild_index(txn, "name") == (6, 6)
    assert maps.rows.rebuild_index(txn, "email") == (4, 4)
    assert maps.rows.rebuild_indexes(txn) == (16, 16)
    maps.by_name.truncate(txn)
    maps.by_name[txn, "stale"] = 77
    assert maps.rows.rebuild_index(txn, "name") == (1, 6)
    maps.check(txn)
    with pytest.raises(KeyError, match="has no index 'nick'"):
        maps.rows.rebuild_index(txn, "nick")
    assert zlmdb.MapOidString(70).rebuild_indexes(txn) == (0, 0)


def test_rebuilding_an_index_just_attached_builds_it_once(db: zlmdb.Database[Any]) -> None:
    with db.begin(write=True) as txn:
        Maps(attach=False).fill(txn)
    maps = Maps()
    with db.begin(write=True) as txn:
        assert maps.rows.rebuild_indexes(txn) == (0, 16)
        maps.check(txn)


def test_rebuilding_needs_a_write_transaction(db: zlmdb.Database[Any], maps: Maps) -> None:
    with db.begin() as txn, pytest.raises(zlmdb.ReadonlyDatabase):
        maps.rows.rebuild_index(txn, "name")


@pytest.mark.parametrize("compress", [None, zlmdb.PersistentMap.COMPRESS_ZLIB])
@pytest.mark.parametrize("first", [10, 600])
def test_rebuilding_many_rows_leaves_the_neighbours_alone(
    db: zlmdb.Database[Any], first: int, compress: Optional[int]
) -> None:
    """Among others, the slot of one index comes before that of its table."""
    maps = Maps(first, compress=compress)
    with db.begin(write=True) as txn:
        maps.fill(txn, 1500)
    with db.begin(write=True) as txn:
        assert maps.rows.rebuild_indexes(txn) == (4000, 4000)
        maps.check(txn)
    with db.begin() as txn:
        maps.check(txn)


def test_rebuilding_in_buffers_mode(db: zlmdb.Database[Any], maps: Maps) -> None:
    with db.begin(write=True, buffers=True) as txn:
        assert maps.rows.rebuild_indexes(txn) == (16, 16)
        maps.rows[txn, 1] = row(1, name="new")
        del maps.rows[txn, 2]
        with pytest.raises(zlmdb.DuplicateKey):
            maps.rows[txn, 50] = row(50, name="new")
        maps.check(txn)


def test_a_refused_rebuild_changes_nothing(db: zlmdb.Database[Any], maps: Maps) -> None:
    maps.rows.detach_index("name")
    with db.begin(write=True) as txn:
        maps.rows[txn, 0] = row(0, name="name 5")
    with db.begin(write=True) as txn:
        entries = list(maps.by_name.select(txn))
        maps.rows.attach_index("name", maps.by_name, lambda value: value["name"])
        with pytest.raises(zlmdb.DuplicateKey):
            maps.rows.rebuild_index(txn, "name")
        maps.rows.detach_index("name")
        assert list(maps.by_name.select(txn)) == entries
    with db.begin() as txn:
        assert list(maps.by_name.select(txn)) == entries


def test_without_savepoints_an_interrupted_rebuild_ends_the_transaction(tmp_path: Path) -> None:
    """Half of the index was committed, where the block went on."""
    maps, interrupts = Maps(attach=False), False

    def name(value: Any) -> Any:
        if interrupts and value["name"] == "name 5":
            raise KeyboardInterrupt
        return value["name"]

    with zlmdb.Database(tmp_path / "db", maxsize=2**22, writemap=True) as db:
        maps.rows.attach_index("name", maps.by_name, name)
        with db.begin(write=True) as txn:
            maps.fill(txn)
            entries = list(maps.by_name.select(txn))
        interrupts = True
        with pytest.raises(zlmdb.TransactionPoisoned), db.begin(write=True) as txn, pytest.raises(KeyboardInterrupt):
            maps.rows.rebuild_index(txn, "name")
        with db.begin() as txn:
            assert list(maps.by_name.select(txn)) == entries


@pytest.mark.parametrize("layout", ["tables", "classic"])
def test_without_savepoints_a_refused_rebuild_ends_the_transaction(tmp_path: Path, layout: Any) -> None:
    with zlmdb.Database(tmp_path / "db", maxsize=2**22, writemap=True, layout=layout) as db:
        maps = Maps()
        with db.begin(write=True) as txn:
            maps.fill(txn)
            assert maps.rows.rebuild_indexes(txn) == (16, 16)
        with db.begin(write=True) as txn:
            maps.rows.detach_index("name")
            maps.rows[txn, 0] = row(0, name="name 5")
            maps.rows.attach_index("name", maps.by_name, lambda value: value["name"])
            with pytest.raises(zlmdb.DuplicateKey):
                maps.rows.rebuild_index(txn, "name")
            with pytest.raises(zlmdb.TransactionPoisoned):
                txn.commit()
        with db.begin(write=True) as txn:
            maps.check(txn)


# Duplicates that the predecessor left behind


@pytest.fixture
def old_file(tmp_path: Path) -> Path:
    """A classic file whose rows 1 and 2 share a name; the entry is that of the last one written."""
    path = tmp_path / "old"
    with zlmdb.Database(path, layout="classic") as db:
        maps = Maps(attach=False)
        with db.begin(write=True) as txn:
            maps.fill(txn)
            maps.rows[txn, 2] = row(2, name="name 1")
            for n in range(6):
                maps.by_name[txn, maps.rows[txn, n]["name"]] = n
                maps.by_age[txn, (n % 2, n)] = n
                if n % 3:
                    maps.by_email[txn, f"e{n}@x"] = n
    return path


def test_duplicates_of_old_files_can_be_read_and_deleted(old_file: Path) -> None:
    maps = Maps()
    with zlmdb.Database(old_file) as db:
        with db.begin() as txn:
            assert maps.by_name[txn, "name 1"] == 2
        with db.begin(write=True) as txn:
            del maps.rows[txn, 1]
            assert maps.by_name[txn, "name 1"] == 2
            maps.check(txn)


def test_duplicates_of_old_files_can_be_changed_apart(old_file: Path) -> None:
    maps = Maps()
    with zlmdb.Database(old_file) as db, db.begin(write=True) as txn:
        maps.rows[txn, 1] = row(1, name="apart")
        maps.check(txn)
        maps.rows[txn, 2] = row(2, name="name 1", age=9)
        maps.check(txn)


def test_the_next_write_of_a_duplicate_decides(old_file: Path) -> None:
    maps = Maps()
    with zlmdb.Database(old_file) as db, db.begin(write=True) as txn:
        with pytest.raises(zlmdb.DuplicateKey) as caught:
            maps.rows[txn, 1] = row(1, age=9)
        assert caught.value.owner == 2
        with pytest.raises(zlmdb.DuplicateKey):
            maps.rows.rebuild_index(txn, "name")
        del maps.rows[txn, 2]  # and with it the entry, which the other one never had
        assert maps.by_name[txn, "name 1"] is None
        stats = txn._puts, txn._dels
        maps.rows[txn, 1] = row(1, age=1)
        assert (txn._puts - stats[0], txn._dels - stats[1]) == (2, 0)
        maps.check(txn)


def test_entries_pickled_another_way_are_still_those_of_their_record(tmp_path: Path) -> None:
    import pickle

    rows, by_name = zlmdb.MapOidJson(1), zlmdb.MapStringPickle(2)
    rows.attach_index("name", by_name, lambda value: value)
    with zlmdb.Database(tmp_path / "db", layout="classic") as db, db.begin(write=True) as txn:
        rows[txn, 7] = "a"
        txn.put(b"\0\2a", pickle.dumps(7, protocol=2))
        rows[txn, 7] = "a"
        assert txn.get(b"\0\2a") == pickle.dumps(7, protocol=2)
        rows[txn, 7] = "b"
        assert list(by_name.select(txn)) == [("b", 7)]


# Odds and ends


def test_maps_and_their_indexes_can_be_collected(db: zlmdb.Database[Any]) -> None:
    import gc
    import weakref

    maps = Maps()
    with db.begin(write=True) as txn:
        maps.fill(txn)
    refs = [weakref.ref(maps.rows), weakref.ref(maps.by_name)]
    del maps
    for _ in range(3):
        gc.collect()
    assert [ref() for ref in refs] == [None, None]


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_the_rules_hold_without_asserts(tmp_path: Path) -> None:
    program = f"""
import zlmdb
rows, names = zlmdb.MapOidJson(1), zlmdb.MapStringOid(2)
rows.attach_index("name", names, lambda value: value)
with zlmdb.Database({str(tmp_path / "db")!r}) as db, db.begin(write=True) as txn:
    rows[txn, 1] = "a"
    for key, value, error in [(2, "a", zlmdb.DuplicateKey), (2, None, zlmdb.NullValueConstraint)]:
        try:
            rows[txn, key] = value
        except error:
            pass
        else:
            raise SystemExit(error.__name__)
    print(rows.count(txn), names.count(txn))
"""
    done = subprocess.run([sys.executable, "-O", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1"]


ROWS, NAMES = "9a5f9b3e-2f5b-4d0c-8a58-7a6c6d646200", "9a5f9b3e-2f5b-4d0c-8a58-7a6c6d646201"


@zlmdb.table(ROWS)
class ClassicRows(zlmdb.MapOidJson):
    """Rows as a classic program sees them."""


@zlmdb.table(NAMES)
class ClassicNames(zlmdb.MapStringOid):
    """Their index."""


class Rows(zlmdb.Table[zlmdb.keys.Oid, zlmdb.Json[dict[str, Any]]], uuid=ROWS):
    """The same rows, declared."""


class Declared(zlmdb.Schema):
    rows: Rows


class Adopting(zlmdb.Table[zlmdb.keys.Oid, zlmdb.Json[dict[str, Any]]], uuid=ROWS):
    by_name = zlmdb.UniqueIndex[zlmdb.keys.String]("name", table=NAMES)


class Adopted(zlmdb.Schema):
    rows: Adopting


@pytest.mark.parametrize("where", ["file", "memory"])
def test_an_index_attached_meanwhile_is_seen_by_the_declared_table(where: str, tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db" if where == "file" else None, Declared) as db:
        rows, names = db.attach_table(ClassicRows), db.attach_table(ClassicNames)
        with db.write() as t:
            t.rows[1] = {"name": "ann"}
        rows.attach_index("name", names, lambda row: row["name"])
        with db.write() as t:
            t.rows[2] = {"name": "bob"}  # the file does not know of the index yet
            rows[t.txn, 3] = {"name": "cid"}
            with pytest.raises(zlmdb.IndexNotAttached):
                t.rows[4] = {"name": "dan"}
        for _ in range(2):
            with pytest.raises(zlmdb.IndexNotAttached), db.write() as t:
                t.rows[4] = {"name": "dan"}
        with db.begin() as txn:
            assert dict(names.bind(txn)) == {"ann": 1, "bob": 2, "cid": 3}
        rows.detach_index("name")
        with db.begin(write=True) as txn:
            rows[txn, 5] = {"name": "eve"}
        with db.write() as t:
            t.rows[6] = {"name": "fay"}
        with db.begin() as txn:
            assert len(rows.bind(txn)) == 5


def test_the_next_write_of_a_duplicate_decides_where_the_index_was_adopted(tmp_path: Path) -> None:
    with zlmdb.Database(tmp_path / "db", layout="classic") as db:
        rows, names = db.attach_table(ClassicRows), db.attach_table(ClassicNames)
        with db.begin(write=True) as txn:
            for key in 1, 2:
                rows[txn, key] = {"name": "ann"}
                names[txn, "ann"] = key
    with zlmdb.open(tmp_path / "db", Adopted) as db, db.write() as t:
        with pytest.raises(zlmdb.DuplicateKey) as caught:
            t.rows[1] = {"name": "ann", "age": 7}
        assert caught.value.owner == 2
        t.rows[2] = {"name": "ann", "age": 8}
        del t.rows[2]
        assert "ann" not in t.rows.by_name
        t.rows[1] = {"name": "ann", "age": 9}
        assert t.rows.by_name.key("ann") == 1
        assert list(t.rows.by_name.select()) == [(1, {"name": "ann", "age": 9})]


def test_deleting_by_an_index_ends_at_an_entry_without_a_record(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", zlmdb.Schema) as db:
        rows, names = db.attach_table(ClassicRows), db.attach_table(ClassicNames)
        with db.begin(write=True) as txn:
            rows[txn, 1] = {"name": "ann"}
            names[txn, "ann"] = 1
            names[txn, "gone"] = 7
    with zlmdb.open(tmp_path / "db", Adopted) as db:
        with pytest.raises(zlmdb.DecodeError, match="rebuild the index"), db.write() as t:
            t.rows.by_name.select().delete()
        with db.read() as t:
            assert list(t.rows) == [1]


@pytest.mark.parametrize("where", ["file", "memory"])
def test_an_index_attached_to_one_of_two_maps_of_a_table_is_seen_by_the_other(where: str, tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db" if where == "file" else None, zlmdb.Schema) as db:
        plain, indexed = db.attach_table(ClassicRows), db.attach_table(ClassicRows)
        names = db.attach_table(ClassicNames)
        indexed.attach_index("name", names, lambda row: row["name"])
        with db.begin(write=True) as txn:
            plain[txn, 1] = {"name": "ann"}
            bound = plain.bind(txn)
            indexed[txn, 2] = {"name": "bob"}
            with pytest.raises(zlmdb.IndexNotAttached):
                plain[txn, 3] = {"name": "cid"}
            with pytest.raises(zlmdb.IndexNotAttached):
                bound[3] = {"name": "cid"}
            assert dict(names.bind(txn)) == {"ann": 1, "bob": 2}
