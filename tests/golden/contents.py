"""What the golden files hold: one declaration and one list of records, for the program that wrote them and the tests.

It uses of zlmdb what its users do and no more, so that the version that wrote the files runs it as well as ours does.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any, Optional
from uuid import UUID

import zlmdb
from zlmdb import keys, values

sys.path.insert(0, str(Path(__file__).parent.parent / "interop"))
import catalogue

NOON = datetime(2026, 1, 2, 12, 30, 15, 123456, tzinfo=timezone.utc)
ONE, TWO = UUID(int=1), UUID("10111213-1415-1617-1819-1a1b1c1d1e1f")
NEGATIVE_FIRST = [-(2**63), -1, 0, 1, 256, 2**63 - 1]


@dataclass
class Address:
    street: str
    number: int


@dataclass
class Person:
    name: str
    email: Optional[str]
    age: int
    born: Optional[date] = None
    tags: tuple[str, ...] = ()
    home: Optional[Address] = None


class People(zlmdb.Table[UUID, Person]):
    """People by id, with every kind of index."""

    by_email = zlmdb.UniqueIndex[str]("email")
    by_age = zlmdb.Index[int]("age")
    by_born = zlmdb.Index[date]("born")
    by_age_and_name = zlmdb.Index("age", "name")
    by_initial = zlmdb.Index[str](lambda person: person.name[:1] or None, version=1)


class Renamed(zlmdb.Table[int, str], name="kept under another name"):
    """A table whose name is not that of the attribute."""


class Adopted(zlmdb.Table[str, int], uuid="0a0a0a0a-0000-4000-8000-00000000000a"):
    """A table with a UUID."""


class Store(zlmdb.Schema):
    people: People
    renamed: Renamed
    adopted: Adopted
    empty: zlmdb.Table[int, int]
    # keys
    ints: zlmdb.Table[int, int]
    texts: zlmdb.Table[str, str]
    blobs: zlmdb.Table[bytes, bytes]
    uuids: zlmdb.Table[UUID, UUID]
    flags: zlmdb.Table[bool, bool]
    floats: zlmdb.Table[float, float]
    moments: zlmdb.Table[datetime, str]
    days: zlmdb.Table[date, str]
    pairs: zlmdb.Table[tuple[str, int], str]
    parts: zlmdb.Table[tuple[UUID, datetime, bytes], str]
    oids: zlmdb.Table[keys.Oid, values.Oid]
    smalls: zlmdb.Table[keys.Uint16, values.String]
    hashes: zlmdb.Table[keys.Bytes20, values.Bytes20]
    # values
    models: zlmdb.Table[int, Person]
    unchecked: zlmdb.Table[int, zlmdb.Unchecked[Person]]
    jsons: zlmdb.Table[int, zlmdb.Json[Person]]
    cbors: zlmdb.Table[int, zlmdb.Cbor[Person]]
    packs: zlmdb.Table[int, zlmdb.Msgpack[Person]]
    pickles: zlmdb.Table[int, zlmdb.Pickle[dict[str, Any]]]
    flats: zlmdb.Table[int, zlmdb.FlatBuffers[Person]]
    documents: zlmdb.Table[int, dict[str, Any]]
    json_documents: zlmdb.Table[int, zlmdb.Json[Any]]
    cbor_documents: zlmdb.Table[int, zlmdb.Cbor[Any]]
    optional: zlmdb.Table[int, Optional[Person]]
    zipped: zlmdb.Table[int, zlmdb.Zlib[dict[str, Any]]]
    squeezed: zlmdb.Table[int, Annotated[zlmdb.Cbor[Any], zlmdb.Compression("zlib", threshold=100)]]


class Packed(zlmdb.Schema):
    """Tables that need more than what is installed on every interpreter."""

    snappy: zlmdb.Table[int, zlmdb.Snappy[dict[str, Any]]]
    zstd: zlmdb.Table[int, zlmdb.Zstd[dict[str, Any]]]


PEOPLE = [
    Person("Ann", "ann@example.com", 31, date(1994, 5, 6), ("a", "b"), Address("Main Street", 5)),
    Person("Bob", "bob@example.com", 0),
    Person("Çelik", None, 31, date(1969, 7, 20)),
    Person("\u65e5\u672c", "", 2**40, None, ("",)),
    Person("", "last@example.com", -5, date.max, tuple("xyz"), Address("", -1)),
]
DOCUMENTS: list[dict[str, Any]] = [
    {},
    {"name": "Ann", "tags": ["a", "b"], "n": 1, "x": 2.5, "none": None, "yes": True},
    {"nested": {"deep": [{"k": [0, -1, 2**53]}], "é": "\0\u65e5"}},
    {"long": "golden " * 60},
]
RECORDS: dict[str, list[tuple[Any, Any]]] = {
    "people": [(UUID(int=n << 64 | n), person) for n, person in enumerate(PEOPLE)],
    "renamed": [(1, "one"), (2, "two")],
    "adopted": [("a", 1), ("b", 2)],
    "empty": [],
    "ints": [(n, -n - 1) for n in NEGATIVE_FIRST],
    "texts": [(text, text * 2) for text in ("a", "a\0", "ab", "b", "é", "\u65e5\u672c", "\U0001f600")],
    "blobs": [(data, data[::-1]) for data in (b"\0", b"\0\1", b"a", b"\xff")],
    "uuids": [(UUID(int=0), TWO), (ONE, ONE), (TWO, UUID(int=0))],
    "flags": [(False, True), (True, False)],
    "floats": [(x, -x) for x in (-1e300, -1.5, 1e-300, 2.5, 1e300)],
    "moments": [(NOON + timedelta(days=n), str(n)) for n in (-40_000, -1, 0, 1, 40_000)],
    "days": [(day, day.isoformat()) for day in (date.min, date(1969, 12, 31), date(2026, 1, 2), date.max)],
    "pairs": [(pair, str(pair)) for pair in (("a", -1), ("a", 2), ("a\0b", 0), ("ab", 1), ("é", 0))],
    "parts": [((one, NOON + timedelta(days=n), b"x" * n), "") for one in (ONE, TWO) for n in (1, 2, 3)],
    "oids": [(0, 2**53), (1, 0), (2**53, 7)],
    "smalls": [(0, ""), (258, "x"), (65535, "\u65e5")],
    "hashes": [(bytes(20), bytes(range(20))), (bytes(range(20)), bytes(20))],
    **{name: list(enumerate(PEOPLE)) for name in ("models", "unchecked", "jsons", "cbors", "packs", "flats")},
    **{
        name: list(enumerate(DOCUMENTS))
        for name in ("pickles", "documents", "json_documents", "cbor_documents", "zipped", "squeezed")
    },
    "optional": [(0, None), (1, PEOPLE[0])],
    "snappy": list(enumerate(DOCUMENTS)),
    "zstd": list(enumerate(DOCUMENTS)),
}

# -- classic maps -----------------------------------------------------------------------------------------------------


@zlmdb.table("0a0a0a0a-0000-4000-8000-00000000000b")
class ClassicPeople(zlmdb.MapOidPickle):
    """Attached, with two attached indexes."""


@zlmdb.table("0a0a0a0a-0000-4000-8000-00000000000c")
class ClassicByName(zlmdb.MapStringOid):
    """Of its indexes the one with a class."""


@zlmdb.table("0a0a0a0a-0000-4000-8000-00000000000d", compress=zlmdb.MapUuidJson.COMPRESS_ZLIB)
class ClassicDocuments(zlmdb.MapUuidJson):
    """Attached and compressed."""


CLASSIC_PEOPLE = {n: {"oid": n, "name": name, "age": n % 3} for n, name in enumerate(("ann", "bob", None, "é"))}
CLASSIC_DOCUMENTS = {ONE: DOCUMENTS[3], TWO: DOCUMENTS[1]}
FIRST_SLOT = 1000
SLOTS = {name: FIRST_SLOT + n for n, name in enumerate(sorted(catalogue.MAPS))}
"""The slots given by hand to the named maps."""

BY_AGE_SLOT = 990


def attached(db: Any) -> tuple[Any, Any, Any, Any]:
    """The attached maps: people, their indexes by name and by age, and documents."""
    people, by_name = db.attach_table(ClassicPeople), db.attach_table(ClassicByName)
    by_age = zlmdb.MapOidOidOid(BY_AGE_SLOT)
    people.attach_index("name", by_name, lambda person: person["name"], nullable=True)
    people.attach_index("age", by_age, lambda person: (person["age"], person["oid"]))
    return people, by_name, by_age, db.attach_table(ClassicDocuments)


def named(name: str) -> tuple[Any, list[tuple[Any, Any]]]:
    """The named map *name* in its slot, and its records in the order of their bytes."""
    rows = [(catalogue.python_key(key), catalogue.python_value(value)) for key, value in _samples(name)]
    return catalogue.make(zlmdb, name, SLOTS[name]), rows


def _samples(name: str) -> list[Any]:
    """Five of the catalogue's records, spread over all of them."""
    found = catalogue.records(name)
    return found[:: max(1, len(found) // 5)]
