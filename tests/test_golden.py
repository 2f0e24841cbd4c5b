"""Files that 27.0.0 wrote before its insides were rebuilt (22 November 2026): they open unchanged, with all they hold.

There is one of each layout and LMDB format, packed, in ``golden/``, with the program that wrote them.
"""

from __future__ import annotations

import gzip
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import zlmdb

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python

pytest.importorskip("numpy", reason="timestamps need numpy")
GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(GOLDEN))  # the program that wrote the files imports the same module
contents: Any = importlib.import_module("contents")

FILES = [f"{layout}-{version}" for layout in ("classic", "tables") for version in ("0.9", "1.0")]
RECORDS: dict[str, list[tuple[Any, Any]]] = contents.RECORDS
LIBRARIES = {"snappy": "snappy", "zstd": "zstandard" if sys.version_info < (3, 14) else "compression.zstd"}
TABLES = list(contents.Store.__annotations__)


@pytest.fixture(params=FILES)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The directory of a golden file's database."""
    (tmp_path / "data.mdb").write_bytes(unpacked(request.param))
    return tmp_path


def unpacked(name: str) -> bytes:
    return gzip.decompress((GOLDEN / f"{name}.mdb.gz").read_bytes())


@pytest.fixture
def db(golden: Path) -> Iterator[Any]:
    with zlmdb.open(golden, contents.Store) as opened:
        yield opened


@pytest.mark.parametrize("readonly", [True, False])
def test_opening_and_reading_changes_no_byte(golden: Path, readonly: bool, request: pytest.FixtureRequest) -> None:
    before = (golden / "data.mdb").read_bytes()
    with zlmdb.open(golden, contents.Store, readonly=readonly) as db:
        with db.read() as t:
            assert {name: list(t[name].items()) for name in TABLES} == {name: RECORDS[name] for name in TABLES}
        report = db.check()
        assert report.ok, report.problems
        assert (db.layout, db.lib_version) == tuple(request.node.callspec.params["golden"].split("-"))
    assert (golden / "data.mdb").read_bytes() == before


def test_every_record_comes_back_with_its_type(db: Any) -> None:
    with db.read() as t:
        for name in TABLES:
            for key, value in RECORDS[name]:
                found = t[name][key]
                assert (name, found, type(found)) == (name, value, type(value))
            assert list(reversed(t[name])) == [key for key, _ in RECORDS[name]][::-1]
            assert len(t[name]) == len(RECORDS[name])


@pytest.mark.parametrize("name", contents.Packed.__annotations__)
def test_records_compressed_by_optional_libraries_come_back(name: str, tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(unpacked("packed"))
    pytest.importorskip(LIBRARIES[name], reason="there is no wheel for PyPy")
    schema = type("One", (zlmdb.Schema,), {"__annotations__": {name: contents.Packed.__annotations__[name]}})
    schema.__module__ = contents.__name__
    with zlmdb.open(tmp_path, schema) as db, db.read() as t:
        assert list(t[name].items()) == RECORDS[name]


def check_indexes(t: Any, people: dict[Any, Any]) -> None:
    """Compare what all indexes give with what *people* gives."""
    rows = list(people.items())
    by_email = sorted((person.email.encode(), key) for key, person in rows if person.email is not None)
    assert [key for key, _ in t.people.by_email.select()] == [key for _, key in by_email]
    assert all(t.people.by_email.key(email.decode()) == key for email, key in by_email)
    by_age = sorted((person.age, key) for key, person in rows)
    assert [(person.age, key) for key, person in t.people.by_age.select()] == by_age
    born = sorted((person.born, key) for key, person in rows if person.born is not None)
    assert [(person.born, key) for key, person in t.people.by_born.select()] == born
    both = sorted((person.age, person.name.encode(), key) for key, person in rows)
    assert [key for key, _ in t.people.by_age_and_name.select()] == [key for _, _, key in both]
    initial = sorted((person.name[0].encode(), key) for key, person in rows if person.name)
    assert [key for key, _ in t.people.by_initial.select()] == [key for _, key in initial]


def test_every_index_leads_to_its_records(db: Any) -> None:
    with db.read() as t:
        check_indexes(t, dict(RECORDS["people"]))


def test_every_named_map_reads_and_writes(db: Any) -> None:
    maps = {
        name: (table, in_order(name, rows, db)) for name in contents.SLOTS for table, rows in [contents.named(name)]
    }
    with db.begin() as txn:
        for name, (table, rows) in maps.items():
            assert (name, list(table.select(txn))) == (name, rows)
            assert all(table[txn, key] == value for key, value in rows)
    with db.begin(write=True) as txn:
        for table, rows in maps.values():
            del table[txn, rows[0][0]]
            table[txn, rows[-1][0]] = rows[0][1]
    with db.begin() as txn:
        for name, (table, rows) in maps.items():
            assert (name, list(table.select(txn))) == (name, [*rows[1:-1], (rows[-1][0], rows[0][1])])
    assert db.check().ok


def in_order(name: str, rows: list[tuple[Any, Any]], db: Any) -> list[tuple[Any, Any]]:
    """The *rows* of a named map, which are in the order of their bytes in the classic layout."""
    if db.layout == "tables" and contents.catalogue.MAPS[name][0] in contents.catalogue.LITTLE_ENDIAN:
        return sorted(rows, key=lambda row: row[0])
    return rows


def test_attached_maps_and_their_indexes_read_and_write(db: Any) -> None:
    people, by_name, by_age, documents = contents.attached(db)
    expected = dict(contents.CLASSIC_PEOPLE)
    for write in (False, True):
        with db.begin(write=write) as txn:
            if write:
                people[txn, 1] = expected[1] = {"oid": 1, "name": "new", "age": 7}
                del people[txn, 0], expected[0]
            assert dict(people.select(txn)) == expected
            assert dict(by_name.select(txn)) == {row["name"]: key for key, row in expected.items() if row["name"]}
            assert list(by_age.select(txn, return_values=False)) == sorted(
                (row["age"], key) for key, row in expected.items()
            )
            assert dict(documents.select(txn)) == contents.CLASSIC_DOCUMENTS
    assert db.check().ok


def test_every_table_takes_writes(db: Any) -> None:
    expected = {name: list(RECORDS[name]) or [(1, 2), (3, 4)] for name in TABLES}
    with db.write() as t:
        for name, rows in expected.items():
            (first, value), (last, _) = rows[0], rows[-1]
            t[name][first] = value
            del t[name][first]
            t[name][last] = value
            expected[name] = [*(row for row in rows[1:-1] if RECORDS[name]), (last, value)]
        with pytest.raises(zlmdb.DuplicateKey):
            t.people[contents.ONE] = RECORDS["people"][1][1]
    with db.read() as t:
        assert {name: list(t[name].items()) for name in TABLES} == expected
        check_indexes(t, dict(expected["people"]))
    assert db.check().ok


def test_bulk_writes_and_deletions_keep_indexes_in_step(db: Any) -> None:
    people = dict(RECORDS["people"])
    new = {contents.UUID(int=1 << 100 | n): contents.Person(f"new {n}", f"{n}@example.com", n) for n in range(50)}
    with db.write() as t:
        assert t.people.put_many(list(new.items()), append=True) == 50
        people.update(new)
        gone = [key for key, person in people.items() if person.age == 31]
        assert t.people.by_age[31].delete() == len(gone) == 3
        people = {key: person for key, person in people.items() if key not in gone}
    with db.read() as t:
        assert list(t.people.items()) == sorted(people.items(), key=lambda row: row[0].bytes)
        check_indexes(t, people)
    assert db.check().ok
